use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor, Var};
use formats::{AdapterCard, AdapterFile, AdapterMatrix, WhisperConfig};

use crate::{Error, Weights};

/// How the names of the encoder's matrices begin.
const ENCODER: &str = "model.encoder.";

/// The low-rank adapters of a network that learn.
#[derive(Debug)]
pub struct Adapters {
    scale: f64,
    card: AdapterCard,
    matrices: Vec<Adapter>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Adapter {
    name: String,
    /// (rank, input).
    a: Var,
    /// (output, rank).
    b: Var,
}

/// A gradient per matrix of [`Adapters`], in their order: first A, then B.
#[derive(Debug, Clone)]
pub struct Gradients(Vec<Option<Tensor>>);

impl Adapters {
    /// Adapters of all matrices of attention and feed-forward layers of the decoder, and of the encoder where
    /// `in_encoder` says so. A is drawn evenly from +-1/sqrt(input), as `peft` does, and B is zero, so that the network is as
    /// it was.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no memory left.
    pub fn new(
        config: &WhisperConfig,
        card: AdapterCard,
        in_encoder: bool,
        seed: u64,
        device: &Device,
    ) -> Result<Self, Error> {
        let rank = card.rank as usize;
        let mut random = SplitMix(seed);
        let matrices = adapted(config, in_encoder).into_iter().map(|(name, output, input)| {
            let bound = (input as f32).powf(-0.5);
            let a: Vec<f32> = (0..rank * input).map(|_| (2.0 * random.unit() - 1.0) * bound).collect();
            let a = Var::from_tensor(&Tensor::from_vec(a, (rank, input), device)?)?;
            Ok(Adapter { name, a, b: Var::zeros((output, rank), DType::F32, device)? })
        });
        Ok(Self::of(matrices.collect::<Result<_, Error>>()?, card))
    }

    /// Those of a file, to be trained on.
    ///
    /// # Errors
    /// [`Error::Files`] for a file that does not fit the network; [`Error::Candle`] if the device has no memory left.
    pub fn read(file: &AdapterFile, config: &WhisperConfig, device: &Device) -> Result<Self, Error> {
        let mut found: HashMap<&str, &AdapterMatrix> =
            file.matrices.iter().map(|matrix| (matrix.name.as_str(), matrix)).collect();
        let mut matrices = Vec::new();
        let in_encoder = found.keys().any(|name| name.starts_with(ENCODER));
        for (name, output, input) in adapted(config, in_encoder) {
            let matrix = found.remove(name.as_str()).filter(|it| (it.output, it.input) == (output, input));
            let Some(matrix) = matrix else {
                let reason = format!("it has no adapter of {name} with {output} x {input} numbers");
                return Err(Error::invalid(&file.path, reason));
            };
            let rank = file.card.rank as usize;
            let var = |values: &[f32], shape| -> Result<Var, Error> {
                Ok(Var::from_tensor(&Tensor::from_slice(values, shape, device)?)?)
            };
            let (a, b) = (var(&matrix.a, (rank, input))?, var(&matrix.b, (output, rank))?);
            matrices.push(Adapter { name, a, b });
        }
        Ok(Self::of(matrices, file.card.clone()))
    }

    fn of(matrices: Vec<Adapter>, card: AdapterCard) -> Self {
        let by_name = matrices.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        Self { scale: card.scale(), card, matrices, by_name }
    }

    /// Whether matrices of the encoder learn.
    pub(super) fn are_in_encoder(&self) -> bool {
        self.matrices.iter().any(|matrix| matrix.name.starts_with(ENCODER))
    }

    /// All that learns: A and B of each matrix.
    pub fn variables(&self) -> Vec<&Var> {
        self.matrices.iter().flat_map(|matrix| [&matrix.a, &matrix.b]).collect()
    }

    /// What is written to disk, under this card.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails.
    pub fn contents(&self, path: &Path, card: AdapterCard) -> Result<AdapterFile, Error> {
        let values = |var: &Var| var.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>();
        let matrices = self.matrices.iter().map(|matrix| {
            Ok(AdapterMatrix {
                name: matrix.name.clone(),
                output: matrix.b.dim(0)?,
                input: matrix.a.dim(1)?,
                a: values(&matrix.a)?,
                b: values(&matrix.b)?,
            })
        });
        let matrices = matrices.collect::<Result<_, Error>>()?;
        Ok(AdapterFile { path: path.into(), card, matrices, ..AdapterFile::default() })
    }

    /// All numbers, variable after variable.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails.
    pub fn values(&self) -> Result<Vec<f32>, Error> {
        let mut all = Vec::new();
        for variable in self.variables() {
            all.extend(variable.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(all)
    }

    /// Takes numbers of [`Adapters::values`]; `false`: they are those of other adapters.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    pub fn set(&self, values: &[f32]) -> Result<bool, Error> {
        if values.len() != self.variables().iter().map(|variable| variable.elem_count()).sum::<usize>() {
            return Ok(false);
        }
        let mut rest = values;
        for variable in self.variables() {
            let (own, behind) = rest.split_at(variable.elem_count());
            variable.set(&Tensor::from_slice(own, variable.shape(), variable.device())?)?;
            rest = behind;
        }
        Ok(true)
    }

    /// The card that they were made under.
    pub fn card(&self) -> &AdapterCard {
        &self.card
    }

    /// A and B of the matrix `name`, if it has an adapter, and the factor of B A.
    pub(super) fn of_matrix(&self, name: &str) -> Option<((&Tensor, &Tensor), f64)> {
        let Adapter { a, b, .. } = &self.matrices[*self.by_name.get(name)?];
        Some(((a.as_tensor(), b.as_tensor()), self.scale))
    }

    /// None yet.
    pub fn no_gradients(&self) -> Gradients {
        Gradients(vec![None; 2 * self.matrices.len()])
    }

    /// Adds those that a backward pass found.
    pub(super) fn collect(
        &self,
        found: &mut candle_core::backprop::GradStore,
        into: &mut Gradients,
    ) -> Result<(), Error> {
        for (variable, sum) in self.variables().into_iter().zip(&mut into.0) {
            if let Some(gradient) = found.remove(variable) {
                let gradient = gradient.detach();
                *sum = Some(match sum.take() {
                    Some(sum) => (sum + gradient)?,
                    None => gradient,
                });
            }
        }
        Ok(())
    }
}

impl Gradients {
    /// By variable, in the order of [`Adapters::variables`].
    pub fn all(&self) -> &[Option<Tensor>] {
        &self.0
    }
}

/// The names of matrices that are adapted, with output and input: those of attention and feed-forward.
fn adapted(config: &WhisperConfig, in_encoder: bool) -> Vec<(String, usize, usize)> {
    let size = &config.dimensions;
    let width = size.width as usize;
    let sides = [
        ("encoder", size.encoder_layers, size.encoder_ffn as usize, ["self_attn"].as_slice()),
        ("decoder", size.decoder_layers, size.decoder_ffn as usize, &["self_attn", "encoder_attn"]),
    ];
    let mut found = Vec::new();
    for (side, layers, hidden, kinds) in sides.into_iter().skip(usize::from(!in_encoder)) {
        for layer in 0..layers {
            let layer = format!("model.{side}.layers.{layer}");
            for kind in kinds {
                for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    found.push((format!("{layer}.{kind}.{part}"), width, width));
                }
            }
            found.push((format!("{layer}.fc1"), hidden, width));
            found.push((format!("{layer}.fc2"), width, hidden));
        }
    }
    found
}

/// An adapter that is added to a model's weights as they are loaded.
#[derive(Debug)]
pub(crate) struct Merge(AdapterFile);

impl Merge {
    /// That of a file.
    pub fn of(file: AdapterFile) -> Self {
        Self(file)
    }

    /// Whether it has an adapter of the matrix `name`.
    pub fn changes(&self, name: &str) -> bool {
        self.adapter(name).is_some()
    }

    fn adapter(&self, name: &str) -> Option<&AdapterMatrix> {
        let find = |name| self.0.matrices.iter().find(|matrix| matrix.name == name);
        name.strip_suffix(".weight").and_then(find)
    }

    /// The values of the matrix `name`, (output, input), with its adapter added; `None` where it has none.
    pub fn merged(
        &self,
        name: &str,
        (output, input): (usize, usize),
        weights: &Weights,
    ) -> Result<Option<Vec<f32>>, Error> {
        let Some(matrix) = self.adapter(name) else { return Ok(None) };
        let Self(file) = self;
        if (matrix.output, matrix.input) != (output, input) {
            let reason = format!("its adapter of {name} is of a model of another shape");
            return Err(Error::invalid(&file.path, reason));
        }
        let weight = weights.get(name, &[output, input], DType::F32, &Device::Cpu)?;
        let mut merged = weight.flatten_all()?.to_vec1::<f32>()?;
        let scale = file.card.scale() as f32;
        let rank = file.card.rank as usize;
        for (row, b) in merged.chunks_exact_mut(input).zip(matrix.b.chunks_exact(rank)) {
            for (b, a) in b.iter().zip(matrix.a.chunks_exact(input)) {
                let factor = scale * b;
                row.iter_mut().zip(a).for_each(|(weight, a)| *weight += factor * a);
            }
        }
        Ok(Some(merged))
    }
}

/// Sebastiano Vigna's SplitMix64: the same numbers on every machine.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// 0 or more, below 1.
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 24) as f32
    }
}
