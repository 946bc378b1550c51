//! People whom Steno recognises by their voice.

use serde::Serialize;
use ts_rs::TS;

use super::Failure;
use crate::session;

/// The page's list of voices.
#[derive(Debug, Clone, Serialize, TS)]
pub struct VoiceList {
    /// In the order of their names.
    pub voices: Vec<Voice>,
    /// Names of those of which a sample is damaged and left out.
    pub damaged: Vec<String>,
}

/// A person who is recognised.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Voice {
    /// What the person is called in transcripts.
    pub name: String,
    /// In the order in which they were added.
    pub samples: Vec<VoiceSample>,
}

/// One recording's part in a voice.
#[derive(Debug, Clone, Serialize, TS)]
pub struct VoiceSample {
    /// File name of the recording.
    pub source: String,
    /// Speech of the person in it.
    pub seconds: f64,
    /// How much it sounds like the other samples, from 0 to 1; null for a single one.
    pub likeness: Option<f32>,
    /// What makes it a bad one.
    pub flaws: Vec<library::Flaw>,
}

/// How far a recording from the microphone is.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Microphone {
    /// There is a program that can record.
    pub available: bool,
    /// Seconds so far; null: nothing is being recorded.
    pub seconds: Option<f64>,
    /// How loud the latest is, from 0 to 1.
    pub level: f32,
    /// Why nothing could be recorded.
    pub failure: Option<Failure>,
}

impl From<session::Microphone> for Microphone {
    fn from(microphone: session::Microphone) -> Self {
        let session::Microphone { available, seconds, level, failure } = microphone;
        Self { available, seconds, level, failure: failure.map(Failure::from) }
    }
}

impl VoiceList {
    /// All voices as the page shows them.
    pub fn new((voices, damaged): (Vec<library::Voice>, Vec<String>)) -> Self {
        Self { voices: voices.into_iter().map(Voice::new).collect(), damaged }
    }
}

impl Voice {
    fn new(voice: library::Voice) -> Self {
        let sample = |number: usize| VoiceSample {
            source: voice.samples[number].source.clone(),
            seconds: voice.samples[number].seconds,
            likeness: voice.distance(number).map(|distance| (1.0 - distance).clamp(0.0, 1.0)),
            flaws: voice.flaws(number),
        };
        Self { samples: (0..voice.samples.len()).map(sample).collect(), name: voice.name.clone() }
    }
}
