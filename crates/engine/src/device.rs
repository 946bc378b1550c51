use std::sync::Arc;
use std::{io, thread};

use pipeline::{Control, Stopped};
use transcript::Transcript;
use wire::{
    Adapt, Adapted, Description, EmbedTexts, EncodeVoice, Envelope, ErrorCode, Event, Failure, FilePath, Job,
    KnownVoice, Quantise,
};

use crate::output::Output;
use crate::queue::{Queue, Work};
use crate::{panics, reader::Described};

/// What the device thread owns. [`pipeline::Engine`] is one; tests have
/// another that misbehaves on demand.
pub trait Device {
    /// What this engine and its devices are.
    fn describe(&mut self, control: &Control) -> Description;

    /// As [`pipeline::Engine::transcribe`].
    ///
    /// # Errors
    /// What the job failed with; the partial transcript goes with the event.
    fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Transcript, Stopped>;

    /// As [`pipeline::Engine::detect_languages`].
    ///
    /// # Errors
    /// What stopped the detection of all files. A file that can't be decoded is an event and no error.
    fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure>;

    /// As [`pipeline::Engine::quantise`].
    ///
    /// # Errors
    /// Where the model can't be read, the output can't be written, or the job was cancelled.
    fn quantise(&mut self, asked: &Quantise, control: &Control) -> Result<Event, Failure>;

    /// As [`pipeline::Engine::know_voices`].
    fn know_voices(&mut self, voices: Vec<KnownVoice>);

    /// As [`pipeline::Engine::encode_voice`].
    ///
    /// # Errors
    /// Where the file can't be decoded, nobody speaks in it, or the job was cancelled.
    fn encode_voice(&mut self, asked: &EncodeVoice, control: &Control) -> Result<Event, Failure>;

    /// As [`pipeline::Engine::embed_texts`].
    ///
    /// # Errors
    /// Where the model can't be read, memory does not suffice after every step down the ladder,
    /// or the job was cancelled.
    fn embed_texts(
        &mut self,
        asked: &EmbedTexts,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure>;

    /// As [`pipeline::Engine::adapt`].
    ///
    /// # Errors
    /// Where model or recordings can't be read, memory does not suffice after every step down the
    /// ladder, the output can't be written, or the job was cancelled.
    fn adapt(
        &mut self,
        asked: &Adapt,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Adapted, Failure>;

    /// As [`pipeline::Engine::renewal`].
    fn renewal(&self) -> Option<memory::Renewal> {
        None
    }
}

impl Device for pipeline::Engine {
    fn describe(&mut self, control: &Control) -> Description {
        pipeline::Engine::describe(self, control)
    }

    fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Transcript, Stopped> {
        pipeline::Engine::transcribe(self, job, control, emit)
    }

    fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        pipeline::Engine::detect_languages(self, files, job, control, emit)
    }

    fn quantise(&mut self, asked: &Quantise, control: &Control) -> Result<Event, Failure> {
        pipeline::Engine::quantise(self, asked, control)
    }

    fn know_voices(&mut self, voices: Vec<KnownVoice>) {
        pipeline::Engine::know_voices(self, voices);
    }

    fn encode_voice(&mut self, asked: &EncodeVoice, control: &Control) -> Result<Event, Failure> {
        pipeline::Engine::encode_voice(self, asked, control)
    }

    fn embed_texts(
        &mut self,
        asked: &EmbedTexts,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        pipeline::Engine::embed_texts(self, asked, control, emit)
    }

    fn adapt(
        &mut self,
        asked: &Adapt,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Adapted, Failure> {
        pipeline::Engine::adapt(self, asked, control, emit)
    }

    fn renewal(&self) -> Option<memory::Renewal> {
        pipeline::Engine::renewal(self)
    }
}

/// The main thread's size on most systems: recursive parsers of container
/// formats were written with it in mind.
const STACK_BYTES: usize = 8 << 20;

/// Starts the thread that owns the device. The device is made on it, since
/// device handles need not be able to change threads.
pub fn start<D: Device>(
    queue: Arc<Queue>,
    output: Output,
    described: Arc<Described>,
    make: impl Fn() -> D + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("device".into()).stack_size(STACK_BYTES).spawn(move || {
        let mut device: Option<D> = None;
        while let Some((work, control)) = queue.next() {
            let job = work.id();
            let result = panics::catch(|| {
                let device = device.get_or_insert_with(&make);
                run(device, work, &control, &output, &described);
            });
            if let Err(panic) = result {
                // A state that the panic left half changed must not serve the next
                // job. Dropping it may panic as well: then it is leaked.
                let broken = device.take();
                let _ = panics::catch(move || drop(broken));
                output.send(Envelope { job, body: Event::Failed { error: internal(&panic), partial: None } });
            }
            queue.done();
        }
    })?;
    Ok(())
}

fn run(device: &mut impl Device, work: Work, control: &Control, output: &Output, described: &Described) {
    let job = work.id();
    #[cfg(not(debug_assertions))]
    let mut emit = |body| output.send(Envelope { job, body });
    #[cfg(debug_assertions)]
    let mut emit = |body| crate::planted::send(output, Envelope { job, body });
    match work {
        Work::Describe => {
            let description = device.describe(control);
            described.remember(&description);
            emit(Event::Description(Box::new(description)));
        }
        Work::Transcribe(job) => {
            let (id, live) = (job.id, output.clone());
            control.on_live_text(move |text| live.send(Envelope::of_job(id, Event::LiveText { text })));
            let event = match device.transcribe(&job, control, &mut emit) {
                Ok(transcript) => {
                    Event::Finished { transcript: Box::new(transcript), renewal: device.renewal() }
                }
                Err(Stopped { failure, partial }) => ended(failure, partial, control),
            };
            emit(event);
        }
        Work::DetectLanguages { files, job, .. } => {
            let event = match device.detect_languages(&files, &job, control, &mut emit) {
                Ok(()) => Event::LanguagesDone,
                Err(failure) => ended(failure, None, control),
            };
            emit(event);
        }
        Work::Quantise(asked) => {
            let result = device.quantise(&asked, control);
            emit(result.unwrap_or_else(|failure| ended(failure, None, control)));
        }
        Work::EmbedTexts(asked) => {
            let event = match device.embed_texts(&asked, control, &mut emit) {
                Ok(()) => Event::TextsEmbedded { renewal: device.renewal() },
                Err(failure) => ended(failure, None, control),
            };
            emit(event);
        }
        Work::Adapt(asked) => {
            let event = match device.adapt(&asked, control, &mut emit) {
                Ok(adapted) => Event::Adapted { adapted: Box::new(adapted), renewal: device.renewal() },
                Err(failure) => ended(failure, None, control),
            };
            emit(event);
        }
        Work::KnowVoices(voices) => device.know_voices(voices),
        Work::EncodeVoice(asked) => {
            let result = device.encode_voice(&asked, control);
            emit(result.unwrap_or_else(|failure| ended(failure, None, control)));
        }
    }
}

/// An error in a job that was being cancelled is what the cancel led to (a
/// helper program that went away, a file closed under its reader).
fn ended(error: Failure, partial: Option<Box<Transcript>>, control: &Control) -> Event {
    if error.code == ErrorCode::Cancelled || control.is_cancelled() {
        Event::Cancelled { partial }
    } else {
        Event::Failed { error, partial }
    }
}

fn internal(panic: &str) -> Failure {
    Failure::new(ErrorCode::Internal, format!("A fault in Steno itself ended this job: {panic}."))
        .remedy("Other files are not affected. Please report it together with the file, if you may share it.")
}
