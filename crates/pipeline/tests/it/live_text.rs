//! Text is shown while it is written, and that of a long recording before it was read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pipeline::{Control, Engine};
use random_models::corpus;
use transcript::{Segment, Transcript};
use wire::{DeviceChoice, Event, Job};

use crate::support::{edit_distance, normalised, starter, wav};

const RATE: usize = audio::SAMPLE_RATE as usize;

/// What a client hears.
#[derive(Debug, Clone, PartialEq)]
enum Heard {
    Live(String),
    Window(u64),
    Prepared,
    Segment(Segment),
    Reached,
}

/// Runs a job until something is heard that `ends` it; `None` where it came to its end.
fn run(job: &Job, listens: bool, ends: fn(&Heard) -> bool) -> (Vec<Heard>, Option<Transcript>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let control = Control::default();
    if listens {
        let ears = Arc::clone(&heard);
        control.on_live_text(move |text| ears.lock().unwrap().push(Heard::Live(text)));
    }
    let result = Engine::new().transcribe(job, &control, &mut |event| {
        let what = match event {
            Event::Window { position, .. } => Heard::Window(position),
            Event::Prepared { .. } => Heard::Prepared,
            Event::Segment { segment } => Heard::Segment(segment),
            Event::Reached { .. } => Heard::Reached,
            _ => return,
        };
        if ends(&what) {
            control.cancel();
        }
        heard.lock().unwrap().push(what);
    });
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    (heard, result.ok())
}

fn trained_parakeet() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-parakeet")
}

/// A minute of speech behind so many seconds of silence, and silence until there are so many seconds in all.
fn recording(folder: &Path, before: usize, seconds: usize) -> PathBuf {
    let minute = corpus::bundled().join("audio/synthetic/en_minute_1.flac");
    let go_on = &mut |_, _| std::ops::ControlFlow::Continue(());
    let read = audio::prepare(&minute, &audio::PrepareOptions::default(), go_on).unwrap();
    let mut samples = vec![0.0; seconds * RATE];
    read.pcm.read(0, &mut samples[before * RATE..][..read.pcm.len() as usize]).unwrap();
    let path = folder.join(format!("{before}-{seconds}.wav"));
    std::fs::write(&path, wav(&samples)).unwrap();
    path
}

fn text(heard: &[Heard]) -> Vec<String> {
    let texts = heard.iter().filter_map(|heard| match heard {
        Heard::Segment(segment) => Some(segment.text.as_str()),
        _ => None,
    });
    normalised(&texts.collect::<Vec<_>>().join(" "))
}

#[test]
fn the_first_words_of_a_long_recording_come_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for model in [starter(), trained_parakeet()] {
        // seconds of silence before the words, and in all -> whether there are words before it is read
        for (before, seconds, expected) in
            [(0, 1_300, true), (50, 1_300, true), (150, 1_300, false), (0, 300, false)]
        {
            let name = format!("{}: {before} of {seconds} s", model.display());
            let file = recording(folder.path(), before, seconds);
            let job = Job { device: DeviceChoice::Cpu, ..Job::new(1, &*file, &*model) };
            let (heard, _) = run(&job, true, |heard| *heard == Heard::Reached);
            let prepared = heard.iter().position(|heard| *heard == Heard::Prepared).unwrap();
            let (first, rest) = heard.split_at(prepared);
            assert_eq!(
                first.iter().any(|heard| matches!(heard, Heard::Live(_))),
                expected,
                "{name}: {first:?}"
            );
            let Some(Heard::Live(words)) = first.last() else { continue };
            // Whatever kills the engine there is that window's doing.
            assert!(matches!(first[0], Heard::Window(_)), "{name}: {first:?}");
            let (words, found) = (normalised(words), text(rest));
            assert!(!found.is_empty());
            // They are heard once and not repaired: a sentence may be missing in them, so that they are compared with
            // the nearest beginning of the text.
            let together = words.len().min(found.len());
            let until = |end| edit_distance(&words[..together], &found[..end]);
            let wrong = (0..=found.len()).map(until).min().unwrap();
            assert!(wrong * 5 <= together, "{name}: {words:?} instead of {found:?}");
        }
    }
}

#[test]
fn text_is_shown_while_it_is_written_and_changes_nothing() {
    let file = corpus::bundled().join("audio/synthetic/en_minute_1.flac");
    for (beams, strategy) in [(1, wire::Strategy::Sequential), (5, wire::Strategy::Batched)] {
        let mut job = Job { device: DeviceChoice::Cpu, strategy, ..Job::new(1, &*file, starter()) };
        job.decoding.beam_size = Some(beams);
        let (heard, transcript) = run(&job, true, |_| false);
        let (_, unheard) = run(&job, false, |_| false);
        assert_eq!(transcript.unwrap().segments, unheard.unwrap().segments, "{beams} beams");
        // Between the beginning of a window and its end; one of several together is shown.
        let windows: Vec<&[Heard]> = heard.split(|heard| *heard == Heard::Reached).collect();
        let with_text = windows.iter().filter(|window| matches!(window.last(), Some(Heard::Segment(_))));
        let shown =
            windows.iter().filter(|window| window.iter().any(|heard| matches!(heard, Heard::Live(_))));
        assert!(with_text.count() >= 2 && shown.count() >= 2, "{beams} beams: {heard:?}");
        for window in windows {
            let behind = window.iter().skip_while(|heard| !matches!(heard, Heard::Segment(_)));
            assert!(
                !behind.clone().any(|heard| matches!(heard, Heard::Live(_))),
                "{beams} beams: {window:?}"
            );
        }
    }
}
