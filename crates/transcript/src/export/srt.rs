use std::io::{self, Write};

use super::cues::{Cue, CueLine, CuePiece, cues};
use super::text::clock;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Time, Transcript};

/// Duration of the warning in a transcript without text.
const WARNING_LENGTH: Time = Time::from_millis(5000);

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
            // SubRip has no escapes, and readers take any line with `-->` for
            // a line of times.
            let text = line.text().replace("-->", "→");
            match &line.label {
                Some(label) => writeln!(out, "{}: {text}", label.replace("-->", "→"))?,
                None => writeln!(out, "{text}")?,
            }
        }
    }
    Ok(())
}
