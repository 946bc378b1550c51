//! The job and its stages. Knows audio, models and memory; knows no process,
//! no database and no window.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod adaptation;
mod alignment;
mod attempt;
mod canary;
mod completeness;
mod control;
#[cfg(feature = "cuda")]
mod cuda_memory;
mod describe;
mod device;
mod device_context;
mod draft;
mod error;
mod job;
mod judge;
mod language;
mod live_text;
mod loaded;
mod loops;
mod packing;
mod pieces;
mod platform;
mod preview;
mod progress;
mod quantise;
mod sound;
pub mod speakers;
mod speech_model;
mod start;
mod steps;
pub mod text_embedding;
mod text_language;
mod timings;
mod transducer;
mod trouble;
pub mod whisper;

pub use control::Control;
#[cfg(feature = "cuda")]
pub use device::open_card;
pub use error::StageError;
pub use job::Stopped;
pub use speech_model::{HearsLanguages, Request, SpeechModel, load as load_speech_model};
pub use steps::{Found, Observer, Speech, Step};

use transcript::Transcript;
use wire::{
    Adapt, Adapted, Description, DeviceChoice, EmbedTexts, EncodeVoice, Event, Failure, FilePath, Job,
    KnownVoice, Quantise,
};

use device_context::DeviceContext;

/// Where a job's events go.
type Emit<'a> = &'a mut (dyn FnMut(Event) + Send);

/// The main thread's size on most systems: recursive parsers of container formats, which run within the pool, were
/// written with it in mind.
const STACK_BYTES: usize = 8 << 20;

/// One device and what is loaded on it. Lives on the thread that owns the
/// device; other threads send that thread a command.
#[derive(Debug, Default)]
pub struct Engine {
    /// Kept for the next job on the same device under the same limits.
    context: Option<DeviceContext>,
    /// Compute threads, where a job asked for a number of its own.
    pool: Option<rayon::ThreadPool>,
    /// Which reservation of the next job is refused.
    refuse: Option<u64>,
    /// People who are found among the speakers.
    voices: Vec<KnownVoice>,
}

impl Engine {
    /// An engine without a device and without a model; the first job has them opened and loaded.
    pub fn new() -> Self {
        memory::platform::fix_allocator(memory::platform::AllocatorSettings::default());
        Self::default()
    }

    /// Device, backend, codecs and versions.
    pub fn describe(&mut self, control: &Control) -> Description {
        describe::describe(control)
    }

    /// Runs one job from file to transcript. Sends `Started`, `Progress`,
    /// `Segment` and `Notice` events as it goes; the caller turns the result
    /// into `Finished`, `Failed` or `Cancelled`.
    ///
    /// # Errors
    /// What the job failed with, and the transcript until then.
    pub fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Transcript, Stopped> {
        let refuse = self.refuse.take();
        let voices = std::mem::take(&mut self.voices);
        let result =
            self.on_threads(job, |context| job::transcribe(context, job, &voices, control, emit, refuse));
        self.voices = voices;
        result
    }

    /// Why this process should be replaced before the next job, if it should.
    pub fn renewal(&self) -> Option<memory::Renewal> {
        let lost = device::is_lost().then_some(memory::Renewal::DeviceLost);
        lost.or_else(|| self.context.as_ref().and_then(DeviceContext::renewal))
    }

    /// Reservations that were asked for so far.
    pub fn reservations(&self) -> u64 {
        self.context.as_ref().map_or(0, |context| context.device.budget().asked())
    }

    /// Refuses the `k`-th reservation of the next job, counted from 1, whatever
    /// is free: so that every one can be seen to fail and to be survived.
    pub fn refuse_nth(&mut self, k: u64) {
        self.refuse = Some(k);
    }

    /// Sends a `Language` or `FileFailed` event per file.
    ///
    /// # Errors
    /// What stopped the detection of all files.
    pub fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        let refuse = self.refuse.take();
        self.on_threads(job, |context| language::detect_languages(context, files, job, control, emit, refuse))
    }

    /// Answers with `Quantised`. Touches no device.
    ///
    /// # Errors
    /// Where the model can't be read, the output can't be written, or the job was cancelled.
    pub fn quantise(&mut self, asked: &Quantise, control: &Control) -> Result<Event, Failure> {
        quantise::quantise(asked, control)
    }

    /// People whom the next jobs find among the speakers, instead of those named before.
    pub fn know_voices(&mut self, voices: Vec<KnownVoice>) {
        self.voices = voices;
    }

    /// Answers with `Voice`. Computes on the CPU.
    ///
    /// # Errors
    /// Where the file can't be decoded, nobody speaks in it, memory does not suffice, or the job
    /// was cancelled.
    pub fn encode_voice(&mut self, asked: &EncodeVoice, control: &Control) -> Result<Event, Failure> {
        self.on_threads(&asked.job, |context| speakers::encode_voice(context, asked, control))
    }

    /// Turns texts into vectors. Sends `Vectors`, `Ladder`, `Rung`, `Memory` and `Notice` events
    /// as it goes; the model stays loaded for the next texts.
    ///
    /// # Errors
    /// Where the model can't be read, memory does not suffice after every step down the ladder,
    /// or the job was cancelled.
    pub fn embed_texts(
        &mut self,
        asked: &EmbedTexts,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        let refuse = self.refuse.take();
        self.on_threads(&asked.job, |context| {
            text_embedding::embed_texts(context, asked, control, emit, refuse)
        })
    }

    /// Trains adapters of a speech model. Sends `Adapting`, `Ladder`, `Rung`, `Memory` and `Notice`
    /// events as it goes. Where it is cancelled or dies, asking again goes on from its last checkpoint.
    ///
    /// # Errors
    /// Where model or recordings can't be read, memory does not suffice after every step down the
    /// ladder, the output can't be written, or the job was cancelled.
    pub fn adapt(
        &mut self,
        asked: &Adapt,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Adapted, Failure> {
        let refuse = self.refuse.take();
        self.on_threads(&asked.job, |context| adaptation::adapt(context, asked, control, emit, refuse))
    }

    /// Tokens of the longest of these texts; `None` where no model that embeds texts is loaded.
    pub fn longest_text(&self, asked: &EmbedTexts) -> Option<usize> {
        let embedder = self.context.as_ref()?.embedder.as_ref()?;
        embedder.tokens(asked, &Control::default()).ok()?.iter().map(Vec::len).max()
    }

    /// Runs `work` on as many threads as the job asks for, at most one per core, or else on as many as the program has:
    /// candle takes those of the pool that it is called on. It is called within the pool, since each of its operations
    /// would wait for another thread to begin it and to end it.
    fn on_threads<R: Send>(
        &mut self,
        job: &Job,
        work: impl FnOnce(&mut Option<DeviceContext>) -> R + Send,
    ) -> R {
        let Self { context, pool, .. } = self;
        let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        let wanted = job.threads.filter(|threads| *threads > 0).map(|threads| threads.min(cores));
        // With a card, few operations are the pool's.
        if wanted.is_none() && cfg!(feature = "cuda") && job.device != DeviceChoice::Cpu {
            return work(context);
        }
        let threads = wanted.unwrap_or_else(rayon::current_num_threads);
        if pool.as_ref().is_none_or(|pool| pool.current_num_threads() != threads) {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES);
            *pool = builder.thread_name(|number| format!("compute {number}")).build().ok();
        }
        match pool {
            Some(pool) => pool.install(|| work(context)),
            None => work(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_cores_compute() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let mut engine = Engine::new();
        for (wanted, expected) in [(1, 1), (999, cores)] {
            let job = Job { threads: Some(wanted), ..Job::new(1, "talk.flac", "model") };
            assert_eq!(engine.on_threads(&job, |_| rayon::current_num_threads()), expected, "{wanted}");
        }
    }

    /// On another thread, each operation would wait for the pool to begin and to end it.
    #[cfg(not(feature = "cuda"))]
    #[test]
    fn jobs_run_on_a_thread_of_the_pool() {
        let mut engine = Engine::new();
        let found = engine.on_threads(&Job::new(1, "talk.flac", "model"), |_| {
            (rayon::current_thread_index().is_some(), rayon::current_num_threads())
        });
        assert_eq!(found, (true, rayon::current_num_threads()));
    }
}
