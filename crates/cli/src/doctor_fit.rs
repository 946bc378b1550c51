use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use advisor::fit::{DeviceMemory, used};
use advisor::model_info;
use config::Preferences;
use memory::bytes::human;
use memory::fit::BatchLimits;
use memory::ladder::{Pins, Step};
use memory::{DeviceKind, Footprint, Mark, Precision, Stage, fit};
use supervisor::Engine;
use wire::{Backend, DeviceChoice, ErrorCode, Event, Failure, Job, Strategy, VoiceActivity};

use crate::args::Doctor;
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::{models, own_engine};

/// Beyond the windows of the batch, so that there is a second batch.
const SECONDS_MORE: u32 = 5;
pub const WINDOW_SECONDS: u32 = 30;
const SAMPLE_RATE: u32 = 16_000;

/// How a job of some batch ended.
struct Outcome {
    marks: Vec<Mark>,
    /// The batch that it ended with; smaller than it began where memory did
    /// not suffice for that.
    batch: u32,
    /// Why it did not end well.
    failure: Option<Failure>,
}

/// Runs a job on a signal made up for it, and compares what it took with what
/// was predicted; where it does not fit, with smaller batches until one does.
pub async fn run(args: &Doctor, model: &OsStr, mut interrupt: Interrupt) -> Result<(), Ended> {
    let preferences =
        Preferences::of_this_user(&args.flags()).map_err(|failure| Ended::Usage(failure.to_string()))?;
    let model = models::named(model)?;
    let network = model_info::read(&model.path)?;
    let mut console = Console::new(false);
    let asked = preferences.memory.batch_size;
    let mut smaller = None;
    loop {
        let (engine, _lease) = own_engine::start(&args.machine, &mut console, &mut interrupt).await?;
        let on_gpu = engine.backend() == Backend::Cuda && args.machine.device() != DeviceChoice::Cpu;
        let kind = if on_gpu { DeviceKind::Gpu } else { DeviceKind::Host };
        let precision = preferences.precision.unwrap_or_else(|| network.usual(kind));
        // The largest batch that makes anything faster is tried first.
        let batch = smaller.or(asked);
        let mut job = job(args, &preferences, &model.path, precision);
        let mut batch = batch.unwrap_or_else(|| job.memory.useful_batch(kind));
        let footprint = model_info::footprint(&network, kind, precision, &job);
        let room = DeviceMemory::of(on_gpu, args.machine.device(), &preferences.memory);
        if let Ok(room) = &room {
            // What the engine would refuse is not tried.
            let limits = BatchLimits { user: Some(batch), ..job.memory.batch_limits(kind) };
            batch = fit::batch(&footprint, room.free, &limits).windows.clamp(1, batch);
        }
        let signal = Signal::write(WINDOW_SECONDS * batch + SECONDS_MORE)?;
        job.file = signal.path.as_path().into();
        job.strategy = if batch > 1 { Strategy::Batched } else { Strategy::Sequential };
        job.memory.batch_size = Some(batch);
        if let Ok(room) = room {
            let fewer = match asked {
                Some(asked) if batch < asked => format!(" ({asked} requested)"),
                _ => String::new(),
            };
            console.info(&format!(
                "Trying {} in {precision} on {}, {} at once{fewer}; {} free.",
                model.name,
                room.name,
                windows(batch),
                human(room.free)
            ));
        }
        let outcome = try_out(&engine, job, batch, &mut interrupt).await;
        engine.shutdown().await;
        let outcome = outcome?;
        let fits = outcome.failure.is_none();
        print(|out| write(&outcome, &footprint, batch, out))?;
        match outcome.failure {
            None => {
                let text = match outcome.batch {
                    fitted if fitted < batch => {
                        format!("A batch of {batch} does not fit, but a batch of {fitted} does.")
                    }
                    fitted => format!("It fits, {} at once.", windows(fitted)),
                };
                print(|out| writeln!(out, "{text}"))?;
            }
            // Only for lack of memory does a smaller batch help.
            Some(failure) if failure.code != ErrorCode::OutOfMemory => return Err(failure.into()),
            Some(_) => {
                console.warning(&format!("There is not enough memory for {} at once.", windows(batch)));
            }
        }
        if fits {
            return Ok(());
        }
        if batch == 1 {
            print(|out| writeln!(out, "It does not fit, not even one window at a time."))?;
            return Err(Ended::SomeFailed);
        }
        smaller = Some((outcome.batch.min(batch) / 2).max(1));
    }
}

/// Nothing but the batch may change: it is this model that is tried out.
fn job(args: &Doctor, preferences: &Preferences, model: &Path, precision: Precision) -> Job {
    let mut job = Job::new(1, "", model);
    job.device = args.machine.device();
    job.threads = preferences.engine.threads;
    job.language = Some("en".into());
    job.voice_activity = VoiceActivity::Off;
    job.precision = Some(precision);
    job.memory = preferences.memory.clone();
    job.memory.pins = Pins { model: true, precision: true, cpu: true, speakers: true };
    // As many beams as there would be drafts at higher temperatures: as much
    // memory in a fraction of the time.
    let decoding = &mut job.decoding;
    if decoding.temperatures.iter().any(|temperature| *temperature > 0.0) {
        decoding.beam_size = decoding.beam_size.max(Some(decoding.best_of));
    }
    decoding.temperatures = vec![0.0];
    job
}

async fn try_out(engine: &Engine, job: Job, batch: u32, interrupt: &mut Interrupt) -> Result<Outcome, Ended> {
    let mut outcome = Outcome { marks: Vec::new(), batch, failure: None };
    let ended = own_engine::follow(engine.transcribe(job), interrupt, |event| {
        match event {
            Event::Memory { sample } => outcome.marks.push(Mark::Sample(*sample)),
            Event::Rung { rung, .. } if rung.step == Step::HalveBatch => {
                outcome.batch = rung.to.settings.batch;
            }
            Event::Finished { .. } => return ControlFlow::Break(Ok(())),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    match ended.await {
        Ok(()) => {}
        Err(Ended::Failed(failure)) => outcome.failure = Some(failure),
        Err(ended) => return Err(ended),
    }
    Ok(outcome)
}

/// What was predicted of each stage and what it took.
fn write(outcome: &Outcome, footprint: &Footprint, batch: u32, out: &mut dyn Write) -> io::Result<()> {
    let predicted = fit::check(footprint, None, u64::MAX, batch).stages;
    let used = used(&outcome.marks);
    writeln!(out, "{:<16}{:>10}{:>10}", "stage", "predicted", "used")?;
    for stage in Stage::ALL {
        let of =
            |list: &[(Stage, u64)]| list.iter().find(|(known, _)| *known == stage).map(|(_, bytes)| *bytes);
        // A stage that was not entered is nothing to tell of, predicted or not.
        let Some(bytes) = of(&used) else { continue };
        let (expected, error) = match of(&predicted) {
            Some(expected) => (
                human(expected),
                format!("  {:+.0} %", 100.0 * (expected as f64 / bytes.max(1) as f64 - 1.0)),
            ),
            None => ("".into(), String::new()),
        };
        writeln!(out, "{:<16}{expected:>10}{:>10}{error}", stage.label(), human(bytes))?;
    }
    if used.is_empty() {
        writeln!(out, "(the engine reported no figures)")?;
    }
    Ok(())
}

pub fn windows(count: u32) -> String {
    if count == 1 { "1 window".into() } else { format!("{count} windows") }
}

/// A recording of nothing in particular, for as long as it is kept.
pub struct Signal {
    pub path: PathBuf,
}

impl Signal {
    /// Noise that swells and fades four times a second, as syllables do:
    /// 16-bit PCM, mono. Fails where the temporary folder can't be written to.
    pub fn write(seconds: u32) -> Result<Self, Ended> {
        let count = seconds * SAMPLE_RATE;
        let mut bytes = Vec::with_capacity(44 + 2 * count as usize);
        bytes.extend(b"RIFF");
        bytes.extend((36 + 2 * count).to_le_bytes());
        bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        bytes.extend(SAMPLE_RATE.to_le_bytes());
        bytes.extend((2 * SAMPLE_RATE).to_le_bytes());
        bytes.extend(b"\x02\0\x10\0data");
        bytes.extend((2 * count).to_le_bytes());
        // A window of it, over and over.
        let window = Self::samples(WINDOW_SECONDS * SAMPLE_RATE);
        let mut left = 2 * count as usize;
        while left > 0 {
            let part = &window[..left.min(window.len())];
            bytes.extend_from_slice(part);
            left -= part.len();
        }
        let path = std::env::temp_dir().join(format!("steno-fit-{}.wav", std::process::id()));
        let unwritable = |error: io::Error| {
            Failure::new(ErrorCode::OutputUnwritable, format!("The test signal can't be written ({error})."))
                .file(path.as_path())
                .remedy("Set TMPDIR to a folder with enough space.")
        };
        std::fs::write(&path, bytes).map_err(unwritable)?;
        Ok(Self { path })
    }

    fn samples(count: u32) -> Vec<u8> {
        let mut state = 1u32;
        let sample = |index| {
            // A linear congruential generator (Numerical Recipes, 7.1).
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from((state >> 20) as i16 - 2048);
            let syllable =
                (f64::from(index) / f64::from(SAMPLE_RATE) * 4.0 * std::f64::consts::PI).sin().abs();
            ((noise * 4.0 * syllable) as i16).to_le_bytes()
        };
        (0..count).flat_map(sample).collect()
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
