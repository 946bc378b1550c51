//! What is no recording is named when it comes, with the real player.

use std::path::{Path, PathBuf};

use advisor::ModelRef;
use app::session::{JobSettings, JobState, Session};
use supervisor::EngineOptions;
use supervisor::player::Player;
use wire::ErrorCode;

#[tokio::test]
async fn what_cannot_be_decoded_fails_before_its_turn() {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("steno-player");
    assert!(program.is_file(), "build it first: cargo build --workspace --bin steno-player");

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let fixture =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/fixtures").join(name);
    let sample = std::fs::read(fixture("left.wav")).unwrap();
    let recordings: [(PathBuf, Option<ErrorCode>); 7] = [
        (file("letter.mp3", &b"Dear Sir, ".repeat(500)), Some(ErrorCode::UnknownFormat)),
        (file("page.m4a", &b"<!doctype html><p>Not found</p>".repeat(100)), Some(ErrorCode::UnknownFormat)),
        (file("a recording without an ending", &sample), None),
        (fixture("left.wav"), None),
        // Their headers say how long they are, and not whether there is sound.
        (fixture("pictures_only.mp4"), Some(ErrorCode::NoAudioTrack)),
        (fixture("video_44100.mp4"), None),
        // No header says how long it is.
        (fixture("ac3_48000.ac3"), None),
    ];

    // Nothing begins: all are held until the user has a model.
    let options =
        EngineOptions { program: Some(folder.path().join("no engine")), ..EngineOptions::default() };
    let model = ModelRef { name: "demo".into(), path: folder.path().into(), demonstration: true, note: None };
    let session = Session::new(options, JobSettings { model: Some(model), ..JobSettings::default() });
    session.probe_with(Player::with_program(program));
    let ids = session.add(recordings.iter().map(|(path, _)| path.clone()));

    let mut follower = session.follow();
    let mut entries = std::collections::BTreeMap::new();
    let is_done = |entries: &std::collections::BTreeMap<_, app::session::QueueEntry>| {
        ids.iter().zip(&recordings).all(|(id, (_, wrong))| {
            let found = entries.get(id).and_then(|entry| entry.failure.as_ref());
            found.map(|failure| failure.code) == *wrong && entries.contains_key(id)
        })
    };
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !is_done(&entries) {
            let changes = follower.next().await.unwrap();
            entries.extend(changes.changed.into_iter().map(|entry| (entry.id, entry)));
        }
    });
    let is_told = told.await.is_ok();
    let seen: Vec<_> = entries.values().map(|entry| (&entry.file, entry.state, &entry.failure)).collect();
    assert!(is_told, "{seen:#?}");
    for (id, (path, wrong)) in ids.iter().zip(&recordings) {
        let entry = &entries[id];
        assert_eq!(entry.state == JobState::Failed, wrong.is_some(), "{}", path.display());
        if let Some(failure) = &entry.failure {
            assert_eq!(failure.file.as_ref().unwrap().as_path(), path);
            assert!(failure.remedy.is_some(), "{failure}");
        }
    }
}
