//! Which model to take on this machine: what `memory` predicts for each, held
//! against what is free on each device, and one of them named with the reason.

use hub::{Catalogue, KnownModel};
use memory::bytes::human;
use memory::fit::Fit;
use memory::{DeviceKind, Network, Precision};
use serde::Serialize;
use wire::{DeviceChoice, Failure, Job};

use crate::alternatives::suits;
use crate::fit::{DeviceMemory, ModelFit};
use crate::model_info::{self, Abilities, ModelInfo};
use crate::speed::{self, Measured};
use crate::{list_models, store};
use config::Preferences;
use supervisor::cards::Lack;
use supervisor::status::{Card, Gpus};

/// Work for a window beyond which a model is slower than speech on most CPUs,
/// in multiplications as [`speed::cost`] counts them. By the measurements in
/// docs/measurements.md, `small` in 32 bits, with 280 billion of them, takes 2
/// cores of a server about a fifth of a recording's length; `medium` takes three
/// times that, and slower machines are common.
const MOST_ON_CPU: u64 = 300_000_000_000;

/// Seconds of recording per second that leave room for other stages and for
/// whatever else the machine does.
const FAST_ENOUGH: f64 = 2.0;

/// A model that could be had or is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The model's name.
    pub id: String,
    /// Its dimensions and what it can do.
    pub network: ModelInfo,
    /// Whether it is on this machine.
    pub installed: bool,
    /// On disk or to be downloaded, in bytes; `None`: not known.
    pub disk: Option<u64>,
    /// As in the catalogue: `en`, `99+`.
    pub languages: Option<String>,
    /// As in the catalogue: an SPDX identifier.
    pub licence: Option<String>,
}

/// How a model would do on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// Whether it is on this machine.
    pub installed: bool,
    /// On disk or to be downloaded, in bytes; `None`: not known.
    pub disk: Option<u64>,
    /// As in the catalogue: `en`, `99+`.
    pub languages: Option<String>,
    /// As in the catalogue: an SPDX identifier.
    pub licence: Option<String>,
    /// Numbers in the network.
    pub parameters: u64,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
    /// Work for a window of 30 s.
    #[serde(skip)]
    pub work: u64,
    /// Why it is comfortable, tight or does not fit.
    pub reason: String,
    /// What it needs and whether that fits.
    #[serde(flatten)]
    pub fit: ModelFit,
}

/// A device, and every choice for it, the best models first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The device, and what is free there.
    pub device: DeviceMemory,
    /// Held by other programs, in bytes.
    pub in_use: u64,
    /// Every model in every precision, the best first.
    pub choices: Vec<Choice>,
    /// As `choices`, of models that can do the job and are good at some languages alone: they are not
    /// recommended where no language is named.
    #[serde(skip)]
    pub where_named: Vec<Choice>,
    /// Which of the choices to take.
    pub recommended: Option<usize>,
    /// Why that one, or why none, in a sentence.
    pub reason: String,
}

/// Advice for every device, and the device to take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// In the order in which the devices were given.
    pub devices: Vec<Advice>,
    /// Cards that do not compute.
    pub unused: Vec<UnusedCard>,
    /// The index of the device to take; `None` where no device has a model that fits.
    pub device: Option<usize>,
    /// What to take, on which device, and why, in a sentence.
    pub reason: String,
}

/// A card that does not compute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnusedCard {
    /// The name that its vendor gave it.
    pub name: String,
    /// Why.
    #[serde(flatten)]
    pub lack: Lack,
    /// The same and what to do, to follow the name.
    pub reason: String,
}

impl UnusedCard {
    /// A card that lacks something.
    pub fn of(name: &str, lack: Lack) -> Self {
        Self { name: name.into(), reason: lack.text(), lack }
    }
}

/// Advice for this machine, for recordings in `language` (`None`: any), with or
/// without telling speakers apart.
///
/// # Errors
/// Where the user's own part of the catalogue can't be read.
pub fn recommend(
    preferences: &Preferences,
    language: Option<&str>,
    speakers: bool,
) -> Result<Recommendation, Failure> {
    let mut job = Job::new(wire::NO_JOB, "", "");
    job.memory = preferences.memory.clone();
    job.precision = preferences.precision;
    job.language = language.map(str::to_owned);
    job.speakers = speakers;
    job.device = preferences.engine.device;
    now(preferences, &job)
}

/// As [`recommend`], for jobs like `job`.
///
/// # Errors
/// Where the user's own part of the catalogue can't be read.
pub fn now(preferences: &Preferences, job: &Job) -> Result<Recommendation, Failure> {
    let (devices, unused) = devices(preferences, job.device);
    Ok(for_devices(&devices, unused, &candidates()?, &speed::measured(), job))
}

impl Recommendation {
    /// The advice for the device to take; for the first one where no device has
    /// a model that fits.
    pub fn advice(&self) -> Option<&Advice> {
        self.devices.get(self.device.unwrap_or(0))
    }

    /// The name of the model to take, installed or not.
    pub fn model(&self) -> Option<&str> {
        let advice = self.advice()?;
        advice.choices.get(advice.recommended?).map(|choice| choice.fit.model.as_str())
    }
}

/// Every card that can compute, or the one that is asked for, then the CPU, each with what is free now; and the cards
/// that can't compute.
pub fn devices(preferences: &Preferences, choice: DeviceChoice) -> (Vec<DeviceMemory>, Vec<UnusedCard>) {
    let settings = &preferences.memory;
    let gpus = if choice == DeviceChoice::Cpu { Gpus::default() } else { Gpus::now(Vec::new()) };
    let is_asked_for = |card: &&Card| match choice {
        DeviceChoice::Cuda(number) | DeviceChoice::First(number) => card.number == Some(number),
        DeviceChoice::Auto | DeviceChoice::Cpu => true,
    };
    let unused = |card: &Card| Some(UnusedCard::of(&card.gpu.name, card.lack.clone()?));
    let usable = gpus.cards.iter().filter(|card| card.lack.is_none()).filter(is_asked_for);
    let host = DeviceMemory::of(false, DeviceChoice::Cpu, settings).ok();
    let devices = usable.map(|card| DeviceMemory::of_card(&card.gpu, settings)).chain(host).collect();
    (devices, gpus.cards.iter().filter(is_asked_for).filter_map(unused).collect())
}

/// The speech models of the catalogue whose dimensions are known, and those
/// that are installed.
///
/// # Errors
/// Where the catalogue can't be read.
pub fn candidates() -> Result<Vec<Candidate>, Failure> {
    let catalogue = Catalogue::public().map_err(store::failure)?;
    let mut found = of_catalogue(&catalogue);
    for model in list_models().into_iter().filter(|model| !model.demonstration) {
        let Ok(network) = model_info::read(&model.path) else { continue };
        let disk = Some(hub::disk_use(&model.path));
        match found.iter_mut().find(|candidate| candidate.id == model.name) {
            Some(known) => {
                (known.installed, known.disk, known.network) = (true, disk, network);
            }
            None => {
                let languages = if network.multilingual { None } else { Some("en".into()) };
                let (id, licence) = (model.name, None);
                found.push(Candidate { id, network, installed: true, disk, languages, licence });
            }
        }
    }
    Ok(found)
}

/// Files of whisper.cpp are the same networks once more: they are for who has
/// them.
pub fn is_candidate(entry: &KnownModel) -> bool {
    entry.kind == hub::ModelKind::Speech
        && entry.format.as_deref() == Some("safetensors")
        && entry.files.is_some()
}

/// The speech models of the catalogue whose dimensions are known, as if none
/// were installed.
pub fn of_catalogue(catalogue: &Catalogue) -> Vec<Candidate> {
    let candidate = |entry: &KnownModel| {
        let dimensions = Network::of_public(&entry.id)?;
        let disk = entry.approx_megabytes.map(|megabytes| megabytes * 1_000_000);
        let bytes_per_weight = disk.map_or(2, |bytes| bytes / dimensions.parameters().total());
        let network = ModelInfo {
            dimensions,
            stored: if bytes_per_weight > 2 { Precision::F32 } else { Precision::F16 },
            multilingual: entry.languages.as_deref() != Some("en"),
            translates: entry.translates_to_english == Some(true),
            abilities: Abilities::of(&dimensions),
        };
        Some(Candidate {
            id: entry.id.clone(),
            network,
            installed: false,
            disk,
            languages: entry.languages.clone(),
            licence: entry.licence.clone(),
        })
    };
    catalogue.models.iter().filter(|entry| is_candidate(entry)).filter_map(candidate).collect()
}

/// As [`recommend`], for these devices and models.
pub fn for_devices(
    devices: &[DeviceMemory],
    unused: Vec<UnusedCard>,
    candidates: &[Candidate],
    speeds: &[Measured],
    job: &Job,
) -> Recommendation {
    let precisions = |network: &ModelInfo, kind| match job.precision {
        Some(precision) => vec![precision],
        None => network.precisions(kind),
    };
    let devices: Vec<Advice> =
        devices.iter().map(|device| advise(device, candidates, speeds, job, precisions)).collect();
    let chosen = |advice: &Advice| advice.recommended.and_then(|number| advice.choices.get(number).cloned());
    // The better model; of equals the device where more is free. A GPU is many
    // times faster, so that the CPU counts only where no GPU has a choice.
    let device = devices
        .iter()
        .enumerate()
        .filter_map(|(number, advice)| Some((number, advice, chosen(advice)?)))
        // As a job chooses its card (`supervisor::cards`): what fits into more memory is never less.
        .max_by_key(|(number, advice, choice)| {
            (
                advice.device.kind == DeviceKind::Gpu,
                choice.fit.check.fit,
                choice.parameters,
                advice.device.free,
                std::cmp::Reverse(*number),
            )
        })
        .map(|(number, ..)| number);
    let taken = device.and_then(|number| devices.get(number));
    let reason = match taken.and_then(|advice| Some((advice, chosen(advice)?))) {
        Some((advice, choice)) => {
            let several = devices.iter().filter(|advice| advice.device.kind == DeviceKind::Gpu).count() > 1;
            let where_ = if several || advice.device.kind == DeviceKind::Host {
                format!(" on {}", advice.device.name)
            } else {
                String::new()
            };
            format!("Use {} ({}){where_}: {}", choice.fit.model, choice.fit.precision, lower(&advice.reason))
        }
        None => "No model of the catalogue fits into the free memory. Close other programs.".into(),
    };
    // Where a card does what it can, another one is no news.
    let on_cpu = taken.is_none_or(|advice| advice.device.kind == DeviceKind::Host);
    let idle = unused.first().filter(|_| on_cpu);
    let reason = match idle {
        Some(card) => format!("{reason} {} {}", card.name, card.reason),
        None => reason,
    };
    Recommendation { devices, unused, device, reason }
}

/// Ranks `candidates` on one device for jobs like `job` and names the one to
/// take: the one ranking behind the command line's recommendation, the
/// catalogue and the list of installed models. `precisions` says in which
/// precisions each may be held.
pub(crate) fn advise(
    device: &DeviceMemory,
    candidates: &[Candidate],
    speeds: &[Measured],
    job: &Job,
    precisions: impl Fn(&ModelInfo, DeviceKind) -> Vec<Precision>,
) -> Advice {
    let (mut choices, mut where_named) = (Vec::new(), Vec::new());
    // What is good at some languages alone is recommended where one of them is named.
    let may_be = |network: &ModelInfo| network.abilities.good_at.is_none() || job.language.is_some();
    let is_known = |network: &ModelInfo| network.abilities.is_measured && suits(network, job);
    for candidate in candidates.iter().filter(|it| is_known(&it.network)) {
        let network = &candidate.network;
        let parameters = network.dimensions.parameters().total();
        for precision in precisions(network, device.kind) {
            let footprint = model_info::footprint(network, device.kind, precision, job);
            let fit = ModelFit::of(&candidate.id, precision.as_str(), &footprint, job, device);
            let choice = Choice {
                installed: candidate.installed,
                disk: candidate.disk,
                languages: candidate.languages.clone(),
                licence: candidate.licence.clone(),
                parameters,
                speed: speed::predict(speeds, &device.name, precision, &network.dimensions),
                work: speed::cost(&network.dimensions),
                reason: fit.check.reason(),
                fit,
            };
            match may_be(network) {
                true => choices.push((footprint.weights, choice)),
                false => where_named.push(choice),
            }
        }
    }
    // A model that is recommended for the language goes first: fewer of its words are wrong there
    // than of those of any model that is not. English alone goes before the same size in all languages
    // where only English is asked for; more mel bins are the newer model.
    let rank = |choice: &Choice| {
        let network = candidates.iter().find(|it| it.id == choice.fit.model).map(|it| &it.network);
        let bins = network.map_or(0, |it| it.dimensions.mel_bins());
        let is_chosen = network.is_some_and(|it| it.abilities.good_at.is_some());
        let own_language = network.is_some_and(|it| !it.multilingual);
        let millions = choice.parameters / 1_000_000;
        (is_chosen, millions / 10, own_language, bins, choice.parameters)
    };
    choices.sort_by(|(a_weights, a), (b_weights, b)| (rank(b), b_weights).cmp(&(rank(a), a_weights)));
    let choices: Vec<Choice> = choices.into_iter().map(|(_, choice)| choice).collect();
    let recommended = choose(device, &choices);
    let reason = reason(device, &choices, recommended);
    Advice {
        in_use: device.total.saturating_sub(device.free),
        device: device.clone(),
        choices,
        where_named,
        recommended,
        reason,
    }
}

/// The best model that is comfortable, in the precision that keeps most of it;
/// else the best that fits at all; where none is fast enough, the smallest.
fn choose(device: &DeviceMemory, choices: &[Choice]) -> Option<usize> {
    let is_right = |choice: &Choice, fit: Fit| choice.fit.check.fit == fit && is_fast(device.kind, choice);
    let first = |fit: Fit| choices.iter().position(|choice| is_right(choice, fit));
    let least = || choices.iter().rposition(|choice| choice.fit.check.fit > Fit::DoesNotFit);
    first(Fit::Comfortable).or_else(|| first(Fit::Tight)).or_else(least)
}

/// By this machine's measured speed, else by what is usual.
pub fn is_fast(kind: DeviceKind, choice: &Choice) -> bool {
    match choice.speed {
        _ if kind == DeviceKind::Gpu => true,
        Some(speed) => speed >= FAST_ENOUGH,
        None => choice.work <= MOST_ON_CPU,
    }
}

fn reason(device: &DeviceMemory, choices: &[Choice], recommended: Option<usize>) -> String {
    let Some((number, choice)) = recommended.and_then(|number| Some((number, choices.get(number)?))) else {
        return format!("No model fits into the {} free on {}.", human(device.free), device.name);
    };
    let is_slow = device.kind == DeviceKind::Host && choice.speed.is_some_and(|speed| speed < FAST_ENOUGH);
    let what = match choice.fit.check.fit {
        _ if is_slow => "No model is fast on this computer, and this is the smallest",
        Fit::Comfortable => "It is the best model that fits comfortably",
        _ => "No model fits comfortably, and this is the best that fits at all",
    };
    let slower = device.kind == DeviceKind::Host
        && !is_slow
        && choices.iter().take(number).any(|better| better.fit.check.fit > Fit::DoesNotFit);
    let speed = choice.speed.map(|speed| format!(", about {speed:.1} times real time"));
    let speed = speed.unwrap_or_default();
    let memory = format!("needs {}, {} free", human(choice.fit.check.peak), human(device.free));
    if slower {
        format!("{what} and is fast enough without a GPU ({memory}{speed}).")
    } else {
        format!("{what} ({memory}{speed}).")
    }
}

/// To follow a colon.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
