//! Measures the speed and memory of a Parakeet model on this machine:
//! `cargo run -p models --example bench_parakeet -- FOLDER [PRECISION [cuda]]`; on a graphics card with
//! `--features models/cuda`. Prints one row of the table in docs/measurements.md.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use candle_core::{Device, Tensor};
use memory::{Host, Precision, Probe};
use models::parakeet::{Head, Parakeet};

/// Runs per figure, of which the fastest counts: disturbances only slow a run down.
const RUNS: usize = 3;
/// Tokens of 30 s of fluent English speech, and times that the joint network is asked on the way.
const TYPICAL_TOKENS: u32 = 110;
const TYPICAL_STEPS: u32 = 190;
/// Steps per figure.
const STEPS: u32 = 32;
/// Frames of the spectrogram of 30 s, and of the silence behind them.
const FRAMES: usize = 3050;

fn main() -> Result<()> {
    // As in the engine: before there are threads, else each has a heap of its own, which gives buffers back and takes them
    // anew for each operation.
    memory::platform::fix_allocator(memory::platform::AllocatorSettings::default());
    // As in the engine too: on a thread of the pool, no operation waits for another thread to begin it.
    rayon::ThreadPoolBuilder::new().build()?.install(measure)
}

fn measure() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, precision, device) = match arguments.as_slice() {
        [folder] => (folder, Precision::F32, Device::Cpu),
        [folder, precision] => (folder, precision.parse()?, Device::Cpu),
        [folder, precision, device] if device == "cuda" => (folder, precision.parse()?, Device::new_cuda(0)?),
        _ => bail!("usage: bench_parakeet FOLDER [PRECISION [cuda]]"),
    };
    let host = Host::new().sampled(Duration::from_millis(1));
    let folder = Path::new(folder);
    memory::platform::set_loading(true);
    let model = Parakeet::load(folder, &device, precision, &|| true)?;
    memory::platform::set_loading(false);
    let bands = model.config.dimensions.encoder.mel_bins as usize;
    let spectrogram = Tensor::randn(0f32, 1.0, FRAMES * bands, &Device::Cpu)?.to_vec1::<f32>()?;
    let (encoding, encoded) = best(|| {
        let encoded = model.encoder.forward(&spectrogram, &|| true)?;
        device.synchronize()?;
        Ok(encoded)
    })?;
    let Head::Tdt(tdt) = &model.head else { bail!("only a transducer is measured") };
    let frames = tdt.project(&encoded)?;
    let mut state = tdt.start();
    let (predicting, prediction) = best(|| {
        let mut last = None;
        for token in 0..STEPS {
            let (prediction, after) = tdt.predict(&[token], &[&state])?;
            state = after.into_iter().next().context("no state")?;
            last = Some(prediction);
        }
        device.synchronize()?;
        last.context("no prediction")
    })?;
    let (joining, ()) = best(|| {
        for frame in 0..STEPS as usize {
            tdt.join(&(frames.narrow(0, frame, 1)? + &prediction)?)?.argmax(1)?.to_vec1::<u32>()?;
        }
        Ok(())
    })?;
    let decoding = predicting / STEPS * TYPICAL_TOKENS + joining / STEPS * TYPICAL_STEPS;
    let of = model.config.dimensions;
    // Multiplications and additions of the matrices, each frame with each weight, but for those that project distances: in
    // most precisions that is done as the model is loaded.
    let weights = of.parameters().matrices - of.encoder.layers * of.encoder.width * of.encoder.width;
    let operations = 2.0 * weights as f64 * encoded.dim(0)? as f64;
    println!(
        "| {} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} | {} |",
        folder.file_name().unwrap_or_default().to_string_lossy(),
        model.precision,
        encoding.as_secs_f64() * 1e3,
        operations / encoding.as_secs_f64() / 1e9,
        (predicting / STEPS).as_secs_f64() * 1e3,
        (joining / STEPS).as_secs_f64() * 1e3,
        30.0 / (encoding + decoding).as_secs_f64(),
        host.read()?.ours.and_then(|ours| ours.peak).context("no peak")? >> 20,
    );
    Ok(())
}

/// The shortest time of several runs after one for warming up.
fn best<T>(mut run: impl FnMut() -> Result<T>) -> Result<(Duration, T)> {
    let mut result = run()?;
    let mut shortest = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        result = run()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok((shortest, result))
}
