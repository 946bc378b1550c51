//! `steno adapt` and `steno adapters`, with the scripted engine for what reaches it and the real one for the rest.

use std::path::PathBuf;
use std::process::Command;

use formats::{AdapterCard, AdapterFile, AdapterMatrix, fingerprint};
use serde_json::{Value, json};

use crate::support::{Ran, Sandbox, project, real_engine};

fn starter() -> PathBuf {
    project().join("models/starter-whisper")
}

/// In a home of its own: adapters lie in the user's data.
fn at_home(sandbox: &Sandbox, mut command: Command) -> Command {
    command.env("HOME", sandbox.home.path()).env("XDG_DATA_HOME", sandbox.home.path().join("data"));
    command
}

fn real(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    at_home(sandbox, sandbox.command_with(&real_engine(), arguments)).output().unwrap().into()
}

/// With the bundled sample and its text, in two parts.
fn with_sample() -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::create_dir(sandbox.path("talks")).unwrap();
    for ending in ["flac", "json"] {
        let from = project().join(format!("tests/data/sample.{ending}"));
        std::fs::copy(from, sandbox.path(format!("talks/sample.{ending}"))).unwrap();
    }
    sandbox
}

/// An adapter of the starter that adds `strength` times something to one matrix.
fn adapter(sandbox: &Sandbox, strength: f32) -> PathBuf {
    let wave = |count: usize| (0..count).map(|at| (at as f32 * 0.7).sin()).collect::<Vec<_>>();
    let matrix = AdapterMatrix {
        name: "model.decoder.layers.3.fc2".into(),
        output: 192,
        input: 768,
        a: wave(768),
        b: wave(192).into_iter().map(|value| value * strength).collect(),
    };
    let base = fingerprint(&starter()).unwrap();
    let card =
        AdapterCard { model: "starter-whisper".into(), base, rank: 1, alpha: 1.0, ..AdapterCard::default() };
    let path = sandbox.path("made.safetensors");
    AdapterFile { path: path.clone(), card, matrices: vec![matrix], ..AdapterFile::default() }
        .write()
        .unwrap();
    path
}

#[test]
fn options_of_adapt_reach_the_engine() {
    let sandbox = with_sample();
    std::fs::copy(sandbox.path("talks/sample.flac"), sandbox.path("other.flac")).unwrap();
    sandbox.write("other.txt", "Something else.");
    let asked = |options: &[&str]| -> Value {
        let note = sandbox.path("asked.jsonl");
        let _ = std::fs::remove_file(&note);
        let base = ["adapt", starter().to_str().unwrap(), "--folder", "talks"].map(str::to_owned);
        let arguments: Vec<&str> = base.iter().map(String::as_str).chain(options.iter().copied()).collect();
        let mut command = at_home(&sandbox, sandbox.command(&arguments));
        // The scripted engine learns nothing: the command fails after it was asked.
        Ran::from(command.env("STENO_SCRIPT_JOBS", &note).output().unwrap()).ends(1);
        serde_json::from_str(std::fs::read_to_string(&note).unwrap().lines().next().unwrap()).unwrap()
    };
    let plain = asked(&[]);
    for (options, pointer, expected) in [
        (&["--epochs", "3"][..], "/adapt/settings/epochs", json!(3)),
        (&["--rank", "4"], "/adapt/settings/rank", json!(4)),
        (&["--encoder"], "/adapt/settings/encoder", json!(true)),
        (&["--rate", "0.002"], "/adapt/settings/rate", json!(0.002)),
        (&["--batch", "5"], "/adapt/settings/batch", json!(5)),
        (&["--seed", "9"], "/adapt/settings/seed", json!(9)),
        (&["--precision", "bf16"], "/adapt/settings/precision", json!("bf16")),
        (&["--precision", "f16"], "/adapt/job/alternatives/0/installed/precision", json!("f16")),
        (&["--memory-limit", "1GiB"], "/adapt/job/memory/memory_limit", json!(1u64 << 30)),
        (&["--ram-limit", "2GiB"], "/adapt/job/memory/ram_limit", json!(2u64 << 30)),
        (&["--threads", "1"], "/adapt/job/threads", json!(1)),
        (&["--device", "cpu"], "/adapt/job/device", json!("cpu")),
    ] {
        assert_ne!(plain.pointer(pointer), Some(&expected), "{options:?} would show nothing");
        assert_eq!(asked(options).pointer(pointer), Some(&expected), "{options:?}");
    }
    for (options, language) in [(&[][..], "en"), (&["--language", "de"], "de")] {
        let asked = asked(&[&["--pair", "other.flac", "other.txt"], options].concat());
        let lessons = asked["adapt"]["lessons"].as_array().unwrap();
        let pair = lessons.iter().find(|lesson| lesson["text"] == "Something else.").unwrap();
        assert_eq!(pair["language"], language, "{options:?}");
    }
    // Two corrections, of which one is held back.
    sandbox.write("third.txt", "Something else again.");
    let pairs = ["--pair", "other.flac", "other.txt", "--pair", "other.flac", "third.txt"];
    let beside = asked(&[&pairs[..], &["--beside", "talks"]].concat());
    let corrected = |asked: &Value| -> Vec<(String, bool)> {
        let lessons = asked["adapt"]["lessons"].as_array().unwrap();
        let one = |it: &Value| (it["text"].to_string(), it["corrected"].as_bool().unwrap());
        lessons.iter().map(one).collect()
    };
    assert!(corrected(&plain).iter().all(|(_, corrected)| *corrected));
    // Also those of --folder, where they lie in both.
    for (text, is_corrected) in corrected(&beside) {
        assert_eq!(is_corrected, text.contains("Something else"), "{text}");
    }
    assert!(plain["adapt"]["lessons"][0]["file"].as_str().unwrap().ends_with("sample.flac"));
    let held = |asked: &Value| {
        asked["adapt"]["lessons"].as_array().unwrap().iter().filter(|it| it["held_back"] == true).count()
    };
    assert_eq!(held(&plain), 1, "a tenth, at least one");
    let nice = |options: &[&str]| asked(options)["nice"].as_i64().unwrap();
    assert!(nice(&["--priority", "low"]) > nice(&["--priority", "normal"]));
}

#[test]
fn what_would_be_learnt_from_and_its_memory_are_said_beforehand() {
    let sandbox = with_sample();
    let model = starter();
    let adapt = |options: &[&str]| {
        real(&sandbox, &[&["adapt", model.to_str().unwrap(), "--dry-run"], options].concat())
    };
    let ran = adapt(&["--folder", "talks", "--compare", "talks"]).ends(0);
    let ran = ran.says("1 parts to learn from").says("1 other recordings to compare on");
    assert!(ran.out.contains("Predicted memory:"), "{}", ran.out);
    // How long it takes follows from how fast this machine is.
    assert!(ran.out.contains("steno models probe"), "{}", ran.out);
    let measured = json!([{
        "device": "the CPU",
        "precision": "f32",
        "dimensions": memory::Dimensions::of_public("tiny").unwrap(),
        "speed": 10.0,
    }]);
    let folder = sandbox.home.path().join("steno");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("speeds.json"), measured.to_string()).unwrap();
    let ran = adapt(&["--folder", "talks", "--device", "cpu"]).ends(0);
    assert!(ran.out.contains("Predicted time of training: about "), "{}", ran.out);
    adapt(&[]).ends(0).says("0 parts to learn from");
    assert!(adapt(&["--folder", "talks", "--quiet"]).ends(0).err.is_empty());
    sandbox.write("broken.json", "{}");
    adapt(&["--pair", "talks/sample.flac", "broken.json"]).ends(1).says("broken.json").says("no transcript");
    real(&sandbox, &["adapt", model.to_str().unwrap()]).ends(1).says("nothing to learn from").says("--pair");
}

#[test]
fn a_model_learns_from_a_recording_and_what_came_of_it_is_said() {
    let sandbox = with_sample();
    let model = starter();
    let arguments =
        ["adapt", model.to_str().unwrap(), "--folder", "talks", "--epochs", "2", "--name", "mine", "--json"];
    let told: Value = serde_json::from_str(&real(&sandbox, &arguments).ends(0).out).unwrap();
    let losses: Vec<f64> = told["losses"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    assert_eq!(losses.len(), 2, "a step per epoch: {told}");
    assert!(losses.iter().all(|loss| loss.is_finite() && *loss > 0.0), "{told}");
    // Before the first epoch and after each.
    assert_eq!(told["held_back"].as_array().unwrap().len(), 3, "{told}");
    let corrections = &told["figures"]["corrections"];
    let kept = corrections["after"].as_u64() < corrections["before"].as_u64();
    assert_eq!(told["kept"], json!(kept), "{told}");
    let listed = real(&sandbox, &["adapters", "list"]).ends(0).out;
    assert_eq!(listed.contains("mine"), kept, "{listed}");
}

#[test]
fn corrections_are_remembered_without_training_and_written_in_the_next_transcript() {
    let sandbox = with_sample();
    let model = starter();
    let model = model.to_str().unwrap();
    let transcribed = || {
        let arguments = ["transcribe", "talks/sample.flac", "--model", model, "-q", "-f", "json", "-o", "-"];
        let transcript: Value = serde_json::from_str(&real(&sandbox, &arguments).ends(0).out).unwrap();
        let segments = transcript["segments"].as_array().unwrap();
        segments
            .iter()
            .map(|segment| segment["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let plain = transcribed();
    // The same recording three times, in each the same word corrected: what is held back of one is learnt in another.
    let text = std::fs::read_to_string(sandbox.path("talks/sample.json")).unwrap();
    let correct = |text: &str| text.replace("Toronto", "Zolmivane").replace("report", "ledger");
    let corrected = correct(&text);
    assert!(plain.contains("Toronto") && plain.contains("report"), "{plain}");
    std::fs::write(sandbox.path("talks/sample.json"), &corrected).unwrap();
    for copy in ["second", "third"] {
        std::fs::copy(sandbox.path("talks/sample.flac"), sandbox.path(format!("talks/{copy}.flac"))).unwrap();
        sandbox.write(&format!("talks/{copy}.json"), &corrected);
    }
    let adapt = ["adapt", model, "--folder", "talks", "--epochs", "0", "--name", "mine"];
    let said = real(&sandbox, &[&adapt[..], &["--dry-run"]].concat()).ends(0).out;
    assert!(said.contains("Nothing is trained"), "{said}");
    let told = real(&sandbox, &[&adapt[..], &["--json"]].concat()).ends(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["kept"], &told["remembered"], &told["losses"]),
        (&json!(true), &json!(true), &json!([])),
        "{told}"
    );
    assert_eq!(told["figures"]["corrections"]["after"], json!(0), "{told}");
    let shown = real(&sandbox, &["adapters", "show", "mine"]).ends(0).out;
    assert!(shown.contains("remembers") && !shown.contains("rank"), "{shown}");
    real(&sandbox, &["adapters", "verify", "mine", "--model", model]).ends(0);
    assert_eq!(transcribed(), correct(&plain));
    real(&sandbox, &["adapters", "off", "mine"]).ends(0);
    assert_eq!(transcribed(), plain);
    let left = std::fs::read_dir(sandbox.home.path().join("steno/adaptations"));
    assert_eq!(left.unwrap().count(), 0, "nothing is left of the way there");
}

#[test]
fn an_adapter_is_imported_switched_on_named_in_the_transcript_and_removed() {
    let sandbox = with_sample();
    let model = starter();
    let model = model.to_str().unwrap();
    let transcribed = || -> Value {
        let arguments = ["transcribe", "talks/sample.flac", "--model", model, "-f", "json", "-o", "-"];
        serde_json::from_str(&real(&sandbox, &arguments).ends(0).out).unwrap()
    };
    let text = |transcript: &Value| transcript["segments"][0]["text"].as_str().unwrap_or_default().to_owned();
    let plain = transcribed();
    assert_eq!(plain["model"].get("adapter"), None, "{plain}");

    let file = adapter(&sandbox, 5.0);
    let adapters = |arguments: &[&str]| real(&sandbox, &[&["adapters"], arguments].concat());
    adapters(&["import", file.to_str().unwrap(), "--name", "loud"]).ends(0);
    assert_eq!(text(&transcribed()), text(&plain), "it is off");
    adapters(&["on", "loud"]).ends(0);
    assert!(adapters(&[]).ends(0).out.contains("loud  on"));
    let adapted = transcribed();
    assert_eq!(adapted["model"]["adapter"], json!("loud"), "{adapted}");
    assert_ne!(text(&adapted), text(&plain), "it acts");
    assert!(adapters(&["show", "loud"]).ends(0).out.contains("loud (on)"));
    adapters(&["verify", "loud", "--model", model]).ends(0);
    adapters(&["export", "loud", "-o", "copy.safetensors"]).ends(0);
    assert!(sandbox.path("copy.safetensors").is_file());
    let listed: Value = serde_json::from_str(&adapters(&["list", "--json"]).ends(0).out).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["on"]), (&json!("loud"), &json!(true)));
    adapters(&["off", "loud"]).ends(0);
    assert_eq!(text(&transcribed()), text(&plain));
    adapters(&["remove", "loud"]).ends(0);
    adapters(&["show", "loud"]).ends(1).says("no adapter named loud");
    sandbox.write("nothing.safetensors", "nothing");
    adapters(&["import", "nothing.safetensors"]).ends(1).says("nothing.safetensors").says("not valid");
}
