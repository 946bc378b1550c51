//! What the page may ask for. Listed in commands.in and granted in
//! capabilities/main.json; arguments and answers are in contract.rs.

use api::session;
use rfd::AsyncFileDialog;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};

use crate::contract::{EngineInfo, Failure, Format, Place, Settings, Setup, TextUpdate, WindowEvent};
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

#[tauri::command]
pub async fn choose_files(shell: State<'_, Shell>) -> Answer<()> {
    if let Some(files) = AsyncFileDialog::new().pick_files().await {
        let paths: Vec<_> = files.iter().map(|file| file.path().to_path_buf()).collect();
        shell.session.add(paths);
    }
    Ok(())
}

#[tauri::command]
pub fn add_sample(shell: State<'_, Shell>) {
    if let Some(sample) = &shell.sample {
        shell.session.add_sample(sample);
    }
}

#[tauri::command]
pub async fn choose_model(shell: State<'_, Shell>) -> Answer<()> {
    if let Some(folder) = AsyncFileDialog::new().pick_folder().await {
        shell.use_model(api::models::model_at(folder.path())?);
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
pub async fn save(shell: State<'_, Shell>, job: u64, format: Format, place: Place) -> Answer<Option<String>> {
    let format = transcript::export::Format::from(format);
    let place = match place {
        Place::Beside => session::Place::Beside { replace: false },
        Place::BesideReplacing => session::Place::Beside { replace: true },
        Place::Ask => {
            let proposed = shell.session.proposed_file(job, format)?;
            let mut dialog = AsyncFileDialog::new();
            if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
                dialog = dialog.set_directory(folder).set_file_name(name.to_string_lossy());
            }
            match dialog.save_file().await {
                Some(file) => session::Place::At(file.path().to_path_buf()),
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
