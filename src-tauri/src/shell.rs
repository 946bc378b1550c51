//! The shell's state: that of the program, the page's channel, and the tasks
//! that feed the page.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor::transfers::Transfers;
use app::Player;
use app::session::AppState;
use desktop::first_paint::FirstPaint;
use tauri::async_runtime::{JoinHandle, spawn};
use tauri::ipc::{Channel, Response};
use tauri::{AppHandle, Manager};
use tokio::sync::watch;

use crate::attend::Attending;
use crate::window_bounds;
use app::view::{MemoryUpdate, Setup, TextUpdate, WindowEvent};

/// How long the page may take to send what was typed before the window closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the page's commands may take after that.
const LAST_EDITS: Duration = Duration::from_secs(5);

pub struct Shell {
    pub state: AppState,
    pub transfers: Transfers,
    pub player: Arc<Player>,
    pub first_paint: FirstPaint,
    page: Mutex<Option<Channel<WindowEvent>>>,
    /// Feeds the page's list.
    list: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the transcript that is open.
    text: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the memory panel.
    memory: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the list of downloads.
    downloads: Mutex<Option<JoinHandle<()>>>,
    /// Tells how far the search by meaning is.
    index: Mutex<Option<JoinHandle<()>>>,
    asked_to_close: AtomicBool,
    closing: AtomicBool,
    /// Nothing is ever sent: each running command of the page holds a receiver.
    under_way: watch::Sender<()>,
    pub attending: Attending,
}

impl Shell {
    /// Within the async runtime.
    pub fn new(first_paint: FirstPaint, player: Player) -> Self {
        Self {
            state: AppState::open(|problem| eprintln!("steno-window: {problem}")),
            transfers: Transfers::default(),
            player: Arc::new(player),
            first_paint,
            page: Mutex::default(),
            list: Mutex::default(),
            text: Mutex::default(),
            memory: Mutex::default(),
            downloads: Mutex::default(),
            index: Mutex::default(),
            asked_to_close: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            under_way: watch::Sender::new(()),
            attending: Attending::default(),
        }
    }

    pub fn setup(&self) -> Setup {
        Setup::new(&self.state, env!("CARGO_PKG_VERSION"))
    }

    pub fn tell_setup(&self) {
        self.tell(WindowEvent::Setup { setup: Box::new(self.setup()) });
    }

    pub fn models_changed(&self, installed: Option<String>) {
        self.state.models_changed(installed);
        self.tell_setup();
    }

    /// Lists the models again and tells the page where they are others than before.
    pub fn read_models(&self) {
        if self.state.read_models() {
            self.tell_setup();
        }
    }

    /// Sends the whole list and then every change to `page`. A page that is loaded again
    /// replaces the one before.
    pub fn attach(&self, page: Channel<WindowEvent>) {
        let (mut jobs, channel) = (self.state.session.follow(), page.clone());
        feed(&self.list, async move {
            while let Some(changes) = jobs.next().await
                && channel.send(changes.into()).is_ok()
            {}
        });
        let (mut transfers, channel) = (self.transfers.follow(), page.clone());
        feed(&self.downloads, async move {
            while let Some(all) = transfers.next().await
                && channel.send(all.into()).is_ok()
            {}
        });
        let (mut index, channel) = (self.state.session.follow_index(), page.clone());
        feed(&self.index, async move {
            while index.changed().await.is_ok() {
                let state = index.borrow_and_update().clone();
                if channel.send(state.into()).is_err() {
                    return;
                }
            }
        });
        *lock(&self.page) = Some(page);
        self.keep_open();
    }

    /// Sends one recording's text, and what changes in it, until another is watched.
    pub fn watch(&self, job: u64, updates: Channel<Response>) {
        let mut text = self.state.session.follow_text(job);
        feed(&self.text, async move {
            while let Some(change) = text.next().await
                && updates.send(Response::new(TextUpdate::from(change).json())).is_ok()
            {}
        });
    }

    /// Sends what is seen of one job's memory, until another is watched.
    pub fn watch_memory(&self, job: u64, updates: Channel<MemoryUpdate>) {
        let mut memory = self.state.session.follow_memory(job);
        feed(&self.memory, async move {
            while let Some(change) = memory.next().await
                && updates.send(change.into()).is_ok()
            {}
        });
    }

    pub fn tell(&self, event: WindowEvent) {
        if let Some(page) = &*lock(&self.page) {
            // A page that is being loaded gets everything when it attaches.
            let _ = page.send(event);
        }
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Until it is dropped the program does not end.
    pub fn under_way(&self) -> watch::Receiver<()> {
        self.under_way.subscribe()
    }

    pub fn keep_open(&self) {
        self.asked_to_close.store(false, Ordering::Relaxed);
    }
}

/// Has the page send what was typed, and ask the user where something would be lost. Only
/// once: a page that does not answer must not keep the window open.
pub fn request_close(app: AppHandle) {
    let shell = app.state::<Shell>();
    let request = WindowEvent::close_requested(&shell.state.session);
    if lock(&shell.page).is_none() || shell.asked_to_close.swap(true, Ordering::Relaxed) {
        return close(app);
    }
    let asks = request.asks_the_user();
    shell.tell(request);
    if !asks {
        let app = app.clone();
        spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            close(app);
        });
    }
}

/// Ends the engine, then the program.
pub fn close(app: AppHandle) {
    if app.state::<Shell>().closing.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(window) = app.get_webview_window("main") {
        window_bounds::remember(&app.state::<Shell>(), &window);
        // An engine may take two seconds to end: the window need not stay visible.
        let _ = window.hide();
    }
    spawn(async move {
        let shell = app.state::<Shell>();
        shell.state.session.close().await;
        // An edit may be waiting for another one, or for a slow disk.
        let _ = tokio::time::timeout(LAST_EDITS, shell.under_way.closed()).await;
        app.exit(0);
    });
}

/// Takes the place of what was fed before.
fn feed(slot: &Mutex<Option<JoinHandle<()>>>, task: impl Future<Output = ()> + Send + 'static) {
    if let Some(before) = lock(slot).replace(spawn(task)) {
        before.abort();
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
