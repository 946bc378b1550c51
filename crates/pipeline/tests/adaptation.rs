//! An adaptation with the starter: interrupted, limited and undisturbed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

use std::path::{Path, PathBuf};

use pipeline::{Control, Engine};
use transcript::{Span, Task, Time};
use wire::{Adapt, AdaptSettings, Adapted, ErrorCode, Event, Failure, Job, Lesson, Strategy};

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
        remember: false,
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

/// Two sentences of a minute, in which one word is corrected; the next ones as they are.
fn corrected(folder: &Path) -> Adapt {
    let mut asked = Adapt { remember: true, ..asked(folder, 1) };
    let audio = asked.lessons[0].file.clone();
    let text = std::fs::read(audio.as_path().with_extension("json")).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let lesson = |part: &serde_json::Value| {
        let time = |key: &str| Time::from_seconds(part[key].as_f64().unwrap());
        let text = part["text"].as_str().unwrap();
        Lesson {
            file: audio.clone(),
            span: Some(Span::new(time("start"), time("end"))),
            text: text.replace("folder", "Zolmivane"),
            language: None,
            corrected: text.contains("folder"),
            held_back: false,
        }
    };
    asked.lessons = text["segments"].as_array().unwrap().iter().map(lesson).collect();
    asked
}

#[test]
fn what_is_remembered_changes_the_corrected_words_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let asked = corrected(folder.path());
    let mut heard = Vec::new();
    let adapted = adapt(&asked, &mut |event, _| {
        if let Event::Adapting { progress } = event {
            heard.push((progress.heard, progress.to_hear));
        }
    });
    let adapted = adapted.unwrap();
    let all = heard[heard.len() - 1].1;
    assert!((4..18).contains(&all), "corrected parts alone and together, the others together: {heard:?}");
    assert!(heard.iter().map(|(done, _)| *done).eq(0..=all), "{heard:?}");
    assert!(!folder.path().join("work").exists(), "nothing is left of the way there");
    let file = formats::AdapterFile::read(adapted.adapter.as_path()).unwrap();
    let corrections: Vec<_> =
        file.remembered.iter().map(|it| (it.heard.as_str(), it.word.as_str())).collect();
    assert_eq!(corrections, [("folder", "Zolmivane"); 4], "each alone and behind another");
    assert_eq!((file.matrices.len(), file.card.remembered, file.card.rank), (0, 4, 0));
    file.check_fits(asked.job.model.as_path()).unwrap();

    let recording = asked.lessons[0].file.as_path();
    let transcribe = |adapter: Option<&Path>, strategy, word_times, task| {
        let mut job = Job::new(1, recording, asked.job.model.as_path());
        job.adapter = adapter.map(Into::into);
        job.language = Some("en".into());
        job.task = task;
        (job.strategy, job.decoding.word_times) = (strategy, word_times);
        Engine::new().transcribe(&job, &Control::default(), &mut |_| ()).unwrap()
    };
    for (strategy, word_times) in
        [(Strategy::Sequential, true), (Strategy::Sequential, false), (Strategy::Batched, true)]
    {
        let plain = transcribe(None, strategy, word_times, Task::Transcribe);
        let with = transcribe(Some(adapted.adapter.as_path()), strategy, word_times, Task::Transcribe);
        let times = |it: &transcript::Transcript| -> Vec<_> {
            it.segments.iter().map(|segment| (segment.start, segment.end, segment.words.len())).collect()
        };
        assert_eq!(times(&with), times(&plain), "{strategy:?}");
        let mut recalled = 0;
        for (segment, as_it_was) in with.segments.iter().zip(&plain.segments) {
            recalled += segment.text.matches("Zolmivane").count();
            assert_eq!(segment.text.replace("Zolmivane", "folder"), as_it_was.text, "{strategy:?}");
            let words: String = segment.words.iter().map(|word| word.text.as_str()).collect();
            assert!(words.is_empty() || words.trim() == segment.text, "{words} is not {}", segment.text);
        }
        assert_eq!(recalled, 2, "{strategy:?} {word_times}");
        assert_eq!(with.model.adapter.as_deref(), Some("adapter"));
    }
    // What is translated is not what was corrected.
    let translated = transcribe(Some(adapted.adapter.as_path()), Strategy::Batched, true, Task::Translate);
    assert!(translated.segments.iter().all(|segment| !segment.text.contains("Zolmivane")));
}

#[test]
fn where_the_model_writes_what_is_right_there_is_nothing_to_remember() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = corrected(folder.path());
    // A correction that was held back is not remembered either.
    asked.lessons[1].held_back = true;
    asked.lessons.truncate(8);
    let adapted = adapt(&asked, &mut |_, _| {}).unwrap();
    assert_eq!(adapted.remembered, 0);
    assert!(!folder.path().join("adapter.safetensors").exists());
    // Words of a language that has no spaces between them can't be told from sentences.
    let mut asked = corrected(folder.path());
    asked.lessons.iter_mut().for_each(|lesson| lesson.language = Some("ja".into()));
    assert_eq!(adapt(&asked, &mut |_, _| {}).unwrap().remembered, 0);
}

#[test]
fn memory_that_runs_short_or_a_cancellation_leaves_what_is_remembered_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let states = |adapted: &Adapted| -> Vec<_> {
        let file = formats::AdapterFile::read(adapted.adapter.as_path()).unwrap();
        file.remembered.into_iter().map(|it| (it.word, it.state)).collect()
    };
    let whole = states(&adapt(&corrected(folder.path()), &mut |_, _| {}).unwrap());
    for refused in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = Engine::new();
        engine.refuse_nth(refused);
        let adapted = engine.adapt(&corrected(folder.path()), &Control::default(), &mut |_| {}).unwrap();
        for ((word, state), (expected, whole)) in states(&adapted).iter().zip(&whole) {
            let alike: f32 = state.iter().zip(whole).map(|(a, b)| a * b).sum();
            // With fewer bits where memory asked for it.
            assert!(word == expected && alike > 0.99, "{refused}: {word} {alike}");
        }
    }
    // It goes on behind what it has heard.
    let folder = tempfile::tempdir().unwrap();
    let mut to_hear = 0;
    let stopped = adapt(&corrected(folder.path()), &mut |event, control| {
        if let Event::Adapting { progress } = event {
            to_hear = progress.to_hear;
            if progress.heard == 4 {
                control.cancel();
            }
        }
    });
    assert_eq!(stopped.unwrap_err().code, ErrorCode::Cancelled);
    assert!(!folder.path().join("adapter.safetensors").exists());
    let mut heard = Vec::new();
    let resumed = adapt(&corrected(folder.path()), &mut |event, _| {
        if let Event::Adapting { progress } = event {
            heard.push(progress.heard);
        }
    });
    assert_eq!(states(&resumed.unwrap()), whole);
    assert_eq!(heard, Vec::from_iter(4..=to_hear));
}
