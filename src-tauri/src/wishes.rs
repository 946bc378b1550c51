//! What the page may ask for, continued: settings under a name and of single
//! recordings, watched folders, and what concerns the whole queue.

use std::path::Path;

use api::session;
use contract::{Exporting, Settings, Switches};
use tauri::{State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;

/// Settings of their own for recordings that have not begun; null: those at hand.
#[tauri::command(async)]
pub fn change_own(shell: State<'_, Shell>, jobs: Vec<u64>, settings: Option<Settings>) {
    let own = settings.map(|settings| shell.chosen(settings));
    shell.desk.session.change_own(&jobs, own.as_ref());
}

#[tauri::command]
pub fn put_shortest_first(shell: State<'_, Shell>, on: bool) {
    shell.desk.session.put_shortest_first(on);
    shell.desk.remember(|remembered| remembered.shortest_first = on);
    shell.tell_setup();
}

#[tauri::command(async)]
pub fn cancel_all(shell: State<'_, Shell>) {
    shell.desk.session.cancel_all();
}

#[tauri::command(async)]
pub fn retry_failed(shell: State<'_, Shell>) {
    shell.desk.session.retry_failed();
}

/// In place of those that have the name.
#[tauri::command]
pub fn save_preset(shell: State<'_, Shell>, name: String, settings: Settings) -> Answer<()> {
    let saved = shell.desk.save_preset(&name, &shell.chosen(settings));
    shell.tell_setup();
    Ok(saved?)
}

#[tauri::command]
pub fn rename_preset(shell: State<'_, Shell>, name: String, to: String) -> Answer<()> {
    let renamed = shell.desk.rename_preset(&name, &to);
    shell.tell_setup();
    Ok(renamed?)
}

#[tauri::command]
pub fn delete_preset(shell: State<'_, Shell>, name: String) {
    shell.desk.delete_preset(&name);
    shell.tell_setup();
}

/// Watches a folder that the user chooses. `present`: what lies in it now is
/// transcribed too.
#[tauri::command]
pub async fn watch_folder(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    present: bool,
    title: String,
) -> Answer<()> {
    let Some(folder) = dialogs::open_folder(&window, title).await else { return Ok(()) };
    if shell.desk.session.watched().iter().any(|one| one.folder.folder.as_path() == folder) {
        return Ok(());
    }
    let watched = session::WatchedFolder::new(&folder, shell.desk.remembered().exporting);
    if !present {
        let session = shell.desk.session.clone();
        blocking(move || Ok(session.pass_over(&folder)?)).await?;
    }
    shell.desk.change_watched(|folders| folders.push(watched));
    Ok(())
}

/// How the texts of a watched folder, by its number, are written.
#[tauri::command]
pub fn change_watched(shell: State<'_, Shell>, number: usize, exporting: Exporting) {
    change(&shell, number, |folder| folder.exporting = exporting.into());
}

/// Where to: `beside` the recordings, or in a folder that the user chooses.
#[tauri::command]
pub async fn place_watched(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    number: usize,
    beside: bool,
    title: String,
) -> Answer<()> {
    let chosen = if beside { None } else { dialogs::open_folder(&window, title).await };
    if beside || chosen.is_some() {
        change(&shell, number, |folder| folder.into = chosen.as_deref().map(|it: &Path| it.into()));
    }
    Ok(())
}

#[tauri::command]
pub fn unwatch_folder(shell: State<'_, Shell>, number: usize) {
    shell.desk.change_watched(|folders| {
        if number < folders.len() {
            folders.remove(number);
        }
    });
}

fn change(shell: &Shell, number: usize, change: impl FnOnce(&mut session::WatchedFolder)) {
    shell.desk.change_watched(|folders| {
        if let Some(folder) = folders.get_mut(number) {
            change(folder);
        }
    });
}

#[tauri::command]
pub fn change_switches(shell: State<'_, Shell>, switches: Switches) {
    shell.desk.remember(|remembered| remembered.switches = switches.into());
    shell.attending.switched.notify_one();
    shell.tell_setup();
}

/// Shows a message in the language of the page, which has no other text to show.
#[tauri::command]
pub async fn notify(title: String, text: String) -> Answer<()> {
    blocking(move || {
        if let Err(problem) = desktop::notify(&title, &text) {
            // A convenience is no reason to disturb anybody.
            eprintln!("steno-window: {problem}");
        }
        Ok(())
    })
    .await
}
