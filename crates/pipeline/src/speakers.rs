//! Stands in for telling speakers apart until that exists: takes and gives
//! back the memory that it is predicted to need, so that its place in the
//! plan, on the timeline and on the ladder is real.

use candle_core::{DType, Tensor};
use memory::{Demand, Footprint, Scope, Stage};

use crate::StageError;
use crate::device_context::DeviceContext;
use crate::trouble::{Broken, during};

/// `batch` windows of ten seconds at a time.
pub fn stand_in(context: &DeviceContext, batch: u32) -> Result<(), Broken> {
    let footprint = Footprint::speakers(context.device.device().kind());
    let windows = u64::from(batch.max(1));
    let (mut model, weights) = hold(context, Stage::SpeakerModel, footprint.weights)?;
    model.loaded();
    let (mut diarize, buffers) = hold(context, Stage::Diarize, footprint.work(windows))?;
    diarize.batch();
    diarize.leave(|| drop(buffers));
    let (align, buffers) = hold(context, Stage::Align, footprint.encoder)?;
    align.leave(|| drop(buffers));
    model.leave(|| drop(weights));
    Ok(())
}

/// Reserves and takes `bytes`.
fn hold(context: &DeviceContext, stage: Stage, bytes: u64) -> Result<(Scope, Tensor), Broken> {
    let scope = during(stage, Scope::enter(&context.device, stage, Demand::from(bytes)))?;
    let count = (bytes / DType::F32.size_in_bytes() as u64) as usize;
    let tensor = Tensor::ones(count, DType::F32, &context.chosen.device).map_err(StageError::from);
    Ok((scope, during(stage, tensor)?))
}
