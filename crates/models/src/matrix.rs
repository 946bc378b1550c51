use std::sync::Arc;

use candle_core::quantized::{QMatMul, QStorage, QTensor};
use candle_core::{CpuStorage, DType, Device, Module, Storage, Tensor};
use memory::Precision;

use crate::Error;
use crate::blocks::{bytes_of, ggml};
use crate::fused::{is_ours, product_of_many};
use crate::packed::{FEW, Packed};
use crate::products::{Wide, product_of_few};

/// Weights of a linear layer or an embedding, (output, input), in whichever
/// way they are held.
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    /// In the type that the device computes in.
    Dense(Tensor),
    /// On the host, in fewer bits, widened as they are used.
    Packed(Arc<Packed>),
    /// Quantised, on a GPU.
    Quantised(Arc<QTensor>),
}

impl Matrix {
    /// Blocks go to the host's own [`Packed`], or as they are to a GPU.
    pub fn from_packed(packed: Packed, device: &Device) -> Result<Self, Error> {
        if device.is_cpu() {
            return Ok(Self::Packed(Arc::new(packed)));
        }
        let shape = packed.shape();
        let storage = QStorage::from_data(packed.bytes().into(), device, ggml(packed.format()))?;
        Ok(Self::Quantised(Arc::new(QTensor::new(storage, shape)?)))
    }

    /// Rows of the matrix.
    pub fn output(&self) -> Result<usize, Error> {
        Ok(match self {
            Self::Dense(weight) => weight.dim(0)?,
            Self::Packed(packed) => packed.shape().0,
            Self::Quantised(weight) => weight.shape().dims2()?.0,
        })
    }

    /// `x W'`: (rows, input) -> (rows, output). `x` is contiguous.
    pub fn product(&self, x: &Tensor) -> Result<Tensor, Error> {
        match self {
            Self::Dense(weight) if is_ours(x) => dense_product(weight, x),
            Self::Dense(weight) => Ok(x.matmul(&weight.t()?)?),
            Self::Packed(packed) => packed.product(x),
            Self::Quantised(weight) => {
                /// Up to so many rows candle multiplies by the blocks
                /// themselves; beyond, widening the matrix costs less than
                /// losing the half-precision units.
                const FEW_ON_A_GPU: usize = 8;
                let dtype = x.dtype();
                if x.dim(0)? > FEW_ON_A_GPU {
                    let wide = weight.dequantize_f16(x.device())?.to_dtype(dtype)?;
                    return Ok(x.matmul(&wide.t()?)?);
                }
                let product = QMatMul::from_arc(Arc::clone(weight))?.forward(&x.to_dtype(DType::F32)?)?;
                Ok(product.to_dtype(dtype)?)
            }
        }
    }

    /// The rows that `ids` names, (count, input) in `dtype`.
    pub fn rows(&self, ids: &Tensor, dtype: DType) -> Result<Tensor, Error> {
        Ok(match self {
            Self::Dense(weight) => weight.index_select(ids, 0)?,
            Self::Packed(packed) => packed.rows(&ids.to_vec1()?)?.to_dtype(dtype)?,
            Self::Quantised(weight) => weight.embedding(ids)?.to_dtype(dtype)?,
        })
    }

    /// How the weights are held.
    pub fn format(&self) -> Precision {
        match self {
            Self::Dense(weight) => match weight.dtype() {
                DType::F16 => Precision::F16,
                DType::BF16 => Precision::Bf16,
                _ => Precision::F32,
            },
            Self::Packed(packed) => packed.format(),
            Self::Quantised(weight) => {
                Precision::ALL.into_iter().find(|p| ggml(*p) == weight.dtype()).unwrap_or(Precision::F32)
            }
        }
    }

    /// Bytes that the weights take.
    pub fn bytes(&self) -> u64 {
        let weights = match self {
            Self::Dense(weight) => weight.elem_count(),
            Self::Packed(packed) => packed.shape().0 * packed.shape().1,
            Self::Quantised(weight) => weight.shape().elem_count(),
        };
        bytes_of(self.format(), weights) as u64
    }
}

/// `x W'` on the host in 32 bits: (count, columns) times (rows, columns).
pub(crate) fn dense_product(weight: &Tensor, x: &Tensor) -> Result<Tensor, Error> {
    let ((count, columns), rows) = (x.dims2()?, weight.dim(0)?);
    if weight.dim(1)? != columns {
        return Err(candle_core::Error::Msg(format!("{x:?} times {weight:?}")).into());
    }
    let product = with_values(weight, |weight| {
        with_values(x, |x| match count <= FEW {
            true => product_of_few(&Wide(weight), rows, columns, x),
            false => product_of_many(weight, rows, columns, x),
        })
    })??;
    Ok(Tensor::from_vec(product, (count, rows), x.device())?)
}

/// Gives `work` the numbers of a contiguous tensor of 32-bit floats on the host.
pub(crate) fn with_values<R>(x: &Tensor, work: impl FnOnce(&[f32]) -> R) -> Result<R, Error> {
    let (storage, layout) = x.storage_and_layout();
    let (Storage::Cpu(CpuStorage::F32(values)), Some((start, end))) =
        (&*storage, layout.contiguous_offsets())
    else {
        return Err(candle_core::Error::Msg(format!("{x:?} is not contiguous in 32 bits")).into());
    };
    Ok(work(&values[start..end]))
}
