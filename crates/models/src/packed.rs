use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use memory::Precision;
use rayon::prelude::*;

use crate::Error;
use crate::blocks::{bytes_of, f16_weights, ggml, q8_0_weights, widen, widen_here};
use crate::matrix::{dense_product, with_values};
use crate::products::{BLOCK, Rows, blocks_times, product_of_few, row_times};

/// Up to so many rows of activations each row of weights is widened in the
/// processor's nearest cache and multiplied at once; beyond, whole matrices
/// are widened for the product of many rows. Measured with
/// base's matrices: at 32 rows both take as long, at 128 the second half as
/// long; at 1500 it takes what 32-bit weights take, where candle's quantised
/// product takes from two thirds of that (Q8_0) to the 23-fold (Q5_0).
pub const FEW: usize = 32;

/// Most weights that are widened for one matrix product: 16 MiB of 32-bit
/// floats, so that the output projection of a large vocabulary (66 million
/// weights) takes no more than any other layer.
const WIDENED: usize = 4 << 20;

/// Weights that a thread takes at a time: some tens of microseconds of work.
const PIECE: usize = 1 << 15;

/// A matrix on the host whose weights take fewer than 32 bits each.
///
/// It is multiplied by 32-bit activations as they are: quantising those too,
/// as GGML does, is faster, but then a row's result would depend on which way
/// it was computed, and batched decoding would no longer equal single.
#[derive(Debug)]
pub(crate) struct Packed {
    format: Precision,
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Packed {
    /// Converts `rows` x `columns` weights from `bytes` in the format `stored`,
    /// piece by piece: nothing but the result and a few pieces is held.
    ///
    /// The reason of a failure is for [`Error::Invalid`].
    pub fn convert(
        stored: Precision,
        bytes: &[u8],
        (rows, columns): (usize, usize),
        format: Precision,
    ) -> Result<Self, String> {
        let of_row = |format| bytes_of(format, columns);
        if bytes.len() != rows * of_row(stored) || !columns.is_multiple_of(format.block_weights() as usize) {
            return Err(format!("{rows} x {columns} weights don't fit {} bytes of {stored}", bytes.len()));
        }
        if stored == format {
            return Ok(Self { format, rows, columns, bytes: bytes.to_vec() });
        }
        let mut packed = vec![0; rows * of_row(format)];
        let rows_at_once = (PIECE / columns).max(1);
        packed
            .par_chunks_mut(rows_at_once * of_row(format))
            .zip(bytes.par_chunks(rows_at_once * of_row(stored)))
            .try_for_each(|(packed, bytes)| {
                let mut values = vec![0.0; bytes.len() / of_row(stored) * columns];
                widen(stored, bytes, &mut values);
                narrow(format, values, packed)
            })?;
        Ok(Self { format, rows, columns, bytes: packed })
    }

    pub fn format(&self) -> Precision {
        self.format
    }

    /// (rows, columns)
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `x W'`: (count, columns) -> (count, rows), 32-bit floats.
    pub fn product(&self, x: &Tensor) -> Result<Tensor, Error> {
        let (count, columns) = x.dims2()?;
        if columns != self.columns {
            return Err(candle_core::Error::Msg(format!("{x:?} times {self:?}")).into());
        }
        if count > FEW {
            return self.product_of_many(x);
        }
        let product = with_values(x, |x| product_of_few(self, self.rows, columns, x))?;
        Ok(Tensor::from_vec(product, (count, self.rows), &Device::Cpu)?)
    }

    fn product_of_many(&self, x: &Tensor) -> Result<Tensor, Error> {
        let at_once = (WIDENED / self.columns).clamp(1, self.rows);
        let block = |start: usize| -> Result<Tensor, Error> {
            let rows = at_once.min(self.rows - start);
            dense_product(&self.widened(start, rows)?, x)
        };
        if at_once == self.rows {
            return block(0);
        }
        let product = Tensor::zeros((x.dim(0)?, self.rows), x.dtype(), &Device::Cpu)?;
        for start in (0..self.rows).step_by(at_once) {
            product.slice_set(&block(start)?, 1, start)?;
        }
        Ok(product)
    }

    /// The rows that `ids` names: (count, columns) in 32-bit floats.
    pub fn rows(&self, ids: &[u32]) -> Result<Tensor, Error> {
        let mut values = vec![0.0; ids.len() * self.columns];
        for (id, values) in ids.iter().zip(values.chunks_exact_mut(self.columns)) {
            let row =
                self.bytes.chunks_exact(self.row_bytes()).nth(*id as usize).ok_or_else(|| {
                    candle_core::Error::Msg(format!("row {id} of a matrix of {}", self.rows))
                })?;
            widen(self.format, row, values);
        }
        Ok(Tensor::from_vec(values, (ids.len(), self.columns), &Device::Cpu)?)
    }

    /// `count` rows from `start` on in 32-bit floats.
    fn widened(&self, start: usize, count: usize) -> Result<Tensor, Error> {
        let mut values = vec![0.0; count * self.columns];
        let rows_at_once = (PIECE / self.columns).max(1);
        let bytes = &self.bytes[start * self.row_bytes()..(start + count) * self.row_bytes()];
        values
            .par_chunks_mut(rows_at_once * self.columns)
            .zip(bytes.par_chunks(rows_at_once * self.row_bytes()))
            .for_each(|(values, bytes)| widen(self.format, bytes, values));
        Ok(Tensor::from_vec(values, (count, self.columns), &Device::Cpu)?)
    }

    fn row_bytes(&self) -> usize {
        bytes_of(self.format, self.columns)
    }
}

impl Rows for Packed {
    #[inline(always)]
    fn times<const FMA: bool>(&self, number: usize, room: &mut [f32], x: &[f32], out: &mut [f32]) {
        let row = &self.bytes[number * self.row_bytes()..][..self.row_bytes()];
        match self.format {
            Precision::Q8_0 => blocks_times::<FMA, _>(row.as_chunks().0, x, out, q8_0_weights),
            Precision::F16 if self.columns.is_multiple_of(BLOCK) => {
                blocks_times::<FMA, _>(row.as_chunks().0, x, out, |block| (1.0, f16_weights::<FMA>(block)));
            }
            _ => {
                widen_here::<FMA>(self.format, row, room);
                row_times::<FMA>(room, x, out);
            }
        }
    }
}

/// Writes `values` to `bytes` in `format`; candle rounds, as GGML does.
fn narrow(format: Precision, values: Vec<f32>, bytes: &mut [u8]) -> Result<(), String> {
    if !values.iter().all(|value| value.is_finite()) {
        return Err("it has values that are no numbers".into());
    }
    match format {
        Precision::F32 => {
            bytes
                .as_chunks_mut()
                .0
                .iter_mut()
                .zip(values)
                .for_each(|(bytes, value)| *bytes = value.to_le_bytes());
        }
        Precision::F16 => {
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values);
            bytes
                .as_chunks_mut()
                .0
                .iter_mut()
                .zip(halves)
                .for_each(|(bytes, half)| *bytes = half.to_le_bytes());
        }
        Precision::Bf16 => {
            let mut halves = vec![bf16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values);
            bytes
                .as_chunks_mut()
                .0
                .iter_mut()
                .zip(halves)
                .for_each(|(bytes, half)| *bytes = half.to_le_bytes());
        }
        quantised => {
            let count = values.len();
            let quantise = || -> candle_core::Result<()> {
                let values = Tensor::from_vec(values, count, &Device::Cpu)?;
                bytes.copy_from_slice(&QTensor::quantize(&values, ggml(quantised))?.data()?);
                Ok(())
            };
            quantise().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as weights have them, the same everywhere.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        (0..count).map(|_| (next() + next() + next()) * 0.1).collect()
    }

    fn packed(values: &[f32], shape: (usize, usize), format: Precision) -> Packed {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Packed::convert(Precision::F32, &bytes, shape, format).unwrap()
    }

    fn tensor(values: Vec<f32>, shape: (usize, usize)) -> Tensor {
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
    }

    /// Every format, at a width of several blocks: the weights are those that
    /// candle quantises and reads back, bit for bit.
    #[test]
    fn packed_weights_are_those_of_candle() {
        let shape = (37, 768);
        let values = numbers(shape.0 * shape.1, 1);
        let dense = tensor(values.clone(), shape);
        for format in Precision::ALL {
            let packed = packed(&values, shape, format);
            let theirs = QTensor::quantize(&dense, ggml(format)).unwrap();
            assert_eq!(packed.bytes(), &*theirs.data().unwrap(), "{format}");
            let expected = theirs.dequantize(&Device::Cpu).unwrap();
            let ours = packed.widened(0, shape.0).unwrap();
            assert_eq!(largest_difference(&ours, &expected), 0.0, "{format}");
            let some = packed.rows(&[36, 0, 7]).unwrap();
            let ids = Tensor::new(&[36u32, 0, 7], &Device::Cpu).unwrap();
            assert_eq!(largest_difference(&some, &expected.index_select(&ids, 0).unwrap()), 0.0, "{format}");
            assert!(packed.rows(&[37]).is_err());
        }
    }

    /// Few rows, many rows, and a matrix widened in several parts: all are the
    /// product with the weights that are held.
    #[test]
    fn products_are_those_of_the_widened_weights() {
        for (shape, counts) in [((70, 256), vec![1, 2, FEW, FEW + 1, 150]), ((9000, 512), vec![FEW + 1])] {
            let values = numbers(shape.0 * shape.1, 2);
            for format in [Precision::F16, Precision::Q8_0, Precision::Q5_0, Precision::Q4K] {
                let packed = packed(&values, shape, format);
                let dense = packed.widened(0, shape.0).unwrap();
                for count in &counts {
                    let x = tensor(numbers(count * shape.1, 3), (*count, shape.1));
                    let expected = x.matmul(&dense.t().unwrap()).unwrap();
                    let difference = largest_difference(&packed.product(&x).unwrap(), &expected);
                    assert!(difference < 1e-5, "{format}, {count} rows: {difference}");
                }
            }
        }
    }

    /// What one sequence computes must not depend on how many are beside it.
    #[test]
    fn a_row_is_the_same_alone_and_among_others() {
        let (shape, count) = ((100, 384), 7);
        let packed = packed(&numbers(shape.0 * shape.1, 4), shape, Precision::Q8_0);
        let x = tensor(numbers(count * shape.1, 5), (count, shape.1));
        let together = packed.product(&x).unwrap();
        for row in 0..count {
            let alone = packed.product(&x.narrow(0, row, 1).unwrap()).unwrap();
            assert_eq!(largest_difference(&together.narrow(0, row, 1).unwrap(), &alone), 0.0);
        }
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        let bytes = vec![0; 64 * 4];
        let convert = |shape, format| Packed::convert(Precision::F32, &bytes, shape, format);
        assert!(convert((2, 32), Precision::Q8_0).is_ok());
        assert!(convert((3, 32), Precision::Q8_0).is_err());
        assert!(convert((4, 16), Precision::Q8_0).is_err());
        let mut bytes = bytes;
        bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = Packed::convert(Precision::F32, &bytes, (2, 32), Precision::Q8_0).unwrap_err();
        assert!(error.contains("no numbers"), "{error}");
    }
}
