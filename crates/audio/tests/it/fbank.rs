//! Kaldi's spectrogram against torchaudio's, as pyannote.audio calls it.

use audio::{Fbank, OpenOptions};
use random_models::corpus;

use crate::common::{decode, tensor};

#[test]
fn a_window_equals_the_reference() {
    let folder = corpus::bundled().join("reference/speakers/community");
    let samples = decode(&folder.join("audio.flac"), &OpenOptions::default());
    let found = Fbank::new(80).centred(&samples[..160_000]);
    let golden = folder.join("golden.safetensors");
    // The reference in 64 and in 32 bits. Rounding in 32 bits is seen in bands without sound.
    for (name, most) in [("fbank_64", 1e-3), ("fbank", 2e-3)] {
        let expected = tensor(&golden, name, &[998, 80]);
        assert_eq!(found.len(), expected.len());
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{name}: off by {worst:.1e}");
        assert!(worst < most, "{name}: off by {worst}");
    }
    // What is shorter than a frame has none, and silence is a number.
    assert!(Fbank::new(80).centred(&samples[..399]).is_empty());
    assert!(Fbank::new(80).energies(&[0.0; 800]).iter().all(|energy| *energy == f32::EPSILON.ln()));
}
