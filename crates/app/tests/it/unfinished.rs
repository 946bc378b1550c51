//! Queues that outlive their window, with engines that end as the name of the
//! recording says.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use app::session::{Attempt, JobSettings, JobState, QueueEntry, Session};
use library::{HostKind, Journal};
use supervisor::{EngineOptions, Limits, SupervisorOptions};
use transcript::{Span, Time};
use wire::Job;

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

struct SaveTarget {
    folder: tempfile::TempDir,
}

impl SaveTarget {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A recording that does what its name says.
    fn job(&self, name: &str) -> Job {
        let file = self.folder.path().join(format!("{name}.wav"));
        std::fs::write(&file, "sound").unwrap();
        Job::new(0, file, "model")
    }

    fn journal_file(&self) -> PathBuf {
        self.folder.path().join("journal.sqlite")
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.journal_file()).unwrap().journal
    }
}

fn engine() -> EngineOptions {
    let limits = Limits {
        ping_interval: Duration::from_millis(50),
        standstill: Duration::from_millis(1000),
        ..Limits::default()
    };
    EngineOptions { limits, program: Some(fake_engine()), ..EngineOptions::default() }
}

fn expected(windows: impl IntoIterator<Item = u32>) -> Vec<String> {
    windows
        .into_iter()
        .flat_map(|window| (0..2).map(move |half| format!("Window {window}, half {half}.")))
        .collect()
}

#[tokio::test]
async fn what_a_window_left_unfinished_waits_in_the_queue_of_the_next_one() {
    let place = SaveTarget::new();
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
    let place = SaveTarget::new();
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

/// "Resume" on a recording that was stopped: nothing is lost where the file is gone, it goes on where
/// it stopped where the file is back, and begins anew where the file is another one.
#[tokio::test]
async fn a_stopped_recording_keeps_its_text_and_is_resumed() {
    let place = SaveTarget::new();
    let model =
        advisor::ModelRef { name: "m".into(), path: "model".into(), demonstration: false, note: None };
    let settings = JobSettings { model: Some(model), ..JobSettings::default() };
    // Stopped by the user, not replaced for standing still.
    let limits = Limits { standstill: PATIENCE, ..Limits::default() };
    let engine = EngineOptions { limits, ..engine() };
    for (content, begins) in [("sound", 1), ("another sound", 2)] {
        let file = place.job("6 windows, leave 0 never, hang 3 once").file.0;
        let journal = Some(place.journal());
        let options = SupervisorOptions { engine: engine.clone(), journal, ..SupervisorOptions::default() };
        let session = Session::start(options, settings.clone());
        let mut follower = session.follow();
        let id = session.add([file.clone()])[0];
        let mut reaches = async |state: JobState| {
            loop {
                let changes = tokio::time::timeout(PATIENCE, follower.next()).await;
                let changes = changes.expect("it stands still").unwrap();
                let entry = changes.changed.into_iter().find(|entry| entry.id == id && entry.state == state);
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
        assert!(reaches(JobState::Cancelled).await.stopped.is_some());
        let before = text().await;
        assert_eq!(before[..6], expected(0..3));

        std::fs::remove_file(&file).unwrap();
        session.retry(id);
        let entry = reaches(JobState::Cancelled).await;
        assert_eq!(entry.failure.map(|failure| failure.code), Some(wire::ErrorCode::FileNotFound));
        assert_eq!(text().await, before, "its text is gone");

        std::fs::write(&file, content).unwrap();
        session.retry(id);
        reaches(JobState::Finished).await;
        assert_eq!(text().await, expected(0..6), "{content}");
        let counted = std::fs::read(file.with_extension("leave0")).unwrap().len();
        assert_eq!(counted, begins, "{content}: how often the first window was transcribed");
        session.close().await;
        std::fs::remove_file(file.with_extension("leave0")).unwrap();
        std::fs::remove_file(file.with_extension("hang3")).unwrap();
    }
}

#[tokio::test]
async fn another_attempt_is_made_with_its_language_and_waits_for_the_users_choice() {
    let place = SaveTarget::new();
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
