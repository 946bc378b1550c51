//! What is reported about memory before a queue starts, and where notices are explained.

use advisor::JobTemplate;
use memory::{Code, Notice, Severity};
use wire::Job;

use crate::console::Console;

/// Reports whether the model fits into what is free now, and warns where it does not.
pub fn announce(template: &JobTemplate, job: &Job, console: &mut Console) {
    let Some(told) = template.announcement(job) else { return };
    match told.notice() {
        Some(notice) => console.warning(&format!("{}{}", notice.text, help(notice.code.as_str()))),
        None => console.info(&told.text()),
    }
}

/// Whether a notice of this code says that a job has less memory than it could use.
pub fn is_shortage(code: &str) -> bool {
    Code::from_code(code).is_some_and(|code| {
        matches!(
            code,
            Code::Elevated
                | Code::Critical
                | Code::Retried
                | Code::EngineRenewed
                | Code::BatchHalved
                | Code::PrecisionLowered
                | Code::SmallerModel
                | Code::MovedToCpu
                | Code::SpeakersSkipped
                | Code::GaveUp
        )
    })
}

/// Where a notice of this code is explained, or the option that it is about, to follow its
/// text; empty for most.
pub fn help(code: &str) -> String {
    if code == wire::notice::Code::SeveralTracks.as_str() {
        return " Use --track N for another one.".into();
    }
    let notice = |code| Notice::new(code, Severity::Info, "");
    Code::from_code(code).map(|code| format!(" See {}.", notice(code).help())).unwrap_or_default()
}
