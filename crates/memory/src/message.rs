//! The notices about memory, with their figures, and what they say in English.

use serde::{Deserialize, Serialize};

use crate::bytes::human;
use crate::ladder::{Step, Trouble};
use crate::notice::Severity;
use crate::{Checkpoint, DeviceKind, Stage};

crate::notices! {
    "MemoryMessage";
    /// Share of the limit in force reached 70 %.
    Elevated = "memory.elevated" {
        /// The device.
        kind: DeviceKind,
        /// Of the limit in force.
        share: f64,
        /// What would help most.
        relief: Relief,
    },
    /// Share of the limit in force reached 85 %.
    Critical = "memory.critical" {
        /// The device.
        kind: DeviceKind,
        /// Of the limit in force.
        share: f64,
        /// What would help most.
        relief: Relief,
    },
    /// More than a tenth was in use before anything was loaded.
    Occupied = "memory.occupied" {
        /// The device.
        kind: DeviceKind,
        /// In use.
        used: u64,
        /// What there is.
        total: u64,
        /// This program's part.
        ours: u64,
        /// The other programs' part.
        others: u64,
        /// The programs that hold most of it.
        programs: Vec<Program>,
    },
    /// A stage gave back less than it took.
    NotRecovered = "memory.not_recovered" {
        /// The stage.
        stage: Stage,
        /// What it took.
        taken: u64,
        /// How much of that came back.
        share: f64,
        /// What did not.
        remaining: u64,
        /// It is free, but in pieces that can't be given back.
        fragmented: bool,
    },
    /// Synchronising or trimming failed.
    ReleaseFailed = "memory.release_failed" {
        /// After this stage; null: after the whole job, or a recovery from a failure.
        stage: Option<Stage>,
        /// What the driver says.
        detail: String,
    },
    /// What is in use after each file grew from file to file.
    Leak = "memory.leak" {
        /// By how much.
        grown: u64,
        /// Over how many files.
        files: usize,
    },
    /// Much more is reserved than is in use, although all that is unused was given back.
    Fragmentation = "memory.fragmentation" {
        /// How it shows.
        sign: Fragmented,
    },
    /// Far more was held for a moment than before and after.
    Spike = "memory.spike" {
        /// The checkpoint before it.
        before: Checkpoint,
        /// The checkpoint after it.
        after: Checkpoint,
        /// The most that was held between them.
        peak: u64,
        /// The most that was held at either.
        held: u64,
    },
    /// The device's memory can't be read.
    Unavailable = "memory.unavailable" {
        /// Why.
        detail: String,
    },
    /// What was unused was given back, and the same step tried again.
    Retried = "memory.retried" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
    },
    /// The engine was replaced, and the same step tried again.
    EngineRenewed = "memory.engine_renewed" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
    },
    /// Fewer windows are decoded together.
    BatchHalved = "memory.batch_halved" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
        /// It is the batch of the speakers' stage.
        speakers: bool,
        /// Windows together before.
        from: u32,
        /// Windows together from now on.
        to: u32,
    },
    /// The same model goes on with its weights in fewer bits.
    PrecisionLowered = "memory.precision_lowered" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
        /// The model.
        model: String,
        /// The precision before.
        from: String,
        /// The precision from now on.
        to: String,
    },
    /// A smaller model goes on.
    SmallerModel = "memory.smaller_model" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
        /// The model before.
        from: String,
        /// The model from now on.
        to: String,
    },
    /// The CPU goes on.
    MovedToCpu = "memory.moved_to_cpu" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
    },
    /// The transcript does not say who speaks.
    SpeakersSkipped = "memory.speakers_skipped" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
    },
    /// Every step that may be taken was taken; the recording failed.
    GaveUp = "memory.gave_up" {
        /// When.
        stage: Stage,
        /// Why.
        trouble: Trouble,
        /// What the user forbade to change.
        kept: Vec<Pinned>,
    },
    /// A model that is predicted not to fit, announced before the job starts.
    WillNotFit = "memory.will_not_fit" {
        /// The model.
        model: String,
        /// Its precision.
        precision: String,
        /// What is missing, and what is done instead.
        detail: String,
    },
}

/// What would help most where memory is short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Relief {
    /// Closing another program.
    Others {
        /// What the others hold.
        bytes: u64,
    },
    /// A smaller batch.
    Batch {
        /// Windows together now.
        windows: u32,
    },
    /// The same model in fewer bits.
    Precision {
        /// The next lower one.
        precision: String,
    },
    /// A smaller model.
    Model {
        /// The next smaller one.
        model: String,
    },
    /// Nothing has to be done.
    Nothing,
}

/// A program that holds memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Program {
    /// Its name, where the system tells it.
    pub name: Option<String>,
    /// The number of its process.
    pub pid: u32,
    /// What it holds.
    pub bytes: u64,
}

/// How fragmentation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Fragmented {
    /// Much is held and little used.
    Idle {
        /// In use.
        allocated: u64,
        /// Held.
        reserved: u64,
    },
    /// An allocation failed although enough was free.
    Refused {
        /// Its size.
        asked: u64,
        /// What was free.
        free: u64,
    },
}

/// What a user can forbid the ladder to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Pinned {
    /// The model.
    Model,
    /// Its precision.
    Precision,
    /// That a graphics card computes.
    Gpu,
    /// That speakers are told apart.
    Speakers,
}

impl Message {
    /// What it means for the result.
    pub fn severity(&self) -> Severity {
        match self {
            Self::PrecisionLowered { .. } => Step::LowerPrecision.severity(),
            Self::SmallerModel { .. } => Step::SmallerModel.severity(),
            Self::MovedToCpu { .. } => Step::Cpu.severity(),
            Self::SpeakersSkipped { .. } => Step::SkipSpeakers.severity(),
            Self::GaveUp { .. } => Severity::Failed,
            _ => Severity::Info,
        }
    }

    /// In English, for the command line, for files and for the log.
    pub fn text(&self) -> String {
        match self {
            Self::Elevated { kind, share, relief } => pressure("elevated", *kind, *share, relief),
            Self::Critical { kind, share, relief } => pressure("critically high", *kind, *share, relief),
            Self::Occupied { kind, used, total, ours, others, programs } => {
                let named: Vec<String> = programs.iter().map(Program::text).collect();
                let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
                let memory = match kind {
                    DeviceKind::Gpu => "GPU memory",
                    DeviceKind::Host => "memory",
                };
                format!(
                    "{} of {} of {memory} is in use before anything is loaded: Steno {}, other programs {}{named}.",
                    human(*used),
                    human(*total),
                    human(*ours),
                    human(*others),
                )
            }
            Self::NotRecovered { stage, taken, share, remaining, fragmented } => {
                let why = if *fragmented {
                    "is free but fragmented and can't be released"
                } else {
                    "is still in use"
                };
                format!(
                    "The {} took {} and gave back {:.1}%: {} {why}.",
                    stage.label(),
                    human(*taken),
                    share * 100.0,
                    human(*remaining),
                )
            }
            Self::ReleaseFailed { stage, detail } => {
                let after = stage.map(|stage| format!(" after the {}", stage.label())).unwrap_or_default();
                format!(
                    "Memory could not be released{after}: {detail}. The engine is restarted; the result is not affected."
                )
            }
            Self::Leak { grown, files } => format!(
                "Memory grew by {} over the last {files} files and was not released. The engine is restarted before the next file.",
                human(*grown)
            ),
            Self::Fragmentation { sign: Fragmented::Idle { allocated, reserved } } => format!(
                "{} is reserved, but only {} is in use: memory is fragmented. Unused memory is released, and the engine is restarted if that does not help.",
                human(*reserved),
                human(*allocated)
            ),
            Self::Fragmentation { sign: Fragmented::Refused { asked, free } } => format!(
                "{} could not be allocated although {} was free: memory is fragmented. The engine is restarted.",
                human(*asked),
                human(*free)
            ),
            Self::Spike { before, after, peak, held } => format!(
                "Between \"{}\" and \"{}\" memory rose to {} for a moment and fell back to {}. A smaller batch reduces such peaks.",
                before.label(),
                after.label(),
                human(*peak),
                human(*held)
            ),
            Self::Unavailable { detail } => format!("Memory use can't be measured: {detail}"),
            Self::Retried { stage, trouble } => step(
                Step::RetryAfterTrim,
                *stage,
                *trouble,
                "unused memory was released, and the same step is retried",
            ),
            Self::EngineRenewed { stage, trouble } => step(
                Step::RenewEngine,
                *stage,
                *trouble,
                "the engine was restarted, and the same step is retried",
            ),
            Self::BatchHalved { stage, trouble, speakers, from, to } => {
                let batch = if *speakers { "speaker batch" } else { "batch" };
                step(
                    Step::HalveBatch,
                    *stage,
                    *trouble,
                    &format!("the {batch} was halved from {from} to {to}"),
                )
            }
            Self::PrecisionLowered { stage, trouble, model, from, to } => {
                let done = format!("{model} continues in {to} instead of {from}");
                step(Step::LowerPrecision, *stage, *trouble, &done)
            }
            Self::SmallerModel { stage, trouble, from, to } => {
                let done = format!("{to} continues in place of {from}");
                step(Step::SmallerModel, *stage, *trouble, &done)
            }
            Self::MovedToCpu { stage, trouble } => {
                step(Step::Cpu, *stage, *trouble, "the job continues on the CPU")
            }
            Self::SpeakersSkipped { stage, trouble } => {
                step(Step::SkipSpeakers, *stage, *trouble, "speakers are not identified")
            }
            Self::GaveUp { stage, trouble, kept } => {
                let kept: Vec<&str> = kept.iter().map(|one| one.words()).collect();
                let remedy = match kept.as_slice() {
                    [] => "Close other programs, or choose a smaller model.".to_owned(),
                    kept => format!("Close other programs, or remove {} from --keep.", kept.join(" and ")),
                };
                format!(
                    "{} {}, and nothing smaller is left to try. {remedy}",
                    trouble.words(),
                    stage.moment()
                )
            }
            Self::WillNotFit { detail, .. } => detail.clone(),
        }
    }
}

impl Relief {
    /// In a sentence.
    pub fn text(&self) -> String {
        match self {
            Self::Others { bytes } => {
                format!("Other programs hold {}: closing one of them helps most.", human(*bytes))
            }
            Self::Batch { windows } => format!("A smaller batch (now {windows}) needs less."),
            Self::Precision { precision } => format!("The same model in {precision} needs less."),
            Self::Model { model } => format!("A smaller model ({model}) needs less."),
            Self::Nothing => {
                "Nothing has failed. If memory runs out, the job continues with less.".to_owned()
            }
        }
    }
}

impl Program {
    fn text(&self) -> String {
        let name = self.name.as_deref().unwrap_or("process");
        format!("{name} [{}] {}", self.pid, human(self.bytes))
    }
}

impl Pinned {
    fn words(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Precision => "precision",
            Self::Gpu => "gpu",
            Self::Speakers => "speakers",
        }
    }
}

fn pressure(words: &str, kind: DeviceKind, share: f64, relief: &Relief) -> String {
    let memory = match kind {
        DeviceKind::Gpu => "GPU memory",
        DeviceKind::Host => "Memory",
    };
    format!("{memory} usage is {words} ({:.1}%). {}", share * 100.0, relief.text())
}

/// What happened, what was done, what it costs.
fn step(step: Step, stage: Stage, trouble: Trouble, done: &str) -> String {
    format!("{} {}: {done}. {}", trouble.words(), stage.moment(), step.cost(stage))
}
