//! The window opens where and as large as it was last closed.

use app::session::{Screen, WindowBounds};
use tauri::{AppHandle, Monitor, WebviewWindow, WebviewWindowBuilder};

use crate::shell::Shell;

pub fn open_window(app: &AppHandle, place: Option<WindowBounds>) -> tauri::Result<()> {
    let Some(config) = app.config().app.windows.first() else { return Ok(()) };
    let mut builder = WebviewWindowBuilder::from_config(app, config)?;
    if let Some(place) = place {
        let screens: Vec<Screen> = app.available_monitors()?.iter().map(screen).collect();
        let least = (config.min_width.unwrap_or(0.0), config.min_height.unwrap_or(0.0));
        let (size, position) = place.fitted(&screens, least);
        builder = builder.inner_size(size.0, size.1).maximized(place.maximized);
        if let Some((x, y)) = position {
            builder = builder.position(x, y);
        }
    }
    keep_nothing(&builder.build()?)
}

/// Turns WebKit's cache off. There are no pages to go back to, and WebKit would keep all
/// bytes of a recording as long as it is played.
#[cfg(target_os = "linux")]
fn keep_nothing(window: &WebviewWindow) -> tauri::Result<()> {
    use webkit2gtk::{CacheModel, WebContextExt, WebViewExt};
    window.with_webview(|webview| {
        if let Some(context) = webview.inner().context() {
            context.set_cache_model(CacheModel::DocumentViewer);
        }
    })
}

#[cfg(not(target_os = "linux"))]
fn keep_nothing(_: &WebviewWindow) -> tauri::Result<()> {
    Ok(())
}

pub fn remember(shell: &Shell, window: &WebviewWindow) {
    let (Ok(size), Ok(position), Ok(scale), Ok(maximized)) =
        (window.inner_size(), window.outer_position(), window.scale_factor(), window.is_maximized())
    else {
        return;
    };
    let (size, position) = (size.to_logical::<f64>(scale), position.to_logical::<f64>(scale));
    let now =
        WindowBounds { x: position.x, y: position.y, width: size.width, height: size.height, maximized };
    shell.state.remember(|remembered| remembered.window = Some(now.after(remembered.window)));
}

fn screen(monitor: &Monitor) -> Screen {
    let scale = monitor.scale_factor();
    let at = monitor.position().to_logical::<f64>(scale);
    let size = monitor.size().to_logical::<f64>(scale);
    Screen { at: (at.x, at.y), size: (size.width, size.height) }
}
