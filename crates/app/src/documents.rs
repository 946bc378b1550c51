//! Opens the history of transcripts.

use config::folders;
use library::Documents;

/// The user's history, beside the journal. Where there is trouble with it
/// `tell` hears a sentence or two; transcripts are saved all the same.
pub fn open(tell: impl FnOnce(String)) -> Option<Documents> {
    match Documents::open(&folders::steno_state()?.join(library::documents::HISTORY_FILE)) {
        Ok((documents, aside)) => {
            if let Some(aside) = aside {
                tell(aside.to_string());
            }
            Some(documents)
        }
        Err(error) => {
            tell(format!("{} Until then, transcripts can't be edited.", error.failure()));
            None
        }
    }
}
