//! The commands that don't transcribe.

use crate::support::{Ran, Sandbox};
use serde_json::Value;

#[test]
fn completions_for_every_shell_name_the_commands() {
    let sandbox = Sandbox::with(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = sandbox.run(&["completions", shell]).ends(0);
        for word in ["transcribe", "detect-language", "json-events"] {
            assert!(ran.out.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn the_manual_covers_every_command() {
    let sandbox = Sandbox::with(&[]);
    let ran = sandbox.run(&["man"]).ends(0);
    assert!(ran.out.starts_with(".ie") || ran.out.contains(".TH steno"), "{}", ran.out);
    assert!(sandbox.run(&["man", "transcribe"]).ends(0).out.contains("beam"));
    sandbox.run(&["man", "nothing"]).ends(2).says("transcribe");
    sandbox.run(&["man", "--output", "man1"]).ends(0);
    assert!(sandbox.read("man1/steno-detect-language.1").contains("probabilities"));
    assert!(sandbox.read("man1/steno.1").contains("transcribe"));
}

#[test]
fn the_starters_are_listed_as_demonstrations() {
    let sandbox = Sandbox::with(&[]);
    let ran = sandbox.run(&["models"]).ends(0);
    let json: Value = serde_json::from_str(&sandbox.run(&["models", "--json"]).ends(0).out).unwrap();
    for name in ["starter-whisper", "starter-parakeet"] {
        let row = ran.out.lines().find(|row| row.starts_with(name));
        assert!(row.is_some_and(|row| row.contains("demonstration")), "{}", ran.out);
        let starter = json.as_array().unwrap().iter().find(|model| model["name"] == name).unwrap();
        assert_eq!(starter["demonstration"], true);
        assert!(starter["path"].as_str().unwrap().ends_with(name));
    }
}

#[test]
fn the_doctor_says_what_there_is_and_what_is_not() {
    let sandbox = Sandbox::with(&[]);
    let ran = sandbox.run(&["doctor"]).ends(0);
    for part in
        ["scripted", "This is only a script.", "flac", "ffmpeg        not found", "ac3", "starter-whisper"]
    {
        assert!(ran.out.contains(part), "no {part:?} in:\n{}", ran.out);
    }
    let json: Value = serde_json::from_str(&sandbox.run(&["doctor", "--json"]).ends(0).out).unwrap();
    assert_eq!(json["engine"]["engine"], "scripted");
    assert_eq!(json["failure"], Value::Null);

    let output = sandbox.command(&["doctor"]).env("STENO_ENGINE", "/no/such/engine").output().unwrap();
    let ran = Ran::from(output).ends(1);
    assert!(ran.out.contains("does not work") && ran.out.contains("/no/such/engine"), "{}", ran.out);
}

#[test]
fn languages_are_told_per_recording() {
    let sandbox = Sandbox::with(&["a.mp3", "broken.mp3", "c.mp3"]);
    let ran = sandbox.run(&["detect-language", "a.mp3", "broken.mp3", "c.mp3"]).ends(1);
    assert_eq!(ran.out, "a.mp3: en 97.0 %, de 2.0 %\nc.mp3: en 97.0 %, de 2.0 %\n");
    ran.says("steno: broken.mp3: The sound is damaged");
    let ran = sandbox.run(&["detect-language", "--json", "c.mp3"]).ends(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["file"], &json["language"]), (&"c.mp3".into(), &"en".into()));
    assert_eq!(json["probabilities"].as_array().unwrap().len(), 3);
}

#[test]
fn another_engine_goes_on_with_the_recordings_that_are_left() {
    let told = |name: &str| format!("{name}: en 97.0 %, de 2.0 %\n");
    // (recordings, exit code, told, on standard error)
    let cases = [
        (
            &["a.mp3", "once.mp3", "c.mp3"][..],
            0,
            &["a.mp3", "once.mp3", "c.mp3"][..],
            "Continuing with a new engine.",
        ),
        (&["a.mp3", "dies.mp3", "broken.mp3", "c.mp3"], 1, &["a.mp3", "c.mp3"], "steno: dies.mp3: "),
        (&["dies.mp3"], 1, &[], "steno: dies.mp3: "),
        (
            &["a.mp3", "hungry.mp3", "c.mp3"],
            0,
            &["a.mp3", "hungry.mp3", "c.mp3"],
            "The engine ran out of memory and stopped",
        ),
        (&["hungry.mp3", "c.mp3"], 0, &["hungry.mp3", "c.mp3"], "q8_0 instead of f16"),
    ];
    for (names, code, expected, part) in cases {
        let sandbox = Sandbox::with(names);
        let ran = sandbox.run(&[&["detect-language"], names].concat()).ends(code).says(part);
        assert_eq!(ran.out, expected.iter().map(|name| told(name)).collect::<String>(), "{names:?}");
    }
}

#[test]
fn saved_transcripts_become_other_formats() {
    let sandbox = Sandbox::with(&[]);
    let golden = crate::support::project().join("crates/transcript/tests/golden");
    std::fs::copy(golden.join("talk.json"), sandbox.path("talk.json")).unwrap();
    sandbox.run(&["export", "talk.json", "--format", "txt,srt,vtt,md,html,csv,tsv,whisperx,docx"]).ends(0);
    let text = ["txt", "srt", "vtt", "md", "html", "csv", "tsv", "whisperx.json"]
        .map(|ending| format!("talk.{ending}"));
    for name in &text {
        assert_eq!(sandbox.read(name), std::fs::read_to_string(golden.join(name)).unwrap(), "{name}");
    }
    assert!(std::fs::read(sandbox.path("talk.docx")).unwrap().starts_with(b"PK"));
    for (format, arguments) in
        [("srt", &["--line-width", "24"][..]), ("vtt", &["--line-width", "24", "--word-tags"])]
    {
        let ran =
            sandbox.run(&[&["export", "talk.json", "-o", "-", "-f", format], arguments].concat()).ends(0);
        assert_eq!(ran.out, std::fs::read_to_string(golden.join(format!("shaped.{format}"))).unwrap());
    }
    sandbox.run(&["export", "talk.json", "--format", "txt"]).ends(1).says("--force");
    sandbox.run(&["export", "talk.json", "--format", "txt", "--force", "-o", "there"]).ends(0);
    let named = ["export", "talk.json", "-f", "txt", "-o", "named", "--name-template", "{language} {name}"];
    sandbox.run(&named).ends(0);
    assert_eq!(sandbox.read("named/en talk.txt"), sandbox.read("there/talk.txt"));
}

#[test]
fn a_format_that_a_transcript_has_nothing_for_does_not_keep_the_others_from_being_written() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    sandbox.run(&["transcribe", "talk.mp3", "-f", "json"]).ends(0);
    let ran = sandbox.run(&["export", "talk.json", "-f", "txt,rttm,chapters,srt,chapters-vtt"]).ends(1);
    for (format, lacks) in [("rttm", "speakers"), ("chapters", "chapters"), ("chapters-vtt", "chapters")] {
        let told = format!("talk.json: Not written as {format}. The transcript has no {lacks}.");
        assert!(ran.err.contains(&told), "no {told:?} in {}", ran.err);
    }
    assert_eq!(sandbox.names(), ["talk.json", "talk.mp3", "talk.srt", "talk.txt"]);
    let named = ["export", "talk.json", "-f", "chapters,md", "--name-template", "{language}"];
    sandbox.run(&named).ends(1).says("has no chapters");
    assert!(sandbox.read("en.md").contains("Good morning."));
    let ran = sandbox.run(&["export", "talk.json", "-f", "chapters", "-o", "-"]).ends(1);
    assert_eq!(ran.out, "");
    // A text that was just written never has them: they are offered where one is exported.
    for (command, offers) in [("transcribe", false), ("collect", false), ("export", true)] {
        let help = sandbox.run(&[command, "--help"]).ends(0).out;
        assert_eq!(help.contains("chapters-vtt"), offers, "{command}");
    }
}

#[test]
fn what_is_no_transcript_is_refused_and_the_others_are_converted() {
    let sandbox = Sandbox::with(&["empty.json"]);
    sandbox.write("foreign.json", r#"{"text": "hello", "segments": []}"#);
    sandbox.write("newer.json", r#"{"schema_version": 99}"#);
    let golden = crate::support::project().join("crates/transcript/tests/golden/talk.json");
    std::fs::copy(golden, sandbox.path("talk.json")).unwrap();
    let arguments =
        ["export", "missing.json", "empty.json", "foreign.json", "newer.json", "talk.json", "-f", "srt"];
    sandbox
        .run(&arguments)
        .ends(1)
        .says("steno: missing.json: There is no such file.")
        .says("steno: empty.json: This is not JSON")
        .says("steno: foreign.json: This is JSON, but not a transcript")
        .says("Update Steno");
    assert!(sandbox.read("talk.srt").contains("-->"));
}
