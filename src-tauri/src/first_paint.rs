//! Some graphics drivers leave the window blank. Where no first frame is seen
//! the program starts itself once more with WebKitGTK's simplest renderer, and
//! remembers that if it helped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::session::Remembered;
use tauri::{AppHandle, Manager};

use crate::shell::Shell;

/// `fallback` or `usual` says which renderer to take in any case.
const RENDERER: &str = "STENO_RENDERER";
const FALLBACK: &str = "fallback";
const VARIABLES: [&str; 2] = ["WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE"];

/// For tests: the usual renderer's frames are not seen.
const BLANK: &str = "STENO_TEST_BLANK_PAGE";

/// For measurements: tells on standard error when what happened.
const TIMES: &str = "STENO_TEST_TIMES";

/// From when the page's scripts run: a machine that is slow to start is no
/// reason to draw slowly for ever.
const PATIENCE: Duration = Duration::from_secs(5);
/// Until the page's scripts run at all.
const LONGEST_START: Duration = Duration::from_secs(20);

pub struct FirstPaint {
    started: Instant,
    attached: Mutex<Option<Instant>>,
    /// After what time.
    painted: Mutex<Option<Duration>>,
    over: AtomicBool,
}

impl FirstPaint {
    pub fn since(started: Instant) -> Self {
        let (attached, painted) = (Mutex::default(), Mutex::default());
        Self { started, attached, painted, over: AtomicBool::new(false) }
    }

    /// The page's scripts run.
    pub fn attached(&self) {
        lock(&self.attached).get_or_insert_with(Instant::now);
        self.tell("scripts run");
    }

    fn tell(&self, what: &str) {
        if std::env::var_os(TIMES).is_some() {
            eprintln!("steno-window: {what} after {} ms", self.started.elapsed().as_millis());
        }
    }

    /// For a bug report.
    pub fn report(&self) -> api::diagnostics::Window {
        api::diagnostics::Window {
            first_paint_milliseconds: lock(&self.painted).map(|time| time.as_millis()),
            renderer: if is_fallback() { FALLBACK } else { "usual" },
            webview: tauri::webview_version().ok(),
        }
    }

    fn is_late(&self) -> bool {
        let attached = *lock(&self.attached);
        attached.map_or(self.started.elapsed() > LONGEST_START, |since| since.elapsed() > PATIENCE)
    }
}

/// The page has shown its first frame, or it is hidden and need not yet.
#[tauri::command]
pub fn painted(shell: tauri::State<'_, Shell>, seen: bool) {
    let paint = &shell.first_paint;
    if std::env::var_os(BLANK).is_some() && !is_fallback() {
        return;
    }
    paint.over.store(true, Ordering::Relaxed);
    if seen && lock(&paint.painted).is_none() {
        *lock(&paint.painted) = Some(paint.started.elapsed());
        paint.tell("first frame");
        if is_fallback() {
            shell.remember(|remembered| remembered.fallback_renderer = tauri::webview_version().ok());
        }
    }
}

/// Before anything else: starts anew with the renderer that was needed the last
/// time. Another version of WebKit gets its chance.
pub fn choose_renderer() {
    let remembered = Remembered::file().map(|file| Remembered::load(&file)).unwrap_or_default();
    let of_this_version = |version| tauri::webview_version().is_ok_and(|now| now == version);
    let needed = remembered.fallback_renderer.is_some_and(of_this_version);
    let asked = std::env::var_os(RENDERER);
    let has_variables = || VARIABLES.iter().all(|name| std::env::var_os(name).is_some());
    if (asked.is_none() && needed) || (is_fallback() && !has_variables()) {
        start_anew(std::env::args_os().skip(1));
    }
}

/// Waits for the first frame.
pub fn watch(app: AppHandle) {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    if std::env::var_os(RENDERER).is_some_and(|chosen| chosen != FALLBACK) || !cfg!(target_os = "linux") {
        return;
    }
    std::thread::spawn(move || {
        let shell = app.state::<Shell>();
        while !shell.first_paint.over.load(Ordering::Relaxed) {
            if shell.first_paint.is_late() {
                return if is_fallback() { give_up() } else { fall_back(&shell) };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });
}

fn fall_back(shell: &Shell) {
    eprintln!("steno-window: the window stayed blank; starting it again with WebKit's simplest renderer");
    // Without a model nothing is kept in the journal: the files are named anew.
    let kept = shell.session.settings().model.is_some();
    start_anew(std::env::args_os().skip(if kept { usize::MAX } else { 1 }));
}

fn give_up() {
    eprintln!(
        "steno-window: the window stayed blank with WebKit's simplest renderer too. The command line \
         (steno transcribe) does all that the window does."
    );
}

fn is_fallback() -> bool {
    std::env::var_os(RENDERER).is_some_and(|chosen| chosen == FALLBACK)
}

/// In the same process, so that whoever waits for it goes on waiting; returns
/// only where that fails. What is under way comes back as after a crash.
#[cfg(target_os = "linux")]
fn start_anew(arguments: impl Iterator<Item = std::ffi::OsString>) {
    use std::os::unix::process::CommandExt;
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = std::process::Command::new(program);
    again.args(arguments).env(RENDERER, FALLBACK).envs(VARIABLES.map(|name| (name, "1")));
    let error = again.exec();
    eprintln!("steno-window: that failed ({error})");
}

#[cfg(not(target_os = "linux"))]
fn start_anew(_: impl Iterator<Item = std::ffi::OsString>) {}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
