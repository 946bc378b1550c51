//! Whether a job fits into the memory that is free now, with which batch, and which
//! other model would fit. Pure functions over predictions.

use serde::{Deserialize, Serialize};

use crate::Stage;
use crate::bytes::{MIB, human};
use crate::footprint::Footprint;

/// Share of the free memory up to which a job fits comfortably. The notice of an
/// elevated share begins at the same value.
pub const COMFORTABLE_SHARE: f64 = 0.70;

/// Bytes left free for other programs and for the error of the prediction.
pub const RESERVE: u64 = 256 * MIB;

/// How a job's predicted peak compares with what is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// The peak and [`RESERVE`] exceed what is free.
    DoesNotFit,
    /// It fits now, and may not once another program starts.
    Tight,
    /// The peak is at most [`COMFORTABLE_SHARE`] of what is free.
    Comfortable,
}

/// `peak` against `free`, both in bytes.
pub fn judge(peak: u64, free: u64) -> Fit {
    if peak.saturating_add(RESERVE) > free {
        Fit::DoesNotFit
    } else if peak as f64 <= COMFORTABLE_SHARE * free as f64 {
        Fit::Comfortable
    } else {
        Fit::Tight
    }
}

/// What a job will take, stage by stage, against what is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitCheck {
    /// The verdict.
    pub fit: Fit,
    /// Predicted peak of each stage in bytes. Only one stage's models are on
    /// the device at a time: the largest counts.
    pub stages: Vec<(Stage, u64)>,
    /// The largest of them, in bytes.
    pub peak: u64,
    /// What is free, in bytes.
    pub free: u64,
    /// The batch that was assumed.
    pub batch: u32,
}

impl FitCheck {
    /// Bytes that would have to become free; 0 where it fits.
    pub fn missing(&self) -> u64 {
        self.peak.saturating_add(RESERVE).saturating_sub(self.free)
    }

    /// Why, in one sentence.
    pub fn reason(&self) -> String {
        let (peak, free) = (human(self.peak), human(self.free));
        match self.fit {
            Fit::Comfortable => format!("It needs {peak}; {free} is free."),
            Fit::Tight => {
                format!("It needs {peak}; {free} is free: it fits as long as no other program needs more.")
            }
            Fit::DoesNotFit => self.too_little(&format!("only {free} is free")),
        }
    }

    /// Why it does not fit where a limit that the user set, in bytes, is lower than what is free.
    pub fn reason_of_limit(&self, limit: u64) -> String {
        self.too_little(&format!("the memory limit is {}", human(limit)))
    }

    fn too_little(&self, what_there_is: &str) -> String {
        let largest = self.stages.iter().max_by_key(|(_, bytes)| *bytes);
        let stage = largest.map_or("job", |(stage, _)| stage.label());
        let (peak, missing) = (human(self.peak), human(self.missing()));
        format!("The {stage} needs {peak}, but {what_there_is} ({missing} short).")
    }
}

/// Checks a speech model, and the speakers' models where they are wanted.
pub fn check(speech: &Footprint, speakers: Option<&Footprint>, free: u64, batch: u32) -> FitCheck {
    let windows = u64::from(batch.max(1));
    let mut stages =
        vec![(Stage::SpeechModel, speech.fixed + speech.weights), (Stage::Transcribe, speech.peak(windows))];
    if let Some(speakers) = speakers {
        stages.push((Stage::SpeakerModel, speakers.fixed + speakers.weights));
        stages.push((Stage::Diarize, speakers.peak(1)));
    }
    let peak = stages.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    FitCheck { fit: judge(peak, free), stages, peak, free, batch: batch.max(1) }
}

/// Upper bounds of a batch besides memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchLimits {
    /// Number of windows beyond which throughput does not improve on this device.
    pub max_useful_batch: Option<u32>,
    /// The user's setting.
    pub user: Option<u32>,
    /// Share of the free memory that a single buffer may take, 0 to 1. The profile
    /// `safe` sets an eighth.
    pub buffer_fraction: Option<f64>,
}

/// How many windows to decode together, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// 0: not even one window fits.
    pub windows: u32,
    /// Which limit was the lowest.
    pub limited_by: LimitedBy,
}

/// What decided the size of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// What is free.
    Memory,
    /// [`BatchLimits::max_useful_batch`].
    Speed,
    /// [`BatchLimits::user`].
    User,
    /// [`BatchLimits::buffer_fraction`].
    Buffer,
}

/// (free - reserve - fixed cost - weights - workspace) / bytes per window,
/// capped. `free` is what is free before the model is loaded, in bytes.
pub fn batch(footprint: &Footprint, free: u64, limits: &BatchLimits) -> Batch {
    let standing = RESERVE + footprint.fixed + footprint.weights;
    let by_memory = footprint.windows_within(free.saturating_sub(standing));
    let mut chosen = Batch { windows: by_memory, limited_by: LimitedBy::Memory };
    let mut cap = |windows: u32, limited_by| {
        if windows < chosen.windows {
            chosen = Batch { windows, limited_by };
        }
    };
    if let Some(fraction) = limits.buffer_fraction {
        // The conversion saturates.
        let windows = (fraction * free as f64 / footprint.largest_buffer.max(1) as f64) as u32;
        // One window that fits is always allowed.
        cap(windows.max(1), LimitedBy::Buffer);
    }
    if let Some(max_useful_batch) = limits.max_useful_batch {
        cap(max_useful_batch.max(1), LimitedBy::Speed);
    }
    match limits.user {
        Some(user) => cap(user.max(1), LimitedBy::User),
        None if !footprint.faster_together => cap(1, LimitedBy::Speed),
        None => {}
    }
    chosen
}

/// A model that could be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, for the caller.
    pub name: String,
    /// What it takes.
    pub footprint: Footprint,
}

/// The first of `candidates`, best first, that fits, with its batch.
pub fn best_that_fits<'a>(
    candidates: &'a [Candidate],
    speakers: Option<&Footprint>,
    free: u64,
    limits: &BatchLimits,
) -> Option<(&'a Candidate, Batch, FitCheck)> {
    candidates.iter().find_map(|candidate| {
        let batch = batch(&candidate.footprint, free, limits);
        let check = check(&candidate.footprint, speakers, free, batch.windows);
        (batch.windows > 0 && check.fit > Fit::DoesNotFit).then_some((candidate, batch, check))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;
    use crate::bytes::GIB;
    use crate::dimensions::{Dimensions, Precision};
    use crate::footprint::Plan;

    fn gpu(name: &str, stored: Precision) -> Footprint {
        let dimensions = Dimensions::of_public(name).unwrap();
        Footprint::whisper(
            &dimensions,
            &Plan::new(DeviceKind::Gpu, stored.usual_on(DeviceKind::Gpu), &dimensions),
        )
    }

    /// Cards on which the screen and the driver take 0.4 GB, models with
    /// speakers, one window at a time. The first rows are the well-known advice;
    /// the others are what this program must do better.
    #[test]
    fn models_fit_the_cards_that_they_are_known_to_fit() {
        use Precision::{F16, Q8_0};
        for (card, name, stored, at_least) in [
            (8, "base", F16, Fit::Comfortable),
            (8, "small", F16, Fit::Comfortable),
            (12, "medium", F16, Fit::Comfortable),
            (12, "large-v3", F16, Fit::Tight),
            (16, "large-v3", F16, Fit::Comfortable),
            (24, "large-v3", F16, Fit::Comfortable),
            (8, "large-v3", F16, Fit::Comfortable),
            (6, "large-v3", F16, Fit::Tight),
            (4, "large-v3-turbo", Q8_0, Fit::Comfortable),
        ] {
            let free = card * GIB - 400 * MIB;
            let check = check(&gpu(name, stored), Some(&Footprint::speakers(DeviceKind::Gpu)), free, 1);
            assert!(check.fit >= at_least, "{card} GB, {name} {stored}: {check:?}");
        }
        let check = check(&gpu("large-v3", F16), None, 2 * GIB, 1);
        assert_eq!(check.fit, Fit::DoesNotFit);
        assert!(check.reason().starts_with("The transcription needs "), "{}", check.reason());
    }

    #[test]
    fn the_judgement_is_about_what_is_free_now() {
        // (peak, free) in MB
        for ((peak, free), expected) in [
            ((700, 1000), Fit::Comfortable),
            ((701, 1000), Fit::Tight),
            ((744, 1000), Fit::Tight),
            ((745, 1000), Fit::DoesNotFit),
            ((700, 0), Fit::DoesNotFit),
            // A small device: the reserve decides.
            ((100, 300), Fit::DoesNotFit),
        ] {
            assert_eq!(judge(peak * MIB, free * MIB), expected, "{peak} of {free}");
        }
    }

    fn simple() -> Footprint {
        Footprint {
            kind: DeviceKind::Gpu,
            fixed: 400 * MIB,
            weights: 1000 * MIB,
            workspace: 100 * MIB,
            encoder: 150 * MIB,
            encoded_together: true,
            aligned_together: true,
            faster_together: true,
            output: 0,
            caches: 150 * MIB,
            decoder: 50 * MIB,
            alignment: 180 * MIB,
            largest_buffer: 40 * MIB,
        }
    }

    #[test]
    fn a_batch_is_what_fits_beside_the_model() {
        let none = BatchLimits::default();
        let (memory, max_useful_batch, user, buffer) =
            (LimitedBy::Memory, LimitedBy::Speed, LimitedBy::User, LimitedBy::Buffer);
        // 256 reserve + 400 + 1000 + 100 stand; a window takes 200.
        for (free, limits, windows, limited_by) in [
            (1756 + 200, none, 1, memory),
            (1756 + 199, none, 0, memory),
            (1756 + 1000, none, 5, memory),
            (0, none, 0, memory),
            (1756 + 4000, BatchLimits { max_useful_batch: Some(16), ..none }, 16, max_useful_batch),
            (1756 + 4000, BatchLimits { max_useful_batch: Some(16), user: Some(4), ..none }, 4, user),
            (1756 + 400, BatchLimits { max_useful_batch: Some(16), user: Some(4), ..none }, 2, memory),
            // An eighth of 5756 is 719: 17 buffers of 40.
            (1756 + 4000, BatchLimits { buffer_fraction: Some(0.125), ..none }, 17, buffer),
            // A user's 0 means "as small as possible".
            (1756 + 4000, BatchLimits { user: Some(0), ..none }, 1, user),
        ] {
            let found = batch(&simple(), free * MIB, &limits);
            assert_eq!(found, Batch { windows, limited_by }, "{free} {limits:?}");
        }
        let alone = Footprint { faster_together: false, ..simple() };
        for (limits, windows, limited_by) in
            [(none, 1, max_useful_batch), (BatchLimits { user: Some(4), ..none }, 4, user)]
        {
            let found = batch(&alone, (1756 + 4000) * MIB, &limits);
            assert_eq!(
                found,
                Batch { windows, limited_by },
                "windows that gain nothing from others, {limits:?}"
            );
        }
    }

    #[test]
    fn a_batch_that_was_chosen_fits() {
        let footprint = gpu("large-v3", Precision::F16);
        for gigabytes in 1..80 {
            let free = gigabytes * GIB;
            let found = batch(&footprint, free, &BatchLimits::default());
            let check = check(&footprint, None, free, found.windows);
            assert_eq!(found.windows > 0, check.fit > Fit::DoesNotFit, "{gigabytes} GB: {found:?} {check:?}");
            // One window more would not.
            assert!(
                footprint.peak(u64::from(found.windows) + 1) + RESERVE > free,
                "{gigabytes} GB: {found:?}"
            );
        }
    }

    #[test]
    fn the_best_model_that_fits_is_found() {
        let candidates: Vec<Candidate> = ["large-v3", "medium", "small", "base", "tiny"]
            .into_iter()
            .map(|name| Candidate { name: name.into(), footprint: gpu(name, Precision::F16) })
            .collect();
        for (gigabytes, expected) in [
            (24, Some("large-v3")),
            (6, Some("large-v3")),
            (4, Some("medium")),
            (2, Some("small")),
            (0, None),
        ] {
            let free = gigabytes * GIB;
            let found = best_that_fits(&candidates, None, free, &BatchLimits::default());
            assert_eq!(found.map(|(candidate, ..)| candidate.name.as_str()), expected, "{gigabytes} GB");
        }
    }
}
