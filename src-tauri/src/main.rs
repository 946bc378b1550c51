//! The window: a shell around `app::session`. It turns the page's commands
//! into calls, what changes into messages, and drops and dialogs into paths,
//! which the page itself never handles.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod attend;
mod commands;
mod dialogs;
mod editing;
mod execute;
mod first_paint;
mod learning;
mod machine;
mod shell;
mod store;
mod voices;
mod window_bounds;

use std::path::PathBuf;
use std::time::Instant;

use app::Player;
use app::single::Start;
use desktop::first_paint::FirstPaint;
use shell::Shell;
use tauri::utils::config::Csp;
use tauri::{AppHandle, DragDropEvent, Manager, WindowEvent};

fn main() -> Result<(), tauri::Error> {
    let started = Instant::now();
    first_paint::choose_renderer();
    let files = std::env::args_os().skip(1).map(PathBuf::from);
    let files: Vec<PathBuf> = files.map(|file| std::path::absolute(&file).unwrap_or(file)).collect();
    let door = match app::single::start(&files) {
        Start::First(door) => Some(door),
        Start::Handed => return Ok(()),
        Start::Alone(why) => {
            eprintln!("steno-window: {why}");
            None
        }
    };
    let mut context = tauri::generate_context!();
    let port = app::free_port();
    allow_port(context.config_mut(), port);
    let player = Player::at_port(port);
    tauri::Builder::default()
        .setup(move |app| {
            let shell =
                tauri::async_runtime::block_on(async { Shell::new(FirstPaint::new(started), player) });
            shell.state.session.add(files);
            let place = shell.state.remembered().window;
            // Before there is a page that asks for it.
            app.manage(shell);
            attend::start(app.handle());
            window_bounds::open_window(app.handle(), place)?;
            first_paint::watch(app.handle().clone());
            if let Some(door) = door {
                let app = app.handle().clone();
                door.answer(move |files| visited(&app, files));
            }
            Ok(())
        })
        .on_window_event(|window, event| {
            let Some(shell) = window.try_state::<Shell>() else { return };
            match event {
                WindowEvent::DragDrop(event) => drag_drop(&shell, event),
                WindowEvent::CloseRequested { api, .. } => {
                    // The engine is ended in an orderly way before the program is.
                    api.prevent_close();
                    shell::request_close(window.app_handle().clone());
                }
                _ => {}
            }
        })
        .invoke_handler(tauri::generate_handler![
            commands::attach,
            commands::describe,
            commands::model_fits,
            commands::choose_files,
            commands::choose_model,
            commands::choose_output_folder,
            commands::read_word_lists,
            commands::save_word_list,
            commands::preview_name,
            commands::preferences,
            commands::change_preference,
            commands::diagnostics,
            machine::change_machine,
            machine::test_machine,
            machine::change_worker_queue,
            machine::look_at_workers,
            commands::watch,
            commands::watch_memory,
            commands::save,
            commands::save_unsaved,
            commands::save_chart,
            commands::close,
            commands::play_source,
            commands::save_sound,
            commands::show_in_folder,
            store::catalog,
            store::download,
            store::import_model,
            store::connections,
            first_paint::painted,
            execute::execute,
            execute::execute_blocking,
            execute::watch_folder,
            execute::place_watched,
            execute::notify,
            editing::edit,
            editing::review,
            editing::replace_all,
            editing::places,
            editing::replace_one,
            editing::documents,
            editing::search_documents,
            editing::find_passages,
            editing::similar_passages,
            editing::search_choices,
            editing::corrected_words,
            editing::open_document,
            editing::locate_recording,
            editing::save_documents,
            editing::save_jobs,
            editing::count_places,
            editing::undo_replacing,
            voices::voices,
            voices::add_voice,
            voices::remember_speaker,
            voices::rename_voice,
            voices::remove_voice,
            voices::microphone,
            voices::start_microphone,
            voices::stop_microphone,
            voices::keep_microphone,
            voices::drop_microphone,
            learning::adapters,
            learning::switch_adapter,
            learning::remove_adapter,
            learning::import_adapters,
            learning::export_adapter,
            learning::lessons,
            learning::start_learning,
            learning::stop_learning,
            learning::learning,
        ])
        .run(context)
}

/// Lets the page reach the player's port, and no other of this machine.
fn allow_port(config: &mut tauri::Config, port: Option<u16>) {
    if let (Some(Csp::DirectiveMap(policy)), Some(port)) = (&mut config.app.security.csp, port) {
        for directive in ["connect-src", "media-src", "img-src"] {
            policy.entry(directive.into()).or_default().push(format!("http://127.0.0.1:{port}"));
        }
    }
}

/// The program was started again. False: this one is about to end.
fn visited(app: &AppHandle, files: Vec<PathBuf>) -> bool {
    let shell = app.state::<Shell>();
    if shell.is_closing() {
        return false;
    }
    let session = shell.state.session.clone();
    // A folder may be large or on a network.
    tauri::async_runtime::spawn_blocking(move || session.add(files));
    if let Some(window) = app.get_webview_window("main") {
        // Whatever of these a desktop refuses, the files are in the list.
        let _ = window.unminimize();
        let _ = window.show();
        let _ = window.set_focus();
    }
    true
}

fn drag_drop(shell: &Shell, event: &DragDropEvent) {
    match event {
        DragDropEvent::Enter { paths, .. } => {
            shell.tell(app::view::WindowEvent::drag_over(paths.len()));
        }
        DragDropEvent::Drop { paths, .. } => {
            shell.tell(app::view::WindowEvent::DragLeft);
            let (session, paths) = (shell.state.session.clone(), paths.clone());
            // A folder may be large or on a network.
            tauri::async_runtime::spawn_blocking(move || session.add(paths));
        }
        DragDropEvent::Leave => shell.tell(app::view::WindowEvent::DragLeft),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
