//! Which NVIDIA cards an engine can compute on, by which number, and what the others lack.
//!
//! Cards have the numbers of their places on the bus, as in `nvidia-smi`: engines are started with
//! `CUDA_DEVICE_ORDER=PCI_BUS_ID`, since CUDA would otherwise count the fastest first.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use memory::nvml::Gpu;
use serde::{Deserialize, Serialize};
use wire::{Backend, Description};

use crate::find::{self, SearchContext};
use crate::status::Gpus;
use crate::{Engine, EngineOptions};

/// The first that CUDA 13 compiles for, and with it every CUDA engine of this version.
pub const FIRST_CAPABILITY: (u32, u32) = (7, 5);

/// The first driver that serves CUDA 13.0, by the release notes of that.
pub const FIRST_DRIVER: u32 = 580;

/// How the refusal of an engine begins that did not start.
pub(crate) const DID_NOT_START: &str = "its engine did not start: ";

/// For engines; see the module.
pub(crate) const ORDER: (&str, &str) = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID");

/// Why a card does not compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "lacks", rename_all = "snake_case")]
pub enum Lack {
    /// The driver's library for computing, libcuda.so.1.
    DriverLibrary,
    /// A driver that is new enough.
    Driver {
        /// Its version.
        found: String,
    },
    /// What the engine's code needs: the card is older.
    Capability {
        /// Such as `6.1`.
        found: String,
    },
    /// An engine for NVIDIA cards.
    Engine,
    /// Use: `STENO_BACKEND=cpu` forbids it.
    Permission,
    /// Use: `CUDA_VISIBLE_DEVICES` leaves the card out.
    Visibility,
    /// The engine's consent: it was asked and does not compute on the card.
    Consent {
        /// What it said, in a sentence or two.
        reason: String,
    },
}

impl Lack {
    /// What follows the card's name: why it does not compute, and what to do.
    pub fn text(&self) -> String {
        match self {
            Self::DriverLibrary => "is there and its driver runs, but the driver's libcuda.so.1 can't be loaded: the \
                                    CPU computes. Install the driver's libraries for computing; their package is often called libcuda1, \
                                    libnvidia-compute or nvidia-driver-cuda-libs."
                .into(),
            Self::Capability { found } => {
                let (major, minor) = FIRST_CAPABILITY;
                format!("is not used: it has compute capability {found}, and Steno needs {major}.{minor} or newer.")
            }
            Self::Driver { found } => format!(
                "is not used: its driver is {found}, and Steno needs {FIRST_DRIVER} or newer. Update the driver."
            ),
            Self::Engine => "is not used: the engine for NVIDIA cards is not installed. Get it with \
                             `steno gpu install`."
                .into(),
            Self::Permission => "is not used: STENO_BACKEND is set to cpu. Unset it to use the card.".into(),
            Self::Visibility => "is not used: CUDA_VISIBLE_DEVICES leaves it out.".into(),
            Self::Consent { reason } => format!("is not used: {reason}"),
        }
    }
}

/// What a machine has to compute on cards with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    /// Whether libcuda.so.1 can be loaded.
    pub has_library: bool,
    /// The driver's version, where it says so.
    pub driver: Option<String>,
    /// Whether the user forbids the CUDA engine.
    pub cpu_only: bool,
    /// Where the CUDA engine is.
    pub engine: Option<PathBuf>,
    /// What that engine said of its card when it was asked and refused it.
    pub refusal: Option<String>,
    /// `CUDA_VISIBLE_DEVICES`.
    pub visible: Option<String>,
}

impl Around {
    /// As this process's environment says; `driver` is the driver's version.
    pub fn of_this_process(driver: Option<&str>) -> Self {
        let context = SearchContext::of_this_process(false);
        let engine = find::cuda_engine(&SearchContext { cpu_only: false, ..context.clone() });
        Self {
            // A driver may lie where the engine alone looks.
            has_library: crate::platform::has_cuda_driver()
                || engine.as_ref().is_some_and(|found| found.has_driver()),
            driver: driver.map(str::to_owned),
            cpu_only: context.cpu_only,
            refusal: engine.as_ref().and_then(|found| Answer::remembered(&found.program, driver)?.refusal),
            engine: engine.map(|found| found.program),
            visible: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
        }
    }
}

/// The number of each card among CUDA's devices, and what it lacks.
pub fn judge(gpus: &[Gpu], around: &Around) -> Vec<(Option<usize>, Option<Lack>)> {
    let numbers = numbers(gpus, around.visible.as_deref());
    let is_old = |version: &&String| {
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        major.is_some_and(|major| major < FIRST_DRIVER)
    };
    let old_driver = around.driver.as_ref().filter(is_old);
    let lack = |gpu: &Gpu, number: Option<usize>| {
        let old = gpu.capability.filter(|found| *found < FIRST_CAPABILITY);
        match old {
            Some((major, minor)) => Some(Lack::Capability { found: format!("{major}.{minor}") }),
            None if !around.has_library => Some(Lack::DriverLibrary),
            None if old_driver.is_some() => old_driver.map(|found| Lack::Driver { found: found.clone() }),
            None if around.cpu_only => Some(Lack::Permission),
            None if around.engine.is_none() => Some(Lack::Engine),
            None if number.is_none() => Some(Lack::Visibility),
            None => around.refusal.clone().map(|reason| Lack::Consent { reason }),
        }
    };
    gpus.iter().zip(numbers).map(|(gpu, number)| (number, lack(gpu, number))).collect()
}

/// CUDA counts what `CUDA_VISIBLE_DEVICES` lists, numbers or beginnings of UUIDs, up to the first that names no card.
fn numbers(gpus: &[Gpu], visible: Option<&str>) -> Vec<Option<usize>> {
    let Some(visible) = visible else { return (0..gpus.len()).map(Some).collect() };
    let place = |name: &str| match name.trim().parse::<usize>() {
        Ok(number) => (number < gpus.len()).then_some(number),
        Err(_) => gpus.iter().position(|gpu| name.trim().len() > 4 && gpu.uuid.starts_with(name.trim())),
    };
    let listed: Vec<usize> = visible.split(',').map_while(place).collect();
    (0..gpus.len()).map(|card| listed.iter().position(|place| *place == card)).collect()
}

/// The number of the card that a job takes which names none: of those that can compute the one with the most free
/// memory, of equals the first.
pub fn roomiest(cards: impl Iterator<Item = (usize, u64)>) -> Option<usize> {
    cards.max_by_key(|(number, free)| (*free, std::cmp::Reverse(*number))).map(|(number, _)| number)
}

/// The card of this process's jobs that name none: decided once, so that what is recommended, what is announced and
/// what an engine is told is one card, also when the first job fills it.
pub(crate) fn taken(cards: impl Iterator<Item = (usize, u64)>) -> Option<usize> {
    static TAKEN: OnceLock<usize> = OnceLock::new();
    let cards: Vec<(usize, u64)> = cards.collect();
    let now = roomiest(cards.iter().copied())?;
    let taken = *TAKEN.get_or_init(|| now);
    Some(if cards.iter().any(|(number, _)| *number == taken) { taken } else { now })
}

/// What a CUDA engine said when it was asked what it computes on. It holds until the engine or the driver is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    engine: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
    driver: Option<String>,
    refusal: Option<String>,
}

impl Answer {
    fn of(engine: &Path, driver: Option<&str>, refusal: Option<String>) -> Option<Self> {
        let file = std::fs::metadata(engine).ok()?;
        Some(Self {
            engine: engine.into(),
            length: file.len(),
            modified: file.modified().ok(),
            driver: driver.map(str::to_owned),
            refusal,
        })
    }

    fn path() -> Option<PathBuf> {
        Some(config::folders::steno_state()?.join("cuda-engine.json"))
    }

    fn remembered(engine: &Path, driver: Option<&str>) -> Option<Self> {
        let answer: Self = serde_json::from_slice(&std::fs::read(Self::path()?).ok()?).ok()?;
        (Self::of(engine, driver, answer.refusal.clone())? == answer).then_some(answer)
    }

    /// What can't be written is asked again.
    fn remember(&self) -> Option<()> {
        let path = Self::path()?;
        std::fs::create_dir_all(path.parent()?).ok()?;
        let beside = path.with_extension(format!("json.{}", std::process::id()));
        std::fs::write(&beside, serde_json::to_vec(self).ok()?).ok()?;
        std::fs::rename(&beside, &path).ok()
    }
}

/// Whether the CUDA engine of this machine said that it computes on a card.
fn has_consented() -> bool {
    let engine = find::cuda_engine(&SearchContext::of_this_process(false));
    let answer = engine.and_then(|engine| Answer::remembered(&engine.program, driver_version().as_deref()));
    answer.is_some_and(|answer| answer.refusal.is_none())
}

/// Has the CUDA engine say whether it computes on the card, where a card could and it did not say so yet: it tests its
/// code, which takes seconds. One that refused is asked again: what it lacked may be there now.
pub async fn ask() {
    let could = |lack: &Option<Lack>| matches!(lack, None | Some(Lack::Consent { .. }));
    let is_there = || Gpus::now(Vec::new()).cards.iter().any(|card| could(&card.lack));
    if has_consented() || !is_there() {
        return;
    }
    if let Ok(engine) = Engine::start(&EngineOptions::default()).await {
        // What it says is remembered, and where it does not start, why.
        let _ = engine.describe().await;
        engine.shutdown().await;
    }
}

/// Remembers what an engine said of itself.
pub(crate) fn note(program: &Path, description: &Description) {
    let is_cuda = find::is_cuda(program) && description.backend == Backend::Cuda;
    let refusal = if is_cuda { None } else { description.cpu_reason.clone() };
    note_refusal(program, refusal);
}

/// Remembers why the CUDA engine does not compute; `None`: it does. That a card is full now says nothing of later.
pub(crate) fn note_refusal(program: &Path, refusal: Option<String>) {
    let is_full = refusal.as_deref().is_some_and(memory::death::says_out_of_memory);
    if find::is_cuda(program)
        && !is_full
        && let Some(answer) = Answer::of(program, driver_version().as_deref(), refusal)
    {
        let _ = answer.remember();
    }
}

/// The engine runs: that it did not start is over.
pub(crate) fn note_start(program: &Path) {
    let remembered = || Answer::remembered(program, driver_version().as_deref())?.refusal;
    if find::is_cuda(program)
        && remembered().is_some_and(|refusal| refusal.starts_with(DID_NOT_START))
        && let Some(path) = Answer::path()
    {
        let _ = std::fs::remove_file(path);
    }
}

fn driver_version() -> Option<String> {
    memory::nvml::Driver::open().ok()?.version()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(uuid: &str, capability: Option<(u32, u32)>) -> Gpu {
        let (uuid, pci, name) = (format!("GPU-{uuid}"), String::new(), uuid.to_owned());
        Gpu { uuid, pci, name, total: 8, free: 4, capability }
    }

    #[test]
    fn what_a_card_lacks_is_named_the_first_thing_first() {
        let works = Around { has_library: true, engine: Some("e".into()), ..Around::default() };
        let refusal = Some("It is wrong.".to_owned());
        let (turing, pascal) = (Some((7, 5)), Some((6, 1)));
        for (capability, around, expected) in [
            (turing, works.clone(), None),
            (None, works.clone(), None),
            (pascal, works.clone(), Some("compute capability 6.1, and Steno needs 7.5")),
            (pascal, Around::default(), Some("compute capability 6.1")),
            (turing, Around { has_library: false, ..works.clone() }, Some("libcuda.so.1 can't be loaded")),
            (turing, Around { driver: Some("570.86".into()), ..works.clone() }, Some("its driver is 570.86")),
            (turing, Around { driver: Some("580.65.06".into()), ..works.clone() }, None),
            (turing, Around { driver: Some("unheard of".into()), ..works.clone() }, None),
            (turing, Around { engine: None, ..works.clone() }, Some("`steno gpu install`")),
            (turing, Around { cpu_only: true, ..works.clone() }, Some("STENO_BACKEND")),
            (turing, Around { visible: Some("1".into()), ..works.clone() }, Some("CUDA_VISIBLE_DEVICES")),
            (turing, Around { refusal, ..works.clone() }, Some("is not used: It is wrong.")),
        ] {
            let (_, lack) = judge(&[gpu("1", capability)], &around).remove(0);
            let text = lack.map(|lack| lack.text());
            let fits = match (&text, expected) {
                (Some(text), Some(part)) => text.contains(part),
                (text, part) => text.is_none() && part.is_none(),
            };
            assert!(fits, "{capability:?} {around:?}: {text:?}");
        }
    }

    #[test]
    fn cards_are_counted_as_cuda_counts_those_that_it_may_see() {
        let gpus = [gpu("aaaa", None), gpu("bbbb", None), gpu("cccc", None)];
        for (visible, expected) in [
            (None, [Some(0), Some(1), Some(2)]),
            (Some("2,0"), [Some(1), None, Some(0)]),
            (Some("GPU-bb"), [None, Some(0), None]),
            (Some("1,7,0"), [None, Some(0), None]),
            (Some(""), [None; 3]),
            (Some("-1"), [None; 3]),
        ] {
            assert_eq!(numbers(&gpus, visible), expected, "{visible:?}");
        }
    }

    #[test]
    fn the_card_with_the_most_room_is_taken_and_of_equals_the_first() {
        for (cards, expected) in [
            (&[][..], None),
            (&[(0, 5), (1, 9), (2, 3)], Some(1)),
            (&[(0, 5), (1, 5)], Some(0)),
            (&[(1, 2)], Some(1)),
        ] {
            assert_eq!(roomiest(cards.iter().copied()), expected, "{cards:?}");
        }
    }
}
