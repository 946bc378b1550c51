//! What the user should know about memory: a code to branch on, a severity and
//! a sentence.

use serde::{Deserialize, Serialize};

/// Where every notice is explained: symptom, diagnosis, remedy.
pub const HELP_PAGE: &str = "docs/troubleshooting.md";

/// What the user should know about memory. On its way to a host it becomes a
/// `transcript::Notice` (`wire::notice`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What happened.
    pub code: Code,
    /// What it means for the result.
    pub severity: Severity,
    /// One or more sentences, the last of them what can be done.
    pub text: String,
}

impl Notice {
    /// A notice with the given text.
    pub fn new(code: Code, severity: Severity, text: impl Into<String>) -> Self {
        Self { code, severity, text: text.into() }
    }

    /// The section that explains this notice, e.g.
    /// `docs/troubleshooting.md#memory-elevated`.
    pub fn help(&self) -> String {
        format!("{HELP_PAGE}#{}", self.code.as_str().replace(['.', '_'], "-"))
    }
}

/// What a notice means for the result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The result is what was asked for: retried, batch halved.
    Info,
    /// The result is there, in a lesser form: precision, model, speakers, CPU.
    Degraded,
    /// Something asked for is missing.
    Failed,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// Stable names of the notices.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $code)] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable name: `memory.elevated`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The code of that name; `None` for a name of another crate's notice.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == code)
            }
        }
    };
}

codes! {
    /// Share of the limit in force reached 70 %.
    Elevated = "memory.elevated",
    /// Share of the limit in force reached 85 %.
    Critical = "memory.critical",
    /// More than a tenth was in use before anything was loaded.
    Occupied = "memory.occupied",
    /// A stage gave back less than it took.
    NotRecovered = "memory.not_recovered",
    /// Synchronising or trimming failed.
    ReleaseFailed = "memory.release_failed",
    /// What is in use after each file grew from file to file.
    Leak = "memory.leak",
    /// Much more is reserved than is in use, although all that is unused was given back.
    Fragmentation = "memory.fragmentation",
    /// Far more was held for a moment than before and after.
    Spike = "memory.spike",
    /// The device's memory can't be read.
    Unavailable = "memory.unavailable",
    /// What was unused was given back, and the same step tried again.
    Retried = "memory.retried",
    /// The engine was replaced, and the same step tried again.
    EngineRenewed = "memory.engine_renewed",
    /// Fewer windows are decoded together.
    BatchHalved = "memory.batch_halved",
    /// The same model goes on with its weights in fewer bits.
    PrecisionLowered = "memory.precision_lowered",
    /// A smaller model goes on.
    SmallerModel = "memory.smaller_model",
    /// The CPU goes on.
    MovedToCpu = "memory.moved_to_cpu",
    /// The transcript does not say who speaks.
    SpeakersSkipped = "memory.speakers_skipped",
    /// Every step that may be taken was taken; the recording failed.
    GaveUp = "memory.gave_up",
    /// A model that is predicted not to fit, announced before the job starts.
    WillNotFit = "memory.will_not_fit",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_same_in_text_and_in_json() {
        for code in Code::ALL {
            assert_eq!(Code::from_code(code.as_str()), Some(*code));
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
        }
    }

    /// The form in which transcripts keep notices.
    #[test]
    fn a_notice_has_the_form_of_every_notice() {
        let notice = Notice::new(Code::MovedToCpu, Severity::Degraded, "Text.");
        assert_eq!(
            serde_json::to_string(&notice).unwrap(),
            r#"{"code":"memory.moved_to_cpu","severity":"degraded","text":"Text."}"#
        );
    }

    #[test]
    fn a_notice_names_its_section_of_the_manual() {
        let notice = Notice::new(Code::BatchHalved, Severity::Info, "");
        assert_eq!(notice.help(), "docs/troubleshooting.md#memory-batch-halved");
    }
}
