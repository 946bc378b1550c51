//! Who holds memory now: the cards, the machine, and this user's engines.

use std::path::PathBuf;

use memory::nvml::{Driver, Gpu, GpuId};
use memory::{Cause, Host, Levels, Probe, ProcessUse, Reading, Unavailable, platform};
use serde::Serialize;

use crate::cards::{self, Around, Lack};
use crate::runs::{EngineRun, Runs};
use wire::DeviceChoice;

/// One look at everything. Bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The cards.
    #[serde(flatten)]
    pub gpu: Gpus,
    /// Ours is what this program itself holds; engines have figures of their own.
    pub host: Result<Reading, Unavailable>,
    /// This user's engines, in order of their process numbers.
    pub engines: Vec<Engine>,
}

/// The cards that the driver tells of, and what is wrong with the driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gpus {
    /// In the driver's order.
    pub cards: Vec<Card>,
    /// A sentence or two, with what to do.
    pub gpu_problem: Option<String>,
    /// Such as `580.65.06`; `None` where there is none or it does not say.
    pub driver: Option<String>,
    /// Where the engine for these cards is.
    pub cuda_engine: Option<PathBuf>,
}

/// One card, and what is held on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    /// The card itself, as the driver describes it.
    #[serde(flatten)]
    pub gpu: Gpu,
    /// N of `cuda:N`; `None` for one that CUDA does not count.
    pub number: Option<usize>,
    /// Why it does not compute; `None`: it can.
    pub lack: Option<Lack>,
    /// Whose it is, as far as the driver says; ours are this user's engines.
    pub reading: Result<Reading, Unavailable>,
    /// Each process on it, with what it holds.
    pub processes: Vec<ProcessUse>,
}

/// One of this user's engines, and what its process holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Engine {
    /// As its host describes it.
    #[serde(flatten)]
    pub run: EngineRun,
    /// Of its resident memory, what is backed by no file; `None` where this
    /// system does not say.
    pub anonymous: Option<u64>,
    /// Resident pages of files, weights above all.
    pub mapped: Option<u64>,
    /// Highest resident memory since its start or the last reset, both kinds
    /// together.
    pub peak_resident: Option<u64>,
}

impl Status {
    /// As it is now. `runs`: where engines are written down.
    pub fn now(runs: Option<&Runs>) -> Self {
        let engines: Vec<Engine> =
            runs.map(Runs::list).unwrap_or_default().into_iter().map(Engine::of).collect();
        let ours = engines.iter().map(|engine| engine.run.engine.pid).collect();
        Self { gpu: Gpus::now(ours), host: Host::new().read(), engines }
    }
}

impl Gpus {
    /// `ours` are the processes that count as ours.
    pub fn now(ours: Vec<u32>) -> Self {
        let driver = Driver::open();
        let version = driver.as_ref().ok().and_then(Driver::version);
        let around = Around::of_this_process(version.as_deref());
        let (cards, unavailable) = match driver.and_then(|driver| cards(&driver, ours, &around)) {
            Ok(cards) => (cards, None),
            Err(unavailable) => (Vec::new(), Some(unavailable)),
        };
        let gpu_problem = problem(around.has_library, &cards, unavailable);
        Self { cards, gpu_problem, driver: version, cuda_engine: around.engine }
    }

    /// The card of a job with this choice: the one that it names, or of those that can compute the one that this
    /// process's jobs take.
    pub fn card(&self, choice: DeviceChoice) -> Option<&Card> {
        let usable = || self.cards.iter().filter(|card| card.lack.is_none());
        let number = match choice {
            DeviceChoice::Cpu => return None,
            DeviceChoice::Cuda(number) | DeviceChoice::First(number) => number,
            DeviceChoice::Auto => {
                cards::taken(usable().filter_map(|card| Some((card.number?, card.gpu.free))))?
            }
        };
        usable().find(|card| card.number == Some(number))
    }
}

/// What is wrong with the two libraries of the driver: the one that computes
/// and the one that says who holds how much.
fn problem(computes: bool, cards: &[Card], unavailable: Option<Unavailable>) -> Option<String> {
    match (computes, unavailable) {
        (true, Some(Unavailable { cause: Cause::NoLibrary, .. })) => Some(
            "The NVIDIA driver can compute (libcuda.so.1), but its libnvidia-ml.so.1 can't be loaded: who holds \
             how much of the card is not known. Install the rest of the driver; its package is often called \
             nvidia-utils or libnvidia-compute."
                .into(),
        ),
        (_, Some(unavailable)) => Some(unavailable.reason),
        (true, None) if cards.is_empty() => {
            Some("The NVIDIA driver runs but knows no card that answers; restart the machine.".into())
        }
        // Where one card can compute, what another lacks keeps no job from a card.
        (_, None) if cards.iter().any(|card| card.lack.is_none()) => None,
        (_, None) => {
            let text = |card: &Card| Some(format!("{} {}", card.gpu.name, card.lack.as_ref()?.text()));
            cards.first().and_then(text)
        }
    }
}

impl Engine {
    fn of(run: EngineRun) -> Self {
        let pid = run.engine.pid;
        let resident = platform::resident(Some(pid));
        Self {
            anonymous: resident.map(|resident| resident.anonymous),
            mapped: resident.map(|resident| resident.file),
            peak_resident: platform::peak_resident(pid),
            run,
        }
    }

    /// The pool's figures, where it has one: as last reported.
    pub fn pool(&self) -> Option<&Levels> {
        self.run.levels.as_ref()
    }
}

fn cards(driver: &Driver, ours: Vec<u32>, around: &Around) -> Result<Vec<Card>, Unavailable> {
    let look = |(gpu, (number, lack)): (Gpu, (Option<usize>, Option<Lack>))| {
        let probe = driver.probe(GpuId::Uuid(gpu.uuid.clone()));
        let (reading, processes) = match probe {
            Ok(probe) => {
                probe.set_ours(ours.clone());
                (probe.read(), probe.processes())
            }
            Err(unavailable) => (Err(unavailable), Vec::new()),
        };
        Card { gpu, number, lack, reading, processes }
    };
    let gpus = driver.gpus()?;
    let judged = cards::judge(&gpus, around);
    Ok(gpus.into_iter().zip(judged).map(look).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_library_is_named_with_what_to_do() {
        let gpu = Gpu {
            uuid: "GPU-1".into(),
            pci: "1".into(),
            name: "Big Card".into(),
            total: 2,
            free: 1,
            capability: None,
        };
        let card = |lack| Card {
            gpu: gpu.clone(),
            number: Some(0),
            lack,
            reading: Ok(Reading::default()),
            processes: Vec::new(),
        };
        let (works, bare, lone) = (card(None), card(Some(Lack::DriverLibrary)), card(Some(Lack::Engine)));
        let mixed = [lone.clone(), works.clone()];
        let missing = |cause, reason: &str| Some(Unavailable { cause, reason: reason.into() });
        let none = "No NVIDIA driver is installed on this machine.";
        // (libcuda, cards, libnvidia-ml) -> parts of what is said; none: nothing is wrong
        type Case<'a> = (bool, &'a [Card], Option<Unavailable>, &'a [&'a str]);
        let cases: [Case; 8] = [
            (false, &[], missing(Cause::NoLibrary, none), &[none]),
            (true, &[], missing(Cause::NoLibrary, none), &["libnvidia-ml.so.1 can't be loaded", "Install"]),
            (false, &[], missing(Cause::NoDriver, "It does not run."), &["It does not run."]),
            (
                false,
                std::slice::from_ref(&bare),
                None,
                &["Big Card", "libcuda.so.1 can't be loaded", "the CPU computes", "Install"],
            ),
            (true, std::slice::from_ref(&works), None, &[]),
            (true, std::slice::from_ref(&lone), None, &["Big Card is not used", "`steno gpu install`"]),
            (true, &mixed, None, &[]),
            (true, &[], None, &["knows no card"]),
        ];
        for (computes, cards, unavailable, parts) in cases {
            let said = problem(computes, cards, unavailable);
            assert_eq!(said.is_none(), parts.is_empty(), "{said:?}");
            for part in parts {
                assert!(said.as_ref().unwrap().contains(part), "no {part:?} in {said:?}");
            }
        }
    }
}
