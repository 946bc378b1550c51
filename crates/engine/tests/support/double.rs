//! `steno-engine` around a device that computes nothing and behaves as the
//! name of its job's file says. Everything else is the real engine.
// A test's part, though cargo builds it as an executable.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pipeline::{Control, Stopped};
use steno_engine::{Device, platform, serve};
use transcript::{Notice, Segment, Severity, Source, Time, Transcript};
use wire::{Backend, Description, ErrorCode, Event, Failure, FilePath, Job};

fn main() {
    let streams = platform::take_streams().unwrap();
    serve(streams, Backend::Cpu, || Double { jobs: 0 })
}

struct Double {
    /// Run by this device so far: shows whether it was replaced.
    jobs: u32,
}

impl Device for Double {
    fn describe(&mut self) -> Description {
        Description {
            engine: "double".into(),
            backend: Backend::Cpu,
            devices: vec![],
            cpu_reason: None,
            threads: 1,
            cpu_features: vec![],
            codecs: vec![],
            ffmpeg: None,
            ffmpeg_codecs: vec![],
            versions: vec![],
        }
    }

    fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Transcript, Stopped> {
        let id = job.id;
        self.jobs += 1;
        let source = Source { name: job.file.to_string(), ..Source::default() };
        emit(Event::Started { id, source, model: Default::default(), device: "double".into() });
        let mut say = |code: &str, text: String| {
            emit(Event::Notice { id, notice: Notice::new(code, Severity::Info, text) });
        };
        match job.file.to_string().as_str() {
            "good" => say("jobs", self.jobs.to_string()),
            // Through the library, past it, and from another program.
            "print" => {
                println!("a line that a library left in");
                std::io::stdout().flush().unwrap();
                Command::new("echo").arg("a line of another program").status().unwrap();
            }
            "read" => {
                // `cat` returns at once only where it did not get our input.
                Command::new("cat").status().unwrap();
            }
            "panic" => panic!("the planted fault"),
            "panic in a thread" => {
                std::thread::scope(|scope| scope.spawn(|| panic!("far away")).join().unwrap());
            }
            "not a number" => {
                let segment = Segment {
                    mean_log_probability: f32::NEG_INFINITY,
                    compression_ratio: f32::NAN,
                    ..Segment::default()
                };
                emit(Event::Segment { id, segment });
            }
            "obedient" => {
                say("running", String::new());
                while !control.is_cancelled() {
                    control.worked();
                    std::thread::sleep(Duration::from_millis(5));
                }
                let failure = Failure::new(ErrorCode::Cancelled, "Cancelled.");
                return Err(Stopped { failure, partial: Some(Box::new(transcript(job))) });
            }
            "stubborn" => {
                let mut child = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap();
                say("child", child.id().to_string());
                let until = Instant::now() + Duration::from_secs(300);
                while Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(50));
                }
                child.wait().unwrap();
            }
            other => {
                let failure = Failure::new(ErrorCode::FileNotFound, "No such file.").file(other);
                return Err(Stopped { failure, partial: None });
            }
        }
        Ok(transcript(job))
    }

    fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        _: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        for file in files {
            emit(Event::Language {
                id: job.id,
                file: file.clone(),
                probabilities: vec![("en".into(), f32::NAN)],
            });
        }
        Ok(())
    }
}

fn transcript(job: &Job) -> Transcript {
    Transcript {
        schema_version: transcript::SCHEMA_VERSION,
        source: Source { duration: Time::from_millis(1000), ..Source::default() },
        model: Default::default(),
        language: "en".into(),
        language_probability: None,
        task: job.task,
        settings: Default::default(),
        segments: vec![],
        discarded: Vec::new(),
        completeness: Default::default(),
        notices: vec![],
        complete: true,
        run: None,
    }
}
