//! The spectrogram against openai/whisper's own.

use std::path::Path;

use audio::{LogMel, OpenOptions, PrepareOptions, Reader, log_mel_padded_window};
use random_models::corpus;

use crate::common::{decode, tensor};

#[test]
fn padded_windows_equal_the_reference() {
    check_padded_windows(&corpus::bundled(), 2);
}

#[test]
#[ignore = "full corpus: make soak"]
fn padded_windows_of_the_full_corpus_equal_the_reference() {
    check_padded_windows(&corpus::full(), 4);
}

fn check_padded_windows(corpus: &Path, count: usize) {
    let mut checked = 0;
    for entry in std::fs::read_dir(corpus.join("reference/tensors")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let samples = decode(&find(corpus, name), &OpenOptions::default());
        let mel = log_mel_padded_window(&samples, &LogMel::new(80));
        let expected = tensor(&path, "mel", &[80, 3000]);
        let worst = worst(&mel.data, &expected);
        println!("{name}: {worst:.1e}");
        assert!(worst < 1e-4, "{name}: off by {worst}");
        checked += 1;
    }
    assert_eq!(checked, count);
}

/// Windows taken from anywhere are pieces of one spectrogram over the whole
/// file, computed here the slow way.
#[test]
fn windows_of_a_recording_are_cut_from_one_spectrogram() {
    let path = corpus::bundled().join("audio/synthetic/en_minute_1.flac");
    let options = PrepareOptions { n_mels: 128, vad: None, ..PrepareOptions::default() };
    let recording = audio::prepare(&path, &options, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();

    let mut samples = decode(&path, &OpenOptions::default());
    let content = samples.len() / 160;
    samples.resize(samples.len() + 480_000, 0.0);
    let mut padded: Vec<f32> = samples[1..=200].iter().rev().copied().collect();
    padded.extend(&samples);
    padded.resize((content + 2999) * 160 + 400, 0.0);
    let mel = LogMel::new(128);
    let mut whole = mel.log10(&padded);
    assert_eq!(whole.frames, content + 3000);
    assert_eq!(recording.pcm.content_frames(), content);
    assert_eq!(recording.log_mel_maximum, whole.maximum());
    whole.normalise(whole.maximum());

    for first in [0, 1, 777, 3000, content - 3000, content - 100, content, content + 2500, content + 4000] {
        let part = recording.log_mel(&mel, first, 3000).unwrap();
        let window = recording.log_mel_window(&mel, first, 3000).unwrap();
        for band in [0, 60, 127] {
            for frame in 0..3000 {
                let at = first + frame;
                let truth = if at < whole.frames { whole.data[band * whole.frames + at] } else { 0.0 };
                assert_eq!(part.data[band * 3000 + frame], truth, "band {band}, frame {at}");
                let truth = if at < content { truth } else { 0.0 };
                assert_eq!(window.data[band * 3000 + frame], truth, "window: band {band}, frame {at}");
            }
        }
    }
}

#[test]
fn a_limit_cuts_exactly() {
    let path = corpus::bundled().join("audio/synthetic/en_short_1.flac");
    for (seconds, samples) in [(0.00025, 4), (1.0, 16_000), (2.5, 40_000)] {
        let options = OpenOptions { limit_seconds: Some(seconds), ..OpenOptions::default() };
        assert_eq!(decode(&path, &options).len(), samples);
    }
    assert!(Reader::open(&path, &OpenOptions::default()).is_ok());
}

fn find(corpus: &Path, name: &str) -> std::path::PathBuf {
    ["audio/synthetic", "audio/real", "audio/real/librispeech", "audio/conversations"]
        .iter()
        .map(|folder| corpus.join(folder).join(format!("{name}.flac")))
        .find(|path| path.exists())
        .unwrap()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
