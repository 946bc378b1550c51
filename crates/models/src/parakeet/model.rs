use std::path::Path;

use candle_core::{DType, Device, Tensor};
use formats::{ModelFiles, ParakeetConfig, ParakeetHead};
use memory::Precision;
use tokenizers::Tokenizer;

use super::Tdt;
use crate::boost::{Boost, Detour, Outcome, Progress, likeliest};
use crate::fast_conformer::Encoder;
use crate::fused::log_sum_exp;
use crate::largest::arg_max;
use crate::layers::{Linear, LoadedBytes, Loader, Tick, computed_in, dtype};
use crate::token::spelled;
use crate::{Error, Token, Weights};

/// A loaded Parakeet model. Immutable.
#[derive(Debug)]
pub struct Parakeet {
    /// Its dimensions and variant.
    pub config: ParakeetConfig,
    /// The text of each token, `▁` standing for a space; empty for tokens that are no text.
    pub pieces: Vec<String>,
    /// How a text is divided into tokens; `None` where tokenizer.json says nothing of it.
    tokenizer: Option<Tokenizer>,
    /// Its encoder.
    pub encoder: Encoder,
    /// What is behind the encoder; it computes on the host.
    pub head: Head,
    /// The precision that most weights are held in. It may be larger than the
    /// requested one, whose blocks the rows of some matrices do not fit.
    pub precision: Precision,
    /// The bytes that the weights take. What is held in the place of a matrix counts as that matrix.
    pub weight_bytes: u64,
    /// The device that encodes.
    pub device: Device,
}

/// What turns frames of the encoder into tokens.
#[derive(Debug)]
pub enum Head {
    /// The likeliest token of each frame.
    Ctc(Ctc),
    /// A prediction network and a joint network.
    Tdt(Box<Tdt>),
}

impl Parakeet {
    /// Loads the model at `path`, tensor by tensor: a folder in the Hugging Face layout with
    /// safetensors or one GGUF file, or such a GGUF file.
    ///
    /// Matrices are converted to `precision`, whatever the file stores. Convolutions, norms and
    /// biases are held in the type of activations, as in [`Whisper::load`](crate::whisper::Whisper::load).
    /// Batch norms are folded into the convolutions before them.
    ///
    /// # Errors
    /// [`Error::Files`] for files that are not a complete Parakeet model, or have numbers that
    /// are not finite; [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`]
    /// if the device fails or has no memory left.
    pub fn load(path: &Path, device: &Device, precision: Precision, on_layer: &Tick) -> Result<Self, Error> {
        let precision = computed_in(device, precision)?;
        let (ModelFiles::Safetensors { folder, .. } | ModelFiles::Gguf { folder, .. }) =
            ModelFiles::find(path)?
        else {
            return Err(Error::invalid(path, "it is a file of whisper.cpp, not a Parakeet model"));
        };
        let config = ParakeetConfig::find(&folder)?
            .ok_or_else(|| Error::invalid(folder.join("config.json"), "it is that of another family"))?;
        let pieces = config.pieces(&folder)?;
        let weights = Weights::open(path)?.refusing_infinite();
        let loaded = LoadedBytes::default();
        let dtype = dtype(device, precision);
        let loader = Loader {
            weights: &weights,
            precision,
            dtype,
            is_encoder: false,
            device,
            loaded: &loaded,
            prefix: "",
        };
        let encoder = Encoder::load(loader, &config.dimensions.encoder, config.scale_input, on_layer)?;
        // One token at a time: what it takes to send it to a card and back is more than the work.
        let loader = Loader { dtype: DType::F32, device: &Device::Cpu, ..loader };
        let head = match &config.head {
            ParakeetHead::Ctc => Head::Ctc(Ctc::load(loader, &config)?),
            ParakeetHead::Tdt { .. } => Head::Tdt(Box::new(Tdt::load(loader, &config)?)),
        };
        // The pieces were read; a file that has them and no more is none that could divide a text.
        let tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).ok();
        Ok(Self {
            config,
            pieces,
            tokenizer,
            encoder,
            head,
            precision: loaded.precision().unwrap_or(precision),
            weight_bytes: loaded.bytes(),
            device: device.clone(),
        })
    }

    /// Tokens of windows, each as if it were alone. `windows` are the encoder's output,
    /// (frames, width) each; a transducer follows the `beams` likeliest texts of each at once, 1 being greedy; `boost` has
    /// words to expect, as [`Self::words_to_expect`] finds them.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `tick` returned `false`; [`Error::Candle`] if memory runs out.
    pub fn read(
        &self,
        windows: &[Tensor],
        beams: usize,
        boost: Option<&Boost>,
        on_step: &Tick,
    ) -> Result<Vec<Vec<Token>>, Error> {
        match &self.head {
            Head::Ctc(ctc) => windows.iter().map(|frames| ctc.read(frames, boost)).collect(),
            Head::Tdt(tdt) if beams > 1 => tdt.read_with_beams(windows, beams, boost, on_step),
            Head::Tdt(tdt) => tdt.read(windows, boost, on_step),
        }
    }

    /// Words to expect as the model spells them; `None` where there are none.
    pub fn words_to_expect(&self, words: &[String], strength: f32) -> Option<Boost> {
        spelled(words, strength, &self.pieces, self.tokenizer.as_ref())
    }
}

/// The linear layer behind the encoder that says which token each frame is.
#[derive(Debug)]
pub struct Ctc {
    head: Linear,
    blank: u32,
}

impl Ctc {
    fn load(loader: Loader, config: &ParakeetConfig) -> Result<Self, Error> {
        let of = &config.dimensions;
        let head = loader.linear("ctc_head", of.encoder.width as usize, of.vocabulary as usize, true)?;
        Ok(Self { head, blank: config.blank })
    }

    /// Logits of all tokens, (frames, vocabulary), for the encoder's output (frames, width).
    ///
    /// # Errors
    /// [`Error::Candle`] if memory runs out.
    pub fn logits(&self, frames: &Tensor) -> Result<Tensor, Error> {
        self.head.forward(&on_host(frames)?)
    }

    /// The likeliest token of each frame; equal ones in a row are one, blanks none.
    fn read(&self, frames: &Tensor, boost: Option<&Boost>) -> Result<Vec<Token>, Error> {
        let logits: Vec<Vec<f32>> = self.logits(frames)?.to_vec2()?;
        Ok(likeliest_of_frames(&logits, self.blank, boost))
    }
}

/// How far frames are read.
#[derive(Clone)]
struct Reading {
    frame: usize,
    /// The likeliest token of the frame before, whatever was taken for it.
    before: u32,
    tokens: Vec<Token>,
    progress: Progress,
}

/// The likeliest token of each frame, or one that leads to a word to expect: that takes the frames of the token in
/// whose place it is.
fn likeliest_of_frames(logits: &[Vec<f32>], blank: u32, boost: Option<&Boost>) -> Vec<Token> {
    let mut at = Reading { frame: 0, before: blank, tokens: Vec::new(), progress: Progress::default() };
    let mut detour: Option<(Detour, Reading)> = None;
    let mut is_refused = false;
    loop {
        if let Some(logits) = logits.get(at.frame) {
            let own = arg_max(logits);
            let probability_of = |id: usize| (logits[id] - log_sum_exp(logits)).exp();
            let before = std::mem::replace(&mut at.before, own as u32);
            match at.tokens.last_mut() {
                _ if own as u32 == blank => (),
                Some(last) if own as u32 == before => {
                    last.frames += 1;
                    last.probability = last.probability.max(probability_of(last.id as usize));
                }
                _ => {
                    let mut id = own;
                    if let Some(boost) = boost.filter(|_| !std::mem::take(&mut is_refused)) {
                        id = likeliest(logits, own, boost.all_bonuses(&at.progress));
                        if id != own && detour.is_none() {
                            detour = Some((Detour(at.tokens.len()), Reading { before, ..at.clone() }));
                        }
                    }
                    let (id, probability) = (id as u32, probability_of(id));
                    at.tokens.push(Token { id, frame: at.frame, frames: 1, probability });
                    if let Some(boost) = boost {
                        boost.advance(&mut at.progress, id, probability.ln());
                    }
                }
            }
            at.frame += 1;
        }
        let is_end = at.frame >= logits.len();
        if let Some((place, earlier)) = detour.take() {
            if let Some(boost) = boost.filter(|_| is_end) {
                boost.end(&mut at.progress);
            }
            match at.progress.outcome(place) {
                Outcome::Open => detour = Some((place, earlier)),
                Outcome::Kept => {}
                Outcome::Lost => {
                    at = earlier;
                    is_refused = true;
                    continue;
                }
            }
        }
        if is_end {
            return at.tokens;
        }
    }
}

/// Frames of the encoder on the host in 32 bits.
pub(super) fn on_host(frames: &Tensor) -> Result<Tensor, Error> {
    Ok(frames.to_dtype(DType::F32)?.to_device(&Device::Cpu)?.contiguous()?)
}
