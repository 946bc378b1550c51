//! What a whole recording takes with a model of random weights, whose text never ends by itself: every window has so
//! many tokens as speech has. One line of JSON; `scripts/bench-peers.sh` compares it with other programs.
//!
//! usage: whole MODEL RECORDING PRECISION STRATEGY TOKENS

use std::time::Instant;

use anyhow::{Context, bail};
use pipeline::{Control, Engine};
use wire::{DecodingOptions, DeviceChoice, Job, VoiceActivity};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, recording, precision, strategy, tokens] = &arguments[..] else {
        bail!("usage: whole MODEL RECORDING PRECISION STRATEGY TOKENS");
    };
    let started = Instant::now();
    let vocabulary = models::whisper::vocabulary(model.as_ref())?;
    let job = Job {
        device: DeviceChoice::Cpu,
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
            suppress_tokens: vec![vocabulary.end_of_text],
            max_tokens: Some(tokens.parse()?),
            ..DecodingOptions::default()
        },
        ..Job::new(1, recording.as_str(), model.as_str())
    };
    let transcript = Engine::new()
        .transcribe(&job, &Control::default(), &mut |_| {})
        .map_err(|stopped| anyhow::anyhow!("{}", stopped.failure))?;
    let run = transcript.run.context("the engine says nothing of its run")?;
    let result = serde_json::json!({
        "seconds": started.elapsed().as_secs_f64(),
        "peak": run.peak_memory_bytes.map(|bytes| bytes / (1024 * 1024)),
        "stages": run.stages,
    });
    println!("{result}");
    Ok(())
}
