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
use wire::{
    Adapt, Adapted, Backend, Description, EmbedTexts, EncodeVoice, ErrorCode, Event, Failure, FilePath, Job,
    KnownVoice, Quantise,
};

#[global_allocator]
static COUNTED: memory::allocation::Counted = steno_engine::ALLOCATOR;

fn main() {
    let streams = platform::take_streams().unwrap();
    serve(streams, Backend::Cpu, || Double { jobs: 0 })
}

struct Double {
    /// Run by this device so far: shows whether it was replaced.
    jobs: u32,
}

impl Device for Double {
    fn quantise(&mut self, _: &Quantise, _: &Control) -> Result<Event, Failure> {
        Err(Failure::new(ErrorCode::ModelInvalid, "A double makes no models."))
    }

    fn know_voices(&mut self, _: Vec<KnownVoice>) {}

    fn encode_voice(&mut self, _: &EncodeVoice, _: &Control) -> Result<Event, Failure> {
        Err(Failure::new(ErrorCode::NoVoice, "A double hears no voices."))
    }

    fn embed_texts(
        &mut self,
        _: &EmbedTexts,
        _: &Control,
        _: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        Err(Failure::new(ErrorCode::ModelInvalid, "A double has no models."))
    }

    fn adapt(
        &mut self,
        _: &Adapt,
        _: &Control,
        _: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Adapted, Failure> {
        Err(Failure::new(ErrorCode::ModelInvalid, "A double has no models."))
    }

    fn describe(&mut self, _control: &Control) -> Description {
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
        self.jobs += 1;
        let source = Source { name: job.file.to_string(), ..Source::default() };
        emit(Event::Started { source, model: Default::default(), device: "double".into() });
        let mut say = |code: &str, text: String| {
            emit(Event::Notice { notice: Notice::new(code, Severity::Info, text) });
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
                emit(Event::Segment { segment });
            }
            // What is zeroed lazily, grows in place or comes in small pieces
            // counts alike; what is given back does not.
            "modest" => memory::allocation::limited(64 << 20, || {
                for _ in 0..10 {
                    std::hint::black_box(vec![1u8; 32 << 20]);
                }
                std::hint::black_box(vec![1u8; 60 << 20]);
            }),
            "one length" => memory::allocation::limited(64 << 20, || {
                std::hint::black_box(vec![0u8; 1 << 40]);
            }),
            "growing" => memory::allocation::limited(64 << 20, || {
                let mut all = vec![];
                loop {
                    all.extend(std::hint::black_box([1u8; 1000]));
                }
            }),
            "many pieces" => memory::allocation::limited(64 << 20, || {
                let mut all = vec![];
                loop {
                    all.push(std::hint::black_box(Box::new([1u8; 1000])));
                }
            }),
            // The next job is not limited.
            "large" => drop(std::hint::black_box(vec![1u8; 100 << 20])),
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
        _: &Job,
        _: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        for file in files {
            emit(Event::Language { file: file.clone(), probabilities: vec![("en".into(), f32::NAN)] });
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
        turns: Vec::new(),
        chapters: Vec::new(),
        discarded: Vec::new(),
        completeness: Default::default(),
        notices: vec![],
        complete: true,
        run: None,
    }
}
