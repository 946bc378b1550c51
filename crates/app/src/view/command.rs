//! The page's commands whose only answer is whether they failed. Those that may wait for
//! the disk are a type of their own, so that neither side can send one to the wrong entry
//! of the shell.

use std::path::Path;

use crate::session::{self, AppState};
use advisor::store;
use advisor::transfers::Transfers;
use library::DocumentId;
use serde::Deserialize;
use ts_rs::TS;

use super::{Attempt, Exporting, Gap, Look, Part, Settings, Switches};

/// A command that takes effect at once, in the order in which the page sends them.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WindowCommand {
    /// Adds the program's own recording to the queue.
    AddSample,
    /// Sets what recordings are transcribed with from now on.
    ChangeSettings {
        /// The new settings.
        settings: Settings,
    },
    /// Sets what the window looks like.
    ChangeLook {
        /// The new look.
        look: Look,
    },
    /// Starts held jobs with the demonstration model.
    StartAnyway,
    /// Pauses the queue: no further recording is started.
    Pause {
        /// False: the queue goes on.
        paused: bool,
    },
    /// Moves recordings in front of another one; null: to the end.
    Reorder {
        /// The recordings to move.
        jobs: Vec<u64>,
        /// The recording that follows them.
        before: Option<u64>,
    },
    /// Transcribes a part of a finished recording again: in place of its text, or to be
    /// compared with it where it is another attempt.
    Again {
        /// The recording.
        job: u64,
        /// The part of it.
        part: Gap,
        /// Null: the new text replaces the old one.
        attempt: Option<Attempt>,
    },
    /// Finds who speaks in a finished recording; nothing is transcribed again.
    FindSpeakers {
        /// The recording.
        job: u64,
    },
    /// Translates a finished recording to English, beside its text.
    Translate {
        /// The recording.
        job: u64,
    },
    /// Ends the idle engine, so that its memory is free.
    FreeMemory,
    /// Sets whether the shortest recording is transcribed first.
    PutShortestFirst {
        /// False: the order is as given.
        on: bool,
    },
    /// Saves settings under a name, in place of those that had it.
    SavePreset {
        /// The name of the preset.
        name: String,
        /// Its settings.
        settings: Settings,
    },
    /// Gives a preset another name.
    RenamePreset {
        /// Its name.
        name: String,
        /// Its new name.
        to: String,
    },
    /// Deletes a preset.
    DeletePreset {
        /// Its name.
        name: String,
    },
    /// Sets how the texts of a watched folder are written.
    ChangeWatched {
        /// Its index in the list of watched folders.
        number: u32,
        /// Formats and options.
        exporting: Exporting,
    },
    /// Watches a folder no longer.
    UnwatchFolder {
        /// Its index in the list of watched folders.
        number: u32,
    },
    /// Sets what the window may do beyond itself.
    ChangeSwitches {
        /// The new switches.
        switches: Switches,
    },
    /// Pauses a download, or lets it go on.
    PauseDownload {
        /// The name of the model.
        id: String,
        /// False: it goes on.
        paused: bool,
    },
    /// Stops a download or an import; one that failed is no longer shown.
    StopDownload {
        /// The name of the model.
        id: String,
    },
}

/// A command that may wait for the disk.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockingCommand {
    /// Stops a recording; what there is of its text stays.
    Cancel {
        /// The recording.
        job: u64,
    },
    /// Pauses a running recording: its text stays, and the next one has its turn.
    PauseJob {
        /// The recording.
        job: u64,
    },
    /// Resumes a recording that was paused, stopped or failed, or starts over with it.
    Retry {
        /// The recording.
        job: u64,
    },
    /// Removes a recording from the list.
    Remove {
        /// The recording.
        job: u64,
    },
    /// Stops all recordings that are running or waiting.
    CancelAll,
    /// Starts over with all recordings that failed.
    RetryFailed,
    /// Gives waiting recordings settings of their own; null: those of the session.
    ChangeOwn {
        /// The recordings.
        jobs: Vec<u64>,
        /// Their settings.
        settings: Option<Settings>,
    },
    /// Sets which part of a waiting recording is transcribed.
    ChangePart {
        /// The recording.
        job: u64,
        /// Track and times.
        part: Part,
    },
    /// Sets the words by which a transcript of the history is sorted.
    TagDocument {
        /// Its number in the history.
        document: i64,
        /// All of them.
        tags: Vec<String>,
    },
    /// Offers a word that is corrected again and again no longer, or again.
    IgnoreWord {
        /// As it is offered.
        word: String,
        /// Whether it is offered no longer.
        ignored: bool,
    },
    /// Deletes a transcript of the history; it can be restored for a while.
    DeleteDocument {
        /// Its number in the history.
        document: i64,
    },
    /// Restores a deleted transcript.
    RestoreDocument {
        /// Its number in the history.
        document: i64,
    },
    /// Removes a downloaded or imported model, also an interrupted download.
    RemoveModel {
        /// Its name.
        id: String,
    },
}

impl WindowCommand {
    /// Whether the page needs the setup afterwards, also after a failure.
    pub fn changes_setup(&self) -> bool {
        match self {
            Self::ChangeSettings { .. }
            | Self::ChangeLook { .. }
            | Self::Pause { .. }
            | Self::PutShortestFirst { .. }
            // Who moves a recording ends that the shortest comes first.
            | Self::Reorder { .. }
            | Self::SavePreset { .. }
            | Self::RenamePreset { .. }
            | Self::DeletePreset { .. }
            | Self::ChangeSwitches { .. } => true,
            // The page follows the watched folders anyway.
            Self::ChangeWatched { .. } | Self::UnwatchFolder { .. } => false,
            Self::AddSample
            | Self::StartAnyway
            | Self::FreeMemory
            | Self::Again { .. }
            | Self::FindSpeakers { .. }
            | Self::Translate { .. }
            | Self::PauseDownload { .. }
            | Self::StopDownload { .. } => false,
        }
    }

    /// Executes the command.
    ///
    /// # Errors
    /// `BadSettings` for a preset's name that can't be used.
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
                remembered.hide_pictures = look.hide_pictures;
                remembered.keys = look.keys;
            }),
            Self::StartAnyway => session.start_anyway(),
            Self::FreeMemory => session.free_memory(),
            Self::Pause { paused } => session.pause(paused),
            Self::Reorder { jobs, before } => {
                session.reorder(&jobs, before);
                state.remember(|remembered| remembered.shortest_first = session.is_shortest_first());
            }
            Self::Again { job, part, attempt } => {
                let attempt = attempt.map(|attempt| attempt.chosen(&state.models()));
                session.again(job, part.into(), attempt);
            }
            Self::FindSpeakers { job } => session.find_speakers(job),
            Self::Translate { job } => session.translate(job),
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
    /// Whether the page needs the setup afterwards.
    pub fn changes_setup(&self) -> bool {
        matches!(self, Self::RemoveModel { .. })
    }

    /// Executes the command. Waits for the disk.
    ///
    /// # Errors
    /// Where the history or the store of models can't be changed.
    pub fn execute(self, state: &AppState) -> Result<(), wire::Failure> {
        let session = &state.session;
        match self {
            Self::Cancel { job } => session.cancel(job),
            Self::PauseJob { job } => session.pause_recording(job),
            Self::Retry { job } => session.retry(job),
            Self::Remove { job } => session.remove(job),
            Self::CancelAll => session.cancel_all(),
            Self::RetryFailed => session.retry_failed(),
            Self::ChangeOwn { jobs, settings } => {
                let own = settings.map(|settings| chosen(settings, state));
                session.change_own(&jobs, own.as_ref());
            }
            Self::ChangePart { job, part } => session.change_part(job, part.into())?,
            Self::TagDocument { document, tags } => session.tag_document(DocumentId(document), &tags)?,
            Self::IgnoreWord { word, ignored } => session.ignore_word(&word, ignored)?,
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

/// Watches one more folder, which the user chose. `present`: recordings that are in it
/// now are transcribed too. Waits for the disk.
///
/// # Errors
/// Where the folder can't be read, or its content can't be noted.
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

/// Sets where the texts of a watched folder, by its number, are written; `None`: beside
/// the recordings.
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

/// The session's settings for those of the page, which name models by number.
fn chosen(settings: Settings, state: &AppState) -> session::JobSettings {
    state.with_model(settings.chosen(&state.models(), &state.output_folders()))
}
