//! `steno search` with a history on disk, the real engine and a tiny model with random weights: the same text
//! means the same to it.

use std::path::Path;

use library::documents::HISTORY_FILE;
use library::{DocumentId, Documents};
use serde_json::Value;
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};

use crate::support::{Ran, Sandbox, project, real_engine};

pub fn history(sandbox: &Sandbox) -> Documents {
    Documents::open(&sandbox.home.path().join("steno").join(HISTORY_FILE)).unwrap().0
}

pub fn add(documents: &Documents, file: &Path, language: &str, said: &[(&str, &str)]) -> DocumentId {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "{language}", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    for (number, (speaker, text)) in said.iter().enumerate() {
        let start = Time::from_millis(10_000 * number as u32);
        let (end, speaker) = (start + Time::from_millis(9_000), Some((*speaker).to_owned()));
        talk.segments.push(Segment { start, end, text: (*text).into(), speaker, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    documents.add(file, None, &talk).unwrap()
}

/// Two recordings: of Ada and Grace, and of Linus in German.
pub fn filled() -> (Sandbox, Documents, [DocumentId; 2]) {
    let sandbox = Sandbox::with(&["july.wav", "talks/monday.wav"]);
    let documents = history(&sandbox);
    let english = [("Ada", "We found a buyer for the yacht."), ("Grace", "The surgeon called.")];
    let ids = [
        add(&documents, &sandbox.path("july.wav"), "en", &english),
        add(&documents, &sandbox.path("talks/monday.wav"), "de", &[("Linus", "The oven is broken.")]),
    ];
    (sandbox, documents, ids)
}

pub fn install(sandbox: &Sandbox, model: &str) {
    let folder = sandbox.home.path().join("steno/models").join(model);
    std::fs::create_dir_all(folder.join("1_Pooling")).unwrap();
    let from = project().join("tests/data/embedding").join(model);
    for place in ["", "1_Pooling"] {
        for file in std::fs::read_dir(from.join(place)).into_iter().flatten().map(Result::unwrap) {
            if file.path().is_file() {
                std::fs::copy(file.path(), folder.join(place).join(file.file_name())).unwrap();
            }
        }
    }
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command_with(&real_engine(), &[&["search"], arguments].concat());
    command.env("HOME", sandbox.home.path()).env_remove("HF_HOME").output().unwrap().into()
}

fn found(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let ran = run(sandbox, &[&["--json"], arguments].concat()).ends(0);
    serde_json::from_str(&ran.out).unwrap()
}

fn texts(found: &[Value]) -> Vec<&str> {
    found.iter().map(|one| one["text"].as_str().unwrap()).collect()
}

#[test]
fn words_are_found_without_a_model_and_what_it_would_add_is_said() {
    let empty = Sandbox::with(&[]);
    let ran = run(&empty, &["boat", "--json"]).ends(0).says("no transcripts yet");
    assert_eq!(ran.out, "[]\n");
    assert!(!empty.home.path().join("steno").join(HISTORY_FILE).exists(), "a search makes no history");

    let (sandbox, ..) = filled();
    let ran = run(&sandbox, &["the yacht"]).ends(0).says("steno models pull");
    assert_eq!(ran.out, "july.wav  0:00  Ada  (words)\n    We found a buyer for the yacht.\n");
    assert_eq!(run(&sandbox, &["the yacht", "--quiet"]).ends(0).err, "");
    assert_eq!(run(&sandbox, &["the yacht", "--words-only"]).ends(0).err, "");
    run(&sandbox, &["zebra"]).ends(0).says("Nothing was found");
    run(&sandbox, &["--reindex"]).ends(1).says("No model that compares meanings").says("steno models pull");
    run(&sandbox, &[]).ends(2).says("QUERY");
    run(&sandbox, &["yacht", "--since", "yesterday"]).ends(2).says("--since");
}

#[test]
fn every_option_of_search_changes_what_is_found() {
    let (sandbox, documents, ids) = filled();
    documents.set_tags(ids[1], &["court".into()]).unwrap();
    let created = documents.list().unwrap()[0].created;
    let day =
        jiff::Timestamp::from_millisecond(created).unwrap().to_zoned(jiff::tz::TimeZone::system()).date();
    let (before, after) = (day.yesterday().unwrap().to_string(), day.tomorrow().unwrap().to_string());
    let folder = sandbox.path("talks");
    let all = ["We found a buyer for the yacht.", "The surgeon called.", "The oven is broken."];
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &all),
        (&["--speaker", "ada"], &all[..1]),
        (&["--language", "de"], &all[2..]),
        (&["--since", &after], &[]),
        (&["--since", &day.to_string()], &all),
        (&["--until", &before], &[]),
        (&["--until", &day.to_string()], &all),
        (&["--folder", folder.to_str().unwrap()], &all[2..]),
        (&["--folder", "talks"], &all[2..]),
        (&["--tag", "court"], &all[2..]),
    ];
    for (options, expected) in cases {
        let found = found(&sandbox, &[&["the", "--words-only"], *options].concat());
        let mut texts = texts(&found);
        texts.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(texts, expected, "{options:?}");
    }
    assert_eq!(found(&sandbox, &["the", "--limit", "1"]).len(), 1);
    let one = found(&sandbox, &["surgeon"]).remove(0);
    assert_eq!(
        (&one["title"], &one["speaker"], &one["language"]),
        (&"july.wav".into(), &"Grace".into(), &"en".into())
    );
    assert_eq!((&one["start"], &one["end"], &one["at"]), (&10.0.into(), &19.0.into(), &10.0.into()));
    assert_eq!(one["words"], serde_json::json!(["surgeon"]));
    assert_eq!(
        (&one["file"], &one["similarity"]),
        (&sandbox.path("july.wav").to_str().unwrap().into(), &Value::Null)
    );
    assert!(one["created"].as_str().unwrap().starts_with("20"));
}

#[test]
fn meanings_are_indexed_and_found_and_another_model_takes_their_place() {
    let (sandbox, documents, _) = filled();
    install(&sandbox, "tiny-bert");
    run(&sandbox, &["the yacht"]).ends(0).says("--reindex");
    run(&sandbox, &["--reindex"]).ends(0).says("3 passages can be found by their meaning (tiny-bert)");
    let ran = run(&sandbox, &["The surgeon called."]).ends(0);
    assert!(
        ran.out.starts_with("july.wav  0:10  Grace  (words and meaning)\n    The surgeon called.\n"),
        "{}",
        ran.out
    );
    assert_eq!(ran.err, "");
    let similarity = |arguments: &[&str]| found(&sandbox, arguments)[0]["similarity"].as_f64();
    assert!(similarity(&["The surgeon called."]).unwrap() > 0.99);
    assert_eq!(similarity(&["The surgeon called.", "--words-only"]), None);

    add(&documents, &sandbox.path("new.wav"), "en", &[("Ada", "A new one.")]);
    run(&sandbox, &["new"]).ends(0).says("1 of 4 passages can't be found by their meaning yet");
    install(&sandbox, "tiny-xlm-roberta");
    // The model of the index is still there.
    assert!(similarity(&["The surgeon called."]).unwrap() > 0.99);
    std::fs::remove_dir_all(sandbox.home.path().join("steno/models/tiny-bert")).unwrap();
    run(&sandbox, &["yacht"]).ends(0).says("not made yet");
    run(&sandbox, &["--reindex"]).ends(0).says("4 passages can be found by their meaning (tiny-xlm-roberta)");
    assert_eq!(documents.index().unwrap().unwrap().model.name, "tiny-xlm-roberta");
    assert!(similarity(&["The surgeon called."]).is_some());
}

#[test]
fn words_that_are_corrected_again_and_again_are_listed() {
    let (sandbox, documents, ids) = filled();
    let words = |more: &[&str]| {
        let ran = sandbox.command(&[&["words"], more].concat()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(words(&[]), "", "nothing was corrected");
    let correct = |id: DocumentId, segment: u32, text: &str| {
        let opened = documents.read(id).unwrap().unwrap();
        let edit = edit::Edit::SetText { segment, text: text.into() };
        let changes = edit.plan(&opened.transcript).unwrap();
        documents.record(id, opened.undo_position.done, &changes).unwrap();
    };
    correct(ids[0], 1, "We found Ljungberg for the yacht.");
    correct(ids[0], 2, "The surgeon Ljungberg.");
    correct(ids[1], 1, "The Aarhus is broken.");
    correct(ids[1], 1, "The oven is broken.");
    correct(ids[1], 1, "The Aarhus is broken.");
    assert_eq!(words(&[]), "Aarhus\nLjungberg\n");
    assert_eq!(words(&["--limit", "1"]), "Aarhus\n");
    let json: Value = serde_json::from_str(&words(&["--json"])).unwrap();
    assert_eq!(
        json[1],
        serde_json::json!({ "word": "Ljungberg", "heard": ["a buyer", "called"], "times": 2 })
    );
    assert_eq!(words(&["--ignore", "Aarhus", "--ignore", "Zoe"]), "Ljungberg\n");
    assert_eq!(words(&[]), "Ljungberg\n");
    assert_eq!(words(&["--ignored"]), "Aarhus\nZoe\n");
    assert_eq!(words(&["--restore", "Aarhus"]), "Aarhus\nLjungberg\n");
    assert_eq!(words(&["--ignored"]), "Zoe\n");
    sandbox.run(&["words", "--restore", "Aarhus"]).ends(1).says("\"Aarhus\" is not ignored");
    sandbox.run(&["words", "--ignore", " "]).ends(2).says("a word is missing");
    let all = sandbox.run(&["words", "--ignore", "Aarhus", "--ignore", "Ljungberg"]).ends(0);
    assert_eq!(all.out, "");
    all.says("steno words --ignored");
    words(&["--restore", "Aarhus", "--restore", "Ljungberg"]);
    documents.delete(ids[1], true).unwrap();
    assert_eq!(words(&[]), "Ljungberg\n");
}
