//! An engine without audio and without a model: the name of the recording says
//! what happens. It speaks the same messages as the real one.
// A test's part, though cargo builds it as an executable.
#![allow(clippy::unwrap_used)]

use std::io::{self, Stdout};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use transcript::{
    Completeness, Model, Notice, RunInfo, Segment, Severity, Source, Span, Time, Transcript, Word,
};
use wire::{Backend, Command, Description, ErrorCode, Event, Failure, Job, Progress, Stage};

fn main() {
    let out = Arc::new(Mutex::new(io::stdout()));
    let (jobs, queue) = mpsc::channel();
    let (cancel, cancelled) = mpsc::channel();
    let reader_out = Arc::clone(&out);
    std::thread::spawn(move || read(&reader_out, &jobs, &cancel));
    for command in queue {
        match command {
            Command::Transcribe(job) => transcribe(&job, &out, &cancelled),
            Command::DetectLanguages { id, files, .. } => {
                for file in files {
                    let event = if file.to_string().contains("broken") {
                        Event::FileFailed { id, file, error: broken() }
                    } else {
                        let probabilities =
                            vec![("de".into(), 0.02), ("en".into(), 0.97), ("fr".into(), 0.001)];
                        Event::Language { id, file, probabilities }
                    };
                    send(&out, &event);
                }
                send(&out, &Event::LanguagesDone { id });
            }
            _ => {}
        }
    }
}

fn read(out: &Mutex<Stdout>, jobs: &Sender<Command>, cancel: &Sender<()>) {
    let mut work = 0;
    let mut input = io::stdin().lock();
    while let Ok(Some(command)) = wire::read_frame(&mut input) {
        match command {
            Command::Hello { protocol } => send(
                out,
                &Event::Hello {
                    protocol,
                    engine: "scripted".into(),
                    backend: Backend::Cpu,
                    pid: std::process::id(),
                },
            ),
            Command::Ping { nonce } => {
                work += 1;
                send(out, &Event::Pong { nonce, work });
            }
            Command::Describe => send(out, &Event::Description(Box::new(description()))),
            Command::Cancel { .. } => cancel.send(()).unwrap(),
            Command::Shutdown => break,
            job => jobs.send(job).unwrap(),
        }
    }
    std::process::exit(0);
}

fn transcribe(job: &Job, out: &Mutex<Stdout>, cancelled: &Receiver<()>) {
    let id = job.id;
    let name = job.file.as_path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is = |what: &str| name.contains(what);
    if is("broken") {
        let error = broken().file(job.file.clone());
        return send(out, &Event::Failed { id, error, partial: None });
    }
    let whole = transcript(job, &name);
    send(
        out,
        &Event::Started {
            id,
            source: whole.source.clone(),
            model: whole.model.clone(),
            device: "cpu".into(),
        },
    );
    if is("settings") {
        let said = serde_json::json!({
            "memory": job.memory,
            "precision": job.precision,
            "alternatives": job.alternatives.iter().map(|it| &it.installed).collect::<Vec<_>>(),
        });
        let notice = Notice::new("script.settings", Severity::Info, said.to_string());
        send(out, &Event::Notice { id, notice });
    }
    for notice in &whole.notices {
        send(out, &Event::Notice { id, notice: notice.clone() });
    }
    for segment in &whole.segments {
        send(out, &Event::Segment { id, segment: segment.clone() });
        let progress = Progress {
            stage: Stage::Transcribe,
            position: segment.end,
            duration: Some(whole.source.duration),
            speed: Some(2.0),
            left: Some(1.0),
        };
        send(out, &Event::Progress { id, progress });
    }
    if is("dies") {
        std::process::exit(3);
    }
    if is("slow") {
        cancelled.recv().unwrap();
        let partial = Transcript { complete: false, ..whole };
        return send(out, &Event::Cancelled { id, partial: Some(Box::new(partial)) });
    }
    if is("deaf") {
        loop {
            std::thread::park();
        }
    }
    send(out, &Event::Finished { id, transcript: Box::new(whole), renewal: None });
}

fn transcript(job: &Job, name: &str) -> Transcript {
    let is = |what: &str| name.contains(what);
    let segment = |start, end, text: &str| Segment {
        start: Time::from_millis(start),
        end: Time::from_millis(end),
        text: text.into(),
        words: vec![Word { text: format!(" {text}"), probability: 0.9, ..Word::default() }],
        ..Segment::default()
    };
    let stem = name.split('.').next().unwrap_or_default();
    let span = Span::new(Time::from_millis(3_000), Time::from_millis(8_000));
    Transcript {
        schema_version: transcript::SCHEMA_VERSION,
        source: Source { name: name.into(), duration: Time::from_millis(10_000), ..Source::default() },
        model: Model { name: "scripted".into(), precision: "f32".into(), demonstration: is("demo") },
        language: job.language.clone().unwrap_or("en".into()),
        language_probability: None,
        task: job.task,
        settings: serde_json::to_value(&job.decoding).unwrap(),
        segments: if is("silent") {
            Vec::new()
        } else {
            vec![segment(0, 1_500, "Good morning."), segment(1_500, 3_000, &format!("This is {stem}."))]
        },
        discarded: Vec::new(),
        completeness: Completeness {
            gaps: if is("gappy") { vec![span] } else { Vec::new() },
            ..Completeness::default()
        },
        notices: if is("gappy") {
            let text = "The file ends too early.";
            vec![Notice::new("audio.truncated", Severity::Degraded, text).at(Time::from_millis(9_000))]
        } else {
            Vec::new()
        },
        complete: true,
        run: Some(RunInfo {
            finished_at: "2026-01-02T03:04:05Z".into(),
            device: "cpu".into(),
            ..RunInfo::default()
        }),
    }
}

fn broken() -> Failure {
    Failure::new(ErrorCode::AudioBroken, "The sound is damaged from the start.").remedy("Copy it again.")
}

fn description() -> Description {
    Description {
        engine: "scripted".into(),
        backend: Backend::Cpu,
        devices: Vec::new(),
        cpu_reason: Some("This is only a script.".into()),
        threads: 1,
        cpu_features: Vec::new(),
        codecs: vec!["flac".into()],
        ffmpeg: None,
        ffmpeg_codecs: vec!["ac3".into()],
        versions: vec![("candle".into(), "none".into())],
    }
}

fn send(out: &Mutex<Stdout>, event: &Event) {
    let _ = wire::write_frame(&mut *out.lock().unwrap(), event);
}
