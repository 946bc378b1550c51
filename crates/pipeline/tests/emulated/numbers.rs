use candle_core::{DType, Device, IndexOp, Tensor};
use memory::Precision;
use models::canary::Canary;
use models::choose::{Candidates, Chance, Chooser, Limits, Question};
use models::decoder::CrossScores;
use models::parakeet::Parakeet;
use models::whisper::{Vocabulary, Whisper};
use random_models::{
    CanarySize, Options, ParakeetSize, Size, VocabularyKind, write, write_canary_model, write_parakeet_model,
};

use crate::support::{card, cards, noise, starter};

/// Rows of 256 weights are whole blocks of every format.
const MODEL: Size = Size {
    name: "blocks",
    width: 256,
    encoder_layers: 1,
    decoder_layers: 2,
    mel_bins: 80,
    vocabulary: VocabularyKind::Starter,
    alignment_heads: &[(1, 0)],
};

/// The largest difference from the CPU, which holds the same weights and computes in 32 bits, as a part of the largest
/// number: about twice what was found. Cards compute in the type of their activations, with 24, 11 and 8 bits; products
/// of few rows have their activations in 8 bits where weights are quantised.
fn tolerance(precision: Precision) -> f32 {
    match precision {
        Precision::F32 => 5e-6,
        Precision::F16 => 3e-3,
        Precision::Bf16 | Precision::Q8_0 | Precision::Q6K | Precision::Q5K | Precision::Q4K => 0.025,
        _ => 0.05,
    }
}

/// The largest difference and the largest number of `expected`.
fn difference(found: &Tensor, expected: &Tensor) -> (f32, f32) {
    let values = |x: &Tensor| -> Vec<f32> {
        let x = x.to_device(&Device::Cpu).unwrap().to_dtype(DType::F32).unwrap();
        x.flatten_all().unwrap().to_vec1().unwrap()
    };
    let (found, expected) = (values(found), values(expected));
    assert_eq!(found.len(), expected.len());
    let apart = |(a, b): (&f32, &f32)| match a == b {
        true => 0.0,
        // What is no number is as far as can be.
        false => Some((a - b).abs()).filter(|apart| !apart.is_nan()).unwrap_or(f32::INFINITY),
    };
    let worst = found.iter().zip(&expected).map(apart).fold(0.0, f32::max);
    (worst, expected.iter().fold(0.0, |most, x| most.max(x.abs())))
}

/// What a model computes, in the order in which it is computed.
struct Numbers {
    audio: Tensor,
    logits: Vec<Tensor>,
    scores: Vec<Tensor>,
}

/// Two windows with three beams each, which change places after every step; the first window is dropped on the way.
fn compute(model: &Whisper, mel: &Tensor) -> Result<Numbers, models::Error> {
    const BEAMS: usize = 3;
    const STEPS: usize = 6;
    let tick = || true;
    let mel = mel.to_device(&model.device)?.to_dtype(model.dtype)?;
    let audio = model.encoder.forward(&mel, &tick)?;
    let mut state = model.decoder.start(&audio, BEAMS, 20)?;
    let mut tokens: Vec<u32> = [2708, 5, 9, 11].repeat(2 * BEAMS);
    let mut logits = Vec::new();
    for step in 0..STEPS {
        let hidden = model.decoder.forward(&tokens, &mut state, None, &tick)?;
        logits.push(model.decoder.logits(&hidden.i((.., hidden.dim(1)? - 1))?)?);
        let rows = state.rows();
        tokens = (0..rows).map(|row| ((row * 37 + step * 101) % 1000) as u32).collect();
        let sources: Vec<usize> =
            (0..rows).map(|row| row / BEAMS * BEAMS + (row * 2 + step) % BEAMS).collect();
        state.reorder(&sources)?;
        if step == 3 {
            state.keep(&[1])?;
            tokens.drain(..BEAMS);
        }
    }
    let mut scores = CrossScores { heads: vec![(0, 1), (1, 0)], found: Vec::new() };
    let text: Vec<u32> = (0..20).map(|i| i * 13 + 7).collect();
    let mut state = model.decoder.start(&audio.narrow(0, 0, 1)?, 1, text.len())?;
    model.decoder.forward(&text, &mut state, Some(&mut scores), &tick)?;
    Ok(Numbers { audio, logits, scores: scores.found })
}

/// Windows of several lengths, which a card encodes together and the CPU one after the other.
#[test]
fn windows_of_a_parakeet_have_the_numbers_of_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let size = ParakeetSize::named("parakeet-tiny").unwrap();
    write_parakeet_model(folder.path(), size, &Options::default()).unwrap();
    let mut random = noise();
    for precision in [Precision::F32, Precision::F16, Precision::Q8_0] {
        let load = |device: &Device| Parakeet::load(folder.path(), device, precision, &|| true).unwrap();
        let (on_host, on_card) = (load(&Device::Cpu), load(&card(cards()[0])));
        let bands = on_host.config.dimensions.encoder.mel_bins as usize;
        let frames = [300, 1050, 9, 640];
        let spectrograms: Vec<Vec<f32>> =
            frames.iter().map(|frames| (0..frames * bands).map(|_| random()).collect()).collect();
        let expected = on_host.encoder.forward_all(&spectrograms, &|| true).unwrap();
        let together = on_card.encoder.forward_all(&spectrograms, &|| true).unwrap();
        for ((found, expected), spectrogram) in together.iter().zip(&expected).zip(&spectrograms) {
            let alone = on_card.encoder.forward(spectrogram, &|| true).unwrap();
            for (what, found) in [("together", found), ("alone", &alone)] {
                let (apart, largest) = difference(found, expected);
                println!("{precision}, {:?} {what}: {apart} of {largest}", found.dims());
                assert!(
                    apart <= tolerance(precision) * largest,
                    "{precision}, {:?} {what}: off by {apart} of {largest}",
                    found.dims()
                );
            }
        }
    }
}

/// Its decoder has what Whisper's has not: a norm of the embedding, and biases of keys and of the tokens.
#[test]
fn a_canary_has_the_numbers_of_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    write_canary_model(folder.path(), CanarySize::named("canary-tiny").unwrap(), &Options::default())
        .unwrap();
    let mut random = noise();
    for precision in [Precision::F32, Precision::F16, Precision::Q8_0] {
        let load = |device: &Device| Canary::load(folder.path(), device, precision, &|| true).unwrap();
        let (on_host, on_card) = (load(&Device::Cpu), load(&card(cards()[0])));
        let bands = on_host.config.dimensions.encoder.mel_bins as usize;
        let spectrogram: Vec<f32> = (0..500 * bands).map(|_| random()).collect();
        let prompt = on_host.tokens.prompt("de", "en").unwrap();
        let compute = |model: &Canary| {
            let frames = model.encoder.forward(&spectrogram, &|| true).unwrap().unsqueeze(0).unwrap();
            let mut state = model.decoder.start(&frames, 1, prompt.len() + 1).unwrap();
            let mut all = Vec::new();
            for tokens in [&prompt[..], &[77]] {
                let hidden = model.decoder.forward(tokens, &mut state, None, &|| true).unwrap();
                all.push(model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap());
            }
            Tensor::cat(&all, 0).unwrap()
        };
        let (apart, largest) = difference(&compute(&on_card), &compute(&on_host));
        println!("{precision}: {apart} of {largest}");
        assert!(apart <= tolerance(precision) * largest, "{precision}: off by {apart} of {largest}");
        if precision == Precision::F32 {
            let read = |model: &Canary| {
                let frames = model.encoder.forward(&spectrogram, &|| true).unwrap();
                let read = model.read(&frames, &prompt, None, &|| true).unwrap();
                read.tokens.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
            };
            assert_eq!(read(&on_card), read(&on_host));
        }
    }
}

fn check(cards: &[usize], precisions: &[Precision]) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &MODEL, &Options::default()).unwrap();
    let mut random = noise();
    let mel: Vec<f32> = (0..2 * 80 * 3000).map(|_| random()).collect();
    let mel = Tensor::from_vec(mel, (2, 80, 3000), &Device::Cpu).unwrap();
    for precision in precisions.iter().copied() {
        let load = |device: &Device| Whisper::load(folder.path(), device, precision, &|| true).unwrap();
        let expected = compute(&load(&Device::Cpu), &mel).unwrap();
        for number in cards {
            let model = load(&card(*number));
            let found =
                compute(&model, &mel).unwrap_or_else(|error| panic!("cuda:{number} {precision}: {error}"));
            assert!(found.logits.iter().all(|logits| logits.dtype() == DType::F32), "logits are in 32 bits");
            let mut pairs = vec![("encoder", &found.audio, &expected.audio)];
            pairs.extend(found.logits.iter().zip(&expected.logits).map(|(a, b)| ("logits", a, b)));
            pairs.extend(found.scores.iter().zip(&expected.scores).map(|(a, b)| ("scores", a, b)));
            let mut worst = std::collections::BTreeMap::new();
            for (what, found, expected) in pairs {
                let (apart, largest) = difference(found, expected);
                let most = worst.entry(what).or_insert((0.0, 0.0));
                if apart / largest >= most.0 / f32::max(most.1, 1e-9) {
                    *most = (apart, largest);
                }
            }
            println!("cuda:{number} {precision} held in {}: {worst:?}", model.precision);
            for (what, (apart, largest)) in worst {
                assert!(
                    apart <= tolerance(precision) * largest,
                    "cuda:{number} {precision}: {what} are off by {apart} of {largest}"
                );
            }
        }
    }
}

/// One sequence alone and among eight others: as near as ARCHITECTURE.md says. On the emulated card they are equal in 16
/// bits; NVIDIA's library takes another kernel for other numbers of rows, which adds up in another order. Where weights
/// are quantised, products of few rows have their activations in 8 bits.
#[test]
fn rows_depend_on_each_other_as_little_as_is_said() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &MODEL, &Options::default()).unwrap();
    for (precision, tolerance) in [(Precision::F16, 0.002), (Precision::Q8_0, 0.02)] {
        let model = Whisper::load(folder.path(), &card(0), precision, &|| true).unwrap();
        let mut random = noise();
        let audio: Vec<f32> = (0..1500 * MODEL.width).map(|_| random()).collect();
        let audio = Tensor::from_vec(audio, (1, 1500, MODEL.width), &Device::Cpu).unwrap();
        let audio = audio.to_dtype(model.dtype).unwrap().to_device(&model.device).unwrap();
        let logits = |windows: usize| {
            let audio = audio.repeat((windows, 1, 1)).unwrap();
            let mut state = model.decoder.start(&audio, 1, 8).unwrap();
            let mut logits = None;
            for token in [2708, 5, 9] {
                let hidden =
                    model.decoder.forward(&vec![token; windows], &mut state, None, &|| true).unwrap();
                logits = Some(model.decoder.logits(&hidden.i((.., 0)).unwrap()).unwrap());
            }
            logits.unwrap().get(0).unwrap()
        };
        let (apart, largest) = difference(&logits(1), &logits(9));
        println!("{precision}: one row alone and among nine: {apart} of {largest}");
        assert!(apart <= tolerance * largest, "{precision}: {apart} of {largest}");
    }
}

#[test]
fn numbers_are_those_of_the_cpu() {
    check(&cards(), &[Precision::F16, Precision::Bf16]);
    check(&cards()[..1], &[Precision::F32, Precision::Q8_0]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn numbers_are_those_of_the_cpu_in_every_precision() {
    check(&cards(), &Precision::ALL);
}

/// The likeliest of what is allowed, by the rules as they are written down, not as the kernel has them.
fn chosen(
    logits: &[f32],
    vocabulary: &Vocabulary,
    suppressed: &[u32],
    starts: &[(u32, f32)],
    Question { limits, chance, bonuses }: &Question,
    count: usize,
) -> Candidates {
    let begin = vocabulary.timestamp_begin;
    let never = [&vocabulary.suppressed[..], suppressed, &[vocabulary.no_timestamps]].concat();
    let allowed = |token: u32| {
        let in_range = if token < begin { token >= limits.text_from } else { limits.times.contains(&token) };
        let first = limits.is_first && vocabulary.begin_suppressed.contains(&token);
        in_range && !never.contains(&token) && !first
    };
    let mut all: Vec<(u32, f32)> =
        (0..).zip(logits.iter().copied()).filter(|(token, _)| allowed(*token)).collect();
    let exponentials = |all: &[(u32, f32)]| -> f32 {
        all.iter().map(|(_, logit)| f64::from(*logit).exp()).sum::<f64>().ln() as f32
    };
    let (text, times): (Vec<_>, Vec<_>) = all.iter().partition(|(token, _)| *token < begin);
    let likeliest = text.iter().map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max);
    if !times.is_empty() && exponentials(&times) > likeliest {
        all = times;
    }
    let total = exponentials(&all);
    let own = all.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(token, _)| *token);
    // The sum that a token is chosen by.
    let raised = |(token, logit): &(u32, f32)| {
        let of = |list: &[(u32, f32)]| list.iter().find(|it| it.0 == *token).map_or(0.0, |it| it.1);
        logit + bonuses.as_ref().map_or(0.0, |bonuses| of(bonuses).max(of(starts)))
    };
    if let Some(Chance { temperature, number }) = chance {
        let share = |logit: f32| (f64::from(logit) / f64::from(*temperature)).exp();
        let mut left = f64::from(*number) * all.iter().map(|it| share(raised(it))).sum::<f64>();
        all.retain(|it| {
            let is_before = left >= 0.0;
            left -= share(raised(it));
            is_before && left < 0.0
        });
    }
    all.sort_by(|a, b| raised(b).total_cmp(&raised(a)));
    all.truncate(count);
    Candidates { total, best: all, own }
}

/// Also of equals, which 16 bits have many of, and where fewer are allowed than were asked for.
#[test]
fn a_card_chooses_tokens_by_the_rules() {
    let model = Whisper::load(&starter(), &card(0), Precision::F16, &|| true).unwrap();
    let vocabulary = &model.vocabulary;
    let (size, begin) = (vocabulary.size as u32, vocabulary.timestamp_begin);
    let limits = |is_first, text_from, times| Question {
        limits: Limits { is_first, text_from, times },
        chance: None,
        bonuses: None,
    };
    let likeliest = [
        limits(false, 0, begin..size),
        limits(true, begin, begin..begin + 51),
        limits(false, vocabulary.end_of_text, begin + 40..size),
        limits(false, 0, begin + 7..begin + 7),
        limits(false, begin, begin + 3..begin + 5),
        limits(false, 0, begin + 900..size),
    ];
    let suppressed = [5, 17, 200];
    let mut noise = noise();
    // The likeliest of each, then tokens drawn with numbers from one end of the vocabulary to the other.
    let mut rows = likeliest.to_vec();
    for number in 0..40 {
        let temperature = [0.2, 0.6, 1.0, 3.0][number % 4];
        let chance = Some(Chance { temperature, number: (number as f32 + 0.37) / 41.0 });
        rows.extend(likeliest.iter().map(|asked| Question { chance, ..asked.clone() }));
    }
    // The same with words to expect, of which some begin and others go on.
    let starts: Vec<(u32, f32)> = (0..300).map(|n| (n * 11 + 3, 2.5)).collect();
    let expected: Vec<Question> = rows
        .iter()
        .enumerate()
        .map(|(n, asked)| {
            let bonuses = (0..n as u32 % 4).map(|at| (at * 700 + n as u32, 1.0 + at as f32 / 2.0)).collect();
            Question { bonuses: Some(bonuses), ..asked.clone() }
        })
        .collect();
    rows.extend(expected);
    for times in [0.0, 4.0, -9.0] {
        let logits: Vec<f32> = (0..rows.len() as u32 * size)
            .map(|i| (noise() * 8.0).round() / 2.0 + if i % size < begin { 0.0 } else { times })
            .collect();
        for device in cards().into_iter().map(card) {
            let chooser = Chooser::new(&device, vocabulary, &suppressed, true, &starts).unwrap();
            let on_card = Tensor::from_slice(&logits, (rows.len(), size as usize), &device).unwrap();
            for count in [1, 6] {
                let found = chooser.choose(&on_card, &rows, count).unwrap();
                for ((found, row), logits) in found.iter().zip(&rows).zip(logits.chunks(size as usize)) {
                    let expected = chosen(logits, vocabulary, &suppressed, &starts, row, count);
                    assert_eq!(
                        (&found.best, found.own),
                        (&expected.best, expected.own),
                        "{row:?}, times {times}"
                    );
                    assert!((found.total - expected.total).abs() < 1e-4, "{found:?}, {expected:?}");
                }
            }
        }
    }
}
