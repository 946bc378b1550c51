//! From sound to files, with the real engine and the model that ships with the
//! source.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use random_models::diarization::{errors, parse_rttm, read_rttm};

use crate::support::{Ran, Sandbox, project, real_engine, wav};
use serde_json::Value;

fn real(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.command_with(&real_engine(), arguments)
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    real(sandbox, arguments).output().unwrap().into()
}

/// With the bundled sample under this name.
fn sandbox_with_sample(name: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::copy(project().join("tests/data/sample.flac"), sandbox.path(name)).unwrap();
    sandbox
}

/// What is said in the sample, as a list of words.
fn expected_words() -> Vec<String> {
    let json = std::fs::read(project().join("tests/data/sample.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let texts: Vec<&str> = json["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| segment["text"].as_str().unwrap())
        .collect();
    words(&texts.join(" "))
}

fn words(text: &str) -> Vec<String> {
    let letters =
        |word: &str| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    text.split_whitespace().map(letters).filter(|word| !word.is_empty()).collect()
}

/// Other tests compute on one thread.
#[test]
fn the_text_is_the_same_on_one_thread_and_on_all() {
    let sandbox = sandbox_with_sample("talk.flac");
    for precision in ["f32", "f16", "q8_0"] {
        let written = |threads: &str| {
            let base = ["transcribe", "talk.flac", "-f", "json", "-o", "-", "--reproducible"];
            let own = ["--precision", precision, "--threads", threads];
            let json: Value =
                serde_json::from_str(&run(&sandbox, &[&base[..], &own].concat()).ends(0).out).unwrap();
            json["segments"].clone()
        };
        let one = written("1");
        assert!(one.as_array().is_some_and(|segments| !segments.is_empty()));
        assert_eq!(one, written("64"), "{precision}");
    }
}

#[test]
fn what_the_time_went_into_is_printed_where_it_is_asked_for() {
    let sandbox = sandbox_with_sample("talk.flac");
    let plain = run(&sandbox, &["transcribe", "talk.flac"]).ends(0);
    assert!(!plain.err.contains("cores busy"), "{}", plain.err);
    let timed = run(&sandbox, &["transcribe", "talk.flac", "--timings"]).ends(0);
    assert_eq!(timed.out, plain.out);
    let seconds = |title: &str| -> f64 {
        let line =
            timed.err.lines().find_map(|line| line.trim_start().strip_prefix(title)?.split_once(" s "));
        line.unwrap_or_else(|| panic!("no {title} in {}", timed.err)).0.trim().parse().unwrap()
    };
    let stages = [
        "reading the model",
        "decoding the file, finding speech",
        "log-mel",
        "encoder",
        "decoder",
        "times of words",
    ];
    let sum: f64 = stages.iter().map(|title| seconds(title)).sum();
    let all = seconds("all ");
    assert!(stages.iter().all(|title| seconds(title) > 0.0) && sum < all, "{}", timed.err);
}

#[test]
fn a_recording_on_standard_input_is_printed_and_not_kept() {
    let sandbox = sandbox_with_sample("talk.flac");
    let temporary = tempfile::tempdir().unwrap();
    let piped = |arguments: &[&str]| -> Ran {
        let sample = std::fs::File::open(sandbox.path("talk.flac")).unwrap();
        let mut command = real(&sandbox, arguments);
        command.env("TMPDIR", temporary.path()).stdin(sample).output().unwrap().into()
    };
    let named = run(&sandbox, &["transcribe", "talk.flac"]).ends(0).out;
    assert_eq!(piped(&["transcribe", "-"]).ends(0).out, named);
    assert!(piped(&["transcribe", "-", "-f", "srt"]).ends(0).out.starts_with("1\n00:00:0"));
    piped(&["transcribe", "-", "-f", "srt", "-o", "out"]).ends(0);
    assert!(sandbox.path("out/standard-input.srt").is_file());
    piped(&["transcribe", "-", "talk.flac"]).ends(2).says("together with files");
    piped(&["detect-language", "-"]).ends(1).says("Only `steno transcribe` reads standard input");
    let mut command = real(&sandbox, &["transcribe", "-"]);
    let empty = command.env("TMPDIR", temporary.path()).stdin(std::process::Stdio::null()).output().unwrap();
    Ran::from(empty).ends(1).says("Standard input is empty");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the copy is left");
}

/// What there is of it goes to the working folder: the copy is in one that is deleted.
#[cfg(unix)]
#[test]
fn a_recording_on_standard_input_that_is_interrupted_leaves_its_text_in_the_working_folder() {
    let sandbox = sandbox_with_sample("talk.flac");
    let go_on = &mut |_: f64, _: Option<f64>| std::ops::ControlFlow::Continue(());
    let options = audio::PrepareOptions { vad: None, ..audio::PrepareOptions::default() };
    let talk = audio::prepare(&sandbox.path("talk.flac"), &options, go_on).unwrap();
    let mut samples = vec![0.0; talk.pcm.len() as usize];
    talk.pcm.read(0, &mut samples).unwrap();
    let whole = samples.iter().flat_map(|x| ((x * 32_767.0) as i16).to_le_bytes()).collect::<Vec<u8>>();
    // Long enough to be interrupted.
    std::fs::write(sandbox.path("long.wav"), wav(&whole.repeat(80))).unwrap();
    let mut command = real(&sandbox, &["transcribe", "-", "--json-events"]);
    command.stdin(std::fs::File::open(sandbox.path("long.wav")).unwrap());
    let mut steno = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(steno.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert!(events.any(|event| event["event"] == "segment"), "it ended");
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(steno.id() as i32, libc::SIGINT) };
    events.for_each(drop);
    let ran = Ran::from(steno.wait_with_output().unwrap()).ends(130);
    ran.says("standard-input.partial.json: contains the text up to");
    let partial: Value = serde_json::from_str(&sandbox.read("standard-input.partial.json")).unwrap();
    assert!(!partial["segments"].as_array().unwrap().is_empty());
}

/// Words to be changed, added or removed to get from one to the other.
fn word_errors(found: &[String], expected: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=expected.len()).collect();
    for (i, word) in found.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, wanted) in expected.iter().enumerate() {
            let changed = diagonal + usize::from(word != wanted);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[expected.len()]
}

#[track_caller]
fn check_text(found: &str) {
    let (found, expected) = (words(found), expected_words());
    // The starter makes a mistake now and then; a better one may take its place.
    assert!(word_errors(&found, &expected) * 5 <= expected.len(), "{found:?} is not {expected:?}");
}

/// A conversation of two, under this name.
fn sandbox_with_conversation(name: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    let folder = project().join("tests/data/corpus/audio/conversations");
    std::fs::copy(folder.join("two_speakers.flac"), sandbox.path(name)).unwrap();
    sandbox
}

#[test]
fn a_conversation_has_its_speakers() {
    let sandbox = sandbox_with_conversation("a.flac");
    let options = ["--speakers", "--format", "rttm,json,txt,vtt,csv"];
    run(&sandbox, &[&["transcribe", "a.flac"], &options[..]].concat()).ends(0);
    let expected = project().join("tests/data/corpus/audio/conversations/two_speakers.rttm");
    let (expected, found) = (read_rttm(&expected), parse_rttm(&sandbox.read("a.rttm")));
    let rate = errors(&expected, &found, 0.25).rate();
    assert!(rate <= 0.08, "{rate}");
    for (file, part) in [
        ("a.txt", "\nSpeaker 2: "),
        ("a.vtt", "<v Speaker 2>"),
        ("a.csv", ",Speaker 2,"),
        ("a.rttm", " Speaker_2 "),
    ] {
        assert!(sandbox.read(file).contains(part), "{file}:\n{}", sandbox.read(file));
    }
    let json: Value = serde_json::from_str(&sandbox.read("a.json")).unwrap();
    let segments = json["segments"].as_array().unwrap();
    assert!(segments.iter().all(|segment| segment["speaker"].is_string()), "{segments:?}");
    // A word said while one alone speaks is that one's. Which is which, the first turn says.
    let name_of = |speaker: &str| if speaker == expected[0].2 { "Speaker 1" } else { "Speaker 2" };
    let (mut right, mut all) = (0, 0);
    for segment in segments {
        for word in segment["words"].as_array().unwrap() {
            let middle = (word["start"].as_f64().unwrap() + word["end"].as_f64().unwrap()) / 2.0;
            let mut said = expected.iter().filter(|(start, end, _)| *start < middle && middle < *end);
            if let (Some(turn), None) = (said.next(), said.next()) {
                all += 1;
                right += usize::from(segment["speaker"] == name_of(&turn.2));
            }
        }
    }
    println!("{right} of {all} words");
    assert!(all > 50 && right * 100 >= all * 97, "{right} of {all} words");
}

/// Dialogues of two synthetic voices, of which every word's speaker is known; one has a channel
/// for each, and both talk at once now and then.
#[test]
fn words_of_dialogues_have_the_right_speaker() {
    let folder = project().join("tests/data/corpus/audio/dialogues");
    let (mut right, mut all) = (0, 0);
    for (name, channels) in [("woman_and_man", "mix"), ("two_women", "mix"), ("call", "separate")] {
        let sandbox = Sandbox::with(&[]);
        std::fs::copy(folder.join(name).with_extension("flac"), sandbox.path("talk.flac")).unwrap();
        let options = ["--speakers", "--channels", channels, "--language", "en", "--format", "json,rttm"];
        run(&sandbox, &[&["transcribe", "talk.flac"], &options[..]].concat()).ends(0);
        let json: Value = serde_json::from_str(&sandbox.read("talk.json")).unwrap();
        let truth = std::fs::read_to_string(folder.join(name).with_extension("json")).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let (truth, segments) = (truth["segments"].as_array().unwrap(), json["segments"].as_array().unwrap());
        let (mut here, mut of) = (0, 0);
        for segment in segments {
            for word in segment["words"].as_array().unwrap() {
                let middle = (word["start"].as_f64().unwrap() + word["end"].as_f64().unwrap()) / 2.0;
                let said = |one: &&Value| {
                    one["start"].as_f64().unwrap() <= middle && middle <= one["end"].as_f64().unwrap()
                };
                let who: std::collections::BTreeSet<u64> = match segment["channel"].as_u64() {
                    Some(channel) => [channel].into(),
                    None => truth.iter().filter(said).map(|one| one["speaker"].as_u64().unwrap()).collect(),
                };
                // Whose turn is first is the first speaker.
                if let Some(who) = who.first().filter(|_| who.len() == 1) {
                    of += 1;
                    here += usize::from(segment["speaker"] == format!("Speaker {}", who + 1));
                }
            }
        }
        let expected =
            truth.iter().map(|one| one["text"].as_str().unwrap().split(' ').count()).sum::<usize>();
        println!("{name}: {here} of {of} words, {expected} were said");
        assert!(of * 10 >= expected * 8, "{name}: {of} of {expected} words");
        (right, all) = (right + here, all + of);
        // Turns name their channel.
        let rttm = sandbox.read("talk.rttm");
        let channel = |line: &str| line.split(' ').nth(2).map(str::to_owned);
        let found: std::collections::BTreeSet<_> = rttm.lines().filter_map(channel).collect();
        assert_eq!(found.len(), if channels == "separate" { 2 } else { 1 }, "{rttm}");

        // Found later, they are the same.
        run(&sandbox, &["speakers", "talk.json", "talk.flac", "--format", "rttm", "--output", "later"])
            .ends(0);
        assert_eq!(sandbox.read("later/talk.rttm"), rttm);
    }
    assert!(right * 100 >= all * 97, "{right} of {all} words");
}

/// The same as with `transcribe --speakers`, without transcribing again.
#[test]
fn speakers_of_a_finished_transcript_are_found() {
    let sandbox = sandbox_with_conversation("a.flac");
    run(&sandbox, &["transcribe", "a.flac", "--format", "json", "--reproducible"]).ends(0);
    let plain = sandbox.read("a.json");
    let at_once = ["transcribe", "a.flac", "--speakers", "--format", "json", "--output", "there"];
    run(&sandbox, &at_once).ends(0);
    // Into other files.
    let arguments = ["speakers", "a.json", "a.flac", "--format", "json,txt", "--output", "other"];
    let told = run(&sandbox, &arguments).ends(0);
    assert!(told.err.contains("identifying speakers") && told.err.contains("written to"), "{}", told.err);
    run(&sandbox, &arguments).ends(1).says("a.json");
    let quiet = run(&sandbox, &[&arguments[..], &["--force", "--quiet"]].concat()).ends(0);
    assert_eq!(quiet.err, "");
    assert_eq!(sandbox.read("a.json"), plain, "the transcript stays");
    let segments = |path: &str| {
        let json: Value = serde_json::from_str(&sandbox.read(path)).unwrap();
        (json["segments"].clone(), json["turns"].clone(), json["settings"].clone())
    };
    assert_eq!(segments("other/a.json").0, segments("there/a.json").0);
    assert_eq!(segments("other/a.json").1, segments("there/a.json").1);
    assert!(sandbox.read("other/a.txt").contains("Speaker 2: "));
    // In place.
    run(&sandbox, &["speakers", "a.json", "a.flac"]).ends(0);
    assert_eq!(segments("a.json").0, segments("there/a.json").0);
    // What is wrong is said, and the transcript stays.
    let before = sandbox.read("a.json");
    run(&sandbox, &["speakers", "a.json", "missing.flac"]).ends(1).says("missing.flac");
    run(&sandbox, &["speakers", "a.flac", "a.flac"]).ends(1).says("a.flac");
    std::fs::copy(project().join("tests/data/sample.flac"), sandbox.path("other.flac")).unwrap();
    for command in ["speakers", "translate"] {
        // English is not translated, so that there is nothing to be wrong.
        let foreign = before.replacen(r#""language": "en""#, r#""language": "de""#, 1);
        std::fs::write(sandbox.path("a.json"), &foreign).unwrap();
        let told = run(&sandbox, &[command, "a.json", "other.flac"]).ends(1);
        let told = told.says("The transcript is of another recording: a.flac");
        // Its length says so, before hours of work.
        assert!(!told.err.contains("transcribing") && !told.err.contains("identifying"), "{}", told.err);
        assert_eq!(sandbox.read("a.json"), foreign);
    }
}

#[test]
fn original_and_english_are_written_together() {
    let sandbox = Sandbox::with(&[]);
    let german = project().join("tests/data/corpus/audio/synthetic/de_half_minute_1.flac");
    std::fs::copy(german, sandbox.path("a.flac")).unwrap();
    let common = ["transcribe", "a.flac", "--language", "de", "--format", "json,srt,txt"];
    run(&sandbox, &[&common[..], &["--output", "plain"]].concat()).ends(0);
    let told = run(&sandbox, &[&common[..], &["--bilingual", "--output", "both"]].concat()).ends(0);
    let segments = |path: &str| -> Vec<Value> {
        let json: Value = serde_json::from_str(&sandbox.read(path)).unwrap();
        json["segments"].as_array().unwrap().clone()
    };
    let (plain, both) = (segments("plain/a.json"), segments("both/a.json"));
    // What was said stays as it is, and has English beside it.
    let texts = |of: &[Value]| of.iter().map(|one| one["text"].clone()).collect::<Vec<_>>();
    assert_eq!(texts(&plain), texts(&both));
    assert!(plain.iter().all(|segment| segment["translation"].is_null()));
    let translated = both.iter().filter_map(|segment| segment["translation"].as_str()).collect::<Vec<_>>();
    assert!(!translated.is_empty(), "{}", told.err);
    // Original first, in every format that has both.
    for (path, cue) in [("both/a.srt", 3), ("both/a.txt", 2)] {
        let text = sandbox.read(path);
        let first = both.iter().find(|segment| segment["translation"].is_string()).unwrap();
        let lines =
            format!("{}\n{}\n", first["text"].as_str().unwrap(), first["translation"].as_str().unwrap());
        assert!(text.contains(&lines) && text.lines().count() > cue, "{path}: {text}");
    }
    // The starter model is no translator: its English may be what was said.
    assert!(sandbox.read("plain/a.srt").lines().count() < sandbox.read("both/a.srt").lines().count());

    // The same for a transcript that is there already.
    let later = ["translate", "plain/a.json", "a.flac", "--format", "srt", "--output", "later"];
    run(&sandbox, &later).ends(0).says("written to");
    run(&sandbox, &later).ends(1).says("a.srt");
    let quiet = run(&sandbox, &[&later[..], &["--force", "--quiet"]].concat()).ends(0);
    assert!(!quiet.err.contains("written to"), "{}", quiet.err);
    assert_eq!(sandbox.read("later/a.srt"), sandbox.read("both/a.srt"));
    assert!(segments("plain/a.json").iter().all(|segment| segment["translation"].is_null()));
    let without = ["export", "plain/a.json", "--format", "srt", "--output", "-"];
    run(&sandbox, &[&without[..], &["--bilingual"]].concat()).ends(1).says("has no translation");
    let turns = ["export", "plain/a.json", "--format", "rttm", "--output", "-"];
    run(&sandbox, &turns).ends(1).says("has no speakers");
    run(&sandbox, &["transcribe", "a.flac", "--format", "rttm"]).ends(2).says("add --speakers");
    run(&sandbox, &["translate", "plain/a.json", "a.flac"]).ends(0);
    assert_eq!(segments("plain/a.json"), both);
    let exported = ["export", "plain/a.json", "--format", "srt", "--output", "-"];
    assert_eq!(run(&sandbox, &exported).ends(0).out, sandbox.read("plain/a.srt"));
    let both = run(&sandbox, &[&exported[..], &["--bilingual"]].concat()).ends(0).out;
    assert_eq!(both, sandbox.read("both/a.srt"));
    run(&sandbox, &["translate", "plain/a.json", "missing.flac"]).ends(1).says("missing.flac");
    run(&sandbox, &["transcribe", "a.flac", "--bilingual", "--translate"]).ends(2);
}

#[test]
fn a_part_is_saved_as_sound() {
    let sandbox = sandbox_with_sample("talk.flac");
    run(&sandbox, &["clip", "talk.flac", "part.wav", "--from", "0:01", "--to", "3"]).ends(0).says("part.wav");
    assert!(std::fs::read(sandbox.path("part.wav")).unwrap().starts_with(b"RIFF"));
    let film = project().join("crates/audio/tests/fixtures/two_tracks_24000.mkv");
    std::fs::copy(film, sandbox.path("film.mkv")).unwrap();
    let tracks = ["1", "2"].map(|track| {
        let part = format!("track{track}.wav");
        run(&sandbox, &["clip", "film.mkv", &part, "--from", "0", "--track", track]).ends(0);
        std::fs::read(sandbox.path(&part)).unwrap()
    });
    assert_ne!(tracks[0], tracks[1]);
    run(&sandbox, &["clip", "film.mkv", "b.wav", "--track", "3"]).ends(1).says("it has 2");
    run(&sandbox, &["clip", "film.mkv", "b.wav", "--track", "0"]).ends(2).says("numbered 1, 2");
    run(&sandbox, &["clip", "talk.flac", "part.wav", "--from", "1"]).ends(1).says("--force");
    run(&sandbox, &["clip", "talk.flac", "part.wav", "--from", "1", "--force"]).ends(0);
    run(&sandbox, &["clip", "talk.flac", "b.wav", "--from", "9", "--to", "3"]).ends(2).says("--to");
    run(&sandbox, &["clip", "talk.flac", "b.wav", "--from", "2:00:00"]).ends(1).says("ends after");
    assert!(!sandbox.path("b.wav").exists());
}

/// What one speaker of a conversation says alone before or after a moment, as a recording.
fn speech_of(sandbox: &Sandbox, speaker: &str, times: std::ops::Range<f64>, name: &str) {
    let folder = project().join("tests/data/corpus/audio/conversations");
    let go_on = &mut |_: f64, _: Option<f64>| std::ops::ControlFlow::Continue(());
    let options = audio::PrepareOptions { vad: None, ..audio::PrepareOptions::default() };
    let recording = audio::prepare(&folder.join("two_speakers.flac"), &options, go_on).unwrap();
    let mut samples = Vec::new();
    for (start, end, who) in read_rttm(&folder.join("two_speakers.rttm")) {
        if who == speaker && times.contains(&start) {
            let mut turn = vec![0.0; ((end - start) * 16_000.0) as usize];
            recording.pcm.read((start * 16_000.0) as i64, &mut turn).unwrap();
            samples.extend(turn);
        }
    }
    let data: Vec<u8> = samples.iter().flat_map(|x| ((x * 32_767.0) as i16).to_le_bytes()).collect();
    std::fs::write(sandbox.path(name), wav(&data)).unwrap();
}

/// Enrolled from what they say in the first 40 seconds, found in all of it. Names stand in every format.
#[test]
fn people_who_were_added_are_named() {
    let sandbox = sandbox_with_conversation("a.flac");
    speech_of(&sandbox, "2414", 0.0..40.0, "anna.wav");
    speech_of(&sandbox, "2033", 0.0..40.0, "ben 1.wav");
    speech_of(&sandbox, "2033", 40.0..600.0, "ben 2.wav");
    let listed = || run(&sandbox, &["voices", "list"]).ends(0).out;
    assert_eq!(listed(), "");
    run(&sandbox, &["voices", "add", "Anna", "anna.wav"]).ends(0).says("Anna: anna.wav, ");
    // Several samples; the first file that has no voice in it costs the others nothing.
    std::fs::write(sandbox.path("silence.wav"), wav(&[0; 64_000])).unwrap();
    run(&sandbox, &["voices", "add", "Ben", "ben 1.wav", "silence.wav"]).ends(1).says("silence.wav");
    run(&sandbox, &["voices", "add", "Ben", "missing.wav"]).ends(1).says("missing.wav");
    assert_eq!(listed().lines().count(), 1);
    run(&sandbox, &["voices", "add", "Ben", "ben 1.wav", "ben 2.wav"]).ends(0);
    assert!(listed().contains("Ben: 2 samples, "), "{}", listed());
    let shown = run(&sandbox, &["voices", "show", "Ben"]).ends(0).out;
    assert!(shown.contains("1. ben 1.wav, ") && shown.contains(" % similar to the other samples"), "{shown}");
    run(&sandbox, &["voices", "show", "Carl"]).ends(1).says("Carl");

    run(&sandbox, &["transcribe", "a.flac", "--speakers", "--format", "txt,rttm,json"]).ends(0);
    let names = |file: &str| (sandbox.read(file).contains("Anna"), sandbox.read(file).contains("Ben"));
    for file in ["a.txt", "a.rttm", "a.json"] {
        assert_eq!(names(file), (true, true), "{file}: {}", sandbox.read(file));
        assert!(!sandbox.read(file).contains("Speaker 1"), "{file}");
    }
    // Nothing of how they sound is in a transcript.
    assert!(!sandbox.read("a.json").contains("vector"));
    let expected = project().join("tests/data/corpus/audio/conversations/two_speakers.rttm");
    let mut expected = read_rttm(&expected);
    for turn in &mut expected {
        turn.2 = if turn.2 == "2414" { "Anna".into() } else { "Ben".into() };
    }
    let found = parse_rttm(&sandbox.read("a.rttm"));
    for name in ["Anna", "Ben"] {
        let of = |turns: &[random_models::diarization::Turn]| {
            turns.iter().filter(|turn| turn.2 == name).map(|turn| turn.1 - turn.0).sum::<f64>()
        };
        let common: f64 = expected
            .iter()
            .filter(|turn| turn.2 == name)
            .flat_map(|a| {
                found.iter().filter(|b| b.2 == name).map(|b| (a.1.min(b.1) - a.0.max(b.0)).max(0.0))
            })
            .sum();
        assert!(common > 0.8 * of(&expected), "{name}: {common} s of {}", of(&expected));
    }

    // To another computer, and away.
    run(&sandbox, &["voices", "export", "--output", "voices.json", "Ben"]).ends(0);
    run(&sandbox, &["voices", "export", "--output", "voices.json"]).ends(1).says("voices.json");
    run(&sandbox, &["voices", "export", "--output", "voices.json", "--force", "Ben"]).ends(0);
    let json: Value =
        serde_json::from_str(&run(&sandbox, &["voices", "list", "--json"]).ends(0).out).unwrap();
    assert_eq!((&json[0]["name"], &json[1]["samples"]), (&Value::from("Anna"), &Value::from(2)));
    run(&sandbox, &["voices", "rename", "Anna", "Ben"]).ends(1).says("Ben");
    run(&sandbox, &["voices", "rename", "Anna", "Änne"]).ends(0);
    run(&sandbox, &["voices", "remove", "Ben", "--sample", "2"]).ends(0);
    assert!(listed().contains("Ben: 1 sample, "), "{}", listed());
    run(&sandbox, &["voices", "remove", "Ben"]).ends(0).says("Ben was deleted");
    run(&sandbox, &["voices", "remove", "Ben"]).ends(1).says("Ben");
    run(&sandbox, &["voices", "import", "a.json"]).ends(1).says("a.json");
    run(&sandbox, &["voices", "import", "voices.json"]).ends(0);
    assert!(listed().contains("Ben: 2 samples, ") && listed().contains("Änne"), "{}", listed());
}

/// The transcript is complete, with numbers.
#[test]
fn a_damaged_file_of_voices_costs_names_alone() {
    let sandbox = sandbox_with_conversation("a.flac");
    speech_of(&sandbox, "2414", 0.0..20.0, "anna.wav");
    run(&sandbox, &["voices", "add", "Anna", "anna.wav"]).ends(0);
    let file = find(sandbox.home.path(), "voices.sqlite").unwrap();
    std::fs::write(&file, "no voices").unwrap();
    run(&sandbox, &["voices", "list"]).ends(1).says("voices.sqlite").says("damaged");
    run(&sandbox, &["transcribe", "a.flac", "--speakers", "--format", "txt"])
        .ends(0)
        .says("numbers instead of names");
    assert!(sandbox.read("a.txt").contains("Speaker 2: "));
    assert_eq!(std::fs::read(&file).unwrap(), b"no voices");
}

/// The file of that name in a folder or below.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

/// Times stay those of the recording, and nothing outside is written.
#[test]
fn a_part_of_a_recording_is_transcribed_alone() {
    let sandbox = sandbox_with_sample("a.flac");
    let ran = ["transcribe", "a.flac", "--from", "2", "--to", "5.5", "--format", "json"];
    run(&sandbox, &ran).ends(0);
    let json: Value = serde_json::from_str(&sandbox.read("a.json")).unwrap();
    let segments = json["segments"].as_array().unwrap();
    assert!(!segments.is_empty());
    for segment in segments {
        let (start, end) = (segment["start"].as_f64().unwrap(), segment["end"].as_f64().unwrap());
        assert!(2.0 <= start && start < end && end <= 5.5, "{start} to {end}");
    }
    assert_eq!(json["settings"]["span"]["start"], 2.0);
    run(&sandbox, &["transcribe", "a.flac", "--from", "5", "--to", "2"]).ends(2).says("later than --from");
}

#[test]
fn the_sample_becomes_its_text_in_every_format() {
    let sandbox = sandbox_with_sample("sämple 1.flac");
    let ran = run(&sandbox, &["transcribe", "sämple 1.flac", "--format", "txt,srt,vtt,json"]).ends(0);
    ran.says("Demonstration model").says("written to");
    let txt = sandbox.read("sämple 1.txt");
    let (banner, text) = txt.split_once('\n').unwrap();
    assert!(banner.starts_with("[Demonstration model"), "{banner}");
    check_text(text);
    let srt = sandbox.read("sämple 1.srt");
    check_text(&srt.lines().filter(|line| line.ends_with(['.', '?', '!'])).collect::<Vec<_>>().join(" "));

    // Times lie within the recording, words within their segments.
    let json: Value = serde_json::from_str(&sandbox.read("sämple 1.json")).unwrap();
    let duration = json["source"]["duration"].as_f64().unwrap();
    let mut before = 0.0;
    for segment in json["segments"].as_array().unwrap() {
        let (start, end) = (segment["start"].as_f64().unwrap(), segment["end"].as_f64().unwrap());
        assert!(before <= start && start < end && end <= duration, "{segment}");
        assert!(!segment["words"].as_array().unwrap().is_empty());
        for word in segment["words"].as_array().unwrap() {
            assert!(
                start <= word["start"].as_f64().unwrap() && word["end"].as_f64().unwrap() <= end,
                "{word}"
            );
        }
        before = end;
    }
    assert_eq!(json["language"], "en");

    // What was saved converts to the same files.
    run(&sandbox, &["export", "sämple 1.json", "-f", "srt,txt,vtt", "-o", "again"]).ends(0);
    for ending in ["srt", "txt", "vtt"] {
        assert_eq!(
            sandbox.read(&format!("again/sämple 1.{ending}")),
            sandbox.read(&format!("sämple 1.{ending}"))
        );
    }
}

#[test]
fn two_runs_write_the_same_bytes() {
    let sandbox = sandbox_with_sample("sample.flac");
    for folder in ["1", "2"] {
        run(&sandbox, &["transcribe", "sample.flac", "-f", "json,srt", "--reproducible", "-o", folder])
            .ends(0);
    }
    assert_eq!(sandbox.read("1/sample.json"), sandbox.read("2/sample.json"));
    assert_eq!(sandbox.read("1/sample.srt"), sandbox.read("2/sample.srt"));
}

#[test]
fn broken_files_between_good_ones() {
    let sandbox = sandbox_with_sample("a.flac");
    std::fs::copy(sandbox.path("a.flac"), sandbox.path("z.flac")).unwrap();
    sandbox.write("empty.wav", "");
    sandbox.write("text.mp3", "Not a recording at all, only some text under the wrong name.\n");
    let files = ["a.flac", "empty.wav", "text.mp3", "missing.ogg", "z.flac"];
    let ran = run(&sandbox, &[&["transcribe", "-f", "txt"], files.as_slice()].concat()).ends(1);
    assert_eq!(sandbox.names(), ["a.flac", "a.txt", "empty.wav", "text.mp3", "z.flac", "z.txt"]);
    for name in ["empty.wav", "text.mp3", "missing.ogg"] {
        let line = ran.err.lines().find(|line| line.starts_with(&format!("steno: {name}: ")));
        // What is wrong and what to do: two sentences at least.
        assert!(line.is_some_and(|line| line.matches(". ").count() >= 1), "{name}:\n{}", ran.err);
    }
    check_text(sandbox.read("z.txt").split_once('\n').unwrap().1);
}

#[test]
fn json_events_tell_the_whole_story() {
    let sandbox = sandbox_with_sample("sample.flac");
    let ran = run(&sandbox, &["transcribe", "sample.flac", "--json-events"]).ends(0);
    let events: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let place_of = |kind| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(kinds[0] == "queued" && place_of("started") < place_of("segment"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"finished"));
    assert!(events.iter().all(|event| event["job"] == 1));
    let help = run(&sandbox, &["transcribe", "--help"]).ends(0).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for kind in &kinds {
        assert!(
            help.contains(&format!("{kind} (")) || help.contains(&format!(" {kind},")),
            "--help omits {kind}"
        );
    }
    let texts = |segments: Vec<&Value>| -> Vec<String> {
        segments.iter().map(|segment| segment["text"].as_str().unwrap().to_string()).collect()
    };
    let live = events.iter().filter(|event| event["event"] == "segment").map(|event| &event["segment"]);
    let last = events.last().unwrap()["transcript"]["segments"].as_array().unwrap();
    assert_eq!(texts(live.collect()), texts(last.iter().collect()));
}

#[test]
fn which_of_several_audio_tracks_is_taken_is_said() {
    let sandbox = Sandbox::with(&[]);
    let fixture = project().join("crates/audio/tests/fixtures/two_tracks_24000.mkv");
    std::fs::copy(fixture, sandbox.path("film.mkv")).unwrap();
    let said =
        "film.mkv: The file has 2 audio tracks; track 2 (deu) is transcribed. Use --track N for another one";
    run(&sandbox, &["transcribe", "film.mkv"]).ends(0).says(said);
    let chosen = run(&sandbox, &["transcribe", "film.mkv", "--track", "1"]).ends(0);
    assert!(!chosen.err.contains("audio tracks"), "{}", chosen.err);
}

#[test]
fn a_part_beyond_the_end_is_an_error() {
    let sandbox = sandbox_with_sample("sample.flac");
    let ran = run(&sandbox, &["transcribe", "sample.flac", "--from", "1:00"]).ends(1);
    ran.says("sample.flac: The recording ends after 7.8 s, before the part to transcribe begins (60.0 s).");
    run(&sandbox, &["transcribe", "sample.flac", "--from", "5", "--to", "1:00"]).ends(0);
}

#[test]
fn the_language_is_detected() {
    let sandbox = sandbox_with_sample("sample.flac");
    let ran = run(&sandbox, &["detect-language", "sample.flac", "missing.flac"]).ends(1);
    assert!(ran.out.starts_with("sample.flac: en "), "{}", ran.out);
    ran.says("steno: missing.flac: ");
}

#[test]
fn an_unknown_language_is_refused_with_the_known_ones() {
    let sandbox = sandbox_with_sample("sample.flac");
    run(&sandbox, &["transcribe", "sample.flac", "--language", "xx"]).ends(1).says("steno: ").says("xx");
}

#[test]
fn the_doctor_knows_the_machine() {
    let sandbox = Sandbox::with(&[]);
    let ran = run(&sandbox, &["doctor"]).ends(0);
    for part in ["cpu", "FLAC", "ffmpeg", "candle", "starter-whisper"] {
        assert!(ran.out.contains(part), "no {part} in:\n{}", ran.out);
    }
}

/// The sample again and again, as 16-bit wav.
#[cfg(unix)]
fn long_recording(path: &Path, times: usize) {
    let sample = project().join("tests/data/sample.flac");
    let mut reader = audio::Reader::open(&sample, &Default::default()).unwrap();
    let mut data = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        data.extend(block.iter().flat_map(|sample| ((sample * 32_767.0) as i16).to_le_bytes()));
    }
    let data = data.repeat(times);
    let length = data.len() as u32;
    let mut wav = Vec::new();
    wav.extend(b"RIFF");
    wav.extend((36 + length).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16u32.to_le_bytes());
    // PCM, one channel, samples and bytes per second, bytes and bits per sample.
    for (value, bytes) in [(1u32, 2), (1, 2), (16_000, 4), (32_000, 4), (2, 2), (16, 2)] {
        wav.extend(&value.to_le_bytes()[..bytes]);
    }
    wav.extend(b"data");
    wav.extend(length.to_le_bytes());
    wav.extend(data);
    std::fs::write(path, wav).unwrap();
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_soon_and_keeps_the_text() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let sandbox = Sandbox::with(&[]);
    // Ten minutes of speech: far more than can be done before the signal.
    long_recording(&sandbox.path("long.wav"), 80);
    let mut command = real(&sandbox, &["transcribe", "long.wav", "--json-events", "-f", "srt"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"event\":\"segment\"") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended without a segment");
    }
    let asked = Instant::now();
    // SAFETY: the child has not been waited for, so the number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // One second for the job, two for an orderly end, and a slow machine.
    assert!(asked.elapsed() < Duration::from_secs(6), "{:?}", asked.elapsed());
    assert_eq!(sandbox.names(), ["long.partial.json", "long.wav"]);
    let exported = run(&sandbox, &["export", "long.partial.json", "-f", "txt", "-o", "-"]).ends(0);
    assert!(exported.out.lines().count() > 1, "{}", exported.out);
}

#[test]
fn a_model_is_tried_out_and_its_memory_is_told_stage_by_stage() {
    let sandbox = Sandbox::with(&[]);
    let ran = run(&sandbox, &["doctor", "--fit", "starter-whisper"]).ends(0);
    let bytes = |name: &str| -> Vec<f64> {
        let line =
            ran.out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{}", ran.out));
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        words.windows(2).filter(|pair| pair[1] == "MB").map(|pair| pair[0].parse().unwrap()).collect()
    };
    // Predicted and used, in MB.
    for stage in ["speech model", "transcription"] {
        let found = bytes(stage);
        assert!(found.len() == 2 && found.iter().all(|megabytes| *megabytes > 10.0), "{stage}: {found:?}");
    }
    assert!(ran.out.ends_with("It fits, 4 windows at once.\n"), "{}", ran.out);
    // Nothing is left of the signal that it was tried with.
    assert!(sandbox.names().is_empty());

    // A limit that nothing fits into.
    let ran = run(&sandbox, &["doctor", "--fit", "starter-whisper", "--memory-limit", "1MiB"]).ends(1);
    assert!(ran.out.ends_with("It does not fit, not even one window at a time.\n"), "{}", ran.out);
    ran.says("There is not enough memory for 1 window at once.");
}

#[test]
fn a_quantised_copy_of_a_model_is_one_more_model() {
    let sandbox = sandbox_with_sample("talk.flac");
    let made = run(&sandbox, &["models", "quantize", "starter-whisper", "--to", "q4_k", "--json"]).ends(0);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    // Rows of 192 weights are no whole number of blocks of 256.
    assert!(!made["kept"].as_array().unwrap().is_empty(), "{made}");
    let original = std::fs::metadata(project().join("models/starter-whisper/model.safetensors")).unwrap();
    assert!(made["bytes"].as_u64().unwrap() < original.len() / 2, "{made}");
    let listed = run(&sandbox, &["models"]).ends(0).out;
    assert!(listed.contains("starter-whisper-q4_k "), "{listed}");
    let text = run(&sandbox, &["transcribe", "talk.flac", "--model", "starter-whisper-q4_k"]).ends(0).out;
    assert!(text.split_whitespace().count() > 10, "{text}");

    run(&sandbox, &["models", "quantize", "starter-whisper", "--to", "q4_k"])
        .ends(1)
        .says("A model named starter-whisper-q4_k already exists.")
        .says("or remove it first: `steno models remove starter-whisper-q4_k`.");
    run(&sandbox, &["models", "quantize", "nobody"]).ends(1).says("There is no model named");
    run(&sandbox, &["models", "quantize", "starter-whisper", "--to", "q9"]).ends(2);
}

/// Like one that was downloaded, wherever in the model folder it was asked for.
#[test]
fn a_copy_is_verified_moved_and_removed() {
    let sandbox = sandbox_with_sample("talk.flac");
    let store = sandbox.home.path().join("steno/models");
    let named = store.join("mine");
    run(&sandbox, &["models", "quantize", "starter-whisper"]).ends(0);
    run(&sandbox, &["models", "quantize", "starter-whisper", "--output", named.to_str().unwrap()]).ends(0);
    let verified = run(&sandbox, &["models", "verify"]).ends(0).out;
    assert!(verified.contains("starter-whisper-q8_0: unchanged"), "{verified}");
    assert!(verified.contains("mine: unchanged"), "{verified}");

    run(&sandbox, &["models", "move", "elsewhere"]).ends(0);
    let moved = sandbox.path("elsewhere/starter-whisper-q8_0");
    assert!(moved.join("model.gguf").is_file() && !named.exists());
    // The next copy goes where the models are now.
    run(&sandbox, &["models", "quantize", "starter-whisper", "--to", "f16"]).ends(0);
    assert!(sandbox.path("elsewhere/starter-whisper-f16/model.gguf").is_file());
    run(&sandbox, &["transcribe", "talk.flac", "--model", "mine"]).ends(0);

    let mut weights = std::fs::read(moved.join("model.gguf")).unwrap();
    *weights.last_mut().unwrap() ^= 1;
    std::fs::write(moved.join("model.gguf"), weights).unwrap();
    let damaged = run(&sandbox, &["models", "verify", "starter-whisper-q8_0"]).ends(1).out;
    assert!(damaged.contains("model.gguf: Its checksum has changed."), "{damaged}");
    run(&sandbox, &["models", "verify", "starter-whisper-q8_0", "--repair"])
        .ends(1)
        .says("make it again: `steno models quantize starter-whisper --to q8_0`");

    run(&sandbox, &["models", "remove", "starter-whisper-q8_0", "mine", "starter-whisper-f16"]).ends(0);
    assert!(!moved.exists() && !sandbox.path("elsewhere/mine").exists());

    // One that was put there by hand.
    let by_hand = sandbox.path("elsewhere/by-hand");
    std::fs::create_dir_all(&by_hand).unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(project().join("models/starter-whisper").join(name), by_hand.join(name)).unwrap();
    }
    run(&sandbox, &["models", "remove", "by-hand"]).ends(1).says("Delete its folder to remove it.");
}

#[test]
fn a_job_leaves_a_log_of_its_memory_that_can_be_read_back() {
    let sandbox = sandbox_with_sample("talk.flac");
    run(&sandbox, &["transcribe", "talk.flac", "--quiet"]).ends(0);
    let logs: Vec<PathBuf> = std::fs::read_dir(sandbox.home.path().join("steno/memory"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let text = std::fs::read_to_string(&logs[0]).unwrap();
    for line in text.lines() {
        assert!(memory::log::parse(line).is_some(), "{line:?}");
    }
    for part in ["[Host Memory] Pipeline Start: ", "] After Speech Model Load: ", "] Final Cleanup: "] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn the_speed_of_this_machine_is_learnt_and_told() {
    let sandbox = sandbox_with_sample("talk.flac");
    let probed = run(&sandbox, &["models", "probe", "--model", "starter-whisper", "--json"]).ends(0);
    let probed: Value = serde_json::from_str(&probed.out).unwrap();
    assert_eq!((&probed["model"], &probed["device"]), (&"starter-whisper".into(), &"the CPU".into()));
    assert!(probed["speed"].as_f64().unwrap() > 0.1, "{probed}");
    let useful = probed["useful_batch"].as_u64().unwrap();
    assert!([1, 2, 4, 8].contains(&useful), "{probed}");
    let recommended = run(&sandbox, &["models", "recommend", "--json"]).ends(0);
    let recommended: Value = serde_json::from_str(&recommended.out).unwrap();
    let cpu = recommended["devices"].as_array().unwrap().last().unwrap();
    let speed = |model: &str| {
        let choices = cpu["choices"].as_array().unwrap();
        let choice = choices.iter().find(|it| it["model"] == model && it["precision"] == "f32");
        choice.unwrap()["speed"].as_f64().unwrap()
    };
    assert!(speed("whisper-tiny") > 5.0 * speed("whisper-large-v3"));
}

/// A Nemotron tells speakers apart in place of the networks in the program, the same each time; voices
/// are those of the networks in the program.
#[test]
fn an_installed_nemotron_tells_speakers_apart() {
    let sandbox = sandbox_with_conversation("a.flac");
    let source = project().join("tests/data/corpus/reference/speakers/nemotron/model");
    run(&sandbox, &["models", "import", source.to_str().unwrap(), "--name", "mine"]).ends(0);
    let listed = run(&sandbox, &["models", "list"]).ends(0).out;
    assert!(listed.contains("mine") && listed.contains("Identifies speakers"), "{listed}");
    run(&sandbox, &["transcribe", "a.flac", "--model", "mine"]).ends(1).says("it can't transcribe");
    let turns = |options: &[&str]| {
        let speakers = if options.contains(&"--max-speakers") { &[][..] } else { &["--speakers"] };
        let options = [speakers, options].concat();
        let base = ["transcribe", "a.flac", "--format", "json", "--force"];
        run(&sandbox, &[&base, options.as_slice()].concat()).ends(0);
        serde_json::from_str::<Value>(&sandbox.read("a.json")).unwrap()["turns"].clone()
    };
    let installed = turns(&["--speaker-model", "mine"]);
    assert_ne!(installed, turns(&[]));
    assert_eq!(turns(&["--speaker-model", source.to_str().unwrap()]), installed);
    let names = |turns: &Value| {
        let turns = turns.as_array().unwrap();
        turns.iter().map(|turn| turn["speaker"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(names(&installed).len() > 2, "{installed}");
    assert_eq!(names(&turns(&["--speaker-model", "mine", "--max-speakers", "2"])).len(), 2);

    speech_of(&sandbox, "2414", 0.0..60.0, "anna.wav");
    run(&sandbox, &["voices", "add", "Anna", "anna.wav", "--speaker-model", "mine"]).ends(0);
    assert!(turns(&[]).to_string().contains("Anna"));

    let listed: Value =
        serde_json::from_str(&run(&sandbox, &["models", "list", "--json"]).ends(0).out).unwrap();
    let mine = listed.as_array().unwrap().iter().find(|model| model["name"] == "mine").unwrap();
    let config = Path::new(mine["path"].as_str().unwrap()).join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"gelu\"", "\"silu\"")).unwrap();
    run(&sandbox, &["transcribe", "a.flac", "--speakers", "--force", "--speaker-model", "mine"])
        .ends(1)
        .says("mine");
    run(&sandbox, &["models", "remove", "mine"]).ends(0);
}

/// A speaker model from pyannote's checkpoints is imported, used in place of the networks in the
/// program, verified and removed; a voice is known to the network that it was added with alone.
#[test]
fn an_installed_model_tells_speakers_apart() {
    let sandbox = sandbox_with_conversation("a.flac");
    let source = project().join("tests/data/corpus/reference/speakers/community/model");
    run(&sandbox, &["models", "import", source.to_str().unwrap(), "--name", "mine"]).ends(0);
    let listed = run(&sandbox, &["models", "list"]).ends(0).out;
    assert!(listed.contains("mine") && listed.contains("Identifies speakers"), "{listed}");
    // It is no model to transcribe with.
    run(&sandbox, &["transcribe", "a.flac", "--model", "mine"]).ends(1).says("it can't transcribe");

    let turns = |options: &[&str]| {
        let base = ["transcribe", "a.flac", "--speakers", "--format", "json", "--force"];
        run(&sandbox, &[&base, options].concat()).ends(0);
        serde_json::from_str::<Value>(&sandbox.read("a.json")).unwrap()["turns"].clone()
    };
    let bundled = turns(&[]);
    let installed = turns(&["--speaker-model", "mine"]);
    assert_ne!(installed, bundled);
    assert_eq!(turns(&["--speaker-model", source.to_str().unwrap()]), installed);
    // Its path is in no transcript.
    assert!(!sandbox.read("a.json").contains("community/model"));

    speech_of(&sandbox, "2414", 0.0..60.0, "anna.wav");
    run(&sandbox, &["voices", "add", "Anna", "anna.wav", "--speaker-model", "mine"]).ends(0);
    run(&sandbox, &["voices", "export", "--output", "voices.json"]).ends(0);
    assert!(sandbox.read("voices.json").contains("\"wespeaker-"));
    assert!(!turns(&[]).to_string().contains("Anna"));

    let listed: Value =
        serde_json::from_str(&run(&sandbox, &["models", "list", "--json"]).ends(0).out).unwrap();
    let mine = listed.as_array().unwrap().iter().find(|model| model["name"] == "mine").unwrap();
    let file = Path::new(mine["path"].as_str().unwrap()).join("embedding/pytorch_model.bin");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    run(&sandbox, &["transcribe", "a.flac", "--speakers", "--force", "--speaker-model", "mine"])
        .ends(1)
        .says("mine");
    let verified = run(&sandbox, &["models", "verify", "mine"]).ends(1).out;
    assert!(verified.contains("embedding/pytorch_model.bin"), "{verified}");
    run(&sandbox, &["models", "remove", "mine"]).ends(0);
    run(&sandbox, &["transcribe", "a.flac", "--speakers", "--force", "--speaker-model", "mine"])
        .ends(1)
        .says("There is no speaker model named \"mine\"");
}
