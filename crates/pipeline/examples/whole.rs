//! What a whole recording takes with a model of random weights, whose text never ends by itself: every window has so
//! many tokens as speech has, and no times. One line of JSON; `scripts/bench-peers.sh` compares it with other programs, and `make
//! gpu-check` runs it on a graphics card.
//!
//! usage: whole MODEL RECORDING PRECISION STRATEGY TOKENS [DEVICE [WINDOWS]]

use std::time::Instant;

use anyhow::{Context, bail};
use memory::DeviceKind;
use pipeline::{Control, Engine};
use wire::{DecodingOptions, DeviceChoice, Event, Job, VoiceActivity};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, recording, precision, strategy, tokens, more @ ..] = &arguments[..] else {
        bail!("usage: whole MODEL RECORDING PRECISION STRATEGY TOKENS [DEVICE [WINDOWS]]");
    };
    let started = Instant::now();
    let vocabulary = models::whisper::vocabulary(model.as_ref())?;
    let device = match more.first().map(String::as_str) {
        None | Some("cpu") => DeviceChoice::Cpu,
        Some("cuda") => DeviceChoice::Cuda(0),
        Some(other) => bail!("no device {other}; there are cpu and cuda"),
    };
    let mut job = Job {
        device,
        language: Some("en".into()),
        voice_activity: VoiceActivity::Off,
        precision: Some(precision.parse().ok().context("no such precision")?),
        strategy: serde_json::from_value(serde_json::Value::String(strategy.clone()))?,
        decoding: DecodingOptions {
            temperatures: vec![0.0],
            compression_ratio_threshold: None,
            log_probability_threshold: None,
            no_speech_threshold: None,
            timestamps: false,
            word_times: false,
            repair: false,
            // Nor are there times, by which windows would end early.
            suppress_tokens: std::iter::once(vocabulary.end_of_text)
                .chain(vocabulary.timestamp_begin..vocabulary.size as u32)
                .collect(),
            max_tokens: Some(tokens.parse()?),
            ..DecodingOptions::default()
        },
        ..Job::new(1, recording.as_str(), model.as_str())
    };
    job.memory.batch_size = more.get(1).map(|windows| windows.parse()).transpose()?;
    let (mut on_card, mut windows) = (0, 0);
    let mut note = |event| match event {
        Event::Memory { sample } if sample.kind == DeviceKind::Gpu => {
            on_card = on_card.max(sample.levels.map_or(0, |levels| levels.peak + levels.fixed));
        }
        Event::Reached { .. } => windows += 1,
        Event::Rung { rung } => eprintln!("a step down: {:?}", rung.step),
        _ => {}
    };
    let transcript = Engine::new()
        .transcribe(&job, &Control::default(), &mut note)
        .map_err(|stopped| anyhow::anyhow!("{}", stopped.failure))?;
    let run = transcript.run.context("the engine says nothing of its run")?;
    let result = serde_json::json!({
        "seconds": started.elapsed().as_secs_f64(),
        "peak": run.peak_memory_bytes.map(|bytes| bytes / (1024 * 1024)),
        "windows": windows,
        "on_card": on_card / (1024 * 1024),
        "stages": run.stages,
    });
    println!("{result}");
    Ok(())
}
