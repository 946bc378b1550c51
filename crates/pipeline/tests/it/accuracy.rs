//! Word error rates with default settings, against the true texts and the
//! reference's own rates.

use pipeline::{Control, Engine};
use std::path::Path;

use crate::support::{common, edit_distance, jsons, normalised, starter};
use random_models::corpus;
use wire::{DeviceChoice, Job, Strategy};

/// Errors and words of one strategy over all files.
#[derive(Default)]
struct Total {
    errors: usize,
    words: usize,
}

impl Total {
    fn rate(&self) -> f64 {
        self.errors as f64 / self.words as f64
    }
}

/// The sentences of `truth` of which less than a third of the words is in the text, which has all words in order.
fn lost(truth: &serde_json::Value, text: &[String]) -> Vec<String> {
    let sentences = truth["segments"].as_array().unwrap().iter();
    let sentences: Vec<&str> = sentences.map(|sentence| sentence["text"].as_str().unwrap()).collect();
    let numbered = |(number, sentence): (usize, &&str)| {
        normalised(sentence).into_iter().map(move |word| (number, word)).collect::<Vec<_>>()
    };
    let said: Vec<(usize, String)> = sentences.iter().enumerate().flat_map(numbered).collect();
    let words: Vec<String> = said.iter().map(|(_, word)| word.clone()).collect();
    let written = common(&words, text);
    let is_lost = |number: usize| {
        let all = said.iter().filter(|(of, _)| *of == number).count();
        written.iter().filter(|(at, _)| said[*at].0 == number).count() * 3 < all
    };
    let lost = sentences.iter().enumerate().filter(|(number, _)| is_lost(*number));
    lost.map(|(_, sentence)| (*sentence).to_owned()).collect()
}

#[test]
fn synthetic_speech_is_no_worse_than_the_reference() {
    check_synthetic_speech_is_no_worse_than_the_reference(&corpus::bundled(), 0);
}

#[test]
#[ignore = "full corpus: make soak"]
fn synthetic_speech_is_no_worse_than_the_reference_in_the_full_corpus() {
    check_synthetic_speech_is_no_worse_than_the_reference(&corpus::full(), 2);
}

/// `unlike_at_most`: in how many files a sentence may be missing in the text of one strategy alone.
fn check_synthetic_speech_is_no_worse_than_the_reference(corpus: &Path, unlike_at_most: usize) {
    let summary = std::fs::read_to_string(corpus.join("reference/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let mut engine = Engine::new();
    let (mut sequential, mut batched, mut reference_errors) = (Total::default(), Total::default(), 0.0);
    let (mut worse, mut worse_batched, mut unlike) = (Vec::new(), Vec::new(), Vec::new());
    println!(
        "{:24} {:>6} {:>10} {:>5} {:>8} {:>5} {:>9}",
        "file", "words", "sequential", "gaps", "batched", "gaps", "reference"
    );
    for (name, truth) in jsons(&corpus.join("audio/synthetic")) {
        let path = corpus.join(format!("audio/synthetic/{name}.flac"));
        let said = truth["segments"].as_array().unwrap().iter();
        let said = said.map(|segment| segment["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        let said = normalised(&said);
        // Words that differ, stretches of speech without text, and sentences that are not in the text.
        let mut count = |strategy: Strategy, total: &mut Total| {
            let job = Job { device: DeviceChoice::Cpu, strategy, ..Job::new(1, &*path, starter()) };
            let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
            let texts = found.segments.iter().map(|segment| segment.text.as_str());
            let text = normalised(&texts.collect::<Vec<_>>().join(" "));
            if said.is_empty() {
                assert!(text.is_empty(), "{name}: words where nobody speaks: {text:?}");
            }
            let distance = edit_distance(&said, &text);
            total.errors += distance;
            total.words += said.len();
            (distance, found.completeness.gaps.len(), lost(&truth, &text))
        };
        let (distance, gaps, lost) = count(Strategy::Sequential, &mut sequential);
        let (batched_distance, batched_gaps, batched_lost) = count(Strategy::Batched, &mut batched);
        if lost != batched_lost {
            unlike.push(format!("{name}: sequential {lost:?}, batched {batched_lost:?}"));
        }
        if said.is_empty() {
            continue;
        }
        let words = said.len() as f64;
        let rate = |kind: &str| summary["files"][&name][kind].as_f64().unwrap();
        let best = rate("conditioned").min(rate("independent"));
        println!(
            "{name:24} {words:>6} {:>10.4} {gaps:>5} {:>8.4} {batched_gaps:>5} {best:>9.4}",
            distance as f64 / words,
            batched_distance as f64 / words
        );
        reference_errors += best * words;
        // Half a word for rounding in the reference's rate.
        if distance as f64 > best * words + 0.5 {
            worse.push(name.clone());
        }
        if batched_distance > distance {
            worse_batched.push(name);
        }
    }
    let reference = reference_errors / sequential.words as f64;
    let (sequential, batched) = (sequential.rate(), batched.rate());
    println!("all: sequential {sequential:.4}, batched {batched:.4}, reference {reference:.4}");
    // The reference's rates are rounded to five digits.
    assert!(sequential <= reference + 1e-5, "{sequential} against {reference}");
    assert!(worse.is_empty(), "worse than the reference: {worse:?}");
    println!("sentences that one strategy alone loses: {unlike:#?}");
    assert!(unlike.len() <= unlike_at_most, "{unlike:#?}");
    assert!(
        worse_batched.is_empty(),
        "more wrong words where windows are decoded together: {worse_batched:?}"
    );
}

/// Somebody speaks English, somebody answers in another language.
#[test]
fn each_stretch_of_a_mixed_recording_is_written_in_its_language() {
    let corpus = corpus::bundled();
    let path = corpus.join("audio/synthetic/mixed_languages.flac");
    let truth = std::fs::read_to_string(path.with_extension("json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    let truth = truth["segments"].as_array().unwrap();
    let said = truth.iter().map(|segment| segment["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
    let said = normalised(&said);
    let mut engine = Engine::new();
    let mut read = |language_per_region: bool| {
        let mut job = Job { device: DeviceChoice::Cpu, ..Job::new(1, &*path, starter()) };
        job.decoding.language_per_region = language_per_region;
        let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
        let texts: Vec<&str> = found.segments.iter().map(|segment| segment.text.as_str()).collect();
        (edit_distance(&said, &normalised(&texts.join(" "))), found)
    };
    let (as_one, _) = read(false);
    let (apart, found) = read(true);
    let right = truth.iter().filter(|wanted| {
        let (start, end) = (wanted["start"].as_f64().unwrap(), wanted["end"].as_f64().unwrap());
        let middle = (start + end) / 2.0;
        found
            .segments
            .iter()
            .filter(|segment| (segment.start.seconds()..segment.end.seconds()).contains(&middle))
            .any(|segment| {
                segment.language.as_ref().unwrap_or(&found.language) == wanted["language"].as_str().unwrap()
            })
    });
    let right = right.count();
    println!(
        "of {} words wrong: {as_one} in one language, {apart} in each stretch's own; {right} of {} sentences in theirs",
        said.len(),
        truth.len()
    );
    assert!(apart < as_one, "{apart} of {as_one}");
    assert!(right * 10 >= truth.len() * 8, "{right} of {}", truth.len());
}
