use std::io::{self, Write};

use crate::Transcript;
use crate::speakers::current_turns;

/// NIST's Rich Transcription Time Marked: a line per turn of a speaker. Fields
/// are separated by spaces, so that names and the file's name have `_` in their place.
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    let name = transcript.source.name.rsplit_once('.').map_or(transcript.source.name.as_str(), |it| it.0);
    let file = field(name);
    for turn in current_turns(transcript) {
        let (start, length) = (turn.span.start.seconds(), turn.span.length().seconds());
        let (speaker, channel) = (field(&turn.speaker), turn.channel.unwrap_or(0) + 1);
        writeln!(out, "SPEAKER {file} {channel} {start:.3} {length:.3} <NA> <NA> {speaker} <NA> <NA>")?;
    }
    Ok(())
}

fn field(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { "<NA>".into() } else { words.join("_") }
}
