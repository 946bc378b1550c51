//! Canary models on the command line, with the real engine and random weights: what is written means nothing, and
//! must be whole, and what such a model can't do is refused.

use random_models::{CanarySize, Options, WeightType, write_canary_model};
use serde_json::Value;

use crate::support::{Ran, Sandbox, project, real_engine};

const MODEL: &str = "canary-tiny";

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    sandbox.command_with(&real_engine(), arguments).output().unwrap().into()
}

/// With the bundled sample and a model beside it.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::copy(project().join("tests/data/sample.flac"), sandbox.path("talk.flac")).unwrap();
    let options = Options { precision: WeightType::F32, ..Options::default() };
    write_canary_model(&sandbox.path(MODEL), CanarySize::named(MODEL).unwrap(), &options).unwrap();
    sandbox
}

fn transcribe(sandbox: &Sandbox, model: &str, more: &[&str]) -> Ran {
    run(sandbox, &[&["transcribe", "talk.flac", "--model", model], more].concat())
}

#[test]
fn a_language_is_named_and_translated_from() {
    let sandbox = sandbox();
    let text = |folder: &str| -> String {
        let json: Value = serde_json::from_str(&sandbox.read(&format!("{folder}/talk.json"))).unwrap();
        assert_eq!((json["language"].as_str(), json["model"]["name"].as_str()), (Some("de"), Some(MODEL)));
        let segments = json["segments"].as_array().unwrap();
        assert!(json["complete"] == true && !segments.is_empty());
        let words = segments.iter().flat_map(|segment| segment["words"].as_array().unwrap());
        assert!(words.clone().count() > 0);
        for word in words {
            assert!(word["end"].as_f64() >= word["start"].as_f64(), "{word}");
            assert!((0.0..=1.0).contains(&word["probability"].as_f64().unwrap()), "{word}");
        }
        segments.iter().map(|segment| segment["text"].as_str().unwrap()).collect()
    };
    transcribe(&sandbox, MODEL, &["--language", "de", "-f", "json", "-o", "said"]).ends(0);
    transcribe(&sandbox, MODEL, &["--language", "de", "--translate", "-f", "json", "-o", "translated"])
        .ends(0);
    assert_ne!(text("said"), text("translated"));
    // Half the memory, and a batch, speakers, words to expect.
    for more in
        [&["--precision", "q8_0"][..], &["--batch-size", "2"], &["--speakers"], &["--vocabulary", "Ada"]]
    {
        let all = [&["--language", "de", "-f", "txt", "-o", "more", "--force"], more].concat();
        transcribe(&sandbox, MODEL, &all).ends(0);
    }
}

#[test]
fn what_the_model_cant_do_is_refused_in_words() {
    let sandbox = sandbox();
    transcribe(&sandbox, MODEL, &[])
        .ends(1)
        .says("can't find out which language is spoken")
        .says("Name the language");
    transcribe(&sandbox, MODEL, &["--language", "ja"]).ends(1).says("does not know the language");
    for (more, part) in [
        (&["--prompt", "Ada"][..], "be given a prompt"),
        (&["--language-per-region"], "say the language of each region"),
        (&["--beam-size", "5"], "search with beams"),
        (&["--no-timestamps"], "leave out times"),
    ] {
        let all = [&["--language", "de"], more].concat();
        transcribe(&sandbox, MODEL, &all).ends(1).says(part).says("choose a Whisper model");
    }
    run(&sandbox, &["detect-language", "talk.flac", "--model", MODEL])
        .ends(1)
        .says("does not say which language");
}

#[test]
fn a_model_is_quantised_imported_verified_and_damage_is_named() {
    let sandbox = sandbox();
    run(&sandbox, &["models", "quantize", MODEL, "--to", "q8_0", "--output", "small"]).ends(0);
    transcribe(&sandbox, "small", &["--language", "en", "-f", "json", "-o", "out"]).ends(0);
    let json: Value = serde_json::from_str(&sandbox.read("out/talk.json")).unwrap();
    assert_eq!(json["model"]["precision"], "q8_0");
    run(&sandbox, &["models", "import", MODEL, "--name", "mine"]).ends(0);
    run(&sandbox, &["models", "verify", "mine"]).ends(0);
    let text = |model: &str| transcribe(&sandbox, model, &["--language", "en"]).ends(0).out;
    assert_eq!(text("mine"), text(MODEL));

    let config = sandbox.read(&format!("{MODEL}/config.json"));
    for (old, new, part) in [
        ("\"canary\"", "\"canary_qwen\"", "canary_qwen"),
        ("\"vocab_size\":300", "\"vocab_size\":301", "301"),
        ("\"num_hidden_layers\":2", "\"num_hidden_layers\":3", "layers.2"),
    ] {
        assert!(config.contains(old), "{old}");
        sandbox.write(&format!("{MODEL}/config.json"), &config.replace(old, new));
        for arguments in [
            &["transcribe", "talk.flac", "--model", MODEL, "--language", "en"][..],
            &["models", "import", MODEL, "--name", "broken"],
        ] {
            let ran = run(&sandbox, arguments).ends(1);
            assert!(ran.err.contains(part) && !ran.err.contains("panicked"), "{part}: {}", ran.err);
        }
    }
    sandbox.write(&format!("{MODEL}/config.json"), &config);
    let tokenizer = sandbox.read(&format!("{MODEL}/tokenizer.json")).replace("<|pnc|>", "x");
    sandbox.write(&format!("{MODEL}/tokenizer.json"), &tokenizer);
    run(&sandbox, &["models", "import", MODEL, "--name", "broken"]).ends(1).says("it has no token <|pnc|>");
}
