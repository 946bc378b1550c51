//! What the page and the shell say to each other. ui/src/lib/generated/contract.ts
//! is made from these types; a test fails when it is stale. Times are seconds.
//!
//! The page names recordings and models by number and never by path: it can't
//! ask for a file that the user did not hand over.

mod catalog;
mod choice;
mod command;
mod editing;
mod event;
mod learning;
mod machine;
mod memory_use;
mod search;
mod settings;
mod voices;
mod workers;

pub use catalog::*;
pub use choice::*;
pub use command::*;
pub use editing::*;
pub use event::*;
pub use learning::*;
pub use machine::*;
pub use memory_use::*;
pub use search::*;
pub use settings::*;
pub use voices::*;
pub use workers::*;

use std::collections::BTreeMap;

use crate::session;
pub use crate::session::{Exporting, JobState, Switches};
use advisor::{ModelRef, store};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What the page needs at its start.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Setup {
    /// The version of Steno.
    pub version: String,
    /// The models to choose from.
    pub models: Vec<ModelChoice>,
    /// What recordings are transcribed with.
    pub settings: Settings,
    /// The folders for transcripts to choose from.
    pub output_folders: Vec<String>,
    /// What the window looks like.
    pub look: Look,
    /// How transcripts were last saved.
    pub exporting: Exporting,
    /// Whether there is a recording to try the program with.
    pub has_sample: bool,
    /// Nothing new is begun.
    pub paused: bool,
    /// What is short has its turn before what is long.
    pub shortest_first: bool,
    /// Settings under a name.
    pub presets: Vec<Preset>,
    /// Folders whose new recordings are transcribed.
    pub watched: Vec<WatchedFolder>,
    /// What the window may do beyond itself.
    pub switches: Switches,
    /// Which machine transcribes.
    pub machine: MachineSetup,
    /// The queue of workers that the window looks at.
    pub workers: session::WorkerQueue,
    /// What the user's config file says that can't be used; the defaults are in force.
    pub preferences_failure: Option<Failure>,
    /// What of the choices of earlier windows could not be read; its file is a copy of them.
    pub forgotten: Option<Failure>,
}

impl Setup {
    /// The setup of this state. `version` is that of the program.
    pub fn new(state: &session::AppState, version: &str) -> Self {
        let (models, folders) = (state.models(), state.output_folders());
        let remembered = state.remembered();
        let choice = |(index, model): (usize, &ModelRef)| ModelChoice {
            id: u32::try_from(index).unwrap_or(u32::MAX),
            name: model.name.clone(),
            folder: model.path.display().to_string(),
            demonstration: model.demonstration,
            note: model.note.clone(),
            removable: store::is_own(&model.path),
        };
        Self {
            version: version.into(),
            models: models.iter().enumerate().map(choice).collect(),
            settings: Settings::new(state.session.settings(), &models, &folders),
            look: Look {
                theme: remembered.theme,
                language: remembered.interface,
                hide_unsure: remembered.hide_unsure,
                hide_pictures: remembered.hide_pictures,
                keys: remembered.keys,
            },
            exporting: remembered.exporting,
            shortest_first: state.session.is_shortest_first(),
            presets: remembered
                .presets
                .into_iter()
                .map(|preset| Preset::new(preset, &models, &folders))
                .collect(),
            output_folders: folders.iter().map(ToString::to_string).collect(),
            watched: state.session.watched().into_iter().map(Into::into).collect(),
            switches: remembered.switches,
            machine: MachineSetup::new(state),
            workers: remembered.workers,
            has_sample: state.sample.is_some(),
            paused: state.session.is_paused(),
            preferences_failure: state.preferences_failure().map(Into::into),
            forgotten: state.forgotten().map(Into::into),
        }
    }
}

/// What the window looks and sounds like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Look {
    /// Light, dark, or as the system.
    #[ts(inline)]
    pub theme: session::Theme,
    /// Null: the system's.
    #[ts(inline)]
    pub language: Option<session::Language>,
    /// Uncertain words are not marked.
    pub hide_unsure: bool,
    /// The pictures of a film are not shown while it is heard.
    pub hide_pictures: bool,
    /// Keys that the user chose, by what they do; none: that has no key.
    pub keys: BTreeMap<String, Vec<String>>,
}

/// A model to choose.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelChoice {
    /// Its number, which the page names it by.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// Its text is not reliable: it is there to show how the program works.
    pub demonstration: bool,
    /// What is to be known of it.
    pub note: Option<String>,
    /// It was downloaded or imported, and can be removed.
    pub removable: bool,
}

/// The engine that does the work.
#[derive(Debug, Clone, Serialize, TS)]
pub struct EngineInfo {
    /// The version of the engine.
    pub version: String,
    /// What it can compute on.
    pub backend: wire::Backend,
    /// The devices of this machine.
    pub devices: Vec<Device>,
    /// Why the CPU computes, in a sentence; null where a GPU does.
    pub cpu_reason: Option<String>,
    /// Threads that compute.
    pub threads: u32,
    /// Whether formats that need ffmpeg can be opened.
    pub ffmpeg: bool,
}

/// A device that can compute.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Device {
    /// `cpu` or `cuda:N`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its memory; null where it is not known.
    pub total_bytes: Option<u64>,
    /// What of it is free; null where it is not known.
    pub free_bytes: Option<u64>,
}

/// One recording in the queue.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Job {
    /// Its number, which the page names it by.
    pub id: u64,
    /// File name without its folder.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// The file's size.
    pub bytes: Option<u64>,
    /// It is the program's own recording.
    pub sample: bool,
    /// It was found in a watched folder.
    pub watched: bool,
    /// Of its own, where they differ from those at hand.
    pub own: Option<OwnSettings>,
    /// Which part of it is transcribed.
    pub part: Part,
    /// Its audio tracks, where it is known to have several.
    pub tracks: Vec<wire::AudioTrack>,
    /// Where it stands.
    pub state: JobState,
    /// Parts of it that are being transcribed again, wait for that, or for the
    /// user's choice.
    pub again: Vec<Again>,
    /// How far its job has come.
    pub progress: Option<Progress>,
    /// How long the recording is; null where that is not known yet.
    pub duration: Option<f64>,
    /// Container and codec in words.
    pub format: Option<String>,
    /// The name of the model that transcribes it.
    pub model: Option<String>,
    /// What computes, once that is known: `cpu` or `cuda:N`.
    pub device: Option<String>,
    /// The text is the demonstration model's.
    pub demonstration: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Where its transcript was last saved.
    pub saved: Option<String>,
    /// Why its transcript is not in the history; null: it is, or is to be.
    pub not_stored: Option<Failure>,
    /// Why it was not saved when it was finished; null: it was, or that was not asked for.
    pub not_saved: Option<Failure>,
    /// How it was to be saved then: the formats that are not written yet; null with `not_saved`.
    pub unsaved: Option<Exporting>,
    /// The recording of a transcript of the history is not where it was.
    pub missing: bool,
    /// The file is damaged or cut off: up to this second it could be decoded.
    pub truncated_at: Option<f64>,
    /// Its job, once it has begun, tells speakers apart when the text is there.
    pub speakers: bool,
    /// It was paused, stopped or failed, and resuming goes on from this second; null: from the start.
    pub reached: Option<f64>,
    /// Resuming it begins anew, because its settings are others than those of its text, which then goes into
    /// the history.
    pub starts_over: bool,
    /// Where it is transcribed, or was; null: here.
    pub elsewhere: Option<Elsewhere>,
    /// Set while it is transcribed with a model that was not expected to fit
    /// into the free memory.
    pub fit_warning: Option<FitWarning>,
}

/// How far a job has come.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Progress {
    /// What is being done.
    pub stage: wire::Stage,
    /// How much of the recording is done.
    pub position: f64,
    /// How long the recording is.
    pub duration: Option<f64>,
    /// Seconds of recording per second.
    pub speed: Option<f32>,
    /// Seconds until this stage is done.
    pub left: Option<f32>,
}

/// What changed in one recording's text: from index `from` on there are now
/// `segments`; then `changes` were made, in order.
#[derive(Debug, Clone, Serialize, TS)]
pub struct TextUpdate {
    /// The recording.
    pub job: u64,
    /// Index of the first replaced segment.
    pub from: u32,
    /// The segments from that index on.
    pub segments: Vec<Segment>,
    /// Edits that follow, in order.
    pub changes: Vec<TextChange>,
    /// Null: it can't be edited. Its revision is 0 until all of the text is there.
    pub editing: Option<Editing>,
    /// All notices about the text.
    pub notices: Vec<Notice>,
    /// All chapters, in order.
    pub chapters: Vec<Chapter>,
    /// What is being written behind the segments; it may still change.
    pub live_text: Option<String>,
    /// Known once the job is over.
    pub ending: Option<Ending>,
}

/// A piece of the text, usually a sentence.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Segment {
    /// Its name while it is there; 0 for what can't be edited.
    pub id: u32,
    /// When it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// The text.
    pub text: String,
    /// The same in English, where it was translated besides.
    pub translation: Option<String>,
    /// Its words; empty where their times are not known.
    pub words: Vec<Word>,
    /// Its language, where that is another one than the transcript's.
    pub language: Option<String>,
    /// Who speaks.
    pub speaker: Option<String>,
    /// Its channel, from 0, where channels were transcribed apart.
    pub channel: Option<u32>,
    /// What it is flagged for.
    pub suspicions: Vec<transcript::Suspicion>,
}

/// A word of a segment.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Word {
    /// With the white space before it.
    pub text: String,
    /// When it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// 0 to 1.
    pub probability: f32,
}

/// What is to be known of a transcript as a whole.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Notice {
    /// What to branch on.
    pub code: String,
    /// How much it matters.
    pub severity: transcript::Severity,
    /// What the page's words are made of; null in a transcript that another version saved.
    pub told: Option<wire::notice::AnyMessage>,
    /// In English, for where nothing is told.
    pub text: String,
    /// The time in the recording that it is about.
    pub at: Option<f64>,
}

/// What a transcript says of itself as a whole.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Ending {
    /// ISO 639-1 code of the main language; `und` where it was not determined.
    pub language: String,
    /// False for what a stopped job left behind.
    pub complete: bool,
    /// Seconds of speech found, and how many of them have text; zero where
    /// voice activity detection was off.
    pub speech: f64,
    /// Seconds of speech that have text.
    pub covered: f64,
    /// Stretches of speech of over 2 s without text, with more than a second of voice in them.
    pub gaps: Vec<Gap>,
}

/// A part of a recording, in seconds.
#[derive(Debug, Clone, Serialize, Deserialize, TS)]
pub struct Gap {
    /// Start.
    pub start: f64,
    /// End.
    pub end: f64,
}

/// Where to save to.
#[derive(Debug, Clone, Copy, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum SaveLocation {
    /// In the recording's folder, unless there is such a file already.
    Beside,
    /// The same, over what is there.
    BesideReplacing,
    /// Where the user says in a dialog: the file, or the folder for several.
    Ask,
}

/// What came of saving in several formats.
#[derive(Debug, Clone, Default, Serialize, TS)]
pub struct Saved {
    /// The files that were written.
    pub files: Vec<String>,
    /// The formats that were not written.
    pub failures: Vec<NotSaved>,
}

/// A format that could not be written.
#[derive(Debug, Clone, Serialize, TS)]
pub struct NotSaved {
    /// The format.
    pub format: transcript::export::Format,
    /// Why.
    pub failure: Failure,
}

/// An error that a user sees. The page has words of its own for the code; the rest are details.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Failure {
    /// What to branch on.
    pub code: wire::ErrorCode,
    /// The file that it is about.
    pub file: Option<String>,
    /// What happened, in English.
    pub message: String,
    /// What to do, in English.
    pub remedy: Option<String>,
}

/// Where a recording is listened to.
#[derive(Debug, Clone, Serialize, TS)]
pub struct PlaySource {
    /// Address of a WAV file.
    pub audio: String,
    /// Address of its waveform: `{seconds, done, values}`.
    pub peaks: String,
    /// Address of `{pictures, missing}`: whether it has pictures, or can't show them without ffmpeg. With
    /// `/` and seconds behind it, of the picture at that time.
    pub pictures: String,
    /// Address that, with a number behind it, tells at which speed it is played.
    pub speed: String,
    /// How long the recording is.
    pub seconds: f64,
}

impl From<wire::Opened> for PlaySource {
    fn from(opened: wire::Opened) -> Self {
        let wire::Opened { audio, peaks, pictures, speed, seconds, .. } = opened;
        Self { audio, peaks, pictures, speed, seconds }
    }
}

impl From<session::QueueEntry> for Job {
    fn from(entry: session::QueueEntry) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let decoded = entry.source.as_ref().map(|source| source.duration.seconds());
        let decoded = decoded.filter(|time| *time > 0.0);
        let declared = entry.length.seconds();
        Self {
            id: entry.id,
            name: text(entry.file.file_name()),
            folder: text(entry.file.parent().map(|folder| folder.as_os_str())),
            bytes: entry.bytes,
            sample: entry.sample,
            watched: entry.watched.is_some(),
            own: entry.own.map(OwnSettings::from),
            part: entry.part.into(),
            tracks: entry.tracks.to_vec(),
            state: entry.state,
            again: entry.again.into_iter().map(Again::from).collect(),
            progress: entry.progress.map(Progress::from),
            duration: if entry.truncated_at.is_some() { declared.or(decoded) } else { decoded.or(declared) },
            format: entry.source.map(|source| source.format),
            demonstration: entry.model.as_ref().is_some_and(|model| model.demonstration),
            model: entry.model.map(|model| model.name),
            device: entry.device,
            failure: entry.failure.map(Failure::from),
            saved: entry.saved.map(|file| file.display().to_string()),
            not_stored: entry.not_stored.map(Failure::from),
            not_saved: entry.not_saved.as_ref().map(|unsaved| unsaved.failure.clone().into()),
            unsaved: entry.not_saved.map(|unsaved| unsaved.exporting.clone()),
            missing: entry.missing,
            elsewhere: entry.elsewhere.map(|elsewhere| Elsewhere::from(*elsewhere)),
            truncated_at: entry.truncated_at.map(transcript::Time::seconds),
            speakers: entry.speakers,
            reached: entry.stopped.and_then(|stopped| stopped.reached()).map(transcript::Time::seconds),
            starts_over: entry.starts_over,
            fit_warning: entry.will_not_fit.map(|announcement| FitWarning::from(*announcement)),
        }
    }
}

impl From<wire::Progress> for Progress {
    fn from(progress: wire::Progress) -> Self {
        Self {
            stage: progress.stage,
            position: progress.position.seconds(),
            duration: progress.duration.map(transcript::Time::seconds),
            speed: progress.speed,
            left: progress.left,
        }
    }
}

impl TextUpdate {
    /// As the page takes it. Made here and not by the shell, which is compiled
    /// without optimisation: a text may have some hundred thousand words.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<session::TextChange> for TextUpdate {
    fn from(change: session::TextChange) -> Self {
        Self {
            job: change.id,
            from: u32::try_from(change.from).unwrap_or(u32::MAX),
            segments: change.segments.into_iter().map(Segment::from).collect(),
            changes: change
                .changes
                .iter()
                .flat_map(|changes| changes.iter().filter_map(text_change))
                .collect(),
            editing: change.edited.map(Editing::from),
            notices: change.notices.into_iter().map(Notice::from).collect(),
            chapters: change.chapters.into_iter().map(Chapter::from).collect(),
            live_text: change.live_text,
            ending: change.ending.map(Ending::from),
        }
    }
}

impl From<transcript::Segment> for Segment {
    fn from(segment: transcript::Segment) -> Self {
        Self {
            id: segment.id,
            start: segment.start.seconds(),
            end: segment.end.seconds(),
            text: segment.text,
            translation: segment.translation,
            words: segment.words.into_iter().map(Word::from).collect(),
            language: segment.language,
            speaker: segment.speaker,
            channel: segment.channel,
            suspicions: segment.suspicions,
        }
    }
}

impl From<transcript::Word> for Word {
    fn from(word: transcript::Word) -> Self {
        let transcript::Word { text, start, end, probability } = word;
        Self { text, start: start.seconds(), end: end.seconds(), probability }
    }
}

impl From<transcript::Notice> for Notice {
    fn from(notice: transcript::Notice) -> Self {
        Self {
            told: wire::notice::AnyMessage::of(&notice),
            code: notice.code,
            severity: notice.severity,
            text: notice.text,
            at: notice.at.map(transcript::Time::seconds),
        }
    }
}

impl From<&transcript::Span> for Gap {
    fn from(span: &transcript::Span) -> Self {
        Self { start: span.start.seconds(), end: span.end.seconds() }
    }
}

impl From<session::Ending> for Ending {
    fn from(ending: session::Ending) -> Self {
        Self {
            language: ending.language,
            complete: ending.complete,
            speech: ending.completeness.speech.seconds(),
            covered: ending.completeness.covered.seconds(),
            gaps: ending.completeness.gaps.iter().map(Gap::from).collect(),
        }
    }
}

impl EngineInfo {
    /// The engine's description; `note` says why it is not the CUDA engine.
    pub fn new(description: wire::Description, note: Option<String>) -> Self {
        let device = |device: wire::DeviceInfo| Device {
            id: device.id,
            name: device.name,
            total_bytes: device.total_bytes,
            free_bytes: device.free_bytes,
        };
        Self {
            version: description.engine,
            backend: description.backend,
            devices: description.devices.into_iter().map(device).collect(),
            cpu_reason: note.or(description.cpu_reason),
            threads: u32::try_from(description.threads).unwrap_or(u32::MAX),
            ffmpeg: description.ffmpeg.is_some(),
        }
    }
}

impl From<session::Written> for Saved {
    fn from(written: session::Written) -> Self {
        let failure = |(format, failure): (transcript::export::Format, wire::Failure)| NotSaved {
            format,
            failure: failure.into(),
        };
        Self {
            files: written.files.iter().map(|file| file.display().to_string()).collect(),
            failures: written.failures.into_iter().map(failure).collect(),
        }
    }
}

impl From<wire::Failure> for Failure {
    fn from(failure: wire::Failure) -> Self {
        Self {
            code: failure.code,
            file: failure.file.map(|file| file.to_string()),
            message: failure.message,
            remedy: failure.remedy,
        }
    }
}

#[cfg(test)]
mod tests;
