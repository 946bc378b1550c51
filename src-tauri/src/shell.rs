//! What the program holds besides the session: the models by number, the
//! page's channel, and the tasks that feed the page.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::choice;
use api::runs::Runs;
use api::session::{self, Remembered, Session};
use api::transfers::Transfers;
use api::{EngineOptions, ModelRef, Preferences, SupervisorOptions};
use tauri::async_runtime::{JoinHandle, spawn};
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager};
use transcript::Task;

use crate::attend::Attending;
use crate::contract::{
    Exporting, Failure, Look, MemoryUpdate, ModelChoice, Preset, Settings, Setup, TextUpdate, WindowEvent,
};
use crate::first_paint::FirstPaint;
use crate::{place, store};

pub struct Shell {
    pub session: Session,
    pub sample: Option<PathBuf>,
    pub transfers: Transfers,
    pub first_paint: FirstPaint,
    /// The page knows them by their index.
    models: Mutex<Vec<ModelRef>>,
    page: Mutex<Option<Channel<WindowEvent>>>,
    /// Feeds the page's list.
    list: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the transcript that is open.
    text: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the memory panel.
    memory: Mutex<Option<JoinHandle<()>>>,
    /// Feeds the list of downloads.
    downloads: Mutex<Option<JoinHandle<()>>>,
    preferences_failure: Mutex<Option<Failure>>,
    asked_to_close: AtomicBool,
    remembered: Mutex<Remembered>,
    pub attending: Attending,
}

/// One engine at a time on each device, and a journal of what is under way.
fn supervision(preferences: &Preferences) -> SupervisorOptions {
    let runs = Runs::of_this_user();
    for orphan in runs.iter().flat_map(Runs::sweep) {
        eprintln!("steno: {orphan}");
    }
    SupervisorOptions {
        engine: EngineOptions { priority: preferences.engine.priority, ..EngineOptions::default() },
        journal: api::state::open_journal(|problem| eprintln!("steno: {problem}")),
        runs,
        memory: preferences.memory.clone(),
    }
}

impl Shell {
    /// Within the async runtime.
    pub fn new(first_paint: FirstPaint) -> Self {
        let remembered = Remembered::file().map(|file| Remembered::load(&file)).unwrap_or_default();
        let (preferences, failure) = read_preferences();
        let (models, settings) = session::start_with(&remembered, &preferences);
        let session = Session::start(supervision(&preferences), settings);
        session.change_preferences(preferences);
        session.put_shortest_first(remembered.shortest_first);
        session.watch_folders(remembered.watched.clone());
        Self {
            session,
            first_paint,
            transfers: Transfers::default(),
            downloads: Mutex::default(),
            memory: Mutex::default(),
            preferences_failure: Mutex::new(failure),
            sample: session::find_sample(),
            models: Mutex::new(models),
            page: Mutex::default(),
            list: Mutex::default(),
            text: Mutex::default(),
            asked_to_close: AtomicBool::new(false),
            remembered: Mutex::new(remembered),
            attending: Attending::default(),
        }
    }

    pub fn setup(&self) -> Setup {
        let models = lock(&self.models);
        let remembered = self.remembered();
        let id = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Setup {
            version: env!("CARGO_PKG_VERSION").into(),
            models: models
                .iter()
                .enumerate()
                .map(|(index, model)| ModelChoice {
                    id: id(index),
                    name: model.name.clone(),
                    folder: model.path.display().to_string(),
                    demonstration: model.demonstration,
                    note: model.note.clone(),
                    removable: store::is_removable(&model.path),
                })
                .collect(),
            settings: Settings::new(self.session.settings(), &models),
            look: Look { theme: remembered.theme, language: remembered.interface },
            exporting: remembered.exporting.into(),
            shortest_first: self.session.is_shortest_first(),
            presets: remembered.presets.into_iter().map(|preset| Preset::new(preset, &models)).collect(),
            watched: self.session.watched().into_iter().map(Into::into).collect(),
            switches: remembered.switches.into(),
            has_sample: self.sample.is_some(),
            paused: self.session.is_paused(),
            preferences_failure: lock(&self.preferences_failure).clone(),
        }
    }

    pub fn change_look(&self, look: Look) {
        self.remember(|remembered| {
            remembered.theme = look.theme;
            remembered.interface = look.language;
        });
        self.tell_setup();
    }

    pub fn remember_exporting(&self, exporting: &Exporting) {
        self.remember(|remembered| remembered.exporting = exporting.clone().into());
        self.tell_setup();
    }

    /// After the config file was changed.
    pub fn read_preferences(&self) {
        let (preferences, failure) = read_preferences();
        self.session.change_preferences(preferences);
        *lock(&self.preferences_failure) = failure;
        self.tell_setup();
    }

    pub fn tell_setup(&self) {
        self.tell(WindowEvent::Setup { setup: Box::new(self.setup()) });
    }

    /// The models, and a job of the settings in force.
    pub fn models_and_job(&self) -> (Vec<ModelRef>, api::Job) {
        let settings = self.session.settings();
        let job = choice::example(settings.language.as_deref(), settings.task, &self.session.preferences());
        (lock(&self.models).clone(), job)
    }

    pub fn change_settings(&self, settings: Settings) {
        self.use_settings(self.chosen(settings));
    }

    /// Settings that name no model have the one at hand.
    pub fn chosen(&self, settings: Settings) -> session::Settings {
        let chosen = settings.chosen(&lock(&self.models));
        let model = chosen.model.or_else(|| self.session.settings().model);
        session::Settings { model, ..chosen }
    }

    pub fn change_watched(&self, change: impl FnOnce(&mut Vec<session::WatchedFolder>)) {
        let mut folders = self.session.watched().into_iter().map(|watched| watched.folder).collect();
        change(&mut folders);
        self.remember(|remembered| remembered.watched.clone_from(&folders));
        self.session.watch_folders(folders);
    }

    /// Adds a model to the choice and takes it.
    pub fn use_model(&self, model: ModelRef) {
        let mut settings = self.session.settings();
        settings.model = Some(model.clone());
        let known = lock(&self.models).iter().any(|known| known.path == model.path);
        if !known {
            self.remember(|remembered| remembered.models.push(model.path.clone().into()));
            lock(&self.models).push(model);
        }
        self.use_settings(settings);
    }

    /// After one was installed or removed.
    pub fn models_changed(&self, installed: Option<String>) {
        let models = session::all_models(&self.remembered());
        let before = self.session.settings();
        let preferences = self.session.preferences();
        let settings = session::with_models(before, &models, installed.as_deref(), &preferences);
        *lock(&self.models) = models;
        self.use_settings(settings);
    }

    fn use_settings(&self, settings: session::Settings) {
        self.remember(|remembered| {
            // A real one is to be taken as soon as there is one.
            let model = settings.model.as_ref().filter(|model| !model.demonstration);
            remembered.model = model.map(|model| model.path.clone().into());
            remembered.language = settings.language.clone();
            remembered.translate = settings.task == Task::Translate;
            remembered.decoding = settings.decoding.clone();
        });
        self.session.change_settings(settings);
        self.tell_setup();
    }

    pub fn remembered(&self) -> Remembered {
        lock(&self.remembered).clone()
    }

    pub fn remember(&self, change: impl FnOnce(&mut Remembered)) {
        let mut remembered = lock(&self.remembered);
        let before = remembered.clone();
        change(&mut remembered);
        if *remembered != before
            && let Some(file) = Remembered::file()
            && let Err(error) = remembered.save(&file)
        {
            // A convenience is no reason to disturb anybody.
            eprintln!("steno-window: {error}");
        }
    }

    /// From now on `page` is told what happens, from the whole list on. A page
    /// that was loaded anew replaces the one before.
    pub fn attach(&self, page: Channel<WindowEvent>) {
        let mut follower = self.session.follow();
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
    pub fn watch(&self, job: u64, updates: Channel<TextUpdate>) {
        let mut follower = self.session.follow_text(job);
        let task = spawn(async move {
            while let Some(change) = follower.next().await {
                if updates.send(change.into()).is_err() {
                    return;
                }
            }
        });
        replace(&self.text, task);
    }

    /// Sends what is seen of one job's memory, until another is watched.
    pub fn watch_memory(&self, job: u64, updates: Channel<MemoryUpdate>) {
        let mut follower = self.session.follow_memory(job);
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

    /// True where the page asks the user first. Never twice: a page that does
    /// not answer must not keep the window open.
    pub fn ask_before_closing(&self) -> bool {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (unfinished, unsaved) = (count(self.session.unfinished()), count(self.session.unsaved()));
        let nothing_to_lose = unfinished == 0 && unsaved == 0;
        if nothing_to_lose || lock(&self.page).is_none() || self.asked_to_close.swap(true, Ordering::Relaxed)
        {
            return false;
        }
        self.tell(WindowEvent::CloseRequested { unfinished, unsaved });
        true
    }

    pub fn keep_open(&self) {
        self.asked_to_close.store(false, Ordering::Relaxed);
    }
}

/// What the user's config file says, and what is wrong with it.
fn read_preferences() -> (Preferences, Option<Failure>) {
    match Preferences::of_this_user(&Default::default()) {
        Ok(preferences) => (preferences, None),
        Err(failure) => (Preferences::default(), Some(failure.into())),
    }
}

/// Ends the engine, then the program.
pub fn close(app: AppHandle) {
    if let Some(window) = app.get_webview_window("main") {
        place::remember(&app.state::<Shell>(), &window);
        // Nobody should watch the two seconds that an engine may take.
        let _ = window.hide();
    }
    spawn(async move {
        let session = app.state::<Shell>().session.clone();
        session.close().await;
        app.exit(0);
    });
}

fn replace(slot: &Mutex<Option<JoinHandle<()>>>, task: JoinHandle<()>) {
    if let Some(before) = lock(slot).replace(task) {
        before.abort();
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
