//! Voices that Steno knows: people with samples of how they sound.
//!
//! Biometric data. It lies in a file of its own that no other part of the program copies, comes
//! into being when the user adds the first voice, and is overwritten when it is removed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use wire::{EncodedVoice, KnownVoice};

use crate::host::now;
use crate::journal::transact;
use crate::open::{QuarantineReason, connect};
use crate::{Error, Problem};

/// File name of the voices in the state folder.
pub const VOICES_FILE: &str = "voices.sqlite";

const MIGRATIONS: [&str; 1] = [include_str!("1.sql")];

/// A sample with less speech than this is called short, in seconds.
const SHORT: f64 = 6.0;
/// Share of other people's speech from which on a sample is called mixed.
const MIXED: f64 = 0.15;

/// A sample further from the others than this and the distance up to which a name is offered, as a
/// cosine distance, sounds like another person. With the network in the program, of one person's
/// samples 1 in 15 does, of two people's 19 in 20.
const UNLIKE: f32 = 0.05;

/// The open file of voices.
#[derive(Debug)]
pub struct Voices {
    path: PathBuf,
    connection: Mutex<Connection>,
}

/// A person, and what they are recognised by.
#[derive(Debug, Clone, PartialEq)]
pub struct Voice {
    /// What the person is called in transcripts.
    pub name: String,
    /// When the first sample was added, in milliseconds since 1970.
    pub created: i64,
    /// In the order in which they were added.
    pub samples: Vec<VoiceSample>,
}

/// One recording's part in a voice.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct VoiceSample {
    /// File name of the recording.
    pub source: String,
    /// Speech of the person in it.
    pub seconds: f64,
    /// Speech of others in it.
    pub seconds_of_others: f64,
    /// The weights that made the vector.
    pub network: String,
    /// Of length 1.
    pub vector: Vec<f32>,
}

impl std::fmt::Debug for VoiceSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VoiceSample {{ seconds: {}, .. }}", self.seconds)
    }
}

/// What makes a sample a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// It has little speech.
    Short,
    /// Others speak in it as well.
    Mixed,
    /// It sounds like somebody else than the other samples of the voice.
    Unlike,
}

impl VoiceSample {
    /// A sample of a recording.
    pub fn new(source: &str, voice: EncodedVoice) -> Self {
        Self {
            source: source.into(),
            seconds: f64::from(voice.seconds),
            seconds_of_others: f64::from(voice.seconds_of_others),
            network: voice.network,
            vector: voice.vector,
        }
    }
}

impl Voice {
    /// How far a sample is from the others, as a cosine distance; `None` for a single one.
    pub fn distance(&self, sample: usize) -> Option<f32> {
        let this = self.samples.get(sample)?;
        let others = self.samples.iter().enumerate();
        let others = others.filter(|(number, other)| *number != sample && other.network == this.network);
        let mean = mean(others.map(|(_, other)| other))?;
        Some(1.0 - this.vector.iter().zip(&mean).map(|(x, y)| x * y).sum::<f32>())
    }

    /// What makes the sample a bad one.
    pub fn flaws(&self, sample: usize) -> Vec<Flaw> {
        let Some(this) = self.samples.get(sample) else { return Vec::new() };
        let mixed = this.seconds_of_others > MIXED * (this.seconds + this.seconds_of_others);
        let unlike = self.distance(sample).is_some_and(|distance| {
            let (_, maybe_same) = KnownVoice::limits(&this.network);
            distance > maybe_same + UNLIKE
        });
        let all = [(Flaw::Short, this.seconds < SHORT), (Flaw::Mixed, mixed), (Flaw::Unlike, unlike)];
        all.into_iter().filter(|(_, is)| *is).map(|(flaw, _)| flaw).collect()
    }

    /// What an engine recognises the person by: the mean of the samples of each network.
    fn known(&self) -> Vec<KnownVoice> {
        let mut networks: Vec<&str> = self.samples.iter().map(|sample| sample.network.as_str()).collect();
        networks.sort_unstable();
        networks.dedup();
        let of = |network: &str| {
            let vector = mean(self.samples.iter().filter(|sample| sample.network == network))?;
            Some(KnownVoice { name: self.name.clone(), network: network.into(), vector })
        };
        networks.into_iter().filter_map(of).collect()
    }
}

/// The direction of the mean, of length 1; `None` of nothing.
fn mean<'a>(samples: impl Iterator<Item = &'a VoiceSample>) -> Option<Vec<f32>> {
    let mut sum: Vec<f32> = Vec::new();
    for sample in samples {
        sum.resize(sample.vector.len(), 0.0);
        sum.iter_mut().zip(&sample.vector).for_each(|(sum, x)| *sum += x);
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    (length > 0.0).then(|| sum.into_iter().map(|x| x / length).collect())
}

impl Voices {
    /// Opens the file, and creates it and its folder if missing. A damaged file stays in place.
    ///
    /// # Errors
    /// If the file is damaged, of a newer version, or can't be read, written or locked.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let problem = match connect(path, &MIGRATIONS)? {
            Ok(connection) => return Ok(Self { path: path.into(), connection: Mutex::new(connection) }),
            Err(QuarantineReason::Newer(version)) => Problem::Newer(version),
            Err(QuarantineReason::Damaged(why)) => Problem::Damaged(why),
        };
        Err(Error { path: path.into(), problem })
    }

    /// As [`Voices::open`]; `None` where the user has never added a voice.
    ///
    /// # Errors
    /// As [`Voices::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, Error> {
        if path.exists() { Self::open(path).map(Some) } else { Ok(None) }
    }

    /// Adds samples to a person's voice, all or none. A person of a new name is added.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn add(&self, name: &str, samples: &[VoiceSample]) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "INSERT INTO people (name, created) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
                params![name, now()],
            )?;
            let person: i64 =
                transaction.query_row("SELECT id FROM people WHERE name = ?1", [name], |row| row.get(0))?;
            for sample in samples {
                transaction.execute(
                    "INSERT INTO samples (person, source, seconds, seconds_of_others, network, vector, added)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![
                        person,
                        sample.source,
                        sample.seconds,
                        sample.seconds_of_others,
                        sample.network,
                        to_bytes(&sample.vector),
                        now()
                    ],
                )?;
            }
            Ok(())
        })
    }

    /// All voices in the order of their names, and the names of those of which a sample is damaged,
    /// which is left out.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn list(&self) -> Result<(Vec<Voice>, Vec<String>), Error> {
        self.change(|transaction| {
            let mut people = transaction.prepare("SELECT id, name, created FROM people ORDER BY name")?;
            let mut samples = transaction.prepare(
                "SELECT source, seconds, seconds_of_others, network, vector FROM samples
                 WHERE person = ?1 ORDER BY id",
            )?;
            let people: Vec<(i64, String, i64)> = people
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let (mut voices, mut damaged) = (Vec::new(), Vec::new());
            for (id, name, created) in people {
                let read: Vec<Option<VoiceSample>> =
                    samples.query_map([id], sample)?.collect::<rusqlite::Result<_>>()?;
                if read.iter().any(Option::is_none) {
                    damaged.push(name.clone());
                }
                voices.push(Voice { name, created, samples: read.into_iter().flatten().collect() });
            }
            Ok((voices, damaged))
        })
    }

    /// What an engine recognises people by.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn known(&self) -> Result<Vec<KnownVoice>, Error> {
        Ok(self.list()?.0.iter().flat_map(Voice::known).collect())
    }

    /// Gives a person another name; false where there is none of the old name, or one of the new.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn rename(&self, name: &str, new: &str) -> Result<bool, Error> {
        self.change(|transaction| {
            let query = "SELECT 1 FROM people WHERE name = ?1";
            let is_taken = transaction.query_row(query, [new], |_| Ok(())).optional()?.is_some();
            let query = "UPDATE people SET name = ?2 WHERE name = ?1";
            Ok(!is_taken && transaction.execute(query, [name, new])? > 0)
        })
    }

    /// Removes a person with all samples for good: the file has nothing of them afterwards. False
    /// where there is none of that name.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let removed =
            self.change(|transaction| transaction.execute("DELETE FROM people WHERE name = ?1", [name]))? > 0;
        self.forget()?;
        Ok(removed)
    }

    /// Removes one sample of a person for good, counted from 0.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn remove_sample(&self, name: &str, number: usize) -> Result<bool, Error> {
        let removed = self.change(|transaction| {
            transaction.execute(
                "DELETE FROM samples WHERE id = (SELECT samples.id FROM samples JOIN people ON people.id = person
                 WHERE name = ?1 ORDER BY samples.id LIMIT 1 OFFSET ?2)",
                params![name, number as i64],
            )
        })? > 0;
        self.forget()?;
        Ok(removed)
    }

    /// Rewrites the file without what was deleted, its log as well.
    fn forget(&self) -> Result<(), Error> {
        let connection = self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let done = connection
            .execute_batch("VACUUM")
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        done.map_err(|error| Error::of(&self.path, error))
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction) -> rusqlite::Result<T>) -> Result<T, Error> {
        transact(&self.path, &self.connection, change)
    }
}

/// `None` where its vector is damaged.
fn sample(row: &Row) -> rusqlite::Result<Option<VoiceSample>> {
    let bytes: Vec<u8> = row.get(4)?;
    let chunks = bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let vector: Vec<f32> = chunks.collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let is_whole = bytes.len().is_multiple_of(4) && (length - 1.0).abs() < 1e-3;
    Ok(is_whole.then_some(VoiceSample {
        source: row.get(0)?,
        seconds: row.get(1)?,
        seconds_of_others: row.get(2)?,
        network: row.get(3)?,
        vector,
    }))
}

fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}
