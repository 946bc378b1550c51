//! Runs the page's commands, watches folders and shows messages.

use app::view::{BlockingCommand, WindowCommand};
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;

/// Runs on the main thread, so that commands take effect in the order in which
/// the page sends them.
#[tauri::command]
pub fn execute(shell: State<'_, Shell>, command: WindowCommand) -> Answer<()> {
    let changes_setup = command.changes_setup();
    let changes_switches = matches!(command, WindowCommand::ChangeSwitches { .. });
    let done = command.execute(&shell.state, &shell.transfers);
    if changes_switches {
        shell.attending.switched.notify_one();
    }
    if changes_setup {
        shell.tell_setup();
    }
    Ok(done?)
}

/// Runs on a thread that may wait for the disk.
#[tauri::command]
pub async fn execute_blocking(app: AppHandle, command: BlockingCommand) -> Answer<()> {
    let under_way = app.state::<Shell>().under_way();
    blocking(move || {
        let _until_done = under_way;
        let shell = app.state::<Shell>();
        let changes_setup = command.changes_setup();
        command.execute(&shell.state)?;
        if changes_setup {
            shell.tell_setup();
        }
        Ok(())
    })
    .await
}

/// Watches a folder that the user chooses. `present`: what lies in it now is
/// transcribed too.
#[tauri::command]
pub async fn watch_folder(app: AppHandle, window: WebviewWindow, present: bool, title: String) -> Answer<()> {
    let Some(folder) = dialogs::open_folder(&window, &title).await else { return Ok(()) };
    blocking(move || Ok(app::view::watch_folder(&app.state::<Shell>().state, &folder, present)?)).await
}

/// Where the texts of a watched folder, by its number, go: `beside` the
/// recordings, or in a folder that the user chooses.
#[tauri::command]
pub async fn place_watched(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    number: u32,
    beside: bool,
    title: String,
) -> Answer<()> {
    let chosen = if beside { None } else { dialogs::open_folder(&window, &title).await };
    if beside || chosen.is_some() {
        app::view::place_watched(&shell.state, number, chosen.as_deref());
    }
    Ok(())
}

/// Shows a message in the language of the page, which has no other text to show.
#[tauri::command]
pub async fn notify(title: String, text: String) -> Answer<()> {
    blocking(move || {
        if let Err(problem) = desktop::notify(&title, &text) {
            // The message is a convenience: its failure is not worth an error.
            eprintln!("steno-window: {problem}");
        }
        Ok(())
    })
    .await
}
