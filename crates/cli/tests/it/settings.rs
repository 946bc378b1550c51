//! Every option, environment variable and key of the config file does what it
//! says: for each there is a test here, or the name of one elsewhere, that
//! fails when it is ignored.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use transcript::{Span, Time};
use wire::VoiceActivity;

use crate::support::{Ran, Sandbox};

/// An option with its value, the part of a job that it sets, and what it sets it to.
type Case<'a> = (&'a [&'a str], &'a str, Value);

/// The jobs that the engines received, in order.
fn jobs(sandbox: &Sandbox, command: Command) -> Vec<Value> {
    jobs_until(0, sandbox, command)
}

/// As [`jobs`], of a command that ends with this code.
fn jobs_until(code: i32, sandbox: &Sandbox, mut command: Command) -> Vec<Value> {
    let file = sandbox.home.path().join("jobs");
    let _ = std::fs::remove_file(&file);
    Ran::from(command.env("STENO_SCRIPT_JOBS", &file).output().unwrap()).ends(code);
    let lines = std::fs::read_to_string(&file).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn at<'a>(job: &'a Value, pointer: &str) -> &'a Value {
    job.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {job}"))
}

/// A saved transcript, as long as the recordings of the scripted engine.
fn saved_talk(language: &str) -> String {
    let mut talk: Value =
        serde_json::from_str(include_str!("../../../transcript/tests/golden/talk.json")).unwrap();
    talk["source"]["duration"] = 10.into();
    talk["language"] = language.into();
    talk.to_string()
}

/// What is in English already is not translated.
fn in_german() -> String {
    saved_talk("de")
}

/// Each of `cases` changes the job of the command `base`, as it says.
#[track_caller]
fn check(base: &[&str], cases: &[Case]) {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.write("talk.json", &saved_talk("en"));
    sandbox.write("rede.json", &in_german());
    sandbox.write("words.txt", "Ada\n\n Grace Hopper \n");
    let job = |options: &[&str]| jobs(&sandbox, sandbox.command(&[base, options].concat())).remove(0);
    let plain = job(&[]);
    for (options, pointer, expected) in cases {
        assert_ne!(at(&plain, pointer), expected, "{base:?} {options:?} would show nothing");
        assert_eq!(at(&job(options), pointer), expected, "{base:?} {options:?}");
    }
}

fn machine() -> Vec<Case<'static>> {
    vec![
        (&["--device", "cpu"], "/job/device", json!("cpu")),
        (&["--device", "cuda:1"], "/job/device", json!({ "cuda": 1 })),
        (&["--threads", "3"], "/job/threads", json!(3)),
    ]
}

fn limits() -> Vec<Case<'static>> {
    vec![
        (&["--memory-limit", "61GiB"], "/job/memory/memory_limit", json!(61u64 << 30)),
        (&["--ram-limit", "62GiB"], "/job/memory/ram_limit", json!(62u64 << 30)),
        (&["--precision", "q8_0"], "/job/precision", json!("q8_0")),
    ]
}

fn speakers() -> Vec<Case<'static>> {
    let count = |min: Option<u32>, max: Option<u32>| json!({ "min": min, "max": max });
    vec![
        (&["--speakers=2"], "/job/speaker_count", count(Some(2), Some(2))),
        (&["--speakers", "3"], "/job/speaker_count", count(Some(3), Some(3))),
        (&["--min-speakers", "2"], "/job/speaker_count", count(Some(2), None)),
        (&["--max-speakers", "4"], "/job/speaker_count", count(None, Some(4))),
        (&["--min-speakers", "2", "--max-speakers", "4"], "/job/speaker_count", count(Some(2), Some(4))),
    ]
}

fn batches() -> Vec<Case<'static>> {
    vec![
        (&["--memory-profile", "safe"], "/job/memory/memory_fraction", json!(0.125)),
        (&["--batch-size", "2"], "/job/memory/batch_size", json!(2)),
        (&["--memory-fraction", "0.5"], "/job/memory/memory_fraction", json!(0.5)),
    ]
}

#[test]
fn options_of_transcribe_reach_the_engine() {
    let time = |milliseconds| Time::from_millis(milliseconds);
    let own: Vec<Case> = vec![
        (&["--language", "de"], "/job/language", json!("de")),
        (&["--task", "translate"], "/job/task", json!("translate")),
        (&["--translate"], "/job/task", json!("translate")),
        (&["--memory-profile", "fast"], "/job/memory/renew_after", json!(0)),
        (&["--speaker-batch-size", "4"], "/job/memory/speaker_batch_size", json!(4)),
        (&["--skip-speakers"], "/job/memory/skip_speakers", json!(true)),
        (&["--trim-every", "9"], "/job/memory/trim_every", json!(9)),
        (&["--renew-after", "8"], "/job/memory/renew_after", json!(8)),
        (&["--keep", "model"], "/job/memory/pins/model", json!(true)),
        (&["--keep", "gpu,precision"], "/job/memory/pins/precision", json!(true)),
        (&["--keep", "gpu,precision"], "/job/memory/pins/cpu", json!(true)),
        (&["--keep", "speakers"], "/job/memory/pins/speakers", json!(true)),
        (&["--limit", "1:30"], "/job/limit", json!(time(90_000))),
        (&["--from", "5"], "/job/span", json!(Span::new(time(5_000), time(u32::MAX)))),
        (&["--to", "7"], "/job/span", json!(Span::new(Time::ZERO, time(7_000)))),
        (&["--channels", "left"], "/job/channels", json!("left")),
        (&["--track", "2"], "/job/track", json!(1)),
        (&["--vad", "off"], "/job/voice_activity", json!(VoiceActivity::Off)),
        (&["--vad", "0.25"], "/job/voice_activity", json!(VoiceActivity::Threshold(0.25))),
        (&["--beam-size", "4"], "/job/decoding/beam_size", json!(4)),
        (&["--best-of", "3"], "/job/decoding/best_of", json!(3)),
        (&["--temperature", "0,0.5"], "/job/decoding/temperatures", json!([0.0, 0.5])),
        (&["--prompt", "Ada"], "/job/decoding/initial_prompt", json!("Ada")),
        (&["--vocabulary", "Ada, Grace"], "/job/decoding/vocabulary", json!(["Ada", "Grace"])),
        (&["--vocabulary-file", "words.txt"], "/job/decoding/vocabulary", json!(["Ada", "Grace Hopper"])),
        (&["--vocabulary-strength", "1.5"], "/job/decoding/vocabulary_strength", json!(1.5)),
        (&["--strategy", "batched"], "/job/strategy", json!("batched")),
        (&["--language-per-region"], "/job/decoding/language_per_region", json!(true)),
        (&["--condition-on-previous-text"], "/job/decoding/condition_on_previous_text", json!(true)),
        (&["--no-word-times"], "/job/decoding/word_times", json!(false)),
        (&["--no-timestamps"], "/job/decoding/timestamps", json!(false)),
        (&["--no-repair"], "/job/decoding/repair", json!(false)),
        (&["--seed", "7"], "/job/decoding/seed", json!(7)),
    ];
    check(&["transcribe", "a.mp3"], &[machine(), limits(), batches(), speakers(), own].concat());
}

#[test]
fn speakers_are_told_apart_where_they_are_asked_for() {
    let apart: Vec<Case> = vec![
        (&["--speakers"], "/job/speakers", json!(true)),
        (&["--speakers", "2"], "/job/speakers", json!(true)),
        (&["--max-speakers", "4"], "/job/speakers", json!(true)),
    ];
    check(&["transcribe", "a.mp3"], &apart);
    let sandbox = Sandbox::with(&["a.mp3"]);
    // A recording may follow the option without its number.
    let job = jobs(&sandbox, sandbox.command(&["transcribe", "--speakers", "a.mp3"])).remove(0);
    assert_eq!((at(&job, "/job/speakers"), at(&job, "/job/speaker_count/min")), (&json!(true), &Value::Null));
    for (options, problem) in [
        (&["--speakers=0"][..], "a number from 1 to 50"),
        (&["--speakers=2", "--max-speakers", "3"], "cannot be used with"),
        (&["--min-speakers", "3", "--max-speakers", "2"], "must not be below"),
    ] {
        sandbox.run(&[&["transcribe", "a.mp3"], options].concat()).ends(2).says(problem);
    }
}

#[test]
fn options_of_speakers_and_translations_reach_the_engine() {
    let both: Vec<Case> = vec![
        (&["--track", "2"], "/job/track", json!(1)),
        (&["--memory-limit", "61GiB"], "/job/memory/memory_limit", json!(61u64 << 30)),
        (&["--ram-limit", "62GiB"], "/job/memory/ram_limit", json!(62u64 << 30)),
        (&["--memory-profile", "fast"], "/job/memory/trim_every", json!(0)),
        (&["--trim-every", "9"], "/job/memory/trim_every", json!(9)),
        (&["--keep", "gpu"], "/job/memory/pins/cpu", json!(true)),
    ];
    let of_speakers: Vec<Case> =
        vec![(&["--speaker-batch-size", "4"], "/job/memory/speaker_batch_size", json!(4))];
    let base = ["speakers", "talk.json", "a.mp3"];
    check(&base, &[machine(), speakers(), both.clone(), of_speakers].concat());
    let of_translations: Vec<Case> = vec![
        (&["--batch-size", "2"], "/job/memory/batch_size", json!(2)),
        (&["--memory-fraction", "0.5"], "/job/memory/memory_fraction", json!(0.5)),
        (&["--precision", "q8_0"], "/job/precision", json!("q8_0")),
        (&["--keep", "model,precision"], "/job/memory/pins/precision", json!(true)),
    ];
    check(&["translate", "rede.json", "a.mp3"], &[machine(), both, of_translations].concat());
    // What would do nothing is not offered.
    let sandbox = Sandbox::with(&["a.mp3"]);
    for option in ["--skip-speakers", "--keep=speakers", "--renew-after=8"] {
        sandbox.run(&["speakers", "talk.json", "a.mp3", option]).ends(2);
        sandbox.run(&["translate", "rede.json", "a.mp3", option]).ends(2);
    }
}

#[test]
fn options_of_the_other_commands_with_an_engine_reach_it() {
    let track: Vec<Case> = vec![(&["--track", "2"], "/job/track", json!(1))];
    check(&["detect-language", "a.mp3"], &[machine(), track].concat());
    check(&["doctor", "--fit", "starter-whisper"], &[machine(), batches(), limits()].concat());
    check(&["models", "probe", "--model", "starter-whisper"], &[machine(), limits()].concat());
    let output: Vec<Case> = vec![
        (&["--output", "there"], "/job/file", json!("there")),
        (&["--to", "f16", "--output", "b"], "/job/file", json!("b")),
    ];
    check(&["models", "quantize", "starter-whisper"], &output);
}

/// What `steno models probe` found is what jobs are told, where several windows are decoded together.
#[test]
fn jobs_know_how_many_windows_were_measured_to_help() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let measured = json!([{
        "device": "the CPU",
        "precision": "f32",
        "dimensions": memory::Dimensions::of_public("tiny").unwrap(),
        "speed": 10.0,
        "useful_batch": 7,
    }]);
    let folder = sandbox.home.path().join("steno");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("speeds.json"), measured.to_string()).unwrap();
    let useful = |strategy: &str| {
        let arguments = ["transcribe", "a.mp3", "--device", "cpu", "--force", "--strategy", strategy];
        at(&jobs(&sandbox, sandbox.command(&arguments)).remove(0), "/job/memory/useful_batch").clone()
    };
    assert_eq!((useful("batched"), useful("sequential")), (json!(7), Value::Null));
}

#[test]
fn options_of_search_reach_the_engine() {
    let (sandbox, ..) = crate::search::filled();
    crate::search::install(&sandbox, "tiny-bert");
    let job = |options: &[&str]| {
        // A passage more each time, so that there is something to compute.
        crate::search::add(
            &crate::search::history(&sandbox),
            &sandbox.path("more.wav"),
            "en",
            &[("Ada", "More.")],
        );
        let mut command = sandbox.command(&[&["search", "--reindex"], options].concat());
        command.env("HOME", sandbox.home.path()).env_remove("HF_HOME");
        jobs(&sandbox, command).remove(0)
    };
    for (options, pointer, expected) in [
        (&["--device", "cpu"][..], "/job/device", json!("cpu")),
        (&["--device", "cuda:1"], "/job/device", json!({ "cuda": 1 })),
        (&["--threads", "3"], "/job/threads", json!(3)),
    ] {
        assert_ne!(at(&job(&[]), pointer), &expected, "{options:?} would show nothing");
        assert_eq!(at(&job(options), pointer), &expected, "{options:?}");
    }
    let nice = |options: &[&str]| job(options)["nice"].as_i64().unwrap();
    assert!(nice(&["--priority", "low"]) > nice(&["--priority", "normal"]));
}

#[test]
fn options_of_chapters_reach_the_engine() {
    let sandbox = crate::chapters::with_talk();
    crate::search::install(&sandbox, "tiny-bert");
    let job = |options: &[&str]| {
        let mut command = sandbox.command(&[&["chapters", "talk.json"], options].concat());
        command.env("HOME", sandbox.home.path()).env_remove("HF_HOME");
        // To the scripted engine everything means the same.
        jobs_until(1, &sandbox, command).remove(0)
    };
    let plain = job(&[]);
    for (options, pointer, expected) in machine() {
        assert_ne!(at(&plain, pointer), &expected, "{options:?} would show nothing");
        assert_eq!(at(&job(options), pointer), &expected, "{options:?}");
    }
    let nice = |options: &[&str]| job(options)["nice"].as_i64().unwrap();
    assert!(nice(&["--priority", "low"]) > nice(&["--priority", "normal"]));
}

#[test]
fn the_doctor_tries_the_largest_useful_batch_first() {
    let sandbox = Sandbox::with(&[]);
    let job = jobs(&sandbox, sandbox.command(&["doctor", "--fit", "starter-whisper"])).remove(0);
    assert_eq!(
        (at(&job, "/job/memory/batch_size"), at(&job, "/job/strategy")),
        (&json!(4), &json!("batched"))
    );
}

#[test]
fn a_model_is_named_by_option_or_variable() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.write("rede.json", &in_german());
    let commands: [&[&str]; 4] = [
        &["transcribe", "a.mp3"],
        &["detect-language", "a.mp3"],
        &["translate", "rede.json", "a.mp3"],
        &["models", "probe"],
    ];
    for command in commands {
        let arguments = [command, &["--model", "/no/such/model"]].concat();
        sandbox.run(&arguments).ends(1).says("/no/such/model");
        if command[0] != "models" {
            let output = sandbox.command(command).env("STENO_MODEL", "/no/such/model").output().unwrap();
            Ran::from(output).ends(1).says("/no/such/model");
        }
    }
}

/// As in the window: the demonstration is for a machine without another.
#[test]
fn a_real_model_goes_before_the_demonstration() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let model = |command: &[&str]| {
        let mut command = sandbox.command(command);
        command.env_remove("STENO_MODEL").env("HOME", sandbox.home.path()).env_remove("HF_HOME");
        let path = jobs(&sandbox, command).remove(0)["job"]["model"].as_str().unwrap().to_owned();
        path.rsplit(['/', '\\']).next().unwrap().to_owned()
    };
    let commands: [&[&str]; 2] = [&["transcribe", "a.mp3"], &["detect-language", "a.mp3"]];
    for command in commands {
        assert_eq!(model(command), "starter-whisper", "{command:?}");
    }
    for (name, size) in [("a-small-one", "micro"), ("a-second-one", "micro")] {
        let folder = sandbox.home.path().join("steno/models").join(name);
        let size = random_models::Size::named(size).unwrap();
        random_models::write(&folder, size, &random_models::Options::default()).unwrap();
        for command in commands {
            assert!(model(command).starts_with("a-s"), "{command:?} took {}", model(command));
        }
    }
    assert_eq!(model(&["transcribe", "a.mp3", "--model", "starter-whisper"]), "starter-whisper");
}

#[cfg(target_os = "linux")]
#[test]
fn a_low_priority_is_that_of_the_engine() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.write("rede.json", &in_german());
    for base in [
        &["transcribe", "a.mp3"][..],
        &["detect-language", "a.mp3"],
        &["doctor", "--fit", "starter-whisper"],
        &["models", "probe", "--model", "starter-whisper"],
        &["models", "quantize", "starter-whisper", "--output", "there"],
        &["translate", "rede.json", "a.mp3"],
        &["voices", "add", "Anna", "a.flac"],
    ] {
        let nice = |options: &[&str]| {
            let job = jobs(&sandbox, sandbox.command(&[base, options].concat())).remove(0);
            job["nice"].as_i64().unwrap()
        };
        assert!(nice(&["--priority", "low"]) > nice(&["--priority", "normal"]), "{base:?}");
    }
}

#[test]
fn engines_are_renewed_after_as_many_recordings_as_asked() {
    let sandbox = Sandbox::with(&["a.mp3", "b.mp3", "c.mp3"]);
    for (after, engines) in [("0", 1), ("1", 3), ("2", 2)] {
        let arguments = ["transcribe", "a.mp3", "b.mp3", "c.mp3", "--force", "--renew-after", after];
        let jobs = jobs(&sandbox, sandbox.command(&arguments));
        let pids: BTreeSet<_> = jobs.iter().map(|job| job["pid"].as_u64().unwrap()).collect();
        assert_eq!((jobs.len(), pids.len()), (3, engines), "--renew-after {after}");
    }
}

/// A variable with its value, the part of a job that it sets, and what it sets it to.
fn variables() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    vec![
        ("STENO_MEMORY_PROFILE", "safe", "/job/memory/renew_after", json!(25)),
        ("STENO_BATCH_SIZE", "3", "/job/memory/batch_size", json!(3)),
        ("STENO_SPEAKER_BATCH_SIZE", "2", "/job/memory/speaker_batch_size", json!(2)),
        ("STENO_SKIP_SPEAKERS", "true", "/job/memory/skip_speakers", json!(true)),
        ("STENO_FAST_PATH", "false", "/job/memory/fast_path", json!(false)),
        ("STENO_MEMORY_FRACTION", "0.5", "/job/memory/memory_fraction", json!(0.5)),
        ("STENO_TRIM_EVERY", "9", "/job/memory/trim_every", json!(9)),
        ("STENO_RENEW_AFTER", "8", "/job/memory/renew_after", json!(8)),
        ("STENO_MEMORY_LIMIT", "61GiB", "/job/memory/memory_limit", json!(61u64 << 30)),
        ("STENO_RAM_LIMIT", "62GiB", "/job/memory/ram_limit", json!(62u64 << 30)),
        ("STENO_EMBEDDING_PROFILE", "speed", "/job/memory/embedding_profile", json!("speed")),
        ("STENO_KEEP", "model", "/job/memory/pins/model", json!(true)),
        ("STENO_PRECISION", "q8_0", "/job/precision", json!("q8_0")),
        ("STENO_THREADS", "3", "/job/threads", json!(3)),
        ("STENO_DEVICE", "cuda:1", "/job/device", json!({ "cuda": 1 })),
    ]
}

/// Variables that are no part of a job, with the test of each.
const OTHER_VARIABLES: [(&str, &str); 7] = [
    ("STENO_MODEL_BY_LANGUAGE", "transducer::the_model_follows_from_the_language_where_the_user_wants_that"),
    ("STENO_SPEAKER_MODEL", "settings::the_speaker_model_is_read_from_flag_environment_and_file"),
    ("STENO_PRIORITY", "settings::the_priority_is_read_from_environment_and_file"),
    ("STENO_IDLE_RELEASE", "window::an_idle_engine_is_released_in_time"),
    ("HF_ENDPOINT", "models::a_model_is_downloaded_used_damaged_repaired_and_removed"),
    ("STENO_PROXY", "models::the_network_is_used_as_it_is_set"),
    ("STENO_OFFLINE", "models::the_network_is_used_as_it_is_set"),
];

/// Table and key of a variable in the config file.
fn place_in_file(variable: &str) -> (&'static str, String) {
    match variable {
        "STENO_MEMORY_PROFILE" => ("memory", "profile".into()),
        "STENO_THREADS" | "STENO_PRIORITY" | "STENO_DEVICE" => ("engine", memory::settings::key(variable)),
        _ => ("memory", memory::settings::key(variable)),
    }
}

#[test]
fn every_variable_and_key_of_the_config_file_reaches_the_engine() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let plain = jobs(&sandbox, sandbox.command(&["transcribe", "a.mp3"])).remove(0);
    for (variable, value, pointer, expected) in variables() {
        assert_ne!(at(&plain, pointer), &expected, "{variable}={value} would show nothing");
        let mut command = sandbox.command(&["transcribe", "a.mp3"]);
        command.env(variable, value);
        assert_eq!(at(&jobs(&sandbox, command)[0], pointer), &expected, "{variable}={value}");

        let (table, key) = place_in_file(variable);
        sandbox.write("config.toml", &format!("[{table}]\n{key} = \"{value}\"\n"));
        // Also where several files are detected alike: the same settings hold.
        for base in [["transcribe", "a.mp3"], ["detect-language", "a.mp3"]] {
            let mut command = sandbox.command(&base);
            command.env("STENO_CONFIG", "config.toml");
            assert_eq!(at(&jobs(&sandbox, command)[0], pointer), &expected, "{table}.{key} = {value}");
        }
    }
    let tested: BTreeSet<&str> =
        variables().iter().map(|case| case.0).chain(OTHER_VARIABLES.map(|other| other.0)).collect();
    assert_eq!(tested, config::preferences::variables().map(|(name, _)| name).collect());
    for (variable, test) in OTHER_VARIABLES {
        assert!(exists(test), "{variable} is tested by {test}, which is not there");
    }
}

#[test]
fn the_speaker_model_is_read_from_flag_environment_and_file() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let model = random_models::corpus::bundled().join("reference/speakers/community/model");
    let model = model.to_str().unwrap();
    let job = |options: &[&str], environment: &[(&str, &str)]| {
        let mut command =
            sandbox.command(&[&["transcribe", "a.mp3", "--speakers", "--force"], options].concat());
        command.envs(environment.iter().copied());
        at(&jobs(&sandbox, command)[0], "/job/speaker_model").clone()
    };
    let is_it = |found: &Value| found.to_string().contains("community/model");
    assert_eq!(job(&[], &[]), Value::Null);
    assert!(is_it(&job(&["--speaker-model", model], &[])));
    assert!(is_it(&job(&[], &[("STENO_SPEAKER_MODEL", model)])));
    sandbox.write("config.toml", &format!("[speakers]\nmodel = {model:?}\n"));
    let config = [("STENO_CONFIG", "config.toml")];
    assert!(is_it(&job(&[], &config)));
    assert_eq!(job(&["--speaker-model", "built-in"], &config), Value::Null);
    // Voices are added with the same model.
    let mut command = sandbox.command(&["voices", "add", "Anna", "a.mp3"]);
    command.envs(config);
    assert!(is_it(at(&jobs(&sandbox, command)[0], "/job/speaker_model")));
}

#[cfg(target_os = "linux")]
#[test]
fn the_priority_is_read_from_environment_and_file() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.write("config.toml", "[engine]\npriority = 'low'\n");
    let nice = |variable: &str, value: &str| {
        let mut command = sandbox.command(&["transcribe", "a.mp3"]);
        jobs(&sandbox, {
            command.env(variable, value);
            command
        })[0]["nice"]
            .as_i64()
            .unwrap()
    };
    let normal = nice("STENO_PRIORITY", "normal");
    assert!(nice("STENO_PRIORITY", "low") > normal && nice("STENO_CONFIG", "config.toml") > normal);
}

/// What a transcript needs for every option of subtitles to change something:
/// words, a long text, one too short to be read, and cues that touch.
const TALK: &str = r#"{"schema_version": 1, "complete": true, "language": "en", "task": "transcribe", "settings": null,
    "source": {"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"},
    "model": {"name": "m", "precision": "f32", "demonstration": false},
    "segments": [
        {"id": 1, "start": 0, "end": 12, "text": "A long sentence that goes on and on, and fills a line, and another one, and yet another one after it, until it ends.", "words": []},
        {"id": 2, "start": 12, "end": 12.3, "text": "Very short, but much to read in so little time.", "words": []},
        {"id": 3, "start": 12.3, "end": 12.5, "text": "Yes.", "words": []},
        {"id": 4, "start": 20, "end": 40, "text": "Said slowly.", "words": [
            {"text": " Said", "start": 20, "end": 30, "probability": 0.9}, {"text": " slowly.", "start": 30, "end": 40, "probability": 0.9}]}],
    "completeness": {"speech": 40, "covered": 40, "gaps": []}}"#;

#[test]
fn every_option_of_subtitles_changes_them() {
    let sandbox = Sandbox::with(&[]);
    sandbox.write("talk.json", TALK);
    let exported = |options: &[&str]| {
        let base = ["export", "talk.json", "-f", "vtt", "-o", "-"];
        sandbox.run(&[&base, options].concat()).ends(0).out
    };
    let shaped = exported(&["--shape"]);
    assert_ne!(exported(&[]), shaped);
    for options in [
        ["--line-width", "20"],
        ["--lines", "1"],
        ["--reading-speed", "5"],
        ["--min-gap", "0.5"],
        ["--min-duration", "2"],
        ["--max-duration", "3"],
    ] {
        // Each alone divides the text too.
        assert_ne!(exported(&options), shaped, "{options:?}");
        assert_ne!(exported(&options), exported(&[]), "{options:?}");
    }
    assert!(exported(&["--word-tags"]).contains("<00:00:30.000>"), "{}", exported(&["--word-tags"]));
    assert!(!exported(&[]).contains("<00:00:30.000>"));
}

#[test]
fn options_of_subtitles_hold_while_transcribing_too() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    let printed = |options: &[&str]| {
        let base = ["transcribe", "a.mp3", "-f", "vtt", "-o", "-"];
        sandbox.run(&[&base, options].concat()).ends(0).out
    };
    let plain = printed(&[]);
    for options in [
        &["--line-width", "8"][..],
        &["--shape"],
        &["--lines", "1", "--line-width", "8"],
        &["--reading-speed", "2"],
        &["--min-gap", "0.5"],
        &["--min-duration", "6"],
        &["--max-duration", "0.5"],
        &["--word-tags"],
    ] {
        assert_ne!(printed(options), plain, "{options:?}");
    }
}

/// What a host leaves that was killed in the middle of `stalls.mp3`.
fn killed_while_transcribing(arguments: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with(&["stalls.mp3"]);
    let arguments = [&["transcribe", "stalls.mp3", "--quiet"], arguments].concat();
    let mut host = sandbox.command(&arguments).spawn().unwrap();
    while !sandbox.path("stalls.tried").exists() {
        assert!(host.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    host.kill().unwrap();
    host.wait().unwrap();
    sandbox
}

#[test]
fn what_is_resumed_can_get_another_name() {
    for (asked, template, expected) in [
        (&["-f", "srt,json"][..], "short", &["short.json", "short.srt"][..]),
        (&["-f", "srt", "--name-template", "long {language}"], "{name} {language}", &["stalls en.srt"]),
        // What was for standard output has no name: it becomes a file.
        (&[], "{name} {date}", &["stalls 20"]),
    ] {
        let sandbox = killed_while_transcribing(asked);
        sandbox.run(&["resume", "--name-template", template]).ends(0).says("written to ");
        let names = sandbox.names();
        let written: Vec<_> =
            names.iter().filter(|name| !["stalls.mp3", "stalls.tried"].contains(&name.as_str())).collect();
        assert!(
            written.len() == expected.len()
                && written.iter().zip(expected).all(|(name, expected)| name.starts_with(expected)),
            "{asked:?}: {names:?}"
        );
    }
    // What is there is not replaced, and the text stays.
    let sandbox = killed_while_transcribing(&["-f", "srt"]);
    sandbox.write("short.srt", "mine");
    sandbox.run(&["resume", "--name-template", "short"]).ends(1).says("--force").says("Use ");
    assert_eq!(sandbox.read("short.srt"), "mine");
}

#[test]
fn what_was_interrupted_is_listed_discarded_and_resumed() {
    for (arguments, code, out, err) in [
        (&["resume", "--discard"][..], 0, "", "1 interrupted job was discarded."),
        (&["resume"], 0, "", "written to "),
        (&["resume", "--quiet"], 0, "", ""),
        (&["resume", "--json-events"], 0, "{\"event\":\"queued\"", ""),
    ] {
        let sandbox = killed_while_transcribing(&["-f", "srt"]);
        let listed = sandbox.run(&["resume", "--list"]).ends(0).out;
        assert!(listed.starts_with("stalls.mp3: ") || listed.contains("/stalls.mp3: "), "{listed}");
        let ran = sandbox.run(arguments).ends(code);
        assert!(
            ran.out.starts_with(out) && ran.out.is_empty() == out.is_empty(),
            "{arguments:?}: {}",
            ran.out
        );
        assert!(ran.err.contains(err) && ran.err.is_empty() == err.is_empty(), "{arguments:?}: {}", ran.err);
        assert_eq!(
            sandbox.path("stalls.srt").exists(),
            arguments != ["resume", "--discard"],
            "{arguments:?}"
        );
        sandbox.run(&["resume", "--list"]).ends(0).says("Nothing was interrupted.");
    }
}

#[test]
fn a_recommendation_keeps_to_its_options() {
    let sandbox = Sandbox::with(&[]);
    let recommended = |options: &[&str]| -> Value {
        let ran = sandbox.run(&[&["models", "recommend", "--json"], options].concat()).ends(0);
        let all: Value = serde_json::from_str(&ran.out).unwrap();
        all["devices"].as_array().unwrap().last().unwrap().clone()
    };
    for limit in ["--ram-limit", "--memory-limit"] {
        assert_eq!(recommended(&[limit, "300MiB"])["device"]["free"], 300 << 20, "{limit}");
    }
    let choices = |advice: &Value| advice["choices"].as_array().unwrap().clone();
    let precise = choices(&recommended(&["--precision", "q8_0"]));
    assert!(!precise.is_empty() && precise.iter().all(|choice| choice["precision"] == "q8_0"));
    // Memory for speakers is planned unless it is not wanted.
    let plans_speakers = |options: &[&str]| {
        choices(&recommended(options))
            .iter()
            .all(|choice| choice["check"]["stages"].to_string().contains("diarize"))
    };
    assert!(plans_speakers(&[]) && !plans_speakers(&["--skip-speakers"]));
    // Models of one language are no choice for another.
    let models = |options: &[&str]| choices(&recommended(options)).len();
    assert!(models(&["--language", "en"]) > models(&["--language", "de"]));
}

#[test]
fn what_is_for_programs_is_json() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    for arguments in [
        &["models"][..],
        &["models", "list"],
        &["models", "list", "--all"],
        &["models", "recommend"],
        &["models", "probe", "--model", "starter-whisper"],
        &["models", "quantize", "starter-whisper", "--output", "there"],
        &["models", "connections"],
        &["models", "verify"],
        &["models", "add", "mine", "--repository", "somebody/something"],
        &["models", "move", "elsewhere"],
        &["doctor"],
        &["memory"],
        &["detect-language", "a.mp3"],
    ] {
        let out = sandbox.run(&[arguments, &["--json"]].concat()).ends(0).out;
        assert!(serde_json::from_str::<Value>(&out).is_ok(), "{arguments:?}: {out}");
    }
}

/// Every option of every command, with the test that fails where it does nothing.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    (
        "search",
        &["speaker", "language", "since", "until", "folder", "tag", "limit", "words-only", "json"],
        "search::every_option_of_search_changes_what_is_found",
    ),
    (
        "adapt",
        &[
            "pair",
            "folder",
            "beside",
            "language",
            "epochs",
            "rank",
            "encoder",
            "rate",
            "batch",
            "precision",
            "seed",
            "memory-limit",
            "ram-limit",
            "device",
            "threads",
            "priority",
        ],
        "adapt::options_of_adapt_reach_the_engine",
    ),
    (
        "adapt",
        &["compare", "dry-run", "quiet"],
        "adapt::what_would_be_learnt_from_and_its_memory_are_said_beforehand",
    ),
    ("adapt", &["name", "json"], "adapt::a_model_learns_from_a_recording_and_what_came_of_it_is_said"),
    (
        "adapters list",
        &["json"],
        "adapt::an_adapter_is_imported_switched_on_named_in_the_transcript_and_removed",
    ),
    (
        "adapters export",
        &["output"],
        "adapt::an_adapter_is_imported_switched_on_named_in_the_transcript_and_removed",
    ),
    (
        "adapters import",
        &["name"],
        "adapt::an_adapter_is_imported_switched_on_named_in_the_transcript_and_removed",
    ),
    (
        "adapters verify",
        &["model"],
        "adapt::an_adapter_is_imported_switched_on_named_in_the_transcript_and_removed",
    ),
    (
        "words",
        &["limit", "json", "ignore", "restore", "ignored"],
        "search::words_that_are_corrected_again_and_again_are_listed",
    ),
    ("search", &["quiet"], "search::words_are_found_without_a_model_and_what_it_would_add_is_said"),
    ("search", &["reindex"], "search::meanings_are_indexed_and_found_and_another_model_takes_their_place"),
    ("search", &["device", "threads", "priority"], "settings::options_of_search_reach_the_engine"),
    ("chapters", &["json", "quiet"], "chapters::chapters_begin_where_the_subject_changes"),
    ("chapters", &["save"], "chapters::chapters_are_saved_where_the_transcript_is"),
    ("chapters", &["device", "threads", "priority"], "settings::options_of_chapters_reach_the_engine"),
    (
        "transcribe",
        &[
            "language",
            "task",
            "translate",
            "device",
            "threads",
            "memory-profile",
            "memory-limit",
            "ram-limit",
            "batch-size",
            "speaker-batch-size",
            "skip-speakers",
            "memory-fraction",
            "trim-every",
            "keep",
            "precision",
            "limit",
            "from",
            "to",
            "channels",
            "track",
            "vad",
            "beam-size",
            "best-of",
            "temperature",
            "prompt",
            "vocabulary",
            "vocabulary-file",
            "vocabulary-strength",
            "strategy",
            "language-per-region",
            "condition-on-previous-text",
            "no-word-times",
            "no-timestamps",
            "no-repair",
            "seed",
        ],
        "settings::options_of_transcribe_reach_the_engine",
    ),
    (
        "transcribe",
        &["speakers", "min-speakers", "max-speakers"],
        "settings::speakers_are_told_apart_where_they_are_asked_for",
    ),
    (
        "speakers",
        &[
            "track",
            "speakers",
            "min-speakers",
            "max-speakers",
            "device",
            "threads",
            "memory-profile",
            "memory-limit",
            "ram-limit",
            "speaker-batch-size",
            "trim-every",
            "keep",
        ],
        "settings::options_of_speakers_and_translations_reach_the_engine",
    ),
    (
        "translate",
        &[
            "track",
            "device",
            "threads",
            "memory-profile",
            "batch-size",
            "memory-fraction",
            "memory-limit",
            "ram-limit",
            "precision",
            "trim-every",
            "keep",
        ],
        "settings::options_of_speakers_and_translations_reach_the_engine",
    ),
    ("translate", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    ("translate", &["model"], "settings::a_model_is_named_by_option_or_variable"),
    (
        "translate",
        &["format", "output", "force", "quiet"],
        "real_engine::original_and_english_are_written_together",
    ),
    ("transcribe", &["name-template"], "transcribe::files_are_named_by_a_template"),
    ("export", &["name-template"], "commands::saved_transcripts_become_other_formats"),
    ("transcribe", &["speaker-model"], "settings::the_speaker_model_is_read_from_flag_environment_and_file"),
    ("speakers", &["speaker-model"], "settings::the_speaker_model_is_read_from_flag_environment_and_file"),
    ("voices add", &["speaker-model"], "real_engine::an_installed_model_tells_speakers_apart"),
    ("transcribe", &["bilingual"], "real_engine::original_and_english_are_written_together"),
    ("export", &["bilingual"], "real_engine::original_and_english_are_written_together"),
    ("clip", &["from", "to", "force", "track"], "real_engine::a_part_is_saved_as_sound"),
    ("speakers", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    (
        "speakers",
        &["format", "output", "force", "quiet"],
        "real_engine::speakers_of_a_finished_transcript_are_found",
    ),
    ("transcribe", &["renew-after"], "settings::engines_are_renewed_after_as_many_recordings_as_asked"),
    ("transcribe", &["recursive"], "transcribe::folders_within_a_folder_are_searched_with_recursive"),
    (
        "transcribe",
        &["model-by-language"],
        "transducer::the_model_follows_from_the_language_where_the_user_wants_that",
    ),
    ("transcribe", &["model"], "settings::a_model_is_named_by_option_or_variable"),
    ("transcribe", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    (
        "transcribe",
        &["format", "output"],
        "transcribe::formats_and_folders_make_files_and_nothing_is_printed",
    ),
    (
        "transcribe",
        &["force"],
        "transcribe::nothing_is_replaced_without_force_and_the_work_is_not_done_in_vain",
    ),
    ("transcribe", &["raw-text"], "settings::text_is_neither_a_formula_nor_a_tag"),
    ("transcribe", &["omit"], "settings::a_document_leaves_out_what_is_to_be_omitted"),
    ("transcribe", &["timings"], "real_engine::what_the_time_went_into_is_printed_where_it_is_asked_for"),
    ("transcribe", &["reproducible"], "transcribe::reproducible_json_leaves_the_run_out"),
    (
        "transcribe",
        &["json-events"],
        "transcribe::json_events_are_one_object_per_line_with_an_id_per_recording",
    ),
    ("transcribe", &["quiet"], "memory::whether_the_model_fits_is_said_before_the_queue_starts"),
    (
        "transcribe",
        &[
            "shape",
            "line-width",
            "lines",
            "reading-speed",
            "min-gap",
            "min-duration",
            "max-duration",
            "word-tags",
        ],
        "settings::options_of_subtitles_hold_while_transcribing_too",
    ),
    (
        "resume",
        &["list", "discard", "json-events", "quiet"],
        "settings::what_was_interrupted_is_listed_discarded_and_resumed",
    ),
    ("resume", &["name-template"], "settings::what_is_resumed_can_get_another_name"),
    (
        "resume",
        &["output", "force"],
        "transcribe::a_finished_text_outlives_its_folder_and_is_written_elsewhere",
    ),
    (
        "detect-language",
        &["track", "device", "threads"],
        "settings::options_of_the_other_commands_with_an_engine_reach_it",
    ),
    ("detect-language", &["recursive"], "transcribe::folders_within_a_folder_are_searched_with_recursive"),
    ("detect-language", &["model"], "settings::a_model_is_named_by_option_or_variable"),
    ("detect-language", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    ("detect-language", &["json"], "commands::languages_are_told_per_recording"),
    ("export", &["format", "output", "force"], "commands::saved_transcripts_become_other_formats"),
    ("export", &["raw-text"], "settings::text_is_neither_a_formula_nor_a_tag"),
    ("export", &["omit"], "settings::a_document_leaves_out_what_is_to_be_omitted"),
    ("export", &["reproducible"], "settings::an_export_leaves_out_what_varies"),
    (
        "export",
        &[
            "shape",
            "line-width",
            "lines",
            "reading-speed",
            "min-gap",
            "min-duration",
            "max-duration",
            "word-tags",
        ],
        "settings::every_option_of_subtitles_changes_them",
    ),
    (
        "doctor",
        &[
            "fit",
            "device",
            "threads",
            "memory-profile",
            "batch-size",
            "memory-fraction",
            "memory-limit",
            "ram-limit",
            "precision",
        ],
        "settings::options_of_the_other_commands_with_an_engine_reach_it",
    ),
    ("doctor", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    ("doctor", &["json"], "settings::what_is_for_programs_is_json"),
    ("memory", &["json"], "memory::engines_are_listed_with_what_they_hold"),
    ("memory", &["watch"], "memory::watching_looks_again"),
    ("memory", &["release"], "memory::idle_engines_are_ended_and_busy_ones_stay"),
    ("memory", &["force"], "memory::an_engine_that_does_not_answer_needs_force"),
    ("memory", &["reset-peak"], "memory::the_highest_memory_is_counted_anew"),
    ("man", &["output"], "commands::the_manual_covers_every_command"),
    ("completions", &[], "commands::completions_for_every_shell_name_the_commands"),
    ("models", &["json"], "settings::what_is_for_programs_is_json"),
    ("models list", &["json"], "settings::what_is_for_programs_is_json"),
    ("models list", &["all"], "models::a_model_is_downloaded_used_damaged_repaired_and_removed"),
    (
        "models recommend",
        &["memory-limit", "ram-limit", "precision", "skip-speakers", "language"],
        "settings::a_recommendation_keeps_to_its_options",
    ),
    ("gpu", &["json"], "driver::the_engine_is_downloaded_started_and_removed"),
    ("gpu install", &["manifest"], "driver::the_engine_is_downloaded_started_and_removed"),
    (
        "gpu install",
        &["proxy", "offline", "quiet"],
        "driver::the_download_of_the_engine_keeps_to_its_options",
    ),
    ("models recommend", &["device"], "driver::of_two_cards_the_one_that_is_recommended_computes"),
    ("models recommend", &["json"], "settings::what_is_for_programs_is_json"),
    (
        "models probe",
        &["device", "threads", "memory-limit", "ram-limit", "precision"],
        "settings::options_of_the_other_commands_with_an_engine_reach_it",
    ),
    ("models probe", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    ("models probe", &["model"], "settings::a_model_is_named_by_option_or_variable"),
    ("models probe", &["json"], "settings::what_is_for_programs_is_json"),
    ("models pull", &["name", "renew", "quiet", "json"], "models::a_download_keeps_to_its_options"),
    ("models pull", &["hub", "proxy", "offline"], "models::the_network_is_used_as_it_is_set"),
    ("models import", &["name"], "models::the_models_move_and_are_found_where_they_are"),
    ("models import", &["json"], "models::a_download_keeps_to_its_options"),
    ("models verify", &["json", "repair"], "models::a_model_is_downloaded_used_damaged_repaired_and_removed"),
    ("models verify", &["hub", "proxy", "offline"], "models::the_network_is_used_as_it_is_set"),
    ("models remove", &["json"], "models::a_model_is_downloaded_used_damaged_repaired_and_removed"),
    ("models move", &["json"], "settings::what_is_for_programs_is_json"),
    ("models add", &["path"], "models::models_of_every_kind_are_told_whether_they_fit"),
    ("models add", &["repository", "url"], "models::a_download_keeps_to_its_options"),
    ("models add", &["json"], "settings::what_is_for_programs_is_json"),
    ("models connections", &["json"], "settings::what_is_for_programs_is_json"),
    (
        "models quantize",
        &["output", "json"],
        "settings::options_of_the_other_commands_with_an_engine_reach_it",
    ),
    ("models quantize", &["to"], "real_engine::a_quantised_copy_of_a_model_is_one_more_model"),
    ("models quantize", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    ("voices add", &["priority"], "settings::a_low_priority_is_that_of_the_engine"),
    (
        "serve",
        &[
            "model",
            "device",
            "threads",
            "priority",
            "memory-profile",
            "batch-size",
            "memory-fraction",
            "memory-limit",
            "ram-limit",
            "precision",
            "speaker-batch-size",
            "skip-speakers",
            "trim-every",
            "renew-after",
            "keep",
            "speaker-model",
        ],
        "serve::options_of_the_server_reach_its_jobs",
    ),
    (
        "serve",
        &["listen", "create-token", "remove-token"],
        "serve_access::an_address_that_others_can_reach_needs_a_token",
    ),
    (
        "serve",
        &["require-token"],
        "serve_access::a_server_behind_a_proxy_asks_for_a_token_and_takes_any_host",
    ),
    (
        "serve",
        &["origin"],
        "serve_access::pages_of_other_origins_and_other_names_of_this_machine_are_refused",
    ),
    (
        "serve",
        &["request-log"],
        "serve_jobs::a_line_per_request_says_who_asked_what_and_nothing_of_recordings",
    ),
    ("serve", &["allow"], "serve_access::names_never_become_paths_and_errors_name_none"),
    ("serve", &["tls-cert", "tls-key"], "serve_access::https_is_served_with_a_certificate"),
    ("serve", &["max-upload"], "serve_access::an_upload_that_is_too_large_is_refused_and_leaves_nothing"),
    ("serve", &["max-duration"], "serve_recovery::a_bomb_that_decodes_to_hours_ends_at_the_longest_allowed"),
    ("serve", &["queue", "jobs-per-token"], "serve_access::a_full_queue_says_when_to_come_again"),
    ("serve", &["connections"], "serve_access::connections_are_limited"),
    ("serve", &["header-timeout", "body-timeout"], "serve_access::slow_clients_hold_nothing"),
    ("serve", &["keep-results"], "serve::transcripts_are_kept_for_as_long_as_asked"),
    (
        "worker",
        &[
            "device",
            "threads",
            "priority",
            "memory-profile",
            "batch-size",
            "memory-fraction",
            "memory-limit",
            "ram-limit",
            "precision",
            "speaker-batch-size",
            "skip-speakers",
            "trim-every",
            "renew-after",
            "keep",
            "speaker-model",
            "model",
        ],
        "workers::options_of_a_worker_reach_its_engine",
    ),
    ("worker", &["redeliver-after"], "workers::a_worker_that_is_asked_to_end_hands_its_job_back_at_once"),
    ("worker", &["max-deliveries"], "workers::jobs_that_fail_are_given_up_with_the_reason"),
    ("worker", &["quiet"], "workers::options_of_a_worker_reach_its_engine"),
    (
        "worker",
        &["nats", "creds", "queue", "replicas", "name"],
        "workers::queues_are_apart_and_nats_is_reached_as_asked",
    ),
    ("worker", &["ssh-key", "known-hosts"], "workers_sftp::a_server_with_another_key_is_refused"),
    (
        "submit",
        &[
            "recursive",
            "shared",
            "language",
            "task",
            "translate",
            "limit",
            "from",
            "to",
            "channels",
            "track",
            "vad",
            "speakers",
            "min-speakers",
            "max-speakers",
            "beam-size",
            "best-of",
            "temperature",
            "prompt",
            "vocabulary",
            "vocabulary-file",
            "vocabulary-strength",
            "strategy",
            "language-per-region",
            "condition-on-previous-text",
            "no-word-times",
            "no-timestamps",
            "no-repair",
            "seed",
            "quiet",
        ],
        "workers::options_of_submit_reach_the_engines_of_workers",
    ),
    ("submit", &["only"], "workers::languages_alone_are_a_table"),
    ("submit", &["model"], "workers::what_no_worker_can_run_is_told_with_what_it_needs"),
    (
        "submit",
        &["wait", "format", "output", "force"],
        "workers::jobs_that_fail_are_given_up_with_the_reason",
    ),
    (
        "submit",
        &["nats", "creds", "queue", "replicas"],
        "workers::queues_are_apart_and_nats_is_reached_as_asked",
    ),
    ("submit", &["ssh-key", "known-hosts"], "workers_sftp::a_server_with_another_key_is_refused"),
    (
        "collect",
        &["format", "output", "wait", "quiet"],
        "workers::killed_workers_and_a_killed_server_lose_nothing_and_double_nothing",
    ),
    ("collect", &["remove", "force"], "workers::jobs_that_fail_are_given_up_with_the_reason"),
    ("collect", &["nats", "creds", "queue"], "workers::queues_are_apart_and_nats_is_reached_as_asked"),
    (
        "cluster",
        &["nats", "creds", "queue", "json", "watch"],
        "workers::queues_are_apart_and_nats_is_reached_as_asked",
    ),
    ("voices list", &["json"], "real_engine::people_who_were_added_are_named"),
    ("voices remove", &["sample"], "real_engine::people_who_were_added_are_named"),
    ("voices export", &["output", "force"], "real_engine::people_who_were_added_are_named"),
];

#[test]
fn an_export_leaves_out_what_varies() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.run(&["transcribe", "a.mp3", "-f", "json"]).ends(0);
    for (options, has_run) in [(&[][..], true), (&["--reproducible"], false)] {
        let base = ["export", "a.json", "-f", "json", "-o", "-"];
        let out = sandbox.run(&[&base, options].concat()).ends(0).out;
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json.get("run").is_some(), has_run);
    }
}

#[test]
fn a_document_leaves_out_what_is_to_be_omitted() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.run(&["transcribe", "a.mp3", "-f", "json"]).ends(0);
    let mut json: Value = serde_json::from_str(&sandbox.read("a.json")).unwrap();
    for segment in json["segments"].as_array_mut().unwrap() {
        segment["speaker"] = "Ada".into();
    }
    sandbox.write("said.json", &json.to_string());
    let written = |command: &str, file: &str, options: &[&str]| {
        let base = [command, file, "-f", "md", "-o", "-"];
        let out = sandbox.run(&[&base, options].concat()).ends(0).out;
        // After the facts.
        let (_, text) = out.split_once("\n\n").unwrap().1.split_once("\n\n").unwrap();
        text.to_owned()
    };
    let whole = written("export", "said.json", &[]);
    assert!(whole.starts_with("**0:00 Ada** "), "{whole}");
    assert!(written("export", "said.json", &["--omit", "times"]).starts_with("**Ada** "));
    assert!(written("export", "said.json", &["--omit", "speakers"]).starts_with("**0:00** "));
    let bare = written("export", "said.json", &["--omit", "times,speakers,paragraphs"]);
    assert!(!bare.contains("**"), "{bare}");
    let paragraphs = |text: &str| text.split("\n\n").count();
    let segments = json["segments"].as_array().unwrap().len();
    assert!(paragraphs(&whole) < segments && paragraphs(&bare) == segments, "{whole}\n{bare}");
    assert!(!written("transcribe", "a.mp3", &["--omit", "times"]).contains("**"));
}

/// The title of a recording can be anything, and so can what is said in it.
#[test]
fn text_is_neither_a_formula_nor_a_tag() {
    let sandbox = Sandbox::with(&["{i}.mp3"]);
    let name = "{i}.mp3";
    let written = |command: &str, file: &str, format: &str, options: &[&str]| {
        let base = [command, file, "-f", format, "-o", "-"];
        sandbox.run(&[&base, options].concat()).ends(0).out
    };
    sandbox.run(&["transcribe", name, "-f", "json"]).ends(0);
    let json = sandbox.read("{i}.json").replace("Good morning.", "=1+1 <b>");
    sandbox.write("said.json", &json);
    for (format, safe, raw) in [
        ("csv", ",'=1+1 <b>\n", ",=1+1 <b>\n"),
        ("tsv", "\t'=1+1 <b>\n", "\t=1+1 <b>\n"),
        ("srt", "\n=1+1 ‹b›\n", "\n=1+1 <b>\n"),
    ] {
        let (safely, as_it_is) = (
            written("export", "said.json", format, &[]),
            written("export", "said.json", format, &["--raw-text"]),
        );
        assert!(safely.contains(safe) && !safely.contains(raw), "{format}: {safely}");
        assert!(as_it_is.contains(raw) && !as_it_is.contains(safe), "{format}: {as_it_is}");
    }
    // The scripted engine says the name of the recording.
    let (safely, as_it_is) =
        (written("transcribe", name, "srt", &[]), written("transcribe", name, "srt", &["--raw-text"]));
    assert!(safely.contains("(i)") && as_it_is.contains("{i}"), "{safely}\n{as_it_is}");
}

/// Whether a test of this executable, `module::name`, is there.
fn exists(test: &str) -> bool {
    let modules = [
        ("adapt", include_str!("adapt.rs")),
        ("chapters", include_str!("chapters.rs")),
        ("commands", include_str!("commands.rs")),
        ("driver", include_str!("../driver.rs")),
        ("memory", include_str!("memory.rs")),
        ("models", include_str!("models.rs")),
        ("real_engine", include_str!("real_engine.rs")),
        ("search", include_str!("search.rs")),
        ("serve", include_str!("serve.rs")),
        ("serve_access", include_str!("serve_access.rs")),
        ("serve_jobs", include_str!("serve_jobs.rs")),
        ("serve_recovery", include_str!("serve_recovery.rs")),
        ("settings", include_str!("settings.rs")),
        ("transcribe", include_str!("transcribe.rs")),
        ("transducer", include_str!("transducer.rs")),
        ("workers", include_str!("workers.rs")),
        ("workers_sftp", include_str!("workers_sftp.rs")),
        // What the window alone carries out.
        ("window", include_str!("../../../app/src/session/tests.rs")),
    ];
    test.split_once("::").is_some_and(|(module, name)| {
        let source = modules.iter().find(|(known, _)| *known == module);
        source.is_some_and(|(_, source)| source.contains(&format!("fn {name}()")))
    })
}

/// The long names of a command's options.
fn options(sandbox: &Sandbox, command: &str) -> BTreeSet<String> {
    let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    let help = sandbox.run(&arguments).ends(0).out;
    let option = |line: &str| {
        let (short, long) = line.trim_start().split_once("--")?;
        let is_option = short.is_empty() || short.starts_with('-') && short.ends_with(", ");
        let name: String =
            long.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '-').collect();
        (is_option && line.starts_with("  ")).then_some(name)
    };
    help.lines().filter_map(option).filter(|name| !["help", "version"].contains(&name.as_str())).collect()
}

/// The names of the commands below one, as its help lists them.
fn commands(sandbox: &Sandbox, parent: &[&str]) -> Vec<String> {
    let help = sandbox.run(&[parent, &["--help"]].concat()).ends(0).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    let names =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let join = |name: &str| [parent, &[name]].concat().join(" ");
    names.filter(|name| *name != "help").map(join).collect()
}

#[test]
fn every_option_of_every_command_has_a_test() {
    let sandbox = Sandbox::with(&[]);
    let all: Vec<String> = [&[][..], &["models"], &["voices"], &["gpu"], &["adapters"]]
        .into_iter()
        .flat_map(|of| commands(&sandbox, of))
        .collect();
    assert!(all.len() > 15, "{all:?}");
    for command in &all {
        let mut tested = BTreeSet::new();
        for (_, names, test) in OPTIONS.iter().filter(|(of, ..)| of == command) {
            assert!(exists(test), "{command} {names:?}: there is no test {test}");
            for name in *names {
                assert!(tested.insert((*name).to_owned()), "{command} --{name} is listed twice");
            }
        }
        assert_eq!(tested, options(&sandbox, command), "{command}");
    }
    for (command, ..) in OPTIONS {
        assert!(all.iter().any(|known| known == command), "there is no command {command}");
    }
}
