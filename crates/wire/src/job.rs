use memory::Precision;
use memory::ladder::Installed;
use serde::{Deserialize, Serialize};
use transcript::{Segment, Span, Task, Time};

use crate::{FilePath, JobId, Point, Resume};

/// Everything the engine needs to transcribe one file. Complete on purpose:
/// it is stored with the transcript and in the journal, so that a job can be
/// repeated or resumed with the settings that were in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Assigned when the job is submitted; [`NO_JOB`](crate::NO_JOB) before that.
    pub id: JobId,
    /// The recording.
    pub file: FilePath,
    /// A model's folder or file.
    pub model: FilePath,
    /// Whether another model may do the job, once its language was identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_language: Option<ByLanguage>,
    /// An adapter of this model, which is added to its weights; `None`: the model as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<FilePath>,
    /// What computes.
    pub device: DeviceChoice,
    /// Compute threads; `None`: one per core.
    pub threads: Option<usize>,
    /// ISO 639-1; `None`: detect.
    pub language: Option<String>,
    /// Transcription, or translation to English.
    pub task: Task,
    /// What becomes of a recording with several channels.
    pub channels: Channels,
    /// Audio track by number from 0; `None`: the file's default one.
    pub track: Option<usize>,
    /// Stop after this much of the recording.
    pub limit: Option<Time>,
    /// Transcribe this part alone, all of it taken for speech; `None`: everything.
    #[serde(default)]
    pub span: Option<Span>,
    /// Which parts count as speech.
    pub voice_activity: VoiceActivity,
    /// How text is searched for.
    pub decoding: DecodingOptions,
    /// Where a recording longer than two minutes is spooled; `None`: the system's temporary folder.
    pub spool_folder: Option<FilePath>,
    /// How weights are held; `None`: as stored, widened to 32 bits on the CPU.
    pub precision: Option<Precision>,
    /// How the recording is divided into windows.
    pub strategy: Strategy,
    /// Whether to tell speakers apart once the text is there.
    pub speakers: bool,
    /// How many speakers are expected.
    #[serde(default)]
    pub speaker_count: SpeakerCount,
    /// Folder of an installed model that tells speakers apart; `None`: the networks that
    /// are in the program.
    #[serde(default)]
    pub speaker_model: Option<FilePath>,
    /// Limits, batches, pins.
    pub memory: memory::settings::MemorySettings,
    /// Models that the ladder may change to, the job's own among them; empty: only a
    /// smaller batch and the CPU.
    pub alternatives: Vec<Alternative>,
    /// Where an earlier attempt ended.
    pub resume: Option<Box<Resume>>,
}

/// The request that a job's model follow from its language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ByLanguage {
    /// The model that identifies the language: a folder or file.
    pub identifier: FilePath,
    /// What followed from it; `None`: it was not identified yet.
    pub answer: Option<ModelAnswer>,
}

/// Which model followed from a language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelAnswer {
    /// The job's own.
    Own,
    /// Another one: the job as that one does it.
    Other(Box<Job>),
}

/// How many speakers a recording has; `None`: as many as are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpeakerCount {
    /// The fewest, from 1.
    pub min: Option<u32>,
    /// The most, not below the fewest.
    pub max: Option<u32>,
}

impl SpeakerCount {
    /// More than this many are not told apart.
    pub const MOST: u32 = 50;

    /// Exactly so many.
    pub fn exactly(count: u32) -> Self {
        Self { min: Some(count), max: Some(count) }
    }
}

/// A model that the ladder may choose, with where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its folder or file.
    pub path: FilePath,
    /// What the ladder needs to know of it.
    pub installed: Installed,
}

/// How a recording becomes windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Batched, unless a part of a recording is read anew or each window is to be told the text before it.
    #[default]
    Auto,
    /// Window after window, each beginning where the last one's text ended.
    Sequential,
    /// Regions of speech packed into windows, several decoded together.
    Batched,
}

impl Job {
    /// Whether words are aligned with the sound: for their times, or because an adapter may remember corrections.
    pub fn aligns_words(&self) -> bool {
        self.decoding.word_times || self.adapter.is_some()
    }

    /// A job with default settings for everything that is not given.
    pub fn new(id: JobId, file: impl Into<FilePath>, model: impl Into<FilePath>) -> Self {
        Self {
            id,
            file: file.into(),
            model: model.into(),
            by_language: None,
            adapter: None,
            device: DeviceChoice::Auto,
            threads: None,
            language: None,
            task: Task::Transcribe,
            channels: Channels::Mix,
            track: None,
            limit: None,
            span: None,
            voice_activity: VoiceActivity::default(),
            decoding: DecodingOptions::default(),
            spool_folder: None,
            precision: None,
            strategy: Strategy::Auto,
            speakers: false,
            speaker_count: SpeakerCount::default(),
            speaker_model: None,
            memory: memory::settings::MemorySettings::default(),
            alternatives: Vec::new(),
            resume: None,
        }
    }

    /// The job as an engine does it: with the model that followed from its language, if one did.
    pub fn in_use(&self) -> &Self {
        match self.by_language.as_ref().and_then(|by_language| by_language.answer.as_ref()) {
            Some(ModelAnswer::Other(job)) => job,
            _ => self,
        }
    }

    /// Whether it asks for the same as another job, wherever each is.
    pub fn is_same_request(&self, other: &Self) -> bool {
        let plain = |job: &Self| Self { resume: None, by_language: None, ..job.clone() };
        self.by_language.is_some() == other.by_language.is_some() && plain(self) == plain(other)
    }

    /// Nothing is transcribed: the text of all channels is there. Finds who says it.
    pub fn find_speakers_of_text(&mut self, segments: Vec<Segment>) {
        let point = Point { channel: Point::EVERY_CHANNEL, ..Point::default() };
        self.speakers = true;
        self.by_language = None;
        self.resume = Some(Box::new(Resume { point: Some(point), segments, ..Resume::default() }));
    }

    /// The same recording translated to English, to stand beside its text, which is in
    /// `language`.
    pub fn translating(self, language: String) -> Self {
        let language = Some(language);
        Self { task: Task::Translate, language, by_language: None, speakers: false, resume: None, ..self }
    }

    /// Whether several windows are decoded together.
    pub fn is_batched(&self) -> bool {
        match self.strategy {
            // A batch loses fewer words over all (docs/measurements.md), and reads the weights once for
            // all its windows. A part that is read anew is read as it was asked for. Only window after
            // window can the text of one be said to the next.
            Strategy::Auto => {
                let asked = self.memory.batch_size.is_some_and(|windows| windows > 1);
                asked || (self.span.is_none() && !self.decoding.condition_on_previous_text)
            }
            Strategy::Sequential => false,
            Strategy::Batched => true,
        }
    }

    /// What is kept with a transcript: every setting that its text depends on
    /// or might, and nothing that tells of the user's folders.
    pub fn settings(&self) -> serde_json::Value {
        let mut settings = serde_json::to_value(self).unwrap_or_default();
        if let Some(settings) = settings.as_object_mut() {
            for private in [
                "id",
                "file",
                "model",
                "by_language",
                "adapter",
                "speaker_model",
                "spool_folder",
                "memory",
                "alternatives",
                "resume",
            ] {
                settings.remove(private);
            }
        }
        settings
    }
}

/// Which device the user wants to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// The GPU where there is a usable one, else the CPU.
    #[default]
    Auto,
    /// The CPU, also where there is a GPU.
    Cpu,
    /// The CUDA device with this number, in the order of their places on the bus.
    Cuda(usize),
    /// As `Auto`, with this one of several cards. A host says so which it took; users don't.
    First(usize),
}

/// Which channels of a recording are transcribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// All of them, averaged.
    #[default]
    Mix,
    /// The first one.
    Left,
    /// The second one.
    Right,
    /// Each channel on its own; segments carry the channel's number.
    Separate,
}

/// Whether speech is detected before transcribing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VoiceActivity {
    /// Everything is transcribed.
    Off,
    /// Probability of speech from which on a frame counts, 0 to 1.
    Threshold(f32),
}

impl VoiceActivity {
    /// The threshold of a job that names none.
    pub const DEFAULT_THRESHOLD: f32 = 0.5;
}

impl Default for VoiceActivity {
    fn default() -> Self {
        Self::Threshold(Self::DEFAULT_THRESHOLD)
    }
}

/// How text is searched for. Names and defaults are those of openai/whisper's
/// functions (`transcribe.py`, `decoding.py`), except that previous text is
/// not a condition unless asked for: it makes loops likelier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecodingOptions {
    /// Beams at temperature 0; 1 is greedy, `None` is what suits the model. Beams find the likelier
    /// text; Whisper takes twice the time for them and more, and now and then skips a sentence.
    pub beam_size: Option<usize>,
    /// Candidates at temperatures above 0.
    pub best_of: usize,
    /// Tried in order until a window passes the thresholds below.
    pub temperatures: Vec<f32>,
    /// A text that zlib shrinks by more than this is a loop.
    pub compression_ratio_threshold: Option<f32>,
    /// A text whose mean log-probability per token is below this is decoded again.
    pub log_probability_threshold: Option<f32>,
    /// Above this (and below the log-probability threshold) a window is silent.
    pub no_speech_threshold: Option<f32>,
    /// Whether a window's prompt contains the text before it.
    pub condition_on_previous_text: bool,
    /// For recordings in several languages: each window's language is detected
    /// anew, and regions of speech don't share a window.
    pub language_per_region: bool,
    /// Above this temperature previous text is forgotten.
    pub prompt_reset_temperature: f32,
    /// Text that stands before the first window, for names and style.
    pub initial_prompt: Option<String>,
    /// Words to be expected: where the model is not far from them, they are written.
    pub vocabulary: Vec<String>,
    /// How far from its own choice the model may be to write one of these words, in nats for each of its tokens,
    /// half of that for the first; 0: none is preferred, and Whisper is told them before each window instead.
    pub vocabulary_strength: f32,
    /// Whether the model writes time stamps, from which segments are made.
    pub timestamps: bool,
    /// Latest time, in seconds, at which a window's first segment may start.
    pub max_initial_timestamp: Option<f32>,
    /// Additional token ids never to be written.
    pub suppress_tokens: Vec<u32>,
    /// Tokens per window; `None`: half of the decoder's positions.
    pub max_tokens: Option<usize>,
    /// Exponent of the length by which a candidate's score is divided, as in Google's NMT
    /// (alpha, 0 to 1); `None`: the plain length.
    pub length_penalty: Option<f32>,
    /// Beam search ends after `patience * beam_size` finished candidates (arXiv:2204.05424);
    /// `None`: 1.
    pub patience: Option<f32>,
    /// Whether each word gets a start and an end.
    pub word_times: bool,
    /// Detect, re-decode and mark loops and hallucinations; go back for speech
    /// that a window left without text.
    pub repair: bool,
    /// Of the random choices at temperatures above 0; the same seed gives the same text.
    pub seed: u64,
}

impl DecodingOptions {
    /// Words to expect are preferred by so much if nothing else is said: with more, words of the list that the model
    /// knows appear more often where others were said (docs/measurements.md).
    pub const VOCABULARY_STRENGTH: f32 = 5.0;
    /// The most that can be asked for.
    pub const STRONGEST_VOCABULARY: f32 = 12.0;

    /// Beams at temperature 0, with a model that is best read with `usual` of them.
    pub fn beams(&self, usual: usize) -> usize {
        self.beam_size.unwrap_or(usual).max(1)
    }

    /// Texts of a window that are followed at once, at most: beams, or samples where there are temperatures above 0.
    pub fn most_texts(&self, usual: usize) -> usize {
        let is_sampled = self.temperatures.iter().any(|temperature| *temperature > 0.0);
        self.beams(usual).max(if is_sampled { self.best_of } else { 1 })
    }

    /// [`Self::vocabulary_strength`] within its bounds, whoever wrote it.
    pub fn bounded_strength(&self) -> f32 {
        self.vocabulary_strength.clamp(0.0, Self::STRONGEST_VOCABULARY)
    }
}

impl Default for DecodingOptions {
    fn default() -> Self {
        Self {
            beam_size: None,
            best_of: 5,
            temperatures: vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
            compression_ratio_threshold: Some(2.4),
            log_probability_threshold: Some(-1.0),
            no_speech_threshold: Some(0.6),
            condition_on_previous_text: false,
            language_per_region: false,
            prompt_reset_temperature: 0.5,
            initial_prompt: None,
            vocabulary: Vec::new(),
            vocabulary_strength: Self::VOCABULARY_STRENGTH,
            timestamps: true,
            max_initial_timestamp: Some(1.0),
            suppress_tokens: Vec::new(),
            max_tokens: None,
            length_penalty: None,
            patience: None,
            word_times: true,
            repair: true,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answer: Option<ModelAnswer>) -> Job {
        let by_language = ByLanguage { identifier: "whisper".into(), answer };
        Job { by_language: Some(by_language), ..Job::new(1, "talk.wav", "whisper") }
    }

    #[test]
    fn what_followed_from_the_language_changes_the_model_and_not_the_request() {
        let other = Job::new(1, "talk.wav", "parakeet");
        let asked = answered(None);
        let followed = answered(Some(ModelAnswer::Other(Box::new(other.clone()))));
        let own = answered(Some(ModelAnswer::Own));
        assert_eq!((asked.in_use(), followed.in_use(), own.in_use()), (&asked, &other, &own));
        assert!(followed.is_same_request(&asked) && own.is_same_request(&asked));
        assert!(!followed.is_same_request(&Job { by_language: None, ..asked.clone() }));
        assert!(!followed.is_same_request(&Job { track: Some(1), ..asked.clone() }));
        // A journal gives back what was decided.
        let json = serde_json::to_string(&followed).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), followed);
        // It can translate, which the other one may not.
        let translating = followed.translating("de".into());
        assert_eq!((translating.model, translating.by_language), ("whisper".into(), None));
        assert_eq!(asked.settings().get("by_language"), None);
    }
}
