use candle_core::{IndexOp, Tensor};
use memory::Precision;
use models::choose::{Chooser, Limits};
use models::whisper::Whisper;

use crate::support::{card, starter};

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

/// Of each row a search with so many beams asks for them.
fn candidates(beams: usize) -> usize {
    if beams > 1 { beams + 1 } else { 1 }
}

/// A step of the decoder with as many windows and beams.
fn step(precision: Precision, windows: usize, beams: usize) -> Counters {
    const STEPS: usize = 4;
    let device = card(0);
    let model = Whisper::load(&starter(), &device, precision, &|| true).unwrap();
    let shape = (windows, 1500, model.config.dimensions.width as usize);
    let audio = Tensor::zeros(shape, model.dtype, &device).unwrap();
    let mut state = model.decoder.start(&audio, beams, 100).unwrap();
    let rows = state.rows();
    let vocabulary = &model.vocabulary;
    let chooser = Chooser::new(&device, vocabulary, &[], true).unwrap();
    let times = vocabulary.timestamp_begin..vocabulary.size as u32;
    let limits = vec![Limits { is_first: false, text_from: 0, times }; rows];
    for step in 0..=STEPS {
        // The first one loads modules.
        if step == 1 {
            counted();
        }
        let hidden = model.decoder.forward(&vec![7; rows], &mut state, None, &|| true).unwrap();
        let logits = model.decoder.logits(&hidden.i((.., 0)).unwrap()).unwrap();
        chooser.choose(&logits, &limits, candidates(beams)).unwrap();
        if beams > 1 {
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
    // (precision, windows, beams), the most calls and the most uploads
    for ((precision, windows, beams), calls, uploads) in [
        ((Precision::F16, 1, 1), 660, 3),
        ((Precision::F16, 16, 1), 800, 32),
        ((Precision::F16, 1, 5), 1110, 60),
        ((Precision::Q8_0, 1, 1), 660, 3),
        ((Precision::Q8_0, 16, 1), 1000, 32),
        ((Precision::Q8_0, 1, 5), 1110, 60),
    ] {
        let found = step(precision, windows, beams);
        println!("{precision}, {windows} windows, {beams} beams: {found:?}");
        assert!(found.calls <= calls, "{precision}, {windows} windows, {beams} beams: {found:?}");
        assert!(found.uploads <= uploads, "{precision}, {windows} windows, {beams} beams: {found:?}");
        // The candidates and not the logits, at once.
        let chosen = (windows * beams * (1 + 2 * candidates(beams)) * 4) as u64;
        assert_eq!((found.downloads, found.downloaded_bytes), (1, chosen), "{precision}: {found:?}");
    }
}
