//! Opens the user's journal and resumes the jobs that it holds.

use library::{Identity, Journal, OpenedJournal, UnfinishedJob};
use wire::notice::Message;
use wire::{Job, Resume};

use config::folders;

/// The user's journal. Where there is trouble with it `tell` hears a sentence
/// or two; without a journal jobs run all the same.
pub fn open(tell: impl FnOnce(String)) -> Option<Journal> {
    match Journal::open(&folders::steno_state()?.join(library::JOURNAL_FILE)) {
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
        let notices = vec![Message::FileChanged {}.into()];
        resume = Resume { notices, ..Resume::default() };
        // Where this fails, so does all that follows, which is told then.
        let _ = journal.start_over(left.key, now.as_ref());
    }
    Job { resume: Some(Box::new(resume)), ..left.job.clone() }
}
