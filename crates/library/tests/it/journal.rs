//! The journal on a real disk: the next host reads everything that was written,
//! once and complete, and errors of the file are reported.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use library::{
    HostKind, Identity, JOURNAL_FILE, JobKey, Journal, JournalState, NewJob, OpenedJournal, Problem,
    QuarantineReason, ReachedPoint,
};
use rusqlite::Connection;
use serde_json::json;
use transcript::{Notice, Segment, Severity, Span, Time};
use wire::{Job, Point, Resume};

struct StateFolder {
    folder: tempfile::TempDir,
}

impl StateFolder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("state").join(JOURNAL_FILE)
    }

    fn journal(&self) -> Journal {
        let OpenedJournal { journal, aside } = Journal::open(&self.file()).unwrap();
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

fn add(journal: &Journal, queue_id: u64) -> JobKey {
    let job = job();
    let outputs = json!({"formats": ["srt"]});
    let entry =
        NewJob { kind: HostKind::CommandLine, queue_id, job: &job, identity: None, outputs: &outputs };
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

fn reach(journal: &Journal, key: JobKey, point: &Point, numbers: &[u32]) -> bool {
    let segments: Vec<_> = numbers.iter().map(|number| segment(*number)).collect();
    journal
        .record_point(key, &ReachedPoint { point, segments: &segments, discarded: &[], marks: &[] })
        .unwrap()
}

/// The jobs that the next host finds.
fn left(journal: &Journal) -> Vec<library::UnfinishedJob> {
    journal.unfinished(HostKind::CommandLine).unwrap().jobs
}

fn texts(resume: &Resume) -> Vec<&str> {
    resume.segments.iter().map(|segment| segment.text.as_str()).collect()
}

#[test]
fn the_next_host_reads_everything_that_was_written() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    let mut job = job();
    job.resume = Some(Box::default());
    let recording = folder.folder.path().join("talk.flac");
    std::fs::write(&recording, "sound").unwrap();
    let identity = Identity::of(&recording).unwrap();
    let outputs = json!({"formats": ["srt", "json"], "folder": "/results"});
    let entry = NewJob {
        kind: HostKind::CommandLine,
        queue_id: 3,
        job: &job,
        identity: Some(&identity),
        outputs: &outputs,
    };
    let key = journal.add(&[entry]).unwrap()[0];
    let ladder = memory::ladder::LadderState::new(memory::ladder::LadderSettings {
        model: "small".into(),
        precision: "f16".into(),
        batch: 4,
        place: memory::ladder::Processor::Gpu,
        speakers: false,
        speaker_batch: 1,
        speaker_place: memory::ladder::Processor::Gpu,
    });
    let begun = Resume { ladder: Some(ladder.clone()), skip: vec![480_000], ..Resume::default() };
    journal.begin_attempt(key, 2, &begun).unwrap();
    let span = Span::new(Time::from_millis(10), Time::from_millis(20));
    journal.record_channel(key, 0, &[span], 1.5).unwrap();
    let notice = Notice::new("audio.mono", Severity::Info, "It is mono.");
    journal.add_notice(key, &notice).unwrap();
    journal.add_notice(key, &notice).unwrap();
    let found = ReachedPoint {
        point: &point(0, 16_000),
        segments: &[segment(0), segment(1)],
        discarded: &[segment(9)],
        marks: &[],
    };
    assert!(journal.record_point(key, &found).unwrap());
    let host = journal.host();
    drop(journal);

    let journal = folder.journal();
    let left = left(&journal).remove(0);
    assert_eq!((left.queue_id, left.attempts, left.state), (3, 2, JournalState::Running));
    assert_eq!(left.job, Job { resume: None, ..job });
    assert_eq!(left.identity, Some(identity));
    assert_eq!(left.outputs, outputs);
    assert_eq!(left.host, host);
    assert!(!left.has_live_host);
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
fn repeated_and_late_points_are_ignored() {
    let folder = StateFolder::new();
    let journal = folder.journal();
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
fn only_jobs_of_dead_hosts_are_taken_over_and_only_once() {
    let folder = StateFolder::new();
    let (first, second) = (folder.journal(), folder.journal());
    add(&first, 1);
    add(&second, 1);
    let listed = second.unfinished(HostKind::CommandLine).unwrap();
    assert_eq!(listed.jobs.iter().map(|left| left.has_live_host).collect::<Vec<_>>(), [true, true]);
    assert!(second.take_over(HostKind::CommandLine).unwrap().jobs.is_empty());
    drop(first);
    let third = folder.journal();
    assert!(third.take_over(HostKind::Window).unwrap().jobs.is_empty(), "not its kind");
    let taken = third.take_over(HostKind::CommandLine).unwrap().jobs;
    assert_eq!((taken.len(), taken[0].host), (1, third.host()));
    assert!(second.take_over(HostKind::CommandLine).unwrap().jobs.is_empty(), "it has a living host again");
}

#[test]
fn finished_jobs_leave_no_text_and_old_ones_no_row() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    for number in 0..105 {
        let key = add(&journal, number);
        reach(&journal, key, &point(0, 100), &[0]);
        journal.finish(key, JournalState::Finished).unwrap();
    }
    let waiting = add(&journal, 999);
    assert_eq!(left(&journal).iter().map(|left| left.key).collect::<Vec<_>>(), [waiting]);
    drop(journal);
    let connection = Connection::open(folder.file()).unwrap();
    let count = |table: &str| -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("jobs"), count("segments"), count("notices")), (101, 0, 0));
    drop(connection);
    let bytes = std::fs::read(folder.file()).unwrap();
    assert!(!bytes.windows(9).any(|bytes| bytes == b"Number 0."), "the text can still be read in the file");
}

#[test]
fn starting_over_keeps_only_the_settings() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    let key = add(&journal, 1);
    journal.begin_attempt(key, 1, &Resume { skip: vec![5], ..Resume::default() }).unwrap();
    reach(&journal, key, &point(0, 100), &[0, 1]);
    journal.start_over(key, None).unwrap();
    let left = left(&journal).remove(0);
    assert_eq!(left.resume, Resume::default());
    assert_eq!(left.job.language.as_deref(), Some("de"));
    assert!(reach(&journal, key, &point(0, 50), &[0]));
}

#[test]
fn damaged_and_newer_files_are_moved_aside() {
    fn overwrite(file: &Path, at: usize, with: &[u8]) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[at..at + with.len()].copy_from_slice(with);
        std::fs::write(file, bytes).unwrap();
    }
    type Harm = fn(&Path);
    let cases: [(&str, Harm, &str); 7] = [
        ("no database", |file| std::fs::write(file, "x".repeat(5000)).unwrap(), "damaged"),
        ("a damaged header", |file| overwrite(file, 0, b"SQLite format 9"), "damaged"),
        ("a damaged page", |file| overwrite(file, 4096, &[0xff; 64]), "damaged"),
        ("an unknown format of the file", |file| overwrite(file, 18, &[9, 9]), "damaged"),
        (
            "a missing column",
            |file| {
                let connection = Connection::open(file).unwrap();
                connection.execute_batch("ALTER TABLE jobs DROP COLUMN attempts").unwrap();
                drop(connection);
            },
            "damaged",
        ),
        (
            "tables that a migration is about to make",
            |file| Connection::open(file).unwrap().pragma_update(None, "user_version", 0).unwrap(),
            "damaged",
        ),
        (
            "a newer version",
            |file| Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap(),
            "newer",
        ),
    ];
    for (what, harm, word) in cases {
        let folder = StateFolder::new();
        let journal = folder.journal();
        add(&journal, 1);
        drop(journal);
        harm(&folder.file());
        let before = std::fs::read(folder.file()).unwrap();
        let OpenedJournal { journal, aside } = Journal::open(&folder.file()).unwrap();
        let aside = aside.unwrap_or_else(|| panic!("{what}: nothing was noticed"));
        assert_eq!(matches!(aside.reason, QuarantineReason::Newer(99)), word == "newer", "{what}");
        assert_eq!(aside.kept, folder.folder.path().join(format!("state/{JOURNAL_FILE}.{word}-1")), "{what}");
        // What SQLite can open, it may write to while it looks.
        if ["no database", "a damaged header", "a damaged page"].contains(&what) {
            assert!(std::fs::read(&aside.kept).unwrap() == before, "{what}");
        }
        let text = aside.to_string();
        assert!(text.contains(word) && text.contains(&aside.kept.display().to_string()), "{text}");
        assert!(left(&journal).is_empty());
        add(&journal, 2);
        assert_eq!(left(&journal).len(), 1, "{what}");
        // A second one does not replace the first one.
        drop(journal);
        harm(&folder.file());
        Journal::open(&folder.file()).unwrap();
        assert!(folder.names().contains(&format!("{JOURNAL_FILE}.{word}-2")), "{what}: {:?}", folder.names());
        assert!(aside.kept.exists());
    }
}

/// The journal and its log files hold what people said. Those of an earlier version are mended too.
#[cfg(unix)]
#[test]
fn no_other_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steno").join(JOURNAL_FILE);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for _ in 0..2 {
        let journal = Journal::open(&file).unwrap().journal;
        add(&journal, 1);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        for ending in ["", "-wal", "-shm"] {
            let file = PathBuf::from(format!("{}{ending}", file.display()));
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        drop(journal);
        set(&file, 0o644);
        set(file.parent().unwrap(), 0o755);
    }
}

#[test]
fn a_locked_file_is_an_error_until_it_is_unlocked() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    let key = add(&journal, 1);
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let asked = Instant::now();
    let error = journal.begin_attempt(key, 1, &Resume::default()).unwrap_err();
    assert!(matches!(error.problem, Problem::Locked), "{error}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let told = error.failure().to_string();
    assert!(told.contains(JOURNAL_FILE) && told.contains("another program"), "{told}");
    other.execute_batch("ROLLBACK").unwrap();
    journal.begin_attempt(key, 1, &Resume::default()).unwrap();
    assert_eq!(left(&journal)[0].state, JournalState::Running);
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    let key = add(&journal, 1);
    assert!(reach(&journal, key, &point(0, 100), &[0]));
    drop(journal);
    // No more pages, as on a full disk.
    let journal = folder.journal();
    journal.forbid_growth().unwrap();
    let long = Segment { text: "x".repeat(100_000), ..segment(1) };
    let step = ReachedPoint { point: &point(0, 200), segments: &[long], discarded: &[], marks: &[] };
    let error = journal.record_point(key, &step).unwrap_err();
    assert!(matches!(error.problem, Problem::Full), "{error}");
    assert_eq!(texts(&left(&journal)[0].resume), ["Number 0."]);
}

#[test]
fn an_unusable_folder_is_named() {
    let folder = StateFolder::new();
    std::fs::write(folder.folder.path().join("state"), "a file where the folder should be").unwrap();
    let error = Journal::open(&folder.file()).unwrap_err();
    assert!(error.failure().to_string().contains(JOURNAL_FILE), "{error}");
    assert!(error.remedy().contains("STENO_STATE_FOLDER"));
}

#[test]
fn an_unreadable_job_does_not_hide_the_others() {
    let folder = StateFolder::new();
    let journal = folder.journal();
    add(&journal, 1);
    let second = add(&journal, 2);
    drop(journal);
    let connection = Connection::open(folder.file()).unwrap();
    connection.execute("UPDATE jobs SET job = '{\"other\": 1}' WHERE queue_id = 1", []).unwrap();
    drop(connection);
    let journal = folder.journal();
    let listing = journal.unfinished(HostKind::CommandLine).unwrap();
    assert_eq!(listing.jobs.iter().map(|left| left.key).collect::<Vec<_>>(), [second]);
    assert_eq!(listing.unreadable[0].file, Some("/recordings/talk.flac".into()));
    journal.finish(listing.unreadable[0].key, JournalState::Cancelled).unwrap();
    assert!(journal.unfinished(HostKind::CommandLine).unwrap().unreadable.is_empty());
}

/// Kills a process between writes and within them.
#[cfg(unix)]
#[test]
fn a_killed_host_leaves_complete_points() {
    use std::io::Read;
    const WRITER: &str = "STENO_TEST_JOURNAL_WRITER";
    let test = "journal::a_killed_host_leaves_complete_points";
    if let Some(file) = std::env::var_os(WRITER) {
        let journal = Journal::open(Path::new(&file)).unwrap().journal;
        let key = add(&journal, 1);
        println!("ready");
        for step in 0.. {
            // Two segments per point, so that a partial write is visible.
            reach(&journal, key, &point(0, u64::from(step) + 1), &[2 * step, 2 * step + 1]);
        }
    }
    for round in 0..5 {
        let folder = StateFolder::new();
        std::fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(WRITER, folder.file())
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
        let journal = folder.journal();
        let taken = journal.take_over(HostKind::CommandLine).unwrap().jobs.remove(0);
        let reached = taken.resume.point.as_ref().map_or(0, |point| point.position);
        let expected: Vec<_> = (0..2 * reached as u32).map(|number| format!("Number {number}.")).collect();
        assert_eq!(texts(&taken.resume), expected, "round {round}");
    }
}
