//! The right factors of attention's products: keys and values, which each window has its own of, and the distances between
//! frames, which are the same in all.

use std::ops::Range;

use crate::Error;
use crate::bf16_matrix::{self, Bf16Matrix};
use crate::eight_bits::{EightBitMatrix, RoundedRows};
use crate::prepacked::PrepackedMatrix;

/// The precision of attention's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionPrecision {
    F32,
    /// Both factors rounded to 16 bits: for encoders whose weights are multiplied in BF16 too.
    Bf16,
    /// Both factors rounded to 8 bits, as [`EightBitMatrix`] does: for encoders whose weights have 8 bits too. Whisper's
    /// takes 32 bits where the processor has no VNNI.
    EightBits,
}

/// The right factor of a product, in the order that its kernel reads it in.
#[derive(Debug)]
pub enum RightFactor {
    F32(PrepackedMatrix),
    Bf16(Bf16Matrix),
    EightBits(EightBitMatrix),
}

/// What a thread keeps from one product to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    bf16: bf16_matrix::Scratch,
    eight_bits: RoundedRows,
}

impl RightFactor {
    /// Its columns are the `part` of the rows of `w`, each of `width` numbers.
    pub fn of_rows(
        precision: AttentionPrecision,
        w: &[f32],
        width: usize,
        part: Range<usize>,
    ) -> Result<Self, Error> {
        Ok(match precision {
            AttentionPrecision::F32 => Self::F32(PrepackedMatrix::of_rows(w, width, part)?),
            AttentionPrecision::Bf16 => Self::Bf16(Bf16Matrix::of_rows(w, width, part)),
            AttentionPrecision::EightBits => Self::EightBits(EightBitMatrix::of_rows(w, width, part)),
        })
    }

    /// Its columns are those of `w` in the `part` of its rows, each of `width` numbers.
    pub fn of_columns(
        precision: AttentionPrecision,
        w: &[f32],
        width: usize,
        part: Range<usize>,
    ) -> Result<Self, Error> {
        Ok(match precision {
            AttentionPrecision::F32 => Self::F32(PrepackedMatrix::of_columns(w, width, part)?),
            AttentionPrecision::Bf16 => Self::Bf16(Bf16Matrix::of_columns(w, width, part)),
            AttentionPrecision::EightBits => Self::EightBits(EightBitMatrix::of_columns(w, width, part)),
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
            Self::F32(matrix) => return matrix.scaled_product(out, x, width, part, scale),
            Self::Bf16(matrix) => matrix.scaled_product(&mut scratch.bf16, out, (x, width, part), scale),
            Self::EightBits(matrix) => {
                matrix.scaled_product(&mut scratch.eight_bits, out, (x, width, part), scale);
            }
        }
        Ok(())
    }
}
