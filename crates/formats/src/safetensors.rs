use std::collections::HashMap;

use memory::Precision;
use safetensors::{Dtype, SafeTensors};

use crate::TensorInfo;

/// The tensors of a safetensors file by name. `file` is the number of the file
/// among the model's files. The error is a reason for [`crate::Error::Invalid`].
pub(crate) fn index(bytes: &[u8], file: usize) -> Result<HashMap<String, TensorInfo>, String> {
    let start = bytes.as_ptr() as usize;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let index = tensors.iter().map(|(name, view)| {
        let first = view.data().as_ptr() as usize - start;
        let stored = match view.dtype() {
            Dtype::F32 => Ok(Precision::F32),
            Dtype::F16 => Ok(Precision::F16),
            Dtype::BF16 => Ok(Precision::Bf16),
            other => Err(format!("{other:?}")),
        };
        let bytes = first..first + view.data().len();
        (name.to_owned(), TensorInfo { file, bytes, shape: view.shape().to_vec(), stored })
    });
    Ok(index.collect())
}
