use std::io::{self, Write};

use super::DEMONSTRATION_WARNING;
use super::text::{SpeakerLabels, one_line};
use crate::Transcript;

/// Plain text: one segment per line, after the speaker's name if there is one.
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    if transcript.model.demonstration {
        writeln!(out, "[{DEMONSTRATION_WARNING}]")?;
    }
    let labels = SpeakerLabels::of(transcript);
    for segment in &transcript.segments {
        let text = one_line(&segment.text);
        if text.is_empty() {
            continue;
        }
        match labels.label(segment) {
            Some(label) => writeln!(out, "{label}: {text}")?,
            None => writeln!(out, "{text}")?,
        }
    }
    Ok(())
}
