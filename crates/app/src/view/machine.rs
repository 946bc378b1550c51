//! Another machine that transcribes in place of this one.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Failure;
use crate::session::{self, AppState};

/// Which machine transcribes.
#[derive(Debug, Clone, Serialize, TS)]
pub struct MachineSetup {
    /// As it was entered.
    pub machine: Machine,
    /// There is a token for it, which the page never sees.
    pub has_token: bool,
    /// Host and port, while it is used.
    pub place: Option<String>,
    /// What is sent there can be read on its way.
    pub is_open: bool,
}

/// A machine on which `steno serve` runs.
#[derive(Debug, Clone, Serialize, Deserialize, TS)]
pub struct Machine {
    /// Recordings that are begun from now on go there.
    pub on: bool,
    /// Such as `http://studio:8642`; empty where none was entered.
    pub address: String,
    /// A model of that machine; null: it chooses.
    pub model: Option<String>,
}

/// Where a recording is transcribed that is not transcribed here.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Elsewhere {
    /// Host and port of the machine.
    pub place: String,
    /// How much of the recording was sent, from 0 to 1, while it is.
    pub sent: Option<f64>,
    /// Why it does not go on now; it does by itself when that has passed.
    pub waiting: Option<Failure>,
}

impl MachineSetup {
    /// As it is remembered.
    pub fn new(state: &AppState) -> Self {
        let machine = state.machine();
        let in_use = session::MachineInUse::of(&machine, None);
        Self {
            has_token: state.has_machine_token(),
            place: in_use.map(|machine| machine.place),
            is_open: session::is_open(&machine.address),
            machine: machine.into(),
        }
    }
}

impl From<session::Machine> for Machine {
    fn from(machine: session::Machine) -> Self {
        let session::Machine { on, address, model } = machine;
        Self { on, address, model }
    }
}

impl From<Machine> for session::Machine {
    fn from(machine: Machine) -> Self {
        let Machine { on, address, model } = machine;
        Self { on, address: address.trim().to_owned(), model }
    }
}

impl From<session::Elsewhere> for Elsewhere {
    fn from(elsewhere: session::Elsewhere) -> Self {
        let session::Elsewhere { place, sent, waiting } = elsewhere;
        Self { place, sent, waiting: waiting.map(Failure::from) }
    }
}
