//! The command line. Help texts are written for people who transcribe, not for people who
//! know the program's parts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use config::Preferences;
use config::preferences::{DEVICE, EnginePreferences, PRIORITY, SPEAKER_MODEL, THREADS, Values};
use supervisor::EngineOptions;
use transcript::export::{DocumentOptions, Format, Options, Shaping};
use transcript::naming::NameTemplate;
use transcript::{Span, Task, Time};
use wire::{Channels, DeviceChoice, Failure, SpeakerCount, Strategy, VoiceActivity};

use crate::memory_args::{Batches, Limits, Memory, SETTINGS, SpeakerMemory, TranslationMemory, checked};
use crate::quantize::Quantize;
use crate::values::{self, Language};
use crate::{
    completions, connections, installed, man, memory_command, models, probe, pull, recommend, times,
};

pub const EXIT_DONE: u8 = 0;
pub const EXIT_FAILED: u8 = 1;
pub const EXIT_USAGE: u8 = 2;
/// 128 + SIGINT, as shells report it.
pub const EXIT_CANCELLED: u8 = 130;
/// 128 + SIGPIPE, as shells report it.
pub const EXIT_STDOUT_CLOSED: u8 = 141;

pub const EXIT_CODES: &str = "\
Exit codes:
  0    everything succeeded
  1    something failed; each failure was reported on standard error
  2    wrong usage
  130  cancelled (Ctrl-C; a second one stops immediately)";

/// Turns recordings into transcripts on this computer.
#[derive(Debug, Parser)]
#[command(name = "steno", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Transcribe(Box<Transcribe>),
    Resume(Resume),
    DetectLanguage(DetectLanguage),
    Speakers(Box<FindSpeakers>),
    Translate(Box<TranslateText>),
    Voices(crate::voices::Voices),
    Search(Box<crate::search::Search>),
    Words(crate::words::Words),
    Adapt(Box<crate::adapt::Adapt>),
    Adapters(crate::adapters::Adapters),
    Chapters(crate::chapters::Chapters),
    Serve(Box<crate::serve::Serve>),
    Worker(Box<crate::worker::Worker>),
    Submit(Box<crate::submit::Submit>),
    Collect(crate::collect::Collect),
    Cluster(crate::cluster_command::Cluster),
    Export(Export),
    Clip(crate::clip::Clip),
    Models(Models),
    Gpu(crate::gpu::Gpu),
    Doctor(Doctor),
    Memory(memory_command::Memory),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Whether it starts engines, or asks about them.
    pub fn uses_engines(&self) -> bool {
        matches!(
            self,
            Self::Transcribe(_)
                | Self::DetectLanguage(_)
                | Self::Speakers(_)
                | Self::Translate(_)
                | Self::Voices(_)
                | Self::Search(_)
                | Self::Chapters(_)
                | Self::Adapt(_)
                | Self::Serve(_)
                | Self::Worker(_)
                | Self::Gpu(_)
                | Self::Doctor(_)
                | Self::Memory(_)
        )
    }
}

const TRANSCRIBE_LONG: &str = "\
Transcribe recordings.

FILE is an audio or video file, or a folder of them; --recursive searches subfolders too. A single - \
reads a recording from standard input and prints its text.

Without --format and --output, the transcript of a single recording is printed as plain text. Otherwise \
files are written, named after the recording (talk.mp3 becomes talk.srt), next to it or in the folder \
given with --output. If two recordings have the same name, the second keeps its extension (talk.wav.srt). \
Existing files are replaced only with --force. A job that is cancelled or fails saves its partial \
transcript as NAME.partial.json, which `steno export` can convert to any format.";

const JSON_EVENTS: &str = "\
Print events as JSON lines, for other programs. The field `event` names the kind: \
queued (with the file of each recording), ladder (the settings that are tried first), prepared (where \
there is speech), started, progress, window (the next 30 seconds begin), live_text (what is \
being written, which may still change), segment, reached (the job can be \
resumed from here), memory (what is in use), rung (a step to less memory), notice, then one of finished \
(with the whole transcript), failed (with code, message and remedy) and cancelled; saved (with path) for \
each file written. The field `job` identifies the recording; events of the engine itself have none.";

/// Transcribe recordings
#[derive(Debug, Args)]
#[command(long_about = TRANSCRIBE_LONG, after_help = EXIT_CODES,
    after_long_help = format!("{SETTINGS}\n\n{EXIT_CODES}"))]
pub struct Transcribe {
    /// Recordings, or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Search subfolders too
    #[arg(long, short = 'R')]
    pub recursive: bool,

    /// Name of a model (see `steno models`), or its folder [default: the recommended installed model]
    #[arg(long, short, value_name = "NAME|FOLDER", env = "STENO_MODEL", hide_env_values = true)]
    pub model: Option<OsString>,

    /// Identify the language first, then transcribe with the installed model that is recommended for it
    #[arg(long, conflicts_with_all = ["translate", "language_per_region"])]
    pub model_by_language: bool,

    /// Spoken language, as a two-letter code (en, de, ...); auto detects it
    #[arg(long, short, value_parser = values::language, default_value = "auto", value_name = "CODE")]
    pub language: Language,

    /// Whether to transcribe, or to translate into English
    #[arg(long, value_parser = values::task(), default_value = "transcribe")]
    pub task: Task,

    /// Same as --task translate
    #[arg(long, conflicts_with = "task")]
    pub translate: bool,

    /// Transcribe and also translate to English; subtitles, txt, csv, documents and json contain both
    #[arg(long, conflicts_with_all = ["task", "translate"])]
    pub bilingual: bool,

    /// Formats to write, separated by commas
    #[arg(long, short, value_parser = values::format_of_new_text(), value_delimiter = ',', ignore_case = true)]
    pub format: Vec<Format>,

    /// Folder to write to, created if missing; - writes to standard output
    #[arg(long, short, value_name = "FOLDER|-")]
    pub output: Option<PathBuf>,

    /// File name without its extension; {name} (the recording's name), {date} (today), {language} and {model}
    /// are filled in [default: {name}]
    #[arg(long, value_name = "TEMPLATE", value_parser = values::name_template)]
    pub name_template: Option<NameTemplate>,

    /// Replace existing files
    #[arg(long)]
    pub force: bool,

    /// Omit from json what differs between two runs, such as dates and speeds
    #[arg(long)]
    pub reproducible: bool,

    /// In csv, tsv and srt, keep text that a spreadsheet may treat as a formula or a player as a tag
    #[arg(long)]
    pub raw_text: bool,

    /// In md, html, docx and pdf, leave out times or speakers, or write a paragraph per segment
    #[arg(long, value_name = "PARTS", value_parser = values::part(), value_delimiter = ',')]
    pub omit: Vec<Part>,

    /// Print events as JSON lines on standard output
    #[arg(long, long_help = format!("{JSON_EVENTS} Files are written only with --format or --output."))]
    pub json_events: bool,

    /// Print what the time went into: stages, and idle cores
    #[arg(long, conflicts_with_all = ["quiet", "json_events"])]
    pub timings: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub memory: Memory,
    #[command(flatten)]
    pub sound: Sound,
    #[command(flatten)]
    pub speakers: Speakers,
    #[command(flatten)]
    pub decoding: Decoding,
    #[command(flatten)]
    pub subtitles: Subtitles,
}

impl Transcribe {
    pub fn task(&self) -> Task {
        if self.translate { Task::Translate } else { self.task }
    }
}

/// What `--omit` leaves out of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Times,
    Speakers,
    Paragraphs,
}

/// How subtitles (srt, vtt, ass, lrc) look. Any of these divides the text anew, the others keep
/// their defaults.
#[derive(Debug, Args)]
#[command(next_help_heading = "Subtitles")]
pub struct Subtitles {
    /// Divide the text into cues that fit the screen; implied by the options below
    #[arg(long)]
    pub shape: bool,

    /// Columns per line; full-width characters take two [default: 42]
    #[arg(long, value_name = "N", value_parser = line_width)]
    pub line_width: Option<usize>,

    /// Lines per cue [default: 2]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub lines: Option<usize>,

    /// Reading speed in columns per second; cues are shown longer where possible [default: 17]
    #[arg(long, value_name = "N", value_parser = reading_speed)]
    pub reading_speed: Option<f32>,

    /// Shortest time between two cues, in seconds [default: 0.08]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub min_gap: Option<Time>,

    /// Shortest duration of a cue where possible, in seconds [default: 0.833]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub min_duration: Option<Time>,

    /// Longest duration of a cue, in seconds [default: 7]
    #[arg(long, value_name = "SECONDS", value_parser = times::length)]
    pub max_duration: Option<Time>,

    /// Add word timestamps to vtt, ass and lrc
    #[arg(long)]
    pub word_tags: bool,
}

impl Subtitles {
    pub fn options(&self, reproducible: bool, raw_text: bool, omit: &[Part]) -> Options {
        let Self { shape, line_width, lines, reading_speed, min_gap, min_duration, max_duration, word_tags } =
            self;
        let numbers = line_width.is_some() || lines.is_some() || reading_speed.is_some();
        let times = min_gap.is_some() || min_duration.is_some() || max_duration.is_some();
        let usual = Shaping::default();
        let shaping = (*shape || numbers || times).then(|| Shaping {
            line_width: line_width.unwrap_or(usual.line_width),
            lines: lines.unwrap_or(usual.lines),
            reading_speed: reading_speed.unwrap_or(usual.reading_speed),
            min_gap: min_gap.unwrap_or(usual.min_gap),
            min_duration: min_duration.unwrap_or(usual.min_duration),
            max_duration: max_duration.unwrap_or(usual.max_duration),
        });
        let document = DocumentOptions {
            times: !omit.contains(&Part::Times),
            speakers: !omit.contains(&Part::Speakers),
            paragraphs: !omit.contains(&Part::Paragraphs),
        };
        Options { reproducible, shaping, word_times: *word_tags, raw_text, translation: false, document }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct Machine {
    /// The device to compute on: auto, cpu, cuda or cuda:N [default: auto]
    #[arg(long, value_parser = checked(DEVICE.0))]
    pub device: Option<String>,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = checked(THREADS.0))]
    pub threads: Option<String>,

    #[command(flatten)]
    pub process: Process,
}

/// How the engine's process stands against others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct Process {
    /// low gives other programs priority on the processor [default: normal]
    #[arg(long, value_name = "PRIORITY", value_parser = PossibleValuesParser::new(["low", "normal"]))]
    pub priority: Option<String>,
}

impl Sound {
    /// The part of each recording to transcribe; `None`: all of it.
    pub fn span(&self) -> Option<Span> {
        let is_part = self.from.is_some() || self.to.is_some();
        let end = || Time::from_millis(u32::MAX);
        is_part.then(|| Span::new(self.from.unwrap_or(Time::ZERO), self.to.unwrap_or_else(end)))
    }

    pub fn check(&self) -> Result<(), String> {
        match self.span() {
            Some(span) if span.length() == Time::ZERO => Err("--to must be later than --from".into()),
            _ => Ok(()),
        }
    }
}

impl Machine {
    /// A job on the CPU needs no CUDA engine, which takes longer to start.
    pub fn engine_options(&self, wishes: EnginePreferences) -> EngineOptions {
        EngineOptions {
            cpu_only: wishes.device == DeviceChoice::Cpu,
            priority: wishes.priority,
            ..EngineOptions::default()
        }
    }

    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let said =
            [(THREADS.0, &self.threads), (PRIORITY.0, &self.process.priority), (DEVICE.0, &self.device)];
        said.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// The device that was given, else set.
    pub fn device(&self) -> DeviceChoice {
        self.wishes().device
    }

    /// For commands that read nothing else of the user's settings: a file that
    /// is wrong is their concern no more than what stands in it.
    pub fn wishes(&self) -> EnginePreferences {
        let of_flags = || Preferences::of(None, &Values::new(), &self.flags()).unwrap_or_default();
        Preferences::of_this_user(&self.flags()).unwrap_or_else(|_| of_flags()).engine
    }
}

/// Speakers are identified in whole recordings.
const OF_WHOLE: [&str; 3] = ["speakers", "min_speakers", "max_speakers"];

#[derive(Debug, Args)]
#[command(next_help_heading = "Sound")]
pub struct Sound {
    /// Stop after this much of each recording: seconds, or a time such as 1:30
    #[arg(long, value_parser = times::length, value_name = "SECONDS", conflicts_with_all = ["from", "to"])]
    pub limit: Option<Time>,

    /// Start of the part to transcribe; times stay those of the recording
    #[arg(long, value_parser = times::parse, value_name = "SECONDS", conflicts_with_all = OF_WHOLE)]
    pub from: Option<Time>,

    /// End of the part to transcribe; within a part, silence is not skipped and speakers are not identified
    #[arg(long, value_parser = times::length, value_name = "SECONDS", conflicts_with_all = OF_WHOLE)]
    pub to: Option<Time>,

    /// Which channels to transcribe
    #[arg(long, value_parser = values::channels(), default_value = "mix")]
    pub channels: Channels,

    /// Number of the audio track, counted from 1 [default: the file's default track]
    #[arg(long, value_name = "N", value_parser = values::track)]
    pub track: Option<usize>,

    /// Voice activity detection: off, or the speech probability (0 to 1) above which audio is transcribed
    /// [default: 0.5]
    #[arg(long, value_parser = values::voice_activity, value_name = "off|THRESHOLD")]
    pub vad: Option<VoiceActivity>,
}

/// Whether speakers are told apart, and with what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speakers")]
pub struct Speakers {
    #[command(flatten)]
    pub counts: SpeakerCounts,
    #[command(flatten)]
    pub model: SpeakerModel,
}

/// Whether speakers are told apart, and how many there are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speakers")]
pub struct SpeakerCounts {
    /// Identify speakers; N is how many there are, if you know it
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "auto",
        value_parser = values::speakers, conflicts_with_all = ["min_speakers", "max_speakers"])]
    pub speakers: Option<SpeakerCount>,

    /// Identify speakers; there are at least N
    #[arg(long, value_name = "N", value_parser = values::speaker_limit())]
    pub min_speakers: Option<u32>,

    /// Identify speakers; there are at most N
    #[arg(long, value_name = "N", value_parser = values::speaker_limit())]
    pub max_speakers: Option<u32>,
}

/// What speakers are told apart with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speakers")]
pub struct SpeakerModel {
    /// Model that identifies speakers: its name (see `steno models`), its folder, or built-in
    /// [default: built-in]
    #[arg(long, value_name = "NAME|FOLDER", value_parser = checked(SPEAKER_MODEL.0))]
    pub speaker_model: Option<String>,
}

impl SpeakerModel {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        self.speaker_model.iter().map(|model| (SPEAKER_MODEL.0, model.clone())).collect()
    }

    /// Fails where the model that the user wants is not there.
    pub fn check(preferences: &Preferences) -> Result<(), Failure> {
        match &preferences.speaker_model {
            Some(model) => advisor::find_speaker_model(model).map(drop),
            None => Ok(()),
        }
    }
}

impl Speakers {
    /// As [`SpeakerCounts::count`].
    pub fn count(&self) -> Option<SpeakerCount> {
        self.counts.count()
    }

    pub fn check(&self) -> Result<(), String> {
        self.counts.check()
    }
}

impl SpeakerCounts {
    /// How many are expected; `None`: they are not told apart.
    pub fn count(&self) -> Option<SpeakerCount> {
        let Self { speakers, min_speakers: min, max_speakers: max } = *self;
        let bounds = (min.is_some() || max.is_some()).then_some(SpeakerCount { min, max });
        speakers.or(bounds)
    }

    pub fn check(&self) -> Result<(), String> {
        match self.min_speakers.zip(self.max_speakers) {
            Some((min, max)) if min > max => Err("--max-speakers must not be below --min-speakers".into()),
            _ => Ok(()),
        }
    }
}

const SPEAKERS_LONG: &str = "\
Identify the speakers of a recording that has been transcribed.

TRANSCRIPT is a json file that `steno transcribe` wrote. Every segment in it gets its speaker, and segments \
are split where the speaker changes; with --format or --output, other files are written instead and TRANSCRIPT \
is not changed. Nothing is transcribed again, and corrections are kept. Names already given to speakers are \
replaced.";

/// Identify the speakers of a recording that has been transcribed
#[derive(Debug, Args)]
#[command(long_about = SPEAKERS_LONG, after_help = EXIT_CODES)]
pub struct FindSpeakers {
    /// The transcript, as json
    pub transcript: PathBuf,

    /// The recording
    pub recording: PathBuf,

    /// Formats to write, separated by commas
    #[arg(long, short, value_parser = values::format(), value_delimiter = ',', ignore_case = true)]
    pub format: Vec<Format>,

    /// Folder to write to, created if missing; - writes to standard output
    #[arg(long, short, value_name = "FOLDER|-")]
    pub output: Option<PathBuf>,

    /// Replace existing files
    #[arg(long)]
    pub force: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    /// Number of the audio track, counted from 1 [default: the file's default track]
    #[arg(long, value_name = "N", value_parser = values::track)]
    pub track: Option<usize>,

    #[command(flatten)]
    pub speakers: Speakers,
    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub memory: SpeakerMemory,
}

const TRANSLATE_LONG: &str = "\
Add an English translation to the transcript of a recording.

TRANSCRIPT is a json file that `steno transcribe` wrote. Every segment in it gets its translation; with \
--format or --output, other files are written instead, with both languages, and TRANSCRIPT is not changed. \
The text and its corrections are kept. The model must be one that can translate.";

/// Add an English translation to the transcript of a recording
#[derive(Debug, Args)]
#[command(long_about = TRANSLATE_LONG, after_help = EXIT_CODES)]
pub struct TranslateText {
    /// The transcript, as json
    pub transcript: PathBuf,

    /// The recording
    pub recording: PathBuf,

    /// Name of a model (see `steno models`), or its folder [default: the recommended installed model]
    #[arg(long, short, value_name = "NAME|FOLDER", env = "STENO_MODEL", hide_env_values = true)]
    pub model: Option<OsString>,

    /// Formats to write, separated by commas
    #[arg(long, short, value_parser = values::format(), value_delimiter = ',', ignore_case = true)]
    pub format: Vec<Format>,

    /// Folder to write to, created if missing; - writes to standard output
    #[arg(long, short, value_name = "FOLDER|-")]
    pub output: Option<PathBuf>,

    /// Replace existing files
    #[arg(long)]
    pub force: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    /// Number of the audio track, counted from 1 [default: the file's default track]
    #[arg(long, value_name = "N", value_parser = values::track)]
    pub track: Option<usize>,

    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub memory: TranslationMemory,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Decoding")]
pub struct Decoding {
    /// Number of candidate texts to compare: more are more accurate and take longer, with Whisper twice the time [default: 1 with Whisper, 5 with Parakeet's transducers]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub beam_size: Option<usize>,

    /// Number of candidate texts at temperatures above 0 [default: 5]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub best_of: Option<usize>,

    /// Temperatures to try in turn until the text is plausible; a single one means no fallback
    /// [default: 0,0.2,0.4,0.6,0.8,1]
    #[arg(long, value_parser = values::probability, value_delimiter = ',', value_name = "T[,T...]")]
    pub temperature: Vec<f32>,

    /// Text that the model treats as said before the recording; guides spelling and style
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// Words to expect, such as names, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "WORDS")]
    pub vocabulary: Vec<String>,

    /// A text file of more words to expect, one per line
    #[arg(long, value_parser = values::word_list, value_name = "FILE")]
    pub vocabulary_file: Option<values::WordList>,

    /// How strongly words to expect are preferred to what the model would write: 0 to 12; 0: not at all, Whisper is told
    /// them as a prompt instead [default: 5]
    #[arg(long, value_parser = values::strength, value_name = "N")]
    pub vocabulary_strength: Option<f32>,

    /// How a recording is divided into windows
    #[arg(long, value_parser = values::strategy(), default_value = "auto", hide_default_value = true)]
    pub strategy: Strategy,

    /// Detect the language of each passage, for recordings in several languages
    #[arg(long)]
    pub language_per_region: bool,

    /// Give the model the previous text for each window: more consistent, but repetitions are more likely
    #[arg(long)]
    pub condition_on_previous_text: bool,

    /// Leave out word timestamps
    #[arg(long)]
    pub no_word_times: bool,

    /// Predict no timestamps: one segment per window
    #[arg(long)]
    pub no_timestamps: bool,

    /// Keep repetitions and invented text instead of transcribing them again
    #[arg(long)]
    pub no_repair: bool,

    /// Seed of the random numbers used at temperatures above 0 [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

const RESUME_LONG: &str = "\
Resume interrupted jobs.

If `steno transcribe` is ended by a crash, a power cut or kill -9, the text so far is kept. This command \
finishes the jobs with the same settings and writes the same files, from any folder. Jobs that another \
`steno` is running are left alone. A recording that has changed since then starts again from the beginning. \
A finished transcript that could not be written is kept too: --output writes it to another folder.";

/// Resume interrupted jobs
#[derive(Debug, Args)]
#[command(long_about = RESUME_LONG, after_help = EXIT_CODES)]
pub struct Resume {
    /// Only list the interrupted jobs
    #[arg(long, conflicts_with_all = ["discard", "json_events"])]
    pub list: bool,

    /// Discard the interrupted jobs
    #[arg(long, conflicts_with = "json_events")]
    pub discard: bool,

    /// Write to this folder instead, created if missing
    #[arg(long, short, value_name = "FOLDER", conflicts_with_all = ["list", "discard"])]
    pub output: Option<PathBuf>,

    /// Other file names, without the extension; {name} (the recording's name), {date} (today), {language} and
    /// {model} are filled in [default: as asked for at first]
    #[arg(long, value_name = "TEMPLATE", value_parser = values::name_template,
        conflicts_with_all = ["list", "discard"])]
    pub name_template: Option<NameTemplate>,

    /// Replace existing files
    #[arg(long, conflicts_with_all = ["list", "discard"])]
    pub force: bool,

    /// Print events as JSON lines on standard output
    #[arg(long, long_help = JSON_EVENTS)]
    pub json_events: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Detect the language of recordings
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct DetectLanguage {
    /// Recordings, or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Search subfolders too
    #[arg(long, short = 'R')]
    pub recursive: bool,

    /// Name of a model (see `steno models`), or its folder [default: the recommended installed model]
    #[arg(long, short, value_name = "NAME|FOLDER", env = "STENO_MODEL", hide_env_values = true)]
    pub model: Option<OsString>,

    /// Print one JSON line per recording, with the probabilities of all languages
    #[arg(long)]
    pub json: bool,

    /// Number of the audio track, counted from 1 [default: the file's default track]
    #[arg(long, value_name = "N", value_parser = values::track)]
    pub track: Option<usize>,

    #[command(flatten)]
    pub machine: Machine,
}

/// Convert saved transcripts (json) to other formats
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Export {
    /// Transcripts saved with --format json
    #[arg(required = true, value_name = "FILE.json")]
    pub files: Vec<PathBuf>,

    /// Formats to write, separated by commas
    #[arg(long, short, required = true, value_parser = values::format(), value_delimiter = ',',
        ignore_case = true)]
    pub format: Vec<Format>,

    /// Folder to write to, created if missing [default: next to the transcript]; - writes to standard output
    #[arg(long, short, value_name = "FOLDER|-")]
    pub output: Option<PathBuf>,

    /// File name without its extension; {name} (the transcript's name), {date} (today), {language} and {model}
    /// are filled in [default: {name}]
    #[arg(long, value_name = "TEMPLATE", value_parser = values::name_template)]
    pub name_template: Option<NameTemplate>,

    /// Replace existing files
    #[arg(long)]
    pub force: bool,

    /// Omit from json what differs between two runs, such as dates and speeds
    #[arg(long)]
    pub reproducible: bool,

    /// In csv, tsv and srt, keep text that a spreadsheet may treat as a formula or a player as a tag
    #[arg(long)]
    pub raw_text: bool,

    /// In md, html, docx and pdf, leave out times or speakers, or write a paragraph per segment
    #[arg(long, value_name = "PARTS", value_parser = values::part(), value_delimiter = ',')]
    pub omit: Vec<Part>,

    /// In subtitles, txt and documents, write the translation below what was said; in csv beside it
    #[arg(long)]
    pub bilingual: bool,

    #[command(flatten)]
    pub subtitles: Subtitles,
}

/// List, recommend, download, import, verify and remove models
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Models {
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    List(models::List),
    Recommend(recommend::Recommend),
    Probe(probe::Probe),
    Pull(pull::Pull),
    Import(installed::Import),
    Verify(installed::Verify),
    Remove(installed::Remove),
    Move(installed::Move),
    Add(installed::Add),
    Connections(connections::Connections),
    Quantize(Quantize),
}

/// Check this computer and this installation
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long, conflicts_with = "fit")]
    pub json: bool,

    /// Load this model and compare the memory that each stage uses with the prediction
    #[arg(long, value_name = "NAME|FOLDER")]
    pub fit: Option<OsString>,

    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub batches: Batches,
    #[command(flatten)]
    pub limits: Limits,
}

impl Doctor {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        [self.batches.flags(), self.limits.flags(), self.machine.flags()].concat()
    }
}

pub fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("`{text}` is not a number above 0"))
}

fn line_width(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|width| *width >= 2).ok_or_else(|| format!("`{text}` is not a number above 1"))
}

fn reading_speed(text: &str) -> Result<f32, String> {
    let speed = text.parse().ok().filter(|speed: &f32| speed.is_finite() && *speed >= 1.0);
    speed.ok_or_else(|| format!("`{text}` is not a number of 1 or more"))
}

/// A time that may be none at all.
fn seconds(text: &str) -> Result<Time, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.map(Time::from_seconds).ok_or_else(|| format!("`{text}` is not a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lists_are_divided_by_commas() {
        let cli = Cli::try_parse_from([
            "steno",
            "transcribe",
            "a.mp3",
            "--format",
            "SRT,json",
            "--temperature",
            "0,0.4",
            "--vocabulary",
            "Ada,Grace Hopper",
        ]);
        let Ok(Cli { command: Command::Transcribe(args) }) = cli else { panic!("{cli:?}") };
        assert_eq!(args.format, [Format::Srt, Format::Json]);
        assert_eq!(args.decoding.temperature, [0.0, 0.4]);
        assert_eq!(args.decoding.vocabulary, ["Ada", "Grace Hopper"]);
    }
}
