//! Where an adaptation stands, on disk: from a snapshot it goes on as it would have.

use std::fs;
use std::path::Path;

use formats::write_whole;
use models::training::{AdamW, Adapters};
use serde::{Deserialize, Serialize};
use wire::Failure;

use super::sounds::unwritable;

const FILE: &str = "checkpoint";

/// Where an adaptation stands between two steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// What is counted.
    pub place: Place,
    /// Of [`Adapters::values`]; empty before the first step.
    pub values: Vec<f32>,
    /// Of [`AdamW::state`].
    pub moments: Vec<f32>,
    /// The values with the best result on what was held back; empty where there is none yet.
    pub best: Vec<f32>,
}

/// What is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// What was asked for.
    pub request: String,
    /// Epochs that are over.
    pub epochs: u32,
    /// Batches of the next epoch that are done.
    pub batches: u32,
    /// Steps done in all.
    pub steps: u32,
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// The loss of what was held back, before the first epoch and after each.
    pub held_back: Vec<f32>,
    /// The epoch with the best one, from 1; 0: none was better than the model as it is.
    pub best_epoch: u32,
}

impl Snapshot {
    /// Takes over what a step changed.
    pub fn take(&mut self, adapters: &Adapters, optimiser: &AdamW) -> Result<(), models::Error> {
        self.values = adapters.values()?;
        self.moments = optimiser.state()?;
        Ok(())
    }

    /// Writes it into a folder, in place of the one before.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let place = serde_json::to_vec(&self.place).unwrap_or_default();
        let parts = [&self.values, &self.moments, &self.best];
        let mut bytes = Vec::new();
        let lengths = [place.len(), parts[0].len(), parts[1].len(), parts[2].len()];
        lengths.iter().for_each(|length| bytes.extend((*length as u64).to_le_bytes()));
        bytes.extend(place);
        parts.into_iter().flatten().for_each(|value| bytes.extend(value.to_le_bytes()));
        fs::create_dir_all(folder)
            .and_then(|()| write_whole(&folder.join(FILE), &bytes))
            .map_err(|error| unwritable(folder, &error))
    }

    /// The one in a folder, if there is a whole one of this request.
    pub fn read(folder: &Path, request: &str) -> Option<Self> {
        let bytes = fs::read(folder.join(FILE)).ok()?;
        let (header, mut rest) = bytes.split_at_checked(32)?;
        let mut lengths = header.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes) as usize);
        let (place, values) = rest.split_at_checked(lengths.next()?)?;
        rest = values;
        let mut floats = || {
            let (part, behind) = rest.split_at_checked(lengths.next()?.checked_mul(4)?)?;
            rest = behind;
            Some(part.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<f32>>())
        };
        let (values, moments, best) = (floats()?, floats()?, floats()?);
        let place: Place = serde_json::from_slice(place).ok()?;
        (place.request == request && rest.is_empty()).then_some(Self { place, values, moments, best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { request: "this".into(), steps: 3, losses: vec![0.1, 0.3], ..Place::default() };
        let snapshot = Snapshot { place, values: vec![1.5, -0.1], moments: vec![0.2], best: vec![] };
        snapshot.write(folder.path()).unwrap();
        assert_eq!(Snapshot::read(folder.path(), "this"), Some(snapshot));
        assert_eq!(Snapshot::read(folder.path(), "another"), None);
        let whole = fs::read(folder.path().join(FILE)).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.path().join(FILE), &whole[..length]).unwrap();
            assert_eq!(Snapshot::read(folder.path(), "this"), None, "{length}");
        }
    }
}
