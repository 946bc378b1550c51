use std::io::{self, Write};

use super::cues::{Cue, CueLine, CuePiece, cues};
use super::text::clock;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Time, Transcript};

/// Duration of the warning in a transcript without text.
const WARNING_LENGTH: Time = Time::from_millis(5000);

/// A line that players show as it is. SubRip has no escapes: any line with `-->` is
/// taken for a line of times, and tags of HTML (`<b>`) and of SubStation (`{\an8}`)
/// are obeyed, so that signs that look alike stand in their place.
fn plain(text: &str, options: &Options) -> String {
    let text = text.replace("-->", "→");
    if options.raw_text {
        return text;
    }
    let begins_tag = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?');
    let mut shown = String::with_capacity(text.len());
    // One `<` after another, with what follows it.
    let mut parts = text.split('<');
    shown.extend(parts.next());
    for part in parts {
        match part.split_once('>').filter(|_| part.starts_with(begins_tag)) {
            Some((tag, after)) => shown.extend(["‹", tag, "›", after]),
            None => shown.extend(["<", part]),
        }
    }
    shown.replace('{', "(").replace('}', ")")
}

/// SubRip: cues of a number, a line of times and lines of text, separated by
/// blank lines.
///
/// SubRip has no comments. A cue for the demonstration model's warning would
/// overlap or delay the first text, so the warning is a line of the first cue.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut cues = cues(transcript, options);
    if transcript.model.demonstration {
        let text = format!("[{DEMONSTRATION_WARNING}]");
        let warning = CueLine { label: None, pieces: vec![CuePiece { text, start: None }] };
        match cues.first_mut() {
            Some(first) => first.lines.insert(0, warning),
            None => cues.push(Cue { start: Time::ZERO, end: WARNING_LENGTH, lines: vec![warning] }),
        }
    }
    for (index, cue) in cues.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", index + 1)?;
        writeln!(out, "{} --> {}", clock(cue.start, ','), clock(cue.end, ','))?;
        for line in &cue.lines {
            let text = plain(&line.text(), options);
            match &line.label {
                Some(label) => writeln!(out, "{}: {text}", plain(label, options))?,
                None => writeln!(out, "{text}")?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_players_take_for_a_tag_is_shown() {
        for (text, expected) in [
            ("plain, 3 < 4 and 5 > 4", "plain, 3 < 4 and 5 > 4"),
            ("<b>bold</b> <font color=\"red\">x", "‹b›bold‹/b› ‹font color=\"red\"›x"),
            ("a <b without an end", "a <b without an end"),
            ("{\\an8}up {y:i}", "(\\an8)up (y:i)"),
            ("é<ü>", "é<ü>"),
            ("<<i>>", "<‹i›>"),
            ("00:00 --> 00:01", "00:00 → 00:01"),
        ] {
            assert_eq!(plain(text, &Options::default()), expected);
            let raw = Options { raw_text: true, ..Options::default() };
            assert_eq!(plain(text, &raw), text.replace("-->", "→"));
        }
    }
}
