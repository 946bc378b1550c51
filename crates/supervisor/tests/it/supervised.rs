//! However engines end, a job comes to its end: its text whole, nothing told
//! twice, the next job not concerned.

use std::time::{Duration, Instant};

use crate::support::job_folder::{JobFolder, impatient_engine};
use crate::support::{PATIENCE, double, is_running, options, wait_for_end};
use library::{HostKind, Journal, JournalState, NewJob};
use supervisor::{EngineOptions, SupervisedJob, Supervisor, SupervisorOptions};
use transcript::{Notice, Transcript};
use wire::{ErrorCode, Event, Failure, Job};

const SECOND: Duration = Duration::from_secs(1);

fn engine() -> EngineOptions {
    impatient_engine(double("windows"))
}

fn supervisor() -> Supervisor {
    Supervisor::start(SupervisorOptions { engine: engine(), ..SupervisorOptions::default() })
}

fn keep(journal: &Journal, job: &Job) -> library::JobKey {
    let outputs = serde_json::Value::Null;
    let entry = NewJob { kind: HostKind::CommandLine, queue_id: 1, job, identity: None, outputs: &outputs };
    journal.add(&[entry]).unwrap()[0]
}

/// All that was told, and how it ended.
#[derive(Debug, Default)]
struct Told {
    started: usize,
    segments: Vec<String>,
    notices: Vec<Notice>,
    rungs: usize,
    finished: Option<Box<Transcript>>,
    failed: Option<(Failure, Option<Box<Transcript>>)>,
    cancelled: Option<Option<Box<Transcript>>>,
}

impl Told {
    fn codes(&self) -> Vec<&str> {
        self.notices.iter().map(|notice| notice.code.as_str()).collect()
    }
}

async fn follow(mut job: SupervisedJob) -> Told {
    let mut told = Told::default();
    loop {
        let event = tokio::time::timeout(PATIENCE, job.next()).await.expect("no event").unwrap();
        match event {
            Event::Started { .. } => told.started += 1,
            Event::Segment { segment, .. } => told.segments.push(segment.text),
            Event::Notice { notice, .. } => told.notices.push(notice),
            Event::Rung { .. } => told.rungs += 1,
            Event::Finished { transcript, .. } => told.finished = Some(transcript),
            Event::Failed { error, partial, .. } => told.failed = Some((error, partial)),
            Event::Cancelled { partial, .. } => told.cancelled = Some(partial),
            _ => continue,
        }
        if told.finished.is_some() || told.failed.is_some() || told.cancelled.is_some() {
            assert_eq!(job.next().await, None);
            return told;
        }
    }
}

fn expected(windows: impl IntoIterator<Item = u32>) -> Vec<String> {
    windows
        .into_iter()
        .flat_map(|window| (0..2).map(move |half| format!("Window {window}, half {half}.")))
        .collect()
}

fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.segments.iter().map(|segment| segment.text.clone()).collect()
}

/// The engine that is kept warm between jobs gives its memory back when it is to rest.
#[tokio::test]
async fn an_engine_that_rests_is_gone_until_the_next_job() {
    let (place, supervisor) = (JobFolder::new(), supervisor());
    follow(supervisor.submit(place.job("1 windows"))).await;
    assert!(supervisor.engine().is_some(), "it is kept warm");
    supervisor.rest().await;
    assert!(supervisor.engine().is_none());
    let told = follow(supervisor.submit(place.job("2 windows"))).await;
    assert_eq!(texts(&told.finished.unwrap()), expected(0..2));
    supervisor.shutdown().await;
}

#[tokio::test]
async fn an_engine_that_ends_in_a_job_is_replaced_and_the_text_is_whole() {
    let cases: [(&str, &[&str]); 9] = [
        ("5 windows", &[]),
        ("5 windows, kill 2 once", &["engine.restarted"]),
        ("5 windows, kill start once", &["engine.restarted"]),
        ("5 windows, allocation 0 once", &["engine.restarted"]),
        ("5 windows, abort 4 once", &["engine.restarted"]),
        ("5 windows, leave 1 once", &["engine.restarted"]),
        ("5 windows, hang 3 once", &["engine.restarted"]),
        ("5 windows, renew 2 once", &[]),
        ("5 windows, kill 1 once, leave 3 once", &["engine.restarted", "engine.restarted"]),
    ];
    let (place, supervisor) = (JobFolder::new(), supervisor());
    for (name, codes) in cases {
        let told = follow(supervisor.submit(place.job(name))).await;
        let transcript = told.finished.as_ref().unwrap_or_else(|| panic!("{name}: {told:?}"));
        assert_eq!(texts(transcript), expected(0..5), "{name}");
        assert_eq!(told.segments, expected(0..5), "{name}: told live");
        assert_eq!(told.started, 1, "{name}");
        let mut found = told.codes();
        found.sort();
        assert_eq!(found, [&["audio.mono"], codes].concat(), "{name}");
        // What was told is kept, whoever said it.
        assert!(told.notices.iter().all(|notice| transcript.notices.contains(notice)), "{name}");
        assert_eq!(transcript.notices.len(), told.notices.len(), "{name}");
    }
    let engine = supervisor.engine().unwrap();
    supervisor.shutdown().await;
    assert!(!is_running(engine.pid()));
}

#[tokio::test]
async fn a_window_that_ends_every_engine_costs_that_window_alone() {
    let (place, supervisor) = (JobFolder::new(), supervisor());
    let told = follow(supervisor.submit(place.job("5 windows, abort 2 always"))).await;
    let transcript = told.finished.expect("it did not finish");
    assert_eq!(texts(&transcript), expected([0, 1, 3, 4]));
    let skipped = transcript.notices.iter().find(|notice| notice.code == "engine.window_skipped").unwrap();
    assert_eq!(skipped.at.unwrap().millis(), 60_000);
    // Its first half had been told before anybody knew.
    assert_eq!(told.segments.len(), 9);
}

#[tokio::test]
async fn a_job_that_ends_engine_after_engine_fails_alone_with_what_there_is() {
    let (place, supervisor) = (JobFolder::new(), supervisor());
    for (name, most) in [
        ("5 windows, kill start always", 3),
        ("5 windows, abort 1 once, abort 2 once, abort 3 once", 3),
        ("5 windows, abort 1 always, abort 3 always", 4),
    ] {
        let told = follow(supervisor.submit(place.job(name))).await;
        let (failure, partial) = told.failed.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(failure.code, ErrorCode::EngineFailed, "{name}: {failure}");
        assert!(failure.file.is_some() && failure.remedy.is_some(), "{name}: {failure}");
        assert!(failure.message.contains(&format!("started {most} times")), "{name}: {failure}");
        let kept = partial.map(|partial| texts(&partial)).unwrap_or_default();
        assert_eq!(kept, told.segments, "{name}");
        let next = follow(supervisor.submit(place.job("2 windows"))).await;
        assert_eq!(texts(&next.finished.unwrap()), expected(0..2), "{name}");
    }
    // What is the file's own fault is told at once.
    let told = follow(supervisor.submit(place.job("5 windows, broken 1 always"))).await;
    let (failure, partial) = told.failed.unwrap();
    assert_eq!((failure.code, told.notices.len()), (ErrorCode::AudioBroken, 1));
    assert_eq!(texts(&partial.unwrap()).len(), 3);
}

#[tokio::test]
async fn one_engine_is_kept_warm_and_renewed_when_its_time_has_come() {
    let place = JobFolder::new();
    let memory = memory::settings::MemorySettings { renew_after: 3, ..Default::default() };
    let options = SupervisorOptions { engine: engine(), memory, ..SupervisorOptions::default() };
    let supervisor = Supervisor::start(options);
    let mut pids = Vec::new();
    for name in ["1 windows", "1 windows", "1 windows", "1 windows", "1 windows worn", "1 windows"] {
        let told = follow(supervisor.submit(place.job(name))).await;
        assert!(told.finished.is_some(), "{told:?}");
        pids.push(supervisor.engine().unwrap().pid());
    }
    let is_same: Vec<bool> = pids.windows(2).map(|pair| pair[0] == pair[1]).collect();
    // After three files, and after the one that wore it out.
    assert_eq!(is_same, [true, true, false, true, false]);
    assert!(pids[..5].iter().all(|pid| *pid == pids[5] || !is_running(*pid)), "old ones live on");
}

#[tokio::test]
async fn a_cancel_is_obeyed_within_little_more_than_a_second_wherever_the_job_is() {
    let (place, supervisor) = (JobFolder::new(), supervisor());
    let running = supervisor.submit(place.job("5 windows, hang 2 always"));
    let queued = supervisor.submit(place.job("5 windows"));
    let next = supervisor.submit(place.job("3 windows"));
    queued.cancel();
    assert!(follow(queued).await.cancelled.is_some(), "a queued one ends at once");
    let stop = running.stop();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = Instant::now();
    stop.ask();
    let told = follow(running).await;
    assert!(asked.elapsed() < 2 * SECOND, "{:?}", asked.elapsed());
    assert_eq!(texts(&told.cancelled.unwrap().unwrap()), told.segments);
    assert_eq!(texts(&follow(next).await.finished.unwrap()), expected(0..3));
    // One that is dropped is cancelled as well, and the engine with it.
    let dropped = supervisor.submit(place.job("5 windows, hang 0 always"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let pid = supervisor.engine().unwrap().pid();
    drop(dropped);
    wait_for_end(pid, Instant::now() + 3 * SECOND);
}

#[tokio::test]
async fn closing_cancels_everything_and_leaves_no_engine() {
    let (place, supervisor) = (JobFolder::new(), supervisor());
    let mut jobs = [0, 1].map(|_| supervisor.submit(place.job("5 windows, hang 2 always")));
    // The first word of the job says that there is an engine.
    assert!(jobs[0].next().await.is_some());
    let pid = supervisor.engine().unwrap().pid();
    let asked = Instant::now();
    supervisor.shutdown().await;
    assert!(asked.elapsed() < 3 * SECOND, "{:?}", asked.elapsed());
    assert!(!is_running(pid));
    for job in jobs {
        assert!(follow(job).await.cancelled.is_some());
    }
    assert_eq!(supervisor.ready().await.unwrap_err().code, ErrorCode::Cancelled);
}

#[tokio::test]
async fn without_an_engine_every_job_says_so() {
    let place = JobFolder::new();
    let engine = options(place.folder.path().join("no engine"));
    let supervisor = Supervisor::start(SupervisorOptions { engine, ..SupervisorOptions::default() });
    assert_eq!(supervisor.ready().await.unwrap_err().code, ErrorCode::EngineNotFound);
    let (failure, _) = follow(supervisor.submit(place.job("1 windows"))).await.failed.unwrap();
    assert_eq!(failure.code, ErrorCode::EngineNotFound);
}

#[tokio::test]
async fn what_a_dead_host_had_reached_is_where_the_next_one_goes_on() {
    let place = JobFolder::new();
    let job = place.job("6 windows, hang 3 once");
    {
        let journal = place.journal();
        let key = keep(&journal, &job);
        let options =
            SupervisorOptions { engine: engine(), journal: Some(journal), ..SupervisorOptions::default() };
        let supervisor = Supervisor::start(options);
        let mut running = supervisor.submit_kept(job.clone(), key);
        loop {
            let event = tokio::time::timeout(PATIENCE, running.next()).await.unwrap().unwrap();
            if matches!(&event, Event::Reached { point, .. } if point.position == 3 * 480_000) {
                break;
            }
            assert!(!event.is_last(), "{event:?}");
        }
        // Nobody says goodbye to the journal.
        drop(running);
        supervisor.shutdown().await;
    }
    let journal = place.journal();
    let left = journal.take_over(HostKind::CommandLine).unwrap().jobs.remove(0);
    assert_eq!(left.resume.segments.len(), 6);
    let options = SupervisorOptions {
        engine: engine(),
        journal: Some(journal.clone()),
        ..SupervisorOptions::default()
    };
    let supervisor = Supervisor::start(options);
    let resumed = Job { resume: Some(Box::new(left.resume)), ..left.job };
    let told = follow(supervisor.submit_kept(resumed, left.key)).await;
    assert_eq!(texts(&told.finished.unwrap()), expected(0..6));
    assert_eq!(told.segments, expected(0..6), "the new client is told all of it, once");
    journal.finish(left.key, JournalState::Finished).unwrap();
    assert!(journal.unfinished(HostKind::CommandLine).unwrap().jobs.is_empty());
}

#[tokio::test]
async fn a_journal_that_can_not_be_written_costs_a_notice_and_nothing_else() {
    let place = JobFolder::new();
    let journal = place.journal();
    let job = place.job("40 windows, kill 2 once");
    let key = keep(&journal, &job);
    journal.forbid_growth().unwrap();
    let options =
        SupervisorOptions { engine: engine(), journal: Some(journal), ..SupervisorOptions::default() };
    let supervisor = Supervisor::start(options);
    let told = follow(supervisor.submit_kept(job, key)).await;
    assert_eq!(texts(told.finished.as_ref().unwrap()), expected(0..40));
    let complaints = told.codes().into_iter().filter(|code| *code == "journal.unavailable").count();
    assert_eq!(complaints, 1, "{:?}", told.notices);
    let complaint = told.notices.iter().find(|notice| notice.code == "journal.unavailable").unwrap();
    assert!(
        complaint.text.contains("journal.sqlite") && complaint.text.contains("full"),
        "{}",
        complaint.text
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_engine_of_low_priority_stands_back() {
    use config::preferences::Priority;
    let nice = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // proc(5): the nineteenth field; behind the name comes the third.
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.nth(16).unwrap().parse::<i32>().unwrap()
    };
    let ours = nice(std::process::id());
    for (priority, expected) in [(Priority::Normal, ours), (Priority::Low, ours.max(10))] {
        let engine = supervisor::Engine::start(&EngineOptions { priority, ..engine() }).await.unwrap();
        assert_eq!(nice(engine.pid()), expected, "{priority:?}");
        engine.shutdown().await;
    }
}
