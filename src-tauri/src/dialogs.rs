//! The system's dialogs for files and folders.
//!
//! On Linux they are opened here, on the thread that GTK belongs to: rfd's GTK
//! backend runs a second GTK loop on a thread of its own, beside the window's,
//! and GTK is not safe for that. Elsewhere rfd is used.

use std::path::{Path, PathBuf};

use tauri::WebviewWindow;

/// `folder`: where the user is to start looking.
pub async fn open_files(window: &WebviewWindow, title: String, folder: Option<PathBuf>) -> Vec<PathBuf> {
    platform::open_files(window, title, folder).await
}

pub async fn open_folder(window: &WebviewWindow, title: String) -> Option<PathBuf> {
    platform::open_folder(window, title).await
}

/// Asks before it lets the user replace a file.
pub async fn save_file(window: &WebviewWindow, title: String, proposed: &Path) -> Option<PathBuf> {
    platform::save_file(window, title, proposed).await
}

#[cfg(target_os = "linux")]
mod platform {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};

    use gtk::prelude::*;
    use gtk::{FileChooserAction, FileChooserNative, ResponseType};
    use tauri::WebviewWindow;
    use tokio::sync::oneshot;

    pub async fn open_files(window: &WebviewWindow, title: String, folder: Option<PathBuf>) -> Vec<PathBuf> {
        let prepare = move |dialog: &FileChooserNative| {
            dialog.set_select_multiple(true);
            // Left alone it shows what was used lately, which is nothing on a new machine.
            dialog.set_current_folder(folder.unwrap_or_else(gtk::glib::home_dir));
        };
        ask(window, title, FileChooserAction::Open, prepare).await
    }

    pub async fn open_folder(window: &WebviewWindow, title: String) -> Option<PathBuf> {
        let prepare = |dialog: &FileChooserNative| {
            dialog.set_current_folder(gtk::glib::home_dir());
        };
        ask(window, title, FileChooserAction::SelectFolder, prepare).await.pop()
    }

    pub async fn save_file(window: &WebviewWindow, title: String, proposed: &Path) -> Option<PathBuf> {
        let proposed = proposed.to_path_buf();
        let prepare = move |dialog: &FileChooserNative| {
            dialog.set_do_overwrite_confirmation(true);
            if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
                dialog.set_current_folder(folder);
                dialog.set_current_name(&name.to_string_lossy());
            }
        };
        ask(window, title, FileChooserAction::Save, prepare).await.pop()
    }

    /// What the user chose; nothing where the dialog was closed.
    async fn ask(
        window: &WebviewWindow,
        title: String,
        action: FileChooserAction,
        prepare: impl FnOnce(&FileChooserNative) + Send + 'static,
    ) -> Vec<PathBuf> {
        let (tell, answer) = oneshot::channel();
        let parent = window.clone();
        let asked = window.run_on_main_thread(move || {
            let parent = parent.gtk_window().ok();
            let dialog = FileChooserNative::new(Some(&title), parent.as_ref(), action, None, None);
            dialog.set_modal(true);
            prepare(&dialog);
            // The dialog lives until it is answered: nobody else holds it.
            let held = RefCell::new(Some((tell, dialog.clone())));
            dialog.connect_response(move |dialog, response| {
                let files = if response == ResponseType::Accept { dialog.filenames() } else { Vec::new() };
                if let Some((tell, _)) = held.take() {
                    let _ = tell.send(files);
                }
                dialog.destroy();
            });
            dialog.show();
        });
        match asked {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::path::{Path, PathBuf};

    use rfd::AsyncFileDialog;
    use tauri::WebviewWindow;

    pub async fn open_files(window: &WebviewWindow, title: String, folder: Option<PathBuf>) -> Vec<PathBuf> {
        let mut dialog = AsyncFileDialog::new().set_parent(window).set_title(title);
        if let Some(folder) = folder {
            dialog = dialog.set_directory(folder);
        }
        dialog.pick_files().await.unwrap_or_default().iter().map(|file| file.path().to_path_buf()).collect()
    }

    pub async fn open_folder(window: &WebviewWindow, title: String) -> Option<PathBuf> {
        let folder = AsyncFileDialog::new().set_parent(window).set_title(title).pick_folder().await?;
        Some(folder.path().to_path_buf())
    }

    pub async fn save_file(window: &WebviewWindow, title: String, proposed: &Path) -> Option<PathBuf> {
        let mut dialog = AsyncFileDialog::new().set_parent(window).set_title(title);
        if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
            dialog = dialog.set_directory(folder).set_file_name(name.to_string_lossy());
        }
        Some(dialog.save_file().await?.path().to_path_buf())
    }
}
