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
use wire::{Backend, DeviceChoice, Event, Job, Strategy, VoiceActivity};

use crate::args::Machine;
use crate::console::Console;
use crate::doctor_fit::{Signal, WINDOW_SECONDS};
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::memory_args::Limits;
use crate::outputs::print;
use crate::{models, own_engine};

/// Windows before the one that counts: at the first one memory is fresh.
const WARM_UP: u32 = 1;

/// Measure the speed of this computer, in a few seconds
///
/// Transcribes one window of a synthetic signal with an installed model, with as many tokens as ordinary
/// speech has. From then on `steno models recommend` predicts the speed of other models.
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
    let speed = seconds_of_a_window(&engine, ready(job, &network, precision), &mut interrupt).await;
    engine.shutdown().await;
    let speed = f64::from(WINDOW_SECONDS) / speed?;
    let measured = Measured { device, precision, dimensions: network.dimensions, speed };
    speed::remember(measured.clone())?;
    let told = Told { model: model.name, measured };
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &told)?;
            return writeln!(out);
        }
        let Measured { device, precision, speed, .. } = &told.measured;
        writeln!(out, "{} ({precision}) on {device}: {speed:.1} times real time", told.model)
    })
}

/// Of the installed ones that are no demonstration; else that.
fn largest() -> Result<ModelRef, Ended> {
    let sizes = advisor::list_models().into_iter().filter(|model| !model.demonstration).filter_map(|model| {
        let network = model_info::read(&model.path).ok()?;
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
    let end = ENDS.iter().find(|(size, _)| *size == network.dimensions.vocabulary);
    decoding.suppress_tokens.extend(end.map(|(_, token)| *token));
    job
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
