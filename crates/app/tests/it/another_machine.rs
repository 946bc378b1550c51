//! The window as a client of a real `steno serve`, with the scripted engine of the crate `cli`: the first line of a
//! recording says what happens to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use app::session::{JobSettings, JobState, Machine, MachineInUse, Part, QueueEntry, SaveTarget, Session};
use config::Preferences;
use hub::{Connections, Purpose, Token};
use serde_json::Value;
use supervisor::{EngineOptions, SupervisorOptions};
use transcript::export::{Format, Options};
use transcript::{Task, Time};
use wire::{Channels, ErrorCode, VoiceActivity};

/// Longer than anything takes on a starved machine; reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that cargo builds beside this test.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join(name);
    assert!(program.is_file(), "build it first: cargo build --workspace --bin {name}");
    program
}

/// A user's folders, and those of another machine's user.
struct Place {
    here: tempfile::TempDir,
    there: tempfile::TempDir,
    port: u16,
}

/// A server, killed when it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Place {
    fn new() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { here: tempfile::tempdir().unwrap(), there: tempfile::tempdir().unwrap(), port }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(built("steno"));
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"STENO_") {
                command.env_remove(name);
            }
        }
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.there.path());
        }
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
        command.env("STENO_ENGINE", built("steno-scripted-engine")).env("STENO_MODEL", model);
        command.env("STENO_SCRIPT_JOBS", self.there.path().join("jobs"));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Waits until it listens.
    fn serve(&self, options: &[&str]) -> Serving {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = self.command(&[&["serve", "--listen", &listen], options].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("://") {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "the server ended");
        }
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        Serving(child)
    }

    fn token(&self, name: &str) -> Token {
        let said = self.command(&["serve", "--create-token", name]).output().unwrap();
        Token::new(&String::from_utf8(said.stdout).unwrap()).unwrap()
    }

    /// Every job that an engine there was given and has written whole.
    fn jobs_there(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.there.path().join("jobs")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str::<Value>(line).unwrap()["job"].take()).collect()
    }

    fn recording(&self, name: &str, content: &str) -> PathBuf {
        let file = self.here.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    fn log(&self) -> PathBuf {
        self.here.path().join("connections.jsonl")
    }

    fn machine(&self, token: Option<Token>) -> MachineInUse {
        let address = format!("127.0.0.1:{}", self.port);
        let machine = Machine { on: true, address, model: None };
        MachineInUse { log: Connections::in_file(self.log()), ..MachineInUse::of(&machine, token).unwrap() }
    }

    fn journal(&self) -> library::Journal {
        library::Journal::open(&self.here.path().join("journal")).unwrap().journal
    }

    /// A window without an engine and without a model, which can do nothing by itself.
    fn window(&self, machine: Option<MachineInUse>) -> Session {
        let journal = self.journal();
        let engine =
            EngineOptions { program: Some(self.here.path().join("no engine")), ..EngineOptions::default() };
        let options = SupervisorOptions { engine, journal: Some(journal), ..SupervisorOptions::default() };
        Session::start_with(options, JobSettings::default(), machine)
    }

    /// A request of another client: status and body.
    fn ask(&self, method: &str, path: &str, form: Option<&str>) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = form.map_or_else(String::new, |content| {
            format!(
                "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n{content}\r\n--x--\r\n"
            )
        });
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: multipart/form-data; boundary=x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Waits until the server has so many jobs.
    async fn has_jobs(&self, count: usize) {
        let begun = Instant::now();
        loop {
            let jobs: Value = serde_json::from_str(&self.ask("GET", "/jobs", None).1).unwrap();
            if jobs["jobs"].as_array().unwrap().len() == count {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{jobs}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until a recording is as asked.
async fn until(session: &Session, id: u64, what: impl Fn(&QueueEntry) -> bool) -> QueueEntry {
    let mut follower = session.follow();
    let mut latest = None;
    loop {
        let Ok(changes) = tokio::time::timeout(PATIENCE, follower.next()).await else {
            panic!("it stands still: {latest:?}")
        };
        for entry in changes.unwrap().changed.into_iter().filter(|entry| entry.id == id) {
            if what(&entry) {
                return entry;
            }
            latest = Some(entry);
        }
    }
}

async fn reaches(session: &Session, id: u64, state: JobState) -> QueueEntry {
    until(session, id, |entry| entry.state == state).await
}

/// Waits until there are so many segments.
async fn text_of(session: &Session, id: u64, count: usize) -> Vec<String> {
    let mut follower = session.follow_text(id);
    let mut text = Vec::new();
    while text.len() < count {
        let change = tokio::time::timeout(PATIENCE, follower.next()).await.expect("no text").unwrap();
        text.truncate(change.from);
        text.extend(change.segments.into_iter().map(|segment| segment.text));
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_has_its_text_its_place_and_its_exports_and_nothing_of_it_stays_there() {
    let place = Place::new();
    let token = place.token("laptop");
    let _server = place.serve(&["--require-token"]);
    let window = place.window(Some(place.machine(Some(token.clone()))));
    let file = place.recording("secret talk.wav", "alpha");
    let id = window.add([file.clone()])[0];
    let entry = reaches(&window, id, JobState::Finished).await;
    assert_eq!(entry.elsewhere.unwrap().place, format!("127.0.0.1:{}", place.port));
    assert_eq!(entry.source.unwrap().name, "secret talk.wav");
    assert_eq!(text_of(&window, id, 2).await, ["Good morning.", "This is alpha."]);
    let beside = SaveTarget::Beside { replace: false };
    let saved = window.save(id, Format::Srt, &Options::default(), &beside).unwrap();
    assert_eq!(saved, file.with_extension("srt"));
    assert!(std::fs::read_to_string(saved).unwrap().contains("This is alpha."));
    window.close().await;
    // The folder of a job is removed with it.
    let begun = Instant::now();
    let jobs = place.there.path().join("steno/server/jobs");
    while std::fs::read_dir(&jobs).unwrap().next().is_some() {
        assert!(begun.elapsed() < PATIENCE, "the job stays on the server");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let log = Connections::read(&place.log()).unwrap();
    assert!(log.len() >= 3 && log.iter().all(|one| one.why == Purpose::OtherMachine), "{log:?}");
    let log = std::fs::read_to_string(place.log()).unwrap();
    assert!(!log.contains(token.secret()) && !log.contains("secret talk"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_reaches_the_other_machine() {
    let place = Place::new();
    let _server = place.serve(&[]);
    let window =
        place.window(Some(MachineInUse { model: Some("starter-whisper".into()), ..place.machine(None) }));
    let mut settings = JobSettings { language: Some("de".into()), ..JobSettings::default() };
    (settings.task, settings.bilingual) = (Task::Translate, true);
    settings.decoding.beams = Some(5);
    settings.decoding.several_languages = true;
    settings.decoding.words = vec!["Ærø".into(), "Ada, Lovelace".into()];
    settings.decoding.words_strength = Some(4);
    settings.decoding.prompt = "Eine Rede.".into();
    settings.sound.channels = Channels::Separate;
    settings.sound.voice_activity = VoiceActivity::Threshold(0.25);
    settings.speakers.tell_apart = true;
    settings.speakers.count = Some(3);
    window.change_settings(settings);
    window.pause(true);
    let id = window.add([place.recording("a.wav", "alpha")])[0];
    let part =
        Part { track: Some(1), from: Some(Time::from_millis(1500)), to: Some(Time::from_millis(9000)) };
    window.change_part(id, part).unwrap();
    window.pause(false);
    reaches(&window, id, JobState::Finished).await;
    let jobs = place.jobs_there();
    let [said, translated] = &jobs[..] else { panic!("{jobs:?}") };
    for (pointer, expected) in [
        ("/language", "\"de\""),
        ("/task", "\"transcribe\""),
        ("/channels", "\"separate\""),
        ("/voice_activity/threshold", "0.25"),
        ("/track", "1"),
        ("/span/start", "1.5"),
        ("/span/end", "9.0"),
        ("/speakers", "true"),
        ("/speaker_count/max", "3"),
        ("/decoding/beam_size", "5"),
        ("/decoding/language_per_region", "true"),
        ("/decoding/initial_prompt", "\"Eine Rede.\""),
        ("/decoding/vocabulary", "[\"Ærø\",\"Ada, Lovelace\"]"),
        ("/decoding/vocabulary_strength", "4.0"),
    ] {
        assert_eq!(said.pointer(pointer).map(ToString::to_string).as_deref(), Some(expected), "{pointer}");
    }
    assert_eq!(translated["task"], "translate");
    assert!(said["model"].as_str().unwrap().ends_with("starter-whisper"));
    let text = window.follow_text(id).next().await.unwrap();
    assert_eq!(text.segments[0].translation.as_deref(), Some("Good morning."));
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_followed_through_the_death_of_the_server_and_uploaded_once() {
    let place = Place::new();
    let server = place.serve(&[]);
    let window = place.window(Some(place.machine(None)));
    let id = window.add([place.recording("a.wav", "stalls")])[0];
    text_of(&window, id, 2).await;
    drop(server);
    let waits = |entry: &QueueEntry| entry.elsewhere.as_ref().is_some_and(|it| it.waiting.is_some());
    let entry = until(&window, id, waits).await;
    assert_eq!(entry.state, JobState::Running);
    assert_eq!(entry.elsewhere.unwrap().waiting.unwrap().code, ErrorCode::NetworkFailed);
    assert_eq!(text_of(&window, id, 2).await.len(), 2, "what there is of the text stays");
    let _server = place.serve(&[]);
    let entry = reaches(&window, id, JobState::Finished).await;
    assert!(entry.elsewhere.unwrap().waiting.is_none());
    assert_eq!(text_of(&window, id, 2).await, ["Good morning.", "This is stalls."]);
    let jobs = place.jobs_there();
    assert!(jobs.len() == 2 && jobs[0]["file"] == jobs[1]["file"], "uploaded twice: {jobs:?}");
    window.close().await;
}

#[test]
fn a_killed_window_follows_the_same_job_again() {
    let place = Place::new();
    let server = place.serve(&[]);
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let first = runtime();
    first.block_on(async {
        let window = place.window(Some(place.machine(None)));
        let id = window.add([place.recording("a.wav", "stalls")])[0];
        text_of(&window, id, 2).await;
    });
    // Nothing of it is told to end.
    first.shutdown_timeout(PATIENCE);
    let begun = Instant::now();
    while place
        .journal()
        .unfinished(library::HostKind::Window)
        .unwrap()
        .jobs
        .iter()
        .any(|job| job.has_live_host)
    {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    let second = runtime();
    second.block_on(async {
        let window = place.window(Some(place.machine(None)));
        let entry = window.follow().next().await.unwrap().changed.remove(0);
        assert_eq!(text_of(&window, entry.id, 2).await, ["Good morning.", "This is stalls."]);
        place.has_jobs(1).await;
        // The engine that stalls dies with the server.
        drop(server);
        let _server = place.serve(&[]);
        reaches(&window, entry.id, JobState::Finished).await;
        let jobs = place.jobs_there();
        assert!(jobs.len() == 2 && jobs[0]["file"] == jobs[1]["file"], "uploaded twice: {jobs:?}");
        window.close().await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_a_missing_model_and_a_forbidden_network_are_said_and_the_next_try_works() {
    let place = Place::new();
    let right = place.token("laptop");
    let _server = place.serve(&["--require-token"]);
    let wrong = Token::new("steno-wrong");
    let window = place.window(Some(place.machine(wrong)));
    let id = window.add([place.recording("a.wav", "alpha")])[0];
    let code = |entry: &QueueEntry| entry.failure.as_ref().unwrap().code;
    let entry = reaches(&window, id, JobState::Failed).await;
    assert_eq!(code(&entry), ErrorCode::ServerRefused);
    assert!(place.jobs_there().is_empty());

    let model = Some("whisper-large-v9".to_owned());
    window.use_machine(Some(MachineInUse { model, ..place.machine(Some(right.clone())) }));
    window.retry(id);
    let entry =
        until(&window, id, |it| it.failure.as_ref().is_some_and(|it| it.code != ErrorCode::ServerRefused))
            .await;
    assert_eq!(code(&entry), ErrorCode::ModelNotFound);
    assert!(entry.failure.unwrap().message.contains("starter-whisper"), "it says which there are");

    let logged = Connections::read(&place.log()).unwrap().len();
    let mut off = Preferences::default();
    off.network.off = true;
    window.change_preferences(off);
    window.use_machine(Some(place.machine(Some(right))));
    window.retry(id);
    let entry =
        until(&window, id, |it| it.failure.as_ref().is_some_and(|it| it.code != ErrorCode::ModelNotFound))
            .await;
    assert_eq!(code(&entry), ErrorCode::NetworkOff);
    assert_eq!(Connections::read(&place.log()).unwrap().len(), logged, "nothing was asked");

    window.change_preferences(Preferences::default());
    window.retry(id);
    reaches(&window, id, JobState::Finished).await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_waited_for() {
    let place = Place::new();
    let _server = place.serve(&["--queue", "1"]);
    let add = |content: &str| place.ask("POST", "/jobs", Some(content));
    let (status, running) = add("slow");
    assert_eq!(status, 202);
    let running: Value = serde_json::from_str(&running).unwrap();
    let begun = Instant::now();
    while place.jobs_there().is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(add("beta").0, 202);
    let window = place.window(Some(place.machine(None)));
    let id = window.add([place.recording("a.wav", "alpha")])[0];
    let busy = |entry: &QueueEntry| {
        let waiting = entry.elsewhere.as_ref().and_then(|it| it.waiting.as_ref());
        waiting.is_some_and(|failure| failure.code == ErrorCode::ServerBusy)
    };
    until(&window, id, busy).await;
    assert_eq!(place.ask("DELETE", &format!("/jobs/{}", running["id"].as_str().unwrap()), None).0, 204);
    reaches(&window, id, JobState::Finished).await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_recording_keeps_its_text_and_stops_there_too() {
    let place = Place::new();
    let _server = place.serve(&[]);
    let window = place.window(Some(place.machine(None)));
    let id = window.add([place.recording("a.wav", "slow")])[0];
    text_of(&window, id, 2).await;
    window.pause_recording(id);
    assert_eq!(window.follow().next().await.unwrap().changed[0].state, JobState::Running, "it can't pause");
    window.cancel(id);
    reaches(&window, id, JobState::Cancelled).await;
    assert_eq!(text_of(&window, id, 2).await, ["Good morning.", "This is slow."]);
    place.has_jobs(0).await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_here_nothing_is_held_and_switched_off_it_is_as_before() {
    let place = Place::new();
    let window = place.window(None);
    let id = window.add([place.recording("a.wav", "alpha")])[0];
    let entry = reaches(&window, id, JobState::Failed).await;
    assert_eq!(entry.failure.unwrap().code, ErrorCode::ModelNotFound);
    assert!(entry.elsewhere.is_none() && !Path::exists(&place.log()));
    let _server = place.serve(&[]);
    window.use_machine(Some(place.machine(None)));
    window.retry(id);
    reaches(&window, id, JobState::Finished).await;
    window.close().await;
}
