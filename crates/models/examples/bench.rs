//! Measures the speed and memory of a Whisper model on this machine:
//! `cargo run -p models --example bench -- FOLDER [--cuda N] [--precision P] [--at-least PERCENT]`.
//! Prints one row of the table of scripts/bench.sh. With `--windows N` it prints the time of one step of N windows that
//! are decoded together instead, for each N that is given, and with `--tokens N` that of N tokens of one window that are
//! given at once. Fails where the encoder reaches a smaller share of the matrix peak, which is measured in the same run,
//! than `--at-least` says.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use candle_core::{DType, Device, Tensor};
use models::decoder::Decoder;
use models::whisper::{Whisper, WhisperConfig};

/// The default of beam search.
const BEAMS: usize = 5;
/// Tokens of 30 s of fluent English speech, including timestamps.
const TYPICAL_TOKENS: usize = 110;
/// Runs per figure, of which the fastest counts: disturbances only slow a run down.
const RUNS: usize = 3;

const USAGE: &str =
    "usage: bench FOLDER [--cuda N] [--precision P] [--at-least PERCENT] [--windows N]... [--tokens N]...";

fn main() -> Result<()> {
    // As in the engine: before there are threads, else each has a heap of its own, which gives buffers back and takes them
    // anew for each operation.
    memory::platform::fix_allocator(memory::platform::AllocatorSettings::default());
    // As in the engine too: on a thread of the pool, no operation waits for another thread to begin it.
    rayon::ThreadPoolBuilder::new().build()?.install(measure)
}

fn measure() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut device, mut wanted, mut at_least) = (Device::Cpu, None, 0.0);
    let (mut windows, mut tokens) = (Vec::new(), Vec::new());
    let [folder, options @ ..] = arguments.as_slice() else { bail!(USAGE) };
    for option in options.chunks(2) {
        match option {
            [name, number] if name == "--cuda" => device = Device::new_cuda_with_stream(number.parse()?)?,
            [name, precision] if name == "--precision" => wanted = Some(precision.parse()?),
            [name, percent] if name == "--at-least" => at_least = percent.parse()?,
            [name, number] if name == "--windows" => windows.push(number.parse()?),
            [name, number] if name == "--tokens" => tokens.push(number.parse()?),
            _ => bail!(USAGE),
        }
    }
    let folder = Path::new(folder);
    memory::platform::set_loading(true);
    let model =
        Whisper::load(folder, &device, wanted.unwrap_or_else(|| Whisper::preferred(&device)), &|| true)?;
    memory::platform::set_loading(false);
    let (dtype, precision) = (model.dtype, model.precision);
    if !windows.is_empty() {
        return windows_together(&model, &windows);
    }
    if !tokens.is_empty() {
        return tokens_together(&model, &tokens);
    }
    let mel = noise(&model)?;
    let (encoding, audio) = best(&device, || Ok(model.encoder.forward(&mel, &|| true)?))?;
    let speed = encoder_operations(&model.config) / encoding.as_secs_f64();
    let early = time_per_token(&model, &audio, 1, 10)?;
    let late = time_per_token(&model, &audio, 1, 200)?;
    let beams = time_per_token(&model, &audio, BEAMS, 100)?;
    let memory = peak_memory();
    // After the rest, so that its matrices are not in the peak of memory.
    let peak = matrix_peak(&device, dtype)?;
    let times_real_time = |step: Duration| 30.0 / (encoding + step * TYPICAL_TOKENS as u32).as_secs_f64();

    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "| {name} | {precision} | {:.0} | {:.0} | {:.0} % of {:.0} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {} |",
        encoding.as_secs_f64() * 1e3,
        speed / 1e9,
        100.0 * speed / peak,
        peak / 1e9,
        early.as_secs_f64() * 1e3,
        late.as_secs_f64() * 1e3,
        late.as_secs_f64() / early.as_secs_f64(),
        beams.as_secs_f64() * 1e3,
        times_real_time(late),
        times_real_time(beams),
        memory.map_or("?".into(), |bytes| (bytes >> 20).to_string()),
    );
    let share = 100.0 * speed / peak;
    if share < at_least {
        bail!(
            "{name} in {precision}: the encoder reaches {share:.0} % of the matrix peak, less than {at_least:.0} %"
        );
    }
    Ok(())
}

/// The log-mel of one window, of noise.
fn noise(model: &Whisper) -> Result<Tensor> {
    let shape = (1, model.config.dimensions.mel_bins as usize, model.config.window_frames());
    Ok(Tensor::randn(0f32, 0.5, shape, &model.device)?.to_dtype(model.dtype)?)
}

/// Prints what a token costs where several windows are decoded together.
fn windows_together(model: &Whisper, counts: &[usize]) -> Result<()> {
    let audio = model.encoder.forward(&noise(model)?, &|| true)?;
    for &windows in counts {
        let audio = Tensor::cat(&vec![&audio; windows], 0)?;
        let step = time_per_token(model, &audio, 1, 100)?.as_secs_f64() * 1e3;
        let peak = peak_memory()? >> 20;
        println!(
            "{windows} windows: {step:.1} ms per step, {:.2} ms per token, {peak} MB at the peak",
            step / windows as f64
        );
    }
    Ok(())
}

/// Prints what several tokens of one sequence cost that are given at once, as those that a smaller model proposes.
fn tokens_together(model: &Whisper, counts: &[usize]) -> Result<()> {
    const BEFORE: usize = 100;
    const TOKEN: u32 = 220;
    let audio = model.encoder.forward(&noise(model)?, &|| true)?;
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut state = model.decoder.start(&audio, 1, BEFORE + most)?;
    model.decoder.forward(&[TOKEN; BEFORE], &mut state, None, &|| true)?;
    for &count in counts {
        let (time, _) = best(&model.device, || {
            state.truncate(BEFORE);
            let hidden = model.decoder.forward(&vec![TOKEN; count], &mut state, None, &|| true)?;
            Ok(model.decoder.logits(&hidden.squeeze(0)?)?.max(1)?.to_vec1::<f32>()?)
        })?;
        println!("{count} tokens at once: {:.1} ms", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Operations per second of a large square matrix product with the library that
/// the network uses: an upper bound for this machine.
fn matrix_peak(device: &Device, dtype: DType) -> Result<f64> {
    const SIDE: usize = 2048;
    let a = Tensor::randn(0f32, 1.0, (SIDE, SIDE), device)?.to_dtype(dtype)?;
    let (time, _) = best(device, || Ok(a.matmul(&a)?))?;
    Ok(2.0 * (SIDE as f64).powi(3) / time.as_secs_f64())
}

/// Multiplications and additions in the matrix products of encoding one window.
fn encoder_operations(config: &WhisperConfig) -> f64 {
    let positions = config.dimensions.audio_context as f64;
    let (width, hidden) = (config.dimensions.width as f64, config.dimensions.encoder_ffn as f64);
    let convolutions = 2.0 * 2.0 * positions * width * config.dimensions.mel_bins as f64 * 3.0
        + 2.0 * positions * width * width * 3.0;
    let projections = 4.0 * 2.0 * positions * width * width;
    let attention = 2.0 * 2.0 * positions * positions * width;
    let feed_forward = 2.0 * 2.0 * positions * width * hidden;
    convolutions + config.dimensions.encoder_layers as f64 * (projections + attention + feed_forward)
}

/// The time of one step with `before` tokens in the cache. Tokens are forced; the
/// logits are read back as in greedy search, and beams change places after each step.
fn time_per_token(model: &Whisper, audio: &Tensor, beams: usize, before: usize) -> Result<Duration> {
    const STEPS: usize = 16;
    let decoder: &Decoder = &model.decoder;
    let token = 220;
    let mut state = decoder.start(audio, beams, before + STEPS)?;
    let rows = beams * audio.dim(0)?;
    decoder.forward(&vec![token; before * rows], &mut state, None, &|| true)?;
    let (time, ()) = best(&model.device, || {
        state.truncate(before);
        for step in 0..STEPS {
            let hidden = decoder.forward(&vec![token; rows], &mut state, None, &|| true)?;
            decoder.logits(&hidden.squeeze(1)?)?.max(1)?.to_vec1::<f32>()?;
            if beams == 1 {
                continue;
            }
            // By turns the better half of the beams goes on twice, and all change places.
            let source = |beam: usize| if step % 2 == 0 { beam / 2 } else { (beam + 1) % beams };
            state.reorder(&(0..beams).map(source).collect::<Vec<_>>())?;
        }
        Ok(())
    })?;
    Ok(time / STEPS as u32)
}

/// The shortest time of several runs after one for warming up.
fn best<T>(device: &Device, mut run: impl FnMut() -> Result<T>) -> Result<(Duration, T)> {
    let mut result = run()?;
    let mut shortest = Duration::MAX;
    for _ in 0..RUNS {
        device.synchronize()?;
        let start = Instant::now();
        result = run()?;
        device.synchronize()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok((shortest, result))
}

/// The peak of resident memory in bytes, including mapped weights.
fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kilobytes: u64 = line.split_whitespace().next().context("no number")?.parse()?;
    Ok(kilobytes << 10)
}
