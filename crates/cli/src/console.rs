//! Messages on standard error, and a progress line that is redrawn below them.

use std::io::{self, IsTerminal, Write};

use crate::platform;

/// Widest line where the terminal doesn't tell its width.
const DEFAULT_WIDTH: usize = 80;

/// Standard error, shared between messages and at most one progress line.
#[derive(Debug)]
pub struct Console {
    quiet: bool,
    redraws: bool,
    line_shown: bool,
}

impl Console {
    pub fn new(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { quiet, redraws: io::stderr().is_terminal() && !dumb, line_shown: false }
    }

    /// Whether a line can be redrawn in place.
    pub fn redraws(&self) -> bool {
        self.redraws
    }

    pub fn error(&mut self, text: &str) {
        self.write(&format!("steno: {text}"));
    }

    pub fn warning(&mut self, text: &str) {
        self.write(&format!("steno: warning: {text}"));
    }

    /// An informational message, left out when quiet.
    pub fn info(&mut self, text: &str) {
        if !self.quiet {
            self.write(text);
        }
    }

    /// Shows a progress line in place of the one before.
    pub fn redraw(&mut self, text: &str) {
        if self.quiet || !self.redraws {
            return;
        }
        let width = platform::terminal_width().unwrap_or(DEFAULT_WIDTH);
        let line = shortened(&printable(text), width.saturating_sub(1));
        self.line_shown = true;
        to_stderr(&format!("\r{line}\x1b[K"));
    }

    /// Takes the progress line away.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.line_shown) {
            to_stderr("\r\x1b[K");
        }
    }

    fn write(&mut self, text: &str) {
        self.clear();
        to_stderr(&format!("{}\n", printable(text)));
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.clear();
    }
}

/// One write per message, so that messages of two programs don't mix within a
/// line. There is no way left to report when standard error itself fails.
fn to_stderr(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// An engine's text may hold anything, also what makes a terminal obey. Lines of ours stay
/// lines; names have none, see [`wire::shown`].
fn printable(text: &str) -> String {
    text.split('\n').map(wire::printable).collect::<Vec<_>>().join("\n")
}

fn shortened(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    let mut short: String = text.chars().take(columns.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_command_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\rc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(printable("naïve – 日本"), "naïve – 日本");
    }

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
