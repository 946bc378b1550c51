//! The system's dialogs for files and folders.
//!
//! On Linux they are GTK's own, on the thread that GTK belongs to: rfd's GTK
//! backend runs a second GTK loop on a thread of its own, beside the window's,
//! and GTK is not safe for that. Elsewhere rfd is used.

use std::path::PathBuf;

pub use platform::ask;

/// What the user is to choose.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Any number of them; `folder`: where the user is to start looking.
    Files {
        folder: Option<PathBuf>,
    },
    Folder,
    /// A file to write. The user is asked before it replaces one.
    NewFile {
        proposed: PathBuf,
    },
}

#[cfg(target_os = "linux")]
mod platform {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use gtk::prelude::*;
    use gtk::{ApplicationWindow, FileChooserAction, FileChooserNative, ResponseType};

    use super::Wanted;

    /// Tells what the user chose; nothing where the dialog was closed. To be
    /// called on the thread that GTK belongs to, and returns at once.
    pub fn ask(
        parent: Option<&ApplicationWindow>,
        title: &str,
        wanted: Wanted,
        tell: impl FnOnce(Vec<PathBuf>) + 'static,
    ) {
        let action = match wanted {
            Wanted::Files { .. } => FileChooserAction::Open,
            Wanted::Folder => FileChooserAction::SelectFolder,
            Wanted::NewFile { .. } => FileChooserAction::Save,
        };
        let dialog = FileChooserNative::new(Some(title), parent, action, None, None);
        dialog.set_modal(true);
        prepare(&dialog, wanted);
        // The dialog lives until it is answered: nobody else holds it.
        let held = RefCell::new(Some((tell, dialog.clone())));
        dialog.connect_response(move |dialog, response| {
            let files = if response == ResponseType::Accept { dialog.filenames() } else { Vec::new() };
            if let Some((tell, _)) = held.take() {
                tell(files);
            }
            dialog.destroy();
        });
        dialog.show();
    }

    fn prepare(dialog: &FileChooserNative, wanted: Wanted) {
        match wanted {
            Wanted::Files { folder } => {
                dialog.set_select_multiple(true);
                // Left alone it shows what was used lately, which is nothing on a new machine.
                dialog.set_current_folder(folder.unwrap_or_else(gtk::glib::home_dir));
            }
            Wanted::Folder => {
                dialog.set_current_folder(gtk::glib::home_dir());
            }
            Wanted::NewFile { proposed } => {
                dialog.set_do_overwrite_confirmation(true);
                if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
                    dialog.set_current_folder(folder);
                    dialog.set_current_name(&name.to_string_lossy());
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::path::PathBuf;

    use raw_window_handle::{HasDisplayHandle, HasWindowHandle};
    use rfd::AsyncFileDialog;

    use super::Wanted;

    /// What the user chose; nothing where the dialog was closed.
    pub async fn ask(
        parent: &(impl HasWindowHandle + HasDisplayHandle),
        title: &str,
        wanted: Wanted,
    ) -> Vec<PathBuf> {
        let mut dialog = AsyncFileDialog::new().set_parent(parent).set_title(title);
        let chosen = match wanted {
            Wanted::Files { folder } => {
                if let Some(folder) = folder {
                    dialog = dialog.set_directory(folder);
                }
                dialog.pick_files().await.unwrap_or_default()
            }
            Wanted::Folder => dialog.pick_folder().await.into_iter().collect(),
            Wanted::NewFile { proposed } => {
                if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
                    dialog = dialog.set_directory(folder).set_file_name(name.to_string_lossy());
                }
                dialog.save_file().await.into_iter().collect()
            }
        };
        chosen.iter().map(|file| file.path().to_path_buf()).collect()
    }
}
