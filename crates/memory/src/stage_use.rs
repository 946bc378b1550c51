//! What each stage of a job took and gave back, computed from the samples alone, for
//! hosts, which have nothing else. The figures agree with those of [`crate::Scope`].

use serde::{Deserialize, Serialize};

use crate::bytes::MIB;
use crate::probe::DeviceKind;
use crate::{Checkpoint, RECOVERED_SHARE, Sample, Stage};

/// One stage, from the checkpoint before it to the one after its release.
/// Amounts are bytes held by this program on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageUse {
    /// The stage.
    pub stage: Stage,
    /// The device that was watched.
    pub kind: DeviceKind,
    /// Milliseconds since the job began.
    pub from_ms: u64,
    /// `None` while the stage lasts, and for a model that stays loaded.
    pub to_ms: Option<u64>,
    /// Held when the stage was entered.
    pub before: u64,
    /// Once what it came for was loaded: a model's weights, the sound.
    pub loaded: Option<u64>,
    /// The highest while it lasted.
    pub peak: u64,
    /// After the release.
    pub after: Option<u64>,
    /// What came of it; `None` as for `to_ms`.
    pub recovered: Option<Recovered>,
}

/// How much of what a stage took came back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// 1 where all of it came back.
    pub share: f64,
    /// At least [`RECOVERED_SHARE`], or the rest is within [`noise`].
    pub verified: bool,
}

/// Bytes by which two readings may differ although the same things are held: stacks
/// and caches of threads, blocks of a pool.
pub fn noise(kind: DeviceKind) -> u64 {
    match kind {
        DeviceKind::Host => 8 * MIB,
        DeviceKind::Gpu => 32 * MIB,
    }
}

/// The stages of one job in the order in which they were entered; both devices
/// where two were watched. A stage that is entered again is listed again.
pub fn stage_uses(samples: &[Sample]) -> Vec<StageUse> {
    [DeviceKind::Gpu, DeviceKind::Host].into_iter().flat_map(|kind| of_device(kind, samples)).collect()
}

/// A stage that was entered and not left; `kept` is what it holds on purpose once
/// loaded.
struct Open {
    index: usize,
    kept: u64,
}

fn of_device(kind: DeviceKind, samples: &[Sample]) -> Vec<StageUse> {
    let mut uses: Vec<StageUse> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.kind == kind) {
        // A new engine holds nothing that the one before it had loaded.
        if sample.checkpoint == Checkpoint::PipelineStart {
            open.clear();
        }
        let Some(levels) = sample.levels else { continue };
        for one in &open {
            let peak = &mut uses[one.index].peak;
            *peak = (*peak).max(levels.peak);
        }
        let Some((stage, place)) = Stage::of(sample.checkpoint) else { continue };
        let position = open.iter().rposition(|one| uses[one.index].stage == stage);
        match (place, position) {
            (StagePoint::Entered, _) => {
                open.push(Open { index: uses.len(), kept: 0 });
                let before = levels.reserved;
                let (from_ms, to_ms) = (sample.at_ms, None);
                uses.push(StageUse {
                    stage,
                    kind,
                    from_ms,
                    to_ms,
                    before,
                    loaded: None,
                    peak: before,
                    after: None,
                    recovered: None,
                });
            }
            (StagePoint::Worked, Some(position)) if stage.is_model() || stage == Stage::Preprocess => {
                let one = &mut open[position];
                uses[one.index].loaded = Some(levels.reserved);
                one.kept = levels.reserved.saturating_sub(uses[one.index].before);
            }
            (StagePoint::Released, Some(position)) => {
                let closed = open.remove(position);
                let kept = open[position..].iter().map(|one| one.kept).sum();
                let one = &mut uses[closed.index];
                one.to_ms = Some(sample.at_ms);
                one.after = Some(levels.reserved);
                one.recovered = Some(recovered(one, levels.reserved, kept));
            }
            _ => {}
        }
    }
    uses
}

/// `kept` is held on purpose by stages that were entered later.
fn recovered(one: &StageUse, after: u64, kept: u64) -> Recovered {
    let taken = one.peak.saturating_sub(one.before);
    let remaining = after.saturating_sub(one.before).saturating_sub(kept);
    let share = if taken == 0 { 1.0 } else { 1.0 - remaining.min(taken) as f64 / taken as f64 };
    Recovered { share, verified: share >= RECOVERED_SHARE || remaining <= noise(one.kind) }
}

/// Where in its stage a checkpoint lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StagePoint {
    Entered,
    Worked,
    Released,
}

impl Stage {
    fn of(checkpoint: Checkpoint) -> Option<(Self, StagePoint)> {
        Self::ALL.into_iter().find_map(|stage| {
            let marks = stage.marks();
            let places = [
                (marks.entered, StagePoint::Entered),
                (marks.worked, StagePoint::Worked),
                (marks.after_release, StagePoint::Released),
            ];
            let (_, place) = places.into_iter().find(|(mark, _)| *mark == checkpoint)?;
            Some((stage, place))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::GIB;
    use crate::testing::{card, load_model};
    use crate::{Scope, Tracker};

    #[test]
    fn the_account_is_the_one_that_the_scopes_give() {
        let (device, tracker) = card();
        let (_model, weights) = load_model(&device, &tracker);
        let mut scope = Scope::enter(&tracker, Stage::Transcribe, 2 * GIB).unwrap();
        let caches = device.allocate(2 * GIB).unwrap();
        let stuck = device.allocate(GIB / 2).unwrap();
        scope.batch();
        let departure = scope.leave(|| drop(caches)).recovery.unwrap();
        let uses = stage_uses(&tracker.timeline().samples);
        assert_eq!(
            uses.iter().map(|one| one.stage).collect::<Vec<_>>(),
            [Stage::SpeechModel, Stage::Transcribe]
        );
        let [model_use, work] = &uses[..] else { panic!("{uses:?}") };
        assert_eq!((model_use.after, model_use.recovered), (None, None), "it stays loaded");
        assert_eq!((model_use.before, model_use.loaded, work.loaded), (0, Some(GIB), None));
        assert_eq!((work.before, work.peak, work.after), (GIB, 7 * GIB / 2, Some(3 * GIB / 2)));
        let recovered = work.recovered.unwrap();
        assert!((recovered.share - departure.share).abs() < 1e-9, "{recovered:?} {departure:?}");
        assert_eq!((recovered.verified, departure.verified), (false, false));
        drop(stuck);
        drop(weights);
    }

    /// Sound that is freed while the model it was prepared for stays loaded.
    #[test]
    fn what_a_later_stage_keeps_is_not_held_against_an_earlier_one() {
        let (device, tracker) = card();
        tracker.begin_job();
        let mut sound = Scope::enter(&tracker, Stage::Preprocess, GIB).unwrap();
        let samples = device.allocate(GIB).unwrap();
        sound.loaded();
        let mut model = Scope::enter(&tracker, Stage::SpeechModel, 2 * GIB).unwrap();
        let weights = device.allocate(2 * GIB).unwrap();
        model.loaded();
        let departure = sound.leave(|| drop(samples)).recovery.unwrap();
        let uses = stage_uses(&tracker.timeline().samples);
        let recovered = uses[0].recovered.unwrap();
        assert_eq!((recovered.verified, recovered.share), (departure.verified, departure.share));
        assert!(recovered.verified);
        drop(weights);
    }

    #[test]
    fn a_new_engine_begins_anew() {
        let (device, first) = card();
        first.begin_job();
        let _lost = Scope::enter(&first, Stage::Transcribe, GIB).unwrap();
        let mut samples = first.timeline().samples;
        let second = Tracker::new(device);
        second.begin_job();
        Scope::enter(&second, Stage::Transcribe, GIB).unwrap().leave(|| ());
        samples.extend(second.timeline().samples);
        let uses = stage_uses(&samples);
        let ended: Vec<bool> = uses.iter().map(|one| one.after.is_some()).collect();
        assert_eq!(ended, [false, true]);
    }
}
