use std::path::Path;

use memory::{DeviceKind, Footprint, StreamedSpeakers};

use crate::{Error, NemotronFiles, SpeakerFiles};

/// A model that tells speakers apart, of any of the known layouts.
#[derive(Debug, Clone, PartialEq)]
pub enum SpeakerModel {
    /// pyannote's community-1.
    Community(SpeakerFiles),
    /// NVIDIA's Nemotron-3-Diarization.
    Nemotron(Box<NemotronFiles>),
}

impl SpeakerModel {
    /// Finds the files in a model's folder; `None` where it is no folder of such a
    /// model.
    ///
    /// # Errors
    /// [`Error::Missing`] for one in which some of the files are missing;
    /// [`Error::Invalid`] for one whose description is wrong.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        if let Some(files) = SpeakerFiles::find(folder)? {
            return Ok(Some(Self::Community(files)));
        }
        Ok(NemotronFiles::find(folder)?.map(|files| Self::Nemotron(Box::new(files))))
    }

    /// All of its files.
    pub fn all(&self) -> Vec<&Path> {
        match self {
            Self::Community(files) => files.all().into(),
            Self::Nemotron(files) => vec![&files.description, &files.weights],
        }
    }

    /// Reads the headers of its files, and checks that they are what their names say.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and one of another network, naming what
    /// is wrong; [`Error::Io`] for what can't be read.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Community(files) => files.check(),
            Self::Nemotron(files) => files.check(),
        }
    }
}

/// What telling speakers apart is predicted to take on a device of this kind, with the
/// model in a folder, or with the networks in the program. A folder without a model is
/// taken for community-1: what opens it says what is wrong.
pub fn speaker_footprint(folder: Option<&Path>, kind: DeviceKind) -> Footprint {
    let Some(folder) = folder else { return Footprint::speakers(kind) };
    let Ok(Some(SpeakerModel::Nemotron(files))) = SpeakerModel::find(folder) else {
        return Footprint::speaker_model(kind);
    };
    let (config, of) = (&files.config, &files.config.audio_config);
    let numbers = config.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>() as u64).sum();
    // A step keeps the latest frames and those of a chunk that are still to be moved.
    let length = config.streaming_config.speaker_cache_length
        + config.fifo_length
        + config.chunk_length
        + config.chunk_right_context;
    Footprint::streamed_speakers(
        kind,
        StreamedSpeakers {
            weights: numbers,
            length: length as u64,
            width: of.hidden_size as u64,
            inner: of.intermediate_size as u64,
            heads: of.num_attention_heads as u64,
            spectrogram: (of.subsampling_factor * of.num_mel_bins) as u64,
            upsampled: (of.subsampling_factor * config.head_config.hidden_size) as u64,
        },
    )
}
