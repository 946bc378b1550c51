use std::path::{Path, PathBuf};

use crate::{Error, Tensors, read_npz};

/// The files of a model that tells speakers apart, in the layout of pyannote's
/// `speaker-diarization-community-1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeakerFiles {
    /// Weights of the network that finds speakers in a window.
    pub segmentation: PathBuf,
    /// Weights of the network that turns a voice into a vector.
    pub embedding: PathBuf,
    /// Means and projection that come before the comparison of voices.
    pub transform: PathBuf,
    /// The probabilistic linear discriminant analysis that compares them.
    pub plda: PathBuf,
}

/// Weights, by preference.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

impl SpeakerFiles {
    /// Finds the files in a model's folder; `None` where it is no folder of such a
    /// model.
    ///
    /// # Errors
    /// [`Error::Missing`] for one in which some of the files are missing.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        let parts = ["segmentation", "embedding", "plda"];
        if !parts[..2].iter().any(|part| folder.join(part).is_dir()) {
            return Ok(None);
        }
        let missing = |file| Error::Missing { folder: folder.into(), file };
        let weights = |part: &str, file| {
            let paths = WEIGHTS.map(|name| folder.join(part).join(name));
            paths.into_iter().find(|path| path.is_file()).ok_or(missing(file))
        };
        let arrays = |name: &str, file| {
            let path = folder.join(parts[2]).join(name);
            if path.is_file() { Ok(path) } else { Err(missing(file)) }
        };
        Ok(Some(Self {
            segmentation: weights(parts[0], "segmentation/pytorch_model.bin")?,
            embedding: weights(parts[1], "embedding/pytorch_model.bin")?,
            transform: arrays("xvec_transform.npz", "plda/xvec_transform.npz")?,
            plda: arrays("plda.npz", "plda/plda.npz")?,
        }))
    }

    /// All of them.
    pub fn all(&self) -> [&Path; 4] {
        [&self.segmentation, &self.embedding, &self.transform, &self.plda]
    }

    /// Reads the headers of the networks and the arrays, and checks that they are
    /// what their names say.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and one of another network, naming what
    /// is wrong; [`Error::Io`] for what can't be read.
    pub fn check(&self) -> Result<(), Error> {
        for (path, tensors) in [
            (&self.segmentation, &["sincnet.wav_norm1d.weight", "lstm.weight_hh_l0", "classifier.weight"]),
            (
                &self.embedding,
                &["resnet.conv1.weight", "resnet.layer4.0.conv1.weight", "resnet.seg_1.weight"],
            ),
        ] {
            let found = Tensors::open_file(path)?;
            if let Some(name) = tensors.iter().find(|name| !found.index.contains_key(**name)) {
                return Err(Error::invalid(path, format!("the tensor {name} is missing")));
            }
        }
        for (path, names) in [(&self.transform, ["mean1", "mean2", "lda"]), (&self.plda, ["mu", "tr", "psi"])]
        {
            let found = read_npz(path)?;
            if let Some(name) = names.iter().find(|name| !found.contains_key(**name)) {
                return Err(Error::invalid(path, format!("the array {name} is missing")));
            }
        }
        Ok(())
    }
}
