//! Words to expect in the searches of both families.

use audio::LogMel;
use models::boost::Boost;
use models::whisper::Whisper;
use pipeline::whisper::{Decoded, WindowOptions, decode, decode_together, encode_windows, words_to_expect};
use pipeline::{Control, Request, load_speech_model};
use random_models::{corpus, write_parakeet_model};
use transcript::{Segment, Task};
use wire::{DecodingOptions, Point, Strategy};

use crate::support::{load_starter, starter};

const FILES: [&str; 3] = ["en_minute_1", "en_short_1", "de_half_minute_1"];

fn windows(model: &Whisper) -> candle_core::Tensor {
    let mel = LogMel::new(80);
    let mels = FILES.iter().map(|file| {
        let path = corpus::bundled().join(format!("audio/synthetic/{file}.flac"));
        let go_on = &mut |_: f64, _: Option<f64>| std::ops::ControlFlow::Continue(());
        let recording = audio::prepare(&path, &audio::PrepareOptions::default(), go_on).unwrap();
        recording.log_mel_window(&mel, 0, 3000).unwrap()
    });
    encode_windows(model, mels.collect(), &Control::default()).unwrap()
}

fn options(beam_size: usize, temperature: f32, boost: Option<&Boost>) -> WindowOptions<'_> {
    WindowOptions {
        language: "en",
        task: Task::Transcribe,
        timestamps: true,
        prompt: &[],
        beam_size,
        best_of: 2,
        patience: 1.0,
        length_penalty: None,
        max_tokens: Some(60),
        max_initial_timestamp: Some(1.0),
        suppress: &[],
        temperature,
        seed: 5,
        boost,
        is_live: false,
    }
}

fn tree(model: &Whisper, words: &[&str], strength: f32) -> Boost {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let vocabulary = &model.vocabulary;
    vocabulary
        .with_encoder(|encoder| {
            Boost::new(&words, strength, vocabulary.texts(), &|text| encoder.encode(text)).unwrap()
        })
        .unwrap()
}

/// Names whose beginnings are likely enough at times, and which the demonstration model never writes.
const NEVER_SAID: [&str; 6] = ["Oskarine", "Pendrithal", "Corvasta", "Tavoren", "Brackwater", "Thomasville"];

#[test]
fn a_search_finds_what_it_expects_and_a_false_start_leaves_nothing() {
    let model = load_starter();
    let audio = windows(&model);
    let control = Control::default();
    let one = |window: usize, options: &WindowOptions| {
        decode(&model, &audio.narrow(0, window, 1).unwrap(), options, &control).unwrap()
    };
    // So strong that it is written whatever is said.
    let (always, never) = (tree(&model, &["Brackwater"], 90.0), tree(&model, &NEVER_SAID, 12.0));
    let mut same = 0;
    for (beam_size, temperature) in [(1, 0.0), (3, 0.0), (1, 0.8)] {
        for window in 0..FILES.len() {
            let plain = one(window, &options(beam_size, temperature, None));
            if temperature > 0.0 {
                // A draw can't go back: what a second try writes is the model's own.
                assert_eq!(one(window, &options(beam_size, temperature, Some(&always))), plain);
                continue;
            }
            let found = one(window, &options(beam_size, temperature, Some(&always)));
            if beam_size > 1 {
                // Beams compare whole texts, in which a word costs something however strongly it is preferred.
                assert!(!found.text.contains("Brackwater"), "{}", found.text);
                continue;
            }
            assert!(found.text.contains("Brackwater"), "{beam_size}, {temperature}: {}", found.text);
            // What is told of it is what the model thinks of it.
            assert!(found.mean_log_probability < plain.mean_log_probability - 1.0, "{found:?}");
            assert!(found.sureness > found.mean_log_probability, "{found:?}");
            let found = one(window, &options(beam_size, temperature, Some(&never)));
            // Also where it was on the way to one of them.
            assert_eq!(found, plain);
            same += 1;
        }
    }
    assert_eq!(same, FILES.len());
}

#[test]
fn as_usual_words_that_the_model_knows_are_not_written_where_others_are_said() {
    let model = load_starter();
    let audio = windows(&model).narrow(0, 0, 1).unwrap();
    let words = [
        "market",
        "Peter",
        "Vienna",
        "purple",
        "August",
        "museum",
        "lawyer",
        "yellow",
        "breakfast",
        "London",
    ];
    let read = |boost: Option<&Boost>, beams: usize| {
        decode(&model, &audio, &options(beams, 0.0, boost), &Control::default()).unwrap().text
    };
    let usual = tree(&model, &words, DecodingOptions::VOCABULARY_STRENGTH);
    for beams in [1, 5] {
        assert_eq!(read(Some(&usual), beams), read(None, beams), "{beams} beams");
    }
    // The list acts: where it is preferred more, "one" becomes "breakfast".
    let more = tree(&model, &words, DecodingOptions::STRONGEST_VOCABULARY);
    for beams in [1, 5] {
        assert_ne!(read(Some(&more), beams), read(None, beams), "{beams} beams");
    }
}

#[test]
fn windows_that_go_back_together_say_what_they_say_alone() {
    let model = load_starter();
    let audio = windows(&model);
    let control = Control::default();
    // At this strength some windows leave their way and go back, and some find a name where none is.
    let boost = tree(&model, &NEVER_SAID, 24.0);
    for (beam_size, temperature) in [(1, 0.0), (3, 0.0), (1, 0.8)] {
        let options = options(beam_size, temperature, Some(&boost));
        let alone: Vec<Decoded> = (0..FILES.len())
            .map(|window| decode(&model, &audio.narrow(0, window, 1).unwrap(), &options, &control).unwrap())
            .collect();
        let together =
            decode_together(&model, &audio, &vec![options.clone(); FILES.len()], &control).unwrap();
        for (together, alone) in together.iter().zip(&alone) {
            assert_eq!(together.tokens, alone.tokens, "{beam_size}, {temperature}: {}", alone.text);
            assert!((together.sureness - alone.sureness).abs() < 1e-4);
        }
    }
}

#[test]
fn the_settings_say_what_is_expected_and_how_strongly() {
    let model = load_starter();
    let settings = |words: &[&str], strength: f32| DecodingOptions {
        vocabulary: words.iter().map(|word| (*word).to_owned()).collect(),
        vocabulary_strength: strength,
        ..DecodingOptions::default()
    };
    assert!(words_to_expect(&model, &settings(&[], 3.0)).unwrap().is_none());
    assert!(words_to_expect(&model, &settings(&["Ada"], 0.0)).unwrap().is_none());
    assert!(words_to_expect(&model, &settings(&["Ada"], -1.0)).unwrap().is_none());
    assert!(words_to_expect(&model, &settings(&["Ada"], f32::NAN)).unwrap().is_none());
    let of = |strength: f32| {
        words_to_expect(&model, &settings(&["Ada"], strength)).unwrap().unwrap().starts()[0].1
    };
    assert!(of(2.0) > of(1.0) && of(1e9) == of(DecodingOptions::STRONGEST_VOCABULARY));
    // Words that do not act in the search are told to the model, those that do are not.
    let file = corpus::bundled().join("audio/synthetic/en_short_1.flac");
    let prompt = |strength: f32| {
        let mut job = wire::Job::new(1, file.clone(), starter());
        job.decoding = settings(&["Ada"], strength);
        job.device = wire::DeviceChoice::Cpu;
        let mut points = Vec::new();
        let mut on_event = |event| {
            if let wire::Event::Reached { point, .. } = event {
                points.push(*point);
            }
        };
        pipeline::Engine::new().transcribe(&job, &Control::default(), &mut on_event).unwrap();
        points.iter().map(|point: &Point| point.prompt.len()).max().unwrap_or_default()
    };
    assert!(prompt(0.0) > prompt(5.0));
}

#[test]
fn a_parakeet_writes_what_it_expects_however_many_pieces_are_read_together() {
    for name in ["parakeet-tiny", "parakeet-tiny-ctc"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let options = random_models::Options {
            precision: random_models::WeightType::F32,
            ..random_models::Options::default()
        };
        write_parakeet_model(&path, random_models::ParakeetSize::named(name).unwrap(), &options).unwrap();
        let network = formats::ModelInfo::network(&path).unwrap();
        let cpu = candle_core::Device::Cpu;
        let model = load_speech_model(&network, &path, &cpu, memory::Precision::F32, &|| true).unwrap();
        let file = corpus::bundled().join("audio/synthetic/en_minute_1.flac");
        let go_on = &mut |_: f64, _: Option<f64>| std::ops::ControlFlow::Continue(());
        let recording = audio::prepare(&file, &audio::PrepareOptions::default(), go_on).unwrap();
        let search = |words: &[String], strength: f32, batch: usize, beams: usize| -> Vec<Segment> {
            let settings = DecodingOptions {
                beam_size: Some(beams),
                vocabulary: words.to_vec(),
                vocabulary_strength: strength,
                ..DecodingOptions::default()
            };
            let request = Request {
                recording: &recording,
                speech: None,
                span: None,
                strategy: Strategy::Auto,
                settings: &settings,
                task: Task::Transcribe,
                language: "und",
                skip: &[],
                control: &Control::default(),
            };
            let mut watch = crate::pieces::Watch::new(batch);
            model.transcribe(&request, &Point::default(), &mut watch).unwrap();
            watch.segments()
        };
        let read = |words: &[String], strength: f32, batch: usize| search(words, strength, batch, 1);
        let plain = read(&[], 12.0, 1);
        // Words of random weights are as likely as any: pairs in a row that were not.
        let written: Vec<&str> = plain.iter().flat_map(|segment| segment.text.split_whitespace()).collect();
        let words: Vec<String> = written.windows(3).map(|it| format!("{} {}", it[2], it[0])).collect();
        assert_eq!(read(&words, 0.0, 1), plain, "{name}");
        let text = |segments: &[Segment]| -> String {
            segments.iter().map(|segment| segment.text.clone()).collect::<Vec<_>>().join(" ")
        };
        let count = |text: &str| words.iter().map(|word| text.matches(word.as_str()).count()).sum::<usize>();
        let expected = read(&words, 12.0, 1);
        assert!(count(&text(&expected)) > count(&text(&plain)), "{name}: {}", text(&expected));
        assert_eq!(read(&words, 12.0, 3), expected, "{name}");
        // With beams, a transducer's.
        let plain = search(&[], 12.0, 1, 4);
        assert_eq!(search(&words, 0.0, 1, 4), plain, "{name}");
        let with_beams = search(&words, 12.0, 1, 4);
        assert!(count(&text(&with_beams)) > count(&text(&plain)), "{name}: {}", text(&with_beams));
        assert_eq!(search(&words, 12.0, 3, 4), with_beams, "{name}");
        let probabilities = expected
            .iter()
            .chain(&with_beams)
            .flat_map(|segment| &segment.words)
            .map(|word| word.probability);
        assert!(probabilities.clone().all(|it| it > 0.0 && it <= 1.0));
    }
}
