//! A card that really runs out of memory: `out_of_memory MODEL RECORDING`, for `make gpu-check`.
//!
//! One job runs undisturbed. The same job then runs beside a ballast that takes what is free on the card as soon as
//! the job decodes, again after every step down the ladder, until the job ends on the CPU. Prints one line of JSON:
//! the steps, whether the words stayed the same, what a process holds of the card besides its tensors, and what is left
//! of decoding once it is over.

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use formats::ModelInfo;
use memory::ladder::{LadderState, Step};
use memory::{Checkpoint, DeviceKind, Sample};
use pipeline::{Control, Engine};
use serde_json::json;
use transcript::Transcript;
use wire::{DeviceChoice, ErrorCode, Event, Job, Resume, Stage};

/// The sizes in which the ballast is taken, in bytes: less than the smallest stays free.
const PARTS: [usize; 5] = [1 << 30, 1 << 27, 1 << 24, 1 << 21, 1 << 19];

/// A ladder has fewer steps.
const MOST_STEPS: usize = 40;

struct Ran {
    words: Vec<String>,
    precision: String,
    steps: Vec<Step>,
    samples: Vec<Sample>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().context("usage: out_of_memory MODEL RECORDING")?;
    let recording = arguments.next().context("usage: out_of_memory MODEL RECORDING")?;
    let abilities = ModelInfo::read(model.as_ref())?.abilities;
    let mut job = Job::new(1, recording, model);
    job.device = DeviceChoice::Cuda(0);
    job.language = abilities.told_language.then(|| "en".into());
    job.decoding.temperatures = vec![0.0];
    job.decoding.repair = false;

    let calm = run(&job, None)?;
    ensure!(calm.steps.is_empty(), "without a ballast there was a step: {:?}", calm.steps);
    let card = pipeline::open_card(0).map_err(anyhow::Error::msg)?;
    let wild = run(&job, Some(&card))?;
    ensure!(wild.steps.last() == Some(&Step::Cpu), "the last step was {:?}", wild.steps.last());
    ensure!(!wild.words.is_empty(), "there is no text");

    let of = |checkpoint: Checkpoint| {
        let mut on_card = calm.samples.iter().filter(|sample| sample.kind == DeviceKind::Gpu);
        on_card.find(|sample| sample.checkpoint == checkpoint).and_then(|sample| sample.levels)
    };
    let loaded = of(Checkpoint::AfterSpeechModelLoad).context("nothing is known of the card's memory")?;
    let released = of(Checkpoint::AfterDecodingRelease).context("nothing was released")?;
    let fixed = calm.samples.iter().filter_map(|sample| sample.levels).map(|levels| levels.fixed).max();
    let found = json!({
        "steps": wild.steps,
        "precision": wild.precision,
        "same_words": wild.words == calm.words,
        "words": calm.words.len(),
        "fixed": fixed,
        "left": released.allocated.saturating_sub(loaded.allocated),
    });
    println!("{found}");
    Ok(())
}

/// Runs the job, with an engine after the other where one asks to be replaced, beside a ballast on this card.
fn run(job: &Job, card: Option<&Device>) -> Result<Ran> {
    let mut job = job.clone();
    let mut ran = Ran { words: Vec::new(), precision: String::new(), steps: Vec::new(), samples: Vec::new() };
    loop {
        let mut state: Option<LadderState> = None;
        let mut ballast = Vec::new();
        let ended = Engine::new().transcribe(&job, &Control::default(), &mut |event| match event {
            Event::Progress { progress } if progress.stage == Stage::Transcribe => {
                ballast.extend(card.map(fill).unwrap_or_default());
            }
            Event::Memory { sample } => ran.samples.push(*sample),
            Event::Rung { rung } => {
                // What the step frees is taken again when the next attempt decodes.
                ballast.clear();
                ran.steps.push(rung.step);
                state = Some(rung.to.clone());
            }
            _ => {}
        });
        ensure!(ran.steps.len() < MOST_STEPS, "there is no end: {:?}", ran.steps);
        match ended {
            Ok(Transcript { segments, model, .. }) => {
                let words = segments.iter().flat_map(|segment| &segment.words);
                ran.words = words.map(|word| word.text.clone()).collect();
                ran.precision = model.precision;
                return Ok(ran);
            }
            // What a host does: the same job in a new engine, from where its ladder is.
            Err(stopped) => {
                ensure!(stopped.failure.code == ErrorCode::OutOfMemory, "{}", stopped.failure);
                job.resume = Some(Box::new(Resume { ladder: state, ..Resume::default() }));
            }
        }
    }
}

/// Everything that is free on a card.
fn fill(card: &Device) -> Vec<Tensor> {
    let mut parts = Vec::new();
    for bytes in PARTS {
        while let Ok(part) = Tensor::zeros(bytes, DType::U8, card) {
            parts.push(part);
        }
    }
    parts
}
