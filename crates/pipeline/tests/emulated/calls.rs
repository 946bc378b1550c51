use candle_core::{IndexOp, Tensor};
use memory::Precision;
use models::choose::{Chance, Chooser, Limits, Question};
use models::parakeet::Parakeet;
use models::whisper::Whisper;
use pipeline::Control;
use pipeline::whisper::{WindowOptions, decode};
use transcript::Task;

use crate::support::{card, project, starter};

/// `mock_counters` of scripts/cuda/mock/mock.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    calls: u64,
    launches: u64,
    products: u64,
    uploads: u64,
    uploaded_bytes: u64,
    downloads: u64,
    downloaded_bytes: u64,
}

/// What this thread asked the driver for since the last call.
fn counted() -> Counters {
    let mut counters = Counters::default();
    // SAFETY: the emulated driver, which was opened for all to see, has this function, and Counters is its argument.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"mock_counters".as_ptr());
        assert!(!found.is_null(), "this is another driver");
        let read: unsafe extern "C" fn(*mut Counters) = std::mem::transmute(found);
        read(&mut counters);
    }
    counters
}

/// How sequences are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Search {
    Greedy,
    Beams(usize),
    Drawn(usize),
}

impl Search {
    fn rows(self) -> usize {
        match self {
            Self::Greedy => 1,
            Self::Beams(rows) | Self::Drawn(rows) => rows,
        }
    }

    /// Of each row it asks for them.
    fn candidates(self) -> usize {
        if let Self::Beams(beams) = self { beams + 1 } else { 1 }
    }

    fn chance(self) -> Option<Chance> {
        matches!(self, Self::Drawn(_)).then_some(Chance { temperature: 0.6, number: 0.7 })
    }
}

/// A step of the decoder with as many windows.
fn step(precision: Precision, windows: usize, search: Search) -> Counters {
    const STEPS: usize = 4;
    let device = card(0);
    let model = Whisper::load(&starter(), &device, precision, &|| true).unwrap();
    let shape = (windows, 1500, model.config.dimensions.width as usize);
    let audio = Tensor::zeros(shape, model.dtype, &device).unwrap();
    let beams = search.rows();
    let mut state = model.decoder.start(&audio, beams, 100).unwrap();
    let rows = state.rows();
    let vocabulary = &model.vocabulary;
    let chooser = Chooser::new(&device, vocabulary, &[], true, &[]).unwrap();
    let times = vocabulary.timestamp_begin..vocabulary.size as u32;
    let limits = Limits { is_first: false, text_from: 0, times };
    let asked = vec![Question { limits, chance: search.chance(), bonuses: None }; rows];
    for step in 0..=STEPS {
        // The first one loads modules.
        if step == 1 {
            counted();
        }
        let hidden = model.decoder.forward(&vec![7; rows], &mut state, None, &|| true).unwrap();
        let logits = model.decoder.logits(&hidden.i((.., 0)).unwrap()).unwrap();
        chooser.choose(&logits, &asked, search.candidates()).unwrap();
        if let Search::Beams(_) = search {
            let sources: Vec<usize> =
                (0..rows).map(|row| row / beams * beams + (row + step) % beams).collect();
            state.reorder(&sources).unwrap();
        }
    }
    let all = counted();
    let each = |number: u64| number / STEPS as u64;
    Counters {
        calls: each(all.calls),
        launches: each(all.launches),
        products: each(all.products),
        uploads: each(all.uploads),
        uploaded_bytes: each(all.uploaded_bytes),
        downloads: each(all.downloads),
        downloaded_bytes: each(all.downloaded_bytes),
    }
}

/// Every call costs microseconds, whatever it does: at many more than these a card waits for the processor. The layers
/// of a decoder have the same calls whatever their width, and large-v3-turbo has as many as this model.
#[test]
fn a_step_of_the_decoder_keeps_to_its_budget_of_calls() {
    use Search::{Beams, Drawn, Greedy};
    // (precision, windows, search), the most calls and the most uploads
    for ((precision, windows, search), calls, uploads) in [
        ((Precision::F16, 1, Greedy), 440, 3),
        ((Precision::F16, 16, Greedy), 450, 4),
        ((Precision::F16, 1, Beams(5)), 520, 12),
        ((Precision::F16, 1, Drawn(5)), 530, 12),
        ((Precision::Q8_0, 1, Greedy), 440, 3),
        ((Precision::Q8_0, 16, Greedy), 650, 4),
        ((Precision::Q8_0, 1, Beams(5)), 520, 12),
    ] {
        let found = step(precision, windows, search);
        let name = format!("{precision}, {windows} windows, {search:?}");
        println!("{name}: {found:?}");
        assert!(found.calls <= calls, "{name}: {found:?}");
        assert!(found.uploads <= uploads, "{name}: {found:?}");
        // The candidates and not the logits, at once.
        let chosen = (windows * search.rows() * (2 + 2 * search.candidates()) * 4) as u64;
        assert_eq!((found.downloads, found.downloaded_bytes), (1, chosen), "{name}: {found:?}");
    }
}

/// Layers are computed for all windows at once; what is before them, for each.
#[test]
fn windows_of_a_parakeet_share_calls() {
    const WINDOWS: usize = 8;
    let folder = project("models/starter-parakeet");
    let model = Parakeet::load(&folder, &card(0), Precision::F16, &|| true).unwrap();
    let bands = model.config.dimensions.encoder.mel_bins as usize;
    let calls = |windows: usize| {
        let spectrograms: Vec<Vec<f32>> =
            (0..windows).map(|number| vec![0.5; (300 + 10 * number) * bands]).collect();
        // The first time loads modules.
        model.encoder.forward_all(&spectrograms, &|| true).unwrap();
        counted();
        model.encoder.forward_all(&spectrograms, &|| true).unwrap();
        counted().calls
    };
    let (one, many) = (calls(1), calls(WINDOWS));
    println!("{one} calls for a window, {many} for {WINDOWS}");
    assert!(2 * many < 5 * one, "{one} calls for a window, {many} for {WINDOWS}");
}

/// A whole window, also above temperature 0 and with beams: per step and row a few numbers, whatever the vocabulary.
#[test]
fn a_window_sends_no_logits() {
    let model = Whisper::load(&starter(), &card(0), Precision::F16, &|| true).unwrap();
    let shape = (1, 1500, model.config.dimensions.width as usize);
    let audio = Tensor::zeros(shape, model.dtype, &model.device).unwrap();
    for (temperature, beam_size, best_of) in [(0.0, 1, 1), (0.0, 5, 1), (0.8, 1, 5)] {
        const STEPS: usize = 12;
        let options = WindowOptions {
            language: "en",
            task: Task::Transcribe,
            timestamps: true,
            prompt: &[],
            beam_size,
            best_of,
            patience: 1.0,
            length_penalty: None,
            max_tokens: Some(STEPS),
            max_initial_timestamp: None,
            suppress: &[],
            temperature,
            seed: 3,
            boost: None,
            is_live: false,
        };
        counted();
        decode(&model, &audio, &options, &Control::default()).unwrap();
        let found = counted();
        let (rows, candidates) = (beam_size.max(best_of), if beam_size > 1 { beam_size + 1 } else { 1 });
        // And once the probability that nobody speaks.
        let most = (STEPS * rows * (2 + 2 * candidates) * 4 + 4) as u64;
        assert!(found.downloaded_bytes > 4 && found.downloaded_bytes <= most, "{temperature}: {found:?}");
        assert!(most < model.vocabulary.size as u64 * 4, "the limit is less than one row of logits");
    }
}
