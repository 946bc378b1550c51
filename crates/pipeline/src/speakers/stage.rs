use candle_core::Device;
use formats::speaker_footprint;
use memory::ladder::{LadderSettings, Processor};
use memory::{Demand, Scope, Stage, Tracker};
use transcript::Time;
use wire::{Event, FilePath, Job, KnownVoice, SpeakerCount};

use super::{AnyHeard, Bounds, Channel, Diarization, SpeakerNetworks, diarize_channels, names};
use crate::device_context::DeviceContext;
use crate::progress::Reporter;
use crate::sound::Sound;
use crate::trouble::{Broken, during};
use crate::{Control, Emit};

/// Seconds of a recording after which there is a first guess at who speaks; the next are made
/// each time twice as much was heard, so that all of them take no longer than the end.
const FIRST_GUESS: f64 = 20.0;

/// What is heard in `sound`, found where the ladder's settings say, on as many windows of
/// ten seconds at a time as they say. Where there are `voices`, the text is told who speaks as far
/// as is known meanwhile, with the names of these.
pub fn hear(
    context: &DeviceContext,
    settings: &LadderSettings,
    job: &Job,
    sound: &Sound,
    voices: Option<&[KnownVoice]>,
    control: &Control,
    emit: Emit,
) -> Result<AnyHeard, Broken> {
    let (tracker, device): (&Tracker, &Device) = match settings.speaker_place {
        Processor::Cpu => (&context.host, &Device::Cpu),
        Processor::Gpu => (&context.device, &context.chosen.device),
    };
    let folder = job.speaker_model.as_ref().map(FilePath::as_path);
    let footprint = speaker_footprint(folder, tracker.device().kind());
    let pcm = &sound.recording.pcm;
    let duration = Time::from_seconds(pcm.seconds());

    let demand = Demand::from(footprint.weights);
    let mut model = during(Stage::SpeakerModel, Scope::enter(tracker, Stage::SpeakerModel, demand))?;
    let networks = during(Stage::SpeakerModel, SpeakerNetworks::open(folder, device))?;
    model.loaded();

    let windows = u64::from(settings.speaker_batch.max(1));
    let demand = Demand::from(footprint.work(windows));
    let mut scope = during(Stage::Diarize, Scope::enter(tracker, Stage::Diarize, demand))?
        .trim_every(job.memory.trim_every);
    let mut reporter = Reporter::new(Stage::Diarize, Some(duration), emit);
    let mut next_guess = FIRST_GUESS;
    let heard = networks.listen(pcm, windows as usize, &mut |sample, so_far| {
        control.worked();
        scope.batch();
        let seconds = sample as f64 / f64::from(audio::SAMPLE_RATE);
        reporter.at(Time::from_seconds(seconds));
        if let Some(voices) = voices
            && seconds >= next_guess
            && sample < pcm.len()
            && let Ok(_room) = context.host.budget().reserve("guess", so_far.bytes)
        {
            next_guess = 2.0 * seconds;
            // Not all who are expected need have spoken.
            let found = (so_far.diarize)(Bounds { min: 1, ..bounds(job.speaker_count) });
            let names = names(&found.voices, &found.network, voices);
            reporter.emit(Event::Turns { turns: names.of_turns(&found.turns) });
        }
        if control.is_cancelled() { Err(models::Error::Interrupted.into()) } else { Ok(()) }
    });
    let heard = during(Stage::Diarize, heard)?;
    scope.leave(|| ());
    model.leave(|| drop(networks));
    Ok(heard)
}

/// Who speaks when in a recording of so many seconds, of which each channel was listened to,
/// or all of them mixed or one alone: then it has no number.
pub fn decide(
    context: &DeviceContext,
    job: &Job,
    heard: Vec<(Option<u32>, AnyHeard)>,
    seconds: f64,
) -> Result<Diarization, Broken> {
    let bytes: u64 = heard.iter().map(|(_, heard)| heard.deciding_bytes()).sum();
    let scope = during(Stage::Align, Scope::enter(&context.host, Stage::Align, bytes))?;
    let bounds = bounds(job.speaker_count);
    let found = match heard.as_slice() {
        [(None, heard)] => heard.diarize(seconds, bounds),
        _ => {
            let numbered =
                |(number, heard): (Option<u32>, AnyHeard)| number.map(|number| Channel { number, heard });
            let channels: Vec<Channel> = heard.into_iter().filter_map(numbered).collect();
            let found = diarize_channels(&channels, seconds, bounds);
            scope.leave(|| drop(channels));
            return Ok(found);
        }
    };
    scope.leave(|| drop(heard));
    Ok(found)
}

/// The number of speakers that the user expects.
fn bounds(count: SpeakerCount) -> Bounds {
    let min = count.min.unwrap_or(1).max(1) as usize;
    let max = count.max.map_or(usize::MAX, |max| max as usize);
    Bounds { min, max: max.max(min) }
}
