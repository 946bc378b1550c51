//! Nemotron-3-Diarization: a network that hears a recording from its beginning to its end,
//! chunk after chunk, and tells up to eight speakers apart by itself. With each chunk it
//! hears frames of what was before (`cache`) and a little of what comes. Speakers
//! are numbered in the order in which they are first heard.
//!
//! It makes no voice vectors. The built-in voice encoder makes them, from frames in which
//! the network hears one speaker alone.

mod cache;
#[cfg(test)]
mod tests;

use audio::{HOP, LogMel, N_FFT, NemoMel, Pcm, SAMPLE_RATE};
use candle_core::Device;
use formats::NemotronFiles;
use models::speakers::{Nemotron, VoiceEncoder};
use transcript::speakers::Turn;
use transcript::{Span, Time};

use cache::{Best, SpeakerCache, first_of_equals};

use super::listen::{ENOUGH_ALONE, Parts, Utterance, energies, normalise};
use super::turns::{Diarization, number_by_appearance};
use super::{Bounds, Networks};
use crate::StageError;

/// More speech than this changes a voice no more, in seconds.
const ENOUGH_SPEECH: f32 = 120.0;
/// Seconds of a frame of the spectrogram.
const FRAME_SECONDS: f32 = HOP as f32 / SAMPLE_RATE as f32;
/// Parts of voices that are encoded together.
const PARTS_TOGETHER: usize = 4;

/// The networks, on one device.
#[derive(Debug)]
pub struct NemotronNetworks {
    network: Nemotron,
    /// For voices.
    bundled: Networks,
}

impl NemotronNetworks {
    /// Opens a model's files.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another kind of model, or the device has no
    /// room for the networks.
    pub fn open(files: &NemotronFiles, device: &Device) -> Result<Self, models::Error> {
        let bundled = Networks::in_program(device)?;
        Ok(Self { network: Nemotron::open(files, device)?, bundled })
    }

    /// Those in the program, which make the voices.
    pub fn bundled(&self) -> &Networks {
        &self.bundled
    }
}

/// What was heard in a whole recording.
#[derive(Debug, Default, PartialEq)]
pub struct NemotronHeard {
    /// Who speaks in each hundredth of a second: a bit for each speaker.
    pub frames: Vec<u8>,
    /// How each speaker sounds, so far.
    pub voices: Vec<Voice>,
}

/// How a speaker sounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Voice {
    /// The sum of vectors, each as long as its speech.
    sum: Vec<f32>,
    /// Seconds of that speech.
    seconds: f32,
}

/// Listens to a recording. `reached` is told the sample behind each chunk.
///
/// # Errors
/// What `reached` answers, or where a network or the recording's file fails.
pub fn listen(
    pcm: &Pcm,
    networks: &NemotronNetworks,
    heard: &mut NemotronHeard,
    reached: &mut dyn FnMut(u64, &NemotronHeard) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let mel = LogMel::new(VoiceEncoder::MEL_BINS);
    let speakers = networks.network.config().head_config.num_speakers;
    heard.voices.resize(speakers, Voice::default());
    logits(pcm, &networks.network, &mut |logits| {
        let first = heard.frames.len();
        let mask = |logits: &[f32]| -> u8 {
            logits.iter().enumerate().map(|(speaker, logit)| u8::from(*logit > 0.0) << speaker).sum()
        };
        let masks: Vec<u8> = logits.chunks_exact(speakers).map(mask).collect();
        add_voices(pcm, &networks.bundled.encoder, &mel, first, &masks, &mut heard.voices)?;
        heard.frames.extend(masks);
        reached(((heard.frames.len() * HOP) as u64).min(pcm.len()), heard)
    })
}

/// The network's logits, for each hundredth of a second one per speaker, chunk after
/// chunk.
///
/// # Errors
/// What `each` answers, or where the network or the recording's file fails.
pub fn logits(
    pcm: &Pcm,
    network: &Nemotron,
    each: &mut dyn FnMut(&[f32]) -> Result<(), StageError>,
) -> Result<(), StageError> {
    logits_with(pcm, network, first_of_equals, each)
}

fn logits_with(
    pcm: &Pcm,
    network: &Nemotron,
    best: Best,
    each: &mut dyn FnMut(&[f32]) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let config = network.config();
    let of = &config.audio_config;
    let (factor, width, speakers) = (of.subsampling_factor, of.hidden_size, config.head_config.num_speakers);
    let mel = NemoMel::new(of.num_mel_bins);
    let mut cache = SpeakerCache::new(config, network.silence(), best);
    let count = (pcm.len() / HOP as u64) as usize;
    // The reference has a frame more, of zeros; where it is alone in a frame of the encoder,
    // that one is not attended to.
    let (sounding, all) = (count.div_ceil(factor), (count + 1).div_ceil(factor));
    for start in (0..sounding).step_by(config.chunk_length) {
        let end = (start + config.chunk_length).min(sounding);
        let last = (end + config.chunk_right_context).min(all);
        let mut spectrogram = spectrogram(pcm, &mel, start * factor, (last * factor).min(count))?;
        spectrogram.resize((last - start) * factor * of.num_mel_bins, 0.0);
        let embedded = network.embed(&spectrogram)?;
        drop(spectrogram);
        let known = cache.count();
        let input = [cache.embedded(), embedded].concat();
        let found = network.forward(&input, known + last.min(sounding) - start)?;
        let found = found.flatten_all()?.to_vec1::<f32>()?;
        if found.iter().any(|logit| !logit.is_finite()) {
            return Err(not_finite(network));
        }
        let behind = known + end - start;
        let activity: Vec<Vec<f32>> =
            found.chunks_exact(factor * speakers).take(behind).map(|of| activity(of, speakers)).collect();
        cache.add(input.chunks_exact(width).take(behind).skip(known), &activity);
        let frames = (end * factor).min(count) - start * factor;
        each(&found[known * factor * speakers..][..frames * speakers])?;
    }
    Ok(())
}

fn not_finite(network: &Nemotron) -> StageError {
    let path = network.file().to_path_buf();
    let reason = "what it computes is not finite".to_owned();
    models::Error::Files(formats::Error::Invalid { path, reason }).into()
}

/// How likely each speaker speaks in an encoder frame: the mean over the frames of the
/// spectrogram.
fn activity(logits: &[f32], speakers: usize) -> Vec<f32> {
    let frames = (logits.len() / speakers) as f32;
    let of = |speaker: usize| {
        let logits = logits.iter().skip(speaker).step_by(speakers);
        logits.map(|logit| 1.0 / (1.0 + (-logit).exp())).sum::<f32>() / frames
    };
    (0..speakers).map(of).collect()
}

/// The spectrogram of these frames.
fn spectrogram(pcm: &Pcm, mel: &NemoMel, first: usize, end: usize) -> Result<Vec<f32>, StageError> {
    if first >= end {
        return Ok(Vec::new());
    }
    let mut samples = vec![0.0; (end - 1 - first) * HOP + N_FFT + 1];
    let start = (first * HOP) as i64 - NemoMel::BEFORE as i64;
    let before = (-start).max(0) as usize;
    pcm.read(start + before as i64, &mut samples[before..])?;
    Ok(mel.logarithms(&samples, (pcm.len() as i64 - start) as usize))
}

/// Adds the voices of a chunk, whose first frame is `first`.
fn add_voices(
    pcm: &Pcm,
    encoder: &VoiceEncoder,
    mel: &LogMel,
    first: usize,
    masks: &[u8],
    voices: &mut [Voice],
) -> Result<(), StageError> {
    let mut parts = Parts::default();
    let mut sound = None;
    for (speaker, voice) in voices.iter().enumerate() {
        let bit = 1 << speaker;
        let of = |is: &dyn Fn(u8) -> bool| -> Vec<usize> {
            (0..masks.len()).filter(|frame| is(masks[*frame])).collect()
        };
        let alone = of(&|frame| frame == bit);
        let is_enough = alone.len() as f32 * FRAME_SECONDS >= ENOUGH_ALONE;
        let frames = if is_enough { alone } else { of(&|frame| frame & bit != 0) };
        if frames.is_empty() || voice.seconds >= ENOUGH_SPEECH {
            continue;
        }
        // Speech under another's counts as short, however long it is.
        let seconds = frames.len() as f32 * FRAME_SECONDS;
        let seconds = if is_enough { seconds } else { seconds.min(ENOUGH_ALONE) };
        if sound.is_none() {
            let mut samples = vec![0.0; masks.len() * HOP + N_FFT];
            pcm.read((first * HOP) as i64 - (N_FFT / 2) as i64, &mut samples)?;
            sound = Some(energies(mel, &samples));
        }
        if let Some(sound) = &sound {
            let (window, speaker, vector) = (0, speaker as u8, Vec::new());
            let utterance = Utterance { window, speaker, frames: 0..masks.len(), seconds, vector };
            parts.add(utterance, &frames, sound);
        }
    }
    for heard in parts.encode(encoder, PARTS_TOGETHER)? {
        let voice = &mut voices[usize::from(heard.speaker)];
        voice.sum.resize(heard.vector.len(), 0.0);
        voice.sum.iter_mut().zip(&heard.vector).for_each(|(sum, x)| *sum += heard.seconds * x);
        voice.seconds += heard.seconds;
    }
    Ok(())
}

/// Who speaks when. Of more speakers than `bounds` allow, those whose voices are most alike
/// become one; more than the network heard there can't be. `seconds` is the recording's
/// length.
pub fn diarize(heard: &NemotronHeard, seconds: f64, bounds: Bounds) -> Diarization {
    let (people, centres) = people(heard, bounds.max.max(1));
    let mut turns = turns(&heard.frames, &people, seconds);
    turns.sort_by_key(|turn| (turn.span.start, turn.speaker));
    number_by_appearance(turns, Vec::new(), centres, VoiceEncoder::NAME)
}

/// Which person each speaker is, at most so many, and how each sounds.
fn people(heard: &NemotronHeard, most: usize) -> (Vec<usize>, Vec<Vec<f32>>) {
    let mut people: Vec<usize> = (0..heard.voices.len()).collect();
    let mut sums: Vec<Vec<f32>> = heard.voices.iter().map(|voice| voice.sum.clone()).collect();
    let product = |a: &[f32], b: &[f32]| {
        let [mut a, mut b] = [a.to_vec(), b.to_vec()];
        normalise(&mut a);
        normalise(&mut b);
        a.iter().zip(&b).map(|(x, y)| x * y).sum::<f32>()
    };
    let speaks = |speaker: usize| heard.frames.iter().any(|frame| frame & (1 << speaker) != 0);
    let mut left: Vec<usize> = (0..heard.voices.len()).filter(|speaker| speaks(*speaker)).collect();
    while left.len() > most {
        let pairs = left.iter().flat_map(|a| left.iter().filter(move |b| a < *b).map(move |b| (*a, *b)));
        let alike =
            pairs.max_by(|x, y| product(&sums[x.0], &sums[x.1]).total_cmp(&product(&sums[y.0], &sums[y.1])));
        let Some((kept, gone)) = alike else { break };
        let other = std::mem::take(&mut sums[gone]);
        let width = other.len().max(sums[kept].len());
        sums[kept].resize(width, 0.0);
        sums[kept].iter_mut().zip(&other).for_each(|(sum, x)| *sum += x);
        people.iter_mut().filter(|person| **person == gone).for_each(|person| *person = kept);
        left.retain(|speaker| *speaker != gone);
    }
    (people, sums)
}

/// The turns of each person.
fn turns(frames: &[u8], people: &[usize], seconds: f64) -> Vec<Turn> {
    let at =
        |frame: usize| Time::from_seconds((frame as f64 * HOP as f64 / f64::from(SAMPLE_RATE)).min(seconds));
    let mut turns = Vec::new();
    for person in 0..people.len() {
        let bits: u8 = (0..people.len()).filter(|speaker| people[*speaker] == person).map(|it| 1 << it).sum();
        let mut first = 0;
        for run in frames.chunk_by(|a, b| (a & bits != 0) == (b & bits != 0)) {
            if run[0] & bits != 0 {
                let span = Span::new(at(first), at(first + run.len()));
                turns.push(Turn { span, speaker: person, channel: None });
            }
            first += run.len();
        }
    }
    turns
}
