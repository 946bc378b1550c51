//! What a program with a window asks of the desktop that it runs on: to stay
//! awake while there is work, to tell the user something, to ask which file, and
//! to be drawn. None of it is worth a failed job: what can't be had is said in a
//! sentence.

pub mod dialogs;
pub mod first_paint;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod platform;
pub mod renderer;

/// While this lives the machine does not go to sleep by itself. The system
/// takes it back however this process ends.
#[derive(Debug)]
pub struct Awake {
    _held: platform::Held,
}

/// Keeps the machine awake; its screen may go dark. Waits for the system, five
/// seconds at most. `why` is for whoever looks what keeps it awake.
///
/// # Errors
/// A sentence that says why it may go to sleep.
pub fn stay_awake(why: &str) -> Result<Awake, String> {
    let held = platform::stay_awake(why);
    held.map(|held| Awake { _held: held })
        .map_err(|problem| format!("The machine may go to sleep while there is work: {problem}."))
}

/// Shows the user a message, wherever they are. Waits for the desktop, five
/// seconds at most.
///
/// # Errors
/// A sentence that says why it was not shown.
pub fn notify(title: &str, text: &str) -> Result<(), String> {
    platform::notify(title, text).map_err(|problem| format!("A message could not be shown: {problem}."))
}

/// What others call this program.
const NAME: &str = "Steno";
