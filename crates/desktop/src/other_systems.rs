//! Windows and macOS, through libraries.

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
