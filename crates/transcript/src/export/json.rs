use std::io::{self, Write};

use serde::Serialize;

use super::{DEMONSTRATION_WARNING, Options};
use crate::{Notice, Severity, Transcript};

/// The whole transcript, indented, with what varies between runs in the field
/// `run` and in notices about memory that left the text as it is.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Saved<'a> {
        /// Ignored when the file is read back: `model.demonstration` says it too.
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<&'a str>,
        #[serde(flatten)]
        transcript: &'a Transcript,
    }

    // A shallow copy would do, but only little is to go and the derived form
    // would have to be repeated by hand: a copy costs less care.
    let without_run: Transcript;
    let transcript = if options.reproducible {
        let mut copy = Transcript { run: None, ..transcript.clone() };
        copy.notices.retain(|notice| !is_of_the_run(notice));
        without_run = copy;
        &without_run
    } else {
        transcript
    };
    let warning = transcript.model.demonstration.then_some(DEMONSTRATION_WARNING);
    serde_json::to_writer_pretty(&mut *out, &Saved { warning, transcript })?;
    writeln!(out)
}

/// Whether a notice tells of the machine at that moment: what other programs
/// held, that a batch was halved. What changed the text is no such thing.
fn is_of_the_run(notice: &Notice) -> bool {
    notice.severity == Severity::Info && notice.code.starts_with("memory.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_the_text_is_told_whatever_the_run() {
        for (code, severity, expected) in [
            ("memory.occupied", Severity::Info, true),
            ("memory.batch_halved", Severity::Info, true),
            ("memory.smaller_model", Severity::Degraded, false),
            ("audio.mono", Severity::Info, false),
        ] {
            assert_eq!(is_of_the_run(&Notice::new(code, severity, "Text.")), expected, "{code}");
        }
    }
}
