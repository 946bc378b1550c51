use candle_core::Device;
use memory::ladder::{LadderSettings, Processor};
use memory::{Demand, Footprint, Scope, Stage, Tracker};
use transcript::Time;
use wire::{Job, SpeakerCount};

use super::{Bounds, Channel, Diarization, Heard, Networks, diarize, diarize_channels, listen};
use crate::device_context::DeviceContext;
use crate::progress::Reporter;
use crate::sound::Sound;
use crate::trouble::{Broken, during};
use crate::{Control, Emit};

/// What clustering and assigning take: a matrix of distances, and one vector per
/// utterance.
const DECIDING_BYTES: u64 = 16 << 20;

/// What is heard in `sound`, found where the ladder's settings say, on as many windows of
/// ten seconds at a time as they say.
pub fn hear(
    context: &DeviceContext,
    settings: &LadderSettings,
    job: &Job,
    sound: &Sound,
    control: &Control,
    emit: Emit,
) -> Result<Heard, Broken> {
    let (tracker, device): (&Tracker, &Device) = match settings.speaker_place {
        Processor::Cpu => (&context.host, &Device::Cpu),
        Processor::Gpu => (&context.device, &context.chosen.device),
    };
    let footprint = Footprint::speakers(tracker.device().kind());
    let pcm = &sound.recording.pcm;
    let duration = Time::from_seconds(pcm.seconds());

    let demand = Demand::from(footprint.weights);
    let mut model = during(Stage::SpeakerModel, Scope::enter(tracker, Stage::SpeakerModel, demand))?;
    let networks = during(Stage::SpeakerModel, Networks::bundled(device))?;
    model.loaded();

    let windows = u64::from(settings.speaker_batch.max(1));
    let demand = Demand::from(footprint.work(windows));
    let mut scope = during(Stage::Diarize, Scope::enter(tracker, Stage::Diarize, demand))?
        .trim_every(job.memory.trim_every);
    let mut reporter = Reporter::new(Stage::Diarize, Some(duration), emit);
    let mut heard = Heard::default();
    let listened = listen(pcm, &networks, windows as usize, &mut heard, &mut |sample| {
        control.worked();
        scope.batch();
        reporter.at(Time::from_seconds(sample as f64 / f64::from(audio::SAMPLE_RATE)));
        if control.is_cancelled() { Err(models::Error::Interrupted.into()) } else { Ok(()) }
    });
    during(Stage::Diarize, listened)?;
    scope.leave(|| ());
    model.leave(|| drop(networks));
    Ok(heard)
}

/// Who speaks when in a recording of so many seconds, of which each channel was listened to,
/// or all of them mixed or one alone: then it has no number.
pub fn decide(
    context: &DeviceContext,
    job: &Job,
    heard: Vec<(Option<u32>, Heard)>,
    seconds: f64,
) -> Result<Diarization, Broken> {
    let scope = during(Stage::Align, Scope::enter(&context.host, Stage::Align, DECIDING_BYTES))?;
    let bounds = bounds(job.speaker_count);
    let found = match heard.as_slice() {
        [(None, heard)] => diarize(heard, seconds, bounds),
        _ => {
            let numbered =
                |(number, heard): (Option<u32>, Heard)| number.map(|number| Channel { number, heard });
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
