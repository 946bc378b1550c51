use super::*;
use crate::session::{JobSettings, JobState, Output};
use std::fs;
use supervisor::{EngineOptions, SupervisorOptions};
use transcript::export::Format;

/// Often enough for a test.
const QUICK: Watching = Watching { pause: Duration::from_millis(20), still: Duration::from_millis(60) };

fn session(folder: &Path) -> Session {
    let options = SupervisorOptions {
        engine: EngineOptions { program: Some(folder.join("no engine")), ..EngineOptions::default() },
        journal: Some(Journal::open(&folder.join("state/journal.sqlite")).unwrap().journal),
        ..SupervisorOptions::default()
    };
    let session = Session::start_watching(options, JobSettings::default(), QUICK);
    session.pause(true);
    session
}

/// Names in the queue once there are `count`.
async fn queued(session: &Session, count: usize) -> Vec<String> {
    let mut follower = session.follow();
    loop {
        let names: Vec<String> = {
            let shared = session.lock();
            let name = |entry: &crate::session::QueueEntry| {
                entry.file.file_name().unwrap().to_string_lossy().into_owned()
            };
            shared.queue.iter().map(name).collect()
        };
        if names.len() >= count {
            return names;
        }
        tokio::time::timeout(Duration::from_secs(20), follower.next()).await.expect("nothing came").unwrap();
    }
}

#[test]
fn a_recording_is_whole_once_it_stood_still_for_a_while() {
    let mut memory = Memory::default();
    let (start, still) = (Instant::now(), Duration::from_secs(10));
    // (seconds, bytes) -> told
    for (at, bytes, told) in [
        (0, 5, false),
        (5, 9, false),
        (11, 9, false),
        (14, 9, false),
        (15, 9, true),
        (20, 9, false),
        // Recorded over.
        (25, 3, false),
        (40, 3, true),
        (50, 0, false),
        (90, 0, false),
    ] {
        let there = vec![(PathBuf::from("a.wav"), FileStamp { bytes, modified: None })];
        let whole = memory.look(there, still, start + Duration::from_secs(at));
        assert_eq!(whole.len() == 1, told, "{bytes} bytes after {at} s");
    }
}

#[tokio::test]
async fn new_recordings_are_taken_once_and_what_was_there_or_is_done_is_not() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recorder");
    fs::create_dir_all(folder.join("monday")).unwrap();
    let file = |name: &str| folder.join(name);
    fs::write(file("old.wav"), "old").unwrap();
    fs::write(file("done.wav"), "done").unwrap();
    fs::write(file("done.srt"), "its text").unwrap();
    fs::write(file("notes.txt"), "no recording").unwrap();
    let watched = WatchedFolder::new(&folder, Exporting::default());
    {
        let session = session(place.path());
        session.pass_over(&folder).unwrap();
        fs::write(file("done.wav"), "done anew").unwrap();
        session.watch_folders(vec![watched.clone()]);
        fs::write(file("new.wav"), "new").unwrap();
        fs::write(file("monday/b.wav"), "b").unwrap();
        assert_eq!(queued(&session, 2).await, ["b.wav", "new.wav"]);
        let ids: Vec<JobId> = session.lock().queue.iter().map(|entry| entry.id).collect();
        assert!(session.lock().queue.iter().all(|it| it.watched.as_deref() == Some(&folder)));
        // One is given up for good, the other one only left undone.
        let taken = session.inner.supervisor.journal().unwrap().clone();
        let identity = Identity::of(&file("monday/b.wav")).unwrap();
        session.remove(ids[0]);
        while !taken.is_processed(&identity).unwrap() {
            tokio::task::yield_now().await;
        }
        session.close().await;
    }
    // The next start, with a recording of the same content under a new name.
    fs::rename(file("monday/b.wav"), file("monday/c.wav")).unwrap();
    let session = session(place.path());
    session.watch_folders(vec![watched]);
    fs::write(file("third.wav"), "third").unwrap();
    assert_eq!(queued(&session, 2).await, ["new.wav", "third.wav"]);
    session.close().await;
}

#[tokio::test]
async fn a_folder_that_is_gone_is_named_until_it_is_back() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("disk");
    let session = session(place.path());
    let mut told = session.follow_watched();
    session.watch_folders(vec![WatchedFolder::new(&folder, Exporting::default())]);
    let failure = |watched: &Vec<Watched>| watched.first().and_then(|one| one.failure.clone());
    let said = told.wait_for(|watched| failure(watched).is_some()).await.map(|it| failure(&it)).unwrap();
    let said = said.unwrap();
    assert_eq!(
        (said.code, said.file.as_ref().unwrap().as_path()),
        (ErrorCode::FolderNotFound, folder.as_path())
    );
    assert!(said.remedy.is_some());
    assert_eq!(session.pass_over(&folder).unwrap_err().code, ErrorCode::FolderNotFound);
    fs::create_dir(&folder).unwrap();
    told.wait_for(|watched| failure(watched).is_none()).await.unwrap();
    session.close().await;
}

#[tokio::test]
async fn a_finished_text_is_saved_where_the_settings_say_and_never_over_another_file() {
    let place = tempfile::tempdir().unwrap();
    let texts = place.path().join("texts");
    fs::create_dir(&texts).unwrap();
    let files = ["a.wav", "b.wav"].map(|name| place.path().join(name));
    files.iter().for_each(|file| fs::write(file, "a").unwrap());
    fs::write(texts.join("b.srt"), "mine").unwrap();
    let session = session(place.path());
    let output = |name: &str, formats: &[Format]| Output {
        folder: Some(texts.clone().into()),
        name: name.into(),
        when_finished: Some(Exporting { formats: formats.to_vec(), ..Exporting::default() }),
    };
    let set = |output| session.change_settings(JobSettings { output, ..session.settings() });
    set(output("{name}", &[Format::Srt]));
    let ids = session.add(files.iter().cloned());
    // The settings of one recording go before those of all.
    let own = JobSettings { output: output("{name} ({language})", &[Format::Txt]), ..session.settings() };
    session.change_own(&ids[..1], Some(&own));
    for id in &ids {
        let (id, done) = (*id, session.clone());
        session.change(|shared| {
            let transcript = Box::new(crate::session::save::tests::transcript(true));
            shared.queue.end(id, JobState::Finished, Some(transcript), None);
        });
        tokio::task::spawn_blocking(move || done.put_away(id)).await.unwrap();
    }
    assert!(fs::read_to_string(texts.join("a (en).txt")).unwrap().contains("Good morning."));
    assert_eq!(fs::read_to_string(texts.join("b.srt")).unwrap(), "mine");
    let text = session.follow_text(ids[1]).next().await.unwrap();
    assert!(
        text.notices.iter().any(|notice| notice.code == "export.failed" && notice.text.contains("b.srt"))
    );
    let not_saved = |id: u64| {
        session
            .lock()
            .queue
            .get(id)
            .and_then(|entry| entry.not_saved.as_ref().map(|unsaved| unsaved.failure.code))
    };
    assert_eq!((not_saved(ids[0]), not_saved(ids[1])), (None, Some(ErrorCode::OutputExists)));
    // As they are saved by hand: by the same rule.
    let beside = SaveTarget::Beside { replace: false };
    let saved =
        session.save_as(ids[1], &Exporting { formats: vec![Format::Vtt], ..Exporting::default() }, &beside);
    assert_eq!(saved.files, [texts.join("b.vtt")]);
    // Not what was chosen: that still waits.
    assert_eq!(not_saved(ids[1]), Some(ErrorCode::OutputExists));
    assert_eq!(session.save_unsaved(ids[1], false).files, [] as [std::path::PathBuf; 0]);
    assert_eq!(not_saved(ids[1]), Some(ErrorCode::OutputExists));
    assert_eq!(session.save_unsaved(ids[1], true).files, [texts.join("b.srt")]);
    assert!(fs::read_to_string(texts.join("b.srt")).unwrap().contains("Good morning."));
    assert_eq!(not_saved(ids[1]), None, "it is saved now");
    assert_eq!(session.proposed_file(ids[0], Format::Srt).unwrap(), texts.join("a (en).srt"));
    session.close().await;
}

#[tokio::test]
async fn a_text_is_exported_where_its_folder_says_and_what_can_not_be_is_said() {
    let place = tempfile::tempdir().unwrap();
    let (folder, texts) = (place.path().join("recorder"), place.path().join("texts"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&texts).unwrap();
    fs::write(folder.join("a.wav"), "a").unwrap();
    fs::write(texts.join("a en.vtt"), "somebody's").unwrap();
    let session = session(place.path());
    let output = Output { name: "{name} {language}".into(), ..Output::default() };
    session.change_settings(JobSettings { output, ..session.settings() });
    let exporting = Exporting { formats: vec![Format::Srt, Format::Vtt], ..Exporting::default() };
    let watched =
        WatchedFolder { into: Some(texts.clone().into()), ..WatchedFolder::new(&folder, exporting) };
    session.watch_folders(vec![watched]);
    queued(&session, 1).await;
    let id = session.lock().queue.iter().next().unwrap().id;
    session.change(|shared| {
        let transcript = Box::new(crate::session::save::tests::transcript(true));
        shared.queue.end(id, JobState::Finished, Some(transcript), None);
    });
    let export = session.clone();
    tokio::task::spawn_blocking(move || export.put_away(id)).await.unwrap();
    assert!(fs::read_to_string(texts.join("a en.srt")).unwrap().contains("Good morning."));
    assert_eq!(fs::read_to_string(texts.join("a en.vtt")).unwrap(), "somebody's");
    let text = session.follow_text(id).next().await.unwrap();
    let notices: Vec<&str> = text.notices.iter().map(|notice| notice.text.as_str()).collect();
    assert!(notices.len() == 1 && notices[0].contains("a en.vtt"), "{notices:?}");
    let journal = session.inner.supervisor.journal().unwrap();
    assert!(journal.is_processed(&Identity::of(&folder.join("a.wav")).unwrap()).unwrap());
    session.close().await;
}
