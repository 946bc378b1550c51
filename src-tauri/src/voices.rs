//! What the page may ask of the voices that are recognised. Each answers with all of them, as they are then.

use app::view::{Microphone, PlaySource, VoiceList};
use tauri::{State, WebviewWindow};

use crate::commands::{Answer, blocking};
use crate::dialogs;
use crate::shell::Shell;

/// All voices.
#[tauri::command]
pub async fn voices(shell: State<'_, Shell>) -> Answer<VoiceList> {
    list(&shell).await
}

/// Adds recordings of a person, which the user chooses.
#[tauri::command]
pub async fn add_voice(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    name: String,
    title: String,
) -> Answer<VoiceList> {
    let files = dialogs::open_files(&window, &title, shell.state.session.latest_folder()).await;
    if !files.is_empty() {
        shell.state.session.add_voice(&name, &files).await?;
    }
    list(&shell).await
}

/// Adds a speaker of a finished transcript, under the speaker's name.
#[tauri::command]
pub async fn remember_speaker(shell: State<'_, Shell>, job: u64, speaker: String) -> Answer<VoiceList> {
    shell.state.session.remember_speaker(job, &speaker).await?;
    list(&shell).await
}

/// Gives a voice another name; transcripts keep the old one.
#[tauri::command]
pub async fn rename_voice(shell: State<'_, Shell>, name: String, to: String) -> Answer<VoiceList> {
    let session = shell.state.session.clone();
    blocking(move || {
        session.rename_voice(&name, &to)?;
        Ok(VoiceList::new(session.voices()?))
    })
    .await
}

/// Removes a voice for good, or one sample of it, counted from 0.
#[tauri::command]
pub async fn remove_voice(shell: State<'_, Shell>, name: String, sample: Option<u32>) -> Answer<VoiceList> {
    let session = shell.state.session.clone();
    blocking(move || {
        session.remove_voice(&name, sample.map(|number| number as usize))?;
        Ok(VoiceList::new(session.voices()?))
    })
    .await
}

/// How far a recording from the microphone is.
#[tauri::command]
pub async fn microphone(shell: State<'_, Shell>) -> Answer<Microphone> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.microphone().into())).await
}

/// Begins to record from the microphone, in place of what was recorded before.
#[tauri::command]
pub async fn start_microphone(shell: State<'_, Shell>) -> Answer<()> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.start_microphone()?)).await
}

/// Ends the recording; where it is listened to.
#[tauri::command]
pub async fn stop_microphone(shell: State<'_, Shell>) -> Answer<PlaySource> {
    let (session, player) = (shell.state.session.clone(), std::sync::Arc::clone(&shell.player));
    blocking(move || Ok(player.open(&session.stop_microphone()?, None)?.into())).await
}

/// Adds what was recorded to the voice of this name.
#[tauri::command]
pub async fn keep_microphone(shell: State<'_, Shell>, name: String) -> Answer<VoiceList> {
    shell.state.session.keep_microphone(&name).await?;
    list(&shell).await
}

/// Forgets what was recorded.
#[tauri::command]
pub async fn drop_microphone(shell: State<'_, Shell>) -> Answer<()> {
    let session = shell.state.session.clone();
    blocking(move || {
        session.drop_microphone();
        Ok(())
    })
    .await
}

async fn list(shell: &Shell) -> Answer<VoiceList> {
    let session = shell.state.session.clone();
    blocking(move || Ok(VoiceList::new(session.voices()?))).await
}
