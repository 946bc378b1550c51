use std::io::{self, Write};

use super::text::{SpeakerLabels, cell, one_line};
use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// Comma-separated values (RFC 4180, but with `\n` at line ends): a header and a
/// line per segment. Times are seconds; the confidence, 0 to 1, is the geometric
/// mean of the tokens' probabilities.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    // A table has no place for a remark, so the warning is a column.
    let warning = if transcript.model.demonstration { Some(DEMONSTRATION_WARNING) } else { None };
    write!(out, "start,end,speaker,language,confidence,text")?;
    write!(out, "{}", if options.translation { ",translation" } else { "" })?;
    writeln!(out, "{}", if warning.is_some() { ",warning" } else { "" })?;
    let labels = SpeakerLabels::of(transcript);
    for segment in &transcript.segments {
        let text = one_line(&segment.text);
        if text.is_empty() {
            continue;
        }
        let confidence = f64::from(segment.mean_log_probability).exp().clamp(0.0, 1.0);
        let speaker = labels.label(segment).unwrap_or_default();
        let language = segment.language.as_deref().unwrap_or(&transcript.language);
        write!(
            out,
            "{:.3},{:.3},{},{},{confidence:.3},{}",
            segment.start.seconds(),
            segment.end.seconds(),
            quoted(&cell(&speaker, options)),
            quoted(&cell(language, options)),
            quoted(&cell(&text, options))
        )?;
        if options.translation {
            let translation = one_line(segment.translation.as_deref().unwrap_or_default());
            write!(out, ",{}", quoted(&cell(&translation, options)))?;
        }
        match warning {
            Some(warning) => writeln!(out, ",{}", quoted(warning))?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn quoted(field: &str) -> String {
    let plain = !field.contains([',', '"', '\n', '\r']) && field.trim() == field;
    if plain { field.into() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}
