//! Finds three kinds of trouble in a timeline: a leak (what is allocated grows from
//! file to file), fragmentation (reserved stays far above allocated, or an
//! allocation fails although enough is free) and a spike. Pure functions.

use serde::{Deserialize, Serialize};

use crate::bytes::MIB;
use crate::message::{Fragmented, Message};
use crate::notice::Notice;
use crate::{Checkpoint, Levels, Sample};

/// Files over which growth is watched. One file more or less is the warm-up of
/// caches; three in a row that each leave more behind are a leak.
pub const LEAK_FILES: usize = 3;
/// Growth over those files that is reported.
pub const LEAK_BYTES: u64 = 50 * MIB;
/// Unused share of the reserved memory from which on it counts as fragmented.
pub const FRAGMENTED_SHARE: f64 = 0.5;
/// Unused bytes below which memory never counts as fragmented.
pub const FRAGMENTED_BYTES: u64 = 256 * MIB;
/// Height of a spike above both its neighbours, as a part of the limit in force.
pub const SPIKE_SHARE: f64 = 0.25;

/// A kind of trouble with its figures, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sign", rename_all = "snake_case")]
pub enum Sign {
    /// Allocated grew from file to file.
    Leak {
        /// Bytes more than before those files.
        grown: u64,
        /// Files over which it grew.
        files: usize,
    },
    /// Reserved is far above allocated.
    Fragmentation {
        /// In use.
        allocated: u64,
        /// Held, in use or not.
        reserved: u64,
    },
    /// An allocation failed although more than it asked for was free.
    FailedWithEnoughFree {
        /// Size of the allocation.
        asked: u64,
        /// Free at that time.
        free: u64,
    },
    /// Held for a moment between two checkpoints, far above both.
    Spike {
        /// The checkpoint before it.
        before: Checkpoint,
        /// The checkpoint after it.
        after: Checkpoint,
        /// The most that was held between them.
        peak: u64,
        /// The most that was held at either.
        held: u64,
    },
}

impl Sign {
    /// What the user is told of it.
    pub fn notice(&self) -> Notice {
        match *self {
            Self::Leak { grown, files } => Message::Leak { grown, files },
            Self::Fragmentation { allocated, reserved } => {
                Message::Fragmentation { sign: Fragmented::Idle { allocated, reserved } }
            }
            Self::FailedWithEnoughFree { asked, free } => {
                Message::Fragmentation { sign: Fragmented::Refused { asked, free } }
            }
            Self::Spike { before, after, peak, held } => Message::Spike { before, after, peak, held },
        }
        .into()
    }
}

/// `after_file` is what was allocated after the final cleanup of each file, in
/// order, less what is held on purpose (a model kept warm). Growth counts where
/// each of the last [`LEAK_FILES`] files left more than the one before, by over
/// [`LEAK_BYTES`] in all: a single step up is a high-water mark, not a leak.
pub fn leak(after_file: &[u64]) -> Option<Sign> {
    let last = after_file.last_chunk::<LEAK_FILES>()?;
    let grown = last[LEAK_FILES - 1].saturating_sub(last[0]);
    let steady = last.windows(2).all(|pair| pair[1] > pair[0]);
    (steady && grown > LEAK_BYTES).then_some(Sign::Leak { grown, files: LEAK_FILES })
}

/// At least [`FRAGMENTED_BYTES`] idle, and at least [`FRAGMENTED_SHARE`] of all
/// that is reserved.
pub fn fragmentation(allocated: u64, reserved: u64) -> Option<Sign> {
    let idle = reserved.saturating_sub(allocated);
    let idle_share = idle as f64 / reserved.max(1) as f64;
    (idle >= FRAGMENTED_BYTES && idle_share >= FRAGMENTED_SHARE)
        .then_some(Sign::Fragmentation { allocated, reserved })
}

/// An allocation of `asked` bytes failed while `free` bytes were free.
pub fn failed_with_enough_free(asked: u64, free: u64) -> Option<Sign> {
    (asked <= free && asked > 0).then_some(Sign::FailedWithEnoughFree { asked, free })
}

/// A peak between two checkpoints that neither of them shows.
pub fn spike(before: (Checkpoint, Levels), after: (Checkpoint, Levels)) -> Option<Sign> {
    let ((before, low), (after, high)) = (before, after);
    let held = low.reserved.max(high.reserved);
    let above = high.peak.saturating_sub(held);
    (high.total > 0 && above as f64 >= SPIKE_SHARE * high.total as f64).then_some(Sign::Spike {
        before,
        after,
        peak: high.peak,
        held,
    })
}

/// The signs within one job: fragmentation that a trim did not cure, where it
/// was worst, and the highest spike.
pub fn within_job(samples: &[Sample]) -> Vec<Sign> {
    let levels: Vec<(Checkpoint, Levels)> =
        samples.iter().filter_map(|sample| Some((sample.checkpoint, sample.levels?))).collect();
    let fragmented = levels
        .iter()
        .filter(|(checkpoint, _)| checkpoint.follows_trim())
        .filter_map(|(_, levels)| fragmentation(levels.allocated, levels.reserved))
        .max_by_key(|sign| match sign {
            Sign::Fragmentation { allocated, reserved } => reserved - allocated,
            _ => 0,
        });
    let spike = levels.windows(2).filter_map(|pair| spike(pair[0], pair[1])).max_by_key(|sign| match sign {
        Sign::Spike { peak, held, .. } => peak - held,
        _ => 0,
    });
    fragmented.into_iter().chain(spike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::GIB;
    use crate::probe::DeviceKind;

    #[test]
    fn a_leak_is_growth_from_file_to_file() {
        // MB after each file -> growth in MB
        let cases: [(&[u64], Option<u64>); 10] = [
            (&[], None),
            (&[180, 240], None),
            // 0.18, 0.24, 0.31 GB: the classic.
            (&[184, 246, 317], Some(133)),
            // Warm-up, then flat.
            (&[100, 400, 400, 400], None),
            // A high-water mark: one step, then flat.
            (&[100, 100, 300], None),
            // Up and down again.
            (&[100, 300, 200, 310], None),
            // Steady but slow.
            (&[100, 110, 120, 130], None),
            // Exactly the threshold is not over it.
            (&[100, 120, 150], None),
            (&[100, 120, 151], Some(51)),
            // Late in a long run.
            (&[90, 500, 500, 500, 530, 561], Some(61)),
        ];
        for (after_file, expected) in cases {
            let bytes: Vec<u64> = after_file.iter().map(|mb| mb * MIB).collect();
            let expected = expected.map(|grown| Sign::Leak { grown: grown * MIB, files: 3 });
            assert_eq!(leak(&bytes), expected, "{after_file:?}");
        }
    }

    #[test]
    fn fragmentation_is_much_idle_memory() {
        // (allocated, reserved) in MB
        for ((allocated, reserved), expected) in [
            ((0, 0), false),
            ((1000, 1100), false),
            ((1000, 1990), false),
            ((1000, 2000), true),
            ((200, 4000), true),
            // A large part, but little in all.
            ((10, 200), false),
            // Counters read at two moments may cross.
            ((300, 200), false),
        ] {
            let found = fragmentation(allocated * MIB, reserved * MIB);
            assert_eq!(found.is_some(), expected, "{allocated} of {reserved}");
        }
    }

    #[test]
    fn an_allocation_that_fails_with_enough_free_is_fragmentation() {
        for ((asked, free), expected) in
            [((10, 20), true), ((20, 20), true), ((21, 20), false), ((0, 20), false)]
        {
            assert_eq!(failed_with_enough_free(asked, free).is_some(), expected, "{asked} of {free}");
        }
    }

    fn sample(checkpoint: Checkpoint, reserved: u64, peak: u64) -> Sample {
        let levels = Levels { allocated: reserved, reserved, peak, total: 8 * GIB, ..Levels::default() };
        Sample {
            checkpoint,
            batch: None,
            at_ms: 0,
            kind: DeviceKind::Gpu,
            levels: Some(levels),
            reason: None,
        }
    }

    #[test]
    fn a_spike_rises_above_both_its_checkpoints() {
        // Reserved before, reserved after, peak between them, in GB of 8.
        for ((before, after, peak), expected) in [
            ((1, 1, 1), false),
            ((1, 1, 2), false),
            ((1, 1, 3), true),
            // A model that was loaded and stayed.
            ((0, 5, 5), false),
            // The same, with twice its size on the way.
            ((0, 3, 6), true),
            ((5, 0, 5), false),
        ] {
            let samples = [
                sample(Checkpoint::BeforeTranscribe, before * GIB, before * GIB),
                sample(Checkpoint::AfterTranscribe, after * GIB, peak * GIB),
            ];
            let found = within_job(&samples);
            assert_eq!(!found.is_empty(), expected, "{before} {after} {peak}: {found:?}");
        }
    }

    #[test]
    fn a_job_reports_the_worst_of_each_sign_once() {
        let mut samples = vec![
            sample(Checkpoint::PipelineStart, 0, 0),
            sample(Checkpoint::BeforeTranscribe, GIB, 4 * GIB),
            sample(Checkpoint::Batch, GIB, 6 * GIB),
            sample(Checkpoint::AfterTrim, 3 * GIB, 3 * GIB),
        ];
        // Much is idle before the trim too, but there that is the pool's work.
        for (index, allocated) in [(1, 0), (3, GIB)] {
            if let Some(levels) = &mut samples[index].levels {
                levels.allocated = allocated;
            }
        }
        let found = within_job(&samples);
        assert_eq!(
            found,
            [
                Sign::Fragmentation { allocated: GIB, reserved: 3 * GIB },
                Sign::Spike {
                    before: Checkpoint::BeforeTranscribe,
                    after: Checkpoint::Batch,
                    peak: 6 * GIB,
                    held: GIB
                }
            ]
        );
    }
}
