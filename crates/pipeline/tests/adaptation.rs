//! An adaptation with the starter: interrupted, limited and undisturbed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

use std::path::{Path, PathBuf};

use pipeline::{Control, Engine};
use transcript::{Span, Time};
use wire::{Adapt, AdaptSettings, Adapted, ErrorCode, Event, Failure, Job, Lesson};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Learns four sentences of a minute of speech, of which one is held back.
fn asked(folder: &Path, epochs: u32) -> Adapt {
    let audio = project().join("tests/data/corpus/audio/synthetic/en_minute_1.flac");
    let text = std::fs::read(audio.with_extension("json")).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let lesson = |(number, part): (usize, &serde_json::Value)| {
        let time = |key: &str| Time::from_seconds(part[key].as_f64().unwrap());
        Lesson {
            file: audio.as_path().into(),
            span: Some(Span::new(time("start"), time("end"))),
            text: part["text"].as_str().unwrap().replace("folder", "Zolmivane"),
            language: None,
            corrected: number != 1,
            held_back: number == 3,
        }
    };
    let lessons = text["segments"].as_array().unwrap().iter().take(4).enumerate().map(lesson).collect();
    let model = project().join("models/starter-whisper");
    Adapt {
        job: Job::new(1, model.as_path(), model.as_path()),
        lessons,
        settings: AdaptSettings { epochs, rank: 4, batch: 2, patience: 100, ..AdaptSettings::default() },
        folder: folder.join("work").into(),
        output: folder.join("adapter.safetensors").into(),
    }
}

fn adapt(asked: &Adapt, see: &mut (dyn FnMut(&Event, &Control) + Send)) -> Result<Adapted, Failure> {
    let control = Control::default();
    let seen = control.clone();
    Engine::new().adapt(asked, &control, &mut |event| see(&event, &seen))
}

fn marks(event: &Event) -> Option<String> {
    match event {
        Event::Memory { sample } => Some(sample.label()),
        _ => None,
    }
}

#[test]
fn an_interrupted_adaptation_goes_on_as_it_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let mut labels = Vec::new();
    let whole = adapt(&asked(folder.path(), 2), &mut |event, _| labels.extend(marks(event))).unwrap();
    let file = formats::AdapterFile::read(whole.adapter.as_path()).unwrap();
    assert!(whole.losses.last() < whole.losses.first(), "it learns: {whole:?}");
    assert_eq!((whole.held_back.len(), file.card.learnt.segments), (3, 3));
    for mark in ["Before Adaptation", "Before Epoch 1", "After Epoch 2", "After Adaptation Cleanup"] {
        assert!(labels.iter().any(|label| label == mark), "{mark} is not in {labels:?}");
    }
    assert!(!folder.path().join("work").exists(), "nothing is left of the way there");

    let folder = tempfile::tempdir().unwrap();
    for stop in [1, 2] {
        let result = adapt(&asked(folder.path(), 2), &mut |event, control| {
            if matches!(event, Event::Adapting { progress } if progress.step == stop) {
                control.cancel();
            }
        });
        assert_eq!(result.unwrap_err().code, ErrorCode::Cancelled);
        assert!(!folder.path().join("adapter.safetensors").exists());
    }
    let resumed = adapt(&asked(folder.path(), 2), &mut |_, _| {}).unwrap();
    assert_eq!((resumed.losses, resumed.held_back), (whole.losses, whole.held_back));
    let again = formats::AdapterFile::read(resumed.adapter.as_path()).unwrap();
    assert_eq!(again.matrices, file.matrices);
}

#[test]
fn with_less_memory_it_comes_to_the_same() {
    const TOLERANCE: f32 = 0.01;
    let folder = tempfile::tempdir().unwrap();
    let whole = adapt(&asked(folder.path(), 1), &mut |_, _| {}).unwrap();
    // Every reservation of the work is refused once, so that every rung is taken.
    for refused in 1..=4 {
        let folder = tempfile::tempdir().unwrap();
        let (mut rungs, mut inputs) = (0, false);
        let mut engine = Engine::new();
        engine.refuse_nth(refused);
        let result = engine.adapt(&asked(folder.path(), 1), &Control::default(), &mut |event| match event {
            Event::Rung { .. } => rungs += 1,
            Event::Adapting { progress } => inputs |= progress.keeps_inputs,
            _ => {}
        });
        let Ok(adapted) = result else { panic!("{refused}: {result:?}") };
        for (less, more) in adapted.losses.iter().zip(&whole.losses) {
            assert!((less / more - 1.0).abs() < TOLERANCE, "{refused}: {less} is not {more}");
        }
        if rungs > 0 {
            assert!(inputs, "{refused}: memory asked for it");
        }
    }
}

#[test]
fn what_is_not_corrected_is_not_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let first_loss = |corrected: fn(usize) -> bool| {
        let mut asked = asked(folder.path(), 1);
        for (number, lesson) in asked.lessons.iter_mut().enumerate() {
            lesson.corrected = corrected(number);
        }
        adapt(&asked, &mut |_, _| {}).map(|adapted| adapted.losses[0])
    };
    // Before the first step nothing has changed: only what is to be written otherwise costs something.
    let (all, one) = (first_loss(|_| true).unwrap(), first_loss(|number| number == 0).unwrap());
    assert!(one > 0.0 && one < 0.8 * all, "{one} of {all}");
    let refused = first_loss(|number| number == 3).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadSettings, "what is held back is not learnt either: {refused}");
}

#[test]
fn the_encoder_learns_where_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    for encoder in [false, true] {
        let mut asked = asked(folder.path(), 1);
        asked.settings.encoder = encoder;
        let adapted = adapt(&asked, &mut |_, _| {}).unwrap();
        let file = formats::AdapterFile::read(adapted.adapter.as_path()).unwrap();
        let of = |side: &str| file.matrices.iter().filter(|matrix| matrix.name.starts_with(side)).count();
        assert_eq!(of("model.encoder.") > 0, encoder);
        assert!(of("model.decoder.") > 0);
    }
}
