//! What the page wants done, where no more of it is to be answered than that
//! it failed.

use std::path::Path;

use crate::session::{self, AppState};
use advisor::store;
use advisor::transfers::Transfers;
use library::DocumentId;
use serde::Deserialize;
use ts_rs::TS;

use super::{Attempt, Exporting, Gap, Look, Settings, Switches};

/// What is done at once, in the order in which it was wished for.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WindowCommand {
    /// Puts the program's own recording in the queue.
    AddSample,
    ChangeSettings {
        settings: Settings,
    },
    ChangeLook {
        look: Look,
    },
    /// Lets the demonstration model have what is held.
    StartAnyway,
    /// While paused nothing new is begun.
    Pause {
        paused: bool,
    },
    /// Gives recordings their turn before that of another; null: after all.
    Reorder {
        jobs: Vec<u64>,
        before: Option<u64>,
    },
    /// Transcribes a part of a finished recording again: in its place, or to be
    /// compared where it is another attempt.
    Again {
        job: u64,
        part: Gap,
        attempt: Option<Attempt>,
    },
    PutShortestFirst {
        on: bool,
    },
    /// In place of those that have the name.
    SavePreset {
        name: String,
        settings: Settings,
    },
    RenamePreset {
        name: String,
        to: String,
    },
    DeletePreset {
        name: String,
    },
    /// How the texts of a watched folder, by its number, are written.
    ChangeWatched {
        number: u32,
        exporting: Exporting,
    },
    UnwatchFolder {
        number: u32,
    },
    ChangeSwitches {
        switches: Switches,
    },
    PauseDownload {
        id: String,
        paused: bool,
    },
    /// Stops a download or an import; one that failed is shown no more.
    StopDownload {
        id: String,
    },
}

/// What waits for the disk.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockingCommand {
    Cancel {
        job: u64,
    },
    Retry {
        job: u64,
    },
    Remove {
        job: u64,
    },
    CancelAll,
    RetryFailed,
    /// Settings of their own for recordings that have not begun; null: those at hand.
    ChangeOwn {
        jobs: Vec<u64>,
        settings: Option<Settings>,
    },
    DeleteDocument {
        document: i64,
    },
    RestoreDocument {
        document: i64,
    },
    /// Removes a model of the store, finished or not.
    RemoveModel {
        id: String,
    },
}

impl WindowCommand {
    /// Whether the page is to be told its setup afterwards, also where it failed.
    pub fn changes_setup(&self) -> bool {
        match self {
            Self::ChangeSettings { .. }
            | Self::ChangeLook { .. }
            | Self::Pause { .. }
            | Self::PutShortestFirst { .. }
            | Self::SavePreset { .. }
            | Self::RenamePreset { .. }
            | Self::DeletePreset { .. }
            | Self::ChangeSwitches { .. } => true,
            // Of watched folders the page is told whenever they changed.
            Self::ChangeWatched { .. } | Self::UnwatchFolder { .. } => false,
            Self::AddSample
            | Self::StartAnyway
            | Self::Reorder { .. }
            | Self::Again { .. }
            | Self::PauseDownload { .. }
            | Self::StopDownload { .. } => false,
        }
    }

    pub fn execute(self, state: &AppState, transfers: &Transfers) -> Result<(), wire::Failure> {
        let session = &state.session;
        match self {
            Self::AddSample => {
                if let Some(sample) = &state.sample {
                    session.add_sample(sample);
                }
            }
            Self::ChangeSettings { settings } => state.use_settings(chosen(settings, state)),
            Self::ChangeLook { look } => state.remember(|remembered| {
                remembered.theme = look.theme;
                remembered.interface = look.language;
                remembered.hide_unsure = look.hide_unsure;
                remembered.keys = look.keys;
            }),
            Self::StartAnyway => session.start_anyway(),
            Self::Pause { paused } => session.pause(paused),
            Self::Reorder { jobs, before } => session.reorder(&jobs, before),
            Self::Again { job, part, attempt } => {
                let attempt = attempt.map(|attempt| attempt.chosen(&state.models()));
                session.again(job, part.into(), attempt);
            }
            Self::PutShortestFirst { on } => {
                session.put_shortest_first(on);
                state.remember(|remembered| remembered.shortest_first = on);
            }
            Self::SavePreset { name, settings } => state.save_preset(&name, &chosen(settings, state))?,
            Self::RenamePreset { name, to } => state.rename_preset(&name, &to)?,
            Self::DeletePreset { name } => state.delete_preset(&name),
            Self::ChangeWatched { number, exporting } => {
                change_watched(state, number, |folder| folder.exporting = exporting);
            }
            Self::UnwatchFolder { number } => state.change_watched(|folders| {
                if (number as usize) < folders.len() {
                    folders.remove(number as usize);
                }
            }),
            Self::ChangeSwitches { switches } => {
                state.remember(|remembered| remembered.switches = switches);
            }
            Self::PauseDownload { id, paused } => transfers.pause(&id, paused),
            Self::StopDownload { id } => transfers.stop(&id),
        }
        Ok(())
    }
}

impl BlockingCommand {
    /// Whether the page is to be told its setup once it is done.
    pub fn changes_setup(&self) -> bool {
        matches!(self, Self::RemoveModel { .. })
    }

    pub fn execute(self, state: &AppState) -> Result<(), wire::Failure> {
        let session = &state.session;
        match self {
            Self::Cancel { job } => session.cancel(job),
            Self::Retry { job } => session.retry(job),
            Self::Remove { job } => session.remove(job),
            Self::CancelAll => session.cancel_all(),
            Self::RetryFailed => session.retry_failed(),
            Self::ChangeOwn { jobs, settings } => {
                let own = settings.map(|settings| chosen(settings, state));
                session.change_own(&jobs, own.as_ref());
            }
            Self::DeleteDocument { document } => session.delete_document(DocumentId(document))?,
            Self::RestoreDocument { document } => session.restore_document(DocumentId(document))?,
            Self::RemoveModel { id } => {
                store::remove(&store::store()?, &id).map_err(store::failure)?;
                state.models_changed(None);
            }
        }
        Ok(())
    }
}

/// Watches one more folder, which the user chose. `present`: what lies in it
/// now is transcribed too. Waits for the disk.
pub fn watch_folder(state: &AppState, folder: &Path, present: bool) -> Result<(), wire::Failure> {
    if state.session.watched().iter().any(|one| one.folder.folder.as_path() == folder) {
        return Ok(());
    }
    let watched = session::WatchedFolder::new(folder, state.remembered().exporting);
    if !present {
        state.session.pass_over(folder)?;
    }
    state.change_watched(|folders| folders.push(watched));
    Ok(())
}

/// Where the texts of a watched folder, by its number, are written; `None`:
/// beside the recordings.
pub fn place_watched(state: &AppState, number: u32, into: Option<&Path>) {
    change_watched(state, number, |folder| folder.into = into.map(Into::into));
}

fn change_watched(state: &AppState, number: u32, change: impl FnOnce(&mut session::WatchedFolder)) {
    state.change_watched(|folders| {
        if let Some(folder) = folders.get_mut(number as usize) {
            change(folder);
        }
    });
}

/// What the page says of models by their numbers.
fn chosen(settings: Settings, state: &AppState) -> session::JobSettings {
    state.with_model(settings.chosen(&state.models()))
}
