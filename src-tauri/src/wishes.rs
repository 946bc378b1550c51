//! What the page wants done: orders, of which `app::view` knows how
//! they are carried out, watched folders, and messages.

use app::view::{Chore, Wish};
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;

/// At once, and on the main thread: in the order in which the page asks.
#[tauri::command]
pub fn wish(shell: State<'_, Shell>, wish: Wish) -> Answer<()> {
    let (setup, switches) = (wish.changes_setup(), matches!(wish, Wish::ChangeSwitches { .. }));
    let done = wish.carry_out(&shell.desk, &shell.transfers);
    if switches {
        shell.attending.switched.notify_one();
    }
    if setup {
        shell.tell_setup();
    }
    Ok(done?)
}

/// Waits for the disk.
#[tauri::command]
pub async fn chore(app: AppHandle, chore: Chore) -> Answer<()> {
    let under_way = app.state::<Shell>().under_way();
    blocking(move || {
        let _until_done = under_way;
        let shell = app.state::<Shell>();
        let setup = chore.changes_setup();
        chore.carry_out(&shell.desk)?;
        if setup {
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
    blocking(move || Ok(app::view::watch_folder(&app.state::<Shell>().desk, &folder, present)?)).await
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
        app::view::place_watched(&shell.desk, number, chosen.as_deref());
    }
    Ok(())
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
