//! What an NVIDIA card can compute, and whether the engine's code for it computes what it should.

use std::fmt;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Tensor};

use crate::Error;
use crate::layers::Tick;

/// A card's compute capability, as NVIDIA calls what its processors can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// The generation.
    pub major: u32,
    /// The step within it.
    pub minor: u32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The first with arithmetic in bfloat16.
#[cfg(feature = "cuda")]
const FIRST_WITH_BF16: Capability = Capability { major: 8, minor: 0 };

impl Capability {
    /// That of a CUDA device.
    ///
    /// # Errors
    /// [`Error::Candle`] if it is no CUDA device, or the driver does not say.
    #[cfg(feature = "cuda")]
    pub fn of(device: &Device) -> Result<Self, Error> {
        let stream = device.as_cuda_device()?.cuda_stream();
        let (major, minor) = stream.context().compute_capability().map_err(candle_core::Error::wrap)?;
        Ok(Self { major: major.unsigned_abs(), minor: minor.unsigned_abs() })
    }
}

/// Code that this program has for cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// What it was compiled for.
    pub capability: Capability,
    /// It uses what this step alone has, as cudaforge tells the compiler from 9.0 on.
    one_step: bool,
    /// It is there as PTX too, which a driver compiles for a card that came later.
    later: bool,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.capability, if self.later { " and later" } else { "" })
    }
}

impl Code {
    /// One of `STENO_CUDA_CAPABILITIES`: `86` as in 8.6, `90a` for 9.0 alone, `120+` for 12.0 and later.
    fn listed(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let number: u32 = digits.parse().ok()?;
        let capability = Capability { major: number / 10, minor: number % 10 };
        let suffix = text.get(digits.len()..).unwrap_or_default();
        Some(Self { capability, one_step: matches!(suffix, "a" | "f"), later: suffix == "+" })
    }

    /// That of `CUDA_COMPUTE_CAP`, to which cudaforge adds a suffix from 9.0 on.
    fn compiled(text: &str) -> Option<Self> {
        let code = Self::listed(text)?;
        Some(Self { one_step: code.one_step || code.capability.major >= 9, ..code })
    }

    /// Whether it runs on a card of `card`. Machine code runs on later steps of its generation.
    fn serves(self, card: Capability) -> bool {
        let is_later_step = self.capability.major == card.major && self.capability.minor < card.minor;
        self.capability == card || (is_later_step && !self.one_step) || (self.later && self.capability < card)
    }
}

/// The code that this program has: for the capabilities in `STENO_CUDA_CAPABILITIES` when it was compiled, separated by
/// commas, or the one in `CUDA_COMPUTE_CAP`, which candle's kernels are compiled for.
pub fn built_for() -> Vec<Code> {
    match option_env!("STENO_CUDA_CAPABILITIES") {
        Some(list) => list.split(',').filter_map(Code::listed).collect(),
        None => option_env!("CUDA_COMPUTE_CAP").and_then(Code::compiled).into_iter().collect(),
    }
}

/// Whether this program has code for a card; `true` where it does not know what it was built for.
pub fn is_served(card: Capability) -> bool {
    let built = built_for();
    built.is_empty() || built.iter().any(|built| built.serves(card))
}

/// Whether a device computes in bfloat16: candle has no such kernels before 8.0.
#[cfg(feature = "cuda")]
pub(crate) fn has_bf16(device: &Device) -> Result<bool, Error> {
    let compiled = option_env!("CUDA_COMPUTE_CAP").and_then(Code::compiled);
    let compiled = compiled.is_none_or(|compiled| compiled.capability >= FIRST_WITH_BF16);
    Ok(compiled && Capability::of(device)? >= FIRST_WITH_BF16)
}

/// Computes on a device in a type of 16 or 32 bits.
type Operation = fn(&Device, DType) -> candle_core::Result<Tensor>;

/// One operation of each of candle's modules of kernels, and the products of both kinds of matrices.
const OPERATIONS: [(&str, Operation); 13] = [
    ("affine", |device, dtype| x(device, dtype)?.affine(0.5, 1.0)),
    ("binary", |device, dtype| x(device, dtype)?.broadcast_add(&x(device, dtype)?.narrow(0, 3, 1)?)),
    ("cast", |device, dtype| x(device, DType::F32)?.to_dtype(DType::F16)?.to_dtype(dtype)),
    ("conv", |device, dtype| {
        let kernel = x(device, dtype)?.narrow(1, 0, 24)?.contiguous()?.reshape((ROWS, 8, 3))?;
        x(device, dtype)?.reshape((1, 8, COLUMNS))?.conv1d(&kernel, 1, 1, 1, 1)
    }),
    ("fill", |device, dtype| {
        let ones = Tensor::full(1f32, (ROWS, 1), device)?.to_dtype(dtype)?;
        Tensor::cat(&[&ones, &x(device, dtype)?], 1)
    }),
    ("indexing", |device, dtype| x(device, dtype)?.index_select(&Tensor::new(&[5u32, 0, 5], device)?, 0)),
    ("layer norm", |device, dtype| {
        let row = |number| x(device, dtype)?.get(number)?.contiguous();
        candle_nn::ops::layer_norm(&x(device, dtype)?, &row(0)?, &row(1)?, 1e-5)
    }),
    ("product", |device, dtype| x(device, dtype)?.matmul(&x(device, dtype)?.t()?)),
    ("quantised product", |device, dtype| Ok(quantised(device, dtype)?.1)),
    ("quantised matrix", |device, dtype| Ok(quantised(device, dtype)?.0)),
    ("reduce", |device, dtype| candle_nn::ops::softmax_last_dim(&x(device, dtype)?)),
    ("sort", |device, dtype| {
        x(device, dtype)?.arg_sort_last_dim(true)?.to_dtype(DType::F32)?.to_dtype(dtype)
    }),
    ("ternary and unary", |device, dtype| {
        let mask = Tensor::new(&[1u8, 0, 0, 1], device)?.repeat(COLUMNS / 4)?;
        let x = x(device, dtype)?;
        mask.broadcast_as((ROWS, COLUMNS))?.where_cond(&x, &x.gelu_erf()?)
    }),
];

const ROWS: usize = 8;
const COLUMNS: usize = 64;

/// (rows, columns), different numbers from -1 to 1 that every type holds exactly.
fn x(device: &Device, dtype: DType) -> candle_core::Result<Tensor> {
    let values: Vec<f32> =
        (0..ROWS * COLUMNS).map(|i| (i * 389 % (ROWS * COLUMNS)) as f32 / 256.0 - 1.0).collect();
    Tensor::from_vec(values, (ROWS, COLUMNS), &Device::Cpu)?.to_dtype(dtype)?.to_device(device)
}

/// A matrix that was quantised, and its product with few rows as in a step of the decoder.
fn quantised(device: &Device, dtype: DType) -> candle_core::Result<(Tensor, Tensor)> {
    let packed = QTensor::quantize(&x(&Device::Cpu, DType::F32)?, GgmlDType::Q8_0)?;
    let rows = x(device, dtype)?.narrow(0, 2, 3)?.contiguous()?;
    if device.is_cpu() {
        let matrix = packed.dequantize(device)?.to_dtype(dtype)?;
        let product = rows.matmul(&matrix.t()?)?;
        return Ok((matrix, product));
    }
    let bytes = QStorage::from_data(packed.data()?, device, GgmlDType::Q8_0)?;
    let packed = std::sync::Arc::new(QTensor::new(bytes, (ROWS, COLUMNS))?);
    let matrix = packed.dequantize_f16(device)?.to_dtype(DType::F32)?;
    Ok((matrix, QMatMul::from_arc(packed)?.forward(&rows)?))
}

/// Compares one operation of each kind with the CPU's result, so that code which does not fit the card can't write a
/// wrong text. Calls `on_operation` after each: a driver may compile for seconds before the first one of a module.
///
/// # Errors
/// [`Error::Interrupted`] if `on_operation` returned `false`; [`Error::WrongResult`] if a result is wrong; [`Error::Candle`] if the card has no such operation, fails, or has no
/// memory left.
pub fn self_test(device: &Device, on_operation: &Tick) -> Result<(), Error> {
    for dtype in [DType::F32, DType::F16] {
        for (operation, compute) in OPERATIONS {
            let values = |device: &Device, dtype| {
                compute(device, dtype)?
                    .to_dtype(DType::F32)?
                    .to_device(&Device::Cpu)?
                    .flatten_all()?
                    .to_vec1::<f32>()
            };
            // The CPU has not every operation in 16 bits.
            let (found, expected) = (values(device, dtype)?, values(&Device::Cpu, DType::F32)?);
            let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
            let tolerance = match (operation, dtype) {
                // Activations are quantised too.
                ("quantised product", _) => 0.02,
                ("quantised matrix", _) | (_, DType::F16) => 0.005,
                _ => 1e-4,
            };
            let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= tolerance * largest;
            if found.len() != expected.len() || !found.iter().zip(&expected).all(is_near) {
                return Err(Error::WrongResult { operation });
            }
            if !on_operation() {
                return Err(Error::Interrupted);
            }
        }
    }
    // These use operations of before: a wrong one of those is named for itself.
    #[cfg(feature = "cuda")]
    if device.is_cuda() && !crate::choose::Chooser::is_right(device)? {
        return Err(Error::WrongResult { operation: "choice of tokens" });
    }
    #[cfg(feature = "cuda")]
    if device.is_cuda() && !crate::finish::is_right(device)? {
        return Err(Error::WrongResult { operation: "what follows a product" });
    }
    #[cfg(feature = "cuda")]
    if device.is_cuda() && !crate::attend::is_right(device)? {
        return Err(Error::WrongResult { operation: "attention to what beams share" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_serves_later_steps_of_its_generation_and_ptx_all_that_follow() {
        type Read = fn(&str) -> Option<Code>;
        let (listed, compiled): (Read, Read) = (Code::listed, Code::compiled);
        for (read, built, (major, minor), expected) in [
            (listed, "75", (7, 5), true),
            (listed, "75", (8, 0), false),
            (listed, "80", (7, 5), false),
            (listed, "80", (8, 6), true),
            (listed, "86", (8, 0), false),
            (listed, "90", (9, 0), true),
            (listed, "90a", (9, 0), true),
            (listed, "100", (10, 3), true),
            (listed, "100a", (10, 3), false),
            (listed, "100", (11, 0), false),
            (listed, "120+", (12, 1), true),
            (listed, "120+", (13, 0), true),
            (listed, "120+", (10, 3), false),
            (compiled, "86", (8, 9), true),
            (compiled, "100", (10, 0), true),
            (compiled, "100", (10, 3), false),
        ] {
            let code = read(built).unwrap();
            assert_eq!(code.serves(Capability { major, minor }), expected, "{built} on {major}.{minor}");
        }
        assert_eq!(listed("120+").unwrap().to_string(), "12.0 and later");
    }

    /// What the release is built for, as its scripts say it, and what the compiler is then asked for.
    #[test]
    #[cfg(target_os = "linux")]
    fn one_engine_serves_every_card_from_turing_on() {
        let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cuda");
        let build = std::fs::read_to_string(scripts.join("build.sh")).unwrap();
        let list = build.lines().find_map(|line| line.strip_prefix("every_capability=")).unwrap();
        let codes: Vec<Code> = list.split(',').map(|text| Code::listed(text).unwrap()).collect();
        for (major, minor, expected) in [
            (7, 0, false),
            (7, 5, true),
            (8, 0, true),
            (8, 6, true),
            (8, 9, true),
            (9, 0, true),
            (10, 0, true),
            (10, 3, true),
            (12, 0, true),
            (12, 1, true),
            (13, 0, true),
        ] {
            let card = Capability { major, minor };
            assert_eq!(codes.iter().any(|code| code.serves(card)), expected, "{card}");
        }
        let asked = |arguments: &[&str]| {
            let mut compiler = std::process::Command::new(scripts.join("nvcc-for-all"));
            compiler.args(arguments).env("STENO_NVCC", "echo").env("STENO_CUDA_CAPABILITIES", "75,90+");
            String::from_utf8(compiler.output().unwrap().stdout).unwrap().trim().to_owned()
        };
        let one = "-gencode=arch=compute_75,code=sm_75";
        assert_eq!(asked(&[one, "--ptx", "x.cu"]), "--ptx x.cu -gencode=arch=compute_75,code=compute_75");
        assert_eq!(
            asked(&[one, "-c", "x.cu"]),
            format!(
                "-c x.cu {one} -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_90,code=compute_90"
            )
        );
        for other in ["--list-gpu-code", "--lib -o libmoe.a x.o"] {
            assert_eq!(asked(&other.split(' ').collect::<Vec<_>>()), other);
        }
    }

    /// The test itself passes where nothing is wrong.
    #[test]
    fn the_cpu_passes() {
        self_test(&Device::Cpu, &|| true).unwrap();
    }
}
