//! Keeps the machine awake while the queue works, notifies a user who is elsewhere when it
//! ends, and looks for models that other programs install.

use std::sync::Mutex;
use std::time::Duration;

use app::session::Activity;
use tauri::async_runtime::{spawn, spawn_blocking};
use tauri::{AppHandle, Manager};
use tokio::sync::Notify;

use crate::shell::{Shell, lock};
use app::view::WindowEvent;

/// Between two looks at the folders of models. As the watched folders: a look asks the system
/// for the time of a few folders.
const MODELS_PAUSE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Attending {
    /// The user switched it on or off.
    pub switched: Notify,
    /// For diagnostics: whether the machine is kept awake, and why it is not.
    pub said: Mutex<Option<String>>,
}

pub fn start(app: &AppHandle) {
    spawn(attend(app.clone()));
    spawn(tell_of_folders(app.clone()));
    spawn(look_for_models(app.clone()));
}

async fn attend(app: AppHandle) {
    let shell = app.state::<Shell>();
    let mut work = shell.state.session.follow_activity();
    let (mut busy, mut awake) = (false, None);
    loop {
        tokio::select! {
            next = work.next() => match next {
                Some(Activity::Begun) => busy = true,
                Some(Activity::Ended { finished, failed }) => {
                    busy = false;
                    tell_of_the_end(&app, finished, failed);
                }
                None => return,
            },
            () = shell.attending.switched.notified() => {}
        }
        if !busy || !shell.state.remembered().switches.stay_awake {
            awake = None;
        } else if awake.is_none() {
            let asked = spawn_blocking(|| desktop::stay_awake("Transcribing recordings")).await;
            let asked = asked.unwrap_or_else(|error| Err(error.to_string()));
            *lock(&shell.attending.said) = asked.as_ref().err().cloned();
            awake = asked.ok();
        }
    }
}

fn tell_of_the_end(app: &AppHandle, finished: usize, failed: usize) {
    let shell = app.state::<Shell>();
    let is_seen = app
        .get_webview_window("main")
        .is_some_and(|window| window.is_focused().unwrap_or(true) && !window.is_minimized().unwrap_or(false));
    if finished + failed > 0 && !is_seen && shell.state.remembered().switches.notify {
        shell.tell(WindowEvent::queue_ended(finished, failed));
    }
}

/// Sends the setup when a watched folder disappears or comes back.
async fn tell_of_folders(app: AppHandle) {
    let shell = app.state::<Shell>();
    let mut watched = shell.state.session.follow_watched();
    while watched.changed().await.is_ok() {
        shell.tell_setup();
    }
}

/// Sends the setup when the command line, say, has installed or removed a model.
async fn look_for_models(app: AppHandle) {
    loop {
        tokio::time::sleep(MODELS_PAUSE).await;
        let app = app.clone();
        // A folder may be on a disk that does not answer.
        let looked = spawn_blocking(move || {
            let shell = app.state::<Shell>();
            if shell.state.look_for_models() {
                shell.tell_setup();
            }
        });
        if looked.await.is_err() {
            return;
        }
    }
}
