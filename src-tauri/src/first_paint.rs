//! Some graphics drivers leave the window blank. Where no first frame is seen
//! the program starts itself once more with WebKitGTK's simplest renderer, and
//! remembers that if it helped.

use app::diagnostics;
use app::session::Remembered;
use desktop::renderer;
use tauri::{AppHandle, Manager, State};

use crate::shell::Shell;

/// The page has shown its first frame, or it is hidden and need not yet.
#[tauri::command]
pub fn painted(shell: State<'_, Shell>, seen: bool) {
    if shell.first_paint.painted(seen) {
        shell.state.remember(|remembered| remembered.fallback_renderer = tauri::webview_version().ok());
    }
}

/// For a bug report.
pub fn report(shell: &Shell) -> diagnostics::Window {
    diagnostics::Window {
        first_paint_milliseconds: shell.first_paint.time().map(|time| time.as_millis()),
        renderer: renderer::name(),
        webview: tauri::webview_version().ok(),
    }
}

/// Before anything else: starts anew with the renderer that was needed the last
/// time. Another version of WebKit gets its chance.
pub fn choose_renderer() {
    let remembered = Remembered::file().map(|file| Remembered::load(&file)).unwrap_or_default();
    let of_this_version = |version| tauri::webview_version().is_ok_and(|now| now == version);
    let needed = remembered.fallback_renderer.is_some_and(of_this_version);
    renderer::choose(needed);
}

/// Waits for the first frame.
pub fn watch(app: AppHandle) {
    if renderer::is_fixed() {
        return;
    }
    std::thread::spawn(move || {
        let shell = app.state::<Shell>();
        if !shell.first_paint.wait() {
            if renderer::is_fallback() { give_up() } else { fall_back(&shell) }
        }
    });
}

fn fall_back(shell: &Shell) {
    eprintln!("steno-window: the window stayed blank; starting it again with WebKit's simplest renderer");
    // Without a model nothing is kept in the journal: the files are named anew.
    let kept = shell.state.session.settings().model.is_some();
    renderer::start_anew(std::env::args_os().skip(if kept { usize::MAX } else { 1 }));
}

fn give_up() {
    eprintln!(
        "steno-window: the window stayed blank with WebKit's simplest renderer too. The command line \
         (steno transcribe) does all that the window does."
    );
}
