use std::io::{self, Write};

use super::DEMONSTRATION_WARNING;
use super::cues::cues;
use super::text::clock;
use crate::Transcript;

/// WebVTT (W3C): a header, then pairs of times with lines of text. Speakers
/// are voice tags.
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "WEBVTT")?;
    if transcript.model.demonstration {
        writeln!(out, "\nNOTE {DEMONSTRATION_WARNING}")?;
    }
    for cue in cues(transcript) {
        writeln!(out, "\n{} --> {}", clock(cue.start, '.'), clock(cue.end, '.'))?;
        let mut voice_open = false;
        for (index, line) in cue.lines.iter().enumerate() {
            if let Some(label) = &line.label {
                if voice_open {
                    write!(out, "</v>")?;
                }
                if index > 0 {
                    writeln!(out)?;
                }
                write!(out, "<v {}>", escape(label))?;
                voice_open = true;
            } else if index > 0 {
                writeln!(out)?;
            }
            write!(out, "{}", escape(&line.text))?;
        }
        writeln!(out, "{}", if voice_open { "</v>" } else { "" })?;
    }
    Ok(())
}

/// `>` as well, so that `-->` can't stand in a text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c => escaped.push(c),
        }
    }
    escaped
}
