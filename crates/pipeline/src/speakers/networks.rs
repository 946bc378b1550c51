//! The networks that tell speakers apart: those in the program, or those of an
//! installed model.

use std::ops::Range;
use std::path::Path;

use audio::{Pcm, SAMPLE_RATE};
use candle_core::Device;
use formats::SpeakerModel;
use models::Error;
use models::speakers::{Plda, VoiceEncoder};

use super::community::{self, CommunityHeard, CommunityNetworks, LocalVoice};
use super::listen::{Ear, FRAME_SECONDS, Utterance, normalise};
use super::nemotron::{self, NemotronHeard, NemotronNetworks};
use super::{Bounds, Diarization, Heard, Networks, diarize, listen};
use crate::StageError;
use crate::error::model_failure;

/// The networks of a job, on one device.
#[derive(Debug)]
pub enum SpeakerNetworks {
    /// Those in the program.
    Bundled(Box<Networks>),
    /// Those of an installed model in community-1's layout.
    Community(Box<CommunityNetworks>),
    /// That of an installed Nemotron, with those in the program.
    Nemotron(Box<NemotronNetworks>),
}

/// What they heard in a whole recording.
#[derive(Debug)]
pub enum AnyHeard {
    /// With the networks in the program.
    Bundled(Heard),
    /// With those of an installed model in community-1's layout.
    Community {
        /// Windows and voices.
        heard: CommunityHeard,
        /// What compares the voices.
        plda: Box<Plda>,
        /// The network that made the voices.
        network: String,
    },
    /// With an installed Nemotron.
    Nemotron(NemotronHeard),
}

/// What clustering and assigning take with the networks in the program: a matrix of
/// distances, and one vector per utterance.
const DECIDING_BYTES: u64 = 16 << 20;

/// Cosine distance within which two voices of WeSpeaker's network may be one person's: published
/// thresholds lie between 0.45 and 0.65.
const ALIKE_WESPEAKER: f32 = 0.55;

impl AnyHeard {
    /// Whether anyone speaks.
    pub fn has_speech(&self) -> bool {
        match self {
            Self::Bundled(heard) => !heard.utterances.is_empty(),
            Self::Community { heard, .. } => !heard.voices.is_empty(),
            Self::Nemotron(heard) => heard.frames.iter().any(|frame| *frame != 0),
        }
    }

    /// Cosine distance within which two of its voices may be one person's.
    pub(super) fn alike(&self) -> f32 {
        match self {
            Self::Bundled(_) | Self::Nemotron(_) => super::people::THRESHOLD,
            Self::Community { .. } => ALIKE_WESPEAKER,
        }
    }

    /// What [`AnyHeard::diarize`] takes of memory.
    pub fn deciding_bytes(&self) -> u64 {
        match self {
            Self::Bundled(_) | Self::Nemotron(_) => DECIDING_BYTES,
            Self::Community { heard, .. } => community::deciding_bytes(heard),
        }
    }

    /// Decides who is who and when they speak. `seconds` is the recording's length.
    pub fn diarize(&self, seconds: f64, bounds: Bounds) -> Diarization {
        match self {
            Self::Bundled(heard) => diarize(heard, seconds, bounds),
            Self::Community { heard, plda, network } => {
                community::diarize(heard, plda, network, seconds, bounds)
            }
            Self::Nemotron(heard) => nemotron::diarize(heard, seconds, bounds),
        }
    }
}

impl SpeakerNetworks {
    /// Those of the model in a folder, or those in the program.
    ///
    /// # Errors
    /// If the model is missing, damaged or of another kind, or the device has no room for
    /// the networks.
    pub fn open(folder: Option<&Path>, device: &Device) -> Result<Self, StageError> {
        let Some(folder) = folder else { return Ok(Self::Bundled(Box::new(Networks::bundled(device)?))) };
        let opened = files(folder).and_then(|files| {
            Ok(match &files {
                SpeakerModel::Community(files) => {
                    Self::Community(Box::new(CommunityNetworks::open(files, device)?))
                }
                SpeakerModel::Nemotron(files) => {
                    Self::Nemotron(Box::new(NemotronNetworks::open(files, device)?))
                }
            })
        });
        match opened {
            Ok(networks) => Ok(networks),
            // What the device has no room for is not the model's fault.
            Err(Error::Files(error)) => {
                let failure = model_failure(&Error::Files(error), &folder.into());
                Err(failure
                    .remedy("Install the speaker model again, or choose another one with --speaker-model.")
                    .into())
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Names the network of the voices: vectors of another can't be compared with its.
    pub fn voices_name(&self) -> &str {
        match self {
            Self::Bundled(_) | Self::Nemotron(_) => VoiceEncoder::NAME,
            Self::Community(networks) => networks.voices_name(),
        }
    }

    /// Listens to stretches of a recording.
    pub(super) fn part_listener<'a>(&'a self, pcm: &'a Pcm) -> PartListener<'a> {
        match self {
            Self::Bundled(networks) => PartListener::Bundled(Box::new(Ear::new(pcm, networks, 1))),
            Self::Community(networks) => PartListener::Community(pcm, networks),
            Self::Nemotron(networks) => PartListener::Bundled(Box::new(Ear::new(pcm, networks.bundled(), 1))),
        }
    }

    /// Listens to a whole recording, `batch` windows at a time. `reached` is told the sample
    /// behind each batch, and how to find who speaks when in what was heard until then.
    ///
    /// # Errors
    /// What `reached` answers, or where a network or the recording's file fails.
    pub fn listen(
        &self,
        pcm: &Pcm,
        batch: usize,
        reached: &mut dyn FnMut(u64, &SoFar<'_>) -> Result<(), StageError>,
    ) -> Result<AnyHeard, StageError> {
        match self {
            Self::Bundled(networks) => {
                let mut heard = Heard::default();
                listen(pcm, networks, batch, &mut heard, &mut |sample, heard| {
                    let diarize = &|bounds| diarize(heard, seconds(sample), bounds);
                    reached(sample, &SoFar { diarize, bytes: DECIDING_BYTES })
                })?;
                Ok(AnyHeard::Bundled(heard))
            }
            Self::Community(networks) => {
                let mut heard = CommunityHeard::default();
                let (plda, network) = (Box::new(networks.plda().clone()), self.voices_name().to_owned());
                community::listen(pcm, networks, batch, &mut heard, &mut |sample, heard| {
                    let diarize =
                        &|bounds| community::diarize(heard, &plda, &network, seconds(sample), bounds);
                    reached(sample, &SoFar { diarize, bytes: community::deciding_bytes(heard) })
                })?;
                Ok(AnyHeard::Community { heard, plda, network })
            }
            Self::Nemotron(networks) => {
                let mut heard = NemotronHeard::default();
                nemotron::listen(pcm, networks, &mut heard, &mut |sample, heard| {
                    let diarize = &|bounds| nemotron::diarize(heard, seconds(sample), bounds);
                    reached(sample, &SoFar { diarize, bytes: DECIDING_BYTES })
                })?;
                Ok(AnyHeard::Nemotron(heard))
            }
        }
    }
}

/// What was heard so far.
pub struct SoFar<'a> {
    /// Finds who speaks when in it.
    pub diarize: &'a dyn Fn(Bounds) -> Diarization,
    /// What that takes of memory.
    pub bytes: u64,
}

impl std::fmt::Debug for SoFar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoFar").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn seconds(sample: u64) -> f64 {
    sample as f64 / f64::from(SAMPLE_RATE)
}

/// A voice in a stretch of sound.
#[derive(Debug)]
pub(super) struct VoicePart {
    /// The speaker's number in the stretch.
    pub speaker: u8,
    /// Speech that the vector was made of.
    pub seconds: f32,
    /// Of length 1.
    pub vector: Vec<f32>,
}

/// Listens to stretches of a recording, each no longer than a window.
pub(super) enum PartListener<'a> {
    Bundled(Box<Ear<'a>>),
    Community(&'a Pcm, &'a CommunityNetworks),
}

impl PartListener<'_> {
    /// The voices in a range of samples.
    pub fn hear(&mut self, part: &Range<u64>) -> Result<Vec<VoicePart>, StageError> {
        match self {
            Self::Bundled(ear) => {
                let (_, utterances) = ear.hear(std::slice::from_ref(part), 0)?;
                let part = |one: Utterance| VoicePart {
                    speaker: one.speaker,
                    seconds: one.seconds,
                    vector: one.vector,
                };
                Ok(utterances.into_iter().map(part).collect())
            }
            Self::Community(pcm, networks) => {
                let voices = community::hear_part(pcm, networks, part)?;
                let part = |mut one: LocalVoice| {
                    normalise(&mut one.vector);
                    VoicePart {
                        speaker: one.speaker,
                        seconds: one.alone as f32 * FRAME_SECONDS,
                        vector: one.vector,
                    }
                };
                Ok(voices.into_iter().map(part).collect())
            }
        }
    }
}

/// The files of the model in a folder.
fn files(folder: &Path) -> Result<SpeakerModel, Error> {
    SpeakerModel::find(folder)?.ok_or_else(|| {
        let reason = "it is no folder of a model that tells speakers apart".to_owned();
        Error::Files(formats::Error::Invalid { path: folder.into(), reason })
    })
}
