//! Workers whose engine is a sleep: what the queue itself costs. `simulated submit URL JOBS` submits so many tiny jobs,
//! `simulated work URL WORKERS SECONDS` runs so many workers until the queue is empty, each job taking so many seconds.
//! Both print their rate and their highest memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement, not a program for users")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cluster::{Access, Kind, Recording, Runner, Source, Ssh, Submitted, Told, Worker, WorkerOptions};
use config::Preferences;
use futures_util::StreamExt;
use hub::Connections;
use tokio::sync::{mpsc, watch};
use transcript::{Completeness, Model, Source as Sound, Time, Transcript};
use wire::{DeviceChoice, Event, Failure, FilePath, Job, NO_JOB};

const MODEL: &str = "starter-whisper";

/// A recording of a minute, done after a while.
struct Sleeper(Duration);

impl Runner for Sleeper {
    async fn run(&self, job: Job, _: mpsc::UnboundedSender<Event>, _: watch::Receiver<bool>) -> Event {
        tokio::time::sleep(self.0).await;
        let transcript = Transcript {
            schema_version: transcript::SCHEMA_VERSION,
            source: Sound {
                name: job.file.to_string(),
                duration: Time::from_millis(60_000),
                ..Sound::default()
            },
            model: Model { name: MODEL.into(), precision: "f32".into(), demonstration: true, adapter: None },
            language: "en".into(),
            language_probability: None,
            task: job.task,
            settings: job.settings(),
            segments: Vec::new(),
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: Vec::new(),
            completeness: Completeness::default(),
            notices: Vec::new(),
            complete: true,
            run: None,
        };
        Event::Finished { transcript: Box::new(transcript), renewal: None }
    }

    async fn detect(
        &self,
        _: Job,
        _: Vec<FilePath>,
        _: watch::Receiver<bool>,
    ) -> (Vec<Event>, Option<Failure>) {
        (Vec::new(), None)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, servers, rest @ ..] = arguments.as_slice() else {
        panic!("submit URL JOBS or work URL WORKERS SECONDS")
    };
    let access = Access {
        servers: servers.clone(),
        credentials: None,
        queue: "simulated".into(),
        replicas: 1,
        offline: false,
        log: Connections::nowhere(),
    };
    match (what.as_str(), rest) {
        ("submit", [jobs]) => submit(&access, jobs.parse().unwrap()).await,
        ("work", [workers, seconds]) => {
            work(&access, workers.parse().unwrap(), seconds.parse().unwrap()).await
        }
        _ => panic!("submit URL JOBS or work URL WORKERS SECONDS"),
    }
}

async fn submit(access: &Access, jobs: u64) {
    let cluster = access.connect().await.unwrap();
    let file = root().join("tests/data/sample.flac").canonicalize().unwrap();
    let recording = Recording::of(&file).unwrap();
    let started = Instant::now();
    let order = |number: u64| {
        let mut job = Job::new(NO_JOB, "", "");
        job.decoding.seed = number;
        let source = Source::Path { path: file.as_path().into() };
        Submitted::new(
            format!("{number}.flac"),
            source,
            recording.clone(),
            MODEL.into(),
            Kind::Transcribe,
            &job,
        )
    };
    let sent = futures_util::stream::iter((0..jobs).map(order))
        .map(|order| cluster.submit(order, None))
        .buffered(16);
    let sent: Vec<_> = sent.collect().await;
    assert!(sent.iter().all(Result::is_ok));
    cluster.wake().await;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{jobs} jobs submitted in {seconds:.2} s, {:.0} per second, at most {}",
        jobs as f64 / seconds,
        peak()
    );
}

async fn work(access: &Access, workers: usize, seconds: f64) {
    let cluster = access.connect().await.unwrap();
    let waiting: u64 = cluster.overview().await.unwrap().models.iter().map(|model| model.waiting).sum();
    let done = Arc::new(AtomicU64::new(0));
    let (stopping, stop) = watch::channel(false);
    let model = advisor::find_model(Some(root().join("models").join(MODEL).to_str().unwrap())).unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut running = Vec::new();
    for number in 0..workers {
        let options = WorkerOptions {
            name: format!("simulated-{number}"),
            state: state.path().join(number.to_string()),
            models: vec![model.clone()],
            preferences: Preferences::default(),
            device: DeviceChoice::Cpu,
            ssh: Ssh { key: None, known_hosts: None, log: Connections::nowhere(), offline: true },
            redeliver_after: Duration::from_secs(30),
            max_deliveries: 5,
        };
        let runner = Sleeper(Duration::from_secs_f64(seconds));
        // A connection each, as workers on machines of their own have.
        let cluster = access.connect().await.unwrap();
        running.push(Worker::new(cluster, runner, options).await.unwrap());
    }
    let started = Instant::now();
    let tasks: Vec<_> = running
        .into_iter()
        .map(|worker| {
            let (stop, done) = (stop.clone(), Arc::clone(&done));
            tokio::spawn(worker.run(stop, move |told| {
                if matches!(told, Told::Finished { .. }) {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }))
        })
        .collect();
    while done.load(Ordering::Relaxed) < waiting {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = started.elapsed().as_secs_f64();
    stopping.send_replace(true);
    for task in tasks {
        task.await.unwrap();
    }
    let (ends, _) = cluster.ends(0).await.unwrap();
    println!(
        "{waiting} jobs by {workers} workers in {took:.2} s, {:.1} per second, at most {}; {} are over",
        waiting as f64 / took,
        peak(),
        ends.len()
    );
}
