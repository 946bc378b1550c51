//! What the user should know about memory: a code to branch on, a severity and
//! a sentence.

use serde::{Deserialize, Serialize};

/// Where every notice is explained: symptom, diagnosis, remedy.
pub const HELP_PAGE: &str = "docs/troubleshooting.md";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub code: Code,
    pub severity: Severity,
    /// One or more sentences, the last of them what can be done.
    pub text: String,
}

impl Notice {
    pub fn new(code: Code, severity: Severity, text: impl Into<String>) -> Self {
        Self { code, severity, text: text.into() }
    }

    /// The section that explains this notice, e.g.
    /// `docs/troubleshooting.md#memory-elevated`.
    pub fn help(&self) -> String {
        format!("{HELP_PAGE}#{}", self.code.as_str().replace(['.', '_'], "-"))
    }
}

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
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

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
    /// A good part was in use before anything was loaded.
    Occupied = "memory.occupied",
    /// A stage gave back less than it took.
    NotRecovered = "memory.not_recovered",
    /// Synchronising or trimming failed.
    ReleaseFailed = "memory.release_failed",
    Leak = "memory.leak",
    Fragmentation = "memory.fragmentation",
    Spike = "memory.spike",
    /// Nobody can say what the device holds.
    Unavailable = "memory.unavailable",
    Retried = "memory.retried",
    EngineRenewed = "memory.engine_renewed",
    BatchHalved = "memory.batch_halved",
    PrecisionLowered = "memory.precision_lowered",
    SmallerModel = "memory.smaller_model",
    MovedToCpu = "memory.moved_to_cpu",
    SpeakersSkipped = "memory.speakers_skipped",
    /// Every rung that may be taken was taken.
    GaveUp = "memory.gave_up",
    /// A file that will not fit, announced before it is its turn.
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
