use std::io::{self, Write};

use super::cues::{CueLine, cues};
use super::document::title;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Time, Transcript};

/// LRC: a line of text after its time, as music players show lyrics. An empty line ends a text that
/// nothing follows for a while. If the options say so each word has its time in angle brackets ("enhanced
/// LRC").
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "[ti:{}]", plain(&title(transcript)))?;
    writeln!(out, "[length:{}]", clock(transcript.source.duration))?;
    if transcript.model.demonstration {
        writeln!(out, "[re:{DEMONSTRATION_WARNING}]")?;
    }
    let cues = cues(transcript, options);
    for (index, cue) in cues.iter().enumerate() {
        for line in &cue.lines {
            let text = match options.word_times {
                true => with_word_times(line),
                false => plain(&line.text()),
            };
            let label = line.label.as_deref().map(|label| format!("{}: ", plain(label))).unwrap_or_default();
            // The second line of a cue comes when its first word is said.
            let start = line.pieces.first().and_then(|piece| piece.start).unwrap_or(cue.start);
            writeln!(out, "[{}]{label}{text}", clock(start.max(cue.start)))?;
        }
        // The format has no ends: without this line a text stays until the next one.
        if cues.get(index + 1).is_none_or(|next| hundredths(next.start) > hundredths(cue.end)) {
            writeln!(out, "[{}]", clock(cue.end))?;
        }
    }
    Ok(())
}

/// Text without what players take for a time: brackets that a digit follows.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let digit = rest.peek().is_some_and(char::is_ascii_digit);
        shown.push(match c {
            '[' if digit => '(',
            '<' if digit => '‹',
            c => c,
        });
    }
    shown
}

fn with_word_times(line: &CueLine) -> String {
    line.pieces
        .iter()
        .map(|piece| match piece.start {
            Some(start) => {
                let word = piece.text.trim_start();
                let space = &piece.text[..piece.text.len() - word.len()];
                format!("{space}<{}>{}", clock(start), plain(word))
            }
            None => plain(&piece.text),
        })
        .collect()
}

fn hundredths(time: Time) -> u32 {
    time.millis() / 10
}

/// `83:20.00`: minutes, seconds and hundredths; the format has no hours.
fn clock(time: Time) -> String {
    let (seconds, hundredths) = (hundredths(time) / 100, hundredths(time) % 100);
    format!("{:02}:{:02}.{hundredths:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    #[test]
    fn texts_end_where_nothing_follows_and_brackets_are_text() {
        let segments = vec![
            segment(0, 1_000, "See [1] and <2>, not [a]."),
            segment(1_000, 2_000, "At once."),
            segment(4_003_210, 4_004_000, "Later."),
        ];
        let mut written = Vec::new();
        write(&transcript(segments), &Options::default(), &mut written).unwrap();
        let expected = "[ti:talk.wav]\n[length:00:00.00]\n\
            [00:00.00]See (1] and ‹2>, not [a].\n[00:01.00]At once.\n[00:02.00]\n\
            [66:43.21]Later.\n[66:44.00]\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
