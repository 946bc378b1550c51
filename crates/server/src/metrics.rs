//! Figures for Prometheus, in its text format (version 0.0.4), since the server was started.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use transcript::Time;
use wire::{Event, Stage};

/// What was counted.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Figures>);

#[derive(Debug, Default)]
struct Figures {
    ended: BTreeMap<&'static str, u64>,
    failures: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    rungs: BTreeMap<String, u64>,
    /// The most bytes held in each stage.
    memory: BTreeMap<String, u64>,
    /// Of the job that runs.
    stage: Option<Stage>,
    uploaded: u64,
    recording_seconds: f64,
    computing_seconds: f64,
    real_time_factor: Option<f64>,
}

/// What is so now.
#[derive(Debug, Clone, Copy)]
pub struct Gauges {
    pub waiting: usize,
    pub running: usize,
}

impl Metrics {
    /// A request was refused; `code` is that of its error.
    pub fn refused(&self, code: &str) {
        *self.lock().refused.entry(code.to_owned()).or_default() += 1;
    }

    pub fn uploaded(&self, bytes: u64) {
        self.lock().uploaded += bytes;
    }

    /// An event of the job that runs.
    pub fn hear(&self, event: &Event) {
        let mut figures = self.lock();
        match event {
            Event::Started { .. } => figures.stage = None,
            Event::Progress { progress } => figures.stage = Some(progress.stage),
            Event::Memory { sample } => {
                let (Some(stage), Some(levels)) = (figures.stage, sample.levels) else { return };
                let most = figures.memory.entry(word(&stage)).or_default();
                *most = levels.reserved.max(levels.peak).max(*most);
            }
            Event::Rung { rung } => *figures.rungs.entry(word(&rung.step)).or_default() += 1,
            _ => {}
        }
    }

    /// A job is over: `outcome` is its state, `failure` the code of its error.
    pub fn ended(&self, outcome: &'static str, failure: Option<&str>) {
        let mut figures = self.lock();
        *figures.ended.entry(outcome).or_default() += 1;
        if let Some(code) = failure {
            *figures.failures.entry(code.to_owned()).or_default() += 1;
        }
    }

    /// A recording of this length took so long.
    pub fn computed(&self, recording: Time, seconds: f64) {
        let mut figures = self.lock();
        figures.recording_seconds += recording.seconds();
        figures.computing_seconds += seconds;
        figures.real_time_factor = (recording > Time::ZERO).then(|| seconds / recording.seconds());
    }

    /// Seconds that a job took on average, if one has ended.
    pub fn seconds_per_job(&self) -> Option<f64> {
        let figures = self.lock();
        let count: u64 = figures.ended.get("finished").copied().unwrap_or_default();
        (count > 0).then(|| figures.computing_seconds / count as f64)
    }

    pub fn text(&self, now: Gauges) -> String {
        let figures = self.lock();
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
            let _ = writeln!(text, "# HELP steno_{name} {help}\n# TYPE steno_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "steno_{name}{labels} {value}");
            }
        };
        let by = |label: &str, values: &BTreeMap<String, u64>| -> Vec<(String, f64)> {
            values.iter().map(|(name, count)| (format!("{{{label}=\"{name}\"}}"), *count as f64)).collect()
        };
        let one = |value: f64| vec![(String::new(), value)];
        let states = [("waiting", now.waiting), ("running", now.running)];
        let states = states.map(|(state, count)| (format!("{{state=\"{state}\"}}"), count as f64));
        metric("jobs", "gauge", "Unfinished jobs.", states.to_vec());
        let ended = ["finished", "failed", "cancelled"].map(|outcome| {
            let count = figures.ended.get(outcome).copied().unwrap_or_default();
            (format!("{{outcome=\"{outcome}\"}}"), count as f64)
        });
        metric("jobs_ended_total", "counter", "Jobs that ended.", ended.to_vec());
        metric("job_failures_total", "counter", "Failed jobs by code.", by("code", &figures.failures));
        metric(
            "requests_refused_total",
            "counter",
            "Refused requests by code.",
            by("code", &figures.refused),
        );
        metric(
            "uploaded_bytes_total",
            "counter",
            "Bytes of uploaded recordings.",
            one(figures.uploaded as f64),
        );
        let seconds = figures.recording_seconds;
        metric("recording_seconds_total", "counter", "Length of the transcribed recordings.", one(seconds));
        let seconds = figures.computing_seconds;
        metric("computing_seconds_total", "counter", "Time that transcribing them took.", one(seconds));
        let factor = figures.real_time_factor.map(one).unwrap_or_default();
        metric("real_time_factor", "gauge", "Time over length of the latest recording.", factor);
        metric("memory_peak_bytes", "gauge", "Most memory held in a stage.", by("stage", &figures.memory));
        metric("rungs_total", "counter", "Steps to less memory.", by("step", &figures.rungs));
        text
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a variant in JSON.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
