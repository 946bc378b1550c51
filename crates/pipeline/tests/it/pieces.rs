//! Parakeet and Canary models, with random weights: what they say means nothing, and must be the same however it is read.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use audio::PrepareOptions;
use candle_core::Device;
use memory::Precision;
use memory::ladder::Step as Rung;
use pipeline::{Control, Engine, Found, Observer, Request, SpeechModel, StageError, Step, load_speech_model};
use random_models::{
    CanarySize, Options, ParakeetSize, WeightType, corpus, write_canary_model, write_parakeet_model,
};
use transcript::{Segment, Span, Task, Time, Transcript};
use wire::{DecodingOptions, DeviceChoice, ErrorCode, Event, Failure, Job, LastWord, Point, Strategy};

use crate::support::wav;

const PARAKEET: &str = "parakeet-tiny";
const CANARY: &str = "canary-tiny";

/// Models with the language that is said of what they write where none was named, `None`: they must be told it.
const MODELS: [(&str, Option<&str>); 3] =
    [(PARAKEET, Some("und")), ("parakeet-tiny-ctc", Some("en")), (CANARY, None)];

/// The language that a model is told which must be told one.
const TOLD: &str = "de";

fn written(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let options = Options { precision: WeightType::F32, ..Options::default() };
    match CanarySize::named(name) {
        Some(size) => write_canary_model(&path, size, &options),
        None => write_parakeet_model(&path, ParakeetSize::named(name).unwrap(), &options),
    }
    .unwrap();
    (folder, path)
}

fn load(path: &Path) -> Box<dyn SpeechModel> {
    let network = formats::ModelInfo::network(path).unwrap();
    load_speech_model(&network, path, &Device::Cpu, Precision::F32, &|| true).unwrap()
}

/// A minute of speech, twice: several pieces.
fn long(folder: &Path) -> PathBuf {
    let mut reader = audio::Reader::open(&minute(), &Default::default()).unwrap();
    let mut samples = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        samples.extend_from_slice(block);
    }
    let path = folder.join("long.wav");
    std::fs::write(&path, wav(&samples.repeat(2))).unwrap();
    path
}

fn minute() -> PathBuf {
    corpus::bundled().join("audio/synthetic/en_minute_1.flac")
}

pub struct Watch {
    batch: usize,
    most: usize,
    began: Vec<(u64, usize)>,
    found: Vec<Found>,
}

impl Watch {
    pub fn new(batch: usize) -> Self {
        Self { batch, most: usize::MAX, began: Vec::new(), found: Vec::new() }
    }

    pub fn segments(&self) -> Vec<Segment> {
        self.found.iter().flat_map(|found| found.segments.iter().cloned()).collect()
    }
}

impl Observer for Watch {
    fn batch_size(&mut self) -> usize {
        self.batch
    }

    fn step(&mut self, step: Step) -> Result<(), StageError> {
        match step {
            Step::Began { position, windows } => self.began.push((position, windows)),
            Step::Found(found) => self.found.push(found),
        }
        if self.found.len() < self.most {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::Cancelled, "Enough.").into())
    }
}

#[test]
fn the_text_does_not_depend_on_how_it_is_read() {
    for (name, language) in MODELS {
        let (folder, path) = written(name);
        let model = load(&path);
        let go_on = &mut |_: f64, _: Option<f64>| ControlFlow::Continue(());
        let recording = audio::prepare(&long(folder.path()), &PrepareOptions::default(), go_on).unwrap();
        let frames =
            |region: &audio::SpeechRegion| (region.start / 160) as usize..region.end.div_ceil(160) as usize;
        let speech: Vec<_> = recording.speech.iter().map(frames).collect();
        let (settings, control) = (DecodingOptions::default(), Control::default());
        let request = Request {
            recording: &recording,
            speech: Some(&speech),
            span: None,
            strategy: Strategy::Auto,
            settings: &settings,
            task: Task::Transcribe,
            language: language.unwrap_or(TOLD),
            skip: &[],
            control: &control,
        };
        let run = |request: &Request, from: &Point, watch: &mut Watch| model.transcribe(request, from, watch);
        let mut whole = Watch::new(1);
        run(&request, &Point::default(), &mut whole).unwrap();
        let text = whole.segments();
        assert!(whole.found.len() >= 4 && text.len() > 4, "{name}: {} pieces", whole.found.len());
        assert!(text.iter().all(|segment| segment.start < segment.end && !segment.text.is_empty()));
        assert!(text.is_sorted_by(|a, b| a.end <= b.start), "{name}: segments overlap");
        let words: Vec<_> = text.iter().flat_map(|segment| &segment.words).collect();
        let unsorted: Vec<_> = words.windows(2).filter(|pair| pair[0].end > pair[1].start).collect();
        assert!(unsorted.is_empty(), "{name}: {unsorted:?}");
        assert!(words.len() > 4, "{name}: {} words", words.len());
        assert!(words.iter().all(|word| word.probability > 0.0 && word.probability <= 1.0));
        let end = Time::from_seconds(recording.seconds());
        assert!(text.iter().all(|segment| segment.end <= end));
        // No piece is longer than half a minute.
        assert!(whole.began.windows(2).all(|pair| pair[1].0 - pair[0].0 > 0));

        // Several together.
        for batch in [2, 3, 40] {
            let mut together = Watch::new(batch);
            run(&request, &Point::default(), &mut together).unwrap();
            assert_eq!(together.segments(), text, "{name}: {batch} together");
            assert_eq!(together.began[0].1, batch.min(whole.found.len()));
        }
        // From each point that was handed out.
        for count in 1..whole.found.len() {
            let mut first = Watch { most: count, ..Watch::new(2) };
            run(&request, &Point::default(), &mut first).unwrap_err();
            let point = first.found.last().unwrap().point.clone();
            let mut rest = Watch::new(2);
            run(&request, &point, &mut rest).unwrap();
            assert_eq!([first.segments(), rest.segments()].concat(), text, "{name}: from point {count}");
            // All that is known of what came before is in the point.
            let last_words = |found: &[Found]| -> Vec<Option<LastWord>> {
                found.iter().map(|it| it.point.last_word.clone()).collect()
            };
            assert_eq!(
                last_words(&rest.found),
                last_words(&whole.found[count..]),
                "{name}: from point {count}"
            );
        }
        // With beams too; they are of a transducer alone.
        let beams = DecodingOptions { beam_size: Some(3), ..settings.clone() };
        let [alone, together] = [1, 3].map(|batch| {
            let mut watch = Watch::new(batch);
            run(&Request { settings: &beams, ..request }, &Point::default(), &mut watch).unwrap();
            watch.segments()
        });
        assert_eq!(alone, together, "{name}: with beams");
        assert_eq!(alone != text, name == PARAKEET, "{name}: with beams");
        // A piece that is skipped is a gap, and nothing else.
        let skipped = [whole.began[1].0];
        let mut without = Watch::new(3);
        run(&Request { skip: &skipped, ..request }, &Point::default(), &mut without).unwrap();
        let expected: Vec<Segment> = whole
            .found
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != 1)
            .flat_map(|(_, it)| it.segments.clone())
            .collect();
        assert_eq!(without.segments(), expected, "{name}");
        // A part.
        let span = Span::new(Time::from_seconds(20.0), Time::from_seconds(50.0));
        let within = std::iter::once(2000..5000).collect::<Vec<_>>();
        let mut part = Watch::new(1);
        run(&Request { span: Some(span), speech: Some(&within), ..request }, &Point::default(), &mut part)
            .unwrap();
        let part = part.segments();
        assert!(!part.is_empty() && part.iter().all(|it| it.start >= span.start && it.end <= span.end));
        // Without the times of words there are none, and the text is the same.
        let plain = DecodingOptions { word_times: false, ..settings.clone() };
        let mut untimed = Watch::new(1);
        run(&Request { settings: &plain, ..request }, &Point::default(), &mut untimed).unwrap();
        assert!(untimed.segments().iter().all(|segment| segment.words.is_empty()));
        // What it can't do is refused.
        let translate = Request { task: Task::Translate, ..request };
        let mut translated = Watch::new(1);
        let result = run(&translate, &Point::default(), &mut translated);
        if name == CANARY {
            result.unwrap();
            assert_ne!(translated.segments(), text);
            let unknown = Request { language: "ja", ..request };
            let refused = run(&unknown, &Point::default(), &mut Watch::new(1)).unwrap_err();
            assert!(refused.to_string().contains("can't write ja for ja"), "{refused}");
        } else {
            let refused = result.unwrap_err();
            assert!(refused.to_string().contains("can't translate"), "{refused}");
        }
    }
}

fn job(model: &Path) -> Job {
    let mut job = Job::new(1, minute(), model);
    job.device = DeviceChoice::Cpu;
    job
}

/// With the number of reservations that it took.
fn transcribe(job: &Job, refuse: Option<u64>) -> (Transcript, Vec<Event>, u64) {
    let mut engine = Engine::new();
    if let Some(k) = refuse {
        engine.refuse_nth(k);
    }
    let mut events = Vec::new();
    let transcript = engine.transcribe(job, &Control::default(), &mut |event| events.push(event)).unwrap();
    (transcript, events, engine.reservations())
}

#[test]
fn a_job_has_text_completeness_and_points_and_survives_every_refused_reservation() {
    for (name, language) in MODELS {
        let (_folder, path) = written(name);
        let mut job = job(&path);
        job.language = language.is_none().then(|| TOLD.into());
        let (whole, events, reservations) = transcribe(&job, None);
        assert!(whole.complete && !whole.segments.is_empty());
        assert_eq!((whole.language.as_str(), whole.language_probability), (language.unwrap_or(TOLD), None));
        assert_eq!(whole.model.name, name);
        assert!(whole.completeness.speech > Time::ZERO && whole.completeness.covered > Time::ZERO);
        let reached = events.iter().filter(|event| matches!(event, Event::Reached { .. })).count();
        assert!(reached >= 3, "{reached}");
        for k in 1..=reservations {
            let (again, events, _) = transcribe(&job, Some(k));
            assert_eq!(again.segments, whole.segments, "{name}, reservation {k}");
            let rungs = events.iter().filter_map(|event| match event {
                Event::Rung { rung } => Some(rung.step),
                _ => None,
            });
            assert!(rungs.clone().all(|step| step == Rung::RetryAfterTrim) && rungs.count() <= 1);
        }
    }
}

/// In the words of an error, not with another model's answer.
#[test]
fn which_language_is_spoken_it_does_not_say() {
    let (_folder, path) = written(PARAKEET);
    let job = job(&path);
    let mut failed = Vec::new();
    let emit = &mut |event| {
        if let Event::FileFailed { error, .. } = event {
            failed.push(error);
        }
    };
    let result =
        Engine::new().detect_languages(std::slice::from_ref(&job.file), &job, &Control::default(), emit);
    let failure = result.err().or_else(|| failed.pop()).unwrap();
    assert_eq!(failure.code, ErrorCode::ModelUnsupported);
    assert!(failure.to_string().contains("does not say which language is spoken"), "{failure}");
}

#[test]
fn a_model_that_must_be_told_the_language_says_so() {
    let (_folder, path) = written(CANARY);
    let mut job = job(&path);
    let run =
        |job: &Job| Engine::new().transcribe(job, &Control::default(), &mut |_| ()).unwrap_err().failure;
    let failure = run(&job);
    assert_eq!(failure.code, ErrorCode::LanguageUnknown);
    assert!(failure.to_string().contains("must be told which language is spoken"), "{failure}");
    job.language = Some("ja".into());
    assert_eq!(run(&job).code, ErrorCode::LanguageUnknown);
}
