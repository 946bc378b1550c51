//! How a matrix is held: dense, packed in 16 bits or GGML's blocks on the host, or
//! quantised on a GPU. No other module knows.
//!
//! A lower precision needs no file of its own, since matrices are quantised piece by
//! piece as they are read. On the host, packed weights are widened as they are used and
//! multiplied by activations of 32 bits. Where the processor has instructions for them,
//! weights of 8 bits are multiplied in 8 bits or in 16 (`eight_bits`), an encoder's of BF16 in
//! BF16 (`bf16_matrix`). Each row of activations is rounded by itself, so that a
//! sequence's result does not depend on how many are decoded beside it. candle's own
//! quantised products would keep a repacked copy of every matrix. On a GPU they
//! are used for few rows, where a result then depends a little on how many there are.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QStorage, QTensor};
use candle_core::{CpuStorage, DType, Device, Module, Storage, Tensor};
use memory::Precision;
use memory::processor::multiplies_in_eight_bits;

use crate::Error;
use crate::bf16_matrix::{self, Bf16Matrix};
use crate::blocks::{bytes_of, ggml};
use crate::eight_bits::EightBitMatrix;
use crate::fused::is_host_f32;
use crate::packed::{FEW_ROWS, PackedMatrix};
use crate::prepacked::{PrepackedMatrix, product_of_many_rows};
use crate::products::{DenseRows, product_of_few_rows};
use crate::right_factor::AttentionPrecision;

/// The weights of a linear layer or an embedding, (output, input).
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    /// In the floating-point type that the device computes in.
    Dense(Tensor),
    /// On the host in fewer than 32 bits, converted to 32 bits as they are used.
    Packed(Arc<PackedMatrix>),
    /// An encoder's, on the host in 32 bits, in the order that products with many rows read them in.
    Prepacked(Arc<PrepackedMatrix>),
    /// The same in BF16. Activations are rounded to 16 bits too.
    Bf16(Arc<Bf16Matrix>),
    /// On the host in 8 bits. Activations are rounded to 8 bits too, each row by itself, in an encoder; elsewhere they have
    /// 16 bits, since a decoder's rounding costs words and its speed is that of reading the weights.
    EightBits { weights: Arc<EightBitMatrix>, is_encoder: bool },
    /// Quantised on a GPU.
    Quantised(Arc<QTensor>),
}

impl Matrix {
    /// `rows` x `columns` weights in the format `stored`, held in `format`, which has fewer than 32 bits: on the host
    /// packed, or in the order of products in 8 bits where the processor is faster that way; on a GPU quantised.
    /// `invalid` makes an error of the reason why they can't be converted.
    pub fn convert(
        (stored, bytes): (Precision, &[u8]),
        shape: (usize, usize),
        format: Precision,
        device: &Device,
        invalid: impl FnOnce(String) -> Error,
    ) -> Result<Self, Error> {
        if device.is_cpu() && format == Precision::Q8_0 && multiplies_in_eight_bits() {
            let weights = Arc::new(EightBitMatrix::convert(stored, bytes, shape).map_err(invalid)?);
            return Ok(Self::EightBits { weights, is_encoder: false });
        }
        let packed = PackedMatrix::convert(stored, bytes, shape, format).map_err(invalid)?;
        if device.is_cpu() {
            return Ok(Self::Packed(Arc::new(packed)));
        }
        let storage = QStorage::from_data(packed.bytes().into(), device, ggml(packed.format()))?;
        Ok(Self::Quantised(Arc::new(QTensor::new(storage, shape)?)))
    }

    /// The same weights as an encoder's products with many rows are fastest with: activations are rounded to 8 bits, or to
    /// BF16, where the weights are and the processor is faster that way. Its [`rows`](Self::rows) can't be
    /// read in 32 bits or BF16.
    pub fn for_encoder(self) -> Result<Self, Error> {
        match &self {
            Self::Dense(weight) if is_host_f32(weight) => {
                let columns = weight.dim(1)?;
                let prepacked =
                    with_values(weight, |values| PrepackedMatrix::of_rows(values, columns, 0..columns))??;
                Ok(Self::Prepacked(Arc::new(prepacked)))
            }
            Self::Packed(packed) if packed.format() == Precision::Bf16 && bf16_matrix::is_fast_here() => {
                let (rows, columns) = packed.shape();
                Ok(Self::Bf16(Arc::new(Bf16Matrix::new(packed.bytes(), rows, columns))))
            }
            Self::EightBits { weights, .. } => {
                Ok(Self::EightBits { weights: Arc::clone(weights), is_encoder: true })
            }
            _ => Ok(self),
        }
    }

    /// That of attention to the results of an encoder's matrix: as coarse as its own products, which are rounded no less.
    pub fn attention_precision(&self) -> AttentionPrecision {
        match self {
            Self::Bf16(_) => AttentionPrecision::Bf16,
            Self::EightBits { is_encoder: true, .. } => AttentionPrecision::EightBits,
            _ => AttentionPrecision::F32,
        }
    }

    /// Whether weights take less memory than what the device computes with, and are converted as they are used.
    pub fn is_compressed(&self) -> bool {
        matches!(self, Self::Packed(_) | Self::Quantised(_))
    }

    /// The number of rows.
    pub fn output(&self) -> Result<usize, Error> {
        Ok(match self {
            Self::Dense(weight) => weight.dim(0)?,
            Self::Packed(packed) => packed.shape().0,
            Self::Prepacked(prepacked) => prepacked.shape().1,
            Self::Bf16(weights) => weights.shape().0,
            Self::EightBits { weights, .. } => weights.shape().0,
            Self::Quantised(weight) => weight.shape().dims2()?.0,
        })
    }

    /// `x W'`: (rows, input) -> (rows, output). `x` must be contiguous.
    pub fn product(&self, x: &Tensor) -> Result<Tensor, Error> {
        match self {
            Self::Dense(weight) if is_host_f32(x) => dense_product(weight, x),
            Self::Dense(weight) => Ok(x.matmul(&weight.t()?)?),
            Self::Packed(packed) => packed.product(x),
            Self::Prepacked(prepacked) => {
                let (count, (depth, rows)) = (x.dim(0)?, prepacked.shape());
                if x.dim(1)? != depth {
                    return Err(candle_core::Error::Msg(format!("{x:?} times {prepacked:?}")).into());
                }
                let product = with_values(x, |x| prepacked.product(x))??;
                Ok(Tensor::from_vec(product, (count, rows), x.device())?)
            }
            Self::Bf16(weights) => rounded_product(x, weights.shape(), weights, |x| weights.product(x)),
            Self::EightBits { weights, is_encoder } => {
                rounded_product(x, weights.shape(), weights, |x| match is_encoder {
                    true => weights.product(x),
                    false => weights.fine_product(x),
                })
            }
            Self::Quantised(weight) => {
                /// For up to this many rows candle's kernel for quantised
                /// blocks is fastest. For more, converting the matrix to half
                /// precision first is, as only then the product runs on the
                /// half-precision units.
                const FEW_ROWS_ON_GPU: usize = 8;
                let dtype = x.dtype();
                if x.dim(0)? > FEW_ROWS_ON_GPU {
                    let wide = weight.dequantize_f16(x.device())?.to_dtype(dtype)?;
                    return Ok(x.matmul(&wide.t()?)?);
                }
                // It takes and gives activations of every type.
                Ok(QMatMul::from_arc(Arc::clone(weight))?.forward(x)?)
            }
        }
    }

    /// The rows `ids`, (count, input) in `dtype`.
    pub fn rows(&self, ids: &Tensor, dtype: DType) -> Result<Tensor, Error> {
        Ok(match self {
            Self::Dense(weight) => weight.index_select(ids, 0)?,
            Self::Packed(packed) => packed.rows(&ids.to_vec1()?)?.to_dtype(dtype)?,
            Self::EightBits { weights, .. } => {
                let ids: Vec<u32> = ids.to_vec1()?;
                let (rows, columns) = weights.shape();
                if let Some(id) = ids.iter().find(|id| **id as usize >= rows) {
                    return Err(candle_core::Error::Msg(format!("row {id} of {weights:?}")).into());
                }
                let values: Vec<f32> = ids.iter().flat_map(|id| weights.row(*id as usize)).collect();
                Tensor::from_vec(values, (ids.len(), columns), &Device::Cpu)?.to_dtype(dtype)?
            }
            Self::Prepacked(_) | Self::Bf16(_) => {
                return Err(candle_core::Error::Msg(format!("the rows of {self:?}")).into());
            }
            Self::Quantised(weight) => weight.embedding(ids)?.to_dtype(dtype)?,
        })
    }

    /// The precision that the weights are held in.
    pub fn format(&self) -> Precision {
        match self {
            Self::Dense(weight) => match weight.dtype() {
                DType::F16 => Precision::F16,
                DType::BF16 => Precision::Bf16,
                _ => Precision::F32,
            },
            Self::Packed(packed) => packed.format(),
            Self::Prepacked(_) => Precision::F32,
            Self::Bf16(_) => Precision::Bf16,
            Self::EightBits { .. } => Precision::Q8_0,
            Self::Quantised(weight) => {
                Precision::ALL.into_iter().find(|p| ggml(*p) == weight.dtype()).unwrap_or(Precision::F32)
            }
        }
    }

    /// The bytes that the weights take.
    pub fn bytes(&self) -> u64 {
        let weights = match self {
            Self::Dense(weight) => weight.elem_count(),
            Self::Packed(packed) => packed.shape().0 * packed.shape().1,
            Self::Prepacked(prepacked) => prepacked.shape().0 * prepacked.shape().1,
            Self::Bf16(weights) => weights.shape().0 * weights.shape().1,
            Self::EightBits { weights, .. } => weights.shape().0 * weights.shape().1,
            Self::Quantised(weight) => weight.shape().elem_count(),
        };
        bytes_of(self.format(), weights) as u64
    }
}

/// `x W'` on the host in 32 bits: `x` is (count, columns), W is (rows, columns),
/// the result is (count, rows).
pub(crate) fn dense_product(weight: &Tensor, x: &Tensor) -> Result<Tensor, Error> {
    let ((count, columns), rows) = (x.dims2()?, weight.dim(0)?);
    if weight.dim(1)? != columns {
        return Err(candle_core::Error::Msg(format!("{x:?} times {weight:?}")).into());
    }
    let product = with_values(weight, |weight| {
        with_values(x, |x| match count <= FEW_ROWS {
            true => Ok(product_of_few_rows(&DenseRows(weight), rows, columns, x)),
            false => product_of_many_rows(weight, rows, columns, x),
        })
    })???;
    Ok(Tensor::from_vec(product, (count, rows), x.device())?)
}

/// What `product` makes of the rows of `x`, times a matrix of (rows, columns) whose activations are rounded.
fn rounded_product(
    x: &Tensor,
    (rows, columns): (usize, usize),
    weights: &dyn std::fmt::Debug,
    product: impl FnOnce(&[f32]) -> Vec<f32>,
) -> Result<Tensor, Error> {
    if x.dim(1)? != columns {
        return Err(candle_core::Error::Msg(format!("{x:?} times {weights:?}")).into());
    }
    Ok(Tensor::from_vec(with_values(x, product)?, (x.dim(0)?, rows), x.device())?)
}

/// Calls `read` with the values of a contiguous tensor of 32-bit floats on the host.
pub(crate) fn with_values<R>(x: &Tensor, read: impl FnOnce(&[f32]) -> R) -> Result<R, Error> {
    let (storage, layout) = x.storage_and_layout();
    let (Storage::Cpu(CpuStorage::F32(values)), Some((start, end))) =
        (&*storage, layout.contiguous_offsets())
    else {
        return Err(candle_core::Error::Msg(format!("{x:?} is not contiguous in 32 bits")).into());
    };
    Ok(read(&values[start..end]))
}
