//! Choosing a renderer of WebKitGTK: the usual one, which stays blank with some
//! graphics drivers, or a fallback that works with all of them. Without a
//! graphics card pages are drawn on the CPU without OpenGL: a software OpenGL
//! has to compile shaders first, which takes as long as the rest of a start.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::path::Path;

/// `fallback` or `usual` forces a renderer.
const VARIABLE: &str = "STENO_RENDERER";
const FALLBACK: &str = "fallback";
/// Draws on the CPU. Some drivers need it for the fallback as well.
const CPU_RENDERING: &str = "WEBKIT_SKIA_ENABLE_CPU_RENDERING";
/// WebKit's variables that make up the fallback.
const FALLBACK_VARIABLES: [&str; 3] =
    ["WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE", CPU_RENDERING];

/// The renderer of this process: `fallback`, `processor` (the CPU) or `usual`.
pub fn name() -> &'static str {
    match std::env::var_os(CPU_RENDERING) {
        _ if is_fallback() => FALLBACK,
        Some(value) if value != "0" => "processor",
        _ => "usual",
    }
}

/// Whether this process uses the fallback.
pub fn is_fallback() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|chosen| chosen == FALLBACK)
}

/// Whether the renderer must not be changed: the user forces the usual one, or the
/// system is not Linux.
pub fn is_fixed() -> bool {
    !cfg!(target_os = "linux") || std::env::var_os(VARIABLE).is_some_and(|chosen| chosen != FALLBACK)
}

/// Chooses the renderer; must be called before anything else. Restarts the program
/// with the fallback if the user forces it, or if an earlier start `needed` it
/// and the user forces nothing. Otherwise, without a graphics card, pages are
/// drawn on the CPU unless WebKit's own variable is set.
pub fn choose(needed: bool) {
    let asked = std::env::var_os(VARIABLE).is_some();
    let is_set_up = || FALLBACK_VARIABLES.iter().all(|name| std::env::var_os(name).is_some());
    if (!asked && needed) || (is_fallback() && !is_set_up()) {
        start_anew(std::env::args_os().skip(1));
    }
    #[cfg(target_os = "linux")]
    if !has_card(Path::new("/dev")) {
        // If this fails a software OpenGL draws.
        let _ = glib::setenv(CPU_RENDERING, "1", false);
    }
}

/// Whether there is a device for OpenGL: a render node of the kernel, NVIDIA's
/// driver without render nodes, or the GPU of the host of a WSL machine.
#[cfg(target_os = "linux")]
fn has_card(devices: &Path) -> bool {
    let is_renderer = |name: OsString| name.to_string_lossy().starts_with("renderD");
    let entries = std::fs::read_dir(devices.join("dri")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(is_renderer)
        || ["nvidiactl", "dxg"].iter().any(|name| devices.join(name).exists())
}

/// Restarts the program with the fallback, in the same process (`exec`), so that
/// its parent need not know. The journal restores the queue as after a crash.
/// Returns only if that fails.
#[cfg(target_os = "linux")]
pub fn start_anew(arguments: impl Iterator<Item = OsString>) {
    use std::os::unix::process::CommandExt;
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = std::process::Command::new(program);
    again.args(arguments).env(VARIABLE, FALLBACK).envs(FALLBACK_VARIABLES.map(|name| (name, "1")));
    let error = again.exec();
    eprintln!("steno-window: the restart with another renderer failed ({error})");
}

/// Does nothing: other systems have one renderer.
#[cfg(not(target_os = "linux"))]
pub fn start_anew(_: impl Iterator<Item = OsString>) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn devices_for_opengl_are_found() {
        for (devices, expected) in [
            (&[][..], false),
            (&["dri/card0", "null"], false),
            (&["dri/card0", "dri/renderD128"], true),
            (&["nvidiactl"], true),
            (&["dxg"], true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("dri")).unwrap();
            devices.iter().for_each(|device| std::fs::write(folder.path().join(device), "").unwrap());
            assert_eq!(has_card(folder.path()), expected, "{devices:?}");
        }
        assert!(!has_card(Path::new("/there/is/none")));
    }
}
