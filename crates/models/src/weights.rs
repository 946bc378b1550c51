use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Tensor};
use formats::{AdapterFile, Tensors, without_ones};
use memory::Precision;
use rayon::prelude::*;

use crate::Error;
use crate::blocks::{bytes_of, to_f32};
use crate::matrix::Matrix;
use crate::packed::PackedMatrix;
use crate::prepacked::PrepackedMatrix;
use crate::training::Merge;

/// The weights of a model by name, from safetensors, GGUF or whisper.cpp files.
/// The files are memory-mapped and tensors are copied to the device one by one,
/// each of which leaves the memory when the next one is read, so the host never
/// holds a second copy of the model.
#[derive(Debug)]
pub struct Weights {
    tensors: Tensors,
    /// Whether numbers that are not finite are refused.
    finite: bool,
    /// What is added to matrices as they are read.
    merge: Option<Box<Merge>>,
    /// The file of the tensor that was read last, and its bytes.
    last: Mutex<Option<(usize, Range<usize>)>>,
    /// Scratch for one matrix in 32 bits, between the file and the order in which products read it. It is reused, because
    /// new memory takes longer to get than to fill. It stays until all is loaded: computing takes more memory than that.
    scratch: Mutex<Vec<f32>>,
}

impl Weights {
    /// Opens the model at `path`: a folder, or a GGUF or whisper.cpp file.
    ///
    /// # Errors
    /// [`Error::Files`] if its files are
    /// missing, unreadable or damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::of(Tensors::open(path)?))
    }

    /// Those of a file or files that are open.
    pub(crate) fn of(tensors: Tensors) -> Self {
        Self { tensors, finite: false, merge: None, last: Mutex::default(), scratch: Mutex::default() }
    }

    /// Opens one file, of safetensors or a checkpoint that torch saved.
    ///
    /// # Errors
    /// [`Error::Files`] if it is unreadable, damaged or of another format.
    pub(crate) fn open_file(path: &Path) -> Result<Self, Error> {
        Ok(Self::of(Tensors::open_file(path)?))
    }

    /// The same weights; the adapter is added to the matrices that it names.
    pub(crate) fn adapted(self, adapter: Option<AdapterFile>) -> Self {
        Self { merge: adapter.map(|file| Box::new(Merge::of(file))), ..self }
    }

    /// The same weights; each tensor that is read is refused by name where one of its numbers is not finite.
    pub(crate) fn refusing_infinite(self) -> Self {
        Self { finite: true, ..self }
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.index.contains_key(name)
    }

    /// The total size of the files in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.tensors.files.iter().map(|(_, map)| map.len() as u64).sum()
    }

    /// (name, shape, stored precision) of every tensor of a supported type, sorted
    /// by name.
    pub(crate) fn tensors(&self) -> Vec<(&str, &[usize], Precision)> {
        let mut tensors: Vec<_> = self
            .tensors
            .index
            .iter()
            .filter_map(|(name, tensor)| {
                Some((name.as_str(), tensor.shape.as_slice(), *tensor.stored.as_ref().ok()?))
            })
            .collect();
        tensors.sort_unstable();
        tensors
    }

    /// A tensor converted to `precision`, as a matrix whose columns are the
    /// tensor's last dimension and whose rows are all others.
    pub(crate) fn bytes_in(
        &self,
        name: &str,
        shape: &[usize],
        precision: Precision,
    ) -> Result<PackedMatrix, Error> {
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let rows = shape.iter().product::<usize>() / columns;
        let (path, stored, bytes) = self.find(name, shape)?;
        PackedMatrix::convert(stored, bytes, (rows, columns), precision)
            .map_err(|reason| Error::invalid(path, format!("the tensor {name}: {reason}")))
    }

    /// The precision that most weights of the matrices are stored in; F32 if
    /// there are none.
    pub fn stored_precision(&self) -> Precision {
        self.tensors.stored_precision()
    }

    /// The tensor `name`, converted to `dtype` on `device`.
    ///
    /// # Errors
    /// [`Error::Files`] if there is no such tensor, or it has another shape or
    /// an unsupported type; [`Error::Candle`] if the device has no room for it.
    pub fn get(&self, name: &str, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor, Error> {
        let (_, stored, bytes) = self.find(name, shape)?;
        let tensor = match stored {
            Precision::F16 if dtype != DType::F32 => {
                Tensor::from_raw_buffer(bytes, DType::F16, shape, &Device::Cpu)?
            }
            Precision::Bf16 if dtype != DType::F32 => {
                Tensor::from_raw_buffer(bytes, DType::BF16, shape, &Device::Cpu)?
            }
            other => {
                let mut values = vec![0.0; shape.iter().product()];
                to_f32_on_all_threads(other, bytes, &mut values);
                Tensor::from_vec(values, shape, &Device::Cpu)?
            }
        };
        Ok(tensor.to_dtype(dtype)?.to_device(device)?)
    }

    /// As [`Weights::get`], in the shape that it has.
    pub(crate) fn any(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor, Error> {
        let shape = self.tensors.index.get(name).map(|tensor| tensor.shape.as_slice());
        self.get(name, shape.unwrap_or_default(), dtype, device)
    }

    /// The matrix `name` of (output, input) weights, held in `precision` or the
    /// next larger one whose blocks its rows fit ([`Precision::for_width`]).
    /// `dtype` is the type that the device computes in.
    pub(crate) fn matrix(
        &self,
        name: &str,
        (output, input): (usize, usize),
        precision: Precision,
        dtype: DType,
        device: &Device,
    ) -> Result<Matrix, Error> {
        let held = precision.for_width(input as u64);
        let dense = held == Precision::F32 || !(held.is_quantised() || device.is_cpu());
        let merge = self.merge.as_ref().map(|merge| merge.merged(name, (output, input), self));
        if let Some(values) = merge.transpose()?.flatten() {
            if dense {
                let values = Tensor::from_vec(values, (output, input), &Device::Cpu)?;
                return Ok(Matrix::Dense(values.to_dtype(dtype)?.to_device(device)?));
            }
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let invalid = |reason| Error::invalid(self.first_file(), format!("{name}: {reason}"));
            return Matrix::convert((Precision::F32, &bytes), (output, input), held, device, invalid);
        }
        if dense {
            return Ok(Matrix::Dense(self.get(name, &[output, input], dtype, device)?));
        }
        let (path, stored, bytes) = self.find(name, &[output, input])?;
        let invalid = |reason| Error::invalid(path, format!("the tensor {name}: {reason}"));
        Matrix::convert((stored, bytes), (output, input), held, device, invalid)
    }

    /// As [`matrix`](Self::matrix), as an encoder's products with many rows are fastest with. Weights of 32 bits are
    /// read from the file without a copy between, others through scratch memory.
    pub(crate) fn encoder_matrix(
        &self,
        name: &str,
        (output, input): (usize, usize),
        precision: Precision,
        dtype: DType,
        device: &Device,
    ) -> Result<Matrix, Error> {
        let is_merged = self.merge.as_ref().is_some_and(|merge| merge.changes(name));
        let is_host_f32 = device.is_cpu() && precision == Precision::F32 && dtype == DType::F32;
        if is_host_f32 && !is_merged {
            let (_, stored, bytes) = self.find(name, &[output, input])?;
            let is_as_products_read = stored == Precision::F32 && cfg!(target_endian = "little");
            let prepacked = match bytemuck::try_cast_slice(bytes) {
                Ok(values) if is_as_products_read => PrepackedMatrix::of_rows(values, input, 0..input),
                _ => self.prepacked_from_scratch(stored, bytes, (output, input)),
            };
            return Ok(Matrix::Prepacked(Arc::new(prepacked?)));
        }
        self.matrix(name, (output, input), precision, dtype, device)?.for_encoder()
    }

    /// A matrix of (output, input) weights that were `stored` as `bytes`.
    fn prepacked_from_scratch(
        &self,
        stored: Precision,
        bytes: &[u8],
        (output, input): (usize, usize),
    ) -> Result<PrepackedMatrix, Error> {
        let scratch = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is not held meanwhile: a thread that waits for the others may be given another matrix to load.
        let mut values = mem::take(&mut *scratch());
        let count = output * input;
        if values.len() < count {
            values.resize(count, 0.0);
        }
        to_f32_on_all_threads(stored, bytes, &mut values[..count]);
        let prepacked = PrepackedMatrix::of_rows(&values[..count], input, 0..input);
        *scratch() = values;
        prepacked
    }

    /// The first of its files, for errors about what is in none.
    pub(crate) fn first_file(&self) -> PathBuf {
        self.tensors.files.first().map_or_else(PathBuf::new, |(path, _)| path.clone())
    }

    /// The file, stored precision and bytes of a tensor of this shape.
    fn find(&self, name: &str, shape: &[usize]) -> Result<(&Path, Precision, &[u8]), Error> {
        let tensor = self
            .tensors
            .index
            .get(name)
            .ok_or_else(|| Error::invalid(self.first_file(), format!("the tensor {name} is missing")))?;
        let (path, map) = &self.tensors.files[tensor.file];
        if without_ones(&tensor.shape) != without_ones(shape) {
            let found = &tensor.shape;
            return Err(Error::invalid(
                path,
                format!("the tensor {name} has the shape {found:?}, config.json asks for {shape:?}"),
            ));
        }
        match &tensor.stored {
            Ok(stored) if self.finite && !is_finite(*stored, &map[tensor.bytes.clone()]) => {
                Err(Error::invalid(path, format!("the tensor {name} has numbers that are not finite")))
            }
            Ok(stored) => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((file, bytes)) = last.replace((tensor.file, tensor.bytes.clone())) {
                    self.tensors.release(file, bytes);
                }
                Ok((path, *stored, &map[tensor.bytes.clone()]))
            }
            Err(other) => Err(Error::invalid(
                path,
                format!("the tensor {name} is of the type {other}, which is not supported"),
            )),
        }
    }
}

/// As [`to_f32`], by all threads together.
fn to_f32_on_all_threads(stored: Precision, bytes: &[u8], values: &mut [f32]) {
    /// Weights of a part: whole blocks of every format.
    const PART: usize = 1 << 16;
    let bytes = bytes.par_chunks(bytes_of(stored, PART));
    values.par_chunks_mut(PART).zip(bytes).for_each(|(values, bytes)| to_f32(stored, bytes, values));
}

/// Whether all numbers are finite, by their exponents; those of blocks are taken for it.
fn is_finite(stored: Precision, bytes: &[u8]) -> bool {
    const BLOCK: usize = 1 << 20;
    let halves = |exponent: u16| {
        bytes.par_chunks(BLOCK).all(|bytes| {
            bytes.as_chunks().0.iter().all(|bytes| u16::from_le_bytes(*bytes) & exponent != exponent)
        })
    };
    match stored {
        Precision::F32 => bytes.par_chunks(BLOCK).all(|bytes| {
            const EXPONENT: u32 = 0x7f80_0000;
            bytes.as_chunks().0.iter().all(|bytes| u32::from_le_bytes(*bytes) & EXPONENT != EXPONENT)
        }),
        Precision::F16 => halves(0x7c00),
        Precision::Bf16 => halves(0x7f80),
        _ => true,
    }
}

/// The precision that most weights of the model at `path` are stored in. Reads
/// only the headers of its files.
///
/// # Errors
/// As [`Weights::open`].
pub fn stored_precision(path: &Path) -> Result<Precision, Error> {
    Ok(Tensors::open(path)?.stored_precision())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Bytes of the file that are mapped and in memory, of this process.
    #[cfg(target_os = "linux")]
    fn resident(file: &Path) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mapped = maps.split_once(file.to_str().unwrap()).expect("the file is mapped").1;
        let line = mapped.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn an_encoders_matrix_has_the_numbers_of_its_file() {
        // The second is read where numbers of the first still are, and the third needs more room.
        let matrix = |rows| Tensor::randn(0f32, 1.0, (rows, 64), &Device::Cpu).unwrap();
        let x = matrix(50);
        let folder = tempfile::tempdir().unwrap();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let file = folder.path().join(format!("{dtype:?}.safetensors"));
            let tensors = [("first", 2000), ("second", 100), ("third", 3000)]
                .map(|(name, rows)| (name, matrix(rows).to_dtype(dtype).unwrap()));
            candle_core::safetensors::save(&HashMap::from(tensors.clone()), &file).unwrap();
            let weights = Weights::open_file(&file).unwrap();
            for (name, stored) in tensors {
                let shape = stored.dims2().unwrap();
                let read =
                    weights.encoder_matrix(name, shape, Precision::F32, DType::F32, &Device::Cpu).unwrap();
                assert!(matches!(read, Matrix::Prepacked(_)));
                let expected = x.matmul(&stored.to_dtype(DType::F32).unwrap().t().unwrap()).unwrap();
                let off = (read.product(&x).unwrap() - expected).unwrap().abs().unwrap();
                let most = off.flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
                assert!(most < 1e-4, "{name}, {dtype:?}: {most}");
                let plain = weights.get(name, &[shape.0, shape.1], DType::F32, &Device::Cpu).unwrap();
                let same = plain.eq(&stored.to_dtype(DType::F32).unwrap()).unwrap();
                assert_eq!(same.min_all().unwrap().to_scalar::<u8>().unwrap(), 1, "{name}, {dtype:?}");
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn of_a_file_that_is_read_one_tensor_is_in_memory() {
        const TENSORS: usize = 16;
        const BYTES: u64 = 4 << 20;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.safetensors");
        let (rows, columns) = (1024, BYTES as usize / 1024 / size_of::<f32>());
        let matrix = |number: usize| Tensor::full(number as f32, (rows, columns), &Device::Cpu).unwrap();
        let tensors: HashMap<_, _> =
            (0..TENSORS).map(|number| (format!("{number}"), matrix(number))).collect();
        candle_core::safetensors::save(&tensors, &file).unwrap();
        let weights = Weights::open_file(&file).unwrap();
        for number in 0..TENSORS {
            let read = weights.get(&number.to_string(), &[rows, columns], DType::F32, &Device::Cpu).unwrap();
            assert_eq!(
                read.get(rows - 1).unwrap().max(0).unwrap().to_scalar::<f32>().unwrap(),
                number as f32
            );
            // The system reads a little ahead.
            let resident = resident(&file);
            assert!(resident <= BYTES + (1 << 20), "{resident} bytes after {} tensors", number + 1);
        }
        // What has left the memory is read from the file again.
        let read = weights.get("0", &[rows, columns], DType::F32, &Device::Cpu).unwrap();
        assert_eq!(read.sum_all().unwrap().to_scalar::<f32>().unwrap(), 0.0);
    }
}
