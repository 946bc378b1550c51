//! Queues that outlive their window, with engines that end as the name of the
//! recording says.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::job_folder::{JobFolder, impatient_engine};
use app::session::{Attempt, JobSettings, JobState, Part, QueueEntry, SaveTarget, Session};
use library::HostKind;
use supervisor::{EngineOptions, Limits, SupervisorOptions};
use transcript::export::{Format, Options};
use transcript::{Span, Task, Time};

/// Longer than anything takes on a starved machine; reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The fake engine of the crate `supervisor`, as one that works through windows.
fn fake_engine() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let program = own.parent().unwrap().parent().unwrap().join("steno-supervisor-double");
        assert!(program.is_file(), "build it first: cargo build --workspace --bin steno-supervisor-double");
        std::os::unix::fs::symlink(program, folder.path().join("windows")).unwrap();
        folder
    });
    folder.path().join("windows")
}

fn engine() -> EngineOptions {
    impatient_engine(fake_engine())
}

fn expected(windows: impl IntoIterator<Item = u32>) -> Vec<String> {
    windows
        .into_iter()
        .flat_map(|window| (0..2).map(move |half| format!("Window {window}, half {half}.")))
        .collect()
}

#[tokio::test]
async fn what_a_window_left_unfinished_waits_in_the_queue_of_the_next_one() {
    let place = JobFolder::new();
    let (begun, waiting) = (place.job("4 windows"), place.job("2 windows"));
    {
        let (journal, outputs) = (place.journal(), serde_json::json!({}));
        let entry = |queue_id, job| library::NewJob {
            kind: HostKind::Window,
            queue_id,
            job,
            identity: None,
            outputs: &outputs,
        };
        let keys = journal.add(&[entry(1, &begun), entry(2, &waiting)]).unwrap();
        journal.begin_attempt(keys[0], 1, &Default::default()).unwrap();
        let segment = transcript::Segment { text: "Done before.".into(), ..Default::default() };
        let point = wire::Point { position: 2 * 480_000, ..Default::default() };
        let step = library::ReachedPoint { point: &point, segments: &[segment], discarded: &[], marks: &[] };
        assert!(journal.record_point(keys[0], &step).unwrap());
    }
    let journal = place.journal();
    let options = SupervisorOptions {
        engine: engine(),
        journal: Some(journal.clone()),
        ..SupervisorOptions::default()
    };
    let model =
        advisor::ModelRef { name: "m".into(), path: "model".into(), demonstration: false, note: None };
    let settings = JobSettings { model: Some(model), ..JobSettings::default() };
    let session = Session::start(options, settings);
    let mut follower = session.follow();
    let mut done = std::collections::BTreeMap::new();
    while done.len() < 2 {
        let changes =
            tokio::time::timeout(PATIENCE, follower.next()).await.expect("it stands still").unwrap();
        for entry in changes.changed.into_iter().filter(|entry| entry.state == JobState::Finished) {
            let text = session.follow_text(entry.id).next().await.unwrap();
            let segments = text.segments.into_iter().map(|segment| segment.text);
            done.insert(entry.id, segments.collect::<Vec<_>>());
        }
    }
    let first = [vec!["Done before.".to_owned()], expected(2..4)].concat();
    assert_eq!(done.into_values().collect::<Vec<_>>(), [first, expected(0..2)]);
    // Until they are saved a crash would lose them.
    assert_eq!(journal.unfinished(HostKind::Window).unwrap().jobs.len(), 2);
    session.close().await;
    assert!(journal.unfinished(HostKind::Window).unwrap().jobs.is_empty());
}

#[tokio::test]
async fn what_a_closed_window_had_not_finished_goes_on_at_its_next_start_with_settings_of_its_own() {
    let place = JobFolder::new();
    let files = ["4 windows, hang 2 once", "2 windows"].map(|name| place.job(name).file.0);
    let model =
        advisor::ModelRef { name: "m".into(), path: "model".into(), demonstration: false, note: None };
    let settings = JobSettings { model: Some(model), ..JobSettings::default() };
    let start = || {
        let journal = Some(place.journal());
        Session::start(
            SupervisorOptions { engine: engine(), journal, ..SupervisorOptions::default() },
            settings.clone(),
        )
    };
    {
        let session = start();
        let ids = session.add(files.clone());
        let own = JobSettings { language: Some("de".into()), ..settings.clone() };
        session.change_own(&ids[1..], Some(&own));
        let mut text = session.follow_text(ids[0]);
        while text.next().await.unwrap().segments.is_empty() {}
        session.close().await;
    }
    // Until the first has let go of the journal.
    let left = || place.journal().unfinished(HostKind::Window).unwrap().jobs;
    let begun = Instant::now();
    while left().iter().any(|job| job.has_live_host) {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let session = start();
    let mut follower = session.follow();
    let mut done = std::collections::BTreeMap::new();
    while done.len() < 2 {
        let changes =
            tokio::time::timeout(PATIENCE, follower.next()).await.expect("it stands still").unwrap();
        for entry in changes.changed.into_iter().filter(|entry| entry.state == JobState::Finished) {
            let text = session.follow_text(entry.id).next().await.unwrap();
            let language = entry.own.and_then(|own| own.language);
            let segments: Vec<_> = text.segments.into_iter().map(|segment| segment.text).collect();
            done.insert(entry.id, (language, segments));
        }
    }
    let expected = [(None, expected(0..4)), (Some("de".to_owned()), expected(0..2))];
    assert_eq!(done.into_values().collect::<Vec<_>>(), expected);
    session.close().await;
}

/// A window that does something and is killed: nothing of it is told to end.
fn killed(place: &JobFolder, settings: &JobSettings, work: impl AsyncFnOnce(&Session)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(&start(place, settings)).await });
    runtime.shutdown_timeout(PATIENCE);
    let begun = Instant::now();
    while place.journal().unfinished(HostKind::Window).unwrap().jobs.iter().any(|job| job.has_live_host) {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn start(place: &JobFolder, settings: &JobSettings) -> Session {
    let journal = Some(place.journal());
    // What hangs is stopped by the user, not replaced for standing still.
    let limits = Limits { standstill: PATIENCE, ..Limits::default() };
    let engine = EngineOptions { limits, ..engine() };
    let options = SupervisorOptions { engine, journal, ..SupervisorOptions::default() };
    Session::start(options, settings.clone())
}

fn with_model(demonstration: bool) -> JobSettings {
    let model = advisor::ModelRef { name: "m".into(), path: "model".into(), demonstration, note: None };
    JobSettings { model: Some(model), ..JobSettings::default() }
}

/// Waits until a recording is in that state.
async fn reaches(session: &Session, id: u64, state: JobState) -> QueueEntry {
    let mut follower = session.follow();
    loop {
        let changes = tokio::time::timeout(PATIENCE, follower.next()).await.expect("it stands still");
        let mut changed = changes.unwrap().changed.into_iter();
        if let Some(entry) = changed.find(|entry| entry.id == id && entry.state == state) {
            return entry;
        }
    }
}

async fn text_of(session: &Session, id: u64) -> Vec<String> {
    let text = session.follow_text(id).next().await.unwrap();
    text.segments.into_iter().map(|segment| segment.text).collect()
}

/// The list in its order: name, state, why it failed.
async fn list(session: &Session) -> Vec<(String, JobState, Option<wire::ErrorCode>)> {
    let changes = session.follow().next().await.unwrap();
    let entry = |id: &u64| {
        let entry = changes.changed.iter().find(|entry| entry.id == *id).unwrap();
        let name = entry.file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, entry.state, entry.failure.as_ref().map(|failure| failure.code))
    };
    let ids = || changes.changed.iter().map(|entry| entry.id).collect();
    changes.order.clone().unwrap_or_else(ids).iter().map(entry).collect()
}

/// The files in the journal, in the order of the queue.
fn in_order(place: &JobFolder) -> Vec<PathBuf> {
    let mut jobs = place.journal().unfinished(HostKind::Window).unwrap().jobs;
    jobs.sort_by_key(|job| job.queue_id);
    jobs.into_iter().map(|job| job.job.file.0).collect()
}

#[test]
fn the_list_of_a_killed_window_comes_back_in_its_order_and_with_what_failed() {
    const BROKEN: &str = "2 windows, leave 0 never, broken 1 once";
    let (place, settings) = (JobFolder::new(), with_model(false));
    let files = [BROKEN, "3 windows", "4 windows", "5 windows", "empty"].map(|name| place.job(name).file.0);
    std::fs::write(&files[4], "").unwrap();
    killed(&place, &settings, async |session| {
        let broken = session.add([files[0].clone()])[0];
        reaches(session, broken, JobState::Failed).await;
        session.pause(true);
        let ids = session.add(files[1..].iter().cloned());
        session.reorder(&[ids[2]], Some(broken));
        session.reorder(&[ids[1]], Some(ids[0]));
        // Written by a thread of its own.
        let reordered = [&files[3], &files[0], &files[2], &files[1], &files[4]];
        let begun = Instant::now();
        while !in_order(&place).iter().eq(reordered) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", in_order(&place));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let name = |name: &str| name.to_owned();
    let expected_list = [
        (name("5 windows"), JobState::Waiting, None),
        (name(BROKEN), JobState::Failed, Some(wire::ErrorCode::AudioBroken)),
        (name("4 windows"), JobState::Waiting, None),
        (name("3 windows"), JobState::Waiting, None),
        (name("empty"), JobState::Failed, Some(wire::ErrorCode::FileEmpty)),
    ];
    killed(&place, &settings, async |session| {
        session.pause(true);
        assert_eq!(list(session).await, expected_list);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = start(&place, &settings);
        session.pause(true);
        assert_eq!(list(&session).await, expected_list, "and again");
        // It goes on where it failed, with the text that was there.
        assert_eq!(text_of(&session, 2).await, expected(0..1));
        session.reorder(&[2], Some(1));
        session.retry(2);
        session.pause(false);
        reaches(&session, 2, JobState::Finished).await;
        assert_eq!(text_of(&session, 2).await, expected(0..2));
        assert_eq!(std::fs::read(files[0].with_extension("leave0")).unwrap().len(), 1);
        session.remove(5);
        session.pause(true);
        session.close().await;
    });
    drop(runtime);
    let left = place.journal().unfinished(HostKind::Window).unwrap().jobs;
    assert!(left.iter().all(|job| job.job.file.0 != files[4] && job.job.file.0 != files[0]), "{left:?}");
}

/// Waits until so many segments were written.
async fn writes(session: &Session, id: u64, count: usize) {
    let mut following = session.follow_text(id);
    let mut segments = 0;
    while segments < count {
        let more = tokio::time::timeout(PATIENCE, following.next()).await.expect("it stands still");
        segments += more.unwrap().segments.len();
    }
}

const HANGING: &str = "6 windows, leave 0 never, hang 3 once";

/// How often its first window was transcribed.
fn begun(file: &std::path::Path) -> usize {
    std::fs::read(file.with_extension("leave0")).unwrap().len()
}

/// "Pause" on a recording: its text stays, the queue goes on, and "Resume" has it go on where it was,
/// as it was begun, before all that wait.
#[tokio::test]
async fn a_paused_recording_lets_the_queue_go_on_and_is_resumed_where_it_was() {
    let place = JobFolder::new();
    let session = start(&place, &with_model(false));
    let files = [HANGING, "2 windows", "3 windows"].map(|name| place.job(name).file.0);
    let [id, next] = session.add(files[..2].iter().cloned())[..] else { panic!("two were added") };
    writes(&session, id, 7).await;
    session.pause_recording(id);
    let entry = reaches(&session, id, JobState::Paused).await;
    assert_eq!(entry.stopped.unwrap().reached(), Some(Time::from_millis(90_000)));
    reaches(&session, next, JobState::Finished).await;
    let before = text_of(&session, id).await;
    assert_eq!(before[..6], expected(0..3));
    assert_eq!((session.unfinished(), session.unsaved()), (0, 1), "the finished one is not in a history");

    // What is set meanwhile is for the next ones.
    session.change_settings(JobSettings { language: Some("de".into()), ..with_model(false) });
    session.pause(true);
    session.add([files[2].clone()]);
    std::fs::rename(&files[0], files[0].with_extension("elsewhere")).unwrap();
    session.retry(id);
    let entry =
        session.follow().next().await.unwrap().changed.into_iter().find(|entry| entry.id == id).unwrap();
    let code = entry.failure.map(|failure| failure.code);
    assert_eq!((entry.state, code), (JobState::Paused, Some(wire::ErrorCode::FileNotFound)));
    std::fs::rename(files[0].with_extension("elsewhere"), &files[0]).unwrap();
    session.retry(id);
    let names: Vec<String> = list(&session).await.into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["2 windows", HANGING, "3 windows"]);
    assert_eq!(text_of(&session, id).await, before, "it is shown until there is more");
    session.pause(false);
    reaches(&session, id, JobState::Finished).await;
    assert_eq!((text_of(&session, id).await, begun(&files[0])), (expected(0..6), 1));
    session.close().await;
}

/// A paused recording is in no hurry: killed and closed windows find it paused, with its text, and it
/// goes on only when the user says so. Also where the window is killed as soon as it is asked for.
#[test]
fn a_paused_recording_stays_paused_in_later_windows() {
    for waits in [true, false] {
        let (place, settings) = (JobFolder::new(), with_model(false));
        let files = [HANGING, "2 windows"].map(|name| place.job(name).file.0);
        killed(&place, &settings, async |session| {
            let id = session.add([files[0].clone()])[0];
            writes(session, id, 7).await;
            session.pause_recording(id);
            if waits {
                reaches(session, id, JobState::Paused).await;
            }
        });
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let session = start(&place, &settings);
                let entry = reaches(&session, 1, JobState::Paused).await;
                assert_eq!(entry.stopped.unwrap().reached(), Some(Time::from_millis(90_000)));
                assert_eq!(text_of(&session, 1).await, expected(0..3));
                let other = session.add([files[1].clone()])[0];
                reaches(&session, other, JobState::Finished).await;
                reaches(&session, 1, JobState::Paused).await;
                session.close().await;
            });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let session = start(&place, &settings);
            session.retry(1);
            reaches(&session, 1, JobState::Finished).await;
            assert_eq!((text_of(&session, 1).await, begun(&files[0])), (expected(0..6), 1), "{waits}");
            session.close().await;
        });
    }
}

/// What was stopped keeps its text in later windows, killed and closed ones, also where it was saved, with what its
/// model is, and can be resumed there.
#[test]
fn a_stopped_recording_keeps_its_text_in_later_windows() {
    let (place, mut settings) = (JobFolder::new(), with_model(false));
    let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
    settings.model.as_mut().unwrap().path = starter;
    let file = place.job(HANGING).file.0;
    killed(&place, &settings, async |session| {
        let id = session.add([file.clone()])[0];
        writes(session, id, 7).await;
        session.cancel(id);
        reaches(session, id, JobState::Cancelled).await;
        assert_eq!(session.unsaved(), 0, "closing loses nothing");
        let beside = SaveTarget::Beside { replace: false };
        assert!(session.save(id, Format::Txt, &Options::default(), &beside).unwrap().is_file());
    });
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..2 {
        runtime().block_on(async {
            let session = start(&place, &settings);
            let entry = reaches(&session, 1, JobState::Cancelled).await;
            assert_eq!(entry.stopped.unwrap().reached(), Some(Time::from_millis(90_000)));
            let model = entry.model.unwrap();
            assert!(model.demonstration && model.name == "starter-whisper", "{model:?}");
            let beside = SaveTarget::Beside { replace: true };
            let file = session.save(1, Format::Txt, &Options::default(), &beside).unwrap();
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(transcript::export::DEMONSTRATION_WARNING), "{text}");
            assert_eq!(text_of(&session, 1).await, expected(0..3));
            session.close().await;
        });
    }
    runtime().block_on(async {
        let session = start(&place, &settings);
        session.retry(1);
        reaches(&session, 1, JobState::Finished).await;
        assert_eq!((text_of(&session, 1).await, begun(&file)), (expected(0..6), 1));
        session.remove(1);
        session.close().await;
    });
    assert_eq!(in_order(&place), Vec::<PathBuf>::new());
}

/// What the window offers beside model and language: each reaches the engine's job, the recording's own
/// track and times also from a later window.
#[test]
fn what_is_set_for_a_recording_reaches_the_engine_also_in_a_later_window() {
    use app::session::{Decoding, Part, SaveTarget as Save, Sound};
    use transcript::export::{Format, Options};
    use wire::{Channels, VoiceActivity};
    let place = JobFolder::new();
    let sound = Sound { channels: Channels::Separate, voice_activity: VoiceActivity::Off };
    let decoding = Decoding { prompt: "In Aarhus.".into(), ..Decoding::default() };
    let settings = JobSettings { sound, decoding, ..with_model(false) };
    let files = ["1 windows", "2 windows"].map(|name| place.job(name).file.0);
    let part =
        Part { track: Some(1), from: Some(Time::from_millis(500)), to: Some(Time::from_millis(9_000)) };
    killed(&place, &settings, async |session| {
        session.pause(true);
        let ids = session.add(files.iter().cloned());
        session.change_part(ids[0], part).unwrap();
        let none = Part { to: Some(Time::ZERO), ..Part::default() };
        assert_eq!(session.change_part(ids[1], none).unwrap_err().code, wire::ErrorCode::BadSettings);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = start(&place, &settings);
        let settings_of = async |id: u64| -> serde_json::Value {
            reaches(&session, id, JobState::Finished).await;
            let target = Save::Beside { replace: true };
            let file = session.save(id, Format::Json, &Options::default(), &target).unwrap();
            serde_json::from_slice::<serde_json::Value>(&std::fs::read(file).unwrap()).unwrap()["settings"]
                .clone()
        };
        let first = settings_of(1).await;
        assert_eq!(first["track"], 1);
        assert_eq!(first["span"], serde_json::json!({"start": 0.5, "end": 9.0}));
        let second = settings_of(2).await;
        assert!(second["track"].is_null() && second["span"].is_null(), "{second}");
        for settings in [first, second] {
            let set =
                [&settings["channels"], &settings["voice_activity"], &settings["decoding"]["initial_prompt"]];
            assert_eq!(set, ["separate", "off", "In Aarhus."]);
        }
        assert_eq!(session.sound_of(1).unwrap(), (files[0].clone(), Some(1)), "that track is listened to");
        assert_eq!(session.sound_of(2).unwrap(), (files[1].clone(), None));
        session.close().await;
    });
}

/// "Resume" on a recording that was stopped: nothing is lost where the file is gone, it goes on where
/// it stopped where the file is back, and begins anew where the file or the settings are others: then the
/// text before is in the history.
#[tokio::test]
async fn a_stopped_recording_keeps_its_text_and_is_resumed() {
    let place = JobFolder::new();
    let model =
        advisor::ModelRef { name: "m".into(), path: "model".into(), demonstration: false, note: None };
    let settings = JobSettings { model: Some(model), ..JobSettings::default() };
    // Stopped by the user, not replaced for standing still.
    let limits = Limits { standstill: PATIENCE, ..Limits::default() };
    let engine = EngineOptions { limits, ..engine() };
    for (content, part, begins) in [
        ("sound", Part::default(), 1),
        ("another sound", Part::default(), 2),
        ("sound", Part { to: Some(Time::from_millis(170_000)), ..Part::default() }, 2),
    ] {
        let file = place.job("6 windows, leave 0 never, hang 3 once").file.0;
        let journal = Some(place.journal());
        let options = SupervisorOptions { engine: engine.clone(), journal, ..SupervisorOptions::default() };
        let session = Session::start(options, settings.clone());
        let history = tempfile::tempdir().unwrap();
        let documents = library::Documents::open(&history.path().join("history.sqlite")).unwrap().0;
        session.keep_documents(documents.clone());
        let mut follower = session.follow();
        let id = session.add([file.clone()])[0];
        let mut comes = async |what: &dyn Fn(&QueueEntry) -> bool| {
            loop {
                let changes = tokio::time::timeout(PATIENCE, follower.next()).await;
                let changes = changes.expect("it stands still").unwrap();
                let entry = changes.changed.into_iter().find(|entry| entry.id == id && what(entry));
                if let Some(entry) = entry {
                    return entry;
                }
            }
        };
        let text = async || {
            let text = session.follow_text(id).next().await.unwrap();
            text.segments.into_iter().map(|segment| segment.text).collect::<Vec<_>>()
        };
        let mut following = session.follow_text(id);
        let mut segments = 0;
        while segments < 7 {
            let more = tokio::time::timeout(PATIENCE, following.next()).await.expect("it stands still");
            segments += more.unwrap().segments.len();
        }
        session.cancel(id);
        let stopped = comes(&|entry| entry.state == JobState::Cancelled).await;
        assert!(stopped.stopped.is_some() && !stopped.starts_over);
        let before = text().await;
        assert_eq!(before[..6], expected(0..3));

        std::fs::remove_file(&file).unwrap();
        session.retry(id);
        let failed = comes(&|entry| entry.failure.is_some()).await;
        assert_eq!(failed.failure.map(|failure| failure.code), Some(wire::ErrorCode::FileNotFound));
        assert_eq!(text().await, before, "its text is gone");

        std::fs::write(&file, content).unwrap();
        if part != Part::default() {
            // It is told before it is asked for, and no longer where the settings are again what they were.
            for (part, starts_over) in [(part, true), (Part::default(), false), (part, true)] {
                session.change_part(id, part).unwrap();
                comes(&|entry| entry.part == part && entry.starts_over == starts_over).await;
            }
        }
        session.retry(id);
        comes(&|entry| entry.state == JobState::Finished && entry.edited.is_some()).await;
        assert_eq!(text().await, expected(0..6), "{content}");
        let stored = documents.list().unwrap();
        let texts = stored.iter().map(|one| documents.read(one.id).unwrap().unwrap().transcript);
        let partial: Vec<_> = texts.filter(|text| !text.complete).collect();
        assert_eq!((stored.len(), partial.len()), (begins, begins - 1), "{content}");
        for text in partial {
            assert_eq!(text.segments.iter().map(|it| it.text.clone()).collect::<Vec<_>>(), before);
        }
        let counted = std::fs::read(file.with_extension("leave0")).unwrap().len();
        assert_eq!(counted, begins, "{content}: how often the first window was transcribed");
        session.close().await;
        std::fs::remove_file(file.with_extension("leave0")).unwrap();
        std::fs::remove_file(file.with_extension("hang3")).unwrap();
    }
}

#[tokio::test]
async fn another_attempt_is_made_with_its_language_and_waits_for_the_users_choice() {
    let place = JobFolder::new();
    let model = |name: &str| {
        let name = name.to_owned();
        advisor::ModelRef { path: name.clone().into(), name, demonstration: false, note: None }
    };
    let settings = JobSettings { model: Some(model("m")), ..JobSettings::default() };
    let options = SupervisorOptions { engine: engine(), ..SupervisorOptions::default() };
    let session = Session::start(options, settings);
    let id = session.add([place.job("2 windows").file.0])[0];
    let when = async |what: fn(&QueueEntry) -> bool| {
        let mut follower = session.follow();
        loop {
            let changes =
                tokio::time::timeout(PATIENCE, follower.next()).await.expect("it stands still").unwrap();
            if let Some(entry) = changes.changed.into_iter().find(&what) {
                return entry;
            }
        }
    };
    when(|entry| entry.state == JobState::Finished).await;
    let span = Span::new(Time::ZERO, Time::from_millis(30_000));
    let attempt = Attempt { model: Some(model("other")), language: Some("de".into()) };
    session.again(id, span, Some(attempt));
    let entry = when(|entry| entry.again.iter().any(|again| again.found.is_some())).await;
    let found = entry.again[0].found.as_ref().unwrap();
    assert_eq!((found.settings["language"].as_str(), entry.again[0].span), (Some("de"), span));
    let mut text = session.follow_text(id);
    let before = text.next().await.unwrap();
    assert_eq!(before.segments.len(), 4, "nothing changes before it is chosen");
    assert!(before.notices.iter().all(|notice| notice.code != "transcript.again"));
    session.choose_again(id, span, true).unwrap().unwrap();
    let after = text.next().await.unwrap();
    assert!(after.notices.iter().any(|notice| notice.code == "transcript.again"), "{:?}", after.notices);
    assert!(when(|_| true).await.again.is_empty());
    session.close().await;
}

#[tokio::test]
async fn a_text_is_translated_with_its_job_and_later() {
    let place = JobFolder::new();
    let model = advisor::ModelRef { path: "m".into(), name: "m".into(), demonstration: false, note: None };
    for bilingual in [true, false] {
        let settings = JobSettings {
            model: Some(model.clone()),
            language: Some("de".into()),
            task: if bilingual { Task::Translate } else { Task::Transcribe },
            bilingual,
            ..JobSettings::default()
        };
        let options = SupervisorOptions { engine: engine(), ..SupervisorOptions::default() };
        let session = Session::start(options, settings);
        let id = session.add([place.job("2 windows").file.0])[0];
        let translations = async || -> Vec<Option<String>> {
            let text = session.follow_text(id).next().await.unwrap();
            text.segments.into_iter().map(|segment| segment.translation).collect()
        };
        let mut follower = session.follow();
        let mut asked = bilingual;
        loop {
            let changes =
                tokio::time::timeout(PATIENCE, follower.next()).await.expect("it stands still").unwrap();
            let is_done = |entry: &QueueEntry| entry.state == JobState::Finished && entry.again.is_empty();
            if !changes.changed.iter().any(is_done) {
                continue;
            }
            if !asked {
                assert_eq!(translations().await, vec![None; 4], "it was not asked for");
                session.translate(id);
                asked = true;
            } else if translations().await.iter().all(Option::is_some) {
                break;
            }
        }
        let expected = expected(0..2).into_iter().map(|text| Some(format!("English: {text}")));
        assert_eq!(translations().await, expected.collect::<Vec<_>>());
        session.close().await;
    }
}

/// What was asked of a finished text when its window was killed or closed is done by the next one, which
/// opens the text for it, and by no later one.
#[test]
fn what_was_asked_of_a_finished_text_is_done_by_the_next_window() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for is_killed in [true, false] {
        let place = JobFolder::new();
        let settings = JobSettings { language: Some("de".into()), ..with_model(false) };
        let file = place.job("2 windows, hang 1 once").file.0;
        let begin = || {
            let session = start(&place, &settings);
            let history = place.folder.path().join("history.sqlite");
            session.keep_documents(library::Documents::open(&history).unwrap().0);
            session
        };
        let hangs = file.with_extension("hang1");
        let interrupted = async |session: &Session| {
            std::fs::write(&hangs, "x").unwrap();
            let id = session.add([file.clone()])[0];
            // Its text is in the history.
            let mut follower = session.follow();
            let is_kept = |entry: &QueueEntry| entry.id == id && entry.edited.is_some();
            while !follower.next().await.unwrap().changed.iter().any(is_kept) {}
            std::fs::remove_file(&hangs).unwrap();
            session.translate(id);
            let written = async || {
                while !hangs.exists() || place.journal().unfinished(HostKind::Window).unwrap().jobs.is_empty()
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(PATIENCE, written()).await.expect("it is not written down");
        };
        if is_killed {
            let runtime = runtime();
            runtime.block_on(async { interrupted(&begin()).await });
            runtime.shutdown_timeout(PATIENCE);
            let is_live = || place.journal().unfinished(HostKind::Window).unwrap().jobs;
            let begun = Instant::now();
            while is_live().iter().any(|job| job.has_live_host) {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(10));
            }
        } else {
            runtime().block_on(async {
                let session = begin();
                interrupted(&session).await;
                session.close().await;
            });
        }
        runtime().block_on(async {
            let session = begin();
            let translated = async || loop {
                let changes = session.follow().next().await.unwrap();
                assert!(changes.changed.len() <= 1, "nothing but the transcript is in the list");
                if let Some(entry) = changes.changed.first()
                    && entry.again.is_empty()
                {
                    let text = session.follow_text(entry.id).next().await.unwrap();
                    if text.segments.len() == 4 && text.segments.iter().all(|one| one.translation.is_some()) {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            tokio::time::timeout(PATIENCE, translated()).await.expect("it is not translated");
            let forgotten = async || {
                while !place.journal().unfinished(HostKind::Window).unwrap().jobs.is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(PATIENCE, forgotten()).await.expect("the journal keeps what is done");
            session.close().await;
        });
    }
}
