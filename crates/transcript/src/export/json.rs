use std::io::{self, Write};

use serde::Serialize;

use super::{DEMONSTRATION_WARNING, Options};
use crate::{Notice, Severity, Transcript};

/// The whole transcript, indented. What varies between runs is in the field
/// `run` and in notices about memory that did not affect the text.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Saved<'a> {
        /// For readers other than Steno, which reads `model.demonstration`.
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<&'a str>,
        #[serde(flatten)]
        transcript: &'a Transcript,
    }

    // Cloning everything is simpler than a second struct with all fields but one.
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

/// Whether a notice describes the machine during this run (memory that other
/// programs used, a halved batch) and not a change of the text.
fn is_of_the_run(notice: &Notice) -> bool {
    notice.severity == Severity::Info && notice.code.starts_with("memory.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_notices_about_the_run_are_left_out() {
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
