use super::*;
use crate::ModelRef;
use std::time::Instant;
use transcript::{Segment, Time};
use wire::{Event, NO_JOB};

/// A session whose engine can't be started, with one recording that is held.
fn session(folder: &Path) -> (Session, JobId) {
    let file = folder.join("talk.wav");
    std::fs::write(&file, "sound").unwrap();
    let options = EngineOptions { program: Some(folder.join("no engine")), ..EngineOptions::default() };
    let model = ModelRef { name: "demo".into(), path: folder.join("model"), demonstration: true, note: None };
    let session = Session::new(options, Settings { model: Some(model), ..Settings::default() });
    let ids = session.add([file]);
    (session, ids[0])
}

fn say(session: &Session, id: JobId, number: u32) {
    let segment =
        Segment { text: number.to_string(), start: Time::from_millis(number), ..Segment::default() };
    session.inner.change(|shared| shared.queue.apply(id, Event::Segment { id: NO_JOB, segment }));
}

async fn state_of(session: &Session, id: JobId, wanted: State) -> Entry {
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
    let (mut texts, mut messages) = (Vec::new(), 0);
    while texts.len() < SEGMENTS as usize {
        let change = follower.next().await.unwrap();
        texts.truncate(change.from);
        texts.extend(change.segments.into_iter().map(|segment| segment.text));
        messages += 1;
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
    state_of(&session, id, State::Held).await;
    let mut settings = session.settings();
    if let Some(model) = &mut settings.model {
        model.demonstration = false;
    }
    session.change_settings(settings);
    let entry = state_of(&session, id, State::Failed).await;
    assert_eq!(entry.failure.unwrap().code, ErrorCode::EngineNotFound);
    assert_eq!(session.describe().await.unwrap_err().code, ErrorCode::EngineNotFound);
}

#[tokio::test]
async fn without_any_model_the_recording_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    session.change_settings(Settings::default());
    let entry = state_of(&session, id, State::Failed).await;
    assert_eq!(entry.failure.unwrap().code, ErrorCode::ModelNotFound);
    assert_eq!(
        session
            .save(id, Format::Srt, &Options::default(), &Place::Beside { replace: false })
            .unwrap_err()
            .code,
        ErrorCode::BadSettings
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
    state_of(&session, id, State::Held).await;
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
    use ::memory::{Checkpoint, Kind, Levels, Mark, Sample};
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    let mut follower = session.follow_memory(id);
    let see = |checkpoint, at_ms| {
        let levels = Some(Levels { reserved: at_ms, ..Levels::default() });
        let sample = Sample { checkpoint, batch: None, at_ms, kind: Kind::Host, levels, reason: None };
        let mark = Box::new(Mark::Sample(sample));
        session.inner.change(|shared| shared.queue.apply(id, Event::Memory { id: NO_JOB, mark }));
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

#[tokio::test]
async fn a_paused_queue_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (session, id) = session(folder.path());
    session.pause(true);
    session.start_anyway();
    // Nothing would come: a while in which it would have failed for want of an engine.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(session.lock().queue.get(id).unwrap().state, State::Waiting);
    session.pause(false);
    state_of(&session, id, State::Failed).await;
}
