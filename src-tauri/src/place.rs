//! The window opens where and as large as it was last closed.

use api::session::WindowPlace;
use tauri::{AppHandle, Monitor, WebviewWindow, WebviewWindowBuilder};

use crate::shell::Shell;

/// How much of the title bar has to be on a screen, so that it can be moved.
const GRIP: f64 = 48.0;

pub fn open_window(app: &AppHandle, place: Option<WindowPlace>) -> tauri::Result<()> {
    let Some(config) = app.config().app.windows.first() else { return Ok(()) };
    let mut builder = WebviewWindowBuilder::from_config(app, config)?;
    if let Some(place) = place {
        let least = (config.min_width.unwrap_or(0.0), config.min_height.unwrap_or(0.0));
        builder = builder.inner_size(place.width.max(least.0), place.height.max(least.1));
        // A screen may have been unplugged since.
        if app.available_monitors()?.iter().any(|monitor| shows(monitor, place)) {
            builder = builder.position(place.x, place.y);
        }
        builder = builder.maximized(place.maximized);
    }
    builder.build()?;
    Ok(())
}

pub fn remember(shell: &Shell, window: &WebviewWindow) {
    let (Ok(size), Ok(position), Ok(scale), Ok(maximized)) =
        (window.inner_size(), window.outer_position(), window.scale_factor(), window.is_maximized())
    else {
        return;
    };
    let (size, position) = (size.to_logical::<f64>(scale), position.to_logical::<f64>(scale));
    shell.remember(|remembered| {
        let now =
            WindowPlace { x: position.x, y: position.y, width: size.width, height: size.height, maximized };
        // The size to go back to from the whole screen is the one before.
        remembered.window = match remembered.window {
            Some(before) if maximized => Some(WindowPlace { maximized, ..before }),
            _ => Some(now),
        };
    });
}

fn shows(monitor: &Monitor, place: WindowPlace) -> bool {
    let scale = monitor.scale_factor();
    let (at, size) = (monitor.position().to_logical::<f64>(scale), monitor.size().to_logical::<f64>(scale));
    let (x, y) = (place.x + GRIP, place.y + GRIP / 2.0);
    (at.x..at.x + size.width).contains(&x) && (at.y..at.y + size.height).contains(&y)
}
