//! Some graphics drivers leave the window blank. Where no first frame is seen
//! the program starts itself once more with WebKitGTK's simplest renderer, and
//! remembers that if it helped.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::session::Remembered;
use desktop::renderer;
use tauri::{AppHandle, Manager};

use crate::shell::{Shell, lock};

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
            renderer: renderer::name(),
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
    if std::env::var_os(BLANK).is_some() && !renderer::is_fallback() {
        return;
    }
    paint.over.store(true, Ordering::Relaxed);
    if seen && lock(&paint.painted).is_none() {
        *lock(&paint.painted) = Some(paint.started.elapsed());
        paint.tell("first frame");
        if renderer::is_fallback() {
            shell.desk.remember(|remembered| remembered.fallback_renderer = tauri::webview_version().ok());
        }
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
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    if renderer::is_settled() {
        return;
    }
    std::thread::spawn(move || {
        let shell = app.state::<Shell>();
        while !shell.first_paint.over.load(Ordering::Relaxed) {
            if shell.first_paint.is_late() {
                return if renderer::is_fallback() { give_up() } else { fall_back(&shell) };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });
}

fn fall_back(shell: &Shell) {
    eprintln!("steno-window: the window stayed blank; starting it again with WebKit's simplest renderer");
    // Without a model nothing is kept in the journal: the files are named anew.
    let kept = shell.desk.session.settings().model.is_some();
    renderer::start_anew(std::env::args_os().skip(if kept { usize::MAX } else { 1 }));
}

fn give_up() {
    eprintln!(
        "steno-window: the window stayed blank with WebKit's simplest renderer too. The command line \
         (steno transcribe) does all that the window does."
    );
}
