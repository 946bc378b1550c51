//! Parakeet models on the command line, with the real engine and random weights: what is written means nothing, and
//! must be whole, and what such a model can't do is refused.

use std::path::Path;

use random_models::{Options, ParakeetSize, WeightType, write_parakeet_model};
use serde_json::Value;

use crate::support::{Ran, Sandbox, project, real_engine};

const MODEL: &str = "parakeet-tiny";

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    sandbox.command_with(&real_engine(), arguments).output().unwrap().into()
}

/// With the bundled sample and a model of that size beside it.
fn sandbox(size: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::copy(project().join("tests/data/sample.flac"), sandbox.path("talk.flac")).unwrap();
    write(&sandbox.path(size), size);
    sandbox
}

pub fn write(folder: &Path, size: &str) {
    let options = Options { precision: WeightType::F32, ..Options::default() };
    write_parakeet_model(folder, ParakeetSize::named(size).unwrap(), &options).unwrap();
}

#[test]
fn a_folder_of_a_parakeet_model_transcribes_and_exports() {
    for (size, language) in [(MODEL, "und"), ("parakeet-tiny-ctc", "en")] {
        let sandbox = sandbox(size);
        let arguments = ["transcribe", "talk.flac", "--model", size, "-f", "json,srt,txt,vtt", "-o", "out"];
        run(&sandbox, &arguments).ends(0);
        let json: Value = serde_json::from_str(&sandbox.read("out/talk.json")).unwrap();
        assert_eq!((json["language"].as_str(), json["model"]["name"].as_str()), (Some(language), Some(size)));
        let segments = json["segments"].as_array().unwrap();
        assert!(json["complete"] == true && !segments.is_empty());
        let words = segments.iter().flat_map(|segment| segment["words"].as_array().unwrap());
        assert!(words.clone().count() > 0);
        for word in words {
            assert!(word["end"].as_f64() >= word["start"].as_f64(), "{word}");
            assert!((0.0..=1.0).contains(&word["probability"].as_f64().unwrap()), "{word}");
        }
        assert!(sandbox.read("out/talk.srt").starts_with("1\n00:00:0"));
        assert!(sandbox.read("out/talk.vtt").starts_with("WEBVTT"));
        // Half the memory, and a batch, and speakers.
        for more in [&["--precision", "q8_0"][..], &["--batch-size", "2"], &["--speakers"]] {
            let all =
                [&["transcribe", "talk.flac", "--model", size, "-f", "txt", "-o", "more", "--force"], more];
            run(&sandbox, &all.concat()).ends(0);
        }
    }
}

#[test]
fn what_the_model_cant_do_is_refused_in_words() {
    let sandbox = sandbox(MODEL);
    for (more, part) in [
        (&["--language", "de"][..], "can't be told the language"),
        (&["--translate"], "can't translate"),
        (&["--bilingual"], "can't translate"),
        (&["--prompt", "Ada"], "be given a prompt"),
        (&["--condition-on-previous-text"], "be given a prompt"),
        (&["--language-per-region"], "say the language of each region"),
        (&["--temperature", "0.5"], "search at temperatures"),
        (&["--no-timestamps"], "leave out times"),
    ] {
        let all = [&["transcribe", "talk.flac", "--model", MODEL][..], more].concat();
        run(&sandbox, &all).ends(1).says(part).says("choose a Whisper model");
    }
    run(&sandbox, &["detect-language", "talk.flac", "--model", MODEL])
        .ends(1)
        .says("does not say which language");
    // What it does anyway is no refusal.
    run(&sandbox, &["transcribe", "talk.flac", "--model", MODEL, "--temperature", "0"]).ends(0);
    // A transducer has beams, a model that takes the likeliest token of each frame has none.
    run(&sandbox, &["transcribe", "talk.flac", "--model", MODEL, "--beam-size", "3", "--force"]).ends(0);
    let ctc = self::sandbox("parakeet-tiny-ctc");
    run(&ctc, &["transcribe", "talk.flac", "--model", "parakeet-tiny-ctc", "--beam-size", "3"])
        .ends(1)
        .says("search with beams")
        .says("choose a Whisper model");
}

#[test]
fn a_model_is_quantised_imported_verified_and_listed() {
    let sandbox = sandbox(MODEL);
    run(&sandbox, &["models", "quantize", MODEL, "--to", "q8_0", "--output", "small"]).ends(0);
    run(&sandbox, &["transcribe", "talk.flac", "--model", "small", "-f", "json", "-o", "out"]).ends(0);
    let json: Value = serde_json::from_str(&sandbox.read("out/talk.json")).unwrap();
    assert_eq!(json["model"]["precision"], "q8_0");
    run(&sandbox, &["models", "import", MODEL, "--name", "mine"]).ends(0);
    run(&sandbox, &["models", "verify", "mine"]).ends(0);
    let listed = run(&sandbox, &["models", "list", "--json"]).ends(0).out;
    assert!(listed.contains("\"mine\""), "{listed}");
    let text = |model: &str| run(&sandbox, &["transcribe", "talk.flac", "--model", model]).ends(0).out;
    assert_eq!(text("mine"), text(MODEL));
}

#[test]
fn damaged_models_are_named() {
    let sandbox = sandbox(MODEL);
    let config = sandbox.read(&format!("{MODEL}/config.json"));
    let with = |old: &str, new: &str| {
        assert!(config.contains(old), "{old}");
        config.replace(old, new)
    };
    for (damaged, part) in [
        (with("parakeet_tdt", "parakeet_rnnt"), "parakeet_rnnt"),
        (with("\"num_hidden_layers\":2", "\"num_hidden_layers\":3"), "encoder.layers.2"),
        (with("\"vocab_size\":4100", "\"vocab_size\":4101"), "4101"),
        (with("\"hidden_size\":64", "\"hidden_size\":0"), "hidden_size is 0"),
    ] {
        sandbox.write(&format!("{MODEL}/config.json"), &damaged);
        let ran = run(&sandbox, &["transcribe", "talk.flac", "--model", MODEL]).ends(1);
        assert!(ran.err.contains(part) && !ran.err.contains("panicked"), "{part}: {}", ran.err);
        let ran = run(&sandbox, &["models", "import", MODEL, "--name", "broken"]).ends(1);
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    sandbox.write(&format!("{MODEL}/config.json"), &config);
    sandbox.write(&format!("{MODEL}/tokenizer.json"), r#"{"model": {"vocab": {"a": 0}}}"#);
    for arguments in
        [&["transcribe", "talk.flac", "--model", MODEL][..], &["models", "import", MODEL, "--name", "broken"]]
    {
        run(&sandbox, arguments).ends(1).says("it has 1 tokens, config.json asks for 4100");
    }
    // NVIDIA's own archive.
    let mut archive = vec![0; 600];
    archive[257..262].copy_from_slice(b"ustar");
    std::fs::write(sandbox.path("parakeet.nemo"), archive).unwrap();
    let imported = run(&sandbox, &["models", "import", "parakeet.nemo"]).ends(1);
    imported.says("an archive, as NeMo's models are").says("models pull parakeet-tdt-0.6b-v3");
    run(&sandbox, &["transcribe", "talk.flac", "--model", "./parakeet.nemo"])
        .ends(1)
        .says("an archive of NeMo");
}

/// The demonstration models, passed for real ones: a Whisper and a Parakeet, both installed.
pub fn with_both() -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::copy(project().join("tests/data/sample.flac"), sandbox.path("talk.flac")).unwrap();
    for name in ["whisper", "parakeet"] {
        let folder = sandbox.home.path().join("steno/models").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for file in std::fs::read_dir(project().join(format!("models/starter-{name}"))).unwrap() {
            let file = file.unwrap();
            // Without this file no model is a demonstration.
            if file.path().is_file() && file.file_name() != "steno-model.json" {
                std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
            }
        }
    }
    sandbox
}

fn without_a_model(sandbox: &Sandbox, arguments: &[&str]) -> std::process::Command {
    let mut command = sandbox.command_with(&real_engine(), arguments);
    command.env_remove("STENO_MODEL").env("HOME", sandbox.home.path()).env_remove("HF_HOME");
    command
}

#[test]
fn the_model_follows_from_the_language_where_the_user_wants_that() {
    const PLAIN: [&str; 6] = ["transcribe", "talk.flac", "-f", "json", "-o", "out"];
    const TOLD: &str = "The language is en (100 %): the model parakeet transcribes this recording.";
    let sandbox = with_both();
    let transcribe = |more: &[&str], variable: Option<&str>| {
        let mut command = without_a_model(&sandbox, &[&PLAIN[..], &["--force"], more].concat());
        command.envs(variable.map(|value| ("STENO_MODEL_BY_LANGUAGE", value)));
        let ran = Ran::from(command.output().unwrap()).ends(0);
        let json: Value = serde_json::from_str(&sandbox.read("out/talk.json")).unwrap();
        (json["model"]["name"].as_str().unwrap().to_owned(), ran.err, json)
    };
    // A Whisper is what is recommended for any language, and identifies it.
    for (more, variable, expected) in [
        (&[][..], None, "whisper"),
        (&["--model-by-language"], None, "parakeet"),
        (&["--model-by-language", "--bilingual"], None, "parakeet"),
        (&["--model-by-language", "--model", "whisper"], None, "parakeet"),
        (&["--model-by-language", "--task", "translate"], None, "whisper"),
        (&[], Some("true"), "parakeet"),
        (&[], Some("false"), "whisper"),
        // What was named goes before a setting.
        (&["--model", "whisper"], Some("true"), "whisper"),
        (&["--language-per-region"], Some("true"), "whisper"),
        // And what a Parakeet can't do keeps the model.
        (&["--model-by-language", "--prompt", "Ada"], None, "whisper"),
    ] {
        let (model, said, json) = transcribe(more, variable);
        assert_eq!(model, expected, "{more:?} {variable:?}: {said}");
        assert_eq!(said.contains(TOLD), expected == "parakeet", "{more:?} {variable:?}: {said}");
        assert_eq!(json["language"], "en");
        let notices = json["notices"].as_array().unwrap();
        let told = notices.iter().filter(|notice| notice["code"] == "model.of_language").count();
        assert_eq!(told, usize::from(expected == "parakeet"));
    }
    let (_, _, named) = transcribe(&["--model", "parakeet"], None);
    let (_, _, followed) = transcribe(&["--model-by-language"], None);
    assert_eq!(followed["segments"], named["segments"]);
    // The one that was chosen is the one for this language.
    let (model, said, _) = transcribe(&["--model-by-language", "--model", "parakeet"], None);
    assert!(model == "parakeet" && !said.contains("The language is"), "{model}: {said}");

    let config = sandbox.home.path().join("steno/config.toml");
    std::fs::write(&config, "[models]\nby_language = true\n").unwrap();
    assert_eq!(transcribe(&[], None).0, "parakeet");
    std::fs::remove_file(config).unwrap();

    // Without a choice it is said that there is none.
    std::fs::remove_dir_all(sandbox.home.path().join("steno/models/parakeet")).unwrap();
    let (model, said, _) = transcribe(&["--model-by-language"], None);
    assert!(
        model == "whisper" && said.contains("--model-by-language changes nothing here"),
        "{model}: {said}"
    );
    for other in ["--translate", "--language-per-region"] {
        let refused = without_a_model(&sandbox, &[&PLAIN[..], &["--model-by-language", other]].concat());
        Ran::from({ refused }.output().unwrap()).ends(2).says("cannot be used with");
    }
}

/// An engine that dies while it listens costs the choice, not the text.
#[test]
fn where_no_language_is_identified_the_chosen_model_transcribes() {
    let sandbox = with_both();
    for (name, code) in [("once.mp3", 0), ("hungry.mp3", 0), ("broken.mp3", 1)] {
        sandbox.write(name, "");
        let arguments = ["transcribe", name, "-f", "json", "-o", "out", "--model-by-language"];
        let mut command = sandbox.command(&arguments);
        command.env_remove("STENO_MODEL").env("HOME", sandbox.home.path()).env_remove("HF_HOME");
        let ran = Ran::from(command.output().unwrap()).ends(code);
        // What is wrong with the recording is said once.
        let is_told = ran.err.contains("The language could not be identified, so the chosen");
        assert_eq!(is_told, code == 0, "{name}: {}", ran.err);
    }
}
