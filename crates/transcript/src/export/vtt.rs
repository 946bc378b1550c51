use std::io::{self, Write};

use super::cues::{Cue, CueLine, cues};
use super::text::{clock, escape_markup};
use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// WebVTT (W3C): a header, then cues. Speakers are voice tags. If the options say
/// so each word has its time, for players that highlight the current word.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "WEBVTT")?;
    if transcript.model.demonstration {
        writeln!(out, "\nNOTE {DEMONSTRATION_WARNING}")?;
    }
    for cue in cues(transcript, options) {
        writeln!(out, "\n{} --> {}", clock(cue.start, '.'), clock(cue.end, '.'))?;
        let mut latest = cue.start;
        let mut voice_open = false;
        for (index, line) in cue.lines.iter().enumerate() {
            if line.label.is_some() && voice_open {
                write!(out, "</v>")?;
            }
            if index > 0 {
                writeln!(out)?;
            }
            if let Some(label) = &line.label {
                write!(out, "<v {}>", escape_markup(label))?;
                voice_open = true;
            }
            let text = if options.word_times {
                with_word_times(line, &cue, &mut latest)
            } else {
                escape_markup(&line.text())
            };
            write!(out, "{text}")?;
        }
        writeln!(out, "{}", if voice_open { "</v>" } else { "" })?;
    }
    Ok(())
}

/// The line with a time stamp before each word. The format demands that stamps
/// increase and lie within the cue; others are left out, also the first word's,
/// which is the cue's own.
fn with_word_times(line: &CueLine, cue: &Cue, latest: &mut crate::Time) -> String {
    let mut text = String::new();
    for piece in &line.pieces {
        let word = piece.text.trim_start();
        text += &escape_markup(&piece.text[..piece.text.len() - word.len()]);
        if let Some(start) = piece.start.filter(|start| *start > *latest && *start < cue.end) {
            *latest = start;
            text += &format!("<{}>", clock(start, '.'));
        }
        text += &escape_markup(word);
    }
    text
}
