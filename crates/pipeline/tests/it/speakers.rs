//! Telling speakers apart: the networks against their reference outputs, and whole
//! conversations against what is known of them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use audio::{HOP, LogMel, N_FFT, OpenOptions, PrepareOptions, Recording};
use candle_core::{Device, Tensor};
use models::speakers::{PyanNet, VoiceEncoder};
use pipeline::speakers::{Bounds, Diarization, Heard, Networks, diarize, listen};
use pipeline::{Control, Engine};
use random_models::corpus;
use random_models::diarization::{Errors, Turn, errors, read_rttm};
use transcript::{Span, Time};
use wire::{EncodeVoice, ErrorCode, Event, Job, KnownVoice};

const ANY: Bounds = Bounds { min: 1, max: usize::MAX };

pub fn recording(path: &Path) -> Recording {
    let options = PrepareOptions { open: OpenOptions::default(), vad: None, ..PrepareOptions::default() };
    audio::prepare(path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

fn reference(name: &str) -> std::collections::HashMap<String, Tensor> {
    let path = corpus::bundled().join("reference/speakers").join(name);
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

#[track_caller]
pub fn assert_near(found: &[f32], expected: &Tensor, what: &str) {
    let expected = expected.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let off = found.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(off < 1e-4, "{what}: off by {off}");
}

/// Resemblyzer's way with a whole recording: raised to -30 dBFS, parts of 1.6 s every
/// 0.8 s, the mean of their vectors.
#[test]
fn a_voice_is_encoded_as_by_the_reference() {
    let expected = reference("voice_encoder.safetensors");
    let path = corpus::bundled().join("audio/real/librispeech/1688-142285-0000.flac");
    let recording = recording(&path);
    let count = recording.pcm.len() as usize;
    let mut samples = vec![0.0; count + N_FFT];
    recording.pcm.read(0, &mut samples[N_FFT / 2..N_FFT / 2 + count]).unwrap();
    let power = samples.iter().map(|x| f64::from(x * x)).sum::<f64>() / count as f64;
    let gain = (10f64.powi(-3) / power).sqrt().max(1.0) as f32;
    samples.iter_mut().for_each(|x| *x *= gain);
    let mel = LogMel::new(VoiceEncoder::MEL_BINS).log10(&samples);
    let energies: Vec<f32> = (0..mel.frames)
        .flat_map(|frame| mel.data.iter().skip(frame).step_by(mel.frames).map(|value| 10f32.powf(*value)))
        .collect();
    assert_eq!(mel.frames, count / HOP + 1);
    assert_near(&energies, &expected["mel_0"], "mel");

    let encoder = VoiceEncoder::bundled(&Device::Cpu).unwrap();
    let step = 80 * VoiceEncoder::MEL_BINS;
    let part = VoiceEncoder::FRAMES * VoiceEncoder::MEL_BINS;
    let parts: Vec<&[f32]> = energies.windows(part).step_by(step).collect();
    let vectors = encoder.forward(&parts).unwrap();
    let found = vectors.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_near(&found, &expected["partials_0"], "parts");
    let mean = vectors.mean(0).unwrap();
    let length = mean.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap().sqrt();
    let mean: Vec<f32> = mean.to_vec1::<f32>().unwrap().iter().map(|x| x / length).collect();
    assert_near(&mean, &expected["embedding_0"], "whole");
}

#[test]
fn speakers_of_a_window_are_found_as_by_the_reference() {
    let expected = reference("segmentation.safetensors");
    let recording = recording(&corpus::bundled().join("audio/conversations/overlap.flac"));
    let mut window = vec![0.0; PyanNet::WINDOW];
    recording.pcm.read(20 * 16_000, &mut window).unwrap();
    let network = PyanNet::bundled(&Device::Cpu).unwrap();
    // In a batch as alone.
    let silence = vec![0.0; PyanNet::WINDOW];
    let found = network.forward(&[&silence, &window]).unwrap().get(1).unwrap();
    assert_near(
        &found.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
        &expected["log_probabilities"],
        "log-probabilities",
    );
    assert!(network.forward(&[&window[1..]]).is_err());
}

fn heard(path: &Path, networks: &Networks) -> (Heard, f64) {
    let recording = recording(path);
    let mut heard = Heard::default();
    listen(&recording.pcm, networks, 4, &mut heard, &mut |_| Ok(())).unwrap();
    (heard, recording.seconds())
}

fn named(found: &Diarization) -> Vec<Turn> {
    let turn = |turn: &transcript::speakers::Turn| {
        (turn.span.start.seconds(), turn.span.end.seconds(), turn.speaker.to_string())
    };
    found.turns.iter().map(turn).collect()
}

/// The right number of speakers in each, whether or not it is given, and at most 8 %
/// of the speech wrong with a collar of 0.25 s, 13 % without.
#[test]
fn conversations_have_the_right_speakers_at_the_right_times() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = corpus::bundled().join("audio/conversations");
    let mut totals = [Errors::default(); 4];
    for (name, speakers) in
        [("two_speakers", 2), ("overlap", 3), ("noisy", 3), ("all_speakers", 4), ("one_speaker", 1)]
    {
        let (heard, seconds) = heard(&folder.join(name).with_extension("flac"), &networks);
        let expected = read_rttm(&folder.join(name).with_extension("rttm"));
        let given = Bounds { min: speakers, max: speakers };
        for (bounds, totals) in [ANY, given].into_iter().zip(totals.chunks_exact_mut(2)) {
            let found = diarize(&heard, seconds, bounds);
            assert_eq!(found.voices.len(), speakers, "{name}, {bounds:?}");
            for (total, collar) in totals.iter_mut().zip([0.25, 0.0]) {
                let errors = errors(&expected, &named(&found), collar);
                println!("{name} {bounds:?} collar {collar}: {:.1} % {errors:?}", 100.0 * errors.rate());
                *total = total.and(errors);
            }
        }
    }
    let rates = totals.map(|total| total.rate());
    println!("{rates:?}");
    assert!(rates[0] <= 0.08 && rates[1] <= 0.13, "{rates:?}");
    // That the number is known never hurts.
    assert!(rates[2] <= rates[0] + 1e-9 && rates[3] <= rates[1] + 1e-9, "{rates:?}");
}

/// Nothing to tell apart is no error.
#[test]
fn what_holds_no_conversation_has_a_sensible_result() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let wav = |name: &str, samples: &[f32]| {
        let path = folder.path().join(name);
        let data: Vec<u8> =
            samples.iter().flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes()).collect();
        let mut file = b"RIFF".to_vec();
        file.extend((36 + data.len() as u32).to_le_bytes());
        file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        file.extend(16_000u32.to_le_bytes());
        file.extend(32_000u32.to_le_bytes());
        file.extend(b"\x02\0\x10\0data");
        file.extend((data.len() as u32).to_le_bytes());
        file.extend(data);
        std::fs::write(&path, file).unwrap();
        path
    };
    let speech = recording(&corpus::bundled().join("audio/real/librispeech/1688-142285-0000.flac"));
    let mut second = vec![0.0; 16_000];
    speech.pcm.read(48_000, &mut second).unwrap();
    let tone: Vec<f32> = (0..320_000).map(|n| (n as f32 * 0.17).sin() * 0.3).collect();
    for (path, most) in [
        (wav("silence.wav", &vec![0.0; 480_000]), 0),
        (wav("tone.wav", &tone), 1),
        (wav("one_sample.wav", &[0.5]), 0),
        (wav("one_second.wav", &second), 1),
        (corpus::bundled().join("audio/synthetic/no_speech_white_noise.flac"), 1),
    ] {
        let (heard, seconds) = heard(&path, &networks);
        for bounds in [ANY, Bounds { min: 3, max: 5 }] {
            let found = diarize(&heard, seconds, bounds);
            assert!(bounds.min > 1 || found.voices.len() <= most, "{}: {found:?}", path.display());
            assert!(found.turns.iter().all(|turn| turn.span.end.seconds() <= seconds + 0.03), "{found:?}");
        }
    }
}

/// A block of windows is listened to as one window is.
#[test]
fn a_batch_changes_nothing() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let recording = recording(&corpus::bundled().join("audio/conversations/one_speaker.flac"));
    let mut results = Vec::new();
    for batch in [1, 3, 32] {
        let mut heard = Heard::default();
        listen(&recording.pcm, &networks, batch, &mut heard, &mut |_| Ok(())).unwrap();
        results.push((heard.windows.clone(), diarize(&heard, recording.seconds(), ANY).turns));
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// A voice of a part of a recording, with its seconds of speech; `None` where there is too little.
fn voice(engine: &mut Engine, file: &Path, part: Option<(f64, f64)>) -> Option<(f32, Vec<f32>)> {
    let span = |(start, end)| Span::new(Time::from_seconds(start), Time::from_seconds(end));
    let asked = EncodeVoice { job: Job::new(1, file, ""), spans: part.map(span).into_iter().collect() };
    match engine.encode_voice(&asked, &Control::default()) {
        Ok(Event::Voice { voice }) => Some((voice.seconds, voice.vector)),
        Err(failure) if failure.code == ErrorCode::NoVoice => None,
        other => panic!("{other:?}"),
    }
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    1.0 - a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>()
}

/// Share of the distances up to a limit.
fn share(distances: &[f32], limit: f32) -> f64 {
    distances.iter().filter(|distance| **distance <= limit).count() as f64 / distances.len() as f64
}

fn flac_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "flac")).collect();
    files.sort();
    files
}

/// The table of docs/measurements.md, and what the window says of false accepts.
#[test]
#[ignore = "full corpus: make soak"]
fn other_people_are_seldom_taken_for_known_ones() {
    let (audio, mut engine) = (corpus::full().join("audio"), Engine::new());
    let all: Vec<_> =
        flac_files(&audio.join("voices")).iter().filter_map(|file| voice(&mut engine, file, None)).collect();
    let long: Vec<_> = all.into_iter().filter(|(seconds, _)| *seconds >= 3.0).collect();
    let pairs = |a: usize| long[..a].iter().map(move |b| (a, b));
    let others: Vec<f32> = (0..long.len()).flat_map(pairs).map(|(a, b)| distance(&long[a].1, &b.1)).collect();
    let (same, maybe) = (share(&others, KnownVoice::SAME), share(&others, KnownVoice::MAYBE_SAME));
    println!("{} voices: {same:.5} of pairs named, {maybe:.4} offered", long.len());
    assert!(same <= f64::from(KnownVoice::FALSE_ACCEPTS), "{same}");

    // Parts of utterances of a few people, each against the parts of other files.
    for speech in [1.6f32..2.0, 2.7..3.3, 5.4..6.6] {
        let mut parts: Vec<(String, PathBuf, Vec<f32>)> = Vec::new();
        for file in flac_files(&audio.join("real/librispeech")) {
            let speaker = file.file_name().unwrap().to_string_lossy().split('-').next().unwrap().to_owned();
            let seconds = recording(&file).seconds();
            for length in [speech.start * 1.15, speech.start * 1.3].map(f64::from) {
                for start in (0..8).map(|number| 0.3 + length * f64::from(number)) {
                    if start + length <= seconds
                        && let Some((found, vector)) =
                            voice(&mut engine, &file, Some((start, start + length)))
                        && speech.contains(&found)
                    {
                        parts.push((speaker.clone(), file.clone(), vector));
                    }
                }
            }
        }
        let (mut same, mut other) = (Vec::new(), Vec::new());
        for (number, a) in parts.iter().enumerate() {
            for b in parts[..number].iter().filter(|b| a.1 != b.1) {
                if a.0 == b.0 { &mut same } else { &mut other }.push(distance(&a.2, &b.2));
            }
        }
        let limits = (0..1000).map(|limit| limit as f32 / 1000.0);
        let rates = limits.map(|limit| (share(&other, limit), 1.0 - share(&same, limit)));
        let (accepts, rejects) =
            rates.min_by(|a, b| (a.0 - a.1).abs().total_cmp(&(b.0 - b.1).abs())).unwrap();
        let rate = f64::midpoint(accepts, rejects);
        println!("{speech:?} s: {} parts, equal error rate {:.2} %", parts.len(), 100.0 * rate);
        assert!(rate < 0.05, "{rate}");
    }
}
