//! Two-dimensional convolutions on the host. candle's copy each input nine times
//! over and take several times as long.

use rayon::prelude::*;

use crate::fused::add_product_of_overlapping_rows;
use crate::vectorised::{Kernel, vectorised};

/// Channels at places in rows and columns, with a border of zeros: (rows + 2,
/// columns + 2, channels).
#[derive(Debug, Clone)]
pub struct Image {
    pub rows: usize,
    pub columns: usize,
    pub channels: usize,
    values: Vec<f32>,
}

impl Image {
    pub fn zeros(rows: usize, columns: usize, channels: usize) -> Self {
        let values = vec![0.0; (rows + 2) * (columns + 2) * channels];
        Self { rows, columns, channels, values }
    }

    /// The values in a row, column after column, without the border.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[self.start_of(row)..][..self.columns * self.channels]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let (start, length) = (self.start_of(row), self.columns * self.channels);
        &mut self.values[start..start + length]
    }

    fn start_of(&self, row: usize) -> usize {
        ((row + 1) * (self.columns + 2) + 1) * self.channels
    }
}

/// A convolution of 3 x 3 or 1 x 1 with a bias, with zeros around the image.
#[derive(Debug)]
pub struct Convolution {
    /// (kernel rows, kernel columns x input, output)
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
    pub input: usize,
    pub kernel: usize,
    pub stride: usize,
}

impl Convolution {
    /// Applies it, adds `beside` where there is one, and sets what is negative to 0
    /// where `relu` asks for it.
    pub fn apply(&self, x: &Image, beside: Option<&Image>, relu: bool) -> Image {
        let halved = |size: usize| (size - 1) / self.stride + 1;
        let output = self.bias.len();
        let mut y = Image::zeros(halved(x.rows), halved(x.columns), output);
        let (columns, length) = (y.columns, y.columns * output);
        let line = (x.columns + 2) * x.channels;
        // A kernel of 1 x 1 reads behind the border.
        let border = (3 - self.kernel) / 2;
        let per_row = self.kernel * self.input;
        y.values.par_chunks_mut((columns + 2) * output).skip(1).take(y.rows).enumerate().for_each(
            |(row, out)| {
                let out = &mut out[output..output + length];
                for (tap, weights) in self.weights.chunks_exact(per_row * output).enumerate() {
                    let first = (row * self.stride + tap + border) * line + border * self.input;
                    let sizes = (columns, per_row, output);
                    add_product_of_overlapping_rows(
                        out,
                        &x.values[first..],
                        self.stride * self.input,
                        weights,
                        sizes,
                    );
                }
                vectorised(Finish {
                    out,
                    bias: &self.bias,
                    beside: beside.map(|image| image.row(row)),
                    relu,
                });
            },
        );
        y
    }
}

/// Adds the bias and what is beside it.
struct Finish<'a> {
    out: &'a mut [f32],
    bias: &'a [f32],
    beside: Option<&'a [f32]>,
    relu: bool,
}

impl Kernel for Finish<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for place in self.out.chunks_exact_mut(self.bias.len()) {
            place.iter_mut().zip(self.bias).for_each(|(x, bias)| *x += bias);
        }
        if let Some(beside) = self.beside {
            self.out.iter_mut().zip(beside).for_each(|(x, beside)| *x += beside);
        }
        if self.relu {
            self.out.iter_mut().for_each(|x| *x = x.max(0.0));
        }
    }
}
