//! The memory of one job over time: a sample per checkpoint, and the notices.

use serde::{Deserialize, Serialize};

use crate::notice::Notice;
use crate::probe::{DeviceKind, Reading};
use crate::{Checkpoint, signs};

/// The memory of one job on one device, kept with its transcript.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// In the order in which they were taken.
    pub samples: Vec<Sample>,
    /// In the order in which they were given.
    pub notices: Vec<Notice>,
}

impl Timeline {
    /// Highest bytes held by this program at or between any two checkpoints.
    pub fn peak(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| sample.levels).map(|levels| levels.peak).max()
    }

    /// What the samples show: leaks are seen over files, not within one.
    pub fn signs(&self) -> Vec<signs::Sign> {
        signs::within_job(&self.samples)
    }
}

/// A reading of a device's memory at a known point of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The place in the job.
    pub checkpoint: Checkpoint,
    /// Number of the batch, from 1, at [`Checkpoint::Batch`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Milliseconds of wall time since the job began.
    pub at_ms: u64,
    /// The device that was read.
    pub kind: DeviceKind,
    /// `None` where there was no reading; `reason` says why.
    pub levels: Option<Levels>,
    /// Why there was no reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Sample {
    /// As in the log lines: `Before Transcription`, `Batch 12`.
    pub fn label(&self) -> String {
        match self.batch {
            Some(number) => format!("{} {number}", self.checkpoint.label()),
            None => self.checkpoint.label().to_owned(),
        }
    }
}

/// The figures of a sample, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// In use by this program.
    pub allocated: u64,
    /// Held by this program, in use or kept for later.
    pub reserved: u64,
    /// Held by this program until its process ends.
    pub fixed: u64,
    /// Can be allocated: the limit less ours and others'.
    pub free: u64,
    /// The limit in force.
    pub total: u64,
    /// Held by other programs; `None` where that is unknown.
    pub others: Option<u64>,
    /// Ours reserved plus others over the limit in force, 0 to 1.
    pub share: f64,
    /// Highest `reserved` since the sample before.
    pub peak: u64,
    /// Resident pages of mapped files, weights above all; not part of
    /// `reserved`.
    pub mapped: u64,
}

impl From<Reading> for Levels {
    fn from(reading: Reading) -> Self {
        let ours = reading.ours.unwrap_or_default();
        Self {
            allocated: ours.allocated,
            reserved: ours.reserved,
            fixed: ours.fixed,
            free: reading.free,
            total: reading.total,
            others: reading.others,
            share: reading.share(),
            peak: ours.peak.unwrap_or_default().max(ours.reserved),
            mapped: reading.mapped,
        }
    }
}

impl Levels {
    /// Kept by our allocator and not in use.
    pub fn slack(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated)
    }
}

/// How full a device is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pressure {
    /// Below 70 %.
    #[default]
    Normal,
    /// From 70 % of the limit in force.
    Elevated,
    /// From 85 %.
    Critical,
}

impl Pressure {
    /// Share of the limit in force from which on it is [`Self::Elevated`].
    pub const ELEVATED: f64 = 0.70;
    /// Share of the limit in force from which on it is [`Self::Critical`].
    pub const CRITICAL: f64 = 0.85;

    /// `share` as in [`Levels::share`].
    pub fn of(share: f64) -> Self {
        match share {
            share if share >= Self::CRITICAL => Self::Critical,
            share if share >= Self::ELEVATED => Self::Elevated,
            _ => Self::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_begins_at_its_thresholds() {
        for (share, expected) in [
            (0.0, Pressure::Normal),
            (0.6999, Pressure::Normal),
            (0.70, Pressure::Elevated),
            (0.8499, Pressure::Elevated),
            (0.85, Pressure::Critical),
            (1.0, Pressure::Critical),
        ] {
            assert_eq!(Pressure::of(share), expected, "{share}");
        }
    }
}
