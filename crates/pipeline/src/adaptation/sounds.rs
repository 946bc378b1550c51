//! The sound of all lessons, in one file on disk: recordings are decoded once, and what training
//! holds in memory does not grow with them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use audio::{PrepareOptions, Recording, SAMPLE_RATE};
use serde::{Deserialize, Serialize};
use wire::{Adapt, ErrorCode, Failure, Job, Lesson};

use crate::{Control, StageError};

const SAMPLES: &str = "sounds.pcm";
const PLACES: &str = "sounds.json";

/// Where the sounds of lessons lie, in the order of lessons.
#[derive(Debug)]
pub struct Sounds {
    path: PathBuf,
    places: Vec<Place>,
}

/// A lesson's samples in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    first: u64,
    count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Places {
    request: String,
    places: Vec<Place>,
}

impl Sounds {
    /// Of so many samples each, which can't be read.
    #[cfg(test)]
    pub fn of_lengths(samples: &[usize]) -> Self {
        let place = |count: &usize| Place { first: 0, count: *count as u64 };
        Self { path: PathBuf::new(), places: samples.iter().map(place).collect() }
    }

    /// Those of an earlier attempt, or decoded now.
    pub fn of(asked: &Adapt, request: &str, n_mels: usize, control: &Control) -> Result<Self, StageError> {
        let folder = asked.folder.as_path();
        let path = folder.join(SAMPLES);
        let known = fs::read(folder.join(PLACES)).ok();
        let known = known.and_then(|bytes| serde_json::from_slice::<Places>(&bytes).ok());
        if let Some(known) = known.filter(|known| known.request == request && path.is_file()) {
            return Ok(Self { path, places: known.places });
        }
        let places = decode(asked, &path, n_mels, control)?;
        let known = Places { request: request.to_owned(), places };
        let bytes = serde_json::to_vec(&known).unwrap_or_default();
        formats::write_whole(&folder.join(PLACES), &bytes).map_err(|error| unwritable(folder, &error))?;
        Ok(Self { path, places: known.places })
    }

    /// Samples of a lesson.
    pub fn len(&self, lesson: usize) -> usize {
        self.places[lesson].count as usize
    }

    /// Seconds of all lessons.
    pub fn seconds(&self) -> f64 {
        self.places.iter().map(|place| place.count).sum::<u64>() as f64 / f64::from(SAMPLE_RATE)
    }

    /// A lesson's samples.
    pub fn read(&self, lesson: usize) -> Result<Vec<f32>, StageError> {
        let place = self.places[lesson];
        let mut bytes = vec![0; 2 * place.count as usize];
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(2 * place.first))?;
            file.read_exact(&mut bytes)
        });
        read.map_err(|error| {
            let text = format!("The prepared sound can't be read: {error}.");
            Failure::new(ErrorCode::Internal, text).file(self.path.as_path())
        })?;
        let sample = |bytes: &[u8; 2]| f32::from(i16::from_le_bytes(*bytes)) / 32768.0;
        Ok(bytes.as_chunks().0.iter().map(sample).collect())
    }
}

fn decode(asked: &Adapt, path: &Path, n_mels: usize, control: &Control) -> Result<Vec<Place>, StageError> {
    let folder = asked.folder.as_path();
    let written = |result: std::io::Result<()>| result.map_err(|error| unwritable(folder, &error));
    written(fs::create_dir_all(folder))?;
    let mut file = BufWriter::new(File::create(path).map_err(|error| unwritable(folder, &error))?);
    let mut places = vec![Place { first: 0, count: 0 }; asked.lessons.len()];
    let mut by_file: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for (number, lesson) in asked.lessons.iter().enumerate() {
        by_file.entry(lesson.file.as_path()).or_default().push(number);
    }
    let mut first = 0;
    for (recording_path, lessons) in by_file {
        let options = PrepareOptions {
            n_mels,
            spool_folder: asked.job.spool_folder.as_ref().map(|folder| folder.0.clone()),
            ..PrepareOptions::default()
        };
        let recording = audio::prepare(recording_path, &options, &mut |_, _| {
            control.worked();
            if control.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let recording = recording.map_err(|error| {
            let job = Job { file: recording_path.into(), ..asked.job.clone() };
            StageError::Failed(StageError::Audio(error).failure(&job))
        })?;
        for number in lessons {
            let samples = of_lesson(&recording, &asked.lessons[number])?;
            places[number] = Place { first, count: samples.len() as u64 };
            first += samples.len() as u64;
            let bytes: Vec<u8> = samples
                .iter()
                .flat_map(|sample| ((sample * 32768.0).round().clamp(-32768.0, 32767.0) as i16).to_le_bytes())
                .collect();
            written(file.write_all(&bytes))?;
        }
    }
    written(file.flush())?;
    Ok(places)
}

/// The part of the recording; of a whole one from its first to its last voice.
fn of_lesson(recording: &Recording, lesson: &Lesson) -> Result<Vec<f32>, StageError> {
    /// Around the voice, in samples.
    const MARGIN: u64 = SAMPLE_RATE as u64 / 10;
    let end = recording.pcm.len();
    let (from, to) = match lesson.span {
        Some(span) => {
            let at = |time: transcript::Time| (time.seconds() * f64::from(SAMPLE_RATE)).round() as u64;
            (at(span.start).min(end), at(span.end).min(end))
        }
        None => match (recording.voiced.first(), recording.voiced.last()) {
            (Some(first), Some(last)) => (first.start.saturating_sub(MARGIN), (last.end + MARGIN).min(end)),
            _ => (0, end),
        },
    };
    let longest = audio::WINDOW_SAMPLES as u64;
    if to - from.min(to) > longest {
        let text = "More than 30 seconds are to be learnt from at once.";
        return Err(Failure::new(ErrorCode::BadSettings, text)
            .file(lesson.file.clone())
            .remedy("Give a transcript with times in place of a plain text.")
            .into());
    }
    let mut samples = vec![0.0; to.saturating_sub(from) as usize];
    recording.pcm.read(from as i64, &mut samples)?;
    Ok(samples)
}

/// What to say of a folder for interruptions that can't be written.
pub fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull => ErrorCode::DiskFull,
        _ => ErrorCode::OutputUnwritable,
    };
    Failure::new(code, format!("The folder can't be written: {error}.")).file(folder)
}
