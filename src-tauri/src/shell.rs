//! What the program holds besides the desk: the page's channel, and the tasks
//! that feed the page.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::player::Player;
use api::session::{self, Desk};
use api::transfers::Transfers;
use tauri::async_runtime::{JoinHandle, spawn};
use tauri::ipc::{Channel, Response};
use tauri::{AppHandle, Manager};
use tokio::sync::watch;

use crate::attend::Attending;
use crate::first_paint::FirstPaint;
use crate::place;
use contract::{MemoryUpdate, Settings, Setup, TextUpdate, WindowEvent};

/// As long as a page may take to write down what was typed before the window closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// As long as what the page asked for may take after that.
const LAST_EDITS: Duration = Duration::from_secs(5);

pub struct Shell {
    pub desk: Desk,
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
    asked_to_close: AtomicBool,
    closing: AtomicBool,
    /// How many of the page's wishes are waiting for the disk.
    under_way: watch::Sender<usize>,
    pub attending: Attending,
}

impl Shell {
    /// Within the async runtime.
    pub fn new(first_paint: FirstPaint) -> Self {
        Self {
            desk: Desk::open(|problem| eprintln!("steno-window: {problem}")),
            transfers: Transfers::default(),
            player: Arc::default(),
            first_paint,
            page: Mutex::default(),
            list: Mutex::default(),
            text: Mutex::default(),
            memory: Mutex::default(),
            downloads: Mutex::default(),
            asked_to_close: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            under_way: watch::Sender::new(0),
            attending: Attending::default(),
        }
    }

    pub fn setup(&self) -> Setup {
        Setup::new(&self.desk, env!("CARGO_PKG_VERSION"))
    }

    pub fn tell_setup(&self) {
        self.tell(WindowEvent::Setup { setup: Box::new(self.setup()) });
    }

    /// What the page says of models by their numbers.
    pub fn chosen(&self, settings: Settings) -> session::Settings {
        self.desk.with_model(settings.chosen(&self.desk.models()))
    }

    pub fn models_changed(&self, installed: Option<String>) {
        self.desk.models_changed(installed);
        self.tell_setup();
    }

    /// From now on `page` is told what happens, from the whole list on. A page
    /// that was loaded anew replaces the one before.
    pub fn attach(&self, page: Channel<WindowEvent>) {
        let mut follower = self.desk.session.follow();
        let channel = page.clone();
        let task = spawn(async move {
            while let Some(changes) = follower.next().await {
                let changed = changes.changed.into_iter().map(Into::into).collect();
                let event = WindowEvent::Jobs { changed, removed: changes.removed, order: changes.order };
                if channel.send(event).is_err() {
                    return;
                }
            }
        });
        replace(&self.list, task);
        let (mut follower, channel) = (self.transfers.follow(), page.clone());
        let task = spawn(async move {
            while let Some(transfers) = follower.next().await {
                let transfers = transfers.into_iter().map(Into::into).collect();
                if channel.send(WindowEvent::Transfers { transfers }).is_err() {
                    return;
                }
            }
        });
        replace(&self.downloads, task);
        *lock(&self.page) = Some(page);
        self.asked_to_close.store(false, Ordering::Relaxed);
    }

    /// Sends one recording's text, and what changes in it, until another is watched.
    pub fn watch(&self, job: u64, updates: Channel<Response>) {
        let mut follower = self.desk.session.follow_text(job);
        let task = spawn(async move {
            while let Some(change) = follower.next().await {
                if updates.send(Response::new(TextUpdate::from(change).json())).is_err() {
                    return;
                }
            }
        });
        replace(&self.text, task);
    }

    /// Sends what is seen of one job's memory, until another is watched.
    pub fn watch_memory(&self, job: u64, updates: Channel<MemoryUpdate>) {
        let mut follower = self.desk.session.follow_memory(job);
        let task = spawn(async move {
            while let Some(change) = follower.next().await {
                if updates.send(change.into()).is_err() {
                    return;
                }
            }
        });
        replace(&self.memory, task);
    }

    pub fn tell(&self, event: WindowEvent) {
        if let Some(page) = &*lock(&self.page) {
            // A page that is just being loaded gets all of it when it attaches.
            let _ = page.send(event);
        }
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Until it is dropped the program does not end.
    pub fn under_way(&self) -> UnderWay {
        self.under_way.send_modify(|count| *count += 1);
        UnderWay(self.under_way.clone())
    }

    pub fn keep_open(&self) {
        self.asked_to_close.store(false, Ordering::Relaxed);
    }
}

/// The page writes down what was typed, and asks the user where there is
/// something to lose. Never twice: a page that does not answer must not keep
/// the window open.
pub fn request_close(app: AppHandle) {
    let shell = app.state::<Shell>();
    let session = &shell.desk.session;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (unfinished, unsaved) = (count(session.unfinished()), count(session.unsaved()));
    if lock(&shell.page).is_none() || shell.asked_to_close.swap(true, Ordering::Relaxed) {
        return close(app);
    }
    shell.tell(WindowEvent::CloseRequested { unfinished, unsaved });
    if unfinished == 0 && unsaved == 0 {
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
        place::remember(&app.state::<Shell>(), &window);
        // Nobody should watch the two seconds that an engine may take.
        let _ = window.hide();
    }
    spawn(async move {
        let shell = app.state::<Shell>();
        let (session, mut under_way) = (shell.desk.session.clone(), shell.under_way.subscribe());
        session.close().await;
        // An edit may be waiting for another one, or for a slow disk.
        let _ = tokio::time::timeout(LAST_EDITS, under_way.wait_for(|count| *count == 0)).await;
        app.exit(0);
    });
}

pub struct UnderWay(watch::Sender<usize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

fn replace(slot: &Mutex<Option<JoinHandle<()>>>, task: JoinHandle<()>) {
    if let Some(before) = lock(slot).replace(task) {
        before.abort();
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
