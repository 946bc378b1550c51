use super::*;
use advisor::ModelRef;
use library::documents::StepDirection;
use std::time::{Duration, Instant};
use transcript::{Segment, Span, Time};
use wire::Event;

/// A session whose engine can't be started, with one recording that is held.
fn session(folder: &Path) -> (Session, JobId) {
    let file = folder.join("talk.wav");
    std::fs::write(&file, "sound").unwrap();
    let options = EngineOptions { program: Some(folder.join("no engine")), ..EngineOptions::default() };
    let session =
        Session::new(options, JobSettings { model: Some(demonstration()), ..JobSettings::default() });
    let ids = session.add([file]);
    (session, ids[0])
}

fn demonstration() -> ModelRef {
    ModelRef { name: "demo".into(), path: "model".into(), demonstration: true, note: None }
}

fn say(session: &Session, id: JobId, number: u32) {
    let segment =
        Segment { text: number.to_string(), start: Time::from_millis(number), ..Segment::default() };
    session.inner.change(|shared| shared.queue.apply(id, Event::Segment { segment }));
}

async fn state_of(session: &Session, id: JobId, wanted: JobState) -> QueueEntry {
    let mut follower = session.follow();
    loop {
        let changes = follower.next().await.unwrap();
        if let Some(entry) = changes.changed.into_iter().find(|entry| entry.id == id && entry.state == wanted)
        {
            return entry;
        }
    }
}

#[tokio::test]
async fn a_flood_of_segments_becomes_twenty_messages_a_second_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    const SEGMENTS: u32 = 2000;
    let flood = {
        let session = session.clone();
        tokio::spawn(async move {
            for number in 0..SEGMENTS {
                say(&session, id, number);
                if number % 10 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        })
    };
    let (start, mut follower) = (Instant::now(), session.follow_text(id));
    let (mut texts, mut messages) = (Vec::new(), 0_u128);
    while texts.len() < SEGMENTS as usize {
        let change = follower.next().await.unwrap();
        // What is too long for one message has parts, each full but the last; they are
        // one telling. Which of them are needed is for the machine's speed to say.
        assert!(!change.more || change.segments.len() >= follow::FIRST_SEGMENTS);
        messages += u128::from(!change.more);
        texts.truncate(change.from);
        texts.extend(change.segments.into_iter().map(|segment| segment.text));
    }
    // However slow the machine is, no more than one each 50 ms and the first at once.
    let most = start.elapsed().as_millis() / 50 + 1;
    assert!(messages <= most, "{messages} messages where {most} are allowed");
    assert!(texts.iter().enumerate().all(|(index, text)| *text == index.to_string()));
    flood.await.unwrap();
}

#[tokio::test]
async fn what_is_held_starts_with_a_real_model_and_fails_by_name_without_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    state_of(&session, id, JobState::Held).await;
    let mut settings = session.settings();
    if let Some(model) = &mut settings.model {
        model.demonstration = false;
    }
    session.change_settings(settings);
    let entry = state_of(&session, id, JobState::Failed).await;
    assert_eq!(entry.failure.unwrap().code, ErrorCode::EngineNotFound);
    assert_eq!(session.describe().await.unwrap_err().code, ErrorCode::EngineNotFound);
}

#[tokio::test]
async fn without_any_model_the_recording_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    session.change_settings(JobSettings::default());
    let entry = state_of(&session, id, JobState::Failed).await;
    assert_eq!(entry.failure.unwrap().code, ErrorCode::ModelNotFound);
    assert_eq!(
        session
            .save(id, Format::Srt, &Options::default(), &SaveTarget::Beside { replace: false })
            .unwrap_err()
            .code,
        ErrorCode::TranscriptGone
    );
}

#[tokio::test]
async fn a_follower_of_a_removed_recording_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    let mut follower = session.follow_text(id);
    assert!(follower.next().await.is_some());
    session.remove(id);
    assert!(follower.next().await.is_none());
}

#[tokio::test]
async fn an_idle_session_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    state_of(&session, id, JobState::Held).await;
    let mut follower = session.follow();
    follower.next().await.unwrap();
    let more = tokio::time::timeout(Duration::from_millis(300), follower.next()).await;
    assert!(more.is_err(), "nothing happens, so there is nothing to tell");
    // The runner waits for its wake-up and has not taken one for itself.
    let woken = tokio::time::timeout(Duration::from_millis(50), session.inner.wake.notified()).await;
    assert!(woken.is_err());
}

#[tokio::test]
async fn memory_is_told_as_it_is_seen_and_all_of_it_to_who_comes_later() {
    use ::memory::{Checkpoint, DeviceKind, Levels, Sample};
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    let mut follower = session.follow_memory(id);
    let see = |checkpoint, at_ms| {
        let levels = Some(Levels { reserved: at_ms, ..Levels::default() });
        let sample = Sample { checkpoint, batch: None, at_ms, kind: DeviceKind::Host, levels, reason: None };
        session.inner.change(|shared| shared.queue.apply(id, Event::Memory { sample: Box::new(sample) }));
    };
    see(Checkpoint::PipelineStart, 1);
    let first = follower.next().await.unwrap();
    assert_eq!((first.from, first.samples.len()), (0, 1));
    see(Checkpoint::BeforeTranscribe, 5);
    see(Checkpoint::AfterDecodingRelease, 9);
    let second = follower.next().await.unwrap();
    assert_eq!((second.from, second.samples.len(), second.stages.len()), (1, 2, 1));
    assert_eq!(second.stages[0].to_ms, Some(9));
    let late = session.follow_memory(id).next().await.unwrap();
    assert_eq!((late.from, late.samples.len()), (0, 3));
    session.remove(id);
    assert!(follower.next().await.is_none());
}

/// "Try anyway" is asked once: not for each recording, and not again after a pause, a stop or a retry.
#[tokio::test]
async fn the_demonstration_is_approved_once_and_stays_so_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (session, journal) = kept_session_with(folder.path(), demonstration());
    session.pause(true);
    let files = ["a.wav", "b.wav"].map(|name| folder.path().join(name));
    files.iter().for_each(|file| std::fs::write(file, "sound").unwrap());
    let first = session.add([files[0].clone()])[0];
    state_of(&session, first, JobState::Held).await;
    session.start_anyway();
    state_of(&session, first, JobState::Waiting).await;
    let second = session.add([files[1].clone()])[0];
    state_of(&session, second, JobState::Waiting).await;
    session.cancel(first);
    state_of(&session, first, JobState::Cancelled).await;
    session.retry(first);
    state_of(&session, first, JobState::Waiting).await;
    session.change_settings(JobSettings { model: Some(demonstration()), ..JobSettings::default() });
    assert_eq!(session.lock().queue.get(first).unwrap().state, JobState::Waiting);
    let approved = || {
        let jobs = journal.unfinished(library::HostKind::Window).unwrap().jobs;
        jobs.iter().filter(|job| job.outputs["demonstration"] == true).count()
    };
    let begun = Instant::now();
    while approved() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", approved());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    session.close().await;
    drop(session);
    drop(journal);
    // On a busy machine the old window sometimes counts as alive for a moment more, and its jobs as its own. What holds
    // its journal then is not known.
    let begun = Instant::now();
    let (session, states) = loop {
        let session = kept_session_with(folder.path(), demonstration()).0;
        session.pause(true);
        let states: Vec<JobState> = session.lock().queue.iter().map(|entry| entry.state).collect();
        if !states.is_empty() {
            break (session, states);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing was taken over");
        drop(session);
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(states, [JobState::Waiting, JobState::Waiting]);
    // What is new is asked for again.
    let third = session.add([files[0].clone()])[0];
    state_of(&session, third, JobState::Held).await;
}

#[tokio::test]
async fn a_paused_queue_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    session.pause(true);
    session.start_anyway();
    // Nothing would come: a while in which it would have failed for want of an engine.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(session.lock().queue.get(id).unwrap().state, JobState::Waiting);
    session.pause(false);
    state_of(&session, id, JobState::Failed).await;
}

/// A finished transcript in the list and in the history beside it.
async fn finished(folder: &Path, texts: &[&str]) -> (Session, JobId) {
    let (session, id) = session(folder);
    session.keep_documents(library::Documents::open(&folder.join("history.sqlite")).unwrap().0);
    finish(&session, id, texts);
    (session, id)
}

fn transcript_of(texts: &[&str]) -> transcript::Transcript {
    let mut transcript = save::tests::transcript(true);
    let segment = |(index, text): (usize, &&str)| {
        let time = |millis: usize| Time::from_millis(u32::try_from(millis).unwrap());
        Segment {
            start: time(1000 * index),
            end: time(1000 * index + 900),
            text: (*text).into(),
            ..Segment::default()
        }
    };
    transcript.segments = texts.iter().enumerate().map(segment).collect();
    transcript.source.duration = Time::from_millis(60_000);
    transcript
}

fn finish(session: &Session, id: JobId, texts: &[&str]) {
    let event = Event::Finished { transcript: Box::new(transcript_of(texts)), renewal: None };
    session.inner.change(|shared| shared.queue.apply(id, event));
    session.put_away(id);
}

fn texts(session: &Session, id: JobId) -> Vec<String> {
    session.lock().queue.get(id).unwrap().segments().iter().map(|segment| segment.text.clone()).collect()
}

/// On a full disk the text is not lost: the recording says so until there is room again.
#[tokio::test]
async fn a_transcript_that_can_not_be_stored_says_so_and_is_stored_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    let documents = library::Documents::open(&folder.path().join("history.sqlite")).unwrap().0;
    session.keep_documents(documents.clone());
    documents.forbid_growth(true).unwrap();
    let long = "On a quay of the harbour, long before the ferry came. ".repeat(2000);
    finish(&session, id, &[&long]);
    let entry = || session.lock().queue.get(id).unwrap().clone();
    let says_so = || entry().notices().iter().filter(|it| it.code == "history.unavailable").count();
    assert_eq!(entry().not_stored.unwrap().code, wire::ErrorCode::DiskFull);
    assert!(entry().edited.is_none() && says_so() == 1);
    assert!(!session.store_again(id));
    assert_eq!(says_so(), 1, "it is said once");
    assert_eq!(session.list_documents().unwrap().len(), 0);

    documents.forbid_growth(false).unwrap();
    assert!(session.store_again(id));
    assert!(entry().not_stored.is_none() && entry().edited.is_some() && says_so() == 0);
    let stored = session.list_documents().unwrap();
    let text = documents.read(stored[0].id).unwrap().unwrap().transcript;
    assert_eq!((stored.len(), text.segments[0].text.as_str(), text.notices.len()), (1, long.as_str(), 0));
    assert!(session.store_again(id), "it is stored once");
    assert_eq!(session.list_documents().unwrap().len(), 1);
}

/// What is replaced in all transcripts is counted before, and taken back in those that nobody edited since.
#[tokio::test]
async fn a_replacement_in_all_transcripts_is_counted_first_and_taken_back_in_one_go() {
    use transcript::edit::{Edit, TextPattern, assign_ids};
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = finished(folder.path(), &["The ferry and the ferry.", "Quiet."]).await;
    let documents = session.documents().unwrap().clone();
    let add = |name: &str, texts: &[&str]| {
        let mut transcript = transcript_of(texts);
        assign_ids(&mut transcript);
        documents.add(&folder.path().join(name), None, &transcript).unwrap()
    };
    let (quiet, edited) = (add("quiet.wav", &["A ferry."]), add("edited.wav", &["One ferry more."]));
    add("none.wav", &["A boat."]);
    let ferry = TextPattern { text: "ferry".into(), ..TextPattern::default() };
    let all = Replaced { places: 4, transcripts: 3 };
    assert_eq!(session.count_places(id, &ferry).unwrap(), all);
    assert_eq!(texts(&session, id)[0], "The ferry and the ferry.", "it is only counted");
    assert_eq!(session.replace_all(id, &ferry, "boat", true).unwrap(), all);
    let text = |document| documents.read(document).unwrap().unwrap().transcript.segments[0].text.clone();
    assert_eq!((text(quiet).as_str(), text(edited).as_str()), ("A boat.", "One boat more."));
    let opened = documents.read(edited).unwrap().unwrap();
    let more = Edit::SetText { segment: 1, text: "One boat less.".into() }.plan(&opened.transcript).unwrap();
    documents.record(edited, opened.undo_position.done, &more).unwrap();
    let titles = documents.list().unwrap();
    let title = titles.iter().find(|one| one.id == edited).unwrap().title.clone();
    assert_eq!(session.undo_replacing().unwrap(), (2, vec![title]), "those that are left are named");
    assert_eq!(texts(&session, id)[0], "The ferry and the ferry.");
    assert_eq!((text(quiet).as_str(), text(edited).as_str()), ("A ferry.", "One boat less."));
    assert_eq!(session.undo_replacing().unwrap(), (0, Vec::new()), "it is taken back once");
}

/// The speakers of a finished transcript are found later: an edit that keeps what was corrected.
#[tokio::test]
async fn speakers_that_are_found_later_are_an_edit() {
    use transcript::edit::Edit;
    use transcript::speakers::NamedTurn;
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = finished(folder.path(), &["The ferry is late.", "So am I.", "Good."]).await;
    session.edit(id, &Edit::SetText { segment: 2, text: "So am I, alas.".into() }).unwrap();
    let turn = |from: u32, to: u32, speaker: &str| NamedTurn {
        span: Span::new(Time::from_millis(from), Time::from_millis(to)),
        speaker: speaker.into(),
        channel: None,
    };
    let turns = vec![turn(0, 950, "Anna"), turn(950, 2000, "Speaker 2"), turn(2000, 2950, "Anna")];
    session.put_speakers(id, turns.clone()).unwrap().unwrap();
    let speakers = || {
        let shared = session.lock();
        let transcript = shared.queue.get(id).unwrap().transcript.clone().unwrap();
        let of_segments =
            transcript.segments.iter().map(|segment| segment.speaker.clone().unwrap_or_default());
        (of_segments.collect::<Vec<_>>(), transcript.turns)
    };
    assert_eq!(speakers(), (["Anna", "Speaker 2", "Anna"].map(String::from).to_vec(), turns));
    assert_eq!(texts(&session, id), ["The ferry is late.", "So am I, alas.", "Good."]);
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(speakers(), (vec![String::new(); 3], Vec::new()));
    session.step(id, StepDirection::Redo).unwrap().unwrap();
    assert_eq!(speakers().0[1], "Speaker 2");
}

#[tokio::test]
async fn edits_survive_the_window_and_are_undone_in_the_next_one() {
    use transcript::edit::Edit;
    let folder = tempfile::tempdir().unwrap();
    let document = {
        let (session, id) = finished(folder.path(), &["The ferry is late.", "So am I."]).await;
        assert_eq!(session.unsaved(), 0, "it is safe in the history");
        for number in 0..60 {
            let edit = Edit::SetText { segment: 2, text: format!("So am I, {number}.") };
            assert_eq!(session.edit(id, &edit).unwrap().unwrap().revision, number + 1);
        }
        session.edit(id, &Edit::Split { segment: 1, at: 9 }).unwrap().unwrap();
        assert_eq!(texts(&session, id), ["The ferry", "is late.", "So am I, 59."]);
        // What makes no sense is no failure, and changes nothing.
        assert_eq!(session.edit(id, &Edit::Split { segment: 99, at: 9 }).unwrap(), None);
        let place = SaveTarget::Beside { replace: false };
        let file = session.save(id, Format::Txt, &Options::default(), &place).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("So am I, 59."));
        let json = session.save(id, Format::Json, &Options::default(), &place).unwrap();
        assert!(
            !std::fs::read_to_string(json).unwrap().contains("\"id\""),
            "other programs have no use for it"
        );
        session.list_documents().unwrap()[0].id
    };
    let (session, _) = session(folder.path());
    session.keep_documents(library::Documents::open(&folder.path().join("history.sqlite")).unwrap().0);
    let id = session.open_document(document).unwrap();
    assert_eq!(session.open_document(document).unwrap(), id, "it is opened once");
    let now = ["The ferry", "is late.", "So am I, 59."];
    assert_eq!(texts(&session, id), now);
    for _ in 0..61 {
        session.step(id, StepDirection::Undo).unwrap().unwrap();
    }
    assert_eq!(texts(&session, id), ["The ferry is late.", "So am I."]);
    assert_eq!(session.step(id, StepDirection::Undo).unwrap(), None);
    for _ in 0..61 {
        session.step(id, StepDirection::Redo).unwrap().unwrap();
    }
    assert_eq!(texts(&session, id), now);
    // A part that is transcribed again is an edit like any other.
    let found = save::tests::transcript(true);
    session.put_again(id, Span::new(Time::ZERO, Time::from_millis(800)), found).unwrap();
    assert_eq!(texts(&session, id)[0], "Good morning.");
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(texts(&session, id), now);
}

#[tokio::test]
async fn of_a_long_transcript_the_beginning_is_there_at_once_and_then_all_of_it() {
    use transcript::edit::Edit;
    let folder = tempfile::tempdir().unwrap();
    let said: Vec<String> = (0..1000).map(|number| format!("This is said as number {number}.")).collect();
    let document = {
        let (session, id) =
            finished(folder.path(), &said.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let edit = Edit::SetText { segment: 2, text: "Something else.".into() };
        session.edit(id, &edit).unwrap().unwrap();
        session.list_documents().unwrap()[0].id
    };
    let (session, _) = session(folder.path());
    session.keep_documents(library::Documents::open(&folder.path().join("history.sqlite")).unwrap().0);
    let id = session.open_document(document).unwrap();
    let first = texts(&session, id);
    assert!(first.len() >= follow::FIRST_SEGMENTS, "{}", first.len());
    // Somebody exports it, and writes in it, at once.
    let place = SaveTarget::Within { folder: folder.path().into(), replace: true };
    let file = session.save_document(document, Format::Txt, &Options::default(), &place).unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("number 999."));
    let edit = Edit::SetText { segment: 3, text: "And else.".into() };
    session.edit(id, &edit).unwrap().unwrap();
    let mut expected = said.clone();
    expected[1] = "Something else.".into();
    assert_eq!(first, expected[..first.len()]);
    expected[2] = "And else.".into();
    let (mut follower, mut read) = (session.follow_text(id), Vec::new());
    while read.len() < expected.len() {
        let change = follower.next().await.unwrap();
        read.truncate(change.from);
        read.extend(change.segments.into_iter().map(|segment| segment.text));
    }
    assert_eq!(read, expected);
}

#[tokio::test]
async fn the_user_chooses_between_the_text_and_another_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = finished(folder.path(), &["The ferry is late.", "So am I."]).await;
    let span = Span::new(Time::ZERO, Time::from_millis(800));
    let offer = || {
        let found = Box::new(save::tests::transcript(true));
        session.inner.change(|shared| {
            shared.queue.ask_again(
                id,
                Again { span, kind: AgainKind::Text, attempt: Some(Attempt::default()), found: None },
            );
            shared.queue.offer_again(id, span, found);
        });
    };
    let waiting = || session.lock().queue.get(id).unwrap().again.len();
    offer();
    assert_eq!(session.choose_again(id, span, false).unwrap(), None);
    assert_eq!((texts(&session, id).len(), waiting()), (2, 0));
    assert_eq!(session.choose_again(id, span, true).unwrap(), None, "nothing is there to be taken");
    offer();
    assert_eq!(session.choose_again(id, span, true).unwrap().unwrap().segment, 0);
    assert_eq!((texts(&session, id)[0].as_str(), waiting()), ("Good morning.", 0));
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(texts(&session, id), ["The ferry is late.", "So am I."]);
}

#[tokio::test]
async fn what_is_doubtful_is_listed_and_what_was_accepted_stays_so() {
    use transcript::edit::Edit;
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    session.keep_documents(library::Documents::open(&folder.path().join("history.sqlite")).unwrap().0);
    let mut transcript = save::tests::transcript(true);
    let gap = Span::new(Time::from_millis(20_000), Time::from_millis(23_000));
    transcript.completeness.gaps = vec![gap];
    transcript.segments[0].suspicions = vec![transcript::Suspicion::Loop];
    let event = Event::Finished { transcript: Box::new(transcript), renewal: None };
    session.inner.change(|shared| shared.queue.apply(id, event));
    session.put_away(id);
    let listed = |session: &Session, id| -> Vec<_> {
        session.review(id).passages.into_iter().map(|passage| passage.segment).collect()
    };
    assert_eq!(listed(&session, id), [None, Some(1)]);
    session.edit(id, &Edit::AcceptGap { gap }).unwrap().unwrap();
    session.edit(id, &Edit::Accept { segments: vec![1] }).unwrap().unwrap();
    assert_eq!((session.review(id).count, session.review(99).count), (0, 0));
    // After a restart, and after that is undone.
    let document = session.list_documents().unwrap()[0].id;
    session.remove(id);
    let id = session.open_document(document).unwrap();
    assert_eq!(session.review(id).count, 0);
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(listed(&session, id), [None, Some(1)]);
}

#[tokio::test]
async fn all_places_are_replaced_in_what_is_open_and_in_what_is_not() {
    use transcript::edit::TextPattern;
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = finished(folder.path(), &["The ferry. Ferry!", "So am I."]).await;
    let other = session.add([folder.path().join("talk.wav")])[0];
    finish(&session, other, &["A ferryman on a ferry."]);
    let closed = session.lock().queue.get(other).unwrap().edited.unwrap().document;
    session.remove(other);
    let finding = TextPattern { text: "ferry".into(), whole_words: true, ..TextPattern::default() };
    let done = session.replace_all(id, &finding, "boat", false).unwrap();
    assert_eq!(
        (done, texts(&session, id)[0].as_str()),
        (Replaced { places: 2, transcripts: 1 }, "The boat. boat!")
    );
    let done = session.replace_all(id, &finding, "boat", true).unwrap();
    assert_eq!(done, Replaced { places: 1, transcripts: 1 });
    let other = session.open_document(closed).unwrap();
    assert_eq!(texts(&session, other), ["A ferryman on a boat."]);
    session.step(other, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(texts(&session, other), ["A ferryman on a ferry."]);
}

#[tokio::test]
async fn places_are_replaced_one_by_one_and_by_expression() {
    use transcript::edit::TextPattern;
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = finished(folder.path(), &["⛴️ Ferry, ferry!", "The ferry."]).await;
    let finding = TextPattern { text: r"(f)er+y".into(), regular_expression: true, ..TextPattern::default() };
    let places = session.places(id, &finding).unwrap();
    // A picture is two code units and a mark.
    let starts: Vec<_> = places.iter().map(|place| (place.segment, place.range.start)).collect();
    assert_eq!(starts, [(0, 3), (0, 10), (1, 4)]);
    let behind = session.replace_one(id, &finding, "$1erryboat", &places[0]).unwrap().unwrap();
    assert_eq!((texts(&session, id)[0].as_str(), behind.range.start), ("⛴️ Ferryboat, ferry!", 12));
    let next = session.places(id, &finding).unwrap();
    let next = next.iter().find(|place| place.segment == 0 && place.range.start >= behind.range.start);
    session.replace_one(id, &finding, "boat", next.unwrap()).unwrap().unwrap();
    assert_eq!(texts(&session, id), ["⛴️ Ferryboat, boat!", "The ferry."]);
    // What is not there any more is left alone.
    assert_eq!(session.replace_one(id, &finding, "boat", &places[1]).unwrap(), None);
    session.step(id, StepDirection::Undo).unwrap().unwrap();
    assert_eq!(texts(&session, id)[0], "⛴️ Ferryboat, ferry!");
    // In the other transcripts too, which are found without the index of letters.
    let other = session.add([folder.path().join("talk.wav")])[0];
    finish(&session, other, &["A ferry."]);
    assert_eq!(session.count_places(id, &finding).unwrap(), Replaced { places: 4, transcripts: 2 });
    let wrong = TextPattern { text: "(".into(), ..finding };
    let error = session.places(id, &wrong).unwrap_err();
    assert!(error.message.contains("unclosed group"), "{error:?}");
}

#[tokio::test]
async fn a_recording_that_was_moved_is_found_by_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (session, id) = finished(folder.path(), &["a"]).await;
    let document = session.list_documents().unwrap()[0].id;
    let file_of = |id| {
        let shared = session.lock();
        let entry = shared.queue.get(id).unwrap();
        (entry.file.clone(), entry.missing)
    };
    session.remove(id);
    std::fs::write(path("other.wav"), "souND").unwrap();
    // Renamed in its folder.
    std::fs::rename(path("talk.wav"), path("renamed.wav")).unwrap();
    let id = session.open_document(document).unwrap();
    assert_eq!(file_of(id), (path("renamed.wav"), false));
    session.remove(id);
    // Elsewhere: the user has to say where.
    std::fs::create_dir_all(path("archive/2026")).unwrap();
    std::fs::rename(path("renamed.wav"), path("archive/2026/tape.wav")).unwrap();
    let id = session.open_document(document).unwrap();
    assert_eq!(file_of(id), (path("renamed.wav"), true));
    std::fs::create_dir(path("empty")).unwrap();
    assert!(!session.locate(id, &path("empty")).unwrap());
    assert!(session.locate(id, &path("archive")).unwrap());
    assert_eq!(file_of(id), (path("archive/2026/tape.wav"), false));
    session.remove(id);
    let id = session.open_document(document).unwrap();
    assert_eq!(file_of(id), (path("archive/2026/tape.wav"), false));
    session.delete_document(document).unwrap();
    assert!(session.lock().queue.get(id).is_none() && session.list_documents().unwrap().is_empty());
    session.restore_document(document).unwrap();
    assert_eq!(session.list_documents().unwrap().len(), 1);
}

/// A session with a journal and a model, whose engine can't be started.
fn kept_session(folder: &Path) -> (Session, library::Journal) {
    let path = folder.join("model");
    kept_session_with(folder, ModelRef { name: "real".into(), path, demonstration: false, note: None })
}

fn kept_session_with(folder: &Path, model: ModelRef) -> (Session, library::Journal) {
    let journal = library::Journal::open(&folder.join("journal.sqlite")).unwrap().journal;
    let options = SupervisorOptions {
        engine: EngineOptions { program: Some(folder.join("no engine")), ..EngineOptions::default() },
        journal: Some(journal.clone()),
        ..SupervisorOptions::default()
    };
    (Session::start(options, JobSettings { model: Some(model), ..JobSettings::default() }), journal)
}

/// The files of the jobs that would be listed at the next start.
fn written_down(journal: &library::Journal) -> Vec<PathBuf> {
    let listing = journal.unfinished(library::HostKind::Window).unwrap();
    listing.jobs.into_iter().map(|left| left.job.file.0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_begins_while_it_is_being_added_is_written_down_once() {
    const RECORDINGS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let (session, journal) = kept_session(folder.path());
    let mut files = Vec::new();
    for number in 0..RECORDINGS {
        let file = folder.path().join(format!("{number:02}.wav"));
        std::fs::write(&file, "sound").unwrap();
        let id = session.add([file.clone()])[0];
        files.push(file);
        // The queue is idle again when the next one comes.
        state_of(&session, id, JobState::Failed).await;
    }
    // Another one would come back at the next start, as if it had not been done.
    assert_eq!(written_down(&journal), files);
}

#[tokio::test]
async fn what_is_tried_again_goes_on_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (session, journal) = kept_session(folder.path());
    session.pause(true);
    let file = folder.path().join("talk.wav");
    // It is not there yet.
    let id = session.add([file.clone()])[0];
    state_of(&session, id, JobState::Failed).await;
    assert_eq!(written_down(&journal), std::slice::from_ref(&file));
    std::fs::write(&file, "sound").unwrap();
    session.retry(id);
    state_of(&session, id, JobState::Waiting).await;
    assert_eq!(session.unfinished(), 1);
    session.close().await;
    assert_eq!(written_down(&journal), [file]);
}

/// A window that opens, does something and is closed; its journal after that.
fn window(folder: &Path, work: impl AsyncFnOnce(&Session, &library::Journal)) -> Vec<library::UnfinishedJob> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let (session, journal) = kept_session(folder);
        work(&session, &journal).await;
        session.close().await;
        journal.unfinished(library::HostKind::Window).unwrap().jobs
    })
}

#[test]
fn what_an_earlier_window_reached_waits_for_its_disk_and_its_engine() {
    let folder = tempfile::tempdir().unwrap();
    let (file, elsewhere) = (folder.path().join("talk.wav"), folder.path().join("not mounted"));
    std::fs::write(&file, "sound").unwrap();
    let left = window(folder.path(), async |session, journal| {
        session.pause(true);
        session.add([file.clone()]);
        let left = journal.unfinished(library::HostKind::Window).unwrap().jobs.remove(0);
        journal.begin_attempt(left.key, 1, &wire::Resume::default()).unwrap();
    });
    assert_eq!(left.len(), 1);

    std::fs::rename(&file, &elsewhere).unwrap();
    let left = window(folder.path(), async |session, _| {
        let entry = state_of(session, 1, JobState::Failed).await;
        assert_eq!(entry.failure.unwrap().code, ErrorCode::FileNotFound);
    });
    assert_eq!((left.len(), left[0].attempts), (1, 1), "it is not there, and not forgotten");

    std::fs::rename(&elsewhere, &file).unwrap();
    let left = window(folder.path(), async |session, _| {
        let entry = state_of(session, 1, JobState::Failed).await;
        assert_eq!(entry.failure.unwrap().code, ErrorCode::EngineNotFound);
    });
    assert_eq!((left.len(), left[0].attempts), (1, 1), "nor is that a reason to begin anew");

    let left = window(folder.path(), async |session, _| {
        state_of(session, 1, JobState::Failed).await;
        session.remove(1);
    });
    assert_eq!(left.len(), 0, "who takes it off the list does not want it");
}

/// A session with a real engine process that writes two segments per window, and a recording of one window.
#[cfg(unix)]
fn working_session(folder: &Path, preferences: Preferences) -> (Session, JobId) {
    let double = std::env::current_exe().unwrap();
    let double = double.parent().unwrap().parent().unwrap().join("steno-supervisor-double");
    assert!(double.is_file(), "build it first: cargo build --workspace --bin steno-supervisor-double");
    let (program, file) = (folder.join("windows"), folder.join("1 windows.wav"));
    std::os::unix::fs::symlink(double, &program).unwrap();
    std::fs::write(&file, "sound").unwrap();
    let model = ModelRef { demonstration: false, ..demonstration() };
    let settings = JobSettings { model: Some(model), ..JobSettings::default() };
    let session =
        Session::new(EngineOptions { program: Some(program), ..EngineOptions::default() }, settings);
    session.change_preferences(preferences);
    let id = session.add([file])[0];
    (session, id)
}

#[cfg(unix)]
async fn has_engine(session: &Session, wanted: bool) {
    let same = async {
        while session.inner.supervisor.engine().is_some() != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), same).await.expect("the engine stays as it is");
}

#[cfg(unix)]
#[tokio::test]
async fn an_idle_engine_is_released_in_time() {
    for seconds in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let mut preferences = Preferences::default();
        preferences.engine.idle_release = Some(Duration::from_secs(seconds));
        let (session, id) = working_session(folder.path(), preferences);
        state_of(&session, id, JobState::Finished).await;
        let ended = Instant::now();
        has_engine(&session, false).await;
        assert!(seconds == 0 || ended.elapsed() >= Duration::from_millis(900), "{:?}", ended.elapsed());
        // The next recording has an engine all the same.
        let again = session.add([folder.path().join("1 windows.wav")])[0];
        state_of(&session, again, JobState::Finished).await;
        session.close().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_memory_of_an_idle_engine_is_freed_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut preferences = Preferences::default();
    preferences.engine.idle_release = None;
    let (session, id) = working_session(folder.path(), preferences);
    state_of(&session, id, JobState::Finished).await;
    has_engine(&session, true).await;
    session.free_memory();
    has_engine(&session, false).await;
    session.close().await;
}
