use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::Instant;

use advisor::ModelRef;
use advisor::fit::DeviceMemory;
use advisor::model_info::{self, ModelInfo};
use advisor::speed::{self, Measured};
use clap::Args;
use config::Preferences;
use memory::{DeviceKind, Precision};
use serde::Serialize;
use supervisor::Engine;
use wire::{Backend, DeviceChoice, ErrorCode, Event, Failure, Job, Strategy, VoiceActivity};

use crate::args::Machine;
use crate::console::Console;
use crate::doctor_fit::{Signal, WINDOW_SECONDS, windows};
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::memory_args::Limits;
use crate::outputs::print;
use crate::{models, own_engine};

/// Samples of a second, in which an engine says where it is.
const SAMPLES: f64 = 16_000.0;

/// Windows before the one that counts: at the first one memory is fresh.
const WARM_UP: u32 = 1;

/// Measure the speed of this computer, in a minute or less
///
/// Transcribes windows of a synthetic signal with an installed model, with as many tokens as ordinary
/// speech has: one at a time, then several together, as long as that is faster. From then on `steno models
/// recommend` predicts the speed of other models, and as many windows are transcribed together as helped.
#[derive(Debug, Args)]
pub struct Probe {
    /// An installed model [default: the largest]
    #[arg(long, short, value_name = "NAME|FOLDER")]
    pub model: Option<OsString>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub machine: Machine,

    #[command(flatten)]
    pub limits: Limits,
}

#[derive(Debug, Serialize)]
struct Told {
    model: String,
    #[serde(flatten)]
    measured: Measured,
}

pub async fn run(args: Probe, interrupt: Interrupt) -> Ended {
    probe(args, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn probe(args: Probe, mut interrupt: Interrupt) -> Result<(), Ended> {
    let preferences = Preferences::of_this_user(&[args.limits.flags(), args.machine.flags()].concat())
        .map_err(|failure| Ended::Usage(failure.to_string()))?;
    let model = match &args.model {
        Some(model) => models::named(model)?,
        None => largest()?,
    };
    let network = model_info::read(&model.path)?;
    if !is_steady(&network) {
        let message = format!(
            "The speed of {} can't be measured: its text decides how long a window takes.",
            model.name
        );
        return Err(Failure::new(ErrorCode::ModelUnsupported, message)
            .remedy("Measure a Whisper or Parakeet model.")
            .into());
    }
    let signal = Signal::write(WINDOW_SECONDS * (WARM_UP + 1))?;
    let mut console = Console::new(false);
    let (engine, _lease) = own_engine::start(&args.machine, &mut console, &mut interrupt).await?;
    let on_gpu = engine.backend() == Backend::Cuda && args.machine.device() != DeviceChoice::Cpu;
    let kind = if on_gpu { DeviceKind::Gpu } else { DeviceKind::Host };
    let precision = preferences.precision.unwrap_or_else(|| network.usual(kind));
    let device = match DeviceMemory::of(on_gpu, args.machine.device(), &preferences.memory) {
        Ok(room) => room.name,
        Err(_) => "the CPU".into(),
    };
    let mut job = Job::new(1, signal.path.as_path(), model.path.as_path());
    job.device = args.machine.device();
    job.threads = preferences.engine.threads;
    job.memory = preferences.memory;
    let job = ready(job, &network, precision);
    let speed = speed_alone(&engine, job.clone(), &mut interrupt).await;
    let useful_batch = match &speed {
        Ok(_) => best_batch(&engine, &job, kind, &mut interrupt).await,
        Err(_) => Ok(1),
    };
    engine.shutdown().await;
    let (speed, useful_batch) = (speed?, Some(useful_batch?));
    let measured = Measured { device, precision, dimensions: network.dimensions, speed, useful_batch };
    speed::remember(measured.clone())?;
    let told = Told { model: model.name, measured };
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &told)?;
            return writeln!(out);
        }
        let Measured { device, precision, speed, useful_batch, .. } = &told.measured;
        let windows = windows(useful_batch.unwrap_or(1));
        writeln!(out, "{} ({precision}) on {device}: {speed:.1} times real time", told.model)?;
        writeln!(out, "With --strategy batched, fastest with {windows} together")
    })
}

/// Whether every window takes as much work: a Canary writes as many tokens as it likes.
fn is_steady(network: &ModelInfo) -> bool {
    network.abilities.temperatures || !network.abilities.told_language
}

/// Of the installed ones that are no demonstration and can be measured; else the default one.
fn largest() -> Result<ModelRef, Ended> {
    let sizes = advisor::list_models().into_iter().filter(|model| !model.demonstration).filter_map(|model| {
        let network = model_info::read(&model.path).ok().filter(is_steady)?;
        Some((network.dimensions.parameters().total(), model))
    });
    match sizes.max_by_key(|(parameters, _)| *parameters) {
        Some((_, model)) => Ok(model),
        None => Ok(advisor::find_model(None)?),
    }
}

/// Settings with which the work does not depend on the model's text: every window has as
/// many tokens, and none is decoded twice.
fn ready(mut job: Job, network: &ModelInfo, precision: Precision) -> Job {
    /// `<|endoftext|>` of the public vocabularies, by their sizes.
    const ENDS: [(u64, u32); 3] = [(51_864, 50_256), (51_865, 50_257), (51_866, 50_257)];
    job.language = Some("en".into());
    job.voice_activity = VoiceActivity::Off;
    job.precision = Some(precision);
    job.strategy = Strategy::Sequential;
    let decoding = &mut job.decoding;
    decoding.temperatures = vec![0.0];
    decoding.timestamps = false;
    decoding.word_times = false;
    decoding.repair = false;
    decoding.compression_ratio_threshold = None;
    decoding.log_probability_threshold = None;
    decoding.no_speech_threshold = None;
    decoding.max_tokens = Some(speed::TOKENS as usize);
    let end = ENDS.iter().find(|(size, _)| *size == network.dimensions.vocabulary());
    decoding.suppress_tokens.extend(end.map(|(_, token)| *token));
    job
}

/// Seconds of recording per second, one window after the other.
async fn speed_alone(engine: &Engine, job: Job, interrupt: &mut Interrupt) -> Result<f64, Ended> {
    Ok(f64::from(WINDOW_SECONDS) / seconds_of_a_window(engine, job, interrupt).await?)
}

/// How many windows together are fastest: twice as many are tried as long as they are.
async fn best_batch(
    engine: &Engine,
    job: &Job,
    kind: DeviceKind,
    interrupt: &mut Interrupt,
) -> Result<u32, Ended> {
    /// What is less than this faster is not worth its memory.
    const GAIN: f64 = 1.05;
    let most = if kind == DeviceKind::Host { 8 } else { 64 };
    let (mut best, mut fastest) = (1, 0.0);
    let mut batch = 1;
    while batch <= most {
        // Somewhat more, since windows begin and end where it is quiet.
        let signal = Signal::write(WINDOW_SECONDS * (2 * batch + 1))?;
        let mut job = job.clone();
        job.file = signal.path.as_path().into();
        job.strategy = Strategy::Batched;
        job.memory.batch_size = Some(batch);
        // It is what is measured.
        job.memory.useful_batch = Some(batch);
        let speed = speed_of_a_batch(engine, job, batch, interrupt).await?;
        if speed < GAIN * fastest {
            break;
        }
        (best, fastest) = (batch, speed);
        batch *= 2;
    }
    Ok(best)
}

/// Seconds of recording per second in the second batch: at the first one memory is fresh.
async fn speed_of_a_batch(
    engine: &Engine,
    job: Job,
    batch: u32,
    interrupt: &mut Interrupt,
) -> Result<f64, Ended> {
    let (mut windows, mut begun, mut speed) = (0, None, 0.0);
    let measured = own_engine::follow(engine.transcribe(job), interrupt, |event| {
        match event {
            Event::Reached { point, .. } if point.channel == 0 => {
                windows += 1;
                let (now, at) = (Instant::now(), point.position);
                match begun {
                    None if windows >= batch => begun = Some((now, at)),
                    Some((then, from)) if windows >= 2 * batch => {
                        let seconds = (now - then).as_secs_f64().max(1e-6);
                        speed = at.saturating_sub(from) as f64 / SAMPLES / seconds;
                    }
                    _ => {}
                }
            }
            // Where fewer fit than were asked for, nothing was measured: that is no faster.
            Event::Finished { .. } => return ControlFlow::Break(Ok(speed)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    measured.await
}

/// Seconds that the window behind the warm-up took. A model that takes the
/// signal for short sentences would go through it in many windows: each is the
/// same work.
async fn seconds_of_a_window(engine: &Engine, job: Job, interrupt: &mut Interrupt) -> Result<f64, Ended> {
    let mut begun = Instant::now();
    let mut windows = 0;
    let seconds = own_engine::follow(engine.transcribe(job), interrupt, |event| {
        match event {
            Event::Window { .. } => begun = Instant::now(),
            Event::Reached { .. } if windows < WARM_UP => windows += 1,
            Event::Reached { .. } | Event::Finished { .. } => {
                return ControlFlow::Break(Ok(begun.elapsed().as_secs_f64().max(1e-6)));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    seconds.await
}
