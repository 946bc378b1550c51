use std::io::{self, Write};

use super::text::{SpeakerLabels, one_line};
use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// Plain text: one segment per line, after the speaker's name if there is one. A translation is
/// the line below.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
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
        if let Some(translation) = segment.translation.as_deref().filter(|_| options.translation) {
            writeln!(out, "{}", one_line(translation))?;
        }
    }
    Ok(())
}
