//! An engine without audio and without a model: the name of the recording says
//! what happens, or what is in it where the server named it. It speaks the same messages as the real one.
// A test's part, though cargo builds it as an executable.
#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io::{self, Read, Stdout, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use memory::Precision;
use transcript::{
    Completeness, Model, Notice, RunInfo, Segment, Severity, Source, Span, Time, Transcript, Word,
};
use wire::{
    Backend, Command, Description, EncodedVoice, Envelope, ErrorCode, Event, Failure, FilePath, Job, JobId,
    Progress, TextVector,
};

/// Names a file to which every job that is received is appended, with the
/// engine's process, as a line of JSON each.
const JOBS: &str = "STENO_SCRIPT_JOBS";
/// Components of a vector.
const WIDTH: f32 = 32.0;
/// Makes it a CUDA engine: `works`, or why it does not compute on its card.
const CARD: &str = "STENO_SCRIPT_CARD";

/// Why the CPU computes.
fn refusal() -> Option<String> {
    match std::env::var(CARD) {
        Ok(card) if card == "works" => None,
        Ok(reason) => Some(reason),
        Err(_) => Some("This is only a script.".into()),
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("peak") {
        return hold_and_release();
    }
    let out = Arc::new(Mutex::new(io::stdout()));
    let (jobs, queue) = mpsc::channel();
    let (cancel, cancelled) = mpsc::channel();
    let reader_out = Arc::clone(&out);
    std::thread::spawn(move || read(&reader_out, &jobs, &cancel));
    for command in queue {
        match command {
            Command::Transcribe(job) => {
                write_down(&job);
                transcribe(&job, &out, &cancelled);
            }
            Command::DetectLanguages { files, job, .. } => {
                write_down(&job);
                detect_languages(files, &job, &out);
            }
            Command::Quantise(asked) => {
                write_down(&Job::new(asked.id, asked.output, asked.model));
                send(&out, Some(asked.id), Event::Quantised { size: 1, kept: Vec::new() });
            }
            Command::EncodeVoice(asked) => {
                write_down(&asked.job);
                let vector = vec![1.0];
                let voice =
                    EncodedVoice { network: "a".into(), vector, seconds: 9.0, seconds_of_others: 0.0 };
                send(&out, Some(asked.job.id), Event::Voice { voice: Box::new(voice) });
            }
            Command::EmbedTexts(asked) => {
                write_down(&asked.job);
                let id = asked.job.id;
                // As long as those of tests/data/embedding/tiny-bert.
                let vector = |text| TextVector { text, vector: vec![WIDTH.sqrt().recip(); WIDTH as usize] };
                let total = asked.texts.len();
                let vectors = (0..total).map(vector).collect();
                send(&out, Some(id), Event::Vectors { vectors, done: total, total, per_second: 1.0 });
                send(&out, Some(id), Event::TextsEmbedded { renewal: None });
            }
            Command::Adapt(asked) => {
                write_line(&asked.job, serde_json::json!({ "adapt": asked }));
                let error = Failure::new(ErrorCode::ModelInvalid, "A scripted engine learns nothing.");
                send(&out, Some(asked.job.id), Event::Failed { error, partial: None });
            }
            _ => {}
        }
    }
}

/// Holds 64 MiB for a moment, says so on standard output and lives on: its
/// highest memory is far above what it holds.
fn hold_and_release() {
    drop(std::hint::black_box(vec![1u8; 64 << 20]));
    println!("released");
    loop {
        std::thread::park();
    }
}

fn write_down(job: &Job) {
    write_line(job, serde_json::json!({}));
}

/// With what else was asked for.
fn write_line(job: &Job, more: serde_json::Value) {
    let Some(path) = std::env::var_os(JOBS) else { return };
    // SAFETY: the call takes numbers only; 0 stands for this process.
    #[cfg(target_os = "linux")]
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    #[cfg(not(target_os = "linux"))]
    let nice = 0;
    let mut line = serde_json::json!({ "job": job, "nice": nice, "pid": std::process::id() });
    if let (Some(line), serde_json::Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    // At once: `writeln!` would write its pieces, and lines of two engines could mix.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Whether no engine before this one tried the file; notes that this one does.
fn is_first_try(file: &Path) -> bool {
    let note = file.with_extension("tried");
    let is_first = !note.exists();
    std::fs::write(note, "").unwrap();
    is_first
}

fn detect_languages(files: Vec<FilePath>, job: &Job, out: &Mutex<Stdout>) {
    let id = job.id;
    for file in files {
        let is = |what: &str| file.to_string().contains(what);
        if is("dies") {
            std::process::exit(3);
        }
        // The second engine that tries it comes through.
        if is("once") && is_first_try(file.as_path()) {
            std::process::exit(3);
        }
        if is("hungry") && job.precision.is_none_or(|precision| precision != Precision::Q8_0) {
            eprintln!("memory allocation of 123 bytes failed");
            std::process::abort();
        }
        let event = if is("broken") {
            Event::FileFailed { file, error: broken() }
        } else {
            let probabilities = vec![("de".into(), 0.02), ("en".into(), 0.97), ("fr".into(), 0.001)];
            Event::Language { file, probabilities }
        };
        send(out, Some(id), event);
    }
    send(out, Some(id), Event::LanguagesDone);
}

fn read(out: &Mutex<Stdout>, jobs: &Sender<Command>, cancel: &Sender<()>) {
    let mut work = 0;
    let mut input = io::stdin().lock();
    while let Ok(Some(command)) = wire::read_frame(&mut input) {
        match command {
            Command::Hello { protocol } => send(
                out,
                None,
                Event::Hello {
                    protocol,
                    engine: "scripted".into(),
                    backend: if std::env::var_os(CARD).is_some() { Backend::Cuda } else { Backend::Cpu },
                    pid: std::process::id(),
                },
            ),
            Command::Ping { nonce } => {
                work += 1;
                send(out, None, Event::Pong { nonce, work });
            }
            Command::Describe => send(out, None, Event::Description(Box::new(description()))),
            Command::Cancel { .. } => cancel.send(()).unwrap(),
            Command::Shutdown => break,
            job => jobs.send(job).unwrap(),
        }
    }
    std::process::exit(0);
}

/// The server calls every uploaded recording `recording`: its first line is its name.
fn said_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut beginning = Vec::new();
    if name == "recording" {
        std::fs::File::open(file).unwrap().take(4096).read_to_end(&mut beginning).unwrap();
    }
    let line = String::from_utf8_lossy(&beginning).lines().next().map(str::to_owned);
    line.unwrap_or(name)
}

fn transcribe(job: &Job, out: &Mutex<Stdout>, cancelled: &Receiver<()>) {
    let id = job.id;
    let name = said_name(job.file.as_path());
    let is = |what: &str| name.contains(what);
    if is("broken") {
        let error = broken().file(job.file.clone());
        return send(out, Some(id), Event::Failed { error, partial: None });
    }
    let whole = transcript(job, &name);
    send(
        out,
        Some(id),
        Event::Started { source: whole.source.clone(), model: whole.model.clone(), device: "cpu".into() },
    );
    if is("settings") {
        let said = serde_json::json!({
            "memory": job.memory,
            "precision": job.precision,
            "alternatives": job.alternatives.iter().map(|it| &it.installed).collect::<Vec<_>>(),
        });
        let notice = Notice::new("script.settings", Severity::Info, said.to_string());
        send(out, Some(id), Event::Notice { notice });
    }
    if is("occupied") {
        send(
            out,
            Some(id),
            Event::Notice { notice: Notice::new("memory.occupied", Severity::Info, "3 GB is in use.") },
        );
    }
    if is("short-of-memory") {
        send(
            out,
            Some(id),
            Event::Notice { notice: Notice::new("memory.batch_halved", Severity::Info, "Fewer windows.") },
        );
    }
    for notice in &whole.notices {
        send(out, Some(id), Event::Notice { notice: notice.clone() });
    }
    for segment in &whole.segments {
        if is("takes") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        send(out, Some(id), Event::Segment { segment: segment.clone() });
        let progress = Progress {
            stage: memory::Stage::Transcribe,
            position: segment.end,
            duration: Some(whole.source.duration),
            speed: Some(2.0),
            left: Some(1.0),
        };
        send(out, Some(id), Event::Progress { progress });
    }
    if is("dies") {
        std::process::exit(3);
    }
    if is("unwritable") {
        // What a disk that is taken away does to the folder of the results.
        let folder = job.file.as_path().parent().unwrap_or(std::path::Path::new("")).join("out");
        std::fs::remove_dir_all(folder).unwrap();
    }
    if is("slow") {
        cancelled.recv().unwrap();
        let partial = Transcript { complete: false, ..whole };
        return send(out, Some(id), Event::Cancelled { partial: Some(Box::new(partial)) });
    }
    if is("deaf") || is("stalls") && is_first_try(job.file.as_path()) {
        loop {
            std::thread::park();
        }
    }
    send(out, Some(id), Event::Finished { transcript: Box::new(whole), renewal: None });
}

fn transcript(job: &Job, name: &str) -> Transcript {
    let is = |what: &str| name.contains(what);
    let time = Time::from_millis;
    // Each word as long as the others.
    let words = |start: u32, end: u32, text: &str| -> Vec<Word> {
        let count = text.split(' ').count() as u32;
        let length = (end - start) / count;
        let word = |(number, word): (u32, &str)| Word {
            text: format!(" {word}"),
            start: time(start + number * length),
            end: time(start + (number + 1) * length),
            probability: 0.9,
        };
        (0..).zip(text.split(' ')).map(word).collect()
    };
    let segment = |start, end, text: &str| Segment {
        start: time(start),
        end: time(end),
        text: text.into(),
        words: words(start, end, text),
        ..Segment::default()
    };
    let stem = name.split('.').next().unwrap_or_default();
    let span = Span::new(Time::from_millis(3_000), Time::from_millis(8_000));
    Transcript {
        schema_version: transcript::SCHEMA_VERSION,
        source: Source { name: name.into(), duration: Time::from_millis(10_000), ..Source::default() },
        model: Model {
            name: "scripted".into(),
            precision: "f32".into(),
            demonstration: is("demo"),
            adapter: None,
        },
        language: job.language.clone().unwrap_or("en".into()),
        language_probability: None,
        task: job.task,
        settings: serde_json::to_value(&job.decoding).unwrap(),
        segments: if is("silent") {
            Vec::new()
        } else {
            vec![segment(0, 1_500, "Good morning."), segment(1_500, 3_000, &format!("This is {stem}."))]
        },
        turns: Vec::new(),
        chapters: Vec::new(),
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
        backend: if refusal().is_none() { Backend::Cuda } else { Backend::Cpu },
        devices: Vec::new(),
        cpu_reason: refusal(),
        threads: 1,
        cpu_features: Vec::new(),
        codecs: vec!["flac".into()],
        ffmpeg: None,
        ffmpeg_codecs: vec!["ac3".into()],
        versions: vec![("candle".into(), "none".into())],
    }
}

fn send(out: &Mutex<Stdout>, job: Option<JobId>, body: Event) {
    let _ = wire::write_frame(&mut *out.lock().unwrap(), &Envelope { job, body });
}
