//! Every reservation of a job can fail: the text is complete all the same.

use memory::Checkpoint;
use memory::ladder::Step;
use pipeline::{Control, Engine};
use transcript::Transcript;
use wire::{DeviceChoice, Event, Job, Strategy};

fn job(strategy: Strategy) -> Job {
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/sample.flac");
    let mut job = Job::new(1, sample, crate::support::starter());
    job.device = DeviceChoice::Cpu;
    job.strategy = strategy;
    job.speakers = true;
    job
}

/// With the number of reservations that it took.
fn run(job: &Job, refuse: Option<u64>) -> (Transcript, Vec<Event>, u64) {
    let mut engine = Engine::new();
    if let Some(k) = refuse {
        engine.refuse_nth(k);
    }
    let mut events = Vec::new();
    let transcript = engine.transcribe(job, &Control::default(), &mut |event| events.push(event)).unwrap();
    (transcript, events, engine.reservations())
}

fn rungs(events: &[Event]) -> Vec<Step> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Rung { rung, .. } => Some(rung.step),
            _ => None,
        })
        .collect()
}

#[test]
fn every_reservation_may_be_refused() {
    for strategy in [Strategy::Sequential, Strategy::Batched] {
        let job = job(strategy);
        let (whole, _, reservations) = run(&job, None);
        assert!(whole.complete && !whole.segments.is_empty());
        // Model, sound, decoding, the three of the speakers.
        assert!(reservations >= 6, "{strategy:?}: {reservations}");
        let mut retried = 0;
        for k in 1..=reservations {
            let (transcript, events, _) = run(&job, Some(k));
            assert_eq!(transcript.segments, whole.segments, "{strategy:?}, reservation {k}");
            match rungs(&events).as_slice() {
                // The model made room for the sound.
                [] => continue,
                [Step::RetryAfterTrim] => retried += 1,
                other => panic!("{strategy:?}, reservation {k}: {other:?}"),
            }
            let notices: Vec<&str> = transcript.notices.iter().map(|notice| notice.code.as_str()).collect();
            assert!(notices.contains(&"memory.retried"), "{notices:?}");
        }
        assert_eq!(retried, reservations - 1, "{strategy:?}");
    }
}

/// Four files are listened to together; each reservation on the way may be refused.
#[test]
fn a_refused_reservation_costs_no_language() {
    let mut job = job(Strategy::Auto);
    job.memory.batch_size = Some(4);
    let files = vec![job.file.clone(); 4];
    let detect = |refuse: Option<u64>| {
        let mut engine = Engine::new();
        if let Some(k) = refuse {
            engine.refuse_nth(k);
        }
        let (mut found, mut events) = (Vec::new(), Vec::new());
        let emit = &mut |event| match event {
            Event::Language { probabilities, .. } => found.push(probabilities),
            other => events.push(other),
        };
        engine.detect_languages(&files, &job, &Control::default(), emit).unwrap();
        (found, rungs(&events), engine.reservations())
    };
    let (expected, _, reservations) = detect(None);
    assert_eq!((expected.len(), expected[0][0].0.as_str()), (4, "en"));
    // The model, and one batch of four windows.
    assert_eq!(reservations, 2);
    for k in 1..=reservations {
        let (found, steps, _) = detect(Some(k));
        assert_eq!(found, expected, "reservation {k}");
        // The model is loaded before the first file; where that fails the first file tries again.
        let expected: &[Step] = if k == 1 { &[] } else { &[Step::RetryAfterTrim] };
        assert_eq!(steps, expected, "reservation {k}");
    }
}

#[test]
fn a_job_leaves_its_checkpoints() {
    let (_, events, _) = run(&job(Strategy::Sequential), None);
    let seen: Vec<Checkpoint> = events
        .iter()
        .filter_map(|event| match event {
            Event::Memory { sample } => Some(sample.checkpoint),
            _ => None,
        })
        .collect();
    use Checkpoint as C;
    for checkpoint in [
        C::PipelineStart,
        C::BeforePreprocess,
        C::AfterPreprocess,
        C::BeforeAudioRelease,
        C::AfterAudioRelease,
        C::BeforeSpeechModelLoad,
        C::AfterSpeechModelLoad,
        C::BeforeTranscribe,
        C::Batch,
        C::AfterTranscribe,
        C::BeforeDecodingRelease,
        C::AfterDecodingRelease,
        C::BeforeSpeechModelRelease,
        C::AfterSpeechModelRelease,
        C::BeforeSpeakerModelLoad,
        C::AfterSpeakerModelLoad,
        C::BeforeDiarize,
        C::AfterDiarize,
        C::BeforeAlign,
        C::AfterAlign,
        C::BeforeFinalCleanup,
        C::FinalCleanup,
    ] {
        assert!(seen.contains(&checkpoint), "{} is missing in {seen:?}", checkpoint.label());
    }
    assert_eq!((seen.first(), seen.last()), (Some(&C::PipelineStart), Some(&C::FinalCleanup)));
}
