use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use memory::Precision;
use rayon::prelude::*;

use crate::Error;
use crate::blocks::{
    bf16_weights, bytes_of, f16_weights, ggml, q8_0_weights, to_f32, to_f32_inline, to_q8_0,
};
use crate::matrix::{dense_product, with_values};
use crate::products::{
    BLOCK_WEIGHTS, WEIGHTS_PER_TASK, WeightRows, blocks_times, product_of_few_rows, row_times,
};

/// For up to this many rows of activations, each row of weights is converted to
/// 32 bits in the first-level cache and multiplied at once; for more, whole
/// matrices are converted first. Measured with the matrices of Whisper base: with
/// 32 rows both take the same time, with 128 the second takes half. With 1500 it
/// takes as long as with 32-bit weights, and candle's quantised product takes
/// between two thirds (Q8_0) and 23 times (Q5_0) that.
pub const FEW_ROWS: usize = 32;

/// The most weights that are converted to 32 bits at once: 16 MiB. The output
/// projection of a large vocabulary (66 million weights) then needs no more
/// memory than any other layer.
const MAX_CONVERTED_WEIGHTS: usize = 4 << 20;

/// A matrix on the host whose weights take fewer than 32 bits each.
///
/// Activations keep their 32 bits in [`product`](PackedMatrix::product): else few and many
/// rows would be computed with different precision, and decoding a batch would no longer
/// equal decoding its windows one by one.
#[derive(Debug)]
pub(crate) struct PackedMatrix {
    format: Precision,
    rows: usize,
    columns: usize,
    row_bytes: usize,
    bytes: Vec<u8>,
}

impl PackedMatrix {
    /// Converts `rows` x `columns` weights in the format `stored` to `format`. In
    /// addition to the result only a few rows per thread are in memory.
    ///
    /// # Errors
    /// A reason for [`Error::Files`].
    pub fn convert(
        stored: Precision,
        bytes: &[u8],
        (rows, columns): (usize, usize),
        format: Precision,
    ) -> Result<Self, String> {
        let row_bytes = |format| bytes_of(format, columns);
        if bytes.len() != rows * row_bytes(stored) || !columns.is_multiple_of(format.block_weights() as usize)
        {
            return Err(format!("{rows} x {columns} weights don't fit {} bytes of {stored}", bytes.len()));
        }
        let of = |bytes| Self { format, rows, columns, row_bytes: row_bytes(format), bytes };
        if stored == format {
            return Ok(of(bytes.to_vec()));
        }
        let mut packed = vec![0; rows * row_bytes(format)];
        let rows_at_once = (WEIGHTS_PER_TASK / columns).max(1);
        packed
            .par_chunks_mut(rows_at_once * row_bytes(format))
            .zip(bytes.par_chunks(rows_at_once * row_bytes(stored)))
            .try_for_each(|(packed, bytes)| {
                let mut values = vec![0.0; bytes.len() / row_bytes(stored) * columns];
                to_f32(stored, bytes, &mut values);
                from_f32(format, values, packed)
            })?;
        Ok(of(packed))
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

    /// `x W'` in 32-bit floats: (count, columns) -> (count, rows).
    pub fn product(&self, x: &Tensor) -> Result<Tensor, Error> {
        let (count, columns) = x.dims2()?;
        if columns != self.columns {
            return Err(candle_core::Error::Msg(format!("{x:?} times {self:?}")).into());
        }
        if count > FEW_ROWS {
            return self.product_of_many_rows(x);
        }
        let product = with_values(x, |x| product_of_few_rows(self, self.rows, columns, x))?;
        Ok(Tensor::from_vec(product, (count, self.rows), &Device::Cpu)?)
    }

    fn product_of_many_rows(&self, x: &Tensor) -> Result<Tensor, Error> {
        let at_once = (MAX_CONVERTED_WEIGHTS / self.columns).clamp(1, self.rows);
        let block = |start: usize| -> Result<Tensor, Error> {
            let rows = at_once.min(self.rows - start);
            dense_product(&self.rows_as_f32(start, rows)?, x)
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

    /// The rows `ids` in 32-bit floats, (count, columns).
    pub fn rows(&self, ids: &[u32]) -> Result<Tensor, Error> {
        let mut values = vec![0.0; ids.len() * self.columns];
        for (id, values) in ids.iter().zip(values.chunks_exact_mut(self.columns)) {
            let row =
                self.bytes.chunks_exact(self.row_bytes).nth(*id as usize).ok_or_else(|| {
                    candle_core::Error::Msg(format!("row {id} of a matrix of {}", self.rows))
                })?;
            to_f32(self.format, row, values);
        }
        Ok(Tensor::from_vec(values, (ids.len(), self.columns), &Device::Cpu)?)
    }

    /// `count` rows from `start` on in 32-bit floats, (count, columns).
    fn rows_as_f32(&self, start: usize, count: usize) -> Result<Tensor, Error> {
        let mut values = vec![0.0; count * self.columns];
        let rows_at_once = (WEIGHTS_PER_TASK / self.columns).max(1);
        let bytes = &self.bytes[start * self.row_bytes..(start + count) * self.row_bytes];
        values
            .par_chunks_mut(rows_at_once * self.columns)
            .zip(bytes.par_chunks(rows_at_once * self.row_bytes))
            .for_each(|(values, bytes)| to_f32(self.format, bytes, values));
        Ok(Tensor::from_vec(values, (count, self.columns), &Device::Cpu)?)
    }
}

impl WeightRows for PackedMatrix {
    #[inline(always)]
    fn multiply_row<const FMA: bool>(&self, number: usize, scratch: &mut [f32], x: &[f32], out: &mut [f32]) {
        let row = &self.bytes[number * self.row_bytes..][..self.row_bytes];
        match self.format {
            Precision::Q8_0 => blocks_times::<FMA, _>(row.as_chunks().0, x, out, q8_0_weights::<FMA>),
            Precision::F16 if self.columns.is_multiple_of(BLOCK_WEIGHTS) => {
                blocks_times::<FMA, _>(row.as_chunks().0, x, out, |block| (1.0, f16_weights::<FMA>(block)));
            }
            Precision::Bf16 if self.columns.is_multiple_of(BLOCK_WEIGHTS) => {
                blocks_times::<FMA, _>(row.as_chunks().0, x, out, |block| (1.0, bf16_weights(block)));
            }
            _ => {
                to_f32_inline::<FMA>(self.format, row, scratch);
                row_times::<FMA>(scratch, x, out);
            }
        }
    }
}

/// Converts `values` to `format`, with the rounding of GGML.
fn from_f32(format: Precision, values: Vec<f32>, bytes: &mut [u8]) -> Result<(), String> {
    // Without a branch for each, which keeps the compiler from making vectors of it.
    if !values.iter().fold(true, |all, value| all & value.is_finite()) {
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
        Precision::Q8_0 => to_q8_0(&values, bytes),
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
pub(crate) mod tests {
    use super::*;

    /// Pseudo-random numbers with the distribution of weights.
    pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        (0..count).map(|_| (next() + next() + next()) * 0.1).collect()
    }

    fn packed(values: &[f32], shape: (usize, usize), format: Precision) -> PackedMatrix {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        PackedMatrix::convert(Precision::F32, &bytes, shape, format).unwrap()
    }

    fn tensor(values: Vec<f32>, shape: (usize, usize)) -> Tensor {
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
    }

    /// In every format the weights are bit-identical to those that candle
    /// quantises and converts back.
    #[test]
    fn packed_weights_equal_those_of_candle() {
        let shape = (37, 768);
        let mut values = numbers(shape.0 * shape.1, 1);
        // A block of zeros, one of numbers halfway between two integers, one whose scale is 0 in 16 bits.
        values[..32].fill(0.0);
        values[32] = 127.0;
        values[33..64].iter_mut().zip(-15..).for_each(|(value, number)| *value = number as f32 + 0.5);
        values[64..96].iter_mut().for_each(|value| *value *= 1e-9);
        let dense = tensor(values.clone(), shape);
        for format in Precision::ALL {
            let packed = packed(&values, shape, format);
            let theirs = QTensor::quantize(&dense, ggml(format)).unwrap();
            assert_eq!(packed.bytes(), &*theirs.data().unwrap(), "{format}");
            let expected = theirs.dequantize(&Device::Cpu).unwrap();
            let ours = packed.rows_as_f32(0, shape.0).unwrap();
            assert_eq!(largest_difference(&ours, &expected), 0.0, "{format}");
            let some = packed.rows(&[36, 0, 7]).unwrap();
            let ids = Tensor::new(&[36u32, 0, 7], &Device::Cpu).unwrap();
            assert_eq!(largest_difference(&some, &expected.index_select(&ids, 0).unwrap()), 0.0, "{format}");
            assert!(packed.rows(&[37]).is_err());
        }
    }

    #[test]
    fn numbers_too_small_for_a_scale_are_zeros() {
        for tiny in [1e-36, 1e-38, 1e-44] {
            let values: Vec<f32> = numbers(64, 1).iter().map(|value| value * tiny).collect();
            let packed = packed(&values, (1, 64), Precision::Q8_0).rows(&[0]).unwrap();
            assert_eq!(packed.to_vec2::<f32>().unwrap(), [[0.0; 64]], "{tiny}");
        }
    }

    /// For few rows, for many, and for a matrix that is converted in several parts.
    #[test]
    fn products_equal_those_of_the_converted_weights() {
        for (shape, counts) in
            [((70, 256), vec![1, 2, FEW_ROWS, FEW_ROWS + 1, 150]), ((9000, 512), vec![FEW_ROWS + 1])]
        {
            let values = numbers(shape.0 * shape.1, 2);
            for format in [Precision::F16, Precision::Bf16, Precision::Q8_0, Precision::Q5_0, Precision::Q4K]
            {
                let packed = packed(&values, shape, format);
                let dense = packed.rows_as_f32(0, shape.0).unwrap();
                for count in &counts {
                    let x = tensor(numbers(count * shape.1, 3), (*count, shape.1));
                    let expected = x.matmul(&dense.t().unwrap()).unwrap();
                    let difference = largest_difference(&packed.product(&x).unwrap(), &expected);
                    assert!(difference < 1e-5, "{format}, {count} rows: {difference}");
                }
            }
        }
    }

    /// The result of a sequence must not depend on the others in its batch.
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
    fn invalid_matrices_are_refused() {
        let bytes = vec![0; 64 * 4];
        let convert = |shape, format| PackedMatrix::convert(Precision::F32, &bytes, shape, format);
        assert!(convert((2, 32), Precision::Q8_0).is_ok());
        assert!(convert((3, 32), Precision::Q8_0).is_err());
        assert!(convert((4, 16), Precision::Q8_0).is_err());
        let mut bytes = bytes;
        bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = PackedMatrix::convert(Precision::F32, &bytes, (2, 32), Precision::Q8_0).unwrap_err();
        assert!(error.contains("no numbers"), "{error}");
    }
}
