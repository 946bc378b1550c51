//! The journal on a real disk: what is written is there for whoever comes
//! next, once and whole, and trouble with the file costs nobody a job.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use library::{Entry, FILE, Identity, Journal, Key, Kind, Opened, Problem, Reason, State, Step};
use rusqlite::Connection;
use serde_json::json;
use transcript::{Notice, Segment, Severity, Span, Time};
use wire::{Job, Point, Resume};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("state").join(FILE)
    }

    fn journal(&self) -> Journal {
        let Opened { journal, aside } = Journal::open(&self.file()).unwrap();
        assert_eq!(aside, None);
        journal
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.file().parent().unwrap()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".hosts"));
        names.sort();
        names
    }
}

fn job() -> Job {
    let mut job = Job::new(7, "/recordings/talk.flac", "/models/small");
    job.language = Some("de".into());
    job.decoding.vocabulary = vec!["Größe".into()];
    job
}

fn add(journal: &Journal, queue_id: u64) -> Key {
    let job = job();
    let outputs = json!({"formats": ["srt"]});
    let entry = Entry { kind: Kind::CommandLine, queue_id, job: &job, identity: None, outputs: &outputs };
    journal.add(&[entry]).unwrap()[0]
}

fn segment(number: u32) -> Segment {
    Segment {
        start: Time::from_millis(1000 * number),
        end: Time::from_millis(1000 * number + 900),
        text: format!("Number {number}."),
        ..Segment::default()
    }
}

fn point(channel: usize, position: u64) -> Point {
    Point {
        channel,
        position,
        prompt: vec![1, 2],
        languages: vec![("de".into(), Some(0.5))],
        ..Point::default()
    }
}

fn reach(journal: &Journal, key: Key, point: &Point, numbers: &[u32]) -> bool {
    let segments: Vec<_> = numbers.iter().map(|number| segment(*number)).collect();
    journal.reached(key, &Step { point, segments: &segments, discarded: &[], marks: &[] }).unwrap()
}

/// What the next host finds.
fn left(journal: &Journal) -> Vec<library::Left> {
    journal.unfinished(Kind::CommandLine).unwrap().jobs
}

fn texts(resume: &Resume) -> Vec<&str> {
    resume.segments.iter().map(|segment| segment.text.as_str()).collect()
}

#[test]
fn everything_that_was_written_comes_back_to_the_next_host() {
    let place = Place::new();
    let journal = place.journal();
    let mut job = job();
    job.resume = Some(Box::default());
    let recording = place.folder.path().join("talk.flac");
    std::fs::write(&recording, "sound").unwrap();
    let identity = Identity::of(&recording).unwrap();
    let outputs = json!({"formats": ["srt", "json"], "folder": "/results"});
    let entry = Entry {
        kind: Kind::CommandLine,
        queue_id: 3,
        job: &job,
        identity: Some(&identity),
        outputs: &outputs,
    };
    let key = journal.add(&[entry]).unwrap()[0];
    let ladder = memory::ladder::State::new(memory::ladder::Settings {
        model: "small".into(),
        precision: "f16".into(),
        batch: 4,
        place: memory::ladder::Place::Gpu,
        speakers: false,
        speaker_batch: 1,
        speaker_place: memory::ladder::Place::Gpu,
    });
    let begun = Resume { ladder: Some(ladder.clone()), skip: vec![480_000], ..Resume::default() };
    journal.begin(key, 2, &begun).unwrap();
    let span = Span::new(Time::from_millis(10), Time::from_millis(20));
    journal.prepared(key, 0, &[span], 1.5).unwrap();
    let notice = Notice::new("audio.mono", Severity::Info, "It is mono.");
    journal.notice(key, &notice).unwrap();
    journal.notice(key, &notice).unwrap();
    let found = Step {
        point: &point(0, 16_000),
        segments: &[segment(0), segment(1)],
        discarded: &[segment(9)],
        marks: &[],
    };
    assert!(journal.reached(key, &found).unwrap());
    let host = journal.host();
    drop(journal);

    let journal = place.journal();
    let left = left(&journal).remove(0);
    assert_eq!((left.queue_id, left.attempts, left.state), (3, 2, State::Running));
    assert_eq!(left.job, Job { resume: None, ..job });
    assert_eq!(left.identity, Some(identity));
    assert_eq!(left.outputs, outputs);
    assert_eq!(left.host, host);
    assert!(!left.is_worked_on);
    assert_eq!(
        left.resume,
        Resume {
            point: Some(point(0, 16_000)),
            segments: vec![segment(0), segment(1)],
            discarded: vec![segment(9)],
            notices: vec![notice],
            ladder: Some(ladder),
            skip: vec![480_000],
        }
    );
}

#[test]
fn a_point_that_comes_again_or_too_late_doubles_nothing() {
    let place = Place::new();
    let journal = place.journal();
    let key = add(&journal, 1);
    // (channel, position, segments) -> whether it is new
    for (channel, position, numbers, is_new) in [
        (0, 100, &[0, 1][..], true),
        (0, 100, &[0, 1], false),
        (0, 50, &[0], false),
        (0, 200, &[], true),
        (1, 0, &[2], true),
        (0, 300, &[3], false),
        (1, 10, &[4], true),
    ] {
        assert_eq!(reach(&journal, key, &point(channel, position), numbers), is_new, "{channel} {position}");
    }
    let resume = &left(&journal)[0].resume;
    assert_eq!(texts(resume), ["Number 0.", "Number 1.", "Number 2.", "Number 4."]);
    assert_eq!(resume.point, Some(point(1, 10)));
}

#[test]
fn jobs_of_a_living_host_are_left_alone_and_those_of_a_dead_one_are_taken_once() {
    let place = Place::new();
    let (first, second) = (place.journal(), place.journal());
    add(&first, 1);
    add(&second, 1);
    let listed = second.unfinished(Kind::CommandLine).unwrap();
    assert_eq!(listed.jobs.iter().map(|left| left.is_worked_on).collect::<Vec<_>>(), [true, true]);
    assert!(second.take_over(Kind::CommandLine).unwrap().jobs.is_empty());
    drop(first);
    let third = place.journal();
    assert!(third.take_over(Kind::Window).unwrap().jobs.is_empty(), "not its kind");
    let taken = third.take_over(Kind::CommandLine).unwrap().jobs;
    assert_eq!((taken.len(), taken[0].host), (1, third.host()));
    assert!(second.take_over(Kind::CommandLine).unwrap().jobs.is_empty(), "it has a living host again");
}

#[test]
fn a_finished_job_leaves_no_text_and_in_time_no_trace() {
    let place = Place::new();
    let journal = place.journal();
    for number in 0..105 {
        let key = add(&journal, number);
        reach(&journal, key, &point(0, 100), &[0]);
        journal.finish(key, State::Finished).unwrap();
    }
    let waiting = add(&journal, 999);
    assert_eq!(left(&journal).iter().map(|left| left.key).collect::<Vec<_>>(), [waiting]);
    drop(journal);
    let connection = Connection::open(place.file()).unwrap();
    let count = |table: &str| -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("jobs"), count("segments"), count("notices")), (101, 0, 0));
    drop(connection);
    let bytes = std::fs::read(place.file()).unwrap();
    assert!(!bytes.windows(9).any(|bytes| bytes == b"Number 0."), "the text can still be read in the file");
}

#[test]
fn a_job_that_starts_over_keeps_its_settings_alone() {
    let place = Place::new();
    let journal = place.journal();
    let key = add(&journal, 1);
    journal.begin(key, 1, &Resume { skip: vec![5], ..Resume::default() }).unwrap();
    reach(&journal, key, &point(0, 100), &[0, 1]);
    journal.start_over(key, None).unwrap();
    let left = left(&journal).remove(0);
    assert_eq!(left.resume, Resume::default());
    assert_eq!(left.job.language.as_deref(), Some("de"));
    assert!(reach(&journal, key, &point(0, 50), &[0]));
}

#[test]
fn a_damaged_or_newer_file_is_moved_aside_and_a_new_one_begun() {
    fn overwrite(file: &Path, at: usize, with: &[u8]) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[at..at + with.len()].copy_from_slice(with);
        std::fs::write(file, bytes).unwrap();
    }
    type Harm = fn(&Path);
    let cases: [(&str, Harm, &str); 4] = [
        ("no database", |file| std::fs::write(file, "x".repeat(5000)).unwrap(), "damaged"),
        ("a damaged header", |file| overwrite(file, 0, b"SQLite format 9"), "damaged"),
        ("a damaged page", |file| overwrite(file, 4096, &[0xff; 64]), "damaged"),
        (
            "a newer version",
            |file| Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap(),
            "newer",
        ),
    ];
    for (what, harm, word) in cases {
        let place = Place::new();
        let journal = place.journal();
        add(&journal, 1);
        drop(journal);
        harm(&place.file());
        let before = std::fs::read(place.file()).unwrap();
        let Opened { journal, aside } = Journal::open(&place.file()).unwrap();
        let aside = aside.unwrap_or_else(|| panic!("{what}: nothing was noticed"));
        assert_eq!(matches!(aside.reason, Reason::Newer(99)), word == "newer", "{what}");
        assert_eq!(aside.kept, place.folder.path().join(format!("state/{FILE}.{word}-1")), "{what}");
        if word == "damaged" {
            assert_eq!(std::fs::read(&aside.kept).unwrap(), before, "{what}");
        }
        let text = aside.to_string();
        assert!(text.contains(word) && text.contains(&aside.kept.display().to_string()), "{text}");
        assert!(left(&journal).is_empty());
        add(&journal, 2);
        assert_eq!(left(&journal).len(), 1, "{what}");
        // A second one doesn't take the first one's place.
        drop(journal);
        harm(&place.file());
        Journal::open(&place.file()).unwrap();
        assert!(place.names().contains(&format!("{FILE}.{word}-2")), "{what}: {:?}", place.names());
        assert!(aside.kept.exists());
    }
}

#[test]
fn a_locked_file_is_an_error_soon_and_works_again_later() {
    let place = Place::new();
    let journal = place.journal();
    let key = add(&journal, 1);
    let other = Connection::open(place.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let asked = Instant::now();
    let error = journal.begin(key, 1, &Resume::default()).unwrap_err();
    assert!(matches!(error.problem, Problem::Locked), "{error}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let told = error.failure().to_string();
    assert!(told.contains(FILE) && told.contains("another program"), "{told}");
    other.execute_batch("ROLLBACK").unwrap();
    journal.begin(key, 1, &Resume::default()).unwrap();
    assert_eq!(left(&journal)[0].state, State::Running);
}

#[test]
fn a_full_file_is_an_error_and_what_was_there_stays() {
    let place = Place::new();
    let journal = place.journal();
    let key = add(&journal, 1);
    assert!(reach(&journal, key, &point(0, 100), &[0]));
    drop(journal);
    // As many pages as there are: what a full disk does to SQLite.
    let journal = place.journal();
    journal.forbid_growth().unwrap();
    let long = Segment { text: "x".repeat(100_000), ..segment(1) };
    let step = Step { point: &point(0, 200), segments: &[long], discarded: &[], marks: &[] };
    let error = journal.reached(key, &step).unwrap_err();
    assert!(matches!(error.problem, Problem::Full), "{error}");
    assert_eq!(texts(&left(&journal)[0].resume), ["Number 0."]);
}

#[test]
fn a_folder_that_can_not_be_used_is_named() {
    let place = Place::new();
    std::fs::write(place.folder.path().join("state"), "a file where the folder should be").unwrap();
    let error = Journal::open(&place.file()).unwrap_err();
    assert!(error.failure().to_string().contains(FILE), "{error}");
    assert!(error.remedy().contains("STENO_STATE_FOLDER"));
}

#[test]
fn an_entry_of_another_version_does_not_hide_the_others() {
    let place = Place::new();
    let journal = place.journal();
    add(&journal, 1);
    let second = add(&journal, 2);
    drop(journal);
    let connection = Connection::open(place.file()).unwrap();
    connection.execute("UPDATE jobs SET job = '{\"other\": 1}' WHERE queue_id = 1", []).unwrap();
    drop(connection);
    let journal = place.journal();
    let listing = journal.unfinished(Kind::CommandLine).unwrap();
    assert_eq!(listing.jobs.iter().map(|left| left.key).collect::<Vec<_>>(), [second]);
    assert_eq!(listing.unreadable[0].file, Some("/recordings/talk.flac".into()));
    journal.finish(listing.unreadable[0].key, State::Cancelled).unwrap();
    assert!(journal.unfinished(Kind::CommandLine).unwrap().unreadable.is_empty());
}

/// A process that is killed between any two writes, and in them.
#[cfg(unix)]
#[test]
fn a_host_that_is_killed_at_any_moment_leaves_whole_steps() {
    use std::io::Read;
    const WRITER: &str = "STENO_TEST_JOURNAL_WRITER";
    let test = "journal::a_host_that_is_killed_at_any_moment_leaves_whole_steps";
    if let Some(file) = std::env::var_os(WRITER) {
        let journal = Journal::open(Path::new(&file)).unwrap().journal;
        let key = add(&journal, 1);
        println!("ready");
        for step in 0.. {
            // Two segments per point: half of a step would show.
            reach(&journal, key, &point(0, u64::from(step) + 1), &[2 * step, 2 * step + 1]);
        }
    }
    for round in 0..5 {
        let place = Place::new();
        std::fs::create_dir_all(place.file().parent().unwrap()).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(WRITER, place.file())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut said = Vec::new();
        let mut byte = [0];
        while !said.ends_with(b"ready") && out.read(&mut byte).unwrap() > 0 {
            said.push(byte[0]);
        }
        std::thread::sleep(Duration::from_millis(7 * round + 3));
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = place.journal();
        let taken = journal.take_over(Kind::CommandLine).unwrap().jobs.remove(0);
        let reached = taken.resume.point.as_ref().map_or(0, |point| point.position);
        let expected: Vec<_> = (0..2 * reached as u32).map(|number| format!("Number {number}.")).collect();
        assert_eq!(texts(&taken.resume), expected, "round {round}");
    }
}
