//! The protocol between host and engine, and between host and player: commands,
//! events, error codes, and the frames in which they travel. Segments and transcripts
//! are those of `transcript`, samples and ladder steps those of `memory`.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod adaptation;
mod embedding;
mod frame;
mod job;
mod named_failure;
pub mod notice;
mod path;
mod player;
mod resume;

pub use memory::Stage;

pub use adaptation::{Adapt, AdaptProgress, AdaptSettings, Adapted, Lesson, OTHERS_PER_CORRECTION};
pub use embedding::{EmbedTexts, TextRole, TextVector};
pub use frame::{FrameError, MAX_FRAME_BYTES, read_frame, write_frame};
pub use job::{
    Alternative, ByLanguage, Channels, DecodingOptions, DeviceChoice, Job, ModelAnswer, SpeakerCount,
    Strategy, VoiceActivity,
};
pub use path::{FilePath, printable, shown};
pub use player::{AudioTrack, FILMS, Opened, PlayerAnswer, PlayerCommand, Probed};
pub use resume::{LastWord, Point, Resume};

use serde::{Deserialize, Serialize};
use transcript::speakers::NamedTurn;
use transcript::{Notice, Segment, Span, Time, Transcript};

/// Raised whenever a message changes in a way that the other side would misread.
/// Both sides send it first and refuse a different version with an error that names
/// both.
pub const PROTOCOL_VERSION: u32 = 9;

/// Names a job for as long as host and engine both live.
pub type JobId = u64;

/// The id of a [`Job`] that has not been submitted yet. Submitted jobs count from 1.
pub const NO_JOB: JobId = 0;

/// Exit codes of an engine that can't send an event any more.
pub mod exit_status {
    /// The command line or the input is not that of a host.
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
    Hello {
        /// The host's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Answered at once by the reader thread, also while the device works.
    Ping {
        /// Comes back with the answer.
        nonce: u64,
    },
    /// Answered with [`Event::Description`].
    Describe,
    /// Answered with events that carry the job's id, the last of them
    /// [`Event::Finished`], [`Event::Failed`] or [`Event::Cancelled`].
    Transcribe(Box<Job>),
    /// The language of each file's first speech; one [`Event::Language`] or
    /// [`Event::FileFailed`] per file, then [`Event::LanguagesDone`].
    DetectLanguages {
        /// Of the events that answer it.
        id: JobId,
        /// The recordings.
        files: Vec<FilePath>,
        /// Model, device and channels to use; its own file is not read.
        job: Box<Job>,
    },
    /// Makes another model of one that is installed, its matrices in another
    /// format; answered with [`Event::Quantised`], or as a job that did not finish.
    Quantise(Box<Quantise>),
    /// People whom the next jobs find among the speakers; instead of those named before.
    KnowVoices {
        /// One per person and network; may be empty.
        voices: Vec<KnownVoice>,
    },
    /// How a person sounds; answered with [`Event::Voice`], or as a job that did
    /// not finish.
    EncodeVoice(Box<EncodeVoice>),
    /// Turns texts into vectors; answered with [`Event::Vectors`], then [`Event::TextsEmbedded`],
    /// or as a job that did not finish.
    EmbedTexts(Box<EmbedTexts>),
    /// Trains adapters of a model; answered with [`Event::Adapting`], then [`Event::Adapted`], or as a
    /// job that did not finish. Cancelled, it can be asked for again and goes on.
    Adapt(Box<Adapt>),
    /// Ends a job within a second; unknown ids are ignored.
    Cancel {
        /// The job to end.
        id: JobId,
    },
    /// Ends the engine after what it is doing was cancelled.
    Shutdown,
}

/// A person who can be found among the speakers of a recording. Biometric data: it is
/// written to no log, no journal and no report.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownVoice {
    /// What the person is called.
    pub name: String,
    /// The weights that made the vector.
    pub network: String,
    /// Of length 1.
    pub vector: Vec<f32>,
}

impl KnownVoice {
    /// A speaker whose voice is at most this far, in cosine distance, from a known one
    /// is that person (docs/measurements.md has the share of other people who are).
    pub const SAME: f32 = 0.20;
    /// Share of other people whose voice is within [`KnownVoice::SAME`], measured on 251 voices.
    pub const FALSE_ACCEPTS: f32 = 0.0014;
    /// Up to this distance the name is offered.
    pub const MAYBE_SAME: f32 = 0.25;

    /// The distances up to which a speaker is a person, and up to which the name is
    /// offered, with the network that made both vectors.
    ///
    /// Those of WeSpeaker's networks are as published for its ResNet34, measured on the
    /// voices of 229 users (omi, pull request 12935): up to 0.45 nobody was taken for
    /// another, up to 0.65 fewer than 1 in 100 were.
    pub fn limits(network: &str) -> (f32, f32) {
        if network.starts_with("wespeaker-") { (0.45, 0.65) } else { (Self::SAME, Self::MAYBE_SAME) }
    }
}

impl std::fmt::Debug for KnownVoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KnownVoice { .. }")
    }
}

/// A recording, or parts of it, in which a person is heard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodeVoice {
    /// Its file, audio track and memory settings; no model is loaded.
    pub job: Job,
    /// Where the person speaks; empty: the one who speaks most in the whole file.
    pub spans: Vec<Span>,
}

/// How a person sounds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodedVoice {
    /// The weights that made the vector.
    pub network: String,
    /// Of length 1.
    pub vector: Vec<f32>,
    /// Speech of the person.
    pub seconds: f32,
    /// Speech of other people in the same file or parts.
    pub seconds_of_others: f32,
}

impl std::fmt::Debug for EncodedVoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedVoice {{ seconds: {}, .. }}", self.seconds)
    }
}

/// A model to be written in another format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantise {
    /// Of the events that answer it.
    pub id: JobId,
    /// A model's folder.
    pub model: FilePath,
    /// The format of its matrices.
    pub precision: memory::Precision,
    /// The folder to make, which must not be there yet.
    pub output: FilePath,
}

/// One message of an engine to its host: an event, and the job that it belongs
/// to. In JSON both are one object: `{"job":1,"event":"segment","segment":{…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// `None` where the event concerns the engine itself: its greeting, its
    /// description, a command that it can't read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The event itself.
    #[serde(flatten)]
    pub body: Event,
}

impl Envelope {
    /// An event of one job.
    pub fn of_job(job: JobId, body: Event) -> Self {
        Self { job: Some(job), body }
    }

    /// An event that concerns the engine itself.
    pub fn of_engine(body: Event) -> Self {
        Self { job: None, body }
    }
}

/// What an engine tells its host, in an [`Envelope`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first event of an engine.
    Hello {
        /// Its [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The engine's version.
        engine: String,
        /// What it was built for.
        backend: Backend,
        /// Its process id.
        pid: u32,
    },
    /// Answers [`Command::Ping`]. `work` grows with every layer and token, so that a
    /// slow stage is not taken for a hang.
    Pong {
        /// That of the [`Command::Ping`].
        nonce: u64,
        /// Steps done since the engine started, of all jobs.
        work: u64,
    },
    /// Answers [`Command::Describe`].
    Description(Box<Description>),
    /// The job begins.
    Started {
        /// What is known of the file.
        source: transcript::Source,
        /// The model that is loaded.
        model: transcript::Model,
        /// What computes: `cpu` or `cuda:N`.
        device: String,
    },
    /// How far the job is; at most ten times a second.
    Progress {
        /// Stage, position and speed.
        progress: Progress,
    },
    /// A finished segment, in order of time.
    Segment {
        /// With times relative to the beginning of the recording.
        segment: Segment,
    },
    /// What is being written now says so far, from where the segments end; at most five times a second. It is shown
    /// until the next one or the next [`Event::Reached`], and nothing keeps it: the segments that follow may say
    /// something else.
    LiveText {
        /// Plain text.
        text: String,
    },
    /// A channel was decoded and its speech found.
    Prepared {
        /// The channel's number, from 0.
        channel: usize,
        /// Where there is speech.
        speech: Vec<Span>,
        /// Of the log-mel spectrogram, which windows are normalised by.
        log_mel_maximum: f32,
    },
    /// A window begins at this sample of the 16 kHz stream. Where the engine dies, it
    /// died in the latest window that began.
    Window {
        /// The channel's number, from 0.
        channel: usize,
        /// The window's first sample.
        position: u64,
    },
    /// Everything before the point is done: its segments have been sent.
    /// A job can be resumed from here.
    Reached {
        /// Where the next window begins, and what it depends on.
        point: Box<Point>,
        /// Left out of the text since the last point.
        discarded: Vec<Segment>,
    },
    /// Who speaks when in the beginning of the recording, as far as it was listened to: a
    /// guess that is shown until the finished transcript says it.
    Turns {
        /// With the names of people who are known.
        turns: Vec<NamedTurn>,
    },
    /// Something the user should know, also about memory ([`notice`]).
    Notice {
        /// Its code names what happened.
        notice: Notice,
    },
    /// A reading of the device's memory at a known place in the job.
    Memory {
        /// The reading, with its checkpoint.
        sample: Box<memory::Sample>,
    },
    /// The job's position on its ladder when an engine begins it, before anything is
    /// loaded.
    Ladder {
        /// Settings in force and steps already taken.
        state: Box<memory::ladder::LadderState>,
    },
    /// A step down the ladder was taken. Where the step is to renew the engine,
    /// [`Event::Failed`] follows and the host completes it.
    Rung {
        /// The step, from what and to what.
        rung: Box<memory::ladder::Rung>,
    },
    /// The job is done.
    Finished {
        /// The whole text.
        transcript: Box<Transcript>,
        /// Why this engine should be replaced before the next job.
        renewal: Option<memory::Renewal>,
    },
    /// The job was cancelled.
    Cancelled {
        /// `None` where no segment was finished.
        partial: Option<Box<Transcript>>,
    },
    /// The job, or the engine itself, failed.
    Failed {
        /// Why.
        error: Failure,
        /// The text until then; `None` where no segment was finished.
        partial: Option<Box<Transcript>>,
    },
    /// Answers [`Command::DetectLanguages`] for one file.
    Language {
        /// The recording.
        file: FilePath,
        /// ISO 639-1 codes with their probabilities, the likeliest first.
        probabilities: Vec<(String, f32)>,
    },
    /// A file whose language could not be detected; the others follow.
    FileFailed {
        /// The recording.
        file: FilePath,
        /// Why.
        error: Failure,
    },
    /// Every file of [`Command::DetectLanguages`] was answered.
    LanguagesDone,
    /// Answers [`Command::EncodeVoice`].
    Voice {
        /// How the person sounds.
        voice: Box<EncodedVoice>,
    },
    /// Vectors of some of the texts of [`Command::EmbedTexts`], in any order, each text once.
    Vectors {
        /// Of one batch.
        vectors: Vec<TextVector>,
        /// Texts that are done, of all events together.
        done: usize,
        /// Texts in all.
        total: usize,
        /// Texts per second of wall time so far.
        per_second: f32,
    },
    /// Every text of [`Command::EmbedTexts`] has its vector.
    TextsEmbedded {
        /// Why this engine should be replaced before the next job.
        renewal: Option<memory::Renewal>,
    },
    /// How far an adaptation is: when it begins, after each step and each epoch.
    Adapting {
        /// Epochs, steps, losses.
        progress: Box<AdaptProgress>,
    },
    /// The adapter was written.
    Adapted {
        /// Where it is, and how it came about.
        adapted: Box<Adapted>,
        /// Why this engine should be replaced before the next job.
        renewal: Option<memory::Renewal>,
    },
    /// The model was made.
    Quantised {
        /// Of its weights, in bytes.
        size: u64,
        /// Tensors in a better format than the one asked for, whose blocks
        /// their rows don't fill.
        kept: Vec<(String, memory::Precision)>,
    },
}

/// What an engine was built to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The CPU alone.
    Cpu,
    /// NVIDIA GPUs, or the CPU where there is none.
    Cuda,
}

impl Event {
    /// Whether it is the last one of its job.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Event::Finished { .. }
                | Event::Cancelled { .. }
                | Event::Failed { .. }
                | Event::LanguagesDone
                | Event::Voice { .. }
                | Event::TextsEmbedded { .. }
                | Event::Adapted { .. }
                | Event::Quantised { .. }
        )
    }
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What the job is doing.
    pub stage: Stage,
    /// How far into the recording, and how long that is where it is known.
    pub position: Time,
    /// Length of the recording, where it is known.
    pub duration: Option<Time>,
    /// Seconds of recording per second of wall time in this stage.
    pub speed: Option<f32>,
    /// Seconds of wall time until this stage is done.
    pub left: Option<f32>,
}

/// What `steno doctor` and the window show of an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The engine's version.
    pub engine: String,
    /// What it was built for.
    pub backend: Backend,
    /// What it can compute on.
    pub devices: Vec<DeviceInfo>,
    /// Why the CPU computes, in one sentence; `None` where a GPU does.
    pub cpu_reason: Option<String>,
    /// Compute threads, by default one per core.
    pub threads: usize,
    /// Instruction sets that the kernels dispatch on, e.g. `avx2`, `avx512f`.
    pub cpu_features: Vec<String>,
    /// Codecs decoded here, then those that need `ffmpeg`.
    pub codecs: Vec<String>,
    /// Version of the `ffmpeg` that was found.
    pub ffmpeg: Option<String>,
    /// Codecs that need `ffmpeg`.
    pub ffmpeg_codecs: Vec<String>,
    /// Names and versions of the libraries that matter for a bug report.
    pub versions: Vec<(String, String)>,
}

/// A device that an engine can compute on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// `cpu` or `cuda:N`.
    pub id: String,
    /// The name that its vendor gave it.
    pub name: String,
    /// Its memory; `None` where it can't be read.
    pub total_bytes: Option<u64>,
    /// What is free of that now.
    pub free_bytes: Option<u64>,
}

/// An error that a user sees: what happened, to which file, what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}{}", .file.as_ref().map(|f| format!("{f}: ")).unwrap_or_default(),
    .remedy.as_ref().map(|r| format!(" {r}")).unwrap_or_default())]
pub struct Failure {
    /// What programs branch on.
    pub code: ErrorCode,
    /// The file that the error is about.
    pub file: Option<FilePath>,
    /// A sentence.
    pub message: String,
    /// Another one: what the user can do about it.
    pub remedy: Option<String>,
}

impl Failure {
    /// A failure without a file and a remedy.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, file: None, message: message.into(), remedy: None }
    }

    /// Names the file that the error is about.
    pub fn file(mut self, file: impl Into<FilePath>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Adds what the user can do.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Makes a sentence of an error's text: a capital at its start, a full stop at its end.
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
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The recording does not exist.
    FileNotFound,
    /// A folder that is watched does not exist.
    FolderNotFound,
    /// The file exists and can't be read.
    FileUnreadable,
    /// The path names a folder or a device.
    NotAFile,
    /// The file has no content.
    FileEmpty,
    /// The file ends before its index, without which it can't be decoded.
    FileIncomplete,
    /// The folder has no recordings.
    NoRecordings,
    /// The file has no sound.
    NoAudioTrack,
    /// The file has no audio track with the number asked for.
    NoSuchTrack,
    /// The file's container is not recognised.
    UnknownFormat,
    /// The container is known, its codec is not.
    UnsupportedCodec,
    /// Decoding it needs `ffmpeg`, which was not found.
    NeedsFfmpeg,
    /// The file is damaged.
    AudioBroken,
    /// Too little speech to know a voice by.
    NoVoice,
    /// Nothing can be recorded.
    NoMicrophone,
    /// No model that compares meanings is installed.
    NoEmbeddingModel,
    /// A recording is too short to have chapters.
    RecordingTooShort,
    /// No change of subject was found in a transcript.
    OneSubject,
    /// A transcript has no chapters that could be saved.
    NoChapters,
    /// A transcript has no speakers that could be saved.
    NoSpeakers,
    /// No model of that name or at that path.
    ModelNotFound,
    /// The model's files are incomplete or damaged.
    ModelInvalid,
    /// The files are of a kind of model that Steno does not run.
    ModelUnsupported,
    /// The model does not know the language.
    LanguageUnknown,
    /// A setting has a value that it can't take.
    BadSettings,
    /// Another thing of that kind has the name.
    NameTaken,
    /// A name is needed.
    NameMissing,
    /// The recording is not in the list any more.
    RecordingGone,
    /// There is no such transcript, or not yet, or not any more.
    TranscriptGone,
    /// A regular expression can't be used.
    BadPattern,
    /// The device asked for is not there or does not work.
    DeviceUnavailable,
    /// Memory did not suffice, also after every step down the ladder.
    OutOfMemory,
    /// The user switched the network off.
    NetworkOff,
    /// A server can't be reached or answers with an error.
    NetworkFailed,
    /// The server asks for a token, or for terms to be accepted.
    DownloadRefused,
    /// Another machine refuses the token, or wants one.
    ServerRefused,
    /// Another machine has no room for one more job now.
    ServerBusy,
    /// A recording is larger or longer than another machine allows.
    RecordingRefused,
    /// A model's file is not what its checksum promises.
    ModelCorrupt,
    /// Another program downloads or changes it.
    ModelInUse,
    /// No space is left on the disk.
    DiskFull,
    /// A file or folder of that name exists and may not be replaced.
    OutputExists,
    /// The output can't be written.
    OutputUnwritable,
    /// The file system does not accept the output's name.
    OutputNameTooLong,
    /// No `steno-engine` was found.
    EngineNotFound,
    /// The engine ended or can't be understood.
    EngineFailed,
    /// The engine stopped answering.
    EngineSilent,
    /// The player process is missing or ended.
    PlayerFailed,
    /// Host and engine speak different versions of the protocol.
    ProtocolMismatch,
    /// The user stopped it.
    Cancelled,
    /// A bug in Steno.
    Internal,
}
