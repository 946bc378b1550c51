//! What a lower precision costs in words.

use memory::Precision;
use pipeline::{Control, Engine};
use std::path::Path;

use crate::support::{edit_distance, jsons, normalised, starter};
use random_models::corpus;
use wire::{DeviceChoice, Job, Strategy};

#[test]
fn fewer_bits_cost_at_most_half_a_point_of_words() {
    check_fewer_bits_cost_at_most_half_a_point_of_words(
        &corpus::bundled(),
        &[Precision::Q8_0],
        &[Strategy::Auto],
    );
}

#[test]
#[ignore = "full corpus: make soak"]
fn fewer_bits_cost_at_most_half_a_point_of_words_in_the_full_corpus() {
    check_fewer_bits_cost_at_most_half_a_point_of_words(
        &corpus::full(),
        &[Precision::F32, Precision::F16, Precision::Bf16, Precision::Q8_0],
        &[Strategy::Sequential, Strategy::Batched],
    );
}

fn check_fewer_bits_cost_at_most_half_a_point_of_words(
    corpus: &Path,
    precisions: &[Precision],
    strategies: &[Strategy],
) {
    // What 32 bits reach: accuracy.rs holds us to the reference's own rates.
    let summary = std::fs::read_to_string(corpus.join("reference/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let mut engine = Engine::new();
    for (precision, strategy) in precisions.iter().flat_map(|p| strategies.iter().map(move |s| (*p, *s))) {
        let mut wide = 0.0;
        let (mut errors, mut total) = (0, 0);
        for (name, truth) in jsons(&corpus.join("audio/synthetic")) {
            let path = corpus.join(format!("audio/synthetic/{name}.flac"));
            let device = DeviceChoice::Cpu;
            let job = Job { device, precision: Some(precision), strategy, ..Job::new(1, path, starter()) };
            let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
            assert_eq!(found.model.precision, precision.to_string(), "{name}");
            let text = found.segments.iter().map(|segment| segment.text.as_str());
            let said = truth["segments"].as_array().unwrap().iter();
            let said = said.map(|segment| segment["text"].as_str().unwrap());
            let said = normalised(&said.collect::<Vec<_>>().join(" "));
            let text = normalised(&text.collect::<Vec<_>>().join(" "));
            if said.is_empty() {
                assert!(text.is_empty(), "{name}: words where nobody speaks: {text:?}");
                continue;
            }
            errors += edit_distance(&said, &text);
            total += said.len();
            let rate = |kind: &str| summary["files"][&name][kind].as_f64().unwrap();
            wide += rate("conditioned").min(rate("independent")) * said.len() as f64;
        }
        let (rate, wide) = (errors as f64 / total as f64, wide / total as f64);
        println!("{precision} {strategy:?}: {errors} of {total} words, {rate:.4}; the reference {wide:.4}");
        assert!(rate <= wide + 0.005, "{precision} {strategy:?}: {rate} against {wide}");
    }
}
