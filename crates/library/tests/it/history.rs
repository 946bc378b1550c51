//! The history on a real disk: edits, undo and redo across restarts, search, and
//! deletion.

use std::path::{Path, PathBuf};

use library::documents::{Filter, HISTORY_FILE, MAX_TAGS, StepDirection, UndoPosition};
use library::{DocumentId, Documents, Identity, Problem};
use transcript::edit::{self, Edit, TextPattern};
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, Word};

struct StateFolder(tempfile::TempDir);

impl StateFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("state").join(HISTORY_FILE)
    }

    /// Opens the history as after a restart.
    fn open(&self) -> Documents {
        let (documents, aside) = Documents::open(&self.file()).unwrap();
        assert_eq!(aside, None);
        documents
    }
}

fn talk(texts: &[&str]) -> Transcript {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    let segment = |(index, text): (usize, &&str)| {
        let (start, end) =
            (Time::from_millis(1000 * index as u32), Time::from_millis(1000 * index as u32 + 900));
        let word = Word { text: format!(" {text}"), start, end, probability: 0.25 };
        Segment { start, end, text: (*text).into(), words: vec![word], ..Segment::default() }
    };
    talk.segments = texts.iter().enumerate().map(segment).collect();
    edit::assign_ids(&mut talk);
    talk
}

fn add(documents: &Documents, texts: &[&str]) -> DocumentId {
    documents.add(Path::new("/recordings/talk.wav"), None, &talk(texts)).unwrap()
}

/// Records the edit, then applies it, as an editor does.
fn change(documents: &Documents, id: DocumentId, edit: &Edit) -> Transcript {
    let mut opened = documents.read(id).unwrap().unwrap();
    let changes = edit.plan(&opened.transcript).unwrap();
    let undo_position = documents.record(id, opened.undo_position.done, &changes).unwrap();
    assert_eq!(undo_position, UndoPosition { done: opened.undo_position.done + 1, undone: 0 });
    edit::apply(&mut opened.transcript, &changes).unwrap();
    assert_eq!(documents.read(id).unwrap().unwrap().transcript, opened.transcript);
    opened.transcript
}

fn say(documents: &Documents, id: DocumentId, text: &str) -> Transcript {
    change(documents, id, &Edit::SetText { segment: 1, text: text.into() })
}

fn step(documents: &Documents, id: DocumentId, way: StepDirection) -> bool {
    let done = documents.read(id).unwrap().unwrap().undo_position.done;
    documents.step(id, done, way).unwrap().is_some()
}

fn found(documents: &Documents, words: &str) -> Vec<String> {
    documents.search(words, &Filter::default()).unwrap().hits.into_iter().map(|hit| hit.text).collect()
}

#[test]
fn hundreds_of_edits_are_undone_and_redone_across_restarts() {
    let folder = StateFolder::new();
    let id = add(&folder.open(), &["begun", "second"]);
    let mut texts = vec![folder.open().read(id).unwrap().unwrap().transcript];
    {
        let documents = folder.open();
        texts.extend((0..450).map(|number| say(&documents, id, &format!("number {number}"))));
    }
    let now = || folder.open().read(id).unwrap().unwrap();
    assert_eq!((&now().transcript, now().undo_position.done), (texts.last().unwrap(), 450));
    let documents = folder.open();
    for text in texts.iter().rev().skip(1) {
        assert!(step(&documents, id, StepDirection::Undo));
        assert_eq!(documents.read(id).unwrap().unwrap().transcript, *text);
    }
    assert!(!step(&documents, id, StepDirection::Undo), "nothing is left to undo");
    assert_eq!(now().undo_position, UndoPosition { done: 0, undone: 450 });
    for text in &texts[1..] {
        assert!(step(&folder.open(), id, StepDirection::Redo));
        assert_eq!(now().transcript, *text);
    }
    assert!(!step(&documents, id, StepDirection::Redo));
    // A new edit in the middle discards the edits that were undone.
    (0..300).for_each(|_| assert!(step(&documents, id, StepDirection::Undo)));
    let other = say(&documents, id, "another way");
    assert_eq!((now().transcript, now().undo_position), (other, UndoPosition { done: 151, undone: 0 }));
    assert!(step(&documents, id, StepDirection::Undo));
    assert_eq!(now().transcript, texts[150]);
}

#[test]
fn the_beginning_of_a_long_transcript_equals_the_start_of_the_whole() {
    let folder = StateFolder::new();
    let texts: Vec<String> = (0..200).map(|number| format!("said {number}")).collect();
    let id = add(&folder.open(), &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let short = add(&folder.open(), &["all of it"]);
    let documents = folder.open();
    let check = |least: usize| {
        let (beginning, all) =
            (documents.read_beginning(id).unwrap().unwrap(), documents.read(id).unwrap().unwrap());
        assert_eq!((beginning.undo_position, beginning.document), (all.undo_position, all.document));
        let segments = &beginning.segments;
        assert!(segments.len() >= least, "{}", segments.len());
        assert_eq!(segments[..], all.transcript.segments[..segments.len()]);
    };
    check(50);
    change(&documents, id, &Edit::SetText { segment: 150, text: "far behind".into() });
    change(&documents, id, &Edit::SetText { segment: 2, text: "at the beginning".into() });
    change(&documents, id, &Edit::Split { segment: 3, at: 4 });
    change(&documents, id, &Edit::Delete { segments: vec![5, 6, 200] });
    change(&documents, id, &Edit::SetSpeaker { segments: (7..=199).collect(), speaker: Some("Ann".into()) });
    check(50);
    // Deleted segments shorten the beginning, as the segments after it are not loaded.
    change(&documents, id, &Edit::Delete { segments: (40..80).collect() });
    check(30);
    while step(&documents, id, StepDirection::Undo) {
        check(30);
    }
    assert!(documents.read_beginning(short).unwrap().is_none(), "it is all there as soon");
    assert!(documents.read_beginning(DocumentId(99)).unwrap().is_none());
}

#[test]
fn an_edit_of_another_window_is_a_conflict() {
    let folder = StateFolder::new();
    let (mine, theirs) = (folder.open(), folder.open());
    let id = add(&mine, &["a text"]);
    let changes = Edit::Delete { segments: vec![1] }.plan(&talk(&["a text"])).unwrap();
    say(&theirs, id, "another");
    let error = mine.record(id, 0, &changes).unwrap_err();
    assert!(matches!(error.problem, Problem::Changed), "{error}");
    assert!(error.failure().to_string().contains("Open the transcript again"), "{error}");
    assert_eq!(mine.read(id).unwrap().unwrap().undo_position.done, 1);
}

#[test]
fn search_finds_any_characters_of_the_current_text() {
    let folder = StateFolder::new();
    let documents = folder.open();
    let old =
        add(&documents, &["The ferry is late.", "大きな船が来る。", "100 % of \"it\"", "Über die Fähre"]);
    let new = add(&documents, &["No ferry today."]);
    // what, found, newest first
    let check = |words: &str, expected: &[&str]| assert_eq!(found(&documents, words), expected, "{words}");
    check("FERRY", &["No ferry today.", "The ferry is late."]);
    check("y is l", &["The ferry is late."]);
    check("fahre", &["Über die Fähre"]);
    check("大き", &["大きな船が来る。"]);
    check("船", &["大きな船が来る。"]);
    check("Ü", &["Über die Fähre"]);
    check("ü", &["Über die Fähre"]);
    check("0 %", &["100 % of \"it\""]);
    check("%", &["100 % of \"it\""]);
    check("_", &[]);
    check("\"it\"", &["100 % of \"it\""]);
    check("AND NOT", &[]);
    check("  ", &[]);
    let hit = documents.search("late", &Filter::default()).unwrap().hits.remove(0);
    assert_eq!((hit.document, hit.segment, hit.title.as_str()), (old, 1, "talk.wav"));
    // After edits and after undo.
    say(&documents, old, "The boat is late.");
    check("ferry", &["No ferry today."]);
    check("boat", &["The boat is late."]);
    step(&documents, old, StepDirection::Undo);
    check("boat", &[]);
    check("ferry", &["No ferry today.", "The ferry is late."]);
    say(&documents, new, "");
    check("today", &[]);
    step(&documents, new, StepDirection::Undo);
    check("today", &["No ferry today."]);
    change(&documents, old, &Edit::Split { segment: 1, at: 9 });
    check("is late.", &["is late."]);
    change(&documents, old, &Edit::Delete { segments: vec![1] });
    check("The ferry", &[]);
}

/// All places of a transcript are found, and where there are more than are listed, that is said.
#[test]
fn no_place_is_left_out_without_a_word() {
    let folder = StateFolder::new();
    let documents = folder.open();
    add(&documents, &["a ferry"; 32]);
    add(&documents, &["a boat"; 250]);
    let found = documents.search("ferry", &Filter::default()).unwrap();
    assert_eq!((found.hits.len(), found.more), (32, false));
    let found = documents.search("boat", &Filter::default()).unwrap();
    assert_eq!((found.hits.len(), found.more), (200, true));
    // One transcript does not hide the others.
    let found = documents.search("a ", &Filter::default()).unwrap();
    assert_eq!((found.hits.len(), found.more), (232, true));
}

#[test]
fn edits_of_many_segments_are_searchable_at_once_and_after_a_restart() {
    let folder = StateFolder::new();
    let texts: Vec<String> = (0..500).map(|number| format!("The ferry number {number}.")).collect();
    let id = add(&folder.open(), &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let replace = |documents: &Documents, from: &str, to: &str| {
        let pattern = TextPattern { text: from.into(), ..TextPattern::default() };
        let (edit, places) =
            pattern.finder().unwrap().replace_all(&documents.read(id).unwrap().unwrap().transcript, to);
        change(documents, id, &edit);
        places
    };
    // what is found afterwards, what is not
    let check = |documents: &Documents, there: &str, gone: &str| {
        assert_eq!((found(documents, there).len(), found(documents, gone).len()), (200, 0), "{there}");
        assert_eq!(
            (documents.containing(there).unwrap(), documents.containing(gone).unwrap()),
            (vec![id], vec![])
        );
    };
    let documents = folder.open();
    assert_eq!(replace(&documents, "ferry", "boat"), 500);
    check(&documents, "the boat", "ferry");
    step(&documents, id, StepDirection::Undo);
    // Closed while the index is incomplete.
    drop(documents);
    check(&folder.open(), "the ferry", "boat");
    let documents = folder.open();
    replace(&documents, "ferry", "ship");
    say(&documents, id, "A barge.");
    assert_eq!(found(&documents, "barge"), ["A barge."]);
    replace(&documents, "ship", "tug");
    check(&documents, "the tug", "ship");
    assert_eq!(found(&documents, "barge"), ["A barge."]);
    step(&documents, id, StepDirection::Undo);
    step(&documents, id, StepDirection::Undo);
    check(&documents, "the ship", "barge");
}

#[test]
fn a_history_of_the_first_version_opens_and_is_edited() {
    let folder = StateFolder::new();
    std::fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(folder.file()).unwrap();
    connection.execute_batch(include_str!("../../src/documents/1.sql")).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let before = talk(&["The ferry is late.", "So am I."]);
    let edit = Edit::SetText { segment: 2, text: "So are we.".into() }.plan(&before).unwrap();
    let mut now = before.clone();
    edit::apply(&mut now, &edit).unwrap();
    connection
        .execute(
            "INSERT INTO documents (title, file, created, changed, duration_ms, language, model, edits_done)
             VALUES ('talk.wav', '\"/recordings/talk.wav\"', 1, 2, 60000, 'en', 'small', 1)",
            [],
        )
        .unwrap();
    let snapshot = serde_json::to_string(&before).unwrap();
    connection.execute("INSERT INTO snapshots VALUES (1, 0, ?1)", [snapshot]).unwrap();
    let changes = serde_json::to_string(&edit).unwrap();
    connection.execute("INSERT INTO edits VALUES (1, 1, ?1, 2)", [changes]).unwrap();
    for (id, text) in [(1_i64, "The ferry is late."), (2, "So are we.")] {
        let row = rusqlite::params![(1_i64 << 32) | id, text];
        connection.execute("INSERT INTO passages (rowid, text, start_ms) VALUES (?1, ?2, 0)", row).unwrap();
    }
    drop(connection);
    let documents = folder.open();
    let id = documents.list().unwrap()[0].id;
    assert_eq!(documents.read(id).unwrap().unwrap().transcript, now);
    assert_eq!(found(&documents, "are we"), ["So are we."]);
    assert!(step(&documents, id, StepDirection::Undo));
    assert_eq!(found(&documents, "so am"), ["So am I."]);
    let other = say(&documents, id, "The boat is late.");
    assert_eq!(folder.open().read(id).unwrap().unwrap().transcript, other);
    assert_eq!((found(&documents, "boat").len(), found(&documents, "ferry").len()), (1, 0));
}

#[test]
fn tags_stay_with_a_transcript_and_go_with_it() {
    let folder = StateFolder::new();
    let documents = folder.open();
    let (one, other) = (add(&documents, &["one"]), add(&documents, &["other"]));
    let set = |id, tags: &[&str]| {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).into()).collect();
        documents.set_tags(id, &tags).unwrap();
    };
    let tags = |documents: &Documents, id| {
        documents.list().unwrap().into_iter().find(|document| document.id == id).map(|document| document.tags)
    };
    set(one, &[" court ", "Ähre", "", "court", "2026"]);
    set(other, &["court"]);
    drop(documents);
    let documents = folder.open();
    assert_eq!(tags(&documents, one).unwrap(), ["2026", "court", "Ähre"]);
    assert_eq!(documents.read(one).unwrap().unwrap().document.tags, ["2026", "court", "Ähre"]);
    let set = |id, tags: Vec<String>| documents.set_tags(id, &tags).unwrap();
    set(one, vec!["x".repeat(1000)]);
    assert_eq!(tags(&documents, one).unwrap()[0].len(), 100);
    set(one, (0..200).map(|number| format!("{number:03}")).collect());
    assert_eq!(tags(&documents, one).unwrap().len(), MAX_TAGS);
    set(one, vec![]);
    assert_eq!(tags(&documents, one).unwrap(), [""; 0]);

    documents.delete(other, true).unwrap();
    documents.delete(other, false).unwrap();
    assert_eq!(tags(&documents, other).unwrap(), ["court"]);
    documents.delete(other, true).unwrap();
    documents.purge(i64::MAX).unwrap();
    set(other, vec!["late".into()]);
    assert_eq!(tags(&documents, other), None);
}

#[test]
fn deleted_transcripts_can_be_restored_until_they_are_removed() {
    let folder = StateFolder::new();
    let documents = folder.open();
    let id = add(&documents, &["a secret word"]);
    documents.delete(id, true).unwrap();
    assert!(documents.list().unwrap().is_empty() && found(&documents, "secret").is_empty());
    assert!(documents.read(id).unwrap().is_none());
    documents.delete(id, false).unwrap();
    assert_eq!((documents.list().unwrap().len(), found(&documents, "secret").len()), (1, 1));
    documents.delete(id, true).unwrap();
    // Another start shortly after the deletion does not remove it.
    assert!(folder.open().search("secret", &Filter::default()).unwrap().hits.is_empty());
    documents.delete(id, false).unwrap();
    assert_eq!(documents.list().unwrap().len(), 1);
    documents.delete(id, true).unwrap();
    documents.purge(i64::MAX).unwrap();
    documents.delete(id, false).unwrap();
    assert!(documents.list().unwrap().is_empty());
    drop(documents);
    let bytes = std::fs::read(folder.file()).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"secret"), "the word is still in the file");
}

#[test]
fn the_list_has_the_path_and_identity_of_the_recording() {
    let folder = StateFolder::new();
    let recording = folder.0.path().join("Gespräch.wav");
    std::fs::write(&recording, "sound").unwrap();
    let identity = Identity::of(&recording).unwrap();
    let documents = folder.open();
    let id = documents.add(&recording, Some(&identity), &talk(&["a"])).unwrap();
    let later = add(&documents, &["b"]);
    let moved = folder.0.path().join("elsewhere.wav");
    documents.set_recording(id, &moved).unwrap();
    let list = folder.open().list().unwrap();
    assert_eq!(list.iter().map(|one| one.id).collect::<Vec<_>>(), [later, id]);
    let one = &list[1];
    assert_eq!(
        (&one.file, one.title.as_str(), one.identity.as_ref()),
        (&moved, "Gespräch.wav", Some(&identity))
    );
    assert_eq!(
        (one.duration, one.language.as_str(), one.model.as_str()),
        (Time::from_millis(60_000), "en", "small")
    );
}

#[test]
fn a_file_of_a_newer_version_stays_where_it_is_and_a_damaged_one_is_kept() {
    let folder = StateFolder::new();
    add(&folder.open(), &["a"]);
    let connection = rusqlite::Connection::open(folder.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = Documents::open(&folder.file()).unwrap_err();
    assert!(matches!(error.problem, Problem::Newer(99)), "{error}");
    assert!(error.to_string().contains("The history was written by a newer version"), "{error}");
    assert!(folder.file().exists());
    std::fs::write(folder.file(), "no database ".repeat(1000)).unwrap();
    let (documents, aside) = Documents::open(&folder.file()).unwrap();
    assert!(documents.list().unwrap().is_empty());
    assert!(aside.unwrap().kept.exists());
}
