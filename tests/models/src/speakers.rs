//! A model that tells speakers apart, in the layout and of the size of pyannote's
//! community-1, with random weights.

use std::fs;
use std::io;
use std::path::Path;

use crate::weights::{Tensor, Values, write_file};
use crate::{Options, WeightType};

/// Writes the model to `folder`, which is created if necessary: 32 MB.
///
/// # Errors
/// The error of the file system, if a file can't be written.
pub fn write_speaker_model(folder: &Path) -> io::Result<()> {
    let options = Options { precision: WeightType::F32, ..Options::default() };
    for (part, tensors) in [("segmentation", segmentation()), ("embedding", embedding())] {
        fs::create_dir_all(folder.join(part))?;
        write_file(&folder.join(part).join("model.safetensors"), &tensors, &options)?;
    }
    let plda = folder.join("plda");
    fs::create_dir_all(&plda)?;
    let diagonal = |rows: usize, columns: usize| -> Vec<f64> {
        (0..rows * columns).map(|at| f64::from(u8::from(at / columns == at % columns))).collect()
    };
    write_npz(
        &plda.join("xvec_transform.npz"),
        &[
            ("mean1", &[256], vec![0.0; 256]),
            ("mean2", &[128], vec![0.0; 128]),
            ("lda", &[256, 128], diagonal(256, 128)),
        ],
    )?;
    let psi = (0..128).map(|at| 3.0 / f64::from(at + 1)).collect();
    write_npz(
        &plda.join("plda.npz"),
        &[("mu", &[128], vec![0.0; 128]), ("tr", &[128, 128], diagonal(128, 128)), ("psi", &[128], psi)],
    )
}

fn tensor(name: impl Into<String>, shape: &[usize], (mean, deviation): (f32, f32)) -> Tensor {
    Tensor { name: name.into(), shape: shape.to_vec(), values: Values::Normal { mean, deviation } }
}

/// Scales and offsets of a normalisation.
fn norm(tensors: &mut Vec<Tensor>, name: &str, width: usize) {
    tensors.push(tensor(format!("{name}.weight"), &[width], (1.0, 0.05)));
    tensors.push(tensor(format!("{name}.bias"), &[width], (0.0, 0.05)));
}

fn linear(tensors: &mut Vec<Tensor>, name: &str, output: usize, input: usize, deviation: f32) {
    tensors.push(tensor(format!("{name}.weight"), &[output, input], (0.0, deviation)));
    tensors.push(tensor(format!("{name}.bias"), &[output], (0.0, 0.02)));
}

fn segmentation() -> Vec<Tensor> {
    const HIDDEN: usize = 128;
    let mut tensors = Vec::new();
    norm(&mut tensors, "sincnet.wav_norm1d", 1);
    for (part, mean) in [("low_hz_", 900.0), ("band_hz_", 200.0)] {
        tensors.push(tensor(format!("sincnet.conv1d.0.filterbank.{part}"), &[40, 1], (mean, mean / 2.0)));
    }
    for (number, input) in [(1, 80), (2, 60)] {
        let name = format!("sincnet.conv1d.{number}");
        tensors.push(tensor(format!("{name}.weight"), &[60, input, 5], (0.0, 0.05)));
        tensors.push(tensor(format!("{name}.bias"), &[60], (0.0, 0.02)));
    }
    for (number, width) in [80, 60, 60].into_iter().enumerate() {
        norm(&mut tensors, &format!("sincnet.norm1d.{number}"), width);
    }
    for layer in 0..4 {
        let input = if layer == 0 { 60 } else { 2 * HIDDEN };
        for direction in ["", "_reverse"] {
            let mut add = |part: &str, shape: &[usize]| {
                tensors.push(tensor(format!("lstm.{part}_l{layer}{direction}"), shape, (0.0, 0.15)));
            };
            add("weight_ih", &[4 * HIDDEN, input]);
            add("weight_hh", &[4 * HIDDEN, HIDDEN]);
            add("bias_ih", &[4 * HIDDEN]);
            add("bias_hh", &[4 * HIDDEN]);
        }
    }
    linear(&mut tensors, "linear.0", 128, 2 * HIDDEN, 0.06);
    linear(&mut tensors, "linear.1", 128, 128, 0.09);
    // So that no class is always the likeliest.
    linear(&mut tensors, "classifier", 7, 128, 2.0);
    tensors
}

fn embedding() -> Vec<Tensor> {
    const BLOCKS: [usize; 4] = [3, 4, 6, 3];
    let mut tensors = Vec::new();
    let mut convolution = |conv: &str, bn: &str, output: usize, input: usize, kernel: usize| {
        let deviation = ((input * kernel * kernel) as f32).sqrt().recip();
        tensors.push(tensor(
            format!("resnet.{conv}.weight"),
            &[output, input, kernel, kernel],
            (0.0, deviation),
        ));
        norm(&mut tensors, &format!("resnet.{bn}"), output);
        tensors.push(tensor(format!("resnet.{bn}.running_mean"), &[output], (0.0, 0.05)));
        tensors.push(tensor(format!("resnet.{bn}.running_var"), &[output], (1.0, 0.05)));
    };
    convolution("conv1", "bn1", 32, 1, 3);
    let mut width = 32;
    for (stage, count) in (1..).zip(BLOCKS) {
        let output = 32 << (stage - 1);
        for number in 0..count {
            let name = format!("layer{stage}.{number}");
            convolution(&format!("{name}.conv1"), &format!("{name}.bn1"), output, width, 3);
            convolution(&format!("{name}.conv2"), &format!("{name}.bn2"), output, output, 3);
            if width != output {
                convolution(&format!("{name}.shortcut.0"), &format!("{name}.shortcut.1"), output, width, 1);
            }
            width = output;
        }
    }
    linear(&mut tensors, "resnet.seg_1", 256, 5120, 0.014);
    tensors
}

/// An array's name, shape and numbers.
type Array<'a> = (&'a str, &'a [usize], Vec<f64>);

/// Writes numpy's arrays, uncompressed. The checksums of the archive are 0.
fn write_npz(path: &Path, arrays: &[Array]) -> io::Result<()> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, shape, values) in arrays {
        let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let name = format!("{name}.npy");
        let size = (file.len() as u32).to_le_bytes();
        // Version, flags, method, time and date; then the checksum, two sizes and two lengths.
        let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &size[..], &size[..]].concat();
        let lengths = [(name.len() as u16).to_le_bytes(), [0; 2]].concat();
        let at = (archive.len() as u32).to_le_bytes();
        let entry =
            [&b"PK\x01\x02\x14\0"[..], &common[..], &lengths[..], &[0; 10][..], &at[..], name.as_bytes()];
        directory.extend(entry.concat());
        archive.extend([&b"PK\x03\x04"[..], &common[..], &lengths[..], name.as_bytes(), &file[..]].concat());
    }
    let count = (arrays.len() as u16).to_le_bytes();
    let (start, size) = ((archive.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    archive.extend(directory);
    let end = [&b"PK\x05\x06\0\0\0\0"[..], &count[..], &count[..], &size[..], &start[..], &[0; 2][..]];
    archive.extend(end.concat());
    let partial = path.with_extension("partial");
    fs::write(&partial, archive)?;
    fs::rename(partial, path)
}
