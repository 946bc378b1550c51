//! WebKitGTK's usual renderer, which some graphics drivers leave blank, and
//! its simplest, which they all draw.

use std::ffi::OsString;

/// `fallback` or `usual` says which renderer to take in any case.
const VARIABLE: &str = "STENO_RENDERER";
const FALLBACK: &str = "fallback";
const OF_WEBKIT: [&str; 2] = ["WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE"];

/// `fallback` or `usual`.
pub fn name() -> &'static str {
    if is_fallback() { FALLBACK } else { "usual" }
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
pub fn choose(needed: bool) {
    let asked = std::env::var_os(VARIABLE).is_some();
    let is_set_up = || OF_WEBKIT.iter().all(|name| std::env::var_os(name).is_some());
    if (!asked && needed) || (is_fallback() && !is_set_up()) {
        start_anew(std::env::args_os().skip(1));
    }
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
