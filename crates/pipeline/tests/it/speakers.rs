//! Telling speakers apart: the networks against their reference outputs, and whole
//! conversations against what is known of them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use audio::{ChannelMode, HOP, LogMel, N_FFT, OpenOptions, PrepareOptions, Recording};
use candle_core::{Device, Tensor};
use models::speakers::{PyanNet, VoiceEncoder};
use pipeline::speakers::{
    AnyHeard, Bounds, Channel, Diarization, Heard, Networks, diarize, diarize_channels, listen,
};
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
    listen(&recording.pcm, networks, 4, &mut heard, &mut |_, _| Ok(())).unwrap();
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
    conversations(&[("two_speakers", 2), ("overlap", 3), ("one_speaker", 1)]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn all_conversations_have_the_right_speakers_at_the_right_times() {
    conversations(&[
        ("two_speakers", 2),
        ("overlap", 3),
        ("noisy", 3),
        ("all_speakers", 4),
        ("one_speaker", 1),
    ]);
}

fn conversations(recordings: &[(&str, usize)]) {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = corpus::bundled().join("audio/conversations");
    let mut totals = [Errors::default(); 4];
    for &(name, speakers) in recordings {
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

/// Samples of a recording, from `from` on, as many as there are.
fn samples(path: &Path, from: usize, count: usize) -> Vec<f32> {
    let mut samples = vec![0.0; count];
    recording(path).pcm.read(from as i64, &mut samples).unwrap();
    samples
}

/// A file of two channels, in 16 bits at 16 kHz.
fn two_channels(path: &Path, left: &[f32], right: &[f32]) {
    let at = |channel: &[f32], sample: usize| channel.get(sample).copied().unwrap_or(0.0);
    let data: Vec<u8> = (0..left.len().max(right.len()))
        .flat_map(|sample| [at(left, sample), at(right, sample)])
        .flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes())
        .collect();
    std::fs::write(path, wav(2, &data)).unwrap();
}

fn wav(channels: u16, data: &[u8]) -> Vec<u8> {
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend(channels.to_le_bytes());
    file.extend(16_000u32.to_le_bytes());
    file.extend((16_000 * 2 * u32::from(channels)).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(b"\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

/// On each channel of a call there is somebody else, however alike they sound; what both channels
/// have at the same time is said by one.
#[test]
fn each_channel_of_a_call_has_its_own_speakers() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let audio = corpus::bundled().join("audio");
    let anna = samples(&audio.join("real/librispeech/1688-142285-0000.flac"), 0, 12 * 16_000);
    let talk = samples(&audio.join("conversations/two_speakers.flac"), 0, 26 * 16_000);
    let later = |by: usize, samples: &[f32]| [vec![0.0; by * 16_000], samples.to_vec()].concat();
    let quiet = |samples: &[f32]| samples.iter().map(|x| x * 0.3).collect::<Vec<f32>>();
    let path = folder.path().join("call.wav");
    // left, right, how many speakers are given, speakers of the left channel and of the right one
    type Case<'a> = (&'a str, Vec<f32>, Vec<f32>, Bounds, &'a [usize], &'a [usize]);
    let cases: [Case; 6] = [
        // The same voice, but not at the same time: two people who sound alike.
        ("one voice on each", anna.clone(), later(14, &anna), ANY, &[0], &[1]),
        ("given", anna.clone(), later(14, &anna), Bounds { min: 2, max: 2 }, &[0], &[1]),
        // The right microphone hears the left one's speaker.
        ("the same on both", anna.clone(), quiet(&anna), ANY, &[0], &[0]),
        ("two on both", talk.clone(), quiet(&talk), ANY, &[0, 1], &[0, 1]),
        ("nobody on the right", talk.clone(), vec![0.0; 16_000], ANY, &[0, 1], &[]),
        ("two and one", talk.clone(), later(28, &anna), Bounds { min: 2, max: 2 }, &[0], &[1]),
    ];
    for (name, left, right, bounds, on_left, on_right) in cases {
        two_channels(&path, &left, &right);
        let mut seconds = 0.0;
        let channel = |number: u32| {
            let open =
                OpenOptions { channels: ChannelMode::Index(number as usize), ..OpenOptions::default() };
            let options = PrepareOptions { open, vad: None, ..PrepareOptions::default() };
            let recording = audio::prepare(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let mut heard = Heard::default();
            listen(&recording.pcm, &networks, 4, &mut heard, &mut |_, _| Ok(())).unwrap();
            seconds = recording.seconds();
            Channel { number, heard: AnyHeard::Bundled(heard) }
        };
        let channels = [0, 1].map(channel);
        let found = diarize_channels(&channels, seconds, bounds);
        let on = |channel: u32| {
            let own = found.turns.iter().filter(|turn| turn.channel == Some(channel));
            own.map(|turn| turn.speaker).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(
            [on(0), on(1)].map(Vec::from_iter),
            [on_left.to_vec(), on_right.to_vec()],
            "{name}: {found:?}"
        );
        assert_eq!(found.voices.len(), found.turns.iter().map(|turn| turn.speaker + 1).max().unwrap_or(0));
    }
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
        std::fs::write(&path, wav(1, &data)).unwrap();
        path
    };
    let speech = recording(&corpus::bundled().join("audio/real/librispeech/1688-142285-0000.flac"));
    let mut second = vec![0.0; 16_000];
    speech.pcm.read(48_000, &mut second).unwrap();
    let tone: Vec<f32> = (0..320_000).map(|n| (n as f32 * 0.17).sin() * 0.3).collect();
    for (path, most) in [
        (wav("music.wav", &music(30)), 2),
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

/// Chords and a melody over them, each note with its overtones and fading.
fn music(seconds: usize) -> Vec<f32> {
    const CHORDS: [[f32; 3]; 4] =
        [[220.0, 261.6, 329.6], [174.6, 220.0, 261.6], [196.0, 246.9, 293.7], [164.8, 196.0, 246.9]];
    const MELODY: [f32; 8] = [440.0, 523.3, 493.9, 392.0, 440.0, 349.2, 392.0, 329.6];
    let note = |hertz: f32, time: f32, since: f32| {
        let overtones = (1..=6)
            .map(|number| (number as f32 * hertz * time * std::f32::consts::TAU).sin() / number as f32);
        overtones.sum::<f32>() * (-1.5 * since).exp()
    };
    let sample = |number: usize| {
        let time = number as f32 / 16_000.0;
        let chord = CHORDS[(time / 2.0) as usize % CHORDS.len()];
        let below: f32 = chord.iter().map(|hertz| note(*hertz, time, time % 2.0)).sum();
        let above = note(MELODY[(time * 2.0) as usize % MELODY.len()], time, time % 0.5);
        0.08 * below + 0.12 * above
    };
    (0..seconds * 16_000).map(sample).collect()
}

/// What is said one after the other, half a second apart, in a file: seconds of a file each, with a
/// name for who speaks. Returns who speaks when.
fn conversation(path: &Path, parts: &[(PathBuf, f64, f64, String)]) -> Vec<Turn> {
    let (mut sound, mut turns) = (Vec::new(), Vec::new());
    for (file, from, seconds, speaker) in parts {
        let start = sound.len() as f64 / 16_000.0;
        sound.extend(samples(file, (from * 16_000.0) as usize, (seconds * 16_000.0) as usize));
        turns.push((start, sound.len() as f64 / 16_000.0, speaker.clone()));
        sound.extend([0.0; 8_000]);
    }
    let data: Vec<u8> = sound.iter().flat_map(|x| ((x * 32767.0) as i16).to_le_bytes()).collect();
    std::fs::write(path, wav(1, &data)).unwrap();
    turns
}

/// Speakers found and the errors, with the number of speakers open and given.
fn open_and_given(
    path: &Path,
    expected: &[Turn],
    speakers: usize,
    networks: &Networks,
) -> [(usize, Errors); 2] {
    let (heard, seconds) = heard(path, networks);
    [ANY, Bounds { min: speakers, max: speakers }].map(|bounds| {
        let found = diarize(&heard, seconds, bounds);
        (found.voices.len(), errors(expected, &named(&found), 0.25))
    })
}

/// Three people who talk, and a fourth who says a second now and then, or hardly anything: then the
/// given number finds her, and no other voice is divided for it.
#[test]
fn who_says_little_is_found_and_the_given_number_never_hurts() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let talk = corpus::bundled().join("audio/conversations/all_speakers.flac");
    let part = |from: f64, seconds: f64, who: &str| (talk.clone(), from, seconds, who.to_owned());
    let others = [
        part(18.6, 7.2, "2033"),
        part(30.5, 5.7, "1998"),
        part(96.1, 7.0, "1688"),
        part(62.8, 7.5, "2033"),
        part(131.0, 7.6, "1998"),
        part(71.0, 5.9, "1688"),
        part(8.9, 6.2, "2033"),
        part(104.0, 5.8, "1998"),
    ];
    let says = [42.5, 44.2, 45.9, 77.6, 79.2, 87.5, 89.2, 91.0];
    for (pieces, length, expected) in [(8, 1.4, [4, 4]), (1, 2.2, [3, 4])] {
        let mut parts = others.to_vec();
        for (number, from) in says.into_iter().enumerate().take(pieces) {
            parts.insert(2 * number + 1, part(from, length, "2414"));
        }
        let path = folder.path().join("talk.wav");
        let turns = conversation(&path, &parts);
        let [(open, errors_open), (given, errors_given)] = open_and_given(&path, &turns, 4, &networks);
        println!(
            "{pieces} pieces: {open} speakers, {:.1} % wrong; given: {given}, {:.1} %",
            100.0 * errors_open.rate(),
            100.0 * errors_given.rate()
        );
        assert_eq!([open, given], expected, "{pieces} pieces");
        assert!(errors_given.rate() <= errors_open.rate() + 1e-9);
        assert!(errors_given.rate() < 0.05, "{errors_given:?}");
    }
}

/// Twelve people, each twice for six seconds: with their number given no recording is more than a
/// hundredth of its speech worse, and all together are better.
#[test]
#[ignore = "full corpus: make soak"]
fn twelve_people_are_told_apart() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut voices = flac_files(&corpus::full().join("audio/voices"));
    voices.retain(|voice| recording(voice).seconds() >= 12.0);
    let mut totals = [Errors::default(); 2];
    let mut right = [0; 2];
    for group in voices.chunks_exact(12) {
        let halves = [0.0, 6.0].into_iter();
        let parts = halves.flat_map(|from| {
            group.iter().enumerate().map(move |(who, voice)| (voice.clone(), from, 6.0, who.to_string()))
        });
        let path = folder.path().join("twelve.wav");
        let turns = conversation(&path, &parts.collect::<Vec<_>>());
        let found = open_and_given(&path, &turns, 12, &networks);
        let rates = found.map(|(_, errors)| errors.rate());
        println!(
            "{} speakers, {:.1} % wrong; given: {}, {:.1} %",
            found[0].0,
            100.0 * rates[0],
            found[1].0,
            100.0 * rates[1]
        );
        assert!((10..=13).contains(&found[0].0) && (11..=12).contains(&found[1].0), "{found:?}");
        assert!(rates[1] <= rates[0] + 0.01, "{rates:?}");
        for (number, (count, errors)) in found.into_iter().enumerate() {
            totals[number] = totals[number].and(errors);
            right[number] += usize::from(count == 12);
        }
    }
    let rates = totals.map(|total| total.rate());
    println!("{} recordings, the number right in {right:?}, wrong: {rates:?}", voices.len() / 12);
    assert!(rates[1] < rates[0] && rates[0] < 0.1 && rates[1] < 0.06, "{rates:?}");
}

/// A block of windows is listened to as one window is.
#[test]
fn a_batch_changes_nothing() {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let recording = recording(&corpus::bundled().join("audio/conversations/one_speaker.flac"));
    let mut results = Vec::new();
    for batch in [1, 3, 32] {
        let mut heard = Heard::default();
        listen(&recording.pcm, &networks, batch, &mut heard, &mut |_, _| Ok(())).unwrap();
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
