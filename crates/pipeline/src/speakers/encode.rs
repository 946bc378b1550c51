//! How one person sounds, of a recording of them: what a voice is recognised by later.

use std::ops::Range;

use audio::{ChannelMode, Pcm, SAMPLE_RATE};
use candle_core::Device;
use formats::speaker_footprint;
use memory::{Demand, Scope, Stage};
use models::speakers::PyanNet;
use transcript::Span;
use wire::{DeviceChoice, EncodeVoice, EncodedVoice, ErrorCode, Event, Failure, FilePath};

use super::listen::normalise;
use super::networks::VoicePart;
use super::{Bounds, SpeakerNetworks};
use crate::device_context::DeviceContext;
use crate::trouble::{Broken, during};
use crate::{Control, StageError, job, sound};

/// Bands of the spectrogram that preparing the sound makes; no model listens to it.
const MEL_BINS: usize = 80;
/// A sample of a voice has at least this much speech, in seconds.
const LEAST_SPEECH: f32 = 1.6;
/// More speech than this of one recording changes a voice no more, in seconds.
const ENOUGH_SPEECH: f32 = 120.0;

/// The voice in a recording, or in parts of it, on the CPU, a window at a time.
pub fn encode_voice(
    context: &mut Option<DeviceContext>,
    asked: &EncodeVoice,
    control: &Control,
) -> Result<Event, Failure> {
    let result = encode(context, asked, control);
    if let Some(context) = context {
        context.end_job();
        // Nothing of this belongs to the timeline of the next job.
        context.take_marks();
    }
    let voice = result.map_err(|broken| broken.error.failure(&asked.job))?;
    if voice.seconds < LEAST_SPEECH {
        let text = format!(
            "Only {:.1} s of speech by one person alone was found, too little to recognize a voice.",
            voice.seconds
        );
        return Err(Failure::new(ErrorCode::NoVoice, text)
            .file(asked.job.file.clone())
            .remedy("Choose a recording in which the person speaks for at least ten seconds."));
    }
    Ok(Event::Voice { voice: Box::new(voice) })
}

fn encode(
    context: &mut Option<DeviceContext>,
    asked: &EncodeVoice,
    control: &Control,
) -> Result<EncodedVoice, Broken> {
    let job = &asked.job;
    during(Stage::Preprocess, sound::probe(job))?;
    let at = during(Stage::Preprocess, job::take_desk(context, DeviceChoice::Cpu, job))?;
    at.begin_job();
    let prepared = sound::prepare(job, MEL_BINS, ChannelMode::Mix, &mut |_, _| {
        control.worked();
        !control.is_cancelled()
    });
    let pcm = during(Stage::Preprocess, prepared)?.pcm;
    let folder = job.speaker_model.as_ref().map(FilePath::as_path);
    let footprint = speaker_footprint(folder, at.host.device().kind());
    let demand = Demand::from(footprint.weights);
    let mut model = during(Stage::SpeakerModel, Scope::enter(&at.host, Stage::SpeakerModel, demand))?;
    let networks = during(Stage::SpeakerModel, SpeakerNetworks::open(folder, &Device::Cpu))?;
    model.loaded();
    let demand = Demand::from(footprint.work(1));
    let scope = during(Stage::Diarize, Scope::enter(&at.host, Stage::Diarize, demand))?;
    let mut reached = |_| {
        control.worked();
        if control.is_cancelled() { Err(models::Error::Interrupted.into()) } else { Ok(()) }
    };
    let voice = if asked.spans.is_empty() {
        voice_of_all(&pcm, &networks, &mut reached)
    } else {
        voice_of_parts(&pcm, &networks, &asked.spans, &mut reached)
    };
    let voice = during(Stage::Diarize, voice)?;
    scope.leave(|| ());
    model.leave(|| drop(networks));
    Ok(voice)
}

/// The voice of the person who speaks most.
fn voice_of_all(
    pcm: &Pcm,
    networks: &SpeakerNetworks,
    reached: &mut dyn FnMut(u64) -> Result<(), StageError>,
) -> Result<EncodedVoice, StageError> {
    let heard = networks.listen(pcm, 1, &mut |sample, _| reached(sample))?;
    let found = heard.diarize(pcm.seconds(), Bounds { min: 1, max: usize::MAX });
    let mut seconds = vec![0.0f32; found.voices.len()];
    for turn in &found.turns {
        seconds[turn.speaker] += turn.span.length().seconds() as f32;
    }
    let total: f32 = seconds.iter().sum();
    let main = (0..seconds.len()).max_by(|a, b| seconds[*a].total_cmp(&seconds[*b]));
    let (seconds, vector) = main.map_or((0.0, Vec::new()), |main| {
        (seconds[main], found.voices.get(main).cloned().unwrap_or_default())
    });
    let network = networks.voices_name().to_owned();
    Ok(EncodedVoice { network, vector, seconds, seconds_of_others: total - seconds })
}

/// The voice of the person who speaks in these parts of the recording.
fn voice_of_parts(
    pcm: &Pcm,
    networks: &SpeakerNetworks,
    parts: &[Span],
    reached: &mut dyn FnMut(u64) -> Result<(), StageError>,
) -> Result<EncodedVoice, StageError> {
    let mut listener = networks.part_listener(pcm);
    let mut sum: Vec<f32> = Vec::new();
    let (mut seconds, mut seconds_of_others) = (0.0, 0.0);
    for window in parts.iter().flat_map(|part| windows(*part, pcm.len())) {
        let parts = listener.hear(&window)?;
        let by = |speaker: u8| parts.iter().filter(move |one| one.speaker == speaker);
        let length = |speaker: u8| by(speaker).map(|one: &VoicePart| one.seconds).sum::<f32>();
        let speakers = 0..PyanNet::SPEAKERS as u8;
        let Some(main) = speakers.clone().max_by(|a, b| length(*a).total_cmp(&length(*b))) else { continue };
        for part in by(main) {
            sum.resize(part.vector.len(), 0.0);
            let weighted = part.vector.iter().map(|x| x * part.seconds);
            sum.iter_mut().zip(weighted).for_each(|(sum, x)| *sum += x);
        }
        seconds += length(main);
        seconds_of_others += speakers.filter(|other| *other != main).map(length).sum::<f32>();
        reached(window.end)?;
        if seconds >= ENOUGH_SPEECH {
            break;
        }
    }
    normalise(&mut sum);
    Ok(EncodedVoice { network: networks.voices_name().to_owned(), vector: sum, seconds, seconds_of_others })
}

/// A part in windows of ten seconds at most, in samples of the recording.
fn windows(part: Span, samples: u64) -> impl Iterator<Item = Range<u64>> {
    let at = |seconds: f64| ((seconds * f64::from(SAMPLE_RATE)) as u64).min(samples);
    let (start, end) = (at(part.start.seconds()), at(part.end.seconds()));
    let step = PyanNet::WINDOW as u64;
    (start..end).step_by(step as usize).map(move |start| start..(start + step).min(end))
}
