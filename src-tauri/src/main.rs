//! The window: a shell around `api::session`. It turns the page's commands
//! into calls, what changes into messages, and drops and dialogs into paths,
//! which the page itself never handles.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod commands;
mod contract;
mod dialogs;
mod place;
mod settings_file;
mod shell;

use std::path::PathBuf;

use shell::Shell;
use tauri::{DragDropEvent, Manager, WindowEvent};

fn main() -> Result<(), tauri::Error> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    tauri::Builder::default()
        .setup(move |app| {
            let shell = tauri::async_runtime::block_on(async { Shell::new() });
            shell.session.add(files.into_iter().map(|file| std::path::absolute(&file).unwrap_or(file)));
            let place = shell.remembered().window;
            // Before there is a page that asks for it.
            app.manage(shell);
            place::open_window(app.handle(), place)?;
            Ok(())
        })
        .on_window_event(|window, event| {
            let Some(shell) = window.try_state::<Shell>() else { return };
            match event {
                WindowEvent::DragDrop(event) => drag_drop(&shell, event),
                WindowEvent::CloseRequested { api, .. } => {
                    // The engine is ended in an orderly way before the program is.
                    api.prevent_close();
                    if !shell.ask_before_closing() {
                        shell::close(window.app_handle().clone());
                    }
                }
                _ => {}
            }
        })
        .invoke_handler(tauri::generate_handler![
            commands::attach,
            commands::describe,
            commands::model_fits,
            commands::choose_files,
            commands::add_sample,
            commands::choose_model,
            commands::change_settings,
            commands::change_look,
            commands::preferences,
            commands::change_preference,
            commands::diagnostics,
            commands::start_anyway,
            commands::pause,
            commands::reorder,
            commands::watch,
            commands::watch_memory,
            commands::cancel,
            commands::retry,
            commands::remove,
            commands::save,
            commands::save_chart,
            commands::close,
        ])
        .run(tauri::generate_context!())
}

fn drag_drop(shell: &Shell, event: &DragDropEvent) {
    match event {
        DragDropEvent::Enter { paths, .. } => {
            let files = u32::try_from(paths.len()).unwrap_or(u32::MAX);
            shell.tell(contract::WindowEvent::DragOver { files });
        }
        DragDropEvent::Drop { paths, .. } => {
            shell.tell(contract::WindowEvent::DragLeft);
            let (session, paths) = (shell.session.clone(), paths.clone());
            // A folder may be large or on a network.
            tauri::async_runtime::spawn_blocking(move || session.add(paths));
        }
        DragDropEvent::Leave => shell.tell(contract::WindowEvent::DragLeft),
        _ => {}
    }
}
