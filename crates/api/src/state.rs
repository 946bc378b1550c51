//! What is kept from one start to the next: the journal of interrupted jobs,
//! and the history.

use std::path::PathBuf;

use library::{Documents, Identity, Journal, OpenedJournal, UnfinishedJob};
use transcript::{Notice, Severity};
use wire::{Job, Resume};

use crate::platform;

/// `STENO_STATE_FOLDER`, else the one that this system has for such files.
/// `None` where it has no place for them.
pub fn folder() -> Option<PathBuf> {
    chosen().or_else(|| platform::state_folder().map(|folder| folder.join("steno")))
}

/// The folder that `STENO_STATE_FOLDER` names, if any.
pub fn chosen() -> Option<PathBuf> {
    std::env::var_os("STENO_STATE_FOLDER").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The user's journal. Where there is trouble with it `tell` hears a sentence
/// or two; without a journal jobs run all the same.
pub fn open_journal(tell: impl FnOnce(String)) -> Option<Journal> {
    match Journal::open(&folder()?.join(library::JOURNAL_FILE)) {
        Ok(OpenedJournal { journal, aside }) => {
            if let Some(aside) = aside {
                tell(aside.to_string());
            }
            Some(journal)
        }
        Err(error) => {
            tell(format!("{} Jobs that are interrupted can't be resumed until then.", error.failure()));
            None
        }
    }
}

/// The user's history, beside the journal. Where there is trouble with it
/// `tell` hears a sentence or two; transcripts are saved all the same.
pub fn open_documents(tell: impl FnOnce(String)) -> Option<Documents> {
    match Documents::open(&folder()?.join(library::documents::HISTORY_FILE)) {
        Ok((documents, aside)) => {
            if let Some(aside) = aside {
                tell(aside.to_string());
            }
            Some(documents)
        }
        Err(error) => {
            tell(format!("{} Transcripts can't be edited until then.", error.failure()));
            None
        }
    }
}

/// The job that goes on where `left` ended; from the beginning where the file
/// is not the one that it was, with the notice that says so.
pub fn resumed(journal: &Journal, left: &UnfinishedJob) -> Job {
    let now = Identity::of(left.job.file.as_path()).ok();
    let changed = match (&left.identity, &now) {
        (Some(before), Some(now)) => !before.is_same_recording(now),
        // That it is missing, or can't be read, the engine says best.
        _ => false,
    };
    let mut resume = left.resume.clone();
    if changed {
        let text = "The recording was changed since its transcription was interrupted: it is begun anew.";
        let notices = vec![Notice::new("journal.file_changed", Severity::Info, text)];
        resume = Resume { notices, ..Resume::default() };
        // Where this fails, so does all that follows, which is told then.
        let _ = journal.start_over(left.key, now.as_ref());
    }
    Job { resume: Some(Box::new(resume)), ..left.job.clone() }
}
