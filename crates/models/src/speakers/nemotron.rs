use std::path::{Path, PathBuf};

use candle_core::{D, Device, Module, Tensor};
use candle_nn::{LayerNorm, Linear, rotary_emb::rope_thd};
use formats::{NemotronConfig, NemotronFiles};

use super::tensors::NamedTensors;
use crate::Error;
use crate::fused::{self, is_host_f32};
use crate::right_factor::AttentionPrecision;

/// Hears up to eight speakers in a stream of sound: the network of NVIDIA's
/// Nemotron-3-Diarization, a Sortformer (Park and others, arXiv:2409.06656), with the
/// names of transformers' `Nemotron3DiarizationForAudioFrameClassification`; all
/// dimensions come from its `config.json`.
///
/// It takes logarithms of mel energies, several frames at a time ([`Nemotron::embed`]).
/// Whom it hears when depends on all embedded frames that it is given at once
/// ([`Nemotron::forward`]); which these are is the caller's matter. Speakers are numbered
/// in the order in which they are first heard.
#[derive(Debug)]
pub struct Nemotron {
    config: NemotronConfig,
    embedder: Linear,
    input_norm: LayerNorm,
    layers: Vec<Layer>,
    norm: LayerNorm,
    projection: Linear,
    /// Weights of the frame before, the frame itself and the one behind; bias.
    upsampler: ([Linear; 3], Tensor),
    dense: Linear,
    output: Linear,
    silence: Vec<f32>,
    /// 1 / wavelength of each pair of rotated numbers.
    frequencies: Vec<f64>,
    file: PathBuf,
    device: Device,
}

#[derive(Debug)]
struct Layer {
    norm1: LayerNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
    heads: usize,
}

/// Of layer normalisation, as in torch.
const EPSILON: f64 = 1e-5;

/// Reads tensors in the shapes that the configuration asks for, without infinite numbers.
struct Reader<'a>(&'a NamedTensors);

impl Reader<'_> {
    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let tensor = self.0.get(name, shape)?;
        // A sum is not finite where one of its numbers is not.
        if !tensor.abs()?.mean_all()?.to_scalar::<f32>()?.is_finite() {
            return Err(self.0.invalid(format!("the tensor {name} has numbers that are not finite")));
        }
        Ok(tensor)
    }

    fn linear(&self, name: &str, output: usize, input: usize, has_bias: bool) -> Result<Linear, Error> {
        let bias = has_bias.then(|| self.tensor(&format!("{name}.bias"), &[output])).transpose()?;
        Ok(Linear::new(self.tensor(&format!("{name}.weight"), &[output, input])?, bias))
    }

    fn norm(&self, name: &str, width: usize) -> Result<LayerNorm, Error> {
        let [weight, bias] = ["weight", "bias"].map(|part| self.tensor(&format!("{name}.{part}"), &[width]));
        Ok(LayerNorm::new(weight?, bias?, EPSILON))
    }
}

impl Nemotron {
    /// Opens a model's files.
    ///
    /// # Errors
    /// [`Error::Files`] if they can't be read, are damaged or have another network in
    /// them; [`Error::Candle`] if the device has no room for it.
    pub fn open(files: &NemotronFiles, device: &Device) -> Result<Self, Error> {
        let tensors = NamedTensors::open(&files.weights, device)?;
        let (config, from) = (files.config.clone(), Reader(&tensors));
        let (of, head) = (&config.audio_config, &config.head_config);
        let (width, small, factor) = (of.hidden_size, head.hidden_size, of.subsampling_factor);
        let tower = "model.audio_tower";
        let layer = |number: usize| -> Result<Layer, Error> {
            let name = format!("{tower}.layers.{number}");
            let attention =
                |part: &str, bias| from.linear(&format!("{name}.self_attn.{part}"), width, width, bias);
            Ok(Layer {
                norm1: from.norm(&format!("{name}.layer_norm1"), width)?,
                q: attention("q_proj", false)?,
                k: attention("k_proj", false)?,
                v: attention("v_proj", false)?,
                out: attention("o_proj", true)?,
                norm2: from.norm(&format!("{name}.layer_norm2"), width)?,
                up: from.linear(&format!("{name}.mlp.fc1"), of.intermediate_size, width, true)?,
                down: from.linear(&format!("{name}.mlp.fc2"), width, of.intermediate_size, true)?,
                heads: of.num_attention_heads,
            })
        };
        let taps = from.tensor("model.upsampler.conv.weight", &[small * factor, small, 3])?;
        let tap = |number: usize| -> Result<Linear, Error> {
            Ok(Linear::new(taps.narrow(2, number, 1)?.squeeze(2)?.contiguous()?, None))
        };
        let rotated = config.rotated();
        let theta = config.rope().rope_theta;
        Ok(Self {
            embedder: from.linear(
                &format!("{tower}.embedder.projection"),
                width,
                factor * of.num_mel_bins,
                false,
            )?,
            input_norm: from.norm(&format!("{tower}.input_layer_norm"), width)?,
            layers: (0..of.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            norm: from.norm(&format!("{tower}.layer_norm"), width)?,
            projection: from.linear("model.proj", small, width, true)?,
            upsampler: (
                [tap(0)?, tap(1)?, tap(2)?],
                from.tensor("model.upsampler.conv.bias", &[small * factor])?,
            ),
            dense: from.linear("classifier.dense", small, small, true)?,
            output: from.linear("classifier.out_proj", head.num_speakers, small, true)?,
            silence: from.tensor("silence_embeds", &[width])?.to_vec1()?,
            frequencies: (0..rotated)
                .step_by(2)
                .map(|at| theta.powf(-(at as f64) / rotated as f64))
                .collect(),
            config,
            file: files.weights.clone(),
            device: device.clone(),
        })
    }

    /// The file of its weights.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What its `config.json` says.
    pub fn config(&self) -> &NemotronConfig {
        &self.config
    }

    /// The embedded frame that stands for silence, as long as the encoder is wide.
    pub fn silence(&self) -> &[f32] {
        &self.silence
    }

    /// Embeds a spectrogram, frame after frame: frame after frame of the encoder, an eighth
    /// of them, each as long as the encoder is wide. Frames that are
    /// missing of the last eight are zeros.
    ///
    /// # Errors
    /// [`Error::Candle`] if there is no frame, or the device has no room for the result.
    pub fn embed(&self, spectrogram: &[f32]) -> Result<Vec<f32>, Error> {
        let of = &self.config.audio_config;
        let row = of.subsampling_factor * of.num_mel_bins;
        let rows = spectrogram.len().div_ceil(row);
        let mut values = spectrogram.to_vec();
        values.resize(rows * row, 0.0);
        let embedded = self.embedder.forward(&Tensor::from_vec(values, (rows, row), &self.device)?)?;
        Ok(embedded.flatten_all()?.to_vec1()?)
    }

    /// The logits of each speaker in each frame of the spectrogram, (8 x length,
    /// speakers), for embedded frames one after the other. Frames from `attended` on are not
    /// heard by the others.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no room for the intermediate results.
    pub fn forward(&self, embedded: &[f32], attended: usize) -> Result<Tensor, Error> {
        let width = self.config.audio_config.hidden_size;
        let length = embedded.len() / width;
        let embedded = Tensor::from_slice(embedded, (length, width), &self.device)?;
        let angles: Vec<f32> = (0..length)
            .flat_map(|position| self.frequencies.iter().map(move |it| (position as f64 * it) as f32))
            .collect();
        let angles = Tensor::from_vec(angles, (length, self.frequencies.len()), &self.device)?;
        let (cos, sin) = (angles.cos()?, angles.sin()?);
        let mut x = self.input_norm.forward(&embedded)?;
        for layer in &self.layers {
            x = layer.forward(&x, attended, (&cos, &sin))?;
        }
        let x = self.projection.forward(&self.norm.forward(&x)?)?;
        // Each frame becomes eight, by what is before and behind it.
        let padded = x.pad_with_zeros(0, 1, 1)?;
        let (taps, bias) = &self.upsampler;
        let tap = |number: usize| -> Result<Tensor, Error> {
            Ok(taps[number].forward(&padded.narrow(0, number, length)?.contiguous()?)?)
        };
        let x = ((tap(0)? + tap(1)?)? + tap(2)?)?.broadcast_add(bias)?;
        let x = x.reshape((length * self.config.audio_config.subsampling_factor, ()))?.relu()?;
        Ok(self.output.forward(&self.dense.forward(&x)?.relu()?)?)
    }
}

impl Layer {
    fn forward(&self, x: &Tensor, attended: usize, turn: (&Tensor, &Tensor)) -> Result<Tensor, Error> {
        let x = (x + self.attend(&self.norm1.forward(x)?, attended, turn)?)?;
        let y = self.up.forward(&self.norm2.forward(&x)?)?.gelu_erf()?;
        Ok((x + self.down.forward(&y)?)?)
    }

    fn attend(&self, x: &Tensor, attended: usize, turn: (&Tensor, &Tensor)) -> Result<Tensor, Error> {
        let (length, width) = x.dims2()?;
        let head = width / self.heads;
        let scale = (head as f64).powf(-0.5);
        let rotate = |x: Tensor| self.rotate(&x, turn);
        let (q, k) = (rotate(self.q.forward(x)?)?, rotate(self.k.forward(x)?)?);
        let heard = attended.min(length);
        let (k, v) =
            (k.narrow(0, 0, heard)?.contiguous()?, self.v.forward(x)?.narrow(0, 0, heard)?.contiguous()?);
        let attended = if is_host_f32(x) {
            let [q, k, v] = [q, k, v].map(|x| x.unsqueeze(0));
            fused::attention([&q?, &k?, &v?], self.heads, scale as f32, AttentionPrecision::F32)?
                .squeeze(0)?
        } else {
            // (length, heads, head) -> (heads, length, head)
            let split = |x: Tensor| x.reshape(((), self.heads, head))?.transpose(0, 1)?.contiguous();
            let scores = (split(q)?.matmul(&split(k)?.t()?)? * scale)?;
            let shares = candle_nn::ops::softmax(&scores, D::Minus1)?;
            shares.matmul(&split(v)?)?.transpose(0, 1)?.reshape((length, width))?
        };
        Ok(self.out.forward(&attended)?)
    }

    /// Rotates the first numbers of each head by where its frame is (Su and others,
    /// arXiv:2104.09864): number i and number i + half of them are a pair.
    fn rotate(&self, x: &Tensor, (cos, sin): (&Tensor, &Tensor)) -> Result<Tensor, Error> {
        let (length, width) = x.dims2()?;
        let (head, rotated) = (width / self.heads, 2 * cos.dim(1)?);
        if rotated == 0 {
            return Ok(x.clone());
        }
        let x = x.reshape((1, length, self.heads, head))?;
        let turned = rope_thd(&x.narrow(3, 0, rotated)?.contiguous()?, cos, sin)?;
        let whole = if rotated == head {
            turned
        } else {
            Tensor::cat(&[&turned, &x.narrow(3, rotated, head - rotated)?], 3)?
        };
        Ok(whole.reshape((length, width))?)
    }
}
