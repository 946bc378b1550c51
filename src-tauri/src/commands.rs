//! What the page may ask for. Listed in commands.in and granted in
//! capabilities/main.json; arguments and answers are in contract.rs.

use api::session;
use tauri::ipc::Channel;
use tauri::{AppHandle, State, WebviewWindow};

use crate::contract::{EngineInfo, Failure, Format, Place, Settings, Setup, TextUpdate, WindowEvent};
use crate::dialogs;
use crate::shell::{self, Shell};

type Answer<T> = Result<T, Failure>;

/// The page is there: what it needs at its start; what happens from now on goes to `events`.
#[tauri::command]
pub fn attach(shell: State<'_, Shell>, events: Channel<WindowEvent>) -> Setup {
    shell.attach(events);
    shell.setup()
}

/// Starts the engine where there is none yet.
#[tauri::command]
pub async fn describe(shell: State<'_, Shell>) -> Answer<EngineInfo> {
    let (description, note) = shell.session.describe().await?;
    Ok(EngineInfo::new(description, note))
}

/// In a dialog with that title, as in the other commands that open one.
#[tauri::command]
pub async fn choose_files(shell: State<'_, Shell>, window: WebviewWindow, title: String) -> Answer<()> {
    let files = dialogs::open_files(&window, title, shell.session.latest_folder()).await;
    shell.session.add(files);
    Ok(())
}

#[tauri::command]
pub fn add_sample(shell: State<'_, Shell>) {
    if let Some(sample) = &shell.sample {
        shell.session.add_sample(sample);
    }
}

#[tauri::command]
pub async fn choose_model(shell: State<'_, Shell>, window: WebviewWindow, title: String) -> Answer<()> {
    if let Some(folder) = dialogs::open_folder(&window, title).await {
        shell.use_model(api::models::model_at(&folder)?);
    }
    Ok(())
}

#[tauri::command]
pub fn change_settings(shell: State<'_, Shell>, settings: Settings) {
    shell.change_settings(settings);
}

/// Lets the demonstration model have what is held.
#[tauri::command]
pub fn start_anyway(shell: State<'_, Shell>) {
    shell.session.start_anyway();
}

/// Sends a recording's text to `updates`, until another one is watched.
#[tauri::command]
pub fn watch(shell: State<'_, Shell>, job: u64, updates: Channel<TextUpdate>) {
    shell.watch(job, updates);
}

#[tauri::command]
pub fn cancel(shell: State<'_, Shell>, job: u64) {
    shell.session.cancel(job);
}

#[tauri::command]
pub fn retry(shell: State<'_, Shell>, job: u64) {
    shell.session.retry(job);
}

#[tauri::command]
pub fn remove(shell: State<'_, Shell>, job: u64) {
    shell.session.remove(job);
}

/// The file that was written; null where the user closed the dialog.
#[tauri::command]
pub async fn save(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    job: u64,
    format: Format,
    place: Place,
    title: String,
) -> Answer<Option<String>> {
    let format = transcript::export::Format::from(format);
    let place = match place {
        Place::Beside => session::Place::Beside { replace: false },
        Place::BesideReplacing => session::Place::Beside { replace: true },
        Place::Ask => {
            let proposed = shell.session.proposed_file(job, format)?;
            match dialogs::save_file(&window, title, &proposed).await {
                Some(file) => session::Place::At(file),
                None => return Ok(None),
            }
        }
    };
    let session = shell.session.clone();
    let saved = tauri::async_runtime::spawn_blocking(move || session.save(job, format, &place));
    let saved =
        saved.await.map_err(|error| wire::Failure::new(wire::ErrorCode::Internal, error.to_string()))?;
    Ok(Some(saved?.display().to_string()))
}

/// The user's answer to `close_requested`.
#[tauri::command]
pub fn close(app: AppHandle, shell: State<'_, Shell>, really: bool) {
    if really {
        shell::close(app);
    } else {
        shell.keep_open();
    }
}
