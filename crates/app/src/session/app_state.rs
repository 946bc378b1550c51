//! The state of the program around its session: the models to choose from, and the
//! choices that are remembered in a file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use transcript::Task;
use wire::{ErrorCode, Failure, FilePath};

use super::another_machine::log as connections_log;
use super::model_folders::ModelFolders;
use super::{
    JobSettings, Preset, QueueConnection, Remembered, Session, Stored, WatchedFolder, all_models,
    find_sample, rename_preset, save_preset, start_with, with_models,
};
use advisor::models::Places;
use advisor::{ModelRef, choice};
use config::Preferences;
use supervisor::player::Player;
use supervisor::runs::Runs;
use supervisor::{EngineOptions, SupervisorOptions};
use wire::Job;

/// The state of the program: the session, the models to choose from and the remembered choices.
#[derive(Debug)]
pub struct AppState {
    /// The queue and its engine.
    pub session: Session,
    /// The recording to try the program with.
    pub sample: Option<PathBuf>,
    models: Mutex<Vec<ModelRef>>,
    workers: QueueConnection,
    /// Where models are looked for.
    places: Places,
    /// As they were when `models` was last read.
    folders: Mutex<ModelFolders>,
    preferences_failure: Mutex<Option<Failure>>,
    remembered: Mutex<Remembered>,
    /// What of earlier windows could not be read when this one opened.
    forgotten: Option<Failure>,
    /// `None`: nothing is written.
    file: Option<PathBuf>,
    /// Reports problems that need no answer, such as to standard error.
    report: fn(&str),
}

impl AppState {
    /// Opens the state as the last window left it. Must be called within a tokio runtime.
    pub fn open(report: fn(&str)) -> Self {
        let file = Remembered::file();
        let (remembered, forgotten) = file.as_deref().map(Remembered::open).unwrap_or_default();
        let (preferences, failure) = read_preferences();
        let places = Places::of_this_process();
        // Before the models are read: what comes meanwhile is seen at the next look.
        let folders = ModelFolders::now(&places);
        let (models, settings) = start_with(&places, &remembered, &preferences);
        let machine = Self::remembered_machine(&remembered.machine, file.as_deref());
        let session = Session::start_with(supervision(&preferences, report), settings, machine);
        session.change_preferences(preferences.clone());
        if let Some(documents) = crate::documents::open(|problem| report(&problem)) {
            session.keep_documents(documents);
            session.compare_meanings(advisor::embedding_models);
        }
        session.probe_with(Player::default());
        session.put_shortest_first(remembered.shortest_first);
        session.watch_folders(remembered.watched.clone());
        Self {
            session,
            sample: find_sample(),
            models: Mutex::new(models),
            workers: QueueConnection::new(connections_log()),
            places,
            folders: Mutex::new(folders),
            preferences_failure: Mutex::new(failure),
            remembered: Mutex::new(remembered),
            forgotten,
            file,
            report,
        }
    }

    /// The models to choose from. The page names them by their index.
    pub fn models(&self) -> Vec<ModelRef> {
        lock(&self.models).clone()
    }

    /// The model of that number.
    ///
    /// # Errors
    /// Where there is none any more.
    pub fn model(&self, number: u32) -> Result<ModelRef, Failure> {
        let models = lock(&self.models);
        let none =
            || Failure::new(ErrorCode::ModelNotFound, "This model is gone.").remedy("Choose another one.");
        models.get(number as usize).cloned().ok_or_else(none)
    }

    /// The models, and a job of the settings in force.
    pub fn models_and_job(&self) -> (Vec<ModelRef>, Job) {
        let settings = self.session.settings();
        let job = choice::example(settings.language.as_deref(), settings.task, &self.session.preferences());
        (self.models(), job)
    }

    /// What is wrong with the user's config file; the defaults are in force then.
    pub fn preferences_failure(&self) -> Option<Failure> {
        lock(&self.preferences_failure).clone()
    }

    /// Reads the config file again after it was changed.
    pub fn read_preferences(&self) {
        let (preferences, failure) = read_preferences();
        self.session.change_preferences(preferences);
        *lock(&self.preferences_failure) = failure;
    }

    /// The settings, with the session's model where they name none.
    pub fn with_model(&self, settings: JobSettings) -> JobSettings {
        let model = settings.model.or_else(|| self.session.settings().model);
        JobSettings { model, ..settings }
    }

    /// Sets what recordings are transcribed with, and remembers it.
    pub fn use_settings(&self, settings: JobSettings) {
        self.remember(|remembered| {
            remembered.model = settings.model.as_ref().map(|model| model.path.clone().into());
            remembered.language = settings.language.clone();
            remembered.translate = settings.task == Task::Translate;
            remembered.bilingual = settings.bilingual;
            remembered.decoding = settings.decoding.clone();
            remembered.sound = settings.sound;
            remembered.speakers = settings.speakers;
            remembered.output = settings.output.clone();
        });
        self.session.change_settings(settings);
    }

    /// The folders for transcripts to choose from. The page names them by their index.
    pub fn output_folders(&self) -> Vec<FilePath> {
        let remembered = self.remembered();
        let presets = remembered.presets.into_iter().map(|preset| preset.settings.output.folder);
        let now = self.session.settings().output.folder;
        let mut all = remembered.output_folders;
        for folder in presets.chain([now]).flatten() {
            if !all.contains(&folder) {
                all.push(folder);
            }
        }
        all
    }

    /// Adds a folder for transcripts, which the user chose; its index.
    pub fn add_output_folder(&self, folder: &Path) -> usize {
        let folder = FilePath::from(folder);
        let known = self.output_folders().iter().position(|known| *known == folder);
        known.unwrap_or_else(|| {
            self.remember(|remembered| remembered.output_folders.push(folder.clone()));
            self.output_folders().iter().position(|known| *known == folder).unwrap_or(0)
        })
    }

    /// Adds a model to those to choose from, and chooses it.
    pub fn use_model(&self, model: ModelRef) {
        let settings = JobSettings { model: Some(model.clone()), ..self.session.settings() };
        let known = lock(&self.models).iter().any(|known| known.path == model.path);
        if !known {
            self.remember(|remembered| remembered.models.push(model.path.clone().into()));
            lock(&self.models).push(model);
        }
        self.use_settings(settings);
    }

    /// Lists the models again after one was installed or removed. An installed one
    /// replaces the demonstration.
    pub fn models_changed(&self, installed: Option<String>) {
        self.take_models(all_models(&self.places, &self.remembered()), installed);
    }

    /// Lists the models again, as other programs may have installed or removed some. True
    /// where they are others than before. Waits for the disk.
    pub fn read_models(&self) -> bool {
        let models = all_models(&self.places, &self.remembered());
        let changed = models != *lock(&self.models);
        if changed {
            self.take_models(models, None);
        }
        changed
    }

    /// As [`AppState::read_models`], but only where a folder of models changed since the last
    /// look, so that it can be asked every few seconds.
    pub fn look_for_models(&self) -> bool {
        let now = ModelFolders::now(&self.places);
        let mut folders = lock(&self.folders);
        let changed = *folders != now;
        *folders = now;
        drop(folders);
        if changed {
            self.session.look_for_embedding_models();
        }
        changed && self.read_models()
    }

    fn take_models(&self, models: Vec<ModelRef>, installed: Option<String>) {
        self.session.look_for_embedding_models();
        let before = self.session.settings();
        let settings = with_models(before, &models, installed.as_deref(), &self.session.preferences());
        *lock(&self.models) = models;
        // Only the model: other settings may have changed while drivers were asked.
        self.use_settings(JobSettings { model: settings.model, ..self.session.settings() });
    }

    /// Changes the watched folders, and remembers them.
    pub fn change_watched(&self, change: impl FnOnce(&mut Vec<WatchedFolder>)) {
        let mut folders = self.session.watched().into_iter().map(|watched| watched.folder).collect();
        change(&mut folders);
        self.remember(|remembered| remembered.watched.clone_from(&folders));
        self.session.watch_folders(folders);
    }

    /// Saves settings under a name, in place of those that had it.
    ///
    /// # Errors
    /// Where the name can't be used.
    pub fn save_preset(&self, name: &str, settings: &JobSettings) -> Result<(), Failure> {
        self.change_presets(|presets| save_preset(presets, name, Stored::from(settings)))
    }

    /// # Errors
    /// Where there is no preset of that name, or the new name is taken.
    pub fn rename_preset(&self, name: &str, to: &str) -> Result<(), Failure> {
        self.change_presets(|presets| rename_preset(presets, name, to))
    }

    /// Deletes the preset of that name, if there is one.
    pub fn delete_preset(&self, name: &str) {
        self.remember(|remembered| remembered.presets.retain(|preset| preset.name != name));
    }

    fn change_presets(
        &self,
        change: impl FnOnce(&mut Vec<Preset>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut changed = Ok(());
        self.remember(|remembered| changed = change(&mut remembered.presets));
        changed
    }

    pub(super) fn worker_queue(&self) -> &QueueConnection {
        &self.workers
    }

    /// Where that is written; `None`: nowhere.
    pub(super) fn remembered_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What of the choices of earlier windows could not be read, and where a copy of them is.
    pub fn forgotten(&self) -> Option<Failure> {
        self.forgotten.clone()
    }

    /// What is remembered of earlier windows.
    pub fn remembered(&self) -> Remembered {
        lock(&self.remembered).clone()
    }

    /// Changes what is remembered, and writes the file where something changed.
    pub fn remember(&self, change: impl FnOnce(&mut Remembered)) {
        let mut remembered = lock(&self.remembered);
        let before = remembered.clone();
        change(&mut remembered);
        if *remembered != before
            && let Some(file) = &self.file
            && let Err(error) = remembered.save(file)
        {
            // Remembered choices are a convenience: a failure is not worth an error.
            (self.report)(&error.to_string());
        }
    }
}

/// One engine at a time on each device, and a journal of what is under way.
fn supervision(preferences: &Preferences, report: fn(&str)) -> SupervisorOptions {
    let runs = Runs::of_this_user();
    for orphan in runs.iter().flat_map(Runs::sweep) {
        report(&orphan.to_string());
    }
    SupervisorOptions {
        engine: EngineOptions { priority: preferences.engine.priority, ..EngineOptions::default() },
        journal: supervisor::journal::open(|problem| report(&problem)),
        runs,
        voices: supervisor::voices_file(),
        choose_model: Some(advisor::by_language::choose),
        memory: preferences.memory.clone(),
    }
}

/// What the user's config file says, and what is wrong with it.
fn read_preferences() -> (Preferences, Option<Failure>) {
    match Preferences::of_this_user(&Default::default()) {
        Ok(preferences) => (preferences, None),
        Err(failure) => (Preferences::default(), Some(failure)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::JobState;

    const STARTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");

    /// A state of a user whose models lie in `store` alone.
    fn state(store: &Path) -> AppState {
        let places = Places { chosen: Some(store.into()), ..Places::default() };
        let remembered = Remembered::default();
        let folders = ModelFolders::now(&places);
        let (models, settings) = start_with(&places, &remembered, &Preferences::default());
        let engine = EngineOptions { program: Some(store.join("no engine")), ..EngineOptions::default() };
        AppState {
            session: Session::new(engine, settings),
            sample: None,
            models: Mutex::new(models),
            workers: QueueConnection::new(hub::Connections::nowhere()),
            places,
            folders: Mutex::new(folders),
            preferences_failure: Mutex::default(),
            remembered: Mutex::new(remembered),
            forgotten: None,
            file: None,
            report: |_| {},
        }
    }

    #[tokio::test]
    async fn a_token_is_for_one_machine_and_for_this_user_alone() {
        use super::super::another_machine::Machine;
        use wire::ErrorCode;

        let folder = tempfile::tempdir().unwrap();
        let state = AppState { file: Some(folder.path().join("window.json")), ..state(folder.path()) };
        let machine = |address: &str| Machine { on: true, address: address.into(), model: None };
        let code = |changed: Result<(), Failure>| changed.unwrap_err().code;
        assert_eq!(code(state.change_machine(machine(""), None)), ErrorCode::BadSettings);
        assert_eq!(code(state.change_machine(machine("ftp://studio"), None)), ErrorCode::BadSettings);
        assert_eq!(code(state.change_machine(machine("studio"), Some("a b"))), ErrorCode::BadSettings);
        assert!(!state.machine().on && !state.has_machine_token());

        state.change_machine(machine("https://studio:8642"), Some("steno-secret")).unwrap();
        let file = folder.path().join("server-token");
        assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), "steno-secret");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let remembered = std::fs::read_to_string(folder.path().join("window.json")).unwrap();
        assert!(remembered.contains("studio") && !remembered.contains("secret"), "{remembered}");
        let in_use = |state: &AppState| state.session.lock().machine.clone();
        assert!(in_use(&state).unwrap().token.is_some());
        // Another model or switching it off changes nothing about it.
        state.change_machine(Machine { on: false, ..machine("https://studio:8642/") }, None).unwrap();
        assert!(state.has_machine_token() && in_use(&state).is_none());

        let mut off = Preferences::default();
        off.network.off = true;
        state.session.change_preferences(off);
        assert_eq!(code(state.change_machine(machine("https://studio:8642"), None)), ErrorCode::NetworkOff);
        assert!(!state.machine().on);
        state.session.change_preferences(Preferences::default());

        for other in ["http://studio:8642", "https://attic:8642", "https://studio:8643"] {
            state.change_machine(machine("https://studio:8642"), Some("steno-secret")).unwrap();
            state.change_machine(machine(other), None).unwrap();
            assert!(!state.has_machine_token() && !file.exists(), "{other} got the token");
        }
    }

    /// A program that is ended with the test.
    struct Running(std::process::Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn running(command: &mut std::process::Command) -> Running {
        use std::process::Stdio;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }

    #[tokio::test]
    async fn workers_are_seen_as_the_command_line_sees_them() {
        use super::super::WorkerQueue;
        use std::process::Command;
        use std::time::{Duration, Instant};
        use wire::ErrorCode;

        if Command::new("nats-server").arg("--version").output().is_err() {
            println!("skipped: nats-server is not installed (scripts/setup.sh test)");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let state = state(folder.path());
        let password = WorkerQueue { address: "nats://ada:secret@head".into(), ..WorkerQueue::default() };
        assert_eq!(state.change_worker_queue(password).unwrap_err().code, ErrorCode::BadSettings);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("nats://127.0.0.1:{port}");
        state.change_worker_queue(WorkerQueue { address: address.clone(), queue: "lab".into() }).unwrap();
        assert_eq!(state.look_at_workers().await.unwrap_err().code, ErrorCode::NetworkFailed);
        let mut off = Preferences::default();
        off.network.off = true;
        state.session.change_preferences(off);
        assert_eq!(state.look_at_workers().await.unwrap_err().code, ErrorCode::NetworkOff);
        state.session.change_preferences(Preferences::default());

        let own = std::env::current_exe().unwrap();
        let built = |name: &str| own.parent().unwrap().parent().unwrap().join(name);
        assert!(built("steno").is_file(), "build it first: cargo build --workspace");
        let port = port.to_string();
        let mut server = Command::new("nats-server");
        server.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(folder.path().join("nats"));
        let _server = running(&mut server);
        let steno = |arguments: &[&str]| {
            let mut command = Command::new(built("steno"));
            for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
                command.env(name, folder.path().join("there"));
            }
            command.env("STENO_ENGINE", built("steno-scripted-engine")).env("STENO_MODEL", STARTER);
            command.args(arguments).args(["--nats", &address, "--queue", "lab"]);
            command
        };
        let _worker = running(&mut steno(&["worker", "--name", "attic", "--model", STARTER]));
        let begun = Instant::now();
        let seen = loop {
            match state.look_at_workers().await {
                Ok(overview) if !overview.workers.is_empty() => break overview,
                other => assert!(begun.elapsed() < Duration::from_secs(60), "{other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let told = steno(&["cluster", "--json"]).output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(serde_json::to_value(&seen).unwrap(), told);
        let view = crate::view::WorkersView::from(seen);
        assert_eq!((view.workers.len(), view.workers[0].name.as_str()), (1, "attic"));
        assert_eq!((view.waiting, view.left, view.workers[0].recording.clone()), (0.0, None, None));
    }

    /// As the command line does it: by one rename.
    fn import(store: &Path, name: &str) {
        let unfinished = store.join(".import");
        std::fs::create_dir(&unfinished).unwrap();
        for file in std::fs::read_dir(STARTER).unwrap().map(Result::unwrap) {
            let is_marker = file.file_name() == "steno-model.json";
            if file.path().is_file() && (!is_marker || name == "demo") {
                std::fs::copy(file.path(), unfinished.join(file.file_name())).unwrap();
            }
        }
        std::fs::rename(unfinished, store.join(name)).unwrap();
    }

    #[tokio::test]
    async fn a_model_that_another_program_installs_is_seen_and_used_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("models");
        std::fs::create_dir(&store).unwrap();
        import(&store, "demo");
        let state = state(&store);
        let names = || state.models().into_iter().map(|model| model.name).collect::<Vec<_>>();
        let talk = folder.path().join("talk.wav");
        std::fs::write(&talk, "sound").unwrap();
        state.session.pause(true);
        let id = state.session.add([talk])[0];
        let job_state = || state.session.lock().queue.get(id).unwrap().state;
        assert_eq!(job_state(), JobState::Held);
        assert!(!state.look_for_models() && !state.read_models(), "nothing changed");

        import(&store, "small");
        assert!(state.look_for_models());
        assert_eq!(names(), ["small", "starter-whisper"]);
        assert_eq!(state.session.settings().model.unwrap().name, "small");
        assert_eq!(job_state(), JobState::Waiting, "what waited for a model has one");
        assert!(!state.look_for_models(), "it is told once");

        // Repaired or damaged within its folder: the store's own folder does not change.
        for file in std::fs::read_dir(store.join("small")).unwrap().map(Result::unwrap) {
            std::fs::remove_file(file.path()).unwrap();
        }
        assert!(!state.look_for_models());
        assert!(state.read_models());
        assert_eq!(names(), ["starter-whisper"]);
        assert_eq!(job_state(), JobState::Held);
    }
}
