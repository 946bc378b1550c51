//! Models are adapted by engines that may die, and that make room for others' recordings.

use std::time::Duration;

use memory::Stage;
use memory::death::Death;
use memory::ladder::{LadderState, Processor, Step};
use wire::{Adapt, Adapted, ErrorCode, Event, Failure};

use crate::engine::{Engine, EngineOptions};
use crate::jobs::{step_down_in, top};
use crate::runs::Runs;

/// Deaths of engines for other reasons than memory, the last of which ends the work.
const MOST_CRASHES: u32 = 3;
/// Between two looks at whether somebody waits for the device.
const LOOK: Duration = Duration::from_secs(1);

/// What is told of an adaptation besides its engines' events.
#[derive(Debug)]
pub enum AdaptationNews {
    /// An event of the engine at work.
    Event(Box<Event>),
    /// Another program computes on the device; this one goes on afterwards.
    Waits {
        /// The device.
        device: String,
    },
    /// An engine died and another one goes on from the last checkpoint.
    Replaced {
        /// Why it died.
        why: Failure,
    },
}

/// Has engines work at an adaptation until one comes through. One that dies is replaced, and goes on
/// from the last checkpoint; where it died of memory, with half as many windows together, at last on
/// the CPU. Between two checkpoints the device is left to a recording that waits for it. Dropping the
/// future ends the engine; the same adaptation can be asked for again and goes on.
///
/// # Errors
/// `OutOfMemory` where no step was left, `EngineFailed` for an engine that died again and again, and
/// what is wrong with model, recordings or output.
pub async fn adapt(
    options: &EngineOptions,
    mut asked: Adapt,
    mut tell: impl FnMut(AdaptationNews),
) -> Result<Adapted, Failure> {
    let runs = Runs::of_this_user();
    let mut crashes = 0;
    loop {
        let engine = Engine::start(options).await?;
        let device = engine.device(asked.job.device);
        let waiting = |_| tell(AdaptationNews::Waits { device: device.clone() });
        // A folder that can't be used is no reason not to work.
        let lease = match &runs {
            Some(runs) => runs.lease(&device, waiting).await.ok(),
            None => None,
        };
        let mut handle = engine.adapt(asked.clone());
        let mut yields = false;
        let (mut failed, mut renews) = (None, false);
        loop {
            let event = tokio::select! {
                event = handle.next() => event,
                () = tokio::time::sleep(LOOK), if !yields => {
                    if lease.is_some() && runs.as_ref().is_some_and(|runs| runs.is_awaited(&device)) {
                        yields = true;
                        handle.cancel();
                    }
                    continue;
                }
            };
            match event {
                Some(Event::Adapted { adapted, .. }) => {
                    engine.shutdown().await;
                    return Ok(*adapted);
                }
                Some(Event::Cancelled { .. }) if yields => break,
                Some(Event::Cancelled { .. }) => {
                    return Err(Failure::new(ErrorCode::Cancelled, "Cancelled."));
                }
                Some(Event::Failed { error, .. }) => {
                    failed = Some(error);
                    break;
                }
                Some(event) => {
                    match &event {
                        Event::Ladder { state } => {
                            asked.job.resume.get_or_insert_default().ladder = Some((**state).clone());
                        }
                        Event::Rung { rung } => {
                            renews = rung.step == Step::RenewEngine;
                            asked.job.resume.get_or_insert_default().ladder = Some(rung.to.clone());
                        }
                        _ => {}
                    }
                    tell(AdaptationNews::Event(Box::new(event)));
                }
                None => {
                    failed = Some(Failure::new(ErrorCode::EngineFailed, "The engine gave no answer."));
                    break;
                }
            }
        }
        let death = engine.death();
        engine.shutdown().await;
        drop(lease);
        let Some(error) = failed else { continue };
        match death {
            None if renews => {}
            None => return Err(error),
            Some(death) => {
                if !matches!(death, Death::OutOfMemory(_)) {
                    crashes += 1;
                }
                let place = if device == "cpu" { Processor::Cpu } else { Processor::Gpu };
                if matches!(death, Death::OutOfMemory(_)) {
                    stand_on_top(&mut asked, place);
                    let Some((rung, next)) = step_down_in(Stage::Adapt, &asked.job, place) else {
                        return Err(error);
                    };
                    tell(AdaptationNews::Event(Box::new(Event::Rung { rung: Box::new(rung) })));
                    asked.job = next;
                } else if crashes >= MOST_CRASHES {
                    return Err(error);
                }
                tell(AdaptationNews::Replaced { why: error });
            }
        }
    }
}

/// Where an engine that died before it said so had begun.
fn stand_on_top(asked: &mut Adapt, place: Processor) {
    let mut settings = top(&asked.job, place).settings;
    let most = asked.job.memory.batch_size.unwrap_or(u32::MAX);
    settings.batch = asked.settings.batch.min(most).max(1);
    settings.precision = asked.settings.precision.as_str().to_owned();
    let resume = asked.job.resume.get_or_insert_default();
    resume.ladder.get_or_insert_with(|| LadderState::new(settings));
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{AdaptSettings, Job};

    #[test]
    fn an_engine_that_died_before_it_began_had_the_batch_and_precision_that_were_asked_for() {
        let settings = AdaptSettings { batch: 4, ..AdaptSettings::default() };
        let mut asked = Adapt {
            job: Job::new(1, "", "small"),
            lessons: Vec::new(),
            settings,
            remember: false,
            folder: "work".into(),
            output: "adapter".into(),
        };
        stand_on_top(&mut asked, Processor::Cpu);
        let (rung, next) = step_down_in(Stage::Adapt, &asked.job, Processor::Cpu).unwrap();
        assert_eq!((rung.step, rung.to.settings.batch), (Step::HalveBatch, 2));
        assert_eq!(rung.to.settings.precision, settings.precision.as_str());
        // Where it stands is known from then on.
        asked.job = next;
        stand_on_top(&mut asked, Processor::Cpu);
        assert_eq!(asked.job.resume.unwrap().ladder.unwrap().settings.batch, 2);
    }
}
