//! Nemotron-3-Diarization against transformers run as it is. Its `torch.topk` keeps other frames of equal score than
//! the first ones; on a processor that choice is `std::nth_element`'s, which is repeated here. Where equals are kept
//! in the order of time, the whole pipeline is compared in tests/it/nemotron.rs.

use std::ops::ControlFlow;

use audio::{OpenOptions, PrepareOptions};
use random_models::corpus;

use super::*;

/// The places of the `count` highest as `torch.topk(scores, count, sorted=False)` keeps them on a processor:
/// libstdc++'s introselect. Its limit of depth, after which it makes a heap, isn't reached by so few.
fn as_torch_keeps(scores: &[f32], count: usize) -> Vec<usize> {
    assert!(count * 64 > scores.len(), "torch takes another way with few of many");
    if count == 0 {
        return Vec::new();
    }
    let mut all: Vec<(f32, usize)> = scores.iter().copied().zip(0..).collect();
    let before = |a: &(f32, usize), b: &(f32, usize)| a.0 > b.0;
    let (mut first, mut last, nth) = (0, all.len(), count - 1);
    let mut depth = 2 * all.len().ilog2();
    while last - first > 3 {
        assert!(depth > 0, "too deep");
        depth -= 1;
        // The median of three becomes the pivot, at the front.
        let (a, b, c) = (first + 1, first + (last - first) / 2, last - 1);
        let median = if before(&all[a], &all[b]) {
            if before(&all[b], &all[c]) {
                b
            } else if before(&all[a], &all[c]) {
                c
            } else {
                a
            }
        } else if before(&all[a], &all[c]) {
            a
        } else if before(&all[b], &all[c]) {
            c
        } else {
            b
        };
        all.swap(first, median);
        let pivot = all[first];
        let (mut low, mut high) = (first + 1, last);
        let cut = loop {
            while before(&all[low], &pivot) {
                low += 1;
            }
            high -= 1;
            while before(&pivot, &all[high]) {
                high -= 1;
            }
            if low >= high {
                break low;
            }
            all.swap(low, high);
            low += 1;
        };
        if cut <= nth { first = cut } else { last = cut }
    }
    // A stable sort, as the insertion sort at the end of it.
    all[first..last].sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().take(count).map(|(_, at)| at).collect()
}

#[test]
fn logits_are_those_of_transformers_also_where_frames_are_equal() {
    let folder = corpus::bundled().join("reference/speakers/nemotron");
    let read = |name: &str| candle_core::safetensors::load(folder.join(name), &Device::Cpu).unwrap();
    let samples = read("golden.safetensors")["audio"].to_vec1::<f32>().unwrap();
    let expected = &read("golden_as_torch_keeps.safetensors")["logits"];
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tones.wav");
    corpus::write_wav_f32(&path, &samples).unwrap();
    let options = PrepareOptions { open: OpenOptions::default(), vad: None, ..PrepareOptions::default() };
    let recording = audio::prepare(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();

    let files = NemotronFiles::find(&folder.join("model")).unwrap().unwrap();
    let network = Nemotron::open(&files, &Device::Cpu).unwrap();
    let worst_with = |best: Best| {
        let mut found = Vec::new();
        logits_with(&recording.pcm, &network, best, &mut |chunk| {
            found.extend_from_slice(chunk);
            Ok(())
        })
        .unwrap();
        let frames = samples.len() / HOP;
        let expected =
            expected.narrow(0, 0, frames).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(found.len(), expected.len());
        found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    let worst = worst_with(as_torch_keeps);
    assert!(worst < 1e-4, "off by {worst}");
    // Else the comparison above would show nothing of it.
    assert!(worst_with(first_of_equals) > 0.1);
}
