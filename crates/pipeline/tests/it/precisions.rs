//! What a lower precision costs in words.

use memory::Precision;
use pipeline::{Control, Engine};
use std::path::Path;

use crate::support::{edit_distance, jsons, normalised, starter};
use random_models::corpus;
use wire::{DeviceChoice, Job};

#[test]
fn eight_bits_cost_at_most_half_a_point_of_words() {
    check_eight_bits_cost_at_most_half_a_point_of_words(&corpus::bundled());
}

#[test]
#[ignore = "full corpus: make soak"]
fn eight_bits_cost_at_most_half_a_point_of_words_in_the_full_corpus() {
    check_eight_bits_cost_at_most_half_a_point_of_words(&corpus::full());
}

fn check_eight_bits_cost_at_most_half_a_point_of_words(corpus: &Path) {
    // What 32 bits reach: accuracy.rs holds us to the reference's own rates.
    let summary = std::fs::read_to_string(corpus.join("reference/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let mut wide = 0.0;
    let (mut errors, mut total) = (0, 0);
    let mut engine = Engine::new();
    for (name, truth) in jsons(&corpus.join("audio/synthetic")) {
        let path = corpus.join(format!("audio/synthetic/{name}.flac"));
        let precision = Some(Precision::Q8_0);
        let job = Job { device: DeviceChoice::Cpu, precision, ..Job::new(1, path, starter()) };
        let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
        assert_eq!(found.model.precision, "q8_0", "{name}");
        let text = found.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
        let said = truth["segments"].as_array().unwrap().iter();
        let said = said.map(|segment| segment["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        let (said, text) = (normalised(&said), normalised(&text));
        if said.is_empty() {
            assert!(text.is_empty(), "{name}: words where nobody speaks: {text:?}");
            continue;
        }
        errors += edit_distance(&said, &text);
        total += said.len();
        let rate = |kind: &str| summary["files"][&name][kind].as_f64().unwrap();
        wide += rate("conditioned").min(rate("independent")) * said.len() as f64;
    }
    let (narrow, wide) = (errors as f64 / total as f64, wide / total as f64);
    println!("8 bits: {errors} of {total} words, {narrow:.4}; 32 bits: {wide:.4}");
    assert!(narrow <= wide + 0.005, "{narrow} against {wide}");
}
