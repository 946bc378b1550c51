//! What the page may ask of what models learn.

use app::DocumentId;
use app::view::{Adapter, LearningRun, Lessons};
use tauri::{State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;

/// What models have learnt.
#[tauri::command]
pub async fn adapters(shell: State<'_, Shell>) -> Answer<Vec<Adapter>> {
    list(&shell).await
}

/// Uses a model with what it has learnt, or as it is; all adapters then.
#[tauri::command]
pub async fn switch_adapter(shell: State<'_, Shell>, name: String, on: bool) -> Answer<Vec<Adapter>> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.switch_adapter(&name, on)?)).await?;
    list(&shell).await
}

/// Removes one for good; all adapters then.
#[tauri::command]
pub async fn remove_adapter(shell: State<'_, Shell>, name: String) -> Answer<Vec<Adapter>> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.remove_adapter(&name)?)).await?;
    list(&shell).await
}

/// Takes in files that the user chooses; all adapters then.
#[tauri::command]
pub async fn import_adapters(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    title: String,
) -> Answer<Vec<Adapter>> {
    let files = dialogs::open_files(&window, &title, None).await;
    let session = shell.state.session.clone();
    blocking(move || Ok(files.iter().try_for_each(|file| session.import_adapter(file))?)).await?;
    list(&shell).await
}

/// Copies one to a file that the user names, whose path is the answer; null where the dialog was closed.
#[tauri::command]
pub async fn export_adapter(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    name: String,
    title: String,
) -> Answer<Option<String>> {
    let proposed = std::env::home_dir().unwrap_or_default().join(format!("{name}.safetensors"));
    let Some(file) = dialogs::save_file(&window, &title, proposed).await else { return Ok(None) };
    let session = shell.state.session.clone();
    blocking(move || {
        session.export_adapter(&name, &file)?;
        Ok(Some(file.display().to_string()))
    })
    .await
}

/// What the model of that number could learn from.
#[tauri::command]
pub async fn lessons(shell: State<'_, Shell>, model: u32) -> Answer<Lessons> {
    let model = shell.state.model(model)?;
    let session = shell.state.session.clone();
    blocking(move || Ok(Lessons::new(session.corrected_recordings()?, session.predicted_to_learn(&model))))
        .await
}

/// Has the model of that number learn from those transcripts.
#[tauri::command]
pub async fn start_learning(shell: State<'_, Shell>, model: u32, documents: Vec<i64>) -> Answer<()> {
    let model = shell.state.model(model)?;
    let session = shell.state.session.clone();
    let documents: Vec<DocumentId> = documents.into_iter().map(DocumentId).collect();
    blocking(move || Ok(session.learn(model, &documents)?)).await
}

/// Ends what is being learnt.
#[tauri::command]
pub async fn stop_learning(shell: State<'_, Shell>) -> Answer<()> {
    shell.state.session.stop_learning();
    Ok(())
}

/// What is being learnt, or was last.
#[tauri::command]
pub async fn learning(shell: State<'_, Shell>) -> Answer<Option<LearningRun>> {
    Ok(shell.state.session.learning().map(LearningRun::from))
}

async fn list(shell: &Shell) -> Answer<Vec<Adapter>> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.adapters()?.into_iter().map(Adapter::from).collect())).await
}
