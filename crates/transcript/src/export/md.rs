use std::io::{self, Write};

use super::DEMONSTRATION_WARNING;
use super::document::{facts, paragraphs, reading_clock, title};
use crate::Transcript;

/// Markdown (CommonMark).
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", escape(&title(transcript)))?;
    if transcript.model.demonstration {
        writeln!(out, "> **{DEMONSTRATION_WARNING}**\n")?;
    }
    for (name, value) in facts(transcript) {
        writeln!(out, "- {name}: {}", escape(&value))?;
    }
    for paragraph in paragraphs(transcript) {
        write!(out, "\n**{}", reading_clock(paragraph.start))?;
        if let Some(label) = &paragraph.label {
            write!(out, " {}", escape(label))?;
        }
        write!(out, "** ")?;
        for sentence in &paragraph.sentences {
            write!(out, "{}{}", sentence.space, escape(&sentence.text))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Escapes the characters that have a meaning within a line. No text stands at
/// the start of a line here, so that markers of blocks need no escape.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '#' | '$') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
