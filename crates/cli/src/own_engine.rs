//! An engine for one command alone, started when it is its turn at the device.

use supervisor::Engine;
use supervisor::runs::{DeviceLease, Holder, Runs};

use crate::args::Machine;
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;

/// The turn lasts until it is dropped; `None` where hosts can't take turns.
pub async fn start(
    machine: &Machine,
    console: &mut Console,
    interrupt: &mut Interrupt,
) -> Result<(Engine, Option<DeviceLease>), Ended> {
    let options = machine.engine_options(machine.wishes());
    let engine = tokio::select! {
        engine = Engine::start(&options) => engine?,
        () = interrupt.raised() => return Err(Ended::Cancelled),
    };
    let Some(runs) = Runs::of_this_user() else { return Ok((engine, None)) };
    let device = engine.device(machine.device);
    let waiting = |holder: Holder| console.info(&holder.text(&device));
    // A folder that can't be used is no reason not to work.
    let turn = tokio::select! {
        turn = runs.lease(&device, waiting) => turn.ok(),
        () = interrupt.raised() => None,
    };
    if interrupt.is_raised() {
        engine.shutdown().await;
        return Err(Ended::Cancelled);
    }
    Ok((engine, turn))
}
