//! WebKitGTK's usual renderer, which some graphics drivers leave blank, and
//! its simplest, which they all draw. Without a graphics card the processor
//! draws pages itself: as OpenGL's stand-in it would have to translate shaders
//! first, which takes as long as the rest of a start.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::path::Path;

/// `fallback` or `usual` says which renderer to take in any case.
const VARIABLE: &str = "STENO_RENDERER";
const FALLBACK: &str = "fallback";
/// Drivers that leave the simplest renderer blank as well draw it without this.
const BY_THE_PROCESSOR: &str = "WEBKIT_SKIA_ENABLE_CPU_RENDERING";
const OF_WEBKIT: [&str; 3] =
    ["WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE", BY_THE_PROCESSOR];

/// `fallback`, `processor` or `usual`.
pub fn name() -> &'static str {
    match std::env::var_os(BY_THE_PROCESSOR) {
        _ if is_fallback() => FALLBACK,
        Some(value) if value != "0" => "processor",
        _ => "usual",
    }
}

pub fn is_fallback() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|chosen| chosen == FALLBACK)
}

/// Whether somebody wants another than the simplest, or there is no other.
pub fn is_settled() -> bool {
    !cfg!(target_os = "linux") || std::env::var_os(VARIABLE).is_some_and(|chosen| chosen != FALLBACK)
}

/// Before anything else: starts the program anew with the simplest renderer
/// where that is asked for, or was `needed` before and nothing is asked for.
/// Otherwise the processor draws where there is no graphics card, unless
/// WebKit's own variable says what is to draw.
pub fn choose(needed: bool) {
    let asked = std::env::var_os(VARIABLE).is_some();
    let is_set_up = || OF_WEBKIT.iter().all(|name| std::env::var_os(name).is_some());
    if (!asked && needed) || (is_fallback() && !is_set_up()) {
        start_anew(std::env::args_os().skip(1));
    }
    #[cfg(target_os = "linux")]
    if !has_card(Path::new("/dev")) {
        // Where that fails OpenGL's stand-in draws.
        let _ = glib::setenv(BY_THE_PROCESSOR, "1", false);
    }
}

/// A device that OpenGL may draw with: one of the kernel's, NVIDIA's without
/// those, or that of the system around a virtual machine.
#[cfg(target_os = "linux")]
fn has_card(devices: &Path) -> bool {
    let is_renderer = |name: OsString| name.to_string_lossy().starts_with("renderD");
    let entries = std::fs::read_dir(devices.join("dri")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(is_renderer)
        || ["nvidiactl", "dxg"].iter().any(|name| devices.join(name).exists())
}

/// With the simplest renderer, in the same process, so that whoever waits for
/// it goes on waiting; returns only where that fails. What is under way comes
/// back as after a crash.
#[cfg(target_os = "linux")]
pub fn start_anew(arguments: impl Iterator<Item = OsString>) {
    use std::os::unix::process::CommandExt;
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = std::process::Command::new(program);
    again.args(arguments).env(VARIABLE, FALLBACK).envs(OF_WEBKIT.map(|name| (name, "1")));
    let error = again.exec();
    eprintln!("steno-window: that failed ({error})");
}

#[cfg(not(target_os = "linux"))]
pub fn start_anew(_: impl Iterator<Item = OsString>) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_what_opengl_can_draw_with() {
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
