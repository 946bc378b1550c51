//! Notices about memory in the form in which they travel and transcripts keep
//! them. `memory` and `transcript` don't know each other, so that this is the
//! one place where one becomes the other.

use memory::{Code, Severity};
use transcript::Notice;

/// The code of a notice about a file with several audio tracks, of which one is taken.
pub const SEVERAL_TRACKS: &str = "audio.several_tracks";

/// The code of a notice about a speaker who sounds like a person that is known.
pub const MAYBE_KNOWN: &str = "speakers.maybe_known";

/// The code of a notice about voices that could not be read, so that no speaker has a name.
pub const VOICES_UNREADABLE: &str = "speakers.voices_unreadable";

/// A notice about memory as a transcript keeps it; its code stays the same.
pub fn from_memory(notice: &memory::Notice) -> Notice {
    let severity = match notice.severity {
        Severity::Info => transcript::Severity::Info,
        Severity::Degraded => transcript::Severity::Degraded,
        Severity::Failed => transcript::Severity::Failed,
    };
    Notice::new(notice.code.as_str(), severity, notice.text.clone())
}

/// The reverse of [`from_memory`], for the memory log; `None` for a notice that
/// is not about memory.
pub fn to_memory(notice: &Notice) -> Option<memory::Notice> {
    let severity = match notice.severity {
        transcript::Severity::Info => Severity::Info,
        transcript::Severity::Degraded => Severity::Degraded,
        transcript::Severity::Failed => Severity::Failed,
    };
    Some(memory::Notice::new(Code::from_code(&notice.code)?, severity, notice.text.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_about_memory_survives_both_ways() {
        for code in Code::ALL {
            for severity in [Severity::Info, Severity::Degraded, Severity::Failed] {
                let notice = memory::Notice::new(*code, severity, "Text.");
                assert_eq!(to_memory(&from_memory(&notice)), Some(notice));
            }
        }
        let other = Notice::new("audio.truncated", transcript::Severity::Degraded, "The file ends early.");
        assert_eq!(to_memory(&other), None);
    }
}
