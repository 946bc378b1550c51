//! Texts turned into vectors under every shortage of memory.

use std::path::{Path, PathBuf};

use memory::ladder::Step;
use pipeline::{Control, Engine};
use wire::{DeviceChoice, EmbedTexts, ErrorCode, Event, Failure, Job, TextRole};

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding/tiny-bert")
}

/// Long and short ones.
fn texts() -> Vec<String> {
    (0..300).map(|number| format!("{number} {}", "boat ".repeat(number % 40))).collect()
}

fn asked(limit: Option<u64>) -> EmbedTexts {
    let mut job = Job { device: DeviceChoice::Cpu, ..Job::new(1, "", model()) };
    job.memory.memory_limit = limit;
    EmbedTexts { job, role: TextRole::Passage, texts: texts() }
}

/// Vectors by text, and the steps that were taken.
fn run(engine: &mut Engine, asked: &EmbedTexts) -> (Result<Vec<Vec<f32>>, Failure>, Vec<Step>) {
    let mut vectors = vec![Vec::new(); asked.texts.len()];
    let (mut steps, mut last) = (Vec::new(), 0);
    let result = engine.embed_texts(asked, &Control::default(), &mut |event| match event {
        Event::Vectors { vectors: some, done, total, per_second } => {
            assert!(done > last && done <= total && total == vectors.len() && per_second > 0.0);
            last = done;
            for one in some {
                assert!(vectors[one.text].is_empty(), "text {} twice", one.text);
                vectors[one.text] = one.vector;
            }
        }
        Event::Rung { rung } => steps.push(rung.step),
        _ => {}
    });
    (result.map(|()| vectors), steps)
}

#[track_caller]
fn assert_same(found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(found.len(), expected.len());
    for (text, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(!a.is_empty() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "text {text}");
    }
}

#[test]
fn whichever_reservation_is_refused_no_vector_is_missing() {
    let expected = run(&mut Engine::new(), &asked(None)).0.unwrap();
    let mut engine = Engine::new();
    assert_same(&run(&mut engine, &asked(None)).0.unwrap(), &expected);
    let reservations = engine.reservations();
    assert!(reservations >= 2, "the model's and the work's");
    for number in 1..=reservations {
        let mut engine = Engine::new();
        engine.refuse_nth(number);
        let (vectors, steps) = run(&mut engine, &asked(None));
        assert_eq!(steps, [Step::RetryAfterTrim], "reservation {number}");
        assert_same(&vectors.unwrap(), &expected);
    }
}

/// In a process of its own: the limit is the process's, and the other tests of this program take from it.
#[test]
fn under_a_limit_the_batch_is_halved_until_it_fits() {
    const ALONE: &str = "STENO_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "embedding::under_a_limit_the_batch_is_halved_until_it_fits";
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        let ran = test.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        return;
    }
    let expected = run(&mut Engine::new(), &asked(None)).0.unwrap();
    let mut seen = 0;
    let mut limit = 64 << 20;
    let failure = loop {
        let (vectors, steps) = run(&mut Engine::new(), &asked(Some(limit)));
        match vectors {
            Ok(vectors) => {
                assert_same(&vectors, &expected);
                let halved = steps.iter().filter(|step| **step == Step::HalveBatch).count();
                assert!(halved >= seen, "less memory, larger batches: {limit}");
                seen = halved;
            }
            Err(failure) => break failure,
        }
        limit = limit * 4 / 5;
    };
    assert_eq!(failure.code, ErrorCode::OutOfMemory, "{failure}");
    assert!(seen >= 3, "the smallest limit that suffices takes {seen} halvings");
}

#[test]
fn a_profile_says_how_many_texts_are_computed_together() {
    use memory::settings::EmbeddingProfile;
    for (profile, most, batches) in [
        (EmbeddingProfile::Quality, None, 3),
        (EmbeddingProfile::Speed, None, 2),
        (EmbeddingProfile::Quality, Some(64), 5),
    ] {
        let mut asked = asked(None);
        asked.job.memory.embedding_profile = profile;
        asked.job.memory.batch_size = most;
        let mut count = 0;
        let counted = &mut |event: Event| count += usize::from(matches!(event, Event::Vectors { .. }));
        Engine::new().embed_texts(&asked, &Control::default(), counted).unwrap();
        assert_eq!(count, batches, "{profile:?} {most:?}");
    }
}

#[test]
fn a_cancelled_job_ends_with_that() {
    let control = Control::default();
    let mut done = 0;
    let failure = Engine::new().embed_texts(&asked(None), &control, &mut |event| {
        if let Event::Vectors { done: now, .. } = event {
            done = now;
            control.cancel();
        }
    });
    assert_eq!(failure.unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!(done, 128, "no batch after it");
}
