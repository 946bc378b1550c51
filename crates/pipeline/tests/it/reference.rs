//! The same numbers as openai/whisper on the starter model (`windows/` and
//! `files/` of the shared reference).

use std::path::Path;

use crate::support::{common, jsons, load_starter, starter};
use audio::{LogMel, OpenOptions, Reader};
use pipeline::whisper::{WindowOptions, decode, detect_language, encode_window};
use pipeline::{Control, Engine};
use random_models::corpus;
use transcript::Task;
use wire::{DecodingOptions, DeviceChoice, Job, Strategy, VoiceActivity};

fn first_window(path: &Path) -> Vec<f32> {
    let options = OpenOptions { limit_seconds: Some(30.0), ..OpenOptions::default() };
    let mut reader = Reader::open(path, &options).unwrap();
    let mut samples = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        samples.extend_from_slice(block);
    }
    samples
}

fn tokens(value: &serde_json::Value) -> Vec<u32> {
    value["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

#[test]
fn windows_decode_to_the_reference_tokens() {
    check_windows_decode_to_the_reference_tokens(&corpus::bundled());
}

#[test]
#[ignore = "full corpus: make soak"]
fn windows_decode_to_the_reference_tokens_in_the_full_corpus() {
    check_windows_decode_to_the_reference_tokens(&corpus::full());
}

fn check_windows_decode_to_the_reference_tokens(corpus: &Path) {
    /// Below this margin between the best two logits rounding may decide.
    const DECIDED: f64 = 1e-3;
    let model = load_starter();
    let control = Control::default();
    let mel = LogMel::new(80);
    let (mut beams, mut equal_beams, mut near_ties) = (0, 0, 0);
    for (name, expected) in jsons(&corpus.join("reference/windows")) {
        let path = corpus.join("audio").join(expected["audio"].as_str().unwrap());
        let log_mel = audio::log_mel_padded_window(&first_window(&path), &mel);
        let audio = encode_window(&model, log_mel, &control).unwrap();

        let found = detect_language(&model, &audio, &control).unwrap().remove(0);
        for (code, probability) in expected["language_probabilities"].as_object().unwrap() {
            let ours = found.iter().find(|(other, _)| other == code).unwrap().1;
            let difference = (f64::from(ours) - probability.as_f64().unwrap()).abs();
            assert!(difference < 1e-3, "{name}: {code} differs by {difference}");
        }
        let language = expected["language"].as_str().unwrap();
        assert_eq!(found[0].0, language, "{name}");

        for kind in ["greedy", "greedy_no_timestamps", "beam_5", "translate"] {
            let Some(reference) = expected.get(kind) else { continue };
            let options = WindowOptions {
                language,
                task: if kind == "translate" { Task::Translate } else { Task::Transcribe },
                timestamps: matches!(kind, "greedy" | "beam_5"),
                prompt: &[],
                beam_size: if kind == "beam_5" { 5 } else { 1 },
                best_of: 1,
                patience: 1.0,
                length_penalty: None,
                max_tokens: None,
                max_initial_timestamp: Some(1.0),
                suppress: &[],
                temperature: 0.0,
                seed: 0,
                boost: None,
                is_live: false,
            };
            let ours = decode(&model, &audio, &options, &control).unwrap();
            let text = reference["text"].as_str().unwrap();
            if kind == "beam_5" {
                beams += 1;
                equal_beams += usize::from(ours.text == text);
                continue;
            }
            let theirs = tokens(reference);
            if ours.tokens != theirs {
                let first = ours.tokens.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
                let margin = reference["margin"].get(first).and_then(serde_json::Value::as_f64);
                // The margin of `translate` is not recorded: its texts must be equal.
                let tie = margin.is_some_and(|margin| margin.abs() < DECIDED);
                assert!(tie, "{name} {kind}: token {first} differs\n{}\n{text}", ours.text);
                near_ties += 1;
                continue;
            }
            let close =
                |ours: f32, key: &str| (f64::from(ours) - reference[key].as_f64().unwrap()).abs() < 1e-3;
            assert!(close(ours.mean_log_probability, "avg_logprob"), "{name} {kind}");
            assert!(close(ours.no_speech_probability, "no_speech_prob"), "{name} {kind}");
        }
    }
    println!("beams: {equal_beams} of {beams} equal; greedy: {near_ties} near-ties");
    assert!(equal_beams as f64 >= 0.95 * beams as f64);
}

#[test]
fn files_give_the_reference_text_and_word_times() {
    check_files_give_the_reference_text_and_word_times(&corpus::bundled());
}

#[test]
#[ignore = "full corpus: make soak"]
fn files_give_the_reference_text_and_word_times_in_the_full_corpus() {
    check_files_give_the_reference_text_and_word_times(&corpus::full());
}

fn check_files_give_the_reference_text_and_word_times(corpus: &Path) {
    const TOLERANCE_SECONDS: f64 = 0.0401;
    let mut engine = Engine::new();
    let (mut words, mut close, mut equal, mut runs) = (0, 0, 0, 0);
    for (name, expected) in jsons(&corpus.join("reference/files")) {
        let path = corpus.join("audio").join(expected["audio"].as_str().unwrap());
        for (kind, condition) in [("conditioned", true), ("independent", false)] {
            let job = Job {
                device: DeviceChoice::Cpu,
                voice_activity: VoiceActivity::Off,
                strategy: Strategy::Sequential,
                decoding: DecodingOptions {
                    beam_size: Some(1),
                    temperatures: vec![0.0],
                    condition_on_previous_text: condition,
                    repair: false,
                    ..DecodingOptions::default()
                },
                ..Job::new(1, path.clone(), starter())
            };
            let ours = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
            let ours: Vec<(String, f64, f64)> = ours
                .segments
                .iter()
                .flat_map(|segment| &segment.words)
                .map(|word| (word.text.clone(), word.start.seconds(), word.end.seconds()))
                .collect();
            let theirs: Vec<(String, f64, f64)> = expected[kind]["segments"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|segment| segment["words"].as_array().unwrap())
                .map(|word| {
                    let at = |key: &str| word[key].as_f64().unwrap();
                    (word["word"].as_str().unwrap().to_owned(), at("start"), at("end"))
                })
                .collect();
            let text =
                |words: &[(String, f64, f64)]| words.iter().map(|word| word.0.clone()).collect::<Vec<_>>();
            let (our_text, their_text) = (text(&ours), text(&theirs));
            runs += 1;
            equal += usize::from(our_text == their_text);
            if our_text != their_text {
                println!("{name} {kind}: {} words, {} there", ours.len(), theirs.len());
            }
            for (a, b) in common(&our_text, &their_text) {
                words += 1;
                let near = |x: f64, y: f64| (x - y).abs() <= TOLERANCE_SECONDS;
                close += usize::from(near(ours[a].1, theirs[b].1) && near(ours[a].2, theirs[b].2));
            }
        }
    }
    println!("{equal} of {runs} runs with the same words; {close} of {words} word times within 40 ms");
    assert!(close as f64 >= 0.95 * words as f64);
    assert!(equal as f64 >= 0.95 * runs as f64);
}
