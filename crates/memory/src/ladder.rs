//! The degradation ladder: when memory runs out, which steps a stage may take, in
//! which order, what each costs the user, and which the user forbids. Pure
//! functions over data.

use serde::{Deserialize, Serialize};

use crate::Stage;
use crate::message::{Message, Pinned};
use crate::notice::{Code, Notice, Severity};

/// One way to continue with less memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Synchronise, trim, try the same again in the same process.
    RetryAfterTrim,
    /// The same again in a new process.
    RenewEngine,
    /// Half as many windows decoded together.
    HalveBatch,
    /// The same model, quantised or in a lower precision, as installed.
    LowerPrecision,
    /// A smaller installed model that can do the job's language and task.
    SmallerModel,
    /// The CPU instead of the GPU.
    Cpu,
    /// The transcript without its speakers.
    SkipSpeakers,
}

/// The steps of a stage, in the order in which they are tried.
pub fn steps(stage: Stage) -> &'static [Step] {
    use Step::{Cpu, HalveBatch, LowerPrecision, RenewEngine, RetryAfterTrim, SkipSpeakers, SmallerModel};
    match stage {
        // Samples and spectrogram are on the host already, and can't be smaller.
        Stage::Preprocess => &[RetryAfterTrim, RenewEngine],
        // Loading does not depend on the batch.
        Stage::SpeechModel => &[RetryAfterTrim, RenewEngine, LowerPrecision, SmallerModel, Cpu],
        Stage::Transcribe => &[RetryAfterTrim, RenewEngine, HalveBatch, LowerPrecision, SmallerModel, Cpu],
        Stage::SpeakerModel => &[RetryAfterTrim, RenewEngine, Cpu, SkipSpeakers],
        Stage::Diarize => &[RetryAfterTrim, RenewEngine, HalveBatch, Cpu, SkipSpeakers],
        Stage::Align => &[RetryAfterTrim, RenewEngine, HalveBatch, Cpu, SkipSpeakers],
        // Vectors of two models can't be compared, so that the model stays.
        Stage::EmbeddingModel => &[RetryAfterTrim, RenewEngine, Cpu],
        Stage::Embed => &[RetryAfterTrim, RenewEngine, HalveBatch, Cpu],
        // What is learnt is for this very model.
        Stage::Adapt => &[RetryAfterTrim, RenewEngine, HalveBatch, LowerPrecision, Cpu],
    }
}

impl Step {
    /// The code of the notice that announces the step.
    pub fn code(self) -> Code {
        match self {
            Self::RetryAfterTrim => Code::Retried,
            Self::RenewEngine => Code::EngineRenewed,
            Self::HalveBatch => Code::BatchHalved,
            Self::LowerPrecision => Code::PrecisionLowered,
            Self::SmallerModel => Code::SmallerModel,
            Self::Cpu => Code::MovedToCpu,
            Self::SkipSpeakers => Code::SpeakersSkipped,
        }
    }

    /// How much the step costs.
    pub fn severity(self) -> Severity {
        match self {
            Self::RetryAfterTrim | Self::RenewEngine | Self::HalveBatch => Severity::Info,
            Self::LowerPrecision | Self::SmallerModel | Self::Cpu | Self::SkipSpeakers => Severity::Degraded,
        }
    }

    /// What it costs the user in this stage, in a sentence.
    pub fn cost(self, stage: Stage) -> &'static str {
        match self {
            Self::RetryAfterTrim => "That takes a moment; the result stays the same.",
            Self::RenewEngine => "The model is loaded once more; the result stays the same.",
            Self::HalveBatch => "It takes longer; the result stays the same.",
            Self::LowerPrecision if stage == Stage::Adapt => "What is learned may differ a little.",
            Self::LowerPrecision => "Some words may come out differently from here on.",
            Self::SmallerModel => "Expect more mistakes from here on.",
            Self::Cpu => "It takes several times as long from here on.",
            Self::SkipSpeakers => "The transcript will not say who speaks.",
        }
    }
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// A reservation was refused: nothing was allocated, nothing is broken.
    Refused,
    /// An allocation failed; the process lives.
    OutOfMemory,
    /// The process died for lack of memory and was replaced.
    Died,
    /// The process was killed again and again for reasons that the system does not tell.
    Killed,
    /// Any other error of the device: what the process holds can't be trusted.
    DeviceError,
    /// The engine has no working code for this graphics card.
    NoCode,
}

impl Trouble {
    /// Less memory would not help.
    pub fn is_of_device(self) -> bool {
        matches!(self, Self::DeviceError | Self::NoCode)
    }

    /// The beginning of a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Refused => "There is not enough memory",
            Self::OutOfMemory => "Memory ran out",
            Self::Died => "The engine ran out of memory and stopped",
            Self::Killed => "The system stopped the engine more than once",
            Self::DeviceError => "The device failed",
            Self::NoCode => "The engine can't compute on this graphics card",
        }
    }
}

/// Where a stage computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// The GPU that the job was given.
    Gpu,
    /// The CPU, in the host's memory.
    Cpu,
}

/// The settings that steps change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderSettings {
    /// The model's name.
    pub model: String,
    /// `f16`, `q8_0`, ...
    pub precision: String,
    /// Windows decoded together, from 1.
    pub batch: u32,
    /// Where the speech model computes.
    pub place: Processor,
    /// Whether speakers are told apart; the two below matter only then.
    pub speakers: bool,
    /// Windows of the speakers' models together, from 1.
    pub speaker_batch: u32,
    /// Where the speakers' models compute.
    pub speaker_place: Processor,
}

/// A model that could be used instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The model's name.
    pub model: String,
    /// How its weights would be held: `f16`, `q8_0`, ...
    pub precision: String,
    /// Number of weights: what makes a model smaller.
    pub parameters: u64,
    /// Bytes that the weights take on a GPU and on the host. They differ: 16-bit
    /// weights are widened on most CPUs.
    pub gpu_bytes: u64,
    /// The same on the host.
    pub host_bytes: u64,
    /// Whether it can do the job's language and task.
    pub suits: bool,
}

impl Installed {
    fn bytes(&self, place: Processor) -> u64 {
        match place {
            Processor::Gpu => self.gpu_bytes,
            Processor::Cpu => self.host_bytes,
        }
    }
}

/// What the user forbids the ladder to change (`--keep`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pins {
    /// Keep the model.
    pub model: bool,
    /// Keep the precision.
    pub precision: bool,
    /// Never move to the CPU.
    pub cpu: bool,
    /// Never give up telling speakers apart.
    pub speakers: bool,
}

/// Where a job stands on its ladder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderState {
    /// The settings in force.
    pub settings: LadderSettings,
    /// Since the last window that was finished.
    pub retried: bool,
    /// In this file, so far.
    pub retries: u32,
    /// Whether the engine was renewed for this file.
    pub renewed: bool,
}

impl LadderState {
    /// The top of the ladder: nothing was tried yet.
    pub fn new(settings: LadderSettings) -> Self {
        Self { settings, retried: false, retries: 0, renewed: false }
    }

    /// A window was finished: the next trouble is a new one.
    pub fn progressed(&mut self) {
        self.retried = false;
    }

    /// The next file starts from what was learned.
    pub fn for_next_file(&self) -> Self {
        Self::new(self.settings.clone())
    }
}

/// The ladder of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// What the user forbids.
    pub pins: Pins,
    /// Every model on this machine, in any order, the one in use among them.
    pub installed: Vec<Installed>,
}

/// A step that is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The stage that ran out of memory.
    pub stage: Stage,
    /// What is changed.
    pub step: Step,
    /// What went wrong.
    pub trouble: Trouble,
    /// The settings before.
    pub from: LadderSettings,
    /// The state after.
    pub to: LadderState,
}

impl Ladder {
    /// Retries in one file after which stepping down is the quicker way.
    pub const MOST_RETRIES: u32 = 3;

    /// The next step, or `None` where every step that may be taken was taken
    /// ([`gave_up`] says so to the user).
    pub fn next(&self, stage: Stage, state: &LadderState, trouble: Trouble) -> Option<Rung> {
        steps(stage).iter().find_map(|step| {
            let to = self.take(stage, *step, state, trouble)?;
            Some(Rung { stage, step: *step, trouble, from: state.settings.clone(), to })
        })
    }

    /// The state after `step`, or `None` where it can't or must not be taken.
    fn take(&self, stage: Stage, step: Step, state: &LadderState, trouble: Trouble) -> Option<LadderState> {
        let for_speakers = matches!(stage, Stage::SpeakerModel | Stage::Diarize | Stage::Align);
        let mut to = state.clone();
        let settings = &mut to.settings;
        match step {
            Step::RetryAfterTrim => {
                // A process that died can't retry, and after a device error the
                // state of the process is unknown.
                let may = matches!(trouble, Trouble::Refused | Trouble::OutOfMemory);
                if !may || state.retried || state.retries >= Self::MOST_RETRIES {
                    return None;
                }
                to.retried = true;
                to.retries += 1;
            }
            Step::RenewEngine => {
                // After a death the process is new already, and a reservation that
                // was refused would be refused in a new process too.
                let may = matches!(trouble, Trouble::OutOfMemory | Trouble::DeviceError);
                if !may || state.renewed {
                    return None;
                }
                to.renewed = true;
            }
            Step::HalveBatch => {
                let batch = if for_speakers { &mut settings.speaker_batch } else { &mut settings.batch };
                if *batch <= 1 || trouble.is_of_device() {
                    return None;
                }
                *batch /= 2;
            }
            Step::LowerPrecision => {
                if self.pins.precision || trouble.is_of_device() {
                    return None;
                }
                let lower = self.lower_precision(settings)?;
                settings.precision.clone_from(&lower.precision);
            }
            Step::SmallerModel => {
                if self.pins.model || trouble.is_of_device() {
                    return None;
                }
                let smaller = self.smaller_model(settings)?;
                settings.model.clone_from(&smaller.model);
                settings.precision.clone_from(&smaller.precision);
            }
            Step::Cpu => {
                let place = if for_speakers { &mut settings.speaker_place } else { &mut settings.place };
                if self.pins.cpu || *place == Processor::Cpu {
                    return None;
                }
                *place = Processor::Cpu;
            }
            Step::SkipSpeakers => {
                if self.pins.speakers || !settings.speakers {
                    return None;
                }
                settings.speakers = false;
            }
        }
        Some(to)
    }

    fn current(&self, settings: &LadderSettings) -> Option<&Installed> {
        self.installed
            .iter()
            .find(|known| known.model == settings.model && known.precision == settings.precision)
    }

    /// The next lower precision of the model in use that takes less memory
    /// where the job computes.
    pub fn lower_precision(&self, settings: &LadderSettings) -> Option<&Installed> {
        let bytes = self.current(settings)?.bytes(settings.place);
        self.installed
            .iter()
            .filter(|known| known.model == settings.model && known.bytes(settings.place) < bytes)
            .max_by_key(|known| known.bytes(settings.place))
    }

    /// The next smaller model that suits the job, in the highest precision
    /// that takes less memory than what is in use.
    pub fn smaller_model(&self, settings: &LadderSettings) -> Option<&Installed> {
        let current = self.current(settings)?;
        self.installed
            .iter()
            .filter(|known| {
                known.suits
                    && known.parameters < current.parameters
                    && known.bytes(settings.place) < current.bytes(settings.place)
                    && (!self.pins.precision || known.precision == settings.precision)
            })
            .max_by_key(|known| (known.parameters, known.bytes(settings.place)))
    }
}

impl Rung {
    /// What to tell the user: what happened, what was done, what it costs.
    pub fn notice(&self) -> Notice {
        let (stage, trouble) = (self.stage, self.trouble);
        let (from, to) = (&self.from, &self.to.settings);
        match self.step {
            Step::RetryAfterTrim => Message::Retried { stage, trouble },
            Step::RenewEngine => Message::EngineRenewed { stage, trouble },
            Step::HalveBatch => {
                let speakers = from.batch == to.batch;
                let (from, to) =
                    if speakers { (from.speaker_batch, to.speaker_batch) } else { (from.batch, to.batch) };
                Message::BatchHalved { stage, trouble, speakers, from, to }
            }
            Step::LowerPrecision => Message::PrecisionLowered {
                stage,
                trouble,
                model: to.model.clone(),
                from: from.precision.clone(),
                to: to.precision.clone(),
            },
            Step::SmallerModel => {
                let (from, to) = (from.model.clone(), to.model.clone());
                Message::SmallerModel { stage, trouble, from, to }
            }
            Step::Cpu => Message::MovedToCpu { stage, trouble },
            Step::SkipSpeakers => Message::SpeakersSkipped { stage, trouble },
        }
        .into()
    }
}

/// The notice where no step is left.
pub fn gave_up(stage: Stage, trouble: Trouble, pins: Pins) -> Notice {
    let kept = [
        (pins.model, Pinned::Model),
        (pins.precision, Pinned::Precision),
        (pins.cpu, Pinned::Gpu),
        (pins.speakers, Pinned::Speakers),
    ]
    .into_iter()
    .filter_map(|(pinned, what)| pinned.then_some(what))
    .collect();
    Message::GaveUp { stage, trouble, kept }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(
        model: &str,
        precision: &str,
        parameters: u64,
        gpu: u64,
        host: u64,
        suits: bool,
    ) -> Installed {
        Installed {
            model: model.into(),
            precision: precision.into(),
            parameters,
            gpu_bytes: gpu,
            host_bytes: host,
            suits,
        }
    }

    /// A machine with a handful of models; sizes in MB.
    fn machine() -> Vec<Installed> {
        vec![
            installed("tiny", "f16", 39, 75, 151, true),
            installed("medium.en", "f16", 769, 1500, 3000, false),
            installed("large", "q8_0", 1550, 1600, 1600, true),
            installed("large", "f16", 1550, 3100, 6200, true),
            installed("large", "q5_0", 1550, 1100, 1100, true),
            installed("small", "f16", 244, 480, 960, true),
            installed("small", "f32", 244, 960, 960, true),
        ]
    }

    fn start() -> LadderState {
        LadderState::new(LadderSettings {
            model: "large".into(),
            precision: "f16".into(),
            batch: 4,
            place: Processor::Gpu,
            speakers: true,
            speaker_batch: 2,
            speaker_place: Processor::Gpu,
        })
    }

    /// What changes from rung to rung, one word per rung.
    fn walk(ladder: &Ladder, stage: Stage, trouble: Trouble) -> Vec<String> {
        let mut state = start();
        let mut taken = Vec::new();
        while let Some(rung) = ladder.next(stage, &state, trouble) {
            let to = &rung.to.settings;
            taken.push(match rung.step {
                Step::RetryAfterTrim => "retry".into(),
                Step::RenewEngine => "renew".into(),
                Step::HalveBatch => format!("batch {}/{}", to.batch, to.speaker_batch),
                Step::LowerPrecision => to.precision.clone(),
                Step::SmallerModel => format!("{} {}", to.model, to.precision),
                Step::Cpu => "cpu".into(),
                Step::SkipSpeakers => "no speakers".into(),
            });
            state = rung.to;
            assert!(taken.len() < 50, "the ladder does not end: {taken:?}");
        }
        taken
    }

    #[test]
    fn every_ladder_from_top_to_bottom() {
        let free = Pins::default();
        let cases: [(Stage, Trouble, Pins, &[&str]); 14] = [
            (
                Stage::Transcribe,
                Trouble::OutOfMemory,
                free,
                &[
                    "retry",
                    "renew",
                    "batch 2/2",
                    "batch 1/2",
                    "q8_0",
                    "q5_0",
                    "small f32",
                    "f16",
                    "tiny f16",
                    "cpu",
                ],
            ),
            // Refused before anything was allocated: a new process would refuse too.
            (
                Stage::Transcribe,
                Trouble::Refused,
                free,
                &["retry", "batch 2/2", "batch 1/2", "q8_0", "q5_0", "small f32", "f16", "tiny f16", "cpu"],
            ),
            // Killed: one rung down at once.
            (
                Stage::Transcribe,
                Trouble::Died,
                free,
                &["batch 2/2", "batch 1/2", "q8_0", "q5_0", "small f32", "f16", "tiny f16", "cpu"],
            ),
            // A failing device does not fail less with less.
            (Stage::Transcribe, Trouble::DeviceError, free, &["renew", "cpu"]),
            (Stage::SpeechModel, Trouble::NoCode, free, &["cpu"]),
            (
                Stage::SpeechModel,
                Trouble::OutOfMemory,
                free,
                &["retry", "renew", "q8_0", "q5_0", "small f32", "f16", "tiny f16", "cpu"],
            ),
            (
                Stage::Diarize,
                Trouble::OutOfMemory,
                free,
                &["retry", "renew", "batch 4/1", "cpu", "no speakers"],
            ),
            (Stage::SpeakerModel, Trouble::Refused, free, &["retry", "cpu", "no speakers"]),
            (Stage::Align, Trouble::Died, free, &["batch 4/1", "cpu", "no speakers"]),
            (Stage::Preprocess, Trouble::OutOfMemory, free, &["retry", "renew"]),
            (
                Stage::Transcribe,
                Trouble::Died,
                Pins { model: true, ..free },
                &["batch 2/2", "batch 1/2", "q8_0", "q5_0", "cpu"],
            ),
            // Another model is still the same precision.
            (
                Stage::Transcribe,
                Trouble::Died,
                Pins { precision: true, ..free },
                &["batch 2/2", "batch 1/2", "small f16", "tiny f16", "cpu"],
            ),
            (
                Stage::Transcribe,
                Trouble::Died,
                Pins { model: true, precision: true, cpu: true, speakers: true },
                &["batch 2/2", "batch 1/2"],
            ),
            (Stage::Diarize, Trouble::Died, Pins { speakers: true, ..free }, &["batch 4/1", "cpu"]),
        ];
        for (stage, trouble, pins, expected) in cases {
            let ladder = Ladder { pins, installed: machine() };
            assert_eq!(walk(&ladder, stage, trouble), expected, "{stage:?} {trouble:?} {pins:?}");
        }
    }

    #[test]
    fn on_the_cpu_a_precision_counts_by_what_it_takes_there() {
        let ladder = Ladder { pins: Pins::default(), installed: machine() };
        let mut state = start();
        state.settings.place = Processor::Cpu;
        (state.settings.model, state.settings.precision) = ("small".into(), "f32".into());
        // 16-bit weights are widened there: no gain.
        assert_eq!(ladder.lower_precision(&state.settings), None);
        state.settings.place = Processor::Gpu;
        assert_eq!(ladder.lower_precision(&state.settings).unwrap().precision, "f16");
    }

    #[test]
    fn trouble_that_comes_back_is_retried_only_so_often() {
        let ladder = Ladder { pins: Pins::default(), installed: machine() };
        let mut state = start();
        let mut taken = Vec::new();
        for _ in 0..5 {
            let rung = ladder.next(Stage::Transcribe, &state, Trouble::OutOfMemory).unwrap();
            taken.push(rung.step);
            state = rung.to;
            state.progressed();
        }
        let retry = Step::RetryAfterTrim;
        assert_eq!(taken, [retry, retry, retry, Step::RenewEngine, Step::HalveBatch]);
        let next = state.for_next_file();
        assert_eq!((next.settings.batch, next.retries, next.renewed), (2, 0, false));
    }

    #[test]
    fn each_rung_says_what_it_did_and_what_it_costs() {
        let ladder = Ladder { pins: Pins::default(), installed: machine() };
        let mut state = start();
        let mut told = Vec::new();
        while let Some(rung) = ladder.next(Stage::Transcribe, &state, Trouble::OutOfMemory) {
            let notice = rung.notice();
            assert!(notice.text.ends_with(rung.step.cost(rung.stage)));
            told.push((notice.code.as_str(), notice.severity, notice.text));
            state = rung.to;
        }
        assert_eq!(
            told[2],
            (
                "memory.batch_halved",
                Severity::Info,
                "Memory ran out during the transcription: the batch was halved from 4 to 2. It takes longer; the result stays the same.".into()
            )
        );
        assert_eq!(
            told[6],
            (
                "memory.smaller_model",
                Severity::Degraded,
                "Memory ran out during the transcription: small continues in place of large. Expect more mistakes from here on.".into()
            )
        );
        let pins = Pins { cpu: true, ..Pins::default() };
        let end = gave_up(Stage::Transcribe, Trouble::Died, pins);
        assert_eq!(end.severity, Severity::Failed);
        assert_eq!(
            end.text,
            "The engine ran out of memory and stopped during the transcription, and nothing smaller is left to try. Close other programs, or remove gpu from --keep."
        );
    }
}
