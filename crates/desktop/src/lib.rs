//! Services of the desktop for a program with a window: keeping the machine
//! awake, notifications, file dialogs, and a renderer that works. None of them is
//! worth a failed job, so errors are sentences to show to the user.
#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod dialogs;
pub mod first_paint;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other_systems.rs")]
mod platform;
pub mod renderer;

/// Keeps the machine from going to sleep until it is dropped. The system releases
/// it when the process ends, in whatever way.
#[derive(Debug)]
pub struct Awake {
    _inhibitor: platform::SleepInhibitor,
}

/// Keeps the machine awake; its screen may turn off. Blocks for at most five
/// seconds. The system lists `why` among the reasons for staying awake.
///
/// # Errors
/// If the system refuses, with a sentence that says so.
pub fn stay_awake(why: &str) -> Result<Awake, String> {
    let inhibitor = platform::stay_awake(why);
    inhibitor
        .map(|inhibitor| Awake { _inhibitor: inhibitor })
        .map_err(|problem| format!("The computer can't be kept awake: {problem}."))
}

/// Shows a desktop notification. Blocks for at most five seconds.
///
/// # Errors
/// If the desktop does not show it, with a sentence that says so.
pub fn notify(title: &str, text: &str) -> Result<(), String> {
    platform::notify(title, text).map_err(|problem| format!("A notification could not be shown: {problem}."))
}

/// Shows a file in the desktop's file manager, selected where the file manager can do that; a folder
/// in its own place. Blocks for at most five seconds.
///
/// # Errors
/// If there is no file manager, with a sentence that says so.
pub fn show_in_folder(file: &std::path::Path) -> Result<(), String> {
    platform::show_in_folder(file).map_err(|problem| format!("The folder could not be opened: {problem}."))
}

/// The program's name in notifications and lists of the system.
const NAME: &str = "Steno";
