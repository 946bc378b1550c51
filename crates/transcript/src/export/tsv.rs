use std::io::{self, Write};

use super::text::{SpeakerLabels, cell, one_line};
use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// Tab-separated values with the columns of openai/whisper: start and end in
/// whole milliseconds, and the text after the speaker's name.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    // A table has no place for a remark, so the warning is a column.
    let (name, warning) = if transcript.model.demonstration {
        ("\twarning", format!("\t{DEMONSTRATION_WARNING}"))
    } else {
        ("", String::new())
    };
    writeln!(out, "start\tend\ttext{name}")?;
    let labels = SpeakerLabels::of(transcript);
    for segment in &transcript.segments {
        let text = one_line(&segment.text);
        if text.is_empty() {
            continue;
        }
        let speaker = labels.label(segment).map(|label| format!("{label}: ")).unwrap_or_default();
        let (start, end) = (segment.start.millis(), segment.end.millis());
        let text = format!("{speaker}{text}");
        writeln!(out, "{start}\t{end}\t{}{warning}", cell(&text, options))?;
    }
    Ok(())
}
