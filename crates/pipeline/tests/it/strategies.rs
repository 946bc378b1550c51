//! Both strategies on real recordings: what is resumed goes on as if nothing
//! had happened, however many windows are decoded together.

use std::ops::Range;
use std::path::Path;

use crate::support::load_starter;
use audio::{LogMel, PrepareOptions, Recording};
use models::whisper::Whisper;
use pipeline::whisper::{
    Found, Observer, Step, Transcriber, WindowOptions, decode, decode_together, encode_windows,
};
use pipeline::{Control, StageError};
use random_models::corpus;
use transcript::{Segment, Task, Time};
use wire::{DecodingOptions, ErrorCode, Failure, Point, Strategy};

const STRATEGIES: [Strategy; 2] = [Strategy::Sequential, Strategy::Batched];

/// A recording with what is done to it.
struct Case {
    model: Whisper,
    recording: Recording,
    speech: Vec<Range<usize>>,
    settings: DecodingOptions,
    language: &'static str,
}

impl Case {
    fn new(path: &Path, language: &'static str) -> Self {
        let recording =
            audio::prepare(path, &PrepareOptions::default(), &mut |_, _| std::ops::ControlFlow::Continue(()))
                .unwrap();
        let frames =
            |region: &audio::SpeechRegion| (region.start / 160) as usize..region.end.div_ceil(160) as usize;
        let speech = recording.speech.iter().map(frames).collect();
        Self { model: load_starter(), recording, speech, settings: DecodingOptions::default(), language }
    }

    fn run(
        &self,
        strategy: Strategy,
        from: &Point,
        skip: &[u64],
        watch: &mut Watch,
    ) -> Result<(), StageError> {
        let transcriber = Transcriber {
            model: &self.model,
            settings: &self.settings,
            task: Task::Transcribe,
            main_language: self.language,
            language: self.language,
            span: None,
            seed: 7,
            boost: None,
            control: &Control::default(),
        };
        transcriber.run(strategy, &self.recording, Some(&self.speech), from, skip, watch)
    }

    fn whole(&self, strategy: Strategy, batch: usize) -> Watch {
        let mut watch = Watch { batch, ..Watch::default() };
        self.run(strategy, &Point::default(), &[], &mut watch).unwrap();
        watch
    }
}

/// Writes down what happens; ends the run after so many steps.
#[derive(Default)]
struct Watch {
    batch: usize,
    /// A different number before each batch, where given.
    batches: Vec<usize>,
    steps: usize,
    stop_after: Option<usize>,
    /// Ends the run behind the first window.
    first_alone: bool,
    began: Vec<(u64, usize)>,
    found: Vec<Found>,
}

impl Observer for Watch {
    fn batch_size(&mut self) -> usize {
        if self.batches.is_empty() { self.batch } else { self.batches.remove(0) }
    }

    fn step(&mut self, step: Step) -> Result<(), StageError> {
        assert!(self.stop_after.is_none_or(|most| self.steps < most), "a step after the run was ended");
        match step {
            Step::Began { position, windows } => self.began.push((position, windows)),
            Step::Found(found) => self.found.push(found),
        }
        self.steps += 1;
        let enough = self.first_alone && !self.found.is_empty();
        if enough || self.stop_after == Some(self.steps) {
            return Err(Failure::new(ErrorCode::OutOfMemory, "Enough.").into());
        }
        Ok(())
    }
}

impl Watch {
    fn segments(&self) -> Vec<Segment> {
        self.found.iter().flat_map(|found| found.segments.iter().cloned()).collect()
    }

    fn texts(&self) -> Vec<(Time, Time, String)> {
        let text = |segment: Segment| (segment.start, segment.end, segment.text);
        self.segments().into_iter().map(text).collect()
    }
}

/// As the journal keeps it.
fn written_down(point: &Point) -> Point {
    serde_json::from_str(&serde_json::to_string(point).unwrap()).unwrap()
}

/// Products of matrices of other sizes round differently.
fn without_rounding(found: &Found) -> (Vec<Segment>, Vec<Segment>, &Point) {
    let rounded = |segment: &Segment| {
        let round = |value: f32| (value * 1e3).round() / 1e3;
        Segment {
            mean_log_probability: round(segment.mean_log_probability),
            no_speech_probability: round(segment.no_speech_probability),
            ..segment.clone()
        }
    };
    let all = |segments: &[Segment]| segments.iter().map(rounded).collect();
    (all(&found.segments), all(&found.discarded), &found.point)
}

#[test]
fn from_every_point_the_text_goes_on_as_without_interruption() {
    check_from_every_point_the_text_goes_on_as_without_interruption(
        &corpus::bundled(),
        &[("synthetic/de_half_minute_1.flac", "de")],
    );
}

#[test]
#[ignore = "full corpus: make soak"]
fn from_every_point_the_text_goes_on_as_without_interruption_in_the_full_corpus() {
    check_from_every_point_the_text_goes_on_as_without_interruption(
        &corpus::full(),
        &[
            ("synthetic/en_minute_1.flac", "en"),
            ("synthetic/en_long_pauses.flac", "en"),
            ("synthetic/de_half_minute_1.flac", "de"),
            ("conversations/two_speakers.flac", "en"),
        ],
    );
}

fn check_from_every_point_the_text_goes_on_as_without_interruption(
    corpus: &Path,
    files: &[(&str, &'static str)],
) {
    let mut points = 0;
    for (file, language) in files {
        let mut case = Case::new(&corpus.join("audio").join(file), language);
        for strategy in STRATEGIES {
            for (conditioned, prompt) in [(true, None), (false, Some("Ten past noon.".to_owned()))] {
                case.settings.condition_on_previous_text = conditioned;
                case.settings.initial_prompt = prompt;
                case.settings.vocabulary = vec!["harbour".into()];
                case.settings.vocabulary_strength = 0.0;
                let whole = case.whole(strategy, 2);
                assert!(!whole.found.is_empty(), "{file} {strategy:?}");
                for (number, found) in whole.found.iter().enumerate() {
                    let name = format!("{file} {strategy:?} conditioned {conditioned} from {number}");
                    points += 1;
                    let from = written_down(&found.point);
                    assert_eq!(from, found.point, "{name}");
                    // What follows the next window follows from its point,
                    // which is looked at in its turn.
                    let mut resumed = Watch { batch: 2, first_alone: true, ..Watch::default() };
                    let ended = case.run(strategy, &from, &[], &mut resumed);
                    let Some(theirs) = whole.found.get(number + 1) else {
                        assert!(ended.is_ok() && resumed.steps == 0, "{name}: all was done");
                        continue;
                    };
                    let ours = resumed.found.remove(0);
                    if strategy == Strategy::Sequential {
                        assert_eq!(&ours, theirs, "{name}");
                    }
                    assert_eq!(without_rounding(&ours), without_rounding(theirs), "{name}");
                }
            }
        }
    }
    println!("{points} points resumed from");
}

#[test]
fn a_skipped_window_is_left_without_text_and_the_rest_is_there() {
    let case = Case::new(&corpus::bundled().join("audio/synthetic/en_minute_1.flac"), "en");
    for strategy in STRATEGIES {
        let whole = case.whole(strategy, 1);
        let began: Vec<u64> = whole.began.iter().map(|(position, _)| *position).collect();
        assert!(began.len() >= 2, "{strategy:?}: {began:?}");
        for skipped in &began {
            let mut watch = Watch { batch: 3, ..Watch::default() };
            case.run(strategy, &Point::default(), &[*skipped], &mut watch).unwrap();
            assert!(!watch.began.iter().any(|(position, _)| position == skipped), "{strategy:?}");
            let gap = watch.found.iter().position(|found| found.windows == 0).unwrap();
            let found = &watch.found[gap];
            assert!(found.segments.is_empty() && found.discarded.is_empty());
            let from = Time::from_seconds(*skipped as f64 / 16_000.0);
            let to = found.position();
            assert!(to > from && (to.saturating_sub(from)) <= Time::from_seconds(30.0), "{from:?} {to:?}");
            let inside = |segment: &Segment| segment.start > from && segment.end < to;
            assert!(!watch.segments().iter().any(inside), "{strategy:?}");
            if strategy == Strategy::Batched {
                // Windows know nothing of each other: all the others are as they were.
                let others = whole.found.iter().enumerate().filter(|(number, _)| *number != gap);
                let others: Vec<String> =
                    others.flat_map(|(_, found)| found.segments.iter().map(|s| s.text.clone())).collect();
                let texts: Vec<String> = watch.segments().into_iter().map(|s| s.text).collect();
                assert_eq!(texts, others);
            }
        }
    }
}

#[test]
fn an_error_of_the_observer_ends_the_run_with_it() {
    let case = Case::new(&corpus::bundled().join("audio/synthetic/en_minute_1.flac"), "en");
    for strategy in STRATEGIES {
        let steps = case.whole(strategy, 2).steps;
        for stop in [1, 2, 3, steps] {
            let mut watch = Watch { batch: 2, stop_after: Some(stop), ..Watch::default() };
            match case.run(strategy, &Point::default(), &[], &mut watch) {
                Err(StageError::Failed(failure)) => assert_eq!(failure.code, ErrorCode::OutOfMemory),
                other => panic!("{strategy:?}, step {stop} of {steps}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_text_does_not_depend_on_how_many_windows_are_decoded_together() {
    check_the_text_does_not_depend_on_how_many_windows_are_decoded_together(
        &corpus::bundled(),
        &[("synthetic/en_minute_1.flac", "en", 1), ("synthetic/en_minute_1.flac", "en", 3)],
    );
}

#[test]
#[ignore = "full corpus: make soak"]
fn the_text_does_not_depend_on_how_many_windows_are_decoded_together_in_the_full_corpus() {
    check_the_text_does_not_depend_on_how_many_windows_are_decoded_together(
        &corpus::full(),
        &[
            ("synthetic/en_five_minutes.flac", "en", 1),
            ("synthetic/en_noisy.flac", "en", 1),
            ("synthetic/en_minute_4.flac", "en", 3),
        ],
    );
}

fn check_the_text_does_not_depend_on_how_many_windows_are_decoded_together(
    corpus: &Path,
    files: &[(&str, &'static str, usize)],
) {
    for (file, language, beams) in files {
        let mut case = Case::new(&corpus.join("audio").join(file), language);
        case.settings.beam_size = Some(*beams);
        let alone = case.whole(Strategy::Batched, 1);
        for batch in [2, 7] {
            let together = case.whole(Strategy::Batched, batch);
            assert_eq!(together.texts(), alone.texts(), "{file}, {batch} together");
            let most = together.began.iter().map(|(_, windows)| *windows).max().unwrap();
            assert_eq!(most, batch.min(alone.found.len()), "{file}");
        }
        // A batch that is halved while the run goes on.
        let mut halved =
            Watch { batches: vec![4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], ..Watch::default() };
        case.run(Strategy::Batched, &Point::default(), &[], &mut halved).unwrap();
        assert_eq!(halved.texts(), alone.texts(), "{file}, halved");
    }
}

#[test]
fn windows_decoded_together_give_the_tokens_that_they_give_alone() {
    check_windows_decoded_together_give_the_tokens_that_they_give_alone(
        &corpus::bundled(),
        &[("en_minute_1", "en"), ("en_short_1", "en"), ("de_half_minute_1", "de")],
    );
}

#[test]
#[ignore = "full corpus: make soak"]
fn windows_decoded_together_give_the_tokens_that_they_give_alone_in_the_full_corpus() {
    check_windows_decoded_together_give_the_tokens_that_they_give_alone(
        &corpus::full(),
        &[
            ("en_minute_1", "en"),
            ("en_short_1", "en"),
            ("de_half_minute_2", "de"),
            ("en_noisy", "en"),
            ("es_half_minute_1", "es"),
            ("en_quiet", "en"),
            ("fr_half_minute_1", "fr"),
        ],
    );
}

fn check_windows_decoded_together_give_the_tokens_that_they_give_alone(
    corpus: &Path,
    files: &[(&str, &'static str)],
) {
    let model = load_starter();
    let control = Control::default();
    let mel = LogMel::new(80);
    let mut mels = Vec::new();
    for (file, _) in files {
        let path = corpus.join(format!("audio/synthetic/{file}.flac"));
        let case = Case::new(&path, "en");
        mels.push(case.recording.log_mel_window(&mel, 0, 3000).unwrap());
    }
    let audio = encode_windows(&model, mels, &control).unwrap();
    let mut compared = 0;
    for (beam_size, temperature) in [(1, 0.0), (5, 0.0), (1, 0.6)] {
        let options: Vec<WindowOptions> = (0..audio.dim(0).unwrap())
            .map(|window| WindowOptions {
                language: files[window].1,
                task: Task::Transcribe,
                timestamps: true,
                prompt: &[],
                beam_size,
                best_of: 3,
                patience: 1.0,
                length_penalty: None,
                max_tokens: None,
                max_initial_timestamp: Some(1.0),
                suppress: &[],
                temperature,
                seed: window as u64,
                boost: None,
                is_live: false,
            })
            .collect();
        let one = |window: usize| audio.narrow(0, window, 1).unwrap();
        let alone: Vec<_> = options
            .iter()
            .enumerate()
            .map(|(window, options)| decode(&model, &one(window), options, &control).unwrap())
            .collect();
        for together in [2, 7] {
            for (number, options) in options.chunks(together).enumerate() {
                let first = number * together;
                let audio = audio.narrow(0, first, options.len()).unwrap();
                let decoded = decode_together(&model, &audio, options, &control).unwrap();
                for (decoded, alone) in decoded.iter().zip(&alone[first..]) {
                    assert_eq!(decoded.tokens, alone.tokens, "{} at {temperature}", alone.text);
                    assert!((decoded.mean_log_probability - alone.mean_log_probability).abs() < 1e-4);
                    assert!((decoded.no_speech_probability - alone.no_speech_probability).abs() < 1e-4);
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} windows with the same tokens");
}
