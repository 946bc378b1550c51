//! What host and engine say to each other: commands, events, error codes and
//! the frames they travel in. A leaf but for `transcript` and `memory`, whose segments,
//! finished transcripts, samples and rungs are the payload.

mod frame;
mod job;
mod named_failure;
mod path;
mod player;
mod resume;

pub use frame::{FrameError, MAX_FRAME_BYTES, read_frame, write_frame};
pub use job::{Alternative, Channels, DecodingOptions, DeviceChoice, Job, Strategy, VoiceActivity};
pub use path::FilePath;
pub use player::{Opened, PlayerAnswer, PlayerCommand};
pub use resume::{Point, Resume};

use serde::{Deserialize, Serialize};
use transcript::{Notice, Segment, Span, Time, Transcript};

/// Raised whenever a message changes in a way the other side would misread.
/// Both sides send it first and refuse a stranger by name.
pub const PROTOCOL_VERSION: u32 = 4;

/// Names a job for as long as host and engine both live.
pub type JobId = u64;

/// The id of a [`Event::Failed`] that concerns the engine and not one job:
/// a version that differs, a command that can't be read. Jobs count from 1.
pub const NO_JOB: JobId = 0;

/// How an engine ends where it can no longer say why.
pub mod exit_status {
    /// The command line made no sense, or the input wasn't a host's.
    pub const USAGE: i32 = 2;
    /// The host speaks another version of the protocol.
    pub const PROTOCOL: i32 = 3;
    /// Decoding a file asked for more memory than any recording needs.
    pub const DECODING_LIMIT: i32 = 4;
}

/// Host to engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// First message of a host; the engine answers with [`Event::Hello`] and
    /// ends with an error where the versions differ.
    Hello { protocol: u32 },
    /// Answered at once by the reader thread, also while the device works.
    Ping { nonce: u64 },
    /// Answered with [`Event::Description`].
    Describe,
    /// Answered with events that carry the job's id, the last of them
    /// [`Event::Finished`], [`Event::Failed`] or [`Event::Cancelled`].
    Transcribe(Box<Job>),
    /// The language of each file's first speech; one [`Event::Language`] or
    /// [`Event::FileFailed`] per file, then [`Event::LanguagesDone`].
    DetectLanguages { id: JobId, files: Vec<FilePath>, job: Box<Job> },
    /// Makes another model of one that is installed, its matrices in another
    /// format; answered with [`Event::Quantised`], or as a job that did not finish.
    Quantise(Box<Quantise>),
    /// Ends a job within a second; unknown ids are ignored.
    Cancel { id: JobId },
    /// Ends the engine after what it is doing was cancelled.
    Shutdown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantise {
    pub id: JobId,
    /// A model's folder.
    pub model: FilePath,
    pub precision: memory::Precision,
    /// The folder to make, which must not be there yet.
    pub output: FilePath,
}

/// Engine to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Hello {
        protocol: u32,
        engine: String,
        backend: Backend,
        pid: u32,
    },
    /// `work` grows with every layer and token, so that a slow stage is not
    /// taken for a hang.
    Pong {
        nonce: u64,
        work: u64,
    },
    Description(Box<Description>),
    /// What the file is and what will be done with it.
    Started {
        id: JobId,
        source: transcript::Source,
        model: transcript::Model,
        device: String,
    },
    Progress {
        id: JobId,
        progress: Progress,
    },
    /// A finished segment, in order of time.
    Segment {
        id: JobId,
        segment: Segment,
    },
    /// What a channel turned out to be, once its sound is ready.
    Prepared {
        id: JobId,
        channel: usize,
        speech: Vec<Span>,
        /// Of the log-mel spectrogram, which windows are normalised by.
        log_mel_maximum: f32,
    },
    /// A window begins at this sample of the 16 kHz stream: the one to blame
    /// where the engine does not survive it.
    Window {
        id: JobId,
        channel: usize,
        position: u64,
    },
    /// Everything before the point is done: its segments have been sent.
    /// A job can be resumed from here.
    Reached {
        id: JobId,
        point: Box<Point>,
        /// Left out of the text since the last point.
        discarded: Vec<Segment>,
    },
    Notice {
        id: JobId,
        notice: Notice,
    },
    /// A look at memory, or what there is to say about it.
    Memory {
        id: JobId,
        mark: Box<memory::Mark>,
    },
    /// Where the job stands on its ladder as an engine begins with it, before
    /// anything is loaded.
    Ladder {
        id: JobId,
        state: Box<memory::ladder::State>,
    },
    /// A step down was taken. Where it is to renew the engine, `Failed`
    /// follows, and the host takes the step.
    Rung {
        id: JobId,
        rung: Box<memory::ladder::Rung>,
    },
    Finished {
        id: JobId,
        transcript: Box<Transcript>,
        /// Why this engine should be replaced before the next job.
        renewal: Option<memory::Renewal>,
    },
    /// `partial` is what there was until then.
    Cancelled {
        id: JobId,
        partial: Option<Box<Transcript>>,
    },
    Failed {
        id: JobId,
        error: Failure,
        partial: Option<Box<Transcript>>,
    },
    Language {
        id: JobId,
        file: FilePath,
        probabilities: Vec<(String, f32)>,
    },
    FileFailed {
        id: JobId,
        file: FilePath,
        error: Failure,
    },
    LanguagesDone {
        id: JobId,
    },
    /// The model was made.
    Quantised {
        id: JobId,
        /// Of its weights, in bytes.
        size: u64,
        /// Tensors in a better format than the one asked for, whose blocks
        /// their rows don't fill.
        kept: Vec<(String, memory::Precision)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Cpu,
    Cuda,
}

impl Event {
    /// The job that the event belongs to, if it belongs to one.
    pub fn id(&self) -> Option<JobId> {
        match self {
            Event::Hello { .. } | Event::Pong { .. } | Event::Description(_) => None,
            Event::Started { id, .. }
            | Event::Progress { id, .. }
            | Event::Segment { id, .. }
            | Event::Prepared { id, .. }
            | Event::Window { id, .. }
            | Event::Reached { id, .. }
            | Event::Notice { id, .. }
            | Event::Memory { id, .. }
            | Event::Ladder { id, .. }
            | Event::Rung { id, .. }
            | Event::Finished { id, .. }
            | Event::Cancelled { id, .. }
            | Event::Failed { id, .. }
            | Event::Language { id, .. }
            | Event::FileFailed { id, .. }
            | Event::Quantised { id, .. }
            | Event::LanguagesDone { id } => (*id != NO_JOB).then_some(*id),
        }
    }

    /// Gives a job's event another number: each engine counts for itself.
    pub fn set_id(&mut self, number: JobId) {
        match self {
            Event::Hello { .. } | Event::Pong { .. } | Event::Description(_) => {}
            Event::Started { id, .. }
            | Event::Progress { id, .. }
            | Event::Segment { id, .. }
            | Event::Prepared { id, .. }
            | Event::Window { id, .. }
            | Event::Reached { id, .. }
            | Event::Notice { id, .. }
            | Event::Memory { id, .. }
            | Event::Ladder { id, .. }
            | Event::Rung { id, .. }
            | Event::Finished { id, .. }
            | Event::Cancelled { id, .. }
            | Event::Failed { id, .. }
            | Event::Language { id, .. }
            | Event::FileFailed { id, .. }
            | Event::Quantised { id, .. }
            | Event::LanguagesDone { id } => *id = number,
        }
    }

    /// Whether it is the last one of its job.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Event::Finished { .. }
                | Event::Cancelled { .. }
                | Event::Failed { .. }
                | Event::LanguagesDone { .. }
                | Event::Quantised { .. }
        )
    }
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub stage: Stage,
    /// How far into the recording, and how long that is where it is known.
    pub position: Time,
    pub duration: Option<Time>,
    /// Seconds of recording per second of wall time in this stage.
    pub speed: Option<f32>,
    /// Seconds of wall time until this stage is done.
    pub left: Option<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    LoadModel,
    Preprocess,
    Transcribe,
    Diarize,
    Align,
}

/// What `steno doctor` and the window show of an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    pub engine: String,
    pub backend: Backend,
    pub devices: Vec<DeviceInfo>,
    /// Why the CPU computes, in one sentence; `None` where a GPU does.
    pub cpu_reason: Option<String>,
    pub threads: usize,
    /// Instruction sets that the kernels dispatch on, e.g. `avx2`, `avx512f`.
    pub cpu_features: Vec<String>,
    /// Codecs decoded here, then those that need `ffmpeg`.
    pub codecs: Vec<String>,
    pub ffmpeg: Option<String>,
    pub ffmpeg_codecs: Vec<String>,
    /// Names and versions of the libraries that matter for a bug report.
    pub versions: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// `cpu` or `cuda:N`.
    pub id: String,
    pub name: String,
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
}

/// An error that a user sees: what happened, to which file, what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}{}", .file.as_ref().map(|f| format!("{f}: ")).unwrap_or_default(),
    .remedy.as_ref().map(|r| format!(" {r}")).unwrap_or_default())]
pub struct Failure {
    pub code: ErrorCode,
    pub file: Option<FilePath>,
    /// A sentence.
    pub message: String,
    /// Another one: what the user can do about it.
    pub remedy: Option<String>,
}

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, file: None, message: message.into(), remedy: None }
    }

    pub fn file(mut self, file: impl Into<FilePath>) -> Self {
        self.file = Some(file.into());
        self
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A text as a failure says it: with a capital at its start and a stop at its end.
pub fn sentence(text: &str) -> String {
    let mut text = text.trim().to_owned();
    if let Some(first) =
        text.get(..1).filter(|first| !text.starts_with(char::is_uppercase) && first.is_ascii())
    {
        // A path at the start is not a word.
        if !first.starts_with(['/', '.']) {
            text.replace_range(..1, &first.to_uppercase());
        }
    }
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

/// What programs branch on. The text of a message may change, these may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    FileNotFound,
    FileUnreadable,
    NotAFile,
    FileEmpty,
    NoAudioTrack,
    NoSuchTrack,
    UnknownFormat,
    UnsupportedCodec,
    NeedsFfmpeg,
    AudioBroken,
    ModelNotFound,
    ModelInvalid,
    ModelUnsupported,
    LanguageUnknown,
    BadSettings,
    DeviceUnavailable,
    OutOfMemory,
    /// The user forbade it.
    NetworkOff,
    NetworkFailed,
    /// A download that asks for a token, or for terms that were not accepted.
    DownloadRefused,
    /// What came, or what is installed, is not what was promised.
    ModelCorrupt,
    /// Another program downloads or changes it.
    ModelInUse,
    DiskFull,
    OutputExists,
    OutputUnwritable,
    EngineNotFound,
    EngineFailed,
    EngineSilent,
    /// What decodes for listening is missing or ended.
    PlayerFailed,
    ProtocolMismatch,
    Cancelled,
    Internal,
}
