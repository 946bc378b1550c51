//! The right factors of attention's products: keys, values and distances, which each window has its own of.

use std::ops::Range;

use crate::Error;
use crate::bf16_matrix::{self, Bf16Matrix};
use crate::eight_bits::{self, EightBitMatrix};
use crate::prepacked::PrepackedMatrix;

/// What attention multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factors {
    /// Floats of 32 bits.
    Floats,
    /// Both factors rounded to 16 bits: for encoders whose weights are multiplied in BF16 too.
    Bf16,
    /// Both factors rounded to 8 bits, as [`EightBitMatrix`] does: for encoders whose weights have 8 bits too.
    EightBits,
}

/// The right factor of a product, in the order that its kernel reads it in.
#[derive(Debug)]
pub enum RightFactor {
    Floats(PrepackedMatrix),
    Bf16(Bf16Matrix),
    EightBits(EightBitMatrix),
}

/// What a thread keeps from one product to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    bf16: bf16_matrix::Scratch,
    eight_bits: eight_bits::Scratch,
}

impl RightFactor {
    /// W' of the rows of W, each of `width` numbers, of which the `part` is taken.
    pub fn transposed(factors: Factors, w: &[f32], width: usize, part: Range<usize>) -> Result<Self, Error> {
        Ok(match factors {
            Factors::Floats => Self::Floats(PrepackedMatrix::transposed(w, width, part)?),
            Factors::Bf16 => Self::Bf16(Bf16Matrix::rounded(w, width, part)),
            Factors::EightBits => Self::EightBits(EightBitMatrix::rounded(w, width, part)),
        })
    }

    /// W as it is: as [`transposed`](Self::transposed).
    pub fn new(factors: Factors, w: &[f32], width: usize, part: Range<usize>) -> Result<Self, Error> {
        Ok(match factors {
            Factors::Floats => Self::Floats(PrepackedMatrix::new(w, width, part)?),
            Factors::Bf16 => Self::Bf16(Bf16Matrix::rounded_transposed(w, width, part)),
            Factors::EightBits => Self::EightBits(EightBitMatrix::rounded_transposed(w, width, part)),
        })
    }

    /// Writes to `out`, (count, columns), `scale` times the product of the `part` of each row of `x`, of `width` numbers,
    /// on this thread.
    pub fn scaled_product(
        &self,
        scratch: &mut Scratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) -> Result<(), Error> {
        match self {
            Self::Floats(matrix) => return matrix.scaled_product(out, x, width, part, scale),
            Self::Bf16(matrix) => matrix.scaled_product(&mut scratch.bf16, out, (x, width, part), scale),
            Self::EightBits(matrix) => {
                matrix.scaled_product(&mut scratch.eight_bits, out, (x, width, part), scale);
            }
        }
        Ok(())
    }
}
