//! The networks of pyannote's community-1 compared with pyannote.audio's outputs, from
//! checkpoints as pyannote saves them: tests/data/corpus/reference/speakers/community.

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{Device, Tensor};
use formats::{SpeakerFiles, Tensors};
use models::speakers::{Plda, WeSpeaker};
use random_models::corpus;

fn folder() -> PathBuf {
    corpus::bundled().join("reference/speakers/community")
}

fn files() -> SpeakerFiles {
    SpeakerFiles::find(&folder().join("model")).unwrap().unwrap()
}

fn golden() -> HashMap<String, Tensor> {
    candle_core::safetensors::load(folder().join("golden.safetensors"), &Device::Cpu).unwrap()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &Tensor, what: &str) {
    let expected = expected.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let off = found.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    println!("{what}: off by {off:.1e}");
    assert!(off < 1e-4, "{what}: off by {off}");
}

#[test]
fn vectors_of_voices_equal_the_reference() {
    let (golden, files) = (golden(), files());
    let network = WeSpeaker::open(&files.embedding, &Device::Cpu).unwrap();
    let energies = golden["fbank"].flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let frames = network.frames(&energies).unwrap();
    let whole = network.vectors(&frames, &[vec![1.0; 589]]).unwrap();
    assert_near(&whole.concat(), &golden["embedding"], "the whole window");
    let masks = golden["masks"].to_vec2::<f32>().unwrap();
    let found = network.vectors(&frames, &masks).unwrap();
    assert_near(&found.concat(), &golden["masked_embeddings"], "speakers of a window");
    // The vector of an empty mask is finite, too.
    let nobody = network.vectors(&frames, &[vec![0.0; 589]]).unwrap();
    assert!(nobody.concat().iter().all(|x| x.is_finite()));
    assert!(network.frames(&energies[1..]).is_err());
}

/// Each dimension may point either way. The reference inverts matrices that are nearly
/// singular on the way, which these need not.
#[test]
fn discriminant_analysis_equals_the_reference() {
    let (golden, files) = (golden(), files());
    let plda = Plda::open(&files.transform, &files.plda).unwrap();
    for (found, expected) in plda.between().iter().zip(golden["vbx_phi"].to_vec1::<f64>().unwrap()) {
        assert!((found - expected).abs() < 1e-8 * expected.max(1.0), "{found}, not {expected}");
    }
    let vectors = golden["vbx_vectors"].to_vec2::<f32>().unwrap();
    let expected = golden["vbx_features"].to_vec2::<f64>().unwrap();
    for (vector, expected) in vectors.iter().zip(expected) {
        for (found, expected) in plda.features(vector).iter().zip(expected) {
            assert!((found.abs() - expected.abs()).abs() < 1e-4, "{found}, not {expected}");
        }
    }
}

/// The tensors of a checkpoint, by the reader that executes nothing and by candle's.
#[test]
fn a_checkpoint_has_the_tensors_that_candle_finds() {
    for path in [files().segmentation, files().embedding] {
        let found = Tensors::open_file(&path).unwrap();
        let expected = candle_core::pickle::PthTensors::new(&path, Some("state_dict")).unwrap();
        assert_eq!(found.index.len(), expected.tensor_infos().len());
        for (name, info) in expected.tensor_infos() {
            let tensor = &found.index[name];
            assert_eq!(tensor.shape, info.layout.dims(), "{name}");
            if tensor.stored.is_ok() {
                let values =
                    expected.get(name).unwrap().unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let bytes = &found.files[0].1[tensor.bytes.clone()];
                let read: Vec<f32> =
                    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                assert_eq!(read, values, "{name}");
            }
        }
    }
}
