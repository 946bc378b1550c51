use std::path::Path;

use candle_core::{D, DType, Device, Tensor, Var};
use formats::{Activation, WhisperConfig};
use memory::Precision;

use super::with_gradient::{
    Ticker, adapted_linear, attention, cross_entropy, divergence, frozen_linear, gelu, layer_norm,
};
use super::{Adapters, Gradients};
use crate::layers::{LoadedBytes, Loader, dense_dtype};
use crate::whisper::audio_positions;
use crate::{Error, Weights};

/// A Whisper network whose adapters learn. Its own weights are frozen; all is computed in 32 bits.
#[derive(Debug)]
pub struct Trainee {
    /// Its dimensions and activation.
    pub config: WhisperConfig,
    /// The device that holds the weights and computes.
    pub device: Device,
    convolutions: [(Tensor, Tensor); 2],
    audio_positions: Tensor,
    encoder: Vec<Layer>,
    encoder_norm: Norm,
    embedding: Tensor,
    output: Tensor,
    token_positions: Tensor,
    decoder: Vec<Layer>,
    decoder_norm: Norm,
    ticker: Ticker,
}

/// A window of sound and what is said in it.
#[derive(Debug, Clone)]
pub struct Example {
    /// Log-mel of one window: bins x frames, the frames of a bin side by side.
    pub mel: Vec<f32>,
    /// The prompt, then the text with its time stamps, then the end of the text.
    pub tokens: Vec<u32>,
    /// What is aimed at, for each token.
    pub aims: Vec<Aim>,
}

/// What is aimed at where a token is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Nothing: it belongs to the prompt.
    Nothing,
    /// This very token.
    Token,
    /// The probabilities that the network has without adapters: nothing is forgotten there (Li and Hoiem, 2016,
    /// arXiv:1606.09282).
    AsBefore,
}

impl Example {
    /// At how many tokens something is aimed.
    pub fn learnt(&self) -> usize {
        self.aims.iter().filter(|aim| **aim != Aim::Nothing).count()
    }
}

/// What is kept between the forward and the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The activations of all layers.
    Everything,
    /// The input of each layer, whose activations are computed a second time (Chen and others,
    /// 2016, arXiv:1604.06174): a third more work, the memory of one layer.
    Inputs,
}

#[derive(Debug)]
struct Norm {
    scale: Tensor,
    shift: Tensor,
}

#[derive(Debug)]
struct Frozen {
    name: String,
    weight: Tensor,
    bias: Option<Tensor>,
}

#[derive(Debug)]
struct Attention {
    norm: Norm,
    q: Frozen,
    k: Frozen,
    v: Frozen,
    out: Frozen,
    heads: usize,
}

#[derive(Debug)]
struct Layer {
    to_itself: Attention,
    /// `None` in the encoder.
    to_audio: Option<Attention>,
    norm: Norm,
    up: Frozen,
    down: Frozen,
    activation: Activation,
    causal: bool,
}

impl Trainee {
    /// Loads the model at `path`, as [`Whisper::load`](crate::whisper::Whisper::load) does. Matrices of attention and
    /// feed-forward are held in `precision`, of 32 or 16 bits, all else in 32 bits.
    ///
    /// # Errors
    /// [`Error::Files`] for files that are not a complete Whisper model; [`Error::Interrupted`] if the
    /// ticker returned `false`; [`Error::Candle`] if the device has no memory left.
    pub fn load(path: &Path, device: &Device, precision: Precision, ticker: Ticker) -> Result<Self, Error> {
        let config = WhisperConfig::read(path)?;
        let weights = Weights::open(path)?;
        let loaded = LoadedBytes::default();
        let all = Loader {
            weights: &weights,
            precision: Precision::F32,
            dtype: DType::F32,
            is_encoder: false,
            device,
            loaded: &loaded,
            prefix: "",
        };
        let load = Load { weights: &weights, config: &config, device, dtype: dense_dtype(precision) };
        let size = &config.dimensions;
        let (width, bins) = (size.width as usize, size.mel_bins as usize);
        let layers = |side: &str, count: u64, heads: u64, hidden: u64| {
            let layers = (0..count).map(|layer| {
                if !ticker.goes_on() {
                    return Err(Error::Interrupted);
                }
                load.layer(&format!("model.{side}.layers.{layer}"), side == "decoder", heads, hidden)
            });
            layers.collect::<Result<Vec<_>, Error>>()
        };
        let convolution = |number: usize, input: usize| -> Result<(Tensor, Tensor), Error> {
            let name = format!("model.encoder.conv{number}");
            let bias = load.get(&format!("{name}.bias"), &[width])?.reshape((1, width, 1))?;
            Ok((load.get(&format!("{name}.weight"), &[width, input, 3])?, bias))
        };
        let encoder = layers("encoder", size.encoder_layers, size.encoder_heads, size.encoder_ffn)?;
        let decoder = layers("decoder", size.decoder_layers, size.decoder_heads, size.decoder_ffn)?;
        let embedding = load.get("model.decoder.embed_tokens.weight", &[size.vocabulary as usize, width])?;
        let output = match weights.contains("proj_out.weight") {
            true => load.get("proj_out.weight", &[size.vocabulary as usize, width])?,
            false => embedding.clone(),
        };
        Ok(Self {
            config,
            device: device.clone(),
            convolutions: [convolution(1, bins)?, convolution(2, width)?],
            audio_positions: audio_positions(all, &config)?,
            encoder,
            encoder_norm: load.norm("model.encoder.layer_norm")?,
            embedding,
            output,
            token_positions: load
                .get("model.decoder.embed_positions.weight", &[size.text_context as usize, width])?,
            decoder,
            decoder_norm: load.norm("model.decoder.layer_norm")?,
            ticker,
        })
    }

    /// The loss of these examples, summed, each token's times `weight`: cross-entropy with [`Aim::Token`], the divergence from
    /// the network without adapters with [`Aim::AsBefore`]. Its gradients are added to `gradients`. With `weight` 1 / (the learnt tokens of a batch), the
    /// calls for the parts of a batch make what one call for all of it does.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the ticker returned `false`; [`Error::Candle`] if tokens exceed the
    /// decoder's positions, or the device fails or has no memory left.
    pub fn learn(
        &self,
        adapters: &Adapters,
        examples: &[Example],
        weight: f32,
        keep: Keep,
        gradients: &mut Gradients,
    ) -> Result<f32, Error> {
        let pass = Pass { trainee: self, adapters: Some(adapters) };
        let loss = match keep {
            Keep::Everything => pass.keeping_everything(adapters, examples, weight, gradients),
            Keep::Inputs => pass.keeping_inputs(adapters, examples, weight, gradients),
        };
        self.unless_interrupted(loss)
    }

    /// An error of an interrupted computation is the interruption.
    fn unless_interrupted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| if self.ticker.goes_on() { error } else { Error::Interrupted })
    }

    /// As [`Trainee::learn`], without gradients.
    ///
    /// # Errors
    /// As [`Trainee::learn`].
    pub fn loss(&self, adapters: &Adapters, examples: &[Example], weight: f32) -> Result<f32, Error> {
        self.unless_interrupted(self.loss_of(adapters, examples, weight))
    }

    fn loss_of(&self, adapters: &Adapters, examples: &[Example], weight: f32) -> Result<f32, Error> {
        let pass = Pass { trainee: self, adapters: Some(adapters) };
        let audio = pass.audio(examples)?;
        let before = self.before(adapters, examples, &audio)?;
        let x = pass.read(examples, &audio)?;
        Ok(self.entropy(&x, &before, examples, weight)?.to_scalar()?)
    }

    /// What the decoder's last layer has without adapters, where [`Aim::AsBefore`] asks for it; else `None`.
    fn before(
        &self,
        adapters: &Adapters,
        examples: &[Example],
        audio: &Tensor,
    ) -> Result<Option<Tensor>, Error> {
        if examples.iter().all(|example| !example.aims.contains(&Aim::AsBefore)) {
            return Ok(None);
        }
        let pass = Pass { trainee: self, adapters: None };
        let audio = if adapters.are_in_encoder() { pass.audio(examples)? } else { audio.detach() };
        Ok(Some(pass.read(examples, &audio)?))
    }

    /// Convolutions and positions: (rows, positions, width). Nothing in them learns.
    fn heard(&self, examples: &[Example]) -> Result<Tensor, Error> {
        let (bins, frames) = (self.config.dimensions.mel_bins as usize, self.config.window_frames());
        let mels: Vec<f32> = examples.iter().flat_map(|example| &example.mel).copied().collect();
        let mut x =
            Tensor::from_vec(mels, (examples.len(), bins, frames), &Device::Cpu)?.to_device(&self.device)?;
        for ((weight, bias), stride) in self.convolutions.iter().zip([1, 2]) {
            x = activated(&x.conv1d(weight, 1, stride, 1, 1)?.broadcast_add(bias)?, self.config.activation)?;
        }
        Ok(x.transpose(1, 2)?.contiguous()?.broadcast_add(&self.audio_positions)?)
    }

    /// The tokens but the last of each example, filled up to the longest: (rows, tokens, width).
    fn embedded(&self, examples: &[Example]) -> Result<Tensor, Error> {
        let longest = longest(examples);
        let mut ids = Vec::with_capacity(examples.len() * longest);
        for example in examples {
            let inputs = example.tokens.len().saturating_sub(1);
            ids.extend_from_slice(&example.tokens[..inputs]);
            // What follows the last token is not seen by those before it, and not learnt.
            ids.extend(std::iter::repeat_n(0, longest - inputs));
        }
        let ids = Tensor::from_vec(ids, examples.len() * longest, &self.device)?;
        let rows = self.embedding.index_select(&ids, 0)?.reshape((examples.len(), longest, ()))?;
        Ok(rows.broadcast_add(&self.token_positions.narrow(0, 0, longest)?)?)
    }

    /// Final norm, logits and loss of the decoder's last layer, a scalar: the cross-entropy with each token that is aimed at,
    /// and the divergence from `before`, the same layer without adapters, where that is.
    fn entropy(
        &self,
        x: &Tensor,
        before: &Option<Tensor>,
        examples: &[Example],
        weight: f32,
    ) -> Result<Tensor, Error> {
        let longest = longest(examples);
        let (mut rows, mut tokens, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for (number, example) in examples.iter().enumerate() {
            for (at, (token, aim)) in example.tokens.iter().zip(&example.aims).enumerate().skip(1) {
                // A token is predicted where the one before it is read.
                let row = (number * longest + at - 1) as u32;
                match aim {
                    Aim::Nothing => {}
                    Aim::Token => {
                        rows.push(row);
                        tokens.push(*token);
                    }
                    Aim::AsBefore => kept.push(row),
                }
            }
        }
        let of = |x: &Tensor, rows: &[u32]| -> Result<Tensor, Error> {
            let rows = Tensor::new(rows, &self.device)?;
            self.decoder_norm.of(&x.flatten(0, 1)?.index_select(&rows, 0)?)
        };
        let mut loss = None;
        if !rows.is_empty() {
            loss = Some(cross_entropy(&of(x, &rows)?, &self.output, &tokens, weight)?);
        }
        if let Some(before) = before
            && !kept.is_empty()
        {
            let found = divergence(&of(x, &kept)?, &of(before, &kept)?, &self.output, weight)?;
            loss = Some(match loss {
                Some(loss) => (loss + found)?,
                None => found,
            });
        }
        match loss {
            Some(loss) => Ok(loss),
            None => Ok((x.sum_all()? * 0.0)?),
        }
    }
}

/// Inputs of the longest example.
fn longest(examples: &[Example]) -> usize {
    examples.iter().map(|example| example.tokens.len()).max().unwrap_or(1).saturating_sub(1)
}

/// One way through the network.
struct Pass<'a> {
    trainee: &'a Trainee,
    /// `None`: the network as it is.
    adapters: Option<&'a Adapters>,
}

impl Pass<'_> {
    /// What the encoder makes of the sound, without gradients.
    fn audio(&self, examples: &[Example]) -> Result<Tensor, Error> {
        let network = self.trainee;
        let mut x = network.heard(examples)?;
        for layer in &network.encoder {
            x = self.layer(layer, &x, None)?.detach();
        }
        Ok(network.encoder_norm.of(&x)?.detach())
    }

    /// What the decoder's last layer makes of the tokens, without gradients.
    fn read(&self, examples: &[Example], audio: &Tensor) -> Result<Tensor, Error> {
        let network = self.trainee;
        let mut x = network.embedded(examples)?;
        for layer in &network.decoder {
            x = self.layer(layer, &x, Some(audio))?.detach();
        }
        Ok(x)
    }

    fn keeping_everything(
        &self,
        adapters: &Adapters,
        examples: &[Example],
        weight: f32,
        gradients: &mut Gradients,
    ) -> Result<f32, Error> {
        let network = self.trainee;
        let audio = if adapters.are_in_encoder() {
            let mut x = network.heard(examples)?;
            for layer in &network.encoder {
                x = self.layer(layer, &x, None)?;
            }
            network.encoder_norm.of(&x)?
        } else {
            self.audio(examples)?
        };
        let before = network.before(adapters, examples, &audio)?;
        let mut x = network.embedded(examples)?;
        for layer in &network.decoder {
            x = self.layer(layer, &x, Some(&audio))?;
        }
        let loss = network.entropy(&x, &before, examples, weight)?;
        adapters.collect(&mut loss.backward()?, gradients)?;
        Ok(loss.to_scalar()?)
    }

    fn keeping_inputs(
        &self,
        adapters: &Adapters,
        examples: &[Example],
        weight: f32,
        gradients: &mut Gradients,
    ) -> Result<f32, Error> {
        let network = self.trainee;
        let in_encoder = adapters.are_in_encoder();
        let mut heard = vec![network.heard(examples)?];
        for layer in &network.encoder {
            let next = self.layer(layer, &heard[heard.len() - 1], None)?.detach();
            if !in_encoder {
                heard.clear();
            }
            heard.push(next);
        }
        let audio = network.encoder_norm.of(&heard[heard.len() - 1])?;
        let before = network.before(adapters, examples, &audio)?;
        let variable = in_encoder.then(|| Var::from_tensor(&audio)).transpose()?;
        let audio = variable.as_ref().map_or_else(|| audio.detach(), |it| it.as_tensor().clone());
        let mut read = vec![network.embedded(examples)?];
        for layer in &network.decoder {
            read.push(self.layer(layer, &read[read.len() - 1], Some(&audio))?.detach());
        }

        let last = Var::from_tensor(&read.pop().unwrap_or_else(|| heard[0].clone()))?;
        let loss = network.entropy(&last, &before, examples, weight)?;
        drop(before);
        let mut gradient = taken(&mut loss.backward()?, &last)?;
        let mut to_audio = audio.zeros_like()?;
        for layer in network.decoder.iter().rev() {
            let input = Var::from_tensor(&read.pop().unwrap_or_else(|| heard[0].clone()))?;
            let output = self.layer(layer, &input, Some(&audio))?;
            let mut found = (output * &gradient)?.sum_all()?.backward()?;
            adapters.collect(&mut found, gradients)?;
            gradient = taken(&mut found, &input)?;
            if let Some(variable) = &variable {
                to_audio = (to_audio + taken(&mut found, variable)?)?.detach();
            }
        }
        if !in_encoder {
            return Ok(loss.to_scalar()?);
        }
        let last = Var::from_tensor(&heard.pop().unwrap_or_else(|| to_audio.clone()))?;
        let mut found = (network.encoder_norm.of(&last)? * &to_audio)?.sum_all()?.backward()?;
        gradient = taken(&mut found, &last)?;
        for layer in network.encoder.iter().rev() {
            let input = Var::from_tensor(&heard.pop().unwrap_or_else(|| to_audio.clone()))?;
            let output = self.layer(layer, &input, None)?;
            let mut found = (output * &gradient)?.sum_all()?.backward()?;
            adapters.collect(&mut found, gradients)?;
            gradient = taken(&mut found, &input)?;
        }
        Ok(loss.to_scalar()?)
    }

    fn layer(&self, layer: &Layer, x: &Tensor, audio: Option<&Tensor>) -> Result<Tensor, Error> {
        let itself = &layer.to_itself;
        let normed = itself.norm.of(x)?;
        let x = (x + self.attend(itself, &normed, &normed, layer.causal)?)?;
        let x = match (&layer.to_audio, audio) {
            (Some(attention), Some(audio)) => {
                let normed = attention.norm.of(&x)?;
                (&x + self.attend(attention, &normed, audio, false)?)?
            }
            _ => x,
        };
        let up = self.linear(&layer.up, &layer.norm.of(&x)?)?;
        let y = self.linear(&layer.down, &activated(&up, layer.activation)?)?;
        Ok((x + y)?)
    }

    fn attend(&self, to: &Attention, x: &Tensor, source: &Tensor, causal: bool) -> Result<Tensor, Error> {
        let split = |x: Tensor| -> Result<Tensor, Error> {
            let (rows, length, width) = x.dims3()?;
            Ok(x.reshape((rows, length, to.heads, width / to.heads))?.transpose(1, 2)?.contiguous()?)
        };
        let q = split(self.linear(&to.q, x)?)?;
        let k = split(self.linear(&to.k, source)?)?;
        let v = split(self.linear(&to.v, source)?)?;
        let attended = attention(&q, &k, &v, causal)?;
        let (rows, heads, length, width) = attended.dims4()?;
        self.linear(&to.out, &attended.transpose(1, 2)?.reshape((rows, length, heads * width))?)
    }

    fn linear(&self, to: &Frozen, x: &Tensor) -> Result<Tensor, Error> {
        let input = x.dim(D::Minus1)?;
        let flat = x.reshape(((), input))?;
        let (weight, bias, ticker) = (&to.weight, to.bias.as_ref(), &self.trainee.ticker);
        let y = match self.adapters.and_then(|adapters| adapters.of_matrix(&to.name)) {
            Some((matrices, scale)) => adapted_linear(&flat, weight, bias, matrices, scale, ticker)?,
            None => frozen_linear(&flat, weight, bias, ticker)?,
        };
        let (rows, length, _) = x.dims3()?;
        Ok(y.reshape((rows, length, ()))?)
    }
}

/// The gradient of a variable; zero where nothing depends on it.
fn taken(found: &mut candle_core::backprop::GradStore, of: &Var) -> Result<Tensor, Error> {
    Ok(match found.remove(of) {
        Some(gradient) => gradient.detach(),
        None => of.zeros_like()?.detach(),
    })
}

fn activated(x: &Tensor, activation: Activation) -> Result<Tensor, Error> {
    Ok(match activation {
        Activation::Gelu => gelu(x)?,
        Activation::GeluNew => x.gelu()?,
        Activation::Relu => x.relu()?,
    })
}

impl Norm {
    fn of(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(layer_norm(x, &self.scale, &self.shift)?)
    }
}

/// Loads the parts of a network.
struct Load<'a> {
    weights: &'a Weights,
    config: &'a WhisperConfig,
    device: &'a Device,
    /// Of matrices.
    dtype: DType,
}

impl Load<'_> {
    fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        self.weights.get(name, shape, DType::F32, self.device)
    }

    fn norm(&self, name: &str) -> Result<Norm, Error> {
        let width = self.config.dimensions.width as usize;
        let part = |part: &str| self.get(&format!("{name}.{part}"), &[width]);
        Ok(Norm { scale: part("weight")?, shift: part("bias")? })
    }

    fn linear(&self, name: String, output: usize, input: usize, bias: bool) -> Result<Frozen, Error> {
        let weight =
            self.weights.get(&format!("{name}.weight"), &[output, input], self.dtype, self.device)?;
        let bias = bias.then(|| self.get(&format!("{name}.bias"), &[output])).transpose()?;
        Ok(Frozen { name, weight, bias })
    }

    fn attention(&self, name: &str, heads: u64) -> Result<Attention, Error> {
        let width = self.config.dimensions.width as usize;
        let part = |part: &str| self.linear(format!("{name}.{part}"), width, width, part != "k_proj");
        Ok(Attention {
            norm: self.norm(&format!("{name}_layer_norm"))?,
            q: part("q_proj")?,
            k: part("k_proj")?,
            v: part("v_proj")?,
            out: part("out_proj")?,
            heads: heads as usize,
        })
    }

    fn layer(&self, name: &str, of_decoder: bool, heads: u64, hidden: u64) -> Result<Layer, Error> {
        let (width, hidden) = (self.config.dimensions.width as usize, hidden as usize);
        let to_audio = of_decoder.then(|| self.attention(&format!("{name}.encoder_attn"), heads));
        Ok(Layer {
            to_itself: self.attention(&format!("{name}.self_attn"), heads)?,
            to_audio: to_audio.transpose()?,
            norm: self.norm(&format!("{name}.final_layer_norm"))?,
            up: self.linear(format!("{name}.fc1"), hidden, width, true)?,
            down: self.linear(format!("{name}.fc2"), width, hidden, true)?,
            activation: self.config.activation,
            causal: of_decoder,
        })
    }
}
