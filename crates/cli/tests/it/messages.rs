//! What is said where something is missing, mistyped or empty: what it is, and what to do.

use crate::support::{Ran, Sandbox};

#[test]
fn a_message_says_what_is_wrong_and_what_to_do() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    // (arguments, exit code, parts of what is said)
    let cases: [(&[&str], i32, &[&str]); 7] = [
        (
            &["transcribe", "talk.mp3", "--model", "whisper-small"],
            1,
            &["The model \"whisper-small\" is not installed.", "`steno models pull whisper-small`"],
        ),
        (
            &["transcribe", "talk.mp3", "--model", "whisper-smal"],
            1,
            &["There is no model named \"whisper-smal\".", "There are: starter-parakeet, starter-whisper"],
        ),
        (&["search", "boat", "--since", "tomorrow"], 2, &["--since", "YEAR-MONTH-DAY, as in 2026-01-31"]),
        (&["models", "quantize", "starter-whisper", "--to", "q9"], 2, &["f32, f16, bf16, q8_0, q6_k"]),
        (&["voices", "list"], 0, &["No voice was added yet", "steno voices add"]),
        (&["words"], 0, &["No word was corrected twice"]),
        (
            &["words", "--ignore", "oven"],
            1,
            &["There is no history yet", "Correct a transcript in the window"],
        ),
    ];
    for (arguments, code, parts) in cases {
        let ran = sandbox.run(arguments).ends(code);
        for part in parts {
            assert!(ran.err.contains(part), "{arguments:?}: no {part:?} in {}", ran.err);
        }
        assert_eq!(ran.out, "", "{arguments:?}");
    }
    // Other programs read an empty list.
    for arguments in [&["voices", "list", "--json"], &["words", "--json", "--limit=9"][..]] {
        let ran = sandbox.run(arguments).ends(0);
        assert_eq!((ran.out.trim(), ran.err.as_str()), ("[]", ""), "{arguments:?}");
    }
}

/// With the option's name, not as if other programs held the rest.
#[test]
fn a_limit_that_is_too_low_is_named() {
    let sandbox = Sandbox::with(&["talk.mp3"]);
    for (option, device) in [("--memory-limit", "cpu"), ("--ram-limit", "cpu")] {
        let ran = sandbox.run(&["transcribe", "talk.mp3", "--device", device, option, "1MiB"]).ends(0);
        let ran = ran.says("but the memory limit is 1 MB").says("raise the limit or choose a smaller model");
        assert!(!ran.err.contains("is free") && !ran.err.contains("other programs"), "{}", ran.err);
    }
}

#[test]
fn silence_has_no_language() {
    let sandbox = Sandbox::with(&["silent.mp3"]);
    let ran = sandbox.run(&["transcribe", "silent.mp3", "-f", "txt"]).ends(0).says("no speech was found");
    assert!(!ran.err.contains("language"), "{}", ran.err);
}

/// Whose memory was in use before is of interest where a job then gets too little.
#[test]
fn memory_that_others_use_is_told_where_it_matters() {
    for (name, expected) in [("occupied.mp3", false), ("occupied-short-of-memory.mp3", true)] {
        let sandbox = Sandbox::with(&[name]);
        let ran = sandbox.run(&["transcribe", name]).ends(0);
        let at = ran.err.find("3 GB is in use.");
        assert_eq!(at.is_some(), expected, "{}", ran.err);
        assert!(at.is_none_or(|at| at < ran.err.find("Fewer windows.").unwrap()), "{}", ran.err);
        // Programs are told in any case.
        let ran = sandbox.run(&["transcribe", name, "--json-events"]).ends(0);
        assert!(ran.out.contains("memory.occupied"), "{}", ran.out);
    }
}

/// A pipe is read once, and engines read a recording more than once.
#[cfg(unix)]
#[test]
fn a_pipe_is_refused_with_the_way_to_read_it() {
    let sandbox = Sandbox::with(&[]);
    let pipe = sandbox.path("pipe.wav");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let engine = crate::support::real_engine();
    let output = sandbox.command_with(&engine, &["transcribe", "pipe.wav"]).output().unwrap();
    Ran::from(output).ends(1).says("pipe.wav: ").says("is a pipe, not a file").says("steno transcribe - <");
}
