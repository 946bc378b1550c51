//! Word error rates with default settings, against the true texts and the
//! reference's own rates.
// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used)]

mod support;

use pipeline::{Control, Engine};
use support::{edit_distance, jsons, normalised, shared, starter};
use wire::{DeviceChoice, Job};

#[test]
fn synthetic_speech_is_no_worse_than_the_reference() {
    let Some(shared) = shared() else { return };
    let summary = std::fs::read_to_string(shared.join("reference/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let mut engine = Engine::new();
    let (mut errors, mut total, mut reference_errors) = (0, 0, 0.0);
    let mut worse = Vec::new();
    println!("{:24} {:>6} {:>7} {:>9} {:>5}", "file", "words", "ours", "reference", "gaps");
    for (name, truth) in jsons(&shared.join("audio/synthetic")) {
        let path = shared.join(format!("audio/synthetic/{name}.flac"));
        let job = Job { device: DeviceChoice::Cpu, ..Job::new(1, path, starter()) };
        let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
        let text = found.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
        let said = truth["segments"].as_array().unwrap().iter();
        let said = said.map(|segment| segment["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        let (said, text) = (normalised(&said), normalised(&text));
        if said.is_empty() {
            assert!(text.is_empty(), "{name}: words where nobody speaks: {text:?}");
            continue;
        }
        let rate = |kind: &str| summary["files"][&name][kind].as_f64().unwrap();
        let best = rate("conditioned").min(rate("independent"));
        let distance = edit_distance(&said, &text);
        let ours = distance as f64 / said.len() as f64;
        println!("{name:24} {:>6} {ours:>7.4} {best:>9.4} {:>5}", said.len(), found.completeness.gaps.len());
        errors += distance;
        total += said.len();
        reference_errors += best * said.len() as f64;
        // Half a word for rounding in the reference's rate.
        if distance as f64 > best * said.len() as f64 + 0.5 {
            worse.push(name);
        }
    }
    let (ours, reference) = (errors as f64 / total as f64, reference_errors / total as f64);
    println!("all: {ours:.4}, reference {reference:.4}");
    // The reference's rates are rounded to five digits.
    assert!(ours <= reference + 1e-5, "{ours} against {reference}");
    assert!(worse.is_empty(), "worse than the reference: {worse:?}");
}
