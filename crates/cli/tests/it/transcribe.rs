//! What becomes of recordings, results and failures, with a scripted engine.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Ran, Sandbox, real_engine};
use serde_json::Value;

#[test]
fn one_recording_alone_is_printed() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    let ran = sandbox.run(&["transcribe", "talk.mp3"]).ends(0);
    assert_eq!(ran.out, "Good morning.\nThis is talk.\n");
    assert_eq!(sandbox.names(), ["talk.mp3"]);
}

#[test]
fn formats_and_folders_make_files_and_nothing_is_printed() {
    for (arguments, expected) in [
        (&["talk.mp3", "--format", "srt,json"][..], &["talk.json", "talk.mp3", "talk.srt"][..]),
        (&["talk.mp3", "-f", "txt", "-f", "vtt"], &["talk.mp3", "talk.txt", "talk.vtt"]),
        (&["talk.mp3", "other.wav"], &["other.txt", "talk.mp3", "talk.txt"]),
        (&["."], &["talk.mp3", "talk.txt"]),
    ] {
        let sandbox = Sandbox::with(&["talk.mp3"]);
        let ran = sandbox.run(&[&["transcribe"], arguments].concat()).ends(0);
        assert_eq!(ran.out, "", "{arguments:?}");
        assert_eq!(sandbox.names(), expected, "{arguments:?}");
        assert!(ran.err.contains("written to"), "{}", ran.err);
    }
    let sandbox = Sandbox::with(&["talk.mp3"]);
    sandbox.run(&["transcribe", "talk.mp3", "--output", "new/folder", "--format", "srt"]).ends(0);
    assert!(
        sandbox.read("new/folder/talk.srt").starts_with("1\n00:00:00,000 --> 00:00:01,500\nGood morning.\n")
    );
}

/// By the rule of the window: names are made of what is known, are no paths, and replace nothing.
#[test]
fn files_are_named_by_a_template() {
    let sandbox = Sandbox::with(&["a/talk.mp3", "b/talk.mp3"]);
    let named = |template: &str, more: &[&str]| {
        let arguments = [
            "transcribe",
            "a/talk.mp3",
            "b/talk.mp3",
            "-f",
            "srt",
            "-o",
            "texts",
            "--name-template",
            template,
        ];
        sandbox.run(&[&arguments[..], more].concat())
    };
    let texts = || {
        let mut names: Vec<_> = std::fs::read_dir(sandbox.path("texts"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        // What could not be named is kept as a partial result.
        names.retain(|name| name.ends_with(".srt"));
        names.sort();
        names
    };
    // The language is known once the text is there; two of one name get two names, also with --force.
    named("{name}_{language}", &[]).ends(0);
    assert_eq!(texts(), ["talk_en-2.srt", "talk_en.srt"]);
    assert!(sandbox.read("texts/talk_en.srt").contains("-->"));
    named("{name}_{language}", &[]).ends(1).says("--force");
    named("{name}_{language}", &["--force"]).ends(0);
    assert_eq!(texts(), ["talk_en-2.srt", "talk_en.srt"]);
    // What is known before is checked before.
    named("{language}", &["--language", "en"]).ends(0);
    named("{language}", &["--language", "en"]).ends(1).says("--force");
    named("{name} {date}", &[]).ends(0);
    let dated = texts()
        .into_iter()
        .filter(|name| name.starts_with("talk 20") && name.len() > "talk 2026-11-24.sr".len());
    assert_eq!(dated.count(), 2, "{:?}", texts());
    for (template, part) in [
        ("{title}", "{title} is not known"),
        ("{name", "a brace is missing"),
        ("../{name}", "a file name can't contain '/'"),
        ("", "the name is empty"),
    ] {
        named(template, &[]).ends(2).says(part);
    }
}

/// As the window does, where it is asked for.
#[test]
fn folders_within_a_folder_are_searched_with_recursive() {
    let sandbox =
        Sandbox::with(&["tapes/one.mp3", "tapes/may/two.wav", "tapes/may/one.mp3", "none/notes.txt"]);
    sandbox.run(&["transcribe", "tapes", "-R", "--output", "texts"]).ends(0);
    let mut names: Vec<_> = std::fs::read_dir(sandbox.path("texts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["one.mp3.txt", "one.txt", "two.txt"]);
    sandbox.run(&["transcribe", "tapes", "--output", "flat"]).ends(0);
    assert_eq!(std::fs::read_dir(sandbox.path("flat")).unwrap().count(), 1);
    let nothing = "There is no audio or video file in this folder.";
    sandbox.run(&["transcribe", "none", "--recursive"]).ends(1).says(nothing);
    std::fs::rename(sandbox.path("tapes/one.mp3"), sandbox.path("tapes/may/three.mp3")).unwrap();
    sandbox.run(&["transcribe", "tapes"]).ends(1).says("but 3 in subfolders. Add --recursive");
    let languages = sandbox.run(&["detect-language", "tapes", "--recursive"]).ends(0);
    assert_eq!(languages.out.lines().count(), 3, "{}", languages.out);
}

/// A name is a part of one line, whatever it holds.
#[cfg(unix)]
#[test]
fn a_file_name_cannot_pass_for_a_message_of_ours() {
    let names = ["a\nsteno: warning: broken.mp3", "invoice\u{202e}3pm.mp3", "broken\u{1b}[2J\u{2028}.mp3"];
    let sandbox = Sandbox::with(&names);
    let ran = sandbox.run(&[&["transcribe", "-f", "txt"][..], &names].concat());
    assert!(ran.err.contains("invoice\u{fffd}3pm") && ran.err.contains("broken\u{fffd}[2J"), "{}", ran.err);
    let is_raw = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2028}');
    assert!(!ran.err.contains(is_raw), "{:?}", ran.err);
    assert!(!ran.err.lines().any(|line| line.starts_with("steno: warning: broken")), "{}", ran.err);
}

#[test]
fn an_output_of_minus_prints_any_one_format() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    let ran = sandbox.run(&["transcribe", "talk.mp3", "--format", "vtt", "--output", "-"]).ends(0);
    assert!(ran.out.starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nGood morning.\n"), "{}", ran.out);
    assert_eq!(sandbox.names(), ["talk.mp3"]);
}

#[test]
fn one_broken_recording_does_not_stop_the_others() {
    let sandbox = Sandbox::with(&["a.mp3", "broken.mp3", "c.mp3"]);
    let ran = sandbox.run(&["transcribe", "a.mp3", "broken.mp3", "c.mp3"]).ends(1);
    assert_eq!(sandbox.names(), ["a.mp3", "a.txt", "broken.mp3", "c.mp3", "c.txt"]);
    ran.says("steno: broken.mp3: The sound is damaged from the start. Copy it again.\n");
}

#[test]
fn an_engine_that_dies_leaves_its_text_and_the_next_recording_gets_another() {
    let sandbox = Sandbox::with(&["dies.mp3", "c.mp3"]);
    let ran = sandbox.run(&["transcribe", "dies.mp3", "c.mp3"]).ends(1);
    assert_eq!(sandbox.names(), ["c.mp3", "c.txt", "dies.mp3", "dies.partial.json"]);
    ran.says("steno: dies.mp3: ");
    let exported = sandbox.run(&["export", "dies.partial.json", "--format", "txt", "--output", "-"]).ends(0);
    assert_eq!(exported.out, "Good morning.\nThis is dies.\n");
    exported.says("ended early");
}

#[test]
fn nothing_is_replaced_without_force_and_the_work_is_not_done_in_vain() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    sandbox.write("talk.srt", "mine");
    let ran = sandbox.run(&["transcribe", "talk.mp3", "--format", "json,srt"]).ends(1);
    ran.says("talk.srt: The file already exists. Use --force");
    assert_eq!(sandbox.read("talk.srt"), "mine");
    assert_eq!(sandbox.names(), ["talk.mp3", "talk.srt"]);
    sandbox.run(&["transcribe", "talk.mp3", "--format", "json,srt", "--force"]).ends(0);
    assert!(sandbox.read("talk.srt").contains("Good morning."));
}

#[test]
fn recordings_of_one_name_get_two_results() {
    let sandbox = Sandbox::with(&["talk.mp3", "talk.wav"]);
    let ran = sandbox.run(&["transcribe", "talk.mp3", "talk.wav", "--format", "srt"]).ends(0);
    assert_eq!(sandbox.names(), ["talk.mp3", "talk.srt", "talk.wav", "talk.wav.srt"]);
    ran.says("talk.wav: results are named talk.wav");
}

#[test]
fn the_same_recording_twice_is_transcribed_once() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    let ran = sandbox.run(&["transcribe", "talk.mp3", "./talk.mp3", "--format", "srt"]).ends(0);
    assert_eq!(sandbox.names(), ["talk.mp3", "talk.srt"]);
    ran.says("given more than once");
}

#[test]
fn the_demonstration_model_is_told_once_and_stands_in_every_file() {
    let sandbox = Sandbox::with(&["demo1.mp3", "demo2.mp3"]);
    let ran = sandbox
        .run(&["transcribe", "demo1.mp3", "demo2.mp3", "--format", "txt,srt,vtt,json", "--quiet"])
        .ends(0);
    assert_eq!(ran.err.matches("Demonstration model").count(), 1, "{}", ran.err);
    for name in ["demo1.txt", "demo1.srt", "demo1.vtt", "demo2.json"] {
        assert_eq!(sandbox.read(name).matches("Demonstration model").count(), 1, "{name}");
    }
}

#[test]
fn gaps_and_notices_are_warnings_even_when_quiet() {
    let sandbox = Sandbox::with(&["gappy.mp3"]);
    let ran = sandbox.run(&["transcribe", "gappy.mp3", "--quiet"]).ends(0);
    assert_eq!(
        ran.err,
        "steno: warning: gappy.mp3: The file ends too early. (at 0:09)\n\
         steno: warning: gappy.mp3: speech without text at 0:03 to 0:08\n"
    );
}

#[test]
fn progress_without_a_terminal_is_plain_lines() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    let ran = sandbox.run(&["transcribe", "talk.mp3"]).ends(0);
    assert!(!ran.err.contains('\r') && !ran.err.contains('\x1b'), "{:?}", ran.err);
    ran.says("talk.mp3: transcribing 0:01 of 0:10 (15 %), 2.0 times real time, 1 s left\n");
    let quiet = sandbox.run(&["transcribe", "talk.mp3", "-q"]).ends(0);
    assert_eq!(quiet.err, "");
}

fn events(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn json_events_are_one_object_per_line_with_an_id_per_recording() {
    let sandbox = Sandbox::with(&["a.mp3", "broken.mp3", "c.mp3", "there.mp3"]);
    sandbox.write("there.srt", "mine");
    let arguments = ["transcribe", "--json-events", "-f", "srt", "a.mp3", "broken.mp3", "there.mp3", "c.mp3"];
    let ran = sandbox.run(&arguments).ends(1);
    let events = events(&ran);
    let of = |id: u64| -> Vec<&str> {
        let ours = events.iter().filter(|event| event["job"] == id);
        ours.map(|event| event["event"].as_str().unwrap()).collect()
    };
    let done =
        ["queued", "started", "segment", "progress", "segment", "progress", "finished", "saved"].as_slice();
    assert_eq!(of(1), done);
    assert_eq!(of(2), ["queued", "failed"]);
    assert_eq!(of(3), ["queued", "failed"]);
    assert_eq!(of(4), done);
    let find = |kind: &str, id: u64| {
        events.iter().find(|event| event["event"] == kind && event["job"] == id).unwrap()
    };
    assert_eq!(find("queued", 4)["file"], "c.mp3");
    assert_eq!(find("saved", 4)["path"], "c.srt");
    assert_eq!(find("failed", 2)["error"]["code"], "audio_broken");
    assert_eq!(find("failed", 3)["error"]["code"], "output_exists");
    assert_eq!(find("finished", 1)["transcript"]["segments"][0]["text"], "Good morning.");
}

#[test]
fn json_events_alone_write_no_file() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let ran = sandbox.run(&["transcribe", "--json-events", "a.mp3"]).ends(0);
    assert_eq!(events(&ran).last().unwrap()["event"], "finished");
    assert_eq!(sandbox.names(), ["a.mp3"]);
}

#[test]
fn reproducible_json_leaves_the_run_out() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    for (extra, has_run) in [(None, true), (Some("--reproducible"), false)] {
        let mut arguments = vec!["transcribe", "a.mp3", "-f", "json", "-o", "-"];
        arguments.extend(extra);
        let ran = sandbox.run(&arguments).ends(0);
        let json: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(json.get("run").is_some(), has_run);
    }
}

#[test]
fn settings_arrive_at_the_engine() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let arguments = [
        "transcribe",
        "a.mp3",
        "-f",
        "json",
        "-o",
        "-",
        "--beam-size",
        "2",
        "--temperature",
        "0,0.5",
        "--language",
        "DE",
        "--translate",
        "--vocabulary",
        "Ada, Grace Hopper",
        "--no-word-times",
        "--seed",
        "7",
    ];
    let ran = sandbox.run(&arguments).ends(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["language"], &json["task"]), (&"de".into(), &"translate".into()));
    let settings = &json["settings"];
    assert_eq!(settings["beam_size"], 2);
    assert_eq!(settings["temperatures"], serde_json::json!([0.0, 0.5]));
    assert_eq!(settings["vocabulary"], serde_json::json!(["Ada", "Grace Hopper"]));
    assert_eq!((&settings["word_times"], &settings["seed"]), (&false.into(), &7.into()));
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_any_work() {
    for (arguments, expected) in [
        (&["transcribe"][..], "FILE"),
        (&["transcribe", "a.mp3", "--format", "doc"], "srt"),
        (&["transcribe", "a.mp3", "--temperature", "2"], "between 0 and 1"),
        (&["transcribe", "a.mp3", "--device", "tpu"], "cuda:N"),
        (&["transcribe", "a.mp3", "--beam-size", "0"], "above 0"),
        (&["transcribe", "a.mp3", "--output", "a.srt"], "--output names a folder"),
        (&["transcribe", "a.mp3", "--output", "file"], "not a folder"),
        (&["transcribe", "a.mp3", "-o", "-", "-f", "srt,json"], "can't share standard output"),
        (&["transcribe", "a.mp3", "b.mp3", "-o", "-", "-f", "srt"], "--output FOLDER"),
        (&["transcribe", "a.mp3", "-o", "-", "--json-events"], "can't share standard output"),
        (&["export", "a.json"], "--format"),
    ] {
        let sandbox = Sandbox::with(&["a.mp3", "b.mp3", "file"]);
        let ran = sandbox.run(arguments).ends(2);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
        assert_eq!(sandbox.names(), ["a.mp3", "b.mp3", "file"]);
    }
}

#[test]
fn a_model_that_is_not_there_is_one_failure() {
    let sandbox = Sandbox::with(&["a.mp3", "b.mp3"]);
    let ran = sandbox.run(&["transcribe", "a.mp3", "b.mp3", "--model", "no-such-model"]).ends(1);
    assert_eq!(ran.err.matches("no-such-model").count(), 1, "{}", ran.err);
}

#[test]
fn an_engine_that_is_not_there_is_told_with_a_remedy() {
    let sandbox = Sandbox::with(&["a.mp3", "b.mp3"]);
    let output =
        sandbox.command(&["transcribe", "a.mp3", "b.mp3"]).env("STENO_ENGINE", "/no/such/engine").output();
    let ran =
        Ran::from(output.unwrap()).ends(1).says("steno: /no/such/engine: STENO_ENGINE is set to this file");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Child, Stdio};

    #[test]
    fn names_that_are_not_unicode_work() {
        let sandbox = Sandbox::with(&[]);
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9 \xff.mp3");
        std::fs::write(sandbox.path(name), "").unwrap();
        let mut command = sandbox.command(&["transcribe", "--format", "srt"]);
        Ran::from(command.arg(name).output().unwrap()).ends(0);
        let result = sandbox.path(std::ffi::OsStr::from_bytes(b"caf\xe9 \xff.srt"));
        assert!(std::fs::read_to_string(result).unwrap().contains("Good morning."));
    }

    /// Starts a job and waits until its text has begun.
    fn running(sandbox: &Sandbox, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut command = sandbox.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"segment\"") || !line.contains("This is") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "ended too early");
        }
        (child, out)
    }

    fn signal(child: &Child, signal: i32) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    }

    #[test]
    fn an_interrupt_keeps_what_there_is_and_starts_nothing_else() {
        for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let sandbox = Sandbox::with(&["slow.mp3", "c.mp3"]);
            let (mut child, mut out) =
                running(&sandbox, &["transcribe", "--json-events", "-f", "txt", "slow.mp3", "c.mp3"]);
            signal(&child, number);
            let mut rest = String::new();
            out.read_to_string(&mut rest).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130));
            assert!(rest.contains("\"cancelled\"") && rest.contains("slow.partial.json"), "{rest}");
            assert_eq!(sandbox.names(), ["c.mp3", "slow.mp3", "slow.partial.json"]);
            let exported = sandbox.run(&["export", "slow.partial.json", "-f", "txt", "-o", "-"]).ends(0);
            assert_eq!(exported.out, "Good morning.\nThis is slow.\n");
        }
    }

    #[test]
    fn a_second_interrupt_ends_at_once_even_where_the_engine_is_deaf() {
        let sandbox = Sandbox::with(&["deaf.mp3"]);
        let (mut child, _out) = running(&sandbox, &["transcribe", "--json-events", "deaf.mp3"]);
        let mut err = BufReader::new(child.stderr.take().unwrap());
        signal(&child, libc::SIGINT);
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        signal(&child, libc::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }

    #[test]
    fn a_reader_that_goes_away_ends_it_quietly() {
        let sandbox = Sandbox::with(&["slow.mp3", "c.mp3"]);
        let (child, out) = running(&sandbox, &["transcribe", "--json-events", "slow.mp3", "c.mp3"]);
        drop(out);
        // The next event finds nobody there.
        signal(&child, libc::SIGINT);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(matches!(ran.code, Some(141 | 130)), "{ran:?}");
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }

    #[test]
    fn a_full_disk_at_standard_output_is_a_failure() {
        let full = std::path::Path::new("/dev/full");
        if !full.exists() {
            return println!("skipped: this system has no /dev/full");
        }
        let sandbox = Sandbox::with(&["talk.mp3"]);
        let out = std::fs::OpenOptions::new().write(true).open(full).unwrap();
        let output = sandbox.command(&["transcribe", "talk.mp3"]).stdout(out).stderr(Stdio::piped()).output();
        let ran = Ran::from(output.unwrap()).ends(1).says("Can't write to standard output");
        assert!(ran.err.contains("talk.partial.json"), "the text must not be lost: {}", ran.err);
    }
}

#[test]
fn a_finished_text_outlives_its_folder_and_is_written_elsewhere() {
    let sandbox = Sandbox::with(&["unwritable.mp3"]);
    let ran = sandbox.run(&["transcribe", "unwritable.mp3", "-f", "srt", "-o", "out"]).ends(1);
    ran.says("unwritable.mp3: The text is kept. `steno resume --output FOLDER`");
    let listed = |sandbox: &Sandbox| sandbox.run(&["resume", "--list"]).ends(0).out;
    assert!(listed(&sandbox).contains("unwritable.mp3"), "{}", listed(&sandbox));
    // Where the folder is still gone nothing is lost either.
    sandbox.run(&["resume"]).ends(1).says("The text is kept.");
    assert!(listed(&sandbox).contains("unwritable.mp3"), "{}", listed(&sandbox));

    std::fs::create_dir(sandbox.path("out")).unwrap();
    std::fs::create_dir(sandbox.path("elsewhere")).unwrap();
    std::fs::write(sandbox.path("elsewhere/unwritable.srt"), "mine").unwrap();
    sandbox.run(&["resume", "--output", "elsewhere"]).ends(1).says("--force");
    assert_eq!(sandbox.read("elsewhere/unwritable.srt"), "mine");
    sandbox.run(&["resume", "--output", "elsewhere", "--force"]).ends(0).says("written to ");
    let srt = sandbox.read("elsewhere/unwritable.srt");
    assert!(srt.contains("Good morning.") && srt.contains("This is unwritable."), "{srt}");
    assert_eq!(listed(&sandbox), "");
}

/// File systems have room for 255 bytes: `.srt` fits, `.json` does not.
#[cfg(target_os = "linux")]
#[test]
fn a_name_without_room_for_its_ending_is_refused_before_the_work() {
    let stem = "a".repeat(251);
    let recording = format!("{stem}.mp3");
    let sandbox = Sandbox::with(&[&recording]);
    let jobs = sandbox.path("jobs");
    let arguments = ["transcribe", &recording, "-f", "srt,json", "-o", "out"];
    let ran: Ran = sandbox.command(&arguments).env("STENO_SCRIPT_JOBS", &jobs).output().unwrap().into();
    ran.ends(1).says("--name-template");
    assert!(!jobs.exists() && std::fs::read_dir(sandbox.path("out")).unwrap().next().is_none());
    sandbox.run(&[&arguments[..], &["--name-template", "short"]].concat()).ends(0);
    assert!(sandbox.read("out/short.json").contains("Good morning."));

    // Where the name is known only afterwards, the text is kept under one that has room.
    let late = ["--name-template", "{name}_{language}"];
    sandbox.run(&[&arguments[..], &late].concat()).ends(1).says("--name-template").says("contains the text");
    let kept = std::fs::read_dir(sandbox.path("out")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept.filter(|path| path.to_string_lossy().ends_with("aaa.partial.json")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    sandbox.run(&["export", kept[0].to_str().unwrap(), "-f", "txt", "-o", "-"]).ends(0);
}

/// A job that is cancelled and can't be saved stays in the journal too.
#[test]
fn a_cancelled_text_outlives_its_folder() {
    let sandbox = Sandbox::with(&["unwritable-slow.mp3"]);
    let arguments = ["transcribe", "unwritable-slow.mp3", "-f", "srt", "-o", "out", "--json-events"];
    let mut steno =
        sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(steno.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert!(events.any(|event| event["event"] == "segment"), "it ended");
    while sandbox.path("out").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(steno.id() as i32, libc::SIGINT) };
    events.for_each(drop);
    Ran::from(steno.wait_with_output().unwrap()).ends(130).says("unwritable-slow.mp3: The text is kept.");
    assert!(sandbox.run(&["resume", "--list"]).ends(0).out.contains("unwritable-slow.mp3"));
}

/// Without a journal the folder of the program's state is the last resort.
#[test]
fn a_finished_text_goes_to_the_state_folder_where_there_is_no_journal() {
    let sandbox = Sandbox::with(&["unwritable.mp3"]);
    // A file in the place of a folder of the journal.
    std::fs::create_dir_all(sandbox.home.path().join("steno")).unwrap();
    std::fs::write(sandbox.home.path().join("steno/journal.hosts"), "").unwrap();
    let ran = sandbox.run(&["transcribe", "unwritable.mp3", "-f", "srt", "-o", "out"]).ends(1);
    let saved = sandbox.home.path().join("steno/unsaved/unwritable.partial.json");
    let text = std::fs::read_to_string(&saved).unwrap_or_else(|error| panic!("{error}: {}", ran.err));
    assert!(text.contains("This is unwritable."), "{text}");
    ran.says("unsaved/unwritable.partial.json: contains the text up to");
}

/// Opening a pipe would wait for a writer, and no signal would end that.
#[test]
fn a_pipe_without_a_writer_is_refused_at_once() {
    let sandbox = Sandbox::with(&[]);
    let made = std::process::Command::new("mkfifo").arg(sandbox.path("pipe.wav")).status().unwrap();
    assert!(made.success());
    let mut steno = sandbox.command_with(&real_engine(), &["transcribe", "pipe.wav"]);
    let mut steno = steno.stderr(Stdio::piped()).spawn().unwrap();
    let start = std::time::Instant::now();
    while steno.try_wait().unwrap().is_none() {
        if start.elapsed() > std::time::Duration::from_secs(60) {
            steno.kill().unwrap();
            panic!("it waits");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ran::from(steno.wait_with_output().unwrap()).ends(1).says("pipe");
}
