//! `steno chapters` with the real engine and a tiny model with random weights: texts of the same words mean
//! much the same to it.

use library::DocumentId;
use serde_json::Value;
use transcript::export::{Format, Options, export};
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};

use crate::search::{history, install};
use crate::support::{Ran, Sandbox, real_engine};

const SUBJECTS: [[&str; 3]; 2] = [
    [
        "The boat lies in the harbour since the summer.",
        "A boat and a harbour cost a lot of money.",
        "So we sell the boat, with its sails and all ropes.",
    ],
    [
        "An election is held here in the middle of May.",
        "Each party hangs its posters for the election.",
        "Who wins an election has to find a coalition.",
    ],
];

/// Of each subject is spoken for so many seconds, in rounds of 18.
fn talk(seconds: u32) -> Transcript {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk.wav", "duration": 0, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    for number in 0..2 * seconds / 6 {
        let start = Time::from_millis(6_000 * number);
        let text = SUBJECTS[(number * 6 / seconds) as usize][number as usize % 3];
        let end = start + Time::from_millis(5_800);
        talk.segments.push(Segment { start, end, text: text.into(), ..Segment::default() });
    }
    talk.source.duration = Time::from_millis(2_000 * seconds);
    talk
}

fn write(sandbox: &Sandbox, name: &str, talk: &Transcript) {
    let mut json = Vec::new();
    export(talk, Format::Json, &Options::default(), &mut json).unwrap();
    sandbox.write(name, &String::from_utf8(json).unwrap());
}

/// Ten minutes in a file, `talk.json`.
pub fn with_talk() -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    write(&sandbox, "talk.json", &talk(306));
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command_with(&real_engine(), &[&["chapters"], arguments].concat());
    command.env("HOME", sandbox.home.path()).env_remove("HF_HOME").output().unwrap().into()
}

#[test]
fn what_is_missing_is_said() {
    let sandbox = with_talk();
    run(&sandbox, &["talk.json"])
        .ends(1)
        .says("No model that compares meanings is installed")
        .says("steno models pull");
    install(&sandbox, "tiny-bert");
    write(&sandbox, "short.json", &talk(108));
    run(&sandbox, &["short.json"]).ends(1).says("short.json").says("shorter than 4 minutes");
    run(&sandbox, &["none.json"]).ends(1).says("There is no such file");
    run(&sandbox, &["7"]).ends(1).says("The history has no transcript 7");
    for format in ["chapters", "chapters-vtt"] {
        sandbox.run(&["export", "talk.json", "-f", format]).ends(1).says("has no chapters");
        sandbox.run(&["transcribe", "talk.wav", "-f", format]).ends(2).says("steno chapters");
    }
}

#[test]
fn chapters_begin_where_the_subject_changes() {
    let sandbox = with_talk();
    install(&sandbox, "tiny-bert");
    let before = sandbox.read("talk.json");
    let ran = run(&sandbox, &["talk.json", "--quiet"]).ends(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        matches!(lines[..], [first, second] if first.starts_with("0:00  Boat") && second.starts_with("5:06  Election")),
        "{lines:?}"
    );
    assert_eq!(ran.err, "");
    let found: Value = serde_json::from_str(&run(&sandbox, &["talk.json", "--json"]).ends(0).out).unwrap();
    let times: Vec<_> = found.as_array().unwrap().iter().map(|one| (&one["start"], &one["end"])).collect();
    assert_eq!(times, [(&0.0.into(), &306.0.into()), (&306.0.into(), &612.0.into())]);
    assert_eq!(found[0]["title"], lines[0][6..]);
    assert_eq!(sandbox.read("talk.json"), before, "it was only read");
}

#[test]
fn chapters_are_saved_where_the_transcript_is() {
    let sandbox = with_talk();
    install(&sandbox, "tiny-bert");
    let ran = run(&sandbox, &["talk.json", "--save"]).ends(0).says("2 chapters written to talk.json");
    assert_eq!(ran.out, "");
    assert_eq!(run(&sandbox, &["talk.json", "--save", "--quiet"]).ends(0).err, "");
    let youtube = sandbox.run(&["export", "talk.json", "-f", "chapters", "-o", "-"]).ends(0).out;
    assert!(youtube.starts_with("0:00 Boat") && youtube.contains("\n5:06 Election"), "{youtube}");
    sandbox.run(&["export", "talk.json", "-f", "chapters-vtt,md"]).ends(0);
    assert!(sandbox.read("talk.chapters.vtt").contains("00:05:06.000 --> 00:10:12.000\nElection"));
    assert!(sandbox.read("talk.md").contains("\n\n## Election"));

    let documents = history(&sandbox);
    let mut talk = talk(306);
    edit::assign_ids(&mut talk);
    let DocumentId(number) = documents.add(&sandbox.path("talk.wav"), None, &talk).unwrap();
    let number = number.to_string();
    assert!(run(&sandbox, &[&number]).ends(0).out.contains("\n5:06  Election"));
    assert_eq!(documents.read(DocumentId(1)).unwrap().unwrap().transcript.chapters, [], "it was only read");
    run(&sandbox, &[&number, "--save"]).ends(0);
    let saved = documents.read(DocumentId(1)).unwrap().unwrap();
    assert_eq!(saved.undo_position.done, 1, "the window can undo it");
    let starts: Vec<_> = saved.transcript.chapters.iter().map(|one| one.start.seconds()).collect();
    assert_eq!(starts, [0.0, 306.0]);
}
