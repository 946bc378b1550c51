//! SettingStatus in for telling speakers apart until that exists: takes and gives
//! back the memory that it is predicted to need, so that its place in the
//! plan, on the timeline and on the ladder is real.

use candle_core::{DType, Device, Tensor};
use memory::ladder::{LadderSettings, Processor};
use memory::{Demand, Footprint, Scope, Stage, Tracker};

use crate::StageError;
use crate::device_context::DeviceContext;
use crate::trouble::{Broken, during};

/// Works where the ladder's settings say, on as many windows of ten seconds at
/// a time as they say.
pub fn stand_in(context: &DeviceContext, settings: &LadderSettings) -> Result<(), Broken> {
    let on = match settings.speaker_place {
        Processor::Cpu => Target { tracker: &context.host, device: &Device::Cpu },
        Processor::Gpu => Target { tracker: &context.device, device: &context.chosen.device },
    };
    let footprint = Footprint::speakers(on.tracker.device().kind());
    let windows = u64::from(settings.speaker_batch.max(1));
    let (mut model, weights) = hold(on, Stage::SpeakerModel, footprint.weights)?;
    model.loaded();
    let (mut diarize, buffers) = hold(on, Stage::Diarize, footprint.work(windows))?;
    diarize.batch();
    diarize.leave(|| drop(buffers));
    let (align, buffers) = hold(on, Stage::Align, footprint.encoder)?;
    align.leave(|| drop(buffers));
    model.leave(|| drop(weights));
    Ok(())
}

/// A device, and who watches its memory.
#[derive(Clone, Copy)]
struct Target<'a> {
    tracker: &'a Tracker,
    device: &'a Device,
}

/// Reserves and takes `bytes`.
fn hold(on: Target, stage: Stage, bytes: u64) -> Result<(Scope, Tensor), Broken> {
    let scope = during(stage, Scope::enter(on.tracker, stage, Demand::from(bytes)))?;
    let count = (bytes / DType::F32.size_in_bytes() as u64) as usize;
    let tensor = Tensor::ones(count, DType::F32, on.device).map_err(StageError::from);
    Ok((scope, during(stage, tensor)?))
}
