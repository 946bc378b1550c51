//! What the page may ask of models that are not installed, or not any more.

use tauri::async_runtime::{spawn, spawn_blocking};
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;
use advisor::catalog::ModelCatalog;
use advisor::transfers::Arrived;
use app::view::Connection;

/// The catalogue, and what was begun or is damaged, for the settings in force.
#[tauri::command]
pub async fn catalog(shell: State<'_, Shell>) -> Answer<ModelCatalog> {
    let (_, job) = shell.state.models_and_job();
    let preferences = shell.state.session.preferences();
    blocking(move || Ok(ModelCatalog::now(&preferences, &job)?)).await
}

/// The one command that uses the network. Begins, or goes on with, a download;
/// how it goes is told in events.
#[tauri::command]
pub fn download(app: AppHandle, shell: State<'_, Shell>, id: String) {
    let (transfers, preferences) = (shell.transfers.clone(), shell.state.session.preferences());
    spawn(async move {
        let arrived = transfers.download(&id, &preferences).await;
        let shell = app.state::<Shell>();
        let model = match arrived {
            Some(Arrived::Model(model)) => Some(model.id),
            Some(Arrived::Engine) => {
                shell.state.session.renew_engine().await;
                None
            }
            None => None,
        };
        shell.models_changed(model);
    });
}

/// Copies what the user chooses, a folder or files, into the store.
#[tauri::command]
pub async fn import_model(app: AppHandle, window: WebviewWindow, folder: bool, title: String) -> Answer<()> {
    let chosen = match folder {
        true => dialogs::open_folder(&window, &title).await.into_iter().collect(),
        false => dialogs::open_files(&window, &title, None).await,
    };
    for path in chosen {
        let app = app.clone();
        spawn_blocking(move || {
            let model = app.state::<Shell>().transfers.import(&path);
            app.state::<Shell>().models_changed(model.map(|model| model.id));
        });
    }
    Ok(())
}

/// What the network was used for, the newest first.
#[tauri::command]
pub async fn connections() -> Answer<Vec<Connection>> {
    blocking(|| Ok(Connection::latest()?)).await
}
