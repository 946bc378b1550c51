use super::*;
use memory::death::Evidence;
use memory::ladder::{Installed, Pins, Processor};
use transcript::{Segment, Severity};
use wire::{Alternative, DeviceChoice, Point};

const OOM: Option<Death> = Some(Death::OutOfMemory(Evidence::Killed));
const CRASH: Option<Death> = Some(Death::Crash);
const ID: u64 = 5;

fn policy(job: Job) -> RecoveryPolicy {
    let mut policy = RecoveryPolicy::new(job, None);
    policy.next_job(place(&policy.job));
    policy
}

fn place(job: &Job) -> Processor {
    if job.device == DeviceChoice::Cpu { Processor::Cpu } else { Processor::Gpu }
}

fn job() -> Job {
    let mut job = Job::new(ID, "/talk.flac", "/models/large");
    job.device = DeviceChoice::Cpu;
    job
}

/// A job whose ladder has four rungs: the batch twice, a smaller model, the CPU.
fn job_with_rungs() -> Job {
    let mut job = job();
    job.device = DeviceChoice::Auto;
    job.memory.batch_size = Some(4);
    job.alternatives = [("large", 1000), ("small", 100)]
        .map(|(model, size)| Alternative {
            path: format!("/models/{model}").into(),
            installed: Installed {
                model: model.into(),
                precision: "f16".into(),
                parameters: size,
                gpu_bytes: size,
                host_bytes: size,
                suits: true,
            },
        })
        .to_vec();
    job
}

fn died() -> Failure {
    Failure::new(ErrorCode::EngineFailed, "The engine ended.")
}

fn segment(start: u32, text: &str) -> Event {
    let (start, end) = (Time::from_millis(start), Time::from_millis(start + 900));
    Event::Segment { segment: Segment { start, end, text: text.into(), ..Segment::default() } }
}

fn window(position: u64) -> Event {
    Event::Window { channel: 0, position }
}

fn reached(position: u64) -> Event {
    let point = Box::new(Point { position, ..Point::default() });
    Event::Reached { point, discarded: Vec::new() }
}

fn started(device: &str) -> Event {
    let model = transcript::Model { name: "large".into(), precision: "f16".into(), ..Default::default() };
    Event::Started { source: Default::default(), model, device: device.into() }
}

/// What the client is told of these, in one word each.
fn events_told(policy: &mut RecoveryPolicy, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let tell = events.into_iter().flat_map(|event| policy.handle_event(event).tell);
    tell.map(|event| match event {
        Event::Started { .. } => "started".into(),
        Event::Segment { segment, .. } => segment.text,
        Event::Window { position, .. } => format!("window {position}"),
        Event::Reached { point, .. } => format!("reached {}", point.position),
        Event::Notice { notice, .. } => notice.code,
        other => format!("{other:?}"),
    })
    .collect()
}

fn codes(tell: &[Event]) -> Vec<&str> {
    tell.iter()
        .filter_map(|event| match event {
            Event::Notice { notice, .. } => Some(notice.code.as_str()),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn again(policy: &mut RecoveryPolicy, death: Option<Death>) -> (Vec<String>, Job) {
    match policy.failed(died(), death) {
        Next::Again { tell, .. } => {
            (codes(&tell).into_iter().map(str::to_owned).collect(), policy.next_job(place(&policy.job)))
        }
        Next::GiveUp { failure, .. } => panic!("{failure}"),
    }
}

#[test]
fn a_new_engine_goes_on_from_the_last_point_and_nothing_is_told_twice() {
    let mut policy = policy(job());
    let first = [
        started("cpu"),
        window(0),
        segment(0, "a"),
        segment(1000, "b"),
        reached(100),
        window(100),
        segment(2000, "c"),
    ];
    assert_eq!(
        events_told(&mut policy, first),
        ["started", "window 0", "a", "b", "reached 100", "window 100", "c"]
    );
    let (_, job) = again(&mut policy, CRASH);
    let resume = job.resume.unwrap();
    let texts: Vec<_> = resume.segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!((texts, resume.point.unwrap().position), (vec!["a", "b"], 100));
    // "c" was told already, whatever became of it.
    let second = [started("cpu"), window(100), segment(2000, "c"), segment(3000, "d"), reached(200)];
    assert_eq!(events_told(&mut policy, second), ["d", "reached 200"]);
    assert_eq!(policy.resume().segments.len(), 4);
    // Nor is anything told twice by an engine that knows nothing of resuming.
    again(&mut policy, CRASH);
    let third =
        [started("cpu"), window(0), segment(0, "a"), segment(1000, "b"), reached(100), segment(2000, "c")];
    assert_eq!(events_told(&mut policy, third), [""; 0]);
    let fourth = [segment(3000, "d"), reached(200), segment(4000, "e"), reached(300)];
    assert_eq!(events_told(&mut policy, fourth), ["e", "reached 300"]);
    let resume = policy.resume();
    let texts: Vec<_> = resume.segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_client_of_a_resumed_job_is_told_what_was_there_first() {
    let Event::Segment { segment: one, .. } = segment(0, "a") else { panic!() };
    let notice = Notice::new("audio.mono", Severity::Info, "It is mono.");
    let resume = Resume {
        point: Some(Point { position: 100, ..Point::default() }),
        segments: vec![one],
        notices: vec![notice.clone()],
        ..Resume::default()
    };
    let mut policy = policy(Job { resume: Some(Box::new(resume)), ..job() });
    let again = Event::Notice { notice };
    let events = [started("cpu"), again, window(100), segment(1000, "b"), reached(200)];
    assert_eq!(
        events_told(&mut policy, events),
        ["started", "a", "audio.mono", "window 100", "b", "reached 200"]
    );
    assert_eq!(policy.partial(None).unwrap().segments.len(), 2);
}

#[test]
fn a_window_that_ends_the_engine_twice_is_passed_over_and_the_job_goes_on() {
    let mut policy = policy(job());
    events_told(&mut policy, [window(0), segment(0, "a"), reached(100), window(480_000)]);
    let (codes, job) = again(&mut policy, CRASH);
    assert_eq!((codes, job.resume.unwrap().skip), (vec!["engine.restarted".into()], vec![]));
    events_told(&mut policy, [window(480_000)]);
    let (codes, job) = again(&mut policy, CRASH);
    assert_eq!(codes, ["engine.restarted", "engine.window_skipped"]);
    let resume = job.resume.unwrap();
    assert_eq!(resume.skip, [480_000]);
    let notice = resume.notices.last().unwrap();
    assert_eq!((notice.severity, notice.at), (Severity::Failed, Some(Time::from_millis(30_000))));
    // That window no longer counts, but three restarts are the most there is.
    events_told(&mut policy, [window(960_000)]);
    again(&mut policy, CRASH);
    events_told(&mut policy, [window(960_000)]);
    let Next::GiveUp { failure, .. } = policy.failed(died(), CRASH) else { panic!() };
    assert!(failure.message.contains("started 4 times"), "{failure}");
}

#[test]
fn a_third_death_elsewhere_fails_the_file() {
    // Windows at which it dies, one after the other; none: before the first.
    for windows in [[None, None, None], [Some(1), Some(2), Some(3)], [None, Some(2), Some(3)]] {
        let mut policy = policy(job());
        for (number, window_at) in windows.into_iter().enumerate() {
            events_told(&mut policy, window_at.map(window));
            let next = policy.failed(died(), CRASH);
            assert_eq!(matches!(next, Next::GiveUp { .. }), number == 2, "{windows:?}: {next:?}");
            policy.next_job(place(&policy.job));
        }
    }
}

#[test]
fn out_of_memory_goes_down_the_ladder_and_the_next_engine_gets_the_lesser_settings() {
    let mut policy = policy(job_with_rungs());
    events_told(&mut policy, [started("cuda:0"), window(0)]);
    let (codes, job) = again(&mut policy, OOM);
    assert_eq!(codes, ["memory.batch_halved"]);
    assert_eq!((job.memory.batch_size, job.model.clone()), (Some(2), "/models/large".into()));
    assert_eq!(job.precision, Some(memory::Precision::F16));
    let state = job.resume.as_ref().unwrap().ladder.clone().unwrap();
    assert_eq!((state.settings.model.as_str(), state.settings.batch), ("large", 2));
    events_told(&mut policy, [started("cuda:0"), window(0)]);
    let (codes, job) = again(&mut policy, OOM);
    assert_eq!((codes, job.memory.batch_size), (vec!["memory.batch_halved".into()], Some(1)));
    assert!(job.resume.unwrap().skip.is_empty(), "memory is to blame, not the window");
    events_told(&mut policy, [started("cuda:0"), window(0)]);
    let (codes, job) = again(&mut policy, OOM);
    assert_eq!(codes, ["memory.smaller_model", "engine.window_skipped"]);
    assert_eq!(job.model, "/models/small".into());
    // The next file begins where this one ended up.
    let learned = policy.learned().unwrap();
    let mut next = RecoveryPolicy::new(job_with_rungs(), Some(learned));
    let job = next.next_job(Processor::Cpu);
    assert_eq!((job.model, job.memory.batch_size), ("/models/small".into(), Some(1)));
}

/// Somebody's `kill -9` says nothing about memory, with 21 GB free.
#[test]
fn a_kill_that_nothing_explains_is_tried_again_as_it_was_and_only_a_second_one_steps_down() {
    let mut policy = policy(job_with_rungs());
    events_told(&mut policy, [started("cuda:0"), window(0), segment(0, "a"), reached(100)]);
    let (codes, job) = again(&mut policy, Some(Death::Killed));
    assert_eq!((codes, job.memory.batch_size), (vec!["engine.restarted".to_owned()], Some(4)));
    assert_eq!((job.model, job.device), ("/models/large".into(), DeviceChoice::Auto));
    assert_eq!(policy.learned(), None, "the next file has nothing to fear");
    events_told(&mut policy, [started("cuda:0"), window(100)]);
    let (codes, job) = again(&mut policy, Some(Death::Killed));
    assert_eq!(codes.len(), 1, "{codes:?}");
    assert!(codes[0].starts_with("memory.") && job.memory.batch_size < Some(4), "{codes:?}");
}

#[test]
fn pins_are_obeyed_and_without_a_step_left_the_same_is_tried_again() {
    let mut job = job_with_rungs();
    job.memory.batch_size = Some(1);
    job.memory.pins = Pins { model: true, precision: true, cpu: true, speakers: true };
    let mut policy = policy(job.clone());
    events_told(&mut policy, [started("cuda:0"), window(0), segment(0, "a"), reached(100)]);
    let (codes, again) = again(&mut policy, OOM);
    assert_eq!(codes, ["engine.restarted"]);
    let resume = again.resume.clone().unwrap();
    assert_eq!(resume.ladder, None);
    let notices = policy.resume().notices.clone();
    assert_eq!(again, Job { resume: Some(Box::new(Resume { notices, ..*resume })), ..job });
}

#[test]
fn a_step_that_the_engine_took_itself_is_completed_by_a_new_one() {
    let mut policy = policy(job_with_rungs());
    events_told(&mut policy, [started("cuda:0"), window(0)]);
    let state = rungs::top(&policy.job, Processor::Gpu);
    let ladder = Ladder { installed: Vec::new(), pins: Pins::default() };
    let rung = |trouble| ladder.next(Stage::Transcribe, &state, trouble).unwrap();
    // A retry is the engine's own business: what fails after it fails for good.
    let retry = rung(Trouble::OutOfMemory);
    assert_eq!(retry.step, Step::RetryAfterTrim);
    policy.handle_event(Event::Rung { rung: Box::new(retry) });
    let renew = rung(Trouble::DeviceError);
    assert_eq!(renew.step, Step::RenewEngine);
    policy.handle_event(Event::Rung { rung: Box::new(renew) });
    let failure = Failure::new(ErrorCode::OutOfMemory, "The engine is to be renewed.");
    assert!(matches!(policy.failed(failure.clone(), None), Next::Again { .. }));
    let job = policy.next_job(place(&policy.job));
    assert!(job.resume.unwrap().ladder.unwrap().renewed);
    assert!(matches!(policy.failed(failure, None), Next::GiveUp { .. }));
}

#[test]
fn what_a_new_engine_would_not_cure_fails_at_once() {
    let broken = Failure::new(ErrorCode::AudioBroken, "The file is damaged.");
    let fatal = Failure::new(ErrorCode::Internal, "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS)");
    let silent = Failure::new(ErrorCode::EngineSilent, "It got nowhere.");
    let no_code = Failure::new(ErrorCode::DeviceUnavailable, "DriverError(CUDA_ERROR_NO_BINARY_FOR_GPU)");
    for (failure, death, goes_on) in [
        (broken.clone(), None, false),
        (no_code, None, false),
        // The decoder's limit ends the process, and the file is to blame.
        (broken, CRASH, false),
        (died(), Some(Death::Wanted), false),
        (fatal, None, true),
        (Failure::new(ErrorCode::Internal, "A fault in Steno itself."), None, true),
        (silent, CRASH, true),
        (died(), Some(Death::Device), true),
    ] {
        let mut policy = policy(job());
        let what = format!("{failure} {death:?}");
        assert_eq!(matches!(policy.failed(failure, death), Next::Again { .. }), goes_on, "{what}");
    }
}

#[test]
fn a_device_that_fails_hands_over_to_the_cpu_in_the_end() {
    let mut policy = policy(job_with_rungs());
    let mut steps = Vec::new();
    for _ in 0..2 {
        events_told(&mut policy, [started("cuda:0"), window(0)]);
        let (codes, job) = again(&mut policy, Some(Death::Device));
        steps.push((codes.concat(), job.device));
    }
    let expected = [
        ("memory.engine_renewed".to_owned(), DeviceChoice::Auto),
        ("memory.moved_to_cpu".to_owned(), DeviceChoice::Cpu),
    ];
    assert_eq!(steps, expected);
    assert_eq!(policy.learned().unwrap().settings.place, Processor::Cpu);
}

#[test]
fn the_partial_text_is_the_longer_account() {
    let mut policy = policy(job());
    events_told(&mut policy, [started("cpu"), segment(0, "a"), reached(100), segment(1000, "b")]);
    again(&mut policy, CRASH);
    // The second engine saw nothing before it died.
    let partial = policy.partial(None).unwrap();
    assert_eq!(partial.segments.len(), 2);
    assert!(!partial.complete);
    assert_eq!(partial.notices[0].code, "engine.restarted");
}
