//! The system's dialogs, in front of this window.

use std::path::PathBuf;

use desktop::dialogs::{self, DialogKind};
use tauri::WebviewWindow;

/// `folder`: where the user is to start looking.
pub async fn open_files(window: &WebviewWindow, title: &str, folder: Option<PathBuf>) -> Vec<PathBuf> {
    ask(window, title, DialogKind::Files { folder }).await
}

pub async fn open_folder(window: &WebviewWindow, title: &str) -> Option<PathBuf> {
    ask(window, title, DialogKind::Folder).await.pop()
}

/// Asks before it lets the user replace a file.
pub async fn save_file(window: &WebviewWindow, title: &str, proposed: PathBuf) -> Option<PathBuf> {
    ask(window, title, DialogKind::NewFile { proposed }).await.pop()
}

#[cfg(target_os = "linux")]
async fn ask(window: &WebviewWindow, title: &str, wanted: DialogKind) -> Vec<PathBuf> {
    let (tell, answer) = tokio::sync::oneshot::channel();
    let (parent, title) = (window.clone(), title.to_owned());
    let asked = window.run_on_main_thread(move || {
        let parent = parent.gtk_window().ok();
        dialogs::ask(parent.as_ref(), &title, wanted, |files| drop(tell.send(files)));
    });
    match asked {
        Ok(()) => answer.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

#[cfg(not(target_os = "linux"))]
async fn ask(window: &WebviewWindow, title: &str, wanted: DialogKind) -> Vec<PathBuf> {
    dialogs::ask(window, title, wanted).await
}
