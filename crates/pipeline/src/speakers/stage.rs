use candle_core::Device;
use formats::speaker_footprint;
use memory::ladder::{LadderSettings, Processor};
use memory::{Demand, Scope, Stage, Tracker};
use transcript::Time;
use wire::{FilePath, Job, SpeakerCount};

use super::{AnyHeard, Bounds, Channel, Diarization, SpeakerNetworks, diarize_channels};
use crate::device_context::DeviceContext;
use crate::progress::Reporter;
use crate::sound::Sound;
use crate::trouble::{Broken, during};
use crate::{Control, Emit};

/// What is heard in `sound`, found where the ladder's settings say, on as many windows of
/// ten seconds at a time as they say.
pub fn hear(
    context: &DeviceContext,
    settings: &LadderSettings,
    job: &Job,
    sound: &Sound,
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
    let heard = networks.listen(pcm, windows as usize, &mut |sample| {
        control.worked();
        scope.batch();
        reporter.at(Time::from_seconds(sample as f64 / f64::from(audio::SAMPLE_RATE)));
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
