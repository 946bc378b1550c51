use std::io::{self, Write};

use serde::Serialize;

use super::{DEMONSTRATION_WARNING, Options};
use crate::Transcript;

/// The whole transcript, indented, with what varies between runs in the field
/// `run` and nowhere else.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Saved<'a> {
        /// Ignored when the file is read back: `model.demonstration` says it too.
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<&'a str>,
        #[serde(flatten)]
        transcript: &'a Transcript,
    }

    // A shallow copy would do, but the run is the one field to go and the
    // derived form would have to be repeated by hand: a copy costs less care.
    let without_run: Transcript;
    let transcript = if options.reproducible && transcript.run.is_some() {
        without_run = Transcript { run: None, ..transcript.clone() };
        &without_run
    } else {
        transcript
    };
    let warning = transcript.model.demonstration.then_some(DEMONSTRATION_WARNING);
    serde_json::to_writer_pretty(&mut *out, &Saved { warning, transcript })?;
    writeln!(out)
}
