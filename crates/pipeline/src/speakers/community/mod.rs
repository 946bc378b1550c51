//! The pipeline of pyannote's `speaker-diarization-community-1`: a window of ten
//! seconds every second, a vector for each of its speakers, their clustering
//! (`clusters`), and turns by what all windows that hear a moment say (`turns`).
//!
//! It differs from pyannote's in four ways. The convolutions of the voice network take
//! a window once, not once for each speaker, which gives the same vectors. Where a
//! number of speakers is asked for that was not found, the clusters' first centres are
//! chosen without chance. More speakers at once than there are in all are not invented.
//! And recordings of more than about an hour are clustered part by part first.

mod clusters;
mod turns;
mod vbx;

use audio::{Fbank, Pcm, SAMPLE_RATE};
use candle_core::Device;
use formats::SpeakerFiles;
use models::speakers::{Plda, PyanNet, WeSpeaker};

use transcript::speakers::Turn;

use super::Bounds;
use super::listen::{mask, silence_from};
use super::turns::{Diarization, number_by_appearance};
use crate::StageError;

/// From one window to the next, in samples.
const STEP: usize = SAMPLE_RATE as usize;
/// Frames without others from which on a voice is taken from them alone: those of the
/// shortest sound that the voice network takes, of 400 samples.
const LEAST_ALONE: usize = 2;

/// The networks of a speaker model, on one device.
#[derive(Debug)]
pub struct CommunityNetworks {
    segmentation: PyanNet,
    voices: WeSpeaker,
    plda: Plda,
}

impl CommunityNetworks {
    /// Reads a model's files.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another kind of model, or the device has no
    /// room for the networks.
    pub fn open(files: &SpeakerFiles, device: &Device) -> Result<Self, models::Error> {
        let segmentation = PyanNet::open(&files.segmentation, device)?;
        let voices = WeSpeaker::open(&files.embedding, device)?;
        let plda = Plda::open(&files.transform, &files.plda)?;
        if plda.voice_width() != voices.width() {
            let reason = format!(
                "it is for vectors of {} numbers, the model's have {}",
                plda.voice_width(),
                voices.width()
            );
            return Err(models::Error::Files(formats::Error::Invalid {
                path: files.transform.clone(),
                reason,
            }));
        }
        Ok(Self { segmentation, voices, plda })
    }

    /// What compares the voices.
    pub fn plda(&self) -> &Plda {
        &self.plda
    }

    /// Names the network of the voices: vectors of another can't be compared with its.
    pub fn voices_name(&self) -> &str {
        self.voices.name()
    }
}

/// What was heard in a whole recording.
#[derive(Debug, Default)]
pub struct CommunityHeard {
    /// Per window and frame, who speaks: a bit for each of the window's speakers.
    pub windows: Vec<Vec<u8>>,
    /// The speakers of the windows, window after window.
    pub voices: Vec<LocalVoice>,
}

/// A speaker of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalVoice {
    /// The window's number.
    pub window: usize,
    /// The speaker's bit in it, 0 to 2.
    pub speaker: u8,
    /// Frames in which no other speaker is heard.
    pub alone: usize,
    /// How the speaker sounds; of no particular length.
    pub vector: Vec<f32>,
}

/// How many windows a recording of so many samples has: the last is filled with
/// silence.
pub fn window_count(samples: u64) -> usize {
    (samples.saturating_sub(PyanNet::WINDOW as u64).div_ceil(STEP as u64) + 1) as usize
}

/// What [`diarize`] takes of memory: distances of the voices that are compared at once,
/// and of each voice its features and what it has to do with each speaker.
pub fn deciding_bytes(heard: &CommunityHeard) -> u64 {
    const PER_VOICE: u64 = 8 << 10;
    let (voices, block) = (heard.voices.len() as u64, clusters::BLOCK as u64);
    4 * voices.min(block).pow(2) + PER_VOICE * voices
}

/// Listens to the windows from `heard` on, `batch` at a time. `reached` is told the
/// sample behind each batch.
///
/// # Errors
/// What `reached` answers, or where a network or the recording's file fails.
pub fn listen(
    pcm: &Pcm,
    networks: &CommunityNetworks,
    batch: usize,
    heard: &mut CommunityHeard,
    reached: &mut dyn FnMut(u64, &CommunityHeard) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let mut fbank = Fbank::new(WeSpeaker::MEL_BINS);
    let count = window_count(pcm.len());
    let mut samples = vec![vec![0.0; PyanNet::WINDOW]; batch.clamp(1, count)];
    while heard.windows.len() < count {
        let first = heard.windows.len();
        let taken = samples.len().min(count - first);
        for (window, samples) in (first..).zip(&mut samples[..taken]) {
            pcm.read((window * STEP) as i64, samples)?;
        }
        hear(networks, &mut fbank, &samples[..taken], heard, &mut |window, heard| {
            reached((((window + 1) * STEP) as u64).min(pcm.len()), heard)
        })?;
    }
    Ok(())
}

/// Adds windows of [`PyanNet::WINDOW`] samples to what was heard.
fn hear(
    networks: &CommunityNetworks,
    fbank: &mut Fbank,
    windows: &[Vec<f32>],
    heard: &mut CommunityHeard,
    reached: &mut dyn FnMut(usize, &CommunityHeard) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let inputs: Vec<&[f32]> = windows.iter().map(Vec::as_slice).collect();
    let classes = networks.segmentation.forward(&inputs)?.flatten_all()?.to_vec1::<f32>()?;
    let per_window = PyanNet::FRAMES * PyanNet::CLASSES.len();
    for (samples, classes) in windows.iter().zip(classes.chunks_exact(per_window)) {
        let window = heard.windows.len();
        let mask = mask(classes);
        let voices = local_voices(networks, fbank, samples, &mask, window)?;
        heard.voices.extend(voices);
        heard.windows.push(mask);
        reached(window, heard)?;
    }
    Ok(())
}

fn local_voices(
    networks: &CommunityNetworks,
    fbank: &mut Fbank,
    samples: &[f32],
    mask: &[u8],
    window: usize,
) -> Result<Vec<LocalVoice>, StageError> {
    let weights =
        |is: &dyn Fn(u8) -> bool| -> Vec<f32> { mask.iter().map(|frame| f32::from(is(*frame))).collect() };
    let mut voices = Vec::new();
    let mut masks = Vec::new();
    for speaker in 0..PyanNet::SPEAKERS as u8 {
        let bit = 1 << speaker;
        if mask.iter().all(|frame| frame & bit == 0) {
            continue;
        }
        let alone = mask.iter().filter(|frame| **frame == bit).count();
        let counts: &dyn Fn(u8) -> bool =
            if alone > LEAST_ALONE { &move |frame| frame == bit } else { &move |frame| frame & bit != 0 };
        masks.push(weights(counts));
        voices.push(LocalVoice { window, speaker, alone, vector: Vec::new() });
    }
    // Silence has no voices.
    if !voices.is_empty() {
        let frames = networks.voices.frames(&fbank.centred(samples))?;
        let vectors = networks.voices.vectors(&frames, &masks)?;
        voices.iter_mut().zip(vectors).for_each(|(voice, vector)| voice.vector = vector);
    }
    Ok(voices)
}

/// Decides who is who and when they speak. `seconds` is the recording's length.
/// `network` names what made the voices.
pub fn diarize(
    heard: &CommunityHeard,
    plda: &Plda,
    network: &str,
    seconds: f64,
    bounds: Bounds,
) -> Diarization {
    if heard.voices.is_empty() {
        return Diarization::default();
    }
    let (mut turns, mut exclusive, centres) = pyannote_turns(heard, plda, seconds, bounds);
    // A speaker who was not found has no voice and would only puzzle.
    turns.retain(|turn| turn.speaker < centres.len());
    exclusive.retain(|turn| turn.speaker < centres.len());
    number_by_appearance(turns, exclusive, centres, network)
}

/// All turns as pyannote's pipeline finds them, the same with one speaker at a time, and
/// how each speaker sounds. Speakers behind the last who has a voice are those that
/// windows count beyond the ones that were found.
pub fn pyannote_turns(
    heard: &CommunityHeard,
    plda: &Plda,
    seconds: f64,
    bounds: Bounds,
) -> (Vec<Turn>, Vec<Turn>, Vec<Vec<f32>>) {
    let found = clusters::assign(&heard.voices, plda, bounds);
    let (turns, exclusive) = turns::turns(heard, &found, bounds.max, seconds);
    (turns, exclusive, found.centres)
}

/// A window's voice for enrolment: as [`listen`], of one stretch of sound that is no
/// longer than a window.
pub(super) fn hear_part(
    pcm: &Pcm,
    networks: &CommunityNetworks,
    part: &std::ops::Range<u64>,
) -> Result<Vec<LocalVoice>, StageError> {
    let mut samples = vec![0.0; PyanNet::WINDOW];
    pcm.read(part.start as i64, &mut samples)?;
    let length = (part.end - part.start).min(PyanNet::WINDOW as u64) as usize;
    samples[length..].fill(0.0);
    let classes = networks.segmentation.forward(&[&samples])?.flatten_all()?.to_vec1::<f32>()?;
    let mut mask = mask(&classes);
    silence_from(length, &mut mask);
    local_voices(networks, &mut Fbank::new(WeSpeaker::MEL_BINS), &samples, &mask, 0)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use random_models::corpus;

    use super::*;

    /// Clusters and responsibilities of made-up voices, against scipy's and pyannote's.
    #[test]
    fn made_up_voices_are_clustered_as_by_the_reference() {
        let folder = corpus::bundled().join("reference/speakers/community");
        let golden = candle_core::safetensors::load(folder.join("golden.safetensors"), &Device::Cpu).unwrap();
        let files = SpeakerFiles::find(&folder.join("model")).unwrap().unwrap();
        let plda = Plda::open(&files.transform, &files.plda).unwrap();
        let vectors = golden["vbx_vectors"].to_vec2::<f32>().unwrap();
        let mut directions = vectors.clone();
        directions.iter_mut().for_each(|vector| super::super::listen::normalise(vector));
        let numbers = |name: &str| -> Vec<usize> {
            golden[name]
                .to_dtype(candle_core::DType::I64)
                .unwrap()
                .to_vec1::<i64>()
                .unwrap()
                .iter()
                .map(|x| *x as usize)
                .collect()
        };
        for (threshold, name) in [(0.5, "clusters_0.5"), (0.6, "clusters_0.6"), (0.8, "clusters_0.8")] {
            assert_eq!(clusters::ahc(&directions, threshold), numbers(name), "{threshold}");
        }
        let features: Vec<_> = vectors.iter().map(|vector| plda.features(vector)).collect();
        let found = vbx::responsibilities(&features, plda.between(), &numbers("clusters_0.6"));
        for (found, expected) in found
            .of_vectors
            .concat()
            .iter()
            .zip(golden["vbx_gamma"].flatten_all().unwrap().to_vec1::<f64>().unwrap())
        {
            assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
        }
        for (found, expected) in found.shares.iter().zip(golden["vbx_pi"].to_vec1::<f64>().unwrap()) {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
    }
}
