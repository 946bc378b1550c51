use std::path::Path;

use candle_core::{Device, Tensor};

use super::image::{Convolution, Image};
use super::tensors::NamedTensors;
use crate::Error;

/// Turns a voice into a vector: the ResNet34 of WeSpeaker (Wang and others,
/// arXiv:2210.17016) with statistics pooling, in the layout and with the names of
/// pyannote.audio's `WeSpeakerResNet34`; all dimensions come from the weights.
///
/// It takes the energies of [`WeSpeaker::MEL_BINS`] mel bands as Kaldi computes them,
/// with the mean of each band over the window subtracted. The convolutions take a
/// window once ([`WeSpeaker::frames`]); each of its speakers is then a mean and a
/// deviation over the frames in which he speaks ([`WeSpeaker::vectors`]).
#[derive(Debug)]
pub struct WeSpeaker {
    first: Layer,
    blocks: Vec<Block>,
    /// Weights, (statistics, width), and bias.
    linear: (Tensor, Tensor),
    name: String,
    device: Device,
}

/// Two convolutions, with the input, or a projection of it, added to their result.
#[derive(Debug)]
struct Block {
    first: Layer,
    second: Layer,
    shortcut: Option<Layer>,
}

/// A convolution with the normalisation that follows it.
#[derive(Debug)]
enum Layer {
    Host(Convolution),
    /// Weights, (output, input, kernel, kernel), and bias, (1, output, 1, 1).
    Device {
        weights: Tensor,
        bias: Tensor,
        stride: usize,
    },
}

/// What the convolutions make of a window: the values of each frame.
#[derive(Debug, Clone)]
pub struct VoiceFrames {
    /// (frames, width)
    values: Vec<f32>,
    width: usize,
}

/// Of batch normalisation, as in torch.
const EPSILON: f64 = 1e-5;

impl WeSpeaker {
    /// Bands of the spectrogram.
    pub const MEL_BINS: usize = 80;

    /// Opens a safetensors file or a checkpoint that pyannote saved.
    ///
    /// # Errors
    /// [`Error::Files`] if it can't be read, is damaged or has another network in it;
    /// [`Error::Candle`] if the device has no room for it.
    pub fn open(path: &Path, device: &Device) -> Result<Self, Error> {
        let tensors = NamedTensors::open(path, device)?;
        let layer = |conv: &str, norm: &str, stride| Layer::read(&tensors, conv, norm, stride);
        let mut blocks = Vec::new();
        for stage in 1..=4 {
            for number in 0.. {
                let name = |part: &str| format!("resnet.layer{stage}.{number}.{part}");
                if !tensors.contains(&name("conv1.weight")) {
                    break;
                }
                let stride = if stage > 1 && number == 0 { 2 } else { 1 };
                let has_shortcut = tensors.contains(&name("shortcut.0.weight"));
                blocks.push(Block {
                    first: layer(&name("conv1"), &name("bn1"), stride)?,
                    second: layer(&name("conv2"), &name("bn2"), 1)?,
                    shortcut: if has_shortcut {
                        Some(layer(&name("shortcut.0"), &name("shortcut.1"), stride)?)
                    } else {
                        None
                    },
                });
            }
        }
        let first = layer("resnet.conv1", "resnet.bn1", 1)?;
        check_widths(&first, &blocks).map_err(|reason| tensors.invalid(reason))?;
        let channels = blocks.last().map_or(0, |block| block.second.output());
        // Three times halved.
        let statistics = 2 * channels * Self::MEL_BINS.div_ceil(8);
        let bias = tensors.any("resnet.seg_1.bias")?;
        let weights = tensors.get("resnet.seg_1.weight", &[bias.elem_count(), statistics])?;
        let name = format!("wespeaker-{:016x}", digest(&[&weights, &bias])?);
        Ok(Self { first, blocks, linear: (weights.t()?.contiguous()?, bias), name, device: device.clone() })
    }

    /// Names these weights, in whatever file they are: vectors of other weights can't be
    /// compared with theirs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers of a vector.
    pub fn width(&self) -> usize {
        self.linear.1.elem_count()
    }

    /// The frames of a window whose spectrogram is `energies`, (frames,
    /// [`Self::MEL_BINS`]), frame after frame.
    ///
    /// # Errors
    /// [`Error::Candle`] if the spectrogram is empty or no whole number of frames, or
    /// the device has no room for the intermediate results.
    pub fn frames(&self, energies: &[f32]) -> Result<VoiceFrames, Error> {
        let count = energies.len() / Self::MEL_BINS;
        if count == 0 || count * Self::MEL_BINS != energies.len() {
            let text = format!("{} numbers are no spectrogram of {} bands", energies.len(), Self::MEL_BINS);
            return Err(candle_core::Error::Msg(text).into());
        }
        let transposed = |band: usize| energies.iter().skip(band).step_by(Self::MEL_BINS).copied();
        if let Layer::Host(_) = self.first {
            let mut image = Image::zeros(Self::MEL_BINS, count, 1);
            for band in 0..Self::MEL_BINS {
                image.row_mut(band).iter_mut().zip(transposed(band)).for_each(|(to, from)| *to = from);
            }
            return Ok(frames_of(&self.on_host(image)));
        }
        let values: Vec<f32> = (0..Self::MEL_BINS).flat_map(transposed).collect();
        let mut x = Tensor::from_vec(values, (1, 1, Self::MEL_BINS, count), &self.device)?;
        x = self.first.on_device(&x)?.relu()?;
        for block in &self.blocks {
            let beside = block.shortcut.as_ref().map_or(Ok(x.clone()), |shortcut| shortcut.on_device(&x))?;
            let inner = block.first.on_device(&x)?.relu()?;
            x = (block.second.on_device(&inner)? + beside)?.relu()?;
        }
        // (1, channels, bands, frames) -> (frames, channels x bands)
        let (_, channels, bands, frames) = x.dims4()?;
        let width = channels * bands;
        let values = x.reshape((width, frames))?.t()?.contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        Ok(VoiceFrames { values, width })
    }

    fn on_host(&self, mut x: Image) -> Image {
        let apply = |layer: &Layer, x: &Image, beside: Option<&Image>, relu| match layer {
            Layer::Host(convolution) => convolution.apply(x, beside, relu),
            Layer::Device { .. } => Image::zeros(1, 1, 1),
        };
        x = apply(&self.first, &x, None, true);
        for block in &self.blocks {
            let inner = apply(&block.first, &x, None, true);
            let beside = block.shortcut.as_ref().map(|shortcut| apply(shortcut, &x, None, false));
            x = apply(&block.second, &inner, Some(beside.as_ref().unwrap_or(&x)), true);
        }
        x
    }

    /// A vector for each mask, which says how much each part of the window counts; a
    /// mask may have any number of parts. Vectors have no particular length.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails.
    pub fn vectors(&self, frames: &VoiceFrames, masks: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, Error> {
        if masks.is_empty() {
            return Ok(Vec::new());
        }
        let statistics: Vec<f32> = masks.iter().flat_map(|mask| frames.pooled(mask)).collect();
        let statistics = Tensor::from_vec(statistics, (masks.len(), 2 * frames.width), &self.device)?;
        Ok(statistics.matmul(&self.linear.0)?.broadcast_add(&self.linear.1)?.to_vec2::<f32>()?)
    }
}

/// Of the numbers of tensors, by Fowler, Noll and Vo's hash of 64 bits.
fn digest(tensors: &[&Tensor]) -> Result<u64, Error> {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for tensor in tensors {
        for number in tensor.flatten_all()?.to_vec1::<f32>()? {
            digest = (digest ^ u64::from(number.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(digest)
}

/// Each layer takes what the one before it makes.
fn check_widths(first: &Layer, blocks: &[Block]) -> Result<(), String> {
    let mut width = first.output();
    if first.input() != 1 || blocks.is_empty() {
        return Err("it is no ResNet of WeSpeaker".into());
    }
    for (number, block) in blocks.iter().enumerate() {
        let shortcut = block.shortcut.as_ref();
        let beside = shortcut.map_or(width, Layer::output);
        let fits = block.first.input() == width
            && block.second.input() == block.first.output()
            && shortcut.is_none_or(|shortcut| shortcut.input() == width)
            && block.second.output() == beside;
        if !fits {
            return Err(format!("the sizes of block {number} do not fit together"));
        }
        width = beside;
    }
    Ok(())
}

impl Layer {
    fn read(tensors: &NamedTensors, conv: &str, norm: &str, stride: usize) -> Result<Self, Error> {
        let weights = tensors.any(&format!("{conv}.weight"))?;
        let shape = weights.dims().to_vec();
        let [output, input, kernel @ (1 | 3), columns] = shape[..] else {
            return Err(tensors.invalid(format!("the tensor {conv}.weight has the shape {shape:?}")));
        };
        if columns != kernel {
            return Err(tensors.invalid(format!("the tensor {conv}.weight has the shape {shape:?}")));
        }
        let of_norm = |part: &str| tensors.get(&format!("{norm}.{part}"), &[output]);
        let scale = (of_norm("weight")? / (of_norm("running_var")? + EPSILON)?.sqrt()?)?;
        let bias = (of_norm("bias")? - (of_norm("running_mean")? * &scale)?)?;
        let weights = weights.broadcast_mul(&scale.reshape((output, 1, 1, 1))?)?;
        if !tensors.device().is_cpu() {
            return Ok(Self::Device { weights, bias: bias.reshape((1, output, 1, 1))?, stride });
        }
        // (output, input, rows, columns) -> (rows, columns, input, output)
        let weights = weights.permute((2, 3, 1, 0))?.contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        Ok(Self::Host(Convolution { weights, bias: bias.to_vec1::<f32>()?, input, kernel, stride }))
    }

    fn input(&self) -> usize {
        match self {
            Self::Host(convolution) => convolution.input,
            Self::Device { weights, .. } => weights.dims().get(1).copied().unwrap_or(0),
        }
    }

    fn output(&self) -> usize {
        match self {
            Self::Host(convolution) => convolution.bias.len(),
            Self::Device { bias, .. } => bias.elem_count(),
        }
    }

    fn on_device(&self, x: &Tensor) -> Result<Tensor, Error> {
        match self {
            Self::Device { weights, bias, stride } => {
                let padding = weights.dim(2)? / 2;
                Ok(x.conv2d(weights, padding, *stride, 1, 1)?.broadcast_add(bias)?)
            }
            Self::Host(_) => Err(candle_core::Error::Msg("this layer is on the host".into()).into()),
        }
    }
}

/// Frames of the channels at each band, in torch's order of both.
fn frames_of(image: &Image) -> VoiceFrames {
    let (bands, width) = (image.rows, image.rows * image.channels);
    let mut values = vec![0.0; image.columns * width];
    for band in 0..bands {
        for (frame, channels) in image.row(band).chunks_exact(image.channels).enumerate() {
            for (channel, value) in channels.iter().enumerate() {
                values[frame * width + channel * bands + band] = *value;
            }
        }
    }
    VoiceFrames { values, width }
}

impl VoiceFrames {
    /// Weighted means and standard deviations. A mask of another length counts by
    /// its nearest part, as torch's `interpolate` takes it.
    fn pooled(&self, mask: &[f32]) -> Vec<f32> {
        let frames = self.values.len() / self.width;
        let step = mask.len() as f32 / frames as f32;
        let weight = |frame: usize| {
            let part = (frame as f32 * step) as usize;
            mask.get(part.min(mask.len().saturating_sub(1))).copied().unwrap_or(0.0)
        };
        let weights: Vec<f32> = (0..frames).map(weight).collect();
        let total = weights.iter().sum::<f32>() + 1e-8;
        let squares: f32 = weights.iter().map(|weight| weight * weight).sum();
        let rows =
            || weights.iter().zip(self.values.chunks_exact(self.width)).filter(|(weight, _)| **weight > 0.0);
        let mut pooled = vec![0.0f32; 2 * self.width];
        let (means, deviations) = pooled.split_at_mut(self.width);
        for (weight, row) in rows() {
            means.iter_mut().zip(row).for_each(|(mean, x)| *mean += weight * x);
        }
        means.iter_mut().for_each(|mean| *mean /= total);
        for (weight, row) in rows() {
            let differences = row.iter().zip(&*means).map(|(x, mean)| x - mean);
            deviations.iter_mut().zip(differences).for_each(|(sum, x)| *sum += weight * x * x);
        }
        let divisor = total - squares / total + 1e-8;
        deviations.iter_mut().for_each(|x| *x = (*x / divisor).sqrt());
        pooled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels of the host against candle's convolutions: sizes that are halved
    /// evenly and not, with and without a shortcut.
    #[test]
    fn the_host_computes_what_candle_does() {
        for (rows, columns, input, output, kernel, stride) in
            [(5, 9, 1, 8, 3, 1), (8, 12, 8, 8, 3, 1), (8, 13, 8, 16, 3, 2), (7, 10, 6, 4, 1, 2)]
        {
            let random = |shape: &[usize]| Tensor::randn(0f32, 1.0, shape, &Device::Cpu).unwrap();
            let (x, weights) = (random(&[1, input, rows, columns]), random(&[output, input, kernel, kernel]));
            let bias = random(&[output]);
            let expected = x.conv2d(&weights, kernel / 2, stride, 1, 1).unwrap();
            let expected = expected.broadcast_add(&bias.reshape((1, output, 1, 1)).unwrap()).unwrap();
            let flat = |x: Tensor| x.contiguous().unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let layer = Convolution {
                weights: flat(weights.permute((2, 3, 1, 0)).unwrap()),
                bias: flat(bias),
                input,
                kernel,
                stride,
            };
            let mut image = Image::zeros(rows, columns, input);
            let places = flat(x.permute((0, 2, 3, 1)).unwrap());
            for (row, values) in places.chunks_exact(columns * input).enumerate() {
                image.row_mut(row).copy_from_slice(values);
            }
            let found = layer.apply(&image, None, false);
            let found: Vec<f32> = (0..found.rows).flat_map(|row| found.row(row).to_vec()).collect();
            let expected = flat(expected.permute((0, 2, 3, 1)).unwrap());
            assert_eq!(found.len(), expected.len());
            let off = found.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            assert!(off < 1e-4, "{rows} x {columns} x {input} by {kernel}: off by {off}");
        }
    }
}
