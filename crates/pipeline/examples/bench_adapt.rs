//! What training adapters takes: `cargo run -p pipeline --example bench_adapt -- MODEL RECORDING PRECISION MEMORY [encoder]`,
//! where MEMORY is `everything` or `inputs`, what is kept for the way back, and `encoder` has the encoder learn as well.
//! RECORDING has its text beside it in JSON, as those of the tests. Prints a line of JSON: windows, seconds per window, peak of
//! anonymous memory and its prediction in bytes. `scripts/peers/adapt.py` compares it with other programs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use memory::ladder::{LadderSettings, LadderState, Processor};
use memory::{Host, Precision, Probe};
use pipeline::{Control, Engine};
use serde_json::{Value, json};
use transcript::{Span, Time};
use wire::{Adapt, AdaptSettings, DeviceChoice, Event, Job, Lesson, Resume};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some([model, recording, precision, keep]), more) = (arguments.first_chunk(), arguments.get(4..))
    else {
        bail!("usage: bench_adapt MODEL RECORDING PRECISION everything|inputs [encoder]");
    };
    let encoder = match more.unwrap_or_default() {
        [] => false,
        [one] if one == "encoder" => true,
        _ => bail!("the last argument can only be encoder"),
    };
    // As in the engine: before there are threads.
    memory::platform::fix_allocator(memory::platform::AllocatorSettings::default());
    let (model, recording) = (Path::new(model), Path::new(recording));
    let precision: Precision = precision.parse().ok().context("no such precision")?;
    let text: Value = serde_json::from_slice(&std::fs::read(recording.with_extension("json"))?)?;
    let lesson = |part: &Value| {
        let time = |key: &str| part[key].as_f64().map(Time::from_seconds).context("a part without a time");
        Ok(Lesson {
            file: recording.into(),
            span: Some(Span::new(time("start")?, time("end")?)),
            text: part["text"].as_str().context("a part without text")?.to_owned(),
            language: None,
            corrected: true,
            held_back: false,
        })
    };
    let parts = text["segments"].as_array().context("no segments")?;
    let folder = tempfile::tempdir()?;
    let mut asked = Adapt {
        job: Job { device: DeviceChoice::Cpu, ..Job::new(1, model, model) },
        lessons: parts.iter().map(lesson).collect::<anyhow::Result<_>>()?,
        settings: AdaptSettings { epochs: 1, batch: 1, precision, encoder, ..AdaptSettings::default() },
        remember: false,
        folder: folder.path().join("work").into(),
        output: folder.path().join("adapter.safetensors").into(),
    };
    if keep == "inputs" {
        // As on a machine that is short of memory.
        let settings = LadderSettings {
            model: String::new(),
            precision: precision.to_string(),
            batch: 1,
            place: Processor::Cpu,
            speakers: false,
            speaker_batch: 1,
            speaker_place: Processor::Cpu,
        };
        let ladder = LadderState { retried: true, ..LadderState::new(settings) };
        asked.job.resume = Some(Box::new(Resume { ladder: Some(ladder), ..Resume::default() }));
    }
    let host = Host::new().sampled(Duration::from_millis(2));
    // A window is a step.
    let (mut windows, mut predicted, mut started) = (0, 0, None);
    let mut note = |event| {
        if let Event::Adapting { progress } = event {
            started.get_or_insert_with(Instant::now);
            (windows, predicted) = (progress.step, progress.peak);
        }
    };
    let result = Engine::new().adapt(&asked, &Control::default(), &mut note);
    result.map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let seconds = started.context("it did not begin")?.elapsed().as_secs_f64();
    let peak = host.read()?.ours.and_then(|ours| ours.peak).context("no peak")?;
    let each = seconds / f64::from(windows);
    println!("{}", json!({ "windows": windows, "seconds": each, "peak": peak, "predicted": predicted }));
    Ok(())
}
