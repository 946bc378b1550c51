use std::io::{self, Write};

use super::document::{facts, paragraphs, title};
use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// Markdown (CommonMark).
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", escape(&title(transcript)))?;
    if transcript.model.demonstration {
        writeln!(out, "> **{DEMONSTRATION_WARNING}**\n")?;
    }
    for (name, value) in facts(transcript) {
        writeln!(out, "- {name}: {}", escape(&value))?;
    }
    for paragraph in paragraphs(transcript, options) {
        writeln!(out)?;
        if let Some(title) = &paragraph.chapter {
            writeln!(out, "## {}\n", escape(title))?;
        }
        let label = paragraph.label.as_deref().map(escape);
        let heading: Vec<String> = paragraph.time.into_iter().chain(label).collect();
        if !heading.is_empty() {
            write!(out, "**{}** ", heading.join(" "))?;
        }
        let text: String = paragraph
            .sentences
            .iter()
            .map(|sentence| format!("{}{}", sentence.space, escape(&sentence.text)))
            .collect();
        write!(out, "{}", if heading.is_empty() { at_line_start(&text) } else { text })?;
        writeln!(out)?;
        if let Some(translation) = &paragraph.translation {
            writeln!(out, "\n> {}", at_line_start(&escape(translation)))?;
        }
    }
    Ok(())
}

/// Escapes the characters that have a meaning within a line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '#' | '$') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Escapes what begins a list at the start of a line: `-`, `+`, and `1.` or `1)`. Other markers of
/// blocks are escaped everywhere.
fn at_line_start(text: &str) -> String {
    let after_digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let marker = if after_digits.len() < text.len() { ['.', ')'] } else { ['-', '+'] };
    match after_digits.strip_prefix(marker) {
        Some(_) => format!("{}\\{after_digits}", &text[..text.len() - after_digits.len()]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::DocumentOptions;
    use crate::export::tests::{segment, transcript};

    #[test]
    fn no_paragraph_is_a_list() {
        let document = DocumentOptions { times: false, speakers: false, paragraphs: false };
        for (text, expected) in [
            ("1984. A novel.", "1984\\. A novel."),
            ("2) Two.", "2\\) Two."),
            ("- No.", "\\- No."),
            ("+ Plus.", "\\+ Plus."),
            ("12 men.", "12 men."),
            ("# One.", "\\# One."),
            ("Well - no.", "Well - no."),
        ] {
            let options = Options { document, ..Options::default() };
            let mut written = Vec::new();
            write(&transcript(vec![segment(0, 1_000, text)]), &options, &mut written).unwrap();
            let written = String::from_utf8(written).unwrap();
            assert_eq!(written.lines().last(), Some(expected));
        }
    }
}
