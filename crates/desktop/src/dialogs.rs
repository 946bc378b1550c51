//! The system's dialogs for files and folders.
//!
//! On Linux they are called through GTK on its main thread, since rfd's GTK
//! backend runs a second GTK loop on another thread, for which GTK is not safe.
//! Other systems use rfd.

use std::path::PathBuf;

pub use platform::ask;

/// What a dialog asks the user to choose.
#[derive(Debug, Clone)]
pub enum DialogKind {
    /// Any number of existing files.
    Files {
        /// The folder that the dialog shows first.
        folder: Option<PathBuf>,
    },
    /// An existing folder.
    Folder,
    /// A file to write. The dialog asks before an existing file is chosen.
    NewFile {
        /// The path that the dialog proposes.
        proposed: PathBuf,
    },
}

#[cfg(target_os = "linux")]
mod platform {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use gtk::prelude::*;
    use gtk::{ApplicationWindow, FileChooserAction, FileChooserNative, ResponseType};

    use super::DialogKind;

    /// Shows a dialog and returns at once. Calls `tell` with the user's choice, which
    /// is empty if the dialog was closed. Must be called on GTK's main thread.
    pub fn ask(
        parent: Option<&ApplicationWindow>,
        title: &str,
        kind: DialogKind,
        tell: impl FnOnce(Vec<PathBuf>) + 'static,
    ) {
        let action = match kind {
            DialogKind::Files { .. } => FileChooserAction::Open,
            DialogKind::Folder => FileChooserAction::SelectFolder,
            DialogKind::NewFile { .. } => FileChooserAction::Save,
        };
        let dialog = FileChooserNative::new(Some(title), parent, action, None, None);
        dialog.set_modal(true);
        prepare(&dialog, kind);
        // Keeps the dialog alive until it is answered.
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

    fn prepare(dialog: &FileChooserNative, kind: DialogKind) {
        match kind {
            DialogKind::Files { folder } => {
                dialog.set_select_multiple(true);
                // By default it shows recent files, and there are none on a new machine.
                dialog.set_current_folder(folder.unwrap_or_else(gtk::glib::home_dir));
            }
            DialogKind::Folder => {
                dialog.set_current_folder(gtk::glib::home_dir());
            }
            DialogKind::NewFile { proposed } => {
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

    use super::DialogKind;

    /// Shows a dialog. Returns the user's choice, which is empty if the dialog was closed.
    pub async fn ask(
        parent: &(impl HasWindowHandle + HasDisplayHandle),
        title: &str,
        kind: DialogKind,
    ) -> Vec<PathBuf> {
        let mut dialog = AsyncFileDialog::new().set_parent(parent).set_title(title);
        let chosen = match kind {
            DialogKind::Files { folder } => {
                if let Some(folder) = folder {
                    dialog = dialog.set_directory(folder);
                }
                dialog.pick_files().await.unwrap_or_default()
            }
            DialogKind::Folder => dialog.pick_folder().await.into_iter().collect(),
            DialogKind::NewFile { proposed } => {
                if let (Some(folder), Some(name)) = (proposed.parent(), proposed.file_name()) {
                    dialog = dialog.set_directory(folder).set_file_name(name.to_string_lossy());
                }
                dialog.save_file().await.into_iter().collect()
            }
        };
        chosen.iter().map(|file| file.path().to_path_buf()).collect()
    }
}
