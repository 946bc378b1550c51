use std::io::{self, Write};

use super::cues::{Cue, Line, Piece, cues};
use super::text::clock;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Time, Transcript};

/// How long the warning stands where there is no text for it to stand above.
const WARNING_LENGTH: Time = Time::from_millis(5000);

/// SubRip: a number, a pair of times, lines of text, a blank line.
///
/// SubRip knows no comment. A cue of its own for the demonstration model's
/// warning would lie over, or push away, what is said first, and one after the
/// end is never seen; so the warning is the first line of the first cue, and
/// every cue keeps its time.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut cues = cues(transcript, options);
    if transcript.model.demonstration {
        let text = format!("[{DEMONSTRATION_WARNING}]");
        let warning = Line { label: None, pieces: vec![Piece { text, start: None }] };
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
            // There is no escape for it, and readers take a line with `-->`
            // for a pair of times wherever it stands.
            let text = line.text().replace("-->", "→");
            match &line.label {
                Some(label) => writeln!(out, "{}: {text}", label.replace("-->", "→"))?,
                None => writeln!(out, "{text}")?,
            }
        }
    }
    Ok(())
}
