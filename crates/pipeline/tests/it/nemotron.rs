//! Nemotron-3-Diarization compared with transformers' results:
//! tests/data/corpus/reference/speakers/nemotron.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use audio::{HOP, N_FFT, NemoMel, Pcm};
use candle_core::{Device, Tensor};
use formats::{NemotronFiles, SpeakerModel};
use models::speakers::{Nemotron, VoiceEncoder};
use pipeline::speakers::nemotron::{NemotronHeard, NemotronNetworks, diarize, listen, logits};
use pipeline::speakers::{Bounds, SpeakerNetworks};
use random_models::corpus;

use crate::speakers::{assert_near, recording};

fn folder() -> PathBuf {
    corpus::bundled().join("reference/speakers/nemotron")
}

fn golden() -> HashMap<String, Tensor> {
    candle_core::safetensors::load(folder().join("golden.safetensors"), &Device::Cpu).unwrap()
}

fn files() -> NemotronFiles {
    NemotronFiles::find(&folder().join("model")).unwrap().unwrap()
}

fn all_logits(pcm: &Pcm, network: &Nemotron) -> Vec<f32> {
    let mut found = Vec::new();
    logits(pcm, network, &mut |chunk| {
        found.extend_from_slice(chunk);
        Ok(())
    })
    .unwrap();
    found
}

#[test]
fn speakers_are_heard_as_by_the_reference() {
    let golden = golden();
    let samples = golden["audio"].to_vec1::<f32>().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tones.wav");
    corpus::write_wav_f32(&path, &samples).unwrap();
    let frames = samples.len() / HOP;

    let mut padded = vec![0.0; NemoMel::BEFORE];
    padded.extend(&samples);
    let end = padded.len();
    padded.resize((frames - 1) * HOP + N_FFT + 1, 0.0);
    let found = NemoMel::new(128).logarithms(&padded, end);
    // The reference has a frame of zeros behind the last.
    let expected = golden["features"].narrow(0, 0, frames).unwrap().flatten_all().unwrap();
    let expected = expected.to_vec1::<f32>().unwrap();
    assert_eq!(found.len(), expected.len());
    // Logarithms of faint bands are rounded by the reference, which computes them in 32 bits.
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 3e-4, "spectrogram off by {worst}");

    let recording = recording(&path);
    let network = Nemotron::open(&files(), &Device::Cpu).unwrap();
    let found = all_logits(&recording.pcm, &network);
    assert_near(&found, &golden["logits"].narrow(0, 0, frames).unwrap(), "logits");

    // The turns are as the reference's, though speakers are numbered as they are first heard.
    let networks = NemotronNetworks::open(&files(), &Device::Cpu).unwrap();
    let mut heard = NemotronHeard::default();
    listen(&recording.pcm, &networks, &mut heard, &mut |_, _| Ok(())).unwrap();
    let any = Bounds { min: 1, max: usize::MAX };
    let found = diarize(&heard, recording.seconds(), any);
    let expected: Vec<(f64, f64, usize)> =
        serde_json::from_slice(&fs::read(folder().join("turns.json")).unwrap()).unwrap();
    let milliseconds = |seconds: f64| (seconds * 1000.0).round() as u32;
    let mut order: Vec<usize> = Vec::new();
    for (.., speaker) in &expected {
        if !order.contains(speaker) {
            order.push(*speaker);
        }
    }
    let number = |speaker: &usize| order.iter().position(|other| other == speaker).unwrap();
    let mut expected: Vec<_> =
        expected.iter().map(|(a, b, who)| (milliseconds(*a), milliseconds(*b), number(who))).collect();
    let mut turns: Vec<_> =
        found.turns.iter().map(|it| (it.span.start.millis(), it.span.end.millis(), it.speaker)).collect();
    expected.sort_unstable();
    turns.sort_unstable();
    assert_eq!(turns, expected);
    assert_eq!((found.voices.len(), found.network.as_str()), (order.len(), VoiceEncoder::NAME));
    assert!(found.voices.iter().all(|voice| voice.len() == VoiceEncoder::WIDTH));

    // Too many are joined by their voices.
    for most in [1, 3] {
        let found = diarize(&heard, recording.seconds(), Bounds { min: 1, max: most });
        assert_eq!(found.voices.len(), most);
        assert_eq!(found.turns.iter().map(|turn| turn.speaker).max(), Some(most - 1));
    }
}

/// What is shorter than a frame, and what ends with a whole frame of the encoder.
#[test]
fn recordings_of_any_length_are_heard() {
    let network = Nemotron::open(&files(), &Device::Cpu).unwrap();
    let samples = golden()["audio"].to_vec1::<f32>().unwrap();
    let place = tempfile::tempdir().unwrap();
    for (count, frames) in [(1, 0), (159, 0), (160, 1), (1279, 7), (1280, 8), (25_600, 160), (25_601, 160)] {
        let path = place.path().join("short.wav");
        corpus::write_wav_f32(&path, &samples[..count]).unwrap();
        let found = all_logits(&recording(&path).pcm, &network);
        assert_eq!(found.len(), 8 * frames, "{count} samples");
    }
}

/// A model that is not whole, or not what it says, is refused by the name of what is wrong.
#[test]
fn what_is_wrong_with_a_model_is_said() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path();
    let source = folder().join("model");
    let config = fs::read_to_string(source.join("config.json")).unwrap();
    let weights = fs::read(source.join("model.safetensors")).unwrap();
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let renamed = {
        let text = String::from_utf8(weights[8..8 + header].to_vec()).unwrap();
        let text = text.replace("classifier.dense.bias", "classifier.dense.bia2");
        [&weights[..8], text.as_bytes(), &weights[8 + header..]].concat()
    };
    let mut not_a_number = weights.clone();
    let last = not_a_number.len() - 4;
    not_a_number[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    let with = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        config.replacen(from, to, 1)
    };
    let cases: [(String, Option<&[u8]>, &str); 10] = [
        (config.clone(), None, "is missing in the model's folder"),
        (config.clone(), Some(&weights[..weights.len() / 2]), "model.safetensors"),
        (config.clone(), Some(&renamed), "the tensor classifier.dense.bias is missing"),
        (config.clone(), Some(&not_a_number), "not finite"),
        (with("\"hidden_size\": 32", "\"hidden_size\": 64"), Some(&weights), "different sizes"),
        (with("\"intermediate_size\": 64", "\"intermediate_size\": 65"), Some(&weights), "has the shape"),
        (with("\"num_speakers\": 8", "\"num_speakers\": 9"), Some(&weights), "9 speakers"),
        (with("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"silu\""), Some(&weights), "silu"),
        (with("\"chunk_length\": 20", "\"chunk_length\": 0"), Some(&weights), "chunk_length is 0"),
        (
            with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4000000000"),
            Some(&weights),
            "num_hidden_layers",
        ),
    ];
    for (config, weights, part) in cases {
        fs::write(model.join("config.json"), config).unwrap();
        let _ = fs::remove_file(model.join("model.safetensors"));
        if let Some(weights) = weights {
            fs::write(model.join("model.safetensors"), weights).unwrap();
        }
        let said = SpeakerNetworks::open(Some(model), &Device::Cpu).unwrap_err().to_string();
        assert!(said.contains(part), "{part}: {said}");
        // Before it is installed too, but for the values of weights, which are not read then.
        let checked = SpeakerModel::find(model).and_then(|found| found.unwrap().check());
        assert!(checked.is_err() || part == "not finite", "{part}");
    }
}
