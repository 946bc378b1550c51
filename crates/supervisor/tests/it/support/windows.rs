//! An engine that works through windows of a made-up recording and ends as
//! the recording's name says: `6 windows, kill 2 once, abort 4 always.wav`.
//!
//! Verbs: `kill` (as the kernel does where memory runs out), `abort`,
//! `allocation` (an abort that blames an allocation), `leave` (exits), `hang`
//! (no work any more), `renew` (asks for a new engine), `broken` (the file
//! is). Each happens at a window, `never` (it is counted only), `once`, `twice` or `always`; `start` in
//! place of a number is before the first window.

use std::path::Path;

use memory::ladder::{Ladder, LadderSettings, LadderState, Processor, Trouble};
use transcript::{Completeness, Model, Notice, SCHEMA_VERSION, Segment, Severity, Source, Time, Transcript};
use wire::{ErrorCode, Event, Failure, Job, Point, Progress, Stage};

use crate::{forever, tell};

/// Samples of a window.
pub const WINDOW: u64 = 480_000;

pub fn transcribe(job: &Job) {
    let id = job.id;
    let name = job.file.as_path().file_stem().unwrap().to_str().unwrap();
    let mut parts = name.split(", ");
    let windows: u64 = parts.next().unwrap().split(' ').next().unwrap().parse().unwrap();
    let deeds: Vec<Vec<&str>> = parts.map(|part| part.split(' ').collect()).collect();
    let resume = job.resume.as_deref().cloned().unwrap_or_default();
    let source = Source { name: name.into(), ..Source::default() };
    let model = Model { name: "double".into(), precision: "f32".into(), demonstration: false, adapter: None };
    tell(id, Event::Started { source: source.clone(), model: model.clone(), device: "cpu".into() });
    do_deeds(job, &deeds, "start");
    let first = resume.point.as_ref().map_or(0, |point| point.position / WINDOW);
    let mut notices = resume.notices.clone();
    let mono = Notice::new("audio.mono", Severity::Info, "It is mono.");
    if !notices.contains(&mono) {
        tell(id, Event::Notice { notice: mono.clone() });
        notices.push(mono);
    }
    let mut segments = resume.segments.clone();
    for window in first..windows {
        let position = window * WINDOW;
        if !resume.skip.contains(&position) {
            tell(id, Event::Window { channel: 0, position });
            for half in 0..2 {
                // A window's second segment is still on its way when it ends.
                if half == 1 {
                    do_deeds(job, &deeds, &window.to_string());
                }
                let segment = segment(job, window, half);
                tell(id, Event::Segment { segment: segment.clone() });
                segments.push(segment);
            }
        }
        let point = Point { position: position + WINDOW, ..Point::default() };
        tell(id, Event::Reached { point: Box::new(point), discarded: Vec::new() });
        let position = Time::from_millis(30_000 * (window as u32 + 1));
        let progress =
            Progress { stage: Stage::Transcribe, position, duration: None, speed: None, left: None };
        tell(id, Event::Progress { progress });
    }
    let transcript = transcript(job, source, model, segments, notices);
    let renewal = name.contains("worn").then_some(memory::Renewal::Leak);
    tell(id, Event::Finished { transcript: Box::new(transcript), renewal });
}

/// A whole one.
pub fn transcript(
    job: &Job,
    source: Source,
    model: Model,
    segments: Vec<Segment>,
    notices: Vec<Notice>,
) -> Transcript {
    Transcript {
        schema_version: SCHEMA_VERSION,
        source,
        model,
        language: job.language.clone().unwrap_or_else(|| "en".into()),
        language_probability: None,
        task: job.task,
        settings: job.settings(),
        segments,
        turns: Vec::new(),
        chapters: Vec::new(),
        discarded: Vec::new(),
        completeness: Completeness::default(),
        notices,
        complete: true,
        run: None,
    }
}

fn do_deeds(job: &Job, deeds: &[Vec<&str>], place: &str) {
    for deed in deeds {
        let [verb, at, times] = deed.as_slice() else { continue };
        let most = match *times {
            // Only counted.
            "never" => 0,
            "once" => 1,
            "twice" => 2,
            _ => usize::MAX,
        };
        if *at == place && count(job.file.as_path(), &format!("{verb}{at}")) < most {
            act(job, verb);
        }
    }
}

/// How often this was asked before; kept beside the recording, since the
/// process that asks does not live on.
fn count(recording: &Path, what: &str) -> usize {
    let file = recording.with_extension(what);
    let before = std::fs::read(&file).unwrap_or_default();
    std::fs::write(&file, [&before[..], b"x"].concat()).unwrap();
    before.len()
}

fn act(job: &Job, verb: &str) {
    match verb {
        "kill" => {
            // SAFETY: the call takes numbers only and is about this process.
            #[cfg(unix)]
            unsafe {
                libc::kill(libc::getpid(), libc::SIGKILL);
            }
            forever();
        }
        "abort" => std::process::abort(),
        "allocation" => {
            eprintln!("memory allocation of 123 bytes failed");
            std::process::abort();
        }
        "leave" => std::process::exit(7),
        "hang" => forever(),
        "renew" => {
            let state = LadderState::new(LadderSettings {
                model: "double".into(),
                precision: "f32".into(),
                batch: 1,
                place: Processor::Gpu,
                speakers: false,
                speaker_batch: 1,
                speaker_place: Processor::Gpu,
            });
            let state = job.resume.as_ref().and_then(|resume| resume.ladder.clone()).unwrap_or(state);
            let rung = Ladder::default().next(memory::Stage::Transcribe, &state, Trouble::DeviceError);
            tell(job.id, Event::Rung { rung: Box::new(rung.unwrap()) });
            fail(job, Failure::new(ErrorCode::OutOfMemory, "The engine is started anew."));
        }
        "broken" => fail(job, Failure::new(ErrorCode::AudioBroken, "The sound is damaged.")),
        other => panic!("no such deed: {other}"),
    }
}

fn fail(job: &Job, error: Failure) {
    tell(job.id, Event::Failed { error, partial: None });
    // The thread that takes commands goes on.
    forever();
}

pub fn segment(job: &Job, window: u64, half: u64) -> Segment {
    let start = Time::from_millis((30_000 * window + 15_000 * half) as u32);
    let end = Time::from_millis(start.millis() + 14_000);
    let text = format!("Window {window}, half {half}.");
    let text = if job.task == transcript::Task::Translate { format!("English: {text}") } else { text };
    Segment { start, end, text, ..Segment::default() }
}
