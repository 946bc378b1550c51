//! Adapters: one safetensors file with a card of what was learnt and either two small matrices for each
//! adapted one (low-rank adapters), named as `peft` names them, or corrections that are remembered.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::{Error, ModelFiles, Tensors, WhisperConfig, map_file};

/// The key of the card in the file's metadata.
const CARD: &str = "steno_adapter";
/// The key of what is remembered, without the states, in the file's metadata.
const REMEMBERED: &str = "steno_remembered";
/// The tensor of the states of what is remembered: (corrections, width).
const STATES: &str = "remembered.states";
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// What an adapter was learnt from, when, and with what success.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default)]
pub struct AdapterCard {
    /// The name of the model that it belongs to.
    pub model: String,
    /// Tells that model's weights from others ([`fingerprint`]).
    pub base: String,
    /// Rows of A and columns of B, from 1; 0 where there are no matrices.
    pub rank: u32,
    /// What B A is multiplied by is `alpha / rank`.
    pub alpha: f32,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Of the order of examples and of what A begins with.
    pub seed: u64,
    /// What was learnt from.
    pub learnt: Learnt,
    /// Times that everything was gone through, until the best adapter was there.
    pub epochs: u32,
    /// How much of what was learnt it has, of 1, where that is less than all; `alpha` is so much less.
    pub strength: Option<f32>,
    /// Corrections that are remembered.
    pub remembered: usize,
    /// The mean loss per token of what was held back, before and after, with all that was learnt.
    pub held_back_loss: Option<(f32, f32)>,
    /// Word errors with and without it; `None`: they were not counted yet.
    pub figures: Option<AdapterFigures>,
}

/// What an adapter was learnt from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default)]
pub struct Learnt {
    /// Recordings.
    pub recordings: usize,
    /// Parts of them with their texts.
    pub segments: usize,
    /// Of those, the ones that the user corrected.
    pub corrected: usize,
    /// Seconds of sound.
    pub seconds: f64,
    /// ISO 639-1.
    pub languages: Vec<String>,
}

/// Word errors without and with an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct AdapterFigures {
    /// On corrections that were held back.
    pub corrections: WordErrors,
    /// On other recordings; `None` where there are none.
    pub others: Option<WordErrors>,
    /// On corrections that were learnt; `None` where there are none, and in the files of earlier versions.
    #[serde(default)]
    pub learnt: Option<WordErrors>,
}

/// Word errors without and with an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct WordErrors {
    /// Words in the reference.
    pub words: usize,
    /// Words wrong, missing or too many without it.
    pub before: usize,
    /// The same with it.
    pub after: usize,
    /// Words that are right with it and were not without, with how often; the most frequent first.
    pub better: Vec<(String, usize)>,
    /// Words that are not right with it and were without.
    pub worse: Vec<(String, usize)>,
}

impl AdapterCard {
    /// The factor of B A.
    pub fn scale(&self) -> f64 {
        f64::from(self.alpha) / f64::from(self.rank.max(1))
    }
}

/// The adapter of one matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterMatrix {
    /// The matrix's name, without `.weight`.
    pub name: String,
    /// Its rows.
    pub output: usize,
    /// Its columns.
    pub input: usize,
    /// (rank, input), row by row.
    pub a: Vec<f32>,
    /// (output, rank), row by row.
    pub b: Vec<f32>,
}

/// A correction that is remembered: where the decoder comes to a similar state again, the word is written in
/// place of what the model heard. Nearest neighbours among a decoder's states, as in kNN-LM (Khandelwal and
/// others, 2019, arXiv:1911.00172).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RememberedCorrection {
    /// Of what is said, ISO 639-1.
    pub language: String,
    /// What the model wrote: words separated by spaces, without punctuation around them.
    pub heard: String,
    /// What should have been written.
    pub word: String,
    /// A state counts as similar where the cosine between both is above this, from 0 to 1.
    pub least: f32,
    /// The decoder's last hidden state before the first token of what was heard, of length 1.
    #[serde(skip)]
    pub state: Vec<f32>,
}

/// An adapter in memory; a few megabytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdapterFile {
    /// Where it lies, for errors.
    pub path: PathBuf,
    /// What it is.
    pub card: AdapterCard,
    /// By name, sorted.
    pub matrices: Vec<AdapterMatrix>,
    /// In the order in which they were heard; their states are of the same width.
    pub remembered: Vec<RememberedCorrection>,
}

impl AdapterFile {
    /// Reads and checks an adapter: that each matrix has both parts, in the rank that the card
    /// names, and each correction a state, of finite numbers.
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be read, [`Error::Invalid`] for a file that is damaged or no adapter.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let map = map_file(path)?;
        Self::of_bytes(path, &map).map_err(|reason| Error::invalid(path, reason))
    }

    fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Self, String> {
        let text = |error: safetensors::SafeTensorError| error.to_string();
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(text)?;
        let entry = |key| header.metadata().as_ref().and_then(|metadata| metadata.get(key));
        let card = entry(CARD).ok_or("it is not an adapter of Steno: its header has no card")?;
        let card: AdapterCard =
            serde_json::from_str(card).map_err(|error| format!("its card can't be read: {error}"))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(text)?;
        let remembered = match entry(REMEMBERED) {
            Some(entry) => remembered(entry, &tensors)?,
            None => Vec::new(),
        };
        let rank = card.rank as usize;
        if !card.alpha.is_finite() || (rank == 0 && remembered.is_empty()) {
            return Err("its card names no rank and factor".into());
        }
        if card.remembered != remembered.len() {
            let (named, there) = (card.remembered, remembered.len());
            return Err(format!("its card names {named} corrections, and {there} are there"));
        }
        let mut matrices = Vec::new();
        let mut names: Vec<&str> = tensors.names().into_iter().filter_map(|it| it.strip_suffix(A)).collect();
        names.sort_unstable();
        for name in names {
            let part = |ending: &str| numbers(&tensors, &format!("{name}{ending}"));
            let ((a_shape, a), (b_shape, b)) = (part(A)?, part(B)?);
            let (&[a_rank, input], &[output, b_rank]) = (&a_shape[..], &b_shape[..]) else {
                return Err(format!("the adapter of {name} is not of matrices"));
            };
            if rank == 0 || (a_rank, b_rank) != (rank, rank) {
                return Err(format!("the adapter of {name} is not of the rank {rank} that the card names"));
            }
            matrices.push(AdapterMatrix { name: name.to_owned(), output, input, a, b });
        }
        if matrices.is_empty() && remembered.is_empty() {
            return Err("it adapts no matrix and remembers no correction".into());
        }
        Ok(Self { path: path.into(), card, matrices, remembered })
    }

    /// Writes it to [`AdapterFile::path`], whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self) -> io::Result<()> {
        let rank = self.card.rank as usize;
        let mut parts = Vec::new();
        for matrix in &self.matrices {
            parts.push((format!("{}{A}", matrix.name), vec![rank, matrix.input], bytes(&matrix.a)));
            parts.push((format!("{}{B}", matrix.name), vec![matrix.output, rank], bytes(&matrix.b)));
        }
        let mut header = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        if let Some(RememberedCorrection { state, .. }) = self.remembered.first() {
            let states: Vec<f32> = self.remembered.iter().flat_map(|it| &it.state).copied().collect();
            parts.push((STATES.to_owned(), vec![self.remembered.len(), state.len()], bytes(&states)));
            header.insert(REMEMBERED.to_owned(), serde_json::to_string(&self.remembered)?);
        }
        let views = parts.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(io::Error::other)?;
            Ok((name.as_str(), view))
        });
        let views = views.collect::<io::Result<Vec<_>>>()?;
        header.insert(CARD.to_owned(), serde_json::to_string(&self.card)?);
        let contents = safetensors::serialize(views, Some(header)).map_err(io::Error::other)?;
        write_whole(&self.path, &contents)
    }

    /// Whether it fits a model: its matrices, and the width of its states.
    ///
    /// # Errors
    /// What does not fit, as [`Error::Invalid`]; those of reading the model.
    pub fn check_fits(&self, model: &Path) -> Result<(), Error> {
        let tensors = Tensors::open(model)?;
        for AdapterMatrix { name, output, input, .. } in &self.matrices {
            let found = tensors.index.get(&format!("{name}.weight"));
            if found.is_none_or(|tensor| tensor.shape != [*output, *input]) {
                let reason = format!("the model at {} has no {name} of {output} x {input}", model.display());
                return Err(Error::invalid(&self.path, reason));
            }
        }
        if self.remembered.is_empty() {
            return Ok(());
        }
        self.check_width(WhisperConfig::read(model)?.dimensions.width)
    }

    /// Whether the states of what it remembers are those of a decoder of this width.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they are not.
    pub fn check_width(&self, width: u64) -> Result<(), Error> {
        match self.remembered.iter().find(|it| it.state.len() as u64 != width) {
            None => Ok(()),
            Some(other) => {
                let reason = format!(
                    "it remembers states of {} numbers; those of the model have {width}",
                    other.state.len()
                );
                Err(Error::invalid(&self.path, reason))
            }
        }
    }
}

/// What is remembered, with the states of the tensor beside it.
fn remembered(entry: &str, tensors: &SafeTensors) -> Result<Vec<RememberedCorrection>, String> {
    let found: Vec<RememberedCorrection> =
        serde_json::from_str(entry).map_err(|error| format!("what it remembers can't be read: {error}"))?;
    let (shape, states) = numbers(tensors, STATES)?;
    let &[count, width] = &shape[..] else { return Err("what it remembers has no states".into()) };
    if count != found.len() || width == 0 {
        return Err(format!("it has {count} states for {} corrections", found.len()));
    }
    let is_unit = |state: &[f32]| (state.iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 0.01;
    for (RememberedCorrection { heard, word, least, .. }, state) in
        found.iter().zip(states.chunks_exact(width))
    {
        if heard.is_empty() || word.is_empty() || !(0.0..1.0).contains(least) || !is_unit(state) {
            return Err(format!("the correction of \"{heard}\" to \"{word}\" is damaged"));
        }
    }
    let states = states.chunks_exact(width).map(<[f32]>::to_vec);
    Ok(found.into_iter().zip(states).map(|(it, state)| RememberedCorrection { state, ..it }).collect())
}

/// Shape and values of a tensor in 32 bits, all of them finite.
fn numbers(tensors: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
    let view = tensors.tensor(name).map_err(|_| format!("the tensor {name} is missing"))?;
    let values = floats(&view).ok_or_else(|| format!("the tensor {name} is not in 32 bits"))?;
    if !values.iter().all(|value| value.is_finite()) {
        return Err(format!("the tensor {name} has numbers that are not finite"));
    }
    Ok((view.shape().to_vec(), values))
}

/// Writes beside the final name, has it on the disk, then renames.
///
/// # Errors
/// Those of the file system.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&partial, path));
    if renamed.is_err() {
        // What can't be removed was perhaps never made; the first error counts.
        let _ = std::fs::remove_file(&partial);
    }
    renamed
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(view: &TensorView) -> Option<Vec<f32>> {
    let values = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    (view.dtype() == Dtype::F32).then(|| values.collect())
}

/// Tells the weights of a model from those of another: a hash (FNV-1a, 64 bits) of the names and
/// shapes of all tensors and of the beginning of each. An adapter fits only the weights that it was
/// learnt beside.
///
/// # Errors
/// As [`Tensors::open`].
pub fn fingerprint(model: &Path) -> Result<String, Error> {
    /// Bytes that are read of each tensor.
    const BEGINNING: usize = 256;
    ModelFiles::find(model)?;
    let tensors = Tensors::open(model)?;
    let mut names: Vec<&String> = tensors.index.keys().collect();
    names.sort_unstable();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for name in names {
        let tensor = &tensors.index[name];
        add(name.as_bytes());
        tensor.shape.iter().for_each(|size| add(&(*size as u64).to_le_bytes()));
        let values = &tensors.files[tensor.file].1[tensor.bytes.clone()];
        add(&values[..values.len().min(BEGINNING)]);
    }
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(path: &Path) -> AdapterFile {
        let matrix = AdapterMatrix {
            name: "model.encoder.layers.0.fc1".into(),
            output: 3,
            input: 2,
            a: vec![1.0, 2.0],
            b: vec![0.5, -0.5, 0.25],
        };
        let card = AdapterCard { rank: 1, alpha: 2.0, model: "tiny".into(), ..AdapterCard::default() };
        AdapterFile { path: path.into(), card, matrices: vec![matrix], ..AdapterFile::default() }
    }

    fn remembered(path: &Path) -> AdapterFile {
        let correction = |heard: &str, state: [f32; 2]| RememberedCorrection {
            language: "en".into(),
            heard: heard.into(),
            word: "Aarhus".into(),
            least: 0.75,
            state: state.into(),
        };
        let remembered = vec![correction("R who's", [0.6, 0.8]), correction("our house", [-1.0, 0.0])];
        let card = AdapterCard { remembered: 2, model: "tiny".into(), ..AdapterCard::default() };
        AdapterFile { path: path.into(), card, remembered, ..AdapterFile::default() }
    }

    #[test]
    fn an_adapter_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        for adapter in [adapter(&path), remembered(&path)] {
            adapter.write().unwrap();
            assert_eq!(AdapterFile::read(&path).unwrap(), adapter);
        }
        let mut both = AdapterFile { remembered: remembered(&path).remembered, ..adapter(&path) };
        both.card.remembered = 2;
        both.write().unwrap();
        assert_eq!(AdapterFile::read(&path).unwrap(), both);
        assert!(both.check_width(2).is_ok());
        assert!(both.check_width(3).unwrap_err().to_string().contains("those of the model have 3"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_damaged_adapter_is_refused_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let reason = |change: &dyn Fn(&mut AdapterFile)| {
            let mut file = adapter(&path);
            change(&mut file);
            file.write().unwrap();
            AdapterFile::read(&path).unwrap_err().to_string()
        };
        let text = reason(&|file| file.matrices[0].b[1] = f32::NAN);
        assert!(text.contains("not finite") && text.contains("fc1"), "{text}");
        let text = reason(&|file| file.matrices.clear());
        assert!(text.contains("adapts no matrix"), "{text}");
        let text = reason(&|file| {
            *file = remembered(&path);
            file.remembered[1].state[0] = f32::INFINITY;
        });
        assert!(text.contains("not finite") && text.contains(STATES), "{text}");
        type Fault = fn(&mut AdapterFile);
        let faults: [(&str, Fault); 5] = [
            ("is damaged", |file| file.remembered[0].least = -2.0),
            ("is damaged", |file| file.remembered[0].word.clear()),
            ("is damaged", |file| file.remembered[1].state = vec![2.0, 0.0]),
            ("its card names 3", |file| file.card.remembered = 3),
            ("is not of the rank 0", |file| {
                file.matrices = adapter(Path::new("")).matrices;
                file.matrices[0].a.clear();
                file.matrices[0].b.clear();
            }),
        ];
        for (reason_part, fault) in faults {
            let text = reason(&|file| {
                *file = remembered(&path);
                fault(file);
            });
            assert!(text.contains(reason_part), "{reason_part}: {text}");
        }
        // States of different widths.
        let mut ragged = remembered(&path);
        ragged.remembered[1].state.pop();
        assert!(ragged.write().is_err());
        adapter(&path).write().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(AdapterFile::read(&path).is_err(), "cut to {length} bytes");
        }
    }
}
