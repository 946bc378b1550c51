//! Windows and macOS, through libraries.

use std::path::Path;
use std::process::Command;

use crate::NAME;

pub type SleepInhibitor = keepawake::KeepAwake;

pub fn stay_awake(why: &str) -> Result<SleepInhibitor, String> {
    let mut request = keepawake::Builder::default();
    request.display(false).idle(true).sleep(true).reason(why).app_name(NAME);
    request.app_reverse_domain("app.steno.Steno").create().map_err(|error| error.to_string())
}

pub fn notify(title: &str, text: &str) -> Result<(), String> {
    let mut message = notify_rust::Notification::new();
    message.appname(NAME).summary(title).body(text).show().map(drop).map_err(|error| error.to_string())
}

pub fn show_in_folder(file: &Path) -> Result<(), String> {
    let mut command;
    if cfg!(windows) {
        command = Command::new("explorer");
        command.arg("/select,").arg(file);
    } else {
        command = Command::new("open");
        command.arg("-R").arg(file);
    }
    command.spawn().map(drop).map_err(|error| error.to_string())
}
