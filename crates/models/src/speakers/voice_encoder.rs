use candle_core::{Device, Tensor};

use super::lstm::Lstm;
use super::tensors::NamedTensors;
use crate::Error;

/// Turns a voice into a vector of length 1: the GE2E network (Wan and others,
/// arXiv:1710.10467) of Resemblyzer 0.1.4. Vectors of one voice have a cosine
/// near 1.
///
/// It takes mel energies, not their logarithms, of 40 bands: power spectrum of
/// 400 samples (periodic Hann window) every 160, Slaney's filters.
#[derive(Debug)]
pub struct VoiceEncoder {
    lstm: Lstm,
    /// Weights, (hidden, width), and bias.
    linear: (Tensor, Tensor),
    device: Device,
}

impl VoiceEncoder {
    /// Bands of the spectrogram.
    pub const MEL_BINS: usize = 40;
    /// Names the bundled weights: vectors of other weights can't be compared with theirs.
    pub const NAME: &str = "ge2e-1";
    /// Frames of an input: 1.6 s.
    pub const FRAMES: usize = 160;
    /// Width of a vector.
    pub const WIDTH: usize = 256;

    /// The network that is in the program: crates/models/bundled/voice-encoder.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no room for it.
    pub fn bundled(device: &Device) -> Result<Self, Error> {
        let file = include_bytes!("../../bundled/voice-encoder/model.safetensors");
        Self::from_safetensors(file, device)
    }

    /// Reads a safetensors file that is in memory.
    ///
    /// # Errors
    /// [`Error::Candle`] if it is damaged, if a tensor is missing or has
    /// another shape, or if the device has no room for it.
    pub fn from_safetensors(file: &[u8], device: &Device) -> Result<Self, Error> {
        let tensors = NamedTensors::read(file, device)?;
        let lstm = Lstm::read(&tensors)?;
        let weights = tensors.get("linear.weight", &[Self::WIDTH, lstm.hidden])?;
        let linear = (weights.t()?.contiguous()?, tensors.get("linear.bias", &[Self::WIDTH])?);
        Ok(Self { lstm, linear, device: device.clone() })
    }

    /// One vector of length 1 per part, (parts, 256). A part is a spectrogram of
    /// 160 frames of 40 bands, frame after frame.
    ///
    /// # Errors
    /// [`Error::Candle`] if a part has another size, or the device has no room
    /// for the intermediate results.
    pub fn forward(&self, parts: &[&[f32]]) -> Result<Tensor, Error> {
        let mut values = Vec::with_capacity(parts.len() * Self::FRAMES * Self::MEL_BINS);
        for frame in 0..Self::FRAMES {
            for part in parts {
                let at = frame * Self::MEL_BINS;
                let row = part.get(at..at + Self::MEL_BINS).ok_or_else(|| {
                    let frames = part.len() / Self::MEL_BINS;
                    candle_core::Error::Msg(format!("a part has {frames} frames, not {}", Self::FRAMES))
                })?;
                values.extend_from_slice(row);
            }
        }
        let shape = (Self::FRAMES, parts.len(), Self::MEL_BINS);
        let x = Tensor::from_vec(values, shape, &self.device)?;
        let last = self.lstm.forward(&x)?.narrow(0, Self::FRAMES - 1, 1)?.squeeze(0)?;
        let vectors = last.matmul(&self.linear.0)?.broadcast_add(&self.linear.1)?.relu()?;
        let length = vectors.sqr()?.sum_keepdim(1)?.sqrt()?.maximum(1e-12)?;
        Ok(vectors.broadcast_div(&length)?)
    }
}
