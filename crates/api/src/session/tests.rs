use super::*;
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
