//! Submits one recording after the other to the engine.

use std::sync::Arc;

use library::Identity;
use transcript::Transcript;
use wire::{ErrorCode, Event, Failure, Job, JobId, NO_JOB};

use super::again::{Again, transcribe_again};
use super::elsewhere;
use super::queue::{JobState, QueueEntry, StoppedJob};
use super::queue_journal::Outputs;
use super::usage::Forecast;
use super::{Inner, JobSettings, Session};
use advisor::adapters::Adapters;
use advisor::by_language;
use advisor::fit::{Announcement, DeviceMemory, expects_gpu};
use advisor::idle::Idle;
use advisor::models::model_at;
use advisor::with_alternatives;
use config::Preferences;

/// Runs until the session is closed.
pub async fn run(inner: Arc<Inner>) {
    // The latest job was paused, and its engine still holds the model.
    let mut paused = false;
    let mut idle = Idle::default();
    loop {
        let next = inner.change(|shared| {
            if shared.closed {
                return Err(());
            }
            let settings = (shared.settings.clone(), shared.preferences.clone());
            // The user looks at this text and waits: also while the queue is paused.
            if let Some((entry, again)) = shared.queue.next_again() {
                return Ok(Some((entry, Some(again), settings)));
            }
            if shared.paused {
                return Ok(None);
            }
            Ok(shared.queue.start_next().map(|entry| (entry, None, settings)))
        });
        match next {
            Err(()) => return,
            Ok(None) if paused => {
                inner.supervisor.rest().await;
                paused = false;
            }
            Ok(None) => {
                let preferences = inner.lock().preferences.clone();
                idle.wait(&inner.supervisor, &preferences, &inner.wake).await;
            }
            Ok(Some((entry, Some(again), (settings, preferences)))) => {
                idle.end();
                transcribe_again(&inner, entry, again, settings, preferences).await;
            }
            Ok(Some((entry, None, (settings, preferences)))) => {
                let id = entry.id;
                idle.end();
                let done = match elsewhere::machine_for(&inner, &entry) {
                    Some(machine) => {
                        elsewhere::transcribe(&inner, entry, machine, settings, preferences).await
                    }
                    None => transcribe(&inner, entry, settings, preferences).await,
                };
                if let Err(failure) = done {
                    inner.change(|shared| shared.queue.end(id, JobState::Failed, None, Some(failure)));
                }
                paused = inner.lock().queue.get(id).is_some_and(|entry| entry.state == JobState::Paused);
            }
        }
    }
}

async fn transcribe(
    inner: &Arc<Inner>,
    entry: QueueEntry,
    settings: JobSettings,
    preferences: Preferences,
) -> Result<(), Failure> {
    let (id, keeper) = (entry.id, Arc::clone(inner));
    inner.change(|shared| {
        shared.queue.set_elsewhere(id, None);
        shared.queue.set_placed(id, None);
    });
    let own = entry.own.as_ref().unwrap_or(&settings);
    let again = own.wants_both().then(|| (settings.clone(), preferences.clone()));
    // On a blocking thread: the file may be on a slow disk, and the journal is written.
    let begun = tokio::task::spawn_blocking(move || {
        let identity = Identity::of(&entry.file).ok();
        let make = || {
            let stopped = entry.stopped.as_ref();
            let paused = stopped.filter(|_| entry.resumed);
            if let Some(job) = paused.and_then(|paused| paused.continued(identity.as_ref())) {
                return Ok(job);
            }
            let fresh = job_to_run(&entry, &settings, &preferences)?;
            check_told(&fresh, entry.own.as_ref().unwrap_or(&settings))?;
            if let Some(job) = stopped.and_then(|stopped| stopped.resumed(&fresh, identity.as_ref())) {
                return Ok(job);
            }
            Session { inner: Arc::clone(&keeper) }.keep_earlier(entry.id)?;
            Ok(fresh)
        };
        let (job, key) = if entry.sample {
            (make()?, None)
        } else {
            // What another machine was given of it is done here now.
            let outputs = Outputs { placed: None, ..Outputs::of(&entry) };
            keeper.journal().begin(entry.id, &outputs, identity.as_ref(), make)?
        };
        let plain = Job { resume: None, ..job.clone() };
        let earlier = supervisor::partial_of(&job);
        // The models that are installed now, also for a job of an earlier window.
        let (forecast, speakers) = (Forecast::of(&job), job.speakers);
        let job = with_alternatives(job);
        let will_not_fit = will_not_fit(&job);
        Ok((job, key, forecast, speakers, will_not_fit, plain, identity, earlier))
    });
    let (job, key, forecast, speakers, will_not_fit, plain, identity, earlier) =
        begun.await.unwrap_or_else(|_| {
            Err(Failure::new(ErrorCode::Internal, "The job could not be started.").remedy("Try again."))
        })?;
    inner.change(|shared| {
        shared.queue.forecast(id, forecast, speakers);
        shared.queue.set_will_not_fit(id, will_not_fit);
        shared.queue.show_earlier(id, earlier);
    });
    // Without an engine every job would fail, so that the journal keeps this one.
    inner.supervisor.ready().await?;
    inner.journal().runs(id);
    let mut handle = match key {
        Some(key) => inner.supervisor.submit_kept(job, key),
        None => inner.supervisor.submit(job),
    };
    let stopped_meanwhile = inner.change(|shared| {
        shared.running = Some((id, handle.stop()));
        let asked = |entry: &QueueEntry| matches!(entry.state, JobState::Stopping | JobState::Pausing);
        shared.closed || shared.queue.get(id).is_some_and(asked)
    });
    if stopped_meanwhile {
        handle.cancel();
    }
    let mut given_up = false;
    while let Some(event) = handle.next().await {
        // A finished job stays in the journal until its text is in the history, or saved.
        given_up = matches!(event, Event::Failed { .. } | Event::Cancelled { .. });
        let stopped = handle.resume().filter(|_| given_up).map(|resume| StoppedJob {
            job: Job {
                resume: Some(Box::new(resume)),
                by_language: handle.by_language().or_else(|| plain.by_language.clone()),
                ..plain.clone()
            },
            identity: identity.clone(),
        });
        // Under both locks: a job that the user starts over meanwhile is added to the
        // journal after this, and not finished by it.
        let mut journal = given_up.then(|| inner.journal());
        let (closed, aside) = inner.change(|shared| {
            if event.is_last() {
                shared.queue.set_stopped(id, stopped);
            }
            shared.queue.apply(id, event);
            let aside = shared.queue.get(id).filter(|entry| entry.stays_aside());
            (shared.closed, aside.map(Outputs::of))
        });
        // Jobs that were stopped by closing the window go on at its next start.
        match (&mut journal, aside) {
            (Some(journal), Some(outputs)) if !closed => journal.set_aside(id, &outputs),
            (Some(journal), None) if !closed => journal.finish(id, library::JournalState::Cancelled),
            _ => {}
        }
    }
    // The settings may have changed while it ran.
    Session { inner: Arc::clone(inner) }.judge_later();
    inner.change(|shared| shared.running = None);
    if let Some((settings, preferences)) = again.filter(|_| !given_up)
        && !translate(inner, id, settings, preferences).await
    {
        // The journal keeps the text, and the next window goes on with it.
        return Ok(());
    }
    if !given_up {
        let session = Session { inner: Arc::clone(inner) };
        let _ = tokio::task::spawn_blocking(move || session.put_away(id)).await;
    }
    Ok(())
}

/// Puts English beside a text that was just written. False: the window was closed meanwhile.
async fn translate(inner: &Arc<Inner>, id: JobId, settings: JobSettings, preferences: Preferences) -> bool {
    let entry = inner.change(|shared| {
        let is_foreign = |transcript: &Transcript| transcript.language != "en";
        let entry = shared.queue.get(id)?.clone();
        entry.transcript.as_deref().filter(|transcript| is_foreign(transcript))?;
        shared.queue.ask_again(id, Again::translation());
        Some(entry)
    });
    if let Some(entry) = entry {
        transcribe_again(inner, entry, Again::translation(), settings, preferences).await;
    }
    !inner.change(|shared| shared.closed)
}

/// What to warn of before a job is loaded, where its model is not expected to
/// fit into what is free now.
fn will_not_fit(job: &Job) -> Option<Announcement> {
    let device = DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory).ok()?;
    let model = model_at(job.model.as_path()).ok()?;
    let announcement = Announcement::of(&model.name, job, device).ok()?;
    announcement.notice().is_some().then_some(announcement)
}

/// The job of a recording with these settings.
///
/// # Errors
/// `ModelNotFound` where no model is chosen.
pub fn job(entry: &QueueEntry, settings: &JobSettings, preferences: &Preferences) -> Result<Job, Failure> {
    let settings = entry.own.as_ref().unwrap_or(settings);
    let model = settings.model.as_ref().ok_or_else(|| {
        Failure::new(ErrorCode::ModelNotFound, "There is no model to transcribe with.")
            .remedy("Choose the folder of a model.")
    })?;
    let mut job = Job::new(NO_JOB, entry.file.clone(), model.path.clone());
    settings.fill(&mut job);
    entry.part.fill(&mut job);
    // What is set for other models stays set, and is not asked of this one. One that can't be read says so itself.
    if let Ok(network) = advisor::model_info::read(&model.path) {
        advisor::model_info::restrict(&network, &mut job);
    }
    job.threads = preferences.engine.threads;
    job.device = preferences.engine.device;
    job.memory = preferences.memory.clone();
    job.precision = preferences.precision;
    job.speaker_model = advisor::speaker_model(preferences);
    Ok(job)
}

/// As [`job`], with what its model has learnt, and with a model that follows from the language where the user wants
/// that. Reads the beginning of each of the model's tensors.
///
/// # Errors
/// As [`job`].
pub fn job_to_run(
    entry: &QueueEntry,
    settings: &JobSettings,
    preferences: &Preferences,
) -> Result<Job, Failure> {
    let mut job = job(entry, settings, preferences)?;
    if let Some(model) = model_of_all(entry, settings) {
        job.by_language = by_language::request(model, &job, preferences);
    }
    Ok(adapted(job))
}

/// The model that is chosen for all recordings; `None` where this one has a model of its own, which stays.
fn model_of_all<'a>(entry: &QueueEntry, settings: &'a JobSettings) -> Option<&'a advisor::ModelRef> {
    let is_own = entry.own.as_ref().is_some_and(|own| own.model != settings.model);
    settings.model.as_ref().filter(|_| !is_own)
}

/// The job with what its model has learnt.
pub fn adapted(job: Job) -> Job {
    Job { adapter: Adapters::switched_on(job.model.as_path()), ..job }
}

/// Refuses, before anything is loaded, a job without a language whose model must be told one.
fn check_told(job: &Job, settings: &JobSettings) -> Result<(), Failure> {
    let name = settings.model.as_ref().map_or("", |model| &model.name);
    // A model that can't be read says so itself.
    let network = advisor::model_info::read(job.model.as_path()).ok();
    match network.and_then(|network| advisor::model_info::untold(&network, name, job)) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of which nothing but its description is there.
    fn described(config: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let header = br#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#;
        let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
        std::fs::write(folder.path().join("model.safetensors"), file).unwrap();
        folder
    }

    #[test]
    fn a_model_that_must_be_told_the_language_is_not_started_without_one() {
        let folder = described(r#"{"model_type": "canary"}"#);
        let model = advisor::ModelRef {
            name: "c".into(),
            path: folder.path().into(),
            demonstration: false,
            note: None,
        };
        let mut settings = JobSettings { model: Some(model), ..JobSettings::default() };
        let mut job = Job::new(NO_JOB, "talk.wav", folder.path());
        let failure = check_told(&job, &settings).unwrap_err();
        assert_eq!(failure.code, ErrorCode::LanguageUnknown);
        assert!(failure.to_string().contains("The model c can't find out"), "{failure}");
        job.language = Some("de".into());
        check_told(&job, &settings).unwrap();
        (job.language, settings.model) = (None, None);
        job.model = folder.path().join("none").into();
        check_told(&job, &settings).unwrap();
    }

    /// Only that of all recordings may give way to one for the language.
    #[test]
    fn a_model_that_was_chosen_for_one_recording_stays() {
        let model = |name: &str| advisor::ModelRef {
            name: name.into(),
            path: name.into(),
            demonstration: false,
            note: None,
        };
        let settings = |name: &str| JobSettings { model: Some(model(name)), ..JobSettings::default() };
        let mut queue = super::super::queue::Queue::default();
        let mut of = |own: Option<JobSettings>| {
            let id = queue.add("talk.wav".into(), None, false, None);
            let mut entry = queue.get(id).unwrap().clone();
            entry.own = own;
            model_of_all(&entry, &settings("a")).map(|model| model.name.clone())
        };
        assert_eq!(of(None).as_deref(), Some("a"));
        assert_eq!(of(Some(settings("b"))), None);
        // Its own settings are of other things.
        assert_eq!(of(Some(settings("a"))).as_deref(), Some("a"));
    }

    #[test]
    fn what_is_set_of_the_engine_reaches_every_job() {
        let mut queue = super::super::queue::Queue::default();
        let id = queue.add("talk.wav".into(), None, false, None);
        let model =
            advisor::ModelRef { name: "m".into(), path: "m".into(), demonstration: false, note: None };
        let settings = JobSettings { model: Some(model), ..JobSettings::default() };
        let mut preferences = Preferences::default();
        preferences.engine.device = wire::DeviceChoice::Cuda(1);
        preferences.engine.threads = Some(3);
        let job = job(queue.get(id).unwrap(), &settings, &preferences).unwrap();
        assert_eq!((job.device, job.threads), (wire::DeviceChoice::Cuda(1), Some(3)));
    }

    /// They stay set, for the next model.
    #[test]
    fn settings_that_the_model_does_not_take_are_not_asked_of_it() {
        let folder = described(r#"{"model_type": "parakeet_tdt", "encoder_config": {}}"#);
        let mut queue = super::super::queue::Queue::default();
        let id = queue.add("talk.wav".into(), None, false, None);
        let model = |path: &std::path::Path| {
            Some(advisor::ModelRef { name: "m".into(), path: path.into(), demonstration: false, note: None })
        };
        let mut settings = JobSettings {
            model: model(folder.path()),
            language: Some("de".into()),
            task: transcript::Task::Translate,
            ..JobSettings::default()
        };
        settings.decoding.beams = Some(5);
        settings.decoding.prompt = "Ada".into();
        settings.decoding.words = vec!["Grace".into()];
        let of =
            |settings: &JobSettings| job(queue.get(id).unwrap(), settings, &Preferences::default()).unwrap();
        let plain = of(&settings);
        assert_eq!((plain.language, plain.task), (None, transcript::Task::Transcribe));
        // A transducer has beams.
        assert_eq!((plain.decoding.beam_size, plain.decoding.initial_prompt), (Some(5), None));
        assert_eq!(plain.decoding.vocabulary, ["Grace"]);
        let ctc = described(r#"{"model_type": "parakeet_ctc", "encoder_config": {}}"#);
        settings.model = model(ctc.path());
        assert_eq!(of(&settings).decoding.beam_size, None);
        settings.model = model(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper").as_ref());
        let full = of(&settings);
        assert_eq!((full.language.as_deref(), full.task), (Some("de"), transcript::Task::Translate));
        assert_eq!((full.decoding.beam_size, full.decoding.vocabulary.len()), (Some(5), 1));
    }

    #[test]
    fn a_model_that_does_not_fit_is_announced_before_it_is_loaded() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
        let job = |ram_limit| {
            let mut job = Job::new(NO_JOB, "talk.flac", model);
            job.device = wire::DeviceChoice::Cpu;
            job.memory.ram_limit = ram_limit;
            with_alternatives(job)
        };
        let limit = 40 << 20;
        let announcement = will_not_fit(&job(Some(limit))).unwrap();
        assert_eq!((announcement.fit.model.as_str(), announcement.device.free), ("starter-whisper", limit));
        assert!(announcement.fit.check.peak > limit && announcement.fit.check.missing() > 0);
        assert_eq!(will_not_fit(&job(None)), None);
    }
}
