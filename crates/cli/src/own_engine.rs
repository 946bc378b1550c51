//! An engine for one command alone, started when it is its turn at the device.

use std::ops::ControlFlow;

use supervisor::runs::{DeviceLease, Holder, Runs};
use supervisor::{Engine, JobHandle};
use wire::notice::Message;
use wire::{ErrorCode, Event, Failure};

use crate::args::Machine;
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;

/// Starts an engine and waits until no other host uses the device. The lease
/// lasts until it is dropped; it is `None` where the user has no run folder.
pub async fn start(
    machine: &Machine,
    console: &mut Console,
    interrupt: &mut Interrupt,
) -> Result<(Engine, Option<DeviceLease>), Ended> {
    let engine = start_without_lease(machine, interrupt).await?;
    let Some(runs) = Runs::of_this_user() else { return Ok((engine, None)) };
    let device = engine.device(machine.device());
    let waiting = |holder: Holder| {
        console.info(&Message::DeviceWaiting { device: device.clone(), pid: holder.pid }.text());
    };
    // A folder that can't be used is no reason not to work.
    let lease = tokio::select! {
        lease = runs.lease(&device, waiting) => lease.ok(),
        () = interrupt.raised() => None,
    };
    if interrupt.is_raised() {
        engine.shutdown().await;
        return Err(Ended::Cancelled);
    }
    Ok((engine, lease))
}

/// As [`start`], for a command that holds the device's lease already.
pub async fn start_without_lease(machine: &Machine, interrupt: &mut Interrupt) -> Result<Engine, Ended> {
    let options = machine.engine_options(machine.wishes());
    tokio::select! {
        engine = Engine::start(&options) => Ok(engine?),
        () = interrupt.raised() => Err(Ended::Cancelled),
    }
}

/// Passes a job's events to `see` until that breaks with the result. A failed
/// job is an error, and so is one that was cancelled: an interrupt cancels the
/// job and then waits for its last event.
pub async fn follow<T>(
    mut handle: JobHandle,
    interrupt: &mut Interrupt,
    mut see: impl FnMut(Event) -> ControlFlow<Result<T, Ended>>,
) -> Result<T, Ended> {
    let mut cancelling = false;
    loop {
        let event = tokio::select! {
            event = handle.next() => event,
            () = interrupt.raised(), if !cancelling => {
                cancelling = true;
                handle.cancel();
                continue;
            }
        };
        match event {
            Some(Event::Cancelled { .. }) => return Err(Ended::Cancelled),
            Some(Event::Failed { .. }) | None if cancelling => return Err(Ended::Cancelled),
            Some(Event::Failed { error, .. }) => return Err(error.into()),
            Some(event) => {
                if let ControlFlow::Break(result) = see(event) {
                    return result;
                }
            }
            None => {
                let failure =
                    Failure::new(ErrorCode::EngineFailed, "The engine stopped in the middle of the job.")
                        .remedy("Try again; `steno doctor` shows whether the engine works.");
                return Err(failure.into());
            }
        }
    }
}
