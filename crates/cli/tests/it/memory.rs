//! What the user says about memory, and what is said to the user about it.

use crate::support::{Ran, Sandbox};
use serde_json::Value;

/// What the engine was told of memory.
fn told(ran: &Ran) -> Value {
    let line = ran.err.lines().find_map(|line| line.strip_prefix("settings.mp3: ")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn settings_reach_the_engine_from_flags_environment_and_file() {
    let sandbox = Sandbox::with(&["settings.mp3"]);
    let config = "[memory]\nprofile = 'safe'\nbatch_size = 2\nram_limit = '5GiB'\nrenew_after = 7\n";
    std::fs::create_dir(sandbox.home.path().join("steno")).unwrap();
    std::fs::write(sandbox.home.path().join("steno/config.toml"), config).unwrap();
    let mut command =
        sandbox.command(&["transcribe", "settings.mp3", "--batch-size", "3", "--keep", "model,gpu"]);
    command.env("STENO_BATCH_SIZE", "9").env("STENO_RENEW_AFTER", "8").env("STENO_PRECISION", "q8_0");
    let told = told(&Ran::from(command.output().unwrap()).ends(0));
    let memory = &told["memory"];
    // Flag, flag, environment, file, profile, default.
    assert_eq!(memory["batch_size"], 3);
    assert_eq!((&memory["pins"]["model"], &memory["pins"]["cpu"]), (&true.into(), &true.into()));
    assert_eq!((&memory["renew_after"], &told["precision"]), (&8.into(), &"q8_0".into()));
    assert_eq!(memory["ram_limit"], 5u64 << 30);
    assert_eq!((&memory["memory_fraction"], &memory["memory_limit"]), (&0.125.into(), &Value::Null));

    // Another file takes the place of the usual one.
    sandbox.write("mine.toml", "[memory]\nbatch_size = 6\n");
    let mut command = sandbox.command(&["transcribe", "settings.mp3"]);
    let ran = Ran::from(command.env("STENO_CONFIG", "mine.toml").output().unwrap()).ends(0);
    let memory = &self::told(&ran)["memory"];
    assert_eq!((&memory["batch_size"], &memory["ram_limit"]), (&6.into(), &Value::Null));
}

#[test]
fn a_wrong_setting_ends_the_command_before_it_begins() {
    let sandbox = Sandbox::with(&["a.mp3"]);
    sandbox.write("mine.toml", "[memory]\nbatch = 6\n");
    for (variable, value, parts) in [
        ("STENO_BATCH_SIZE", "many", ["STENO_BATCH_SIZE is \"many\"", "a number from 1"]),
        (
            "STENO_CONFIG",
            "mine.toml",
            ["mine.toml: The config file has a key \"memory.batch\"", "batch_size"],
        ),
        ("STENO_CONFIG", "none.toml", ["none.toml: The config file can't be read", "STENO_CONFIG names it"]),
    ] {
        let output = sandbox.command(&["transcribe", "a.mp3"]).env(variable, value).output().unwrap();
        let ran = Ran::from(output).ends(2).says(parts[0]).says(parts[1]);
        assert_eq!(ran.out, "", "{}", ran.err);
    }
    sandbox
        .run(&["transcribe", "a.mp3", "--memory-limit", "6 apples"])
        .ends(2)
        .says("an amount such as 6GiB");
}

#[test]
fn what_may_take_over_goes_with_the_job() {
    let sandbox = Sandbox::with(&["settings.mp3"]);
    let told = told(&sandbox.run(&["transcribe", "settings.mp3"]).ends(0));
    let precisions: Vec<&str> = told["alternatives"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["model"] == "starter-whisper" && it["suits"] == true)
        .map(|it| it["precision"].as_str().unwrap())
        .collect();
    assert_eq!(precisions, ["f32", "f16", "q8_0"]);
}

#[test]
fn help_completions_and_manual_know_the_settings() {
    let sandbox = Sandbox::with(&[]);
    let help = sandbox.run(&["transcribe", "--help"]).ends(0).out;
    let manual = sandbox.run(&["man", "transcribe"]).ends(0).out.replace('\\', "");
    let bash = sandbox.run(&["completions", "bash"]).ends(0).out;
    for (variable, _) in memory::settings::VARIABLES {
        // Not of a transcription.
        if variable == "STENO_EMBEDDING_PROFILE" {
            continue;
        }
        let flag = config::preferences::flag(variable);
        if variable == "STENO_FAST_PATH" {
            assert!(help.contains(variable), "{help}");
            continue;
        }
        for (name, text) in [("help", &help), ("manual", &manual), ("completions", &bash)] {
            assert!(text.contains(&flag), "no {flag} in the {name}");
        }
    }
    for part in ["--memory-profile", "--precision", "STENO_CONFIG", "STENO_BATCH_SIZE", "[memory]"] {
        assert!(help.contains(part), "no {part} in the help");
    }
}

#[test]
fn whether_the_model_fits_is_said_before_the_queue_starts() {
    let sandbox = Sandbox::with(&["a.mp3", "b.mp3"]);
    let ran = sandbox.run(&["transcribe", "a.mp3", "b.mp3"]).ends(0);
    let said: Vec<usize> =
        ran.err.match_indices("starter-whisper (f32) on the CPU: ").map(|it| it.0).collect();
    assert_eq!(said.len(), 1, "{}", ran.err);
    assert!(ran.err.contains(" is free."), "{}", ran.err);
    assert!(said[0] < ran.err.find("a.mp3: ").unwrap(), "{}", ran.err);
    let quiet = sandbox.run(&["transcribe", "a.mp3", "--quiet", "--force"]).ends(0);
    assert_eq!(quiet.err, "");

    // What will not fit is a warning, and no reason not to try.
    let arguments = ["transcribe", "a.mp3", "--quiet", "--force", "--ram-limit", "40MiB"];
    let ran = sandbox.run(&arguments).ends(0);
    ran.says("steno: warning: starter-whisper (f32) on the CPU: does not fit. The transcription needs ")
        .says("the memory limit is 40 MB")
        .says("See docs/troubleshooting.md#memory-will-not-fit.");
}

#[test]
fn the_doctor_says_which_models_fit() {
    let sandbox = Sandbox::with(&[]);
    let out = sandbox.run(&["doctor"]).ends(0).out;
    // However wide the columns are.
    let found = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["fit starter-whisper f32 needs ", "starter-whisper q8_0 needs ", " free of "] {
        assert!(found.contains(part), "no {part:?} in:\n{out}");
    }
    let out = sandbox.run(&["doctor", "--ram-limit", "40MiB", "--precision", "q8_0"]).ends(0).out;
    assert!(out.contains("does not fit, ") && out.contains(" short") && !out.contains("f32 "), "{out}");
    let out = sandbox.run(&["doctor", "--json"]).ends(0).out;
    let json: Value = serde_json::from_str(&out).unwrap();
    let fit = json["fits"].as_array().unwrap().iter().find(|fit| fit["model"] == "starter-whisper").unwrap();
    assert!(fit["check"]["peak"].as_u64().unwrap() > 40 << 20, "{fit}");
    // A config file that can't be used is told of and keeps nobody from the rest.
    sandbox.write("mine.toml", "nonsense = 1");
    let output = sandbox.command(&["doctor"]).env("STENO_CONFIG", "mine.toml").output().unwrap();
    let ran = Ran::from(output).ends(0);
    assert!(ran.out.contains("settings      can't be used. mine.toml: "), "{}", ran.out);
}

#[cfg(target_os = "linux")]
mod engines {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use supervisor::runs::{RegisteredEngine, Runs};

    /// A process that stands for an engine, written down as one.
    struct Engine {
        process: Child,
        entry: RegisteredEngine,
    }

    impl Engine {
        fn start(sandbox: &Sandbox) -> Self {
            Self::of(sandbox, Command::new("sleep").arg("3600"))
        }

        fn of(sandbox: &Sandbox, command: &mut Command) -> Self {
            let process = command.stdin(Stdio::null()).process_group(0).spawn().unwrap();
            let runs = Runs::at(sandbox.home.path().join("run/steno"));
            let entry = runs.register(process.id(), "cpu").unwrap();
            Self { process, entry }
        }

        fn runs(&mut self) -> bool {
            self.process.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Engine {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    #[test]
    fn engines_are_listed_with_what_they_hold() {
        let sandbox = Sandbox::with(&[]);
        let out = sandbox.run(&["memory"]).ends(0).out;
        assert!(out.contains("engines   none running") && out.contains(" free of "), "{out}");
        let engine = Engine::start(&sandbox);
        let _job = engine.entry.begin("cpu", "small");
        let out = sandbox.run(&["memory"]).ends(0).out;
        let pid = engine.process.id();
        for part in [
            format!("engine    process {pid} on cpu with small, busy, for "),
            format!("host process {}", std::process::id()),
            " anonymous, ".into(),
        ] {
            assert!(out.contains(&part), "no {part:?} in:\n{out}");
        }
        let json: Value = serde_json::from_str(&sandbox.run(&["memory", "--json"]).ends(0).out).unwrap();
        let listed = &json["engines"][0];
        assert_eq!((&listed["engine"]["pid"], &listed["busy"]), (&pid.into(), &true.into()));
        assert!(listed["anonymous"].as_u64().unwrap() > 0);
        assert!(json["host"]["Ok"]["total"].as_u64().unwrap() > 0, "{json}");
    }

    #[test]
    fn idle_engines_are_ended_and_busy_ones_stay() {
        let sandbox = Sandbox::with(&[]);
        sandbox.run(&["memory", "--release"]).ends(0).says("No engines are running.");
        let (mut idle, mut busy) = (Engine::start(&sandbox), Engine::start(&sandbox));
        let _job = busy.entry.begin("cpu", "small");
        let ran = sandbox.run(&["memory", "--release"]).ends(0);
        let ran = ran.says(&format!("process id {} was stopped.", idle.process.id()));
        ran.says(&format!("process id {} is busy and keeps running.", busy.process.id()));
        assert!(!idle.runs() && busy.runs());
    }

    #[test]
    fn an_engine_that_does_not_answer_needs_force() {
        let sandbox = Sandbox::with(&[]);
        let mut engine = Engine::start(&sandbox);
        let pid = engine.process.id();
        let stopped = Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
        assert!(stopped.success());
        // A signal that came before it stands still would end it.
        while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        sandbox.run(&["memory", "--release"]).ends(1).says("does not respond").says("--force");
        assert!(engine.runs());
        sandbox.run(&["memory", "--release", "--force"]).ends(0).says("was stopped.");
        assert!(!engine.runs());
        sandbox.run(&["memory", "--force"]).ends(2).says("--release");
    }

    #[test]
    fn the_highest_memory_is_counted_anew() {
        use std::io::{BufRead, BufReader};
        let sandbox = Sandbox::with(&[]);
        let mut engine = Engine::of(
            &sandbox,
            Command::new(env!("CARGO_BIN_EXE_steno-scripted-engine")).arg("peak").stdout(Stdio::piped()),
        );
        let mut line = String::new();
        BufReader::new(engine.process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "released\n");
        let peak = |arguments: &[&str]| {
            let json: Value = serde_json::from_str(&sandbox.run(arguments).ends(0).out).unwrap();
            json["engines"][0]["peak_resident"].as_u64().unwrap()
        };
        let released = 64 << 20;
        assert!(peak(&["memory", "--json"]) >= released);
        assert!(peak(&["memory", "--json", "--reset-peak"]) < released);
        assert!(peak(&["memory", "--json"]) < released);
    }

    #[test]
    fn what_a_killed_program_left_behind_is_ended_by_the_next() {
        // While it works, its engine is written down.
        let sandbox = Sandbox::with(&["slow.mp3"]);
        let mut host = sandbox.command(&["transcribe", "slow.mp3"]).stderr(Stdio::null()).spawn().unwrap();
        let runs = Runs::at(sandbox.home.path().join("run/steno"));
        let run = loop {
            if let Some(run) = runs.list().into_iter().find(|run| run.busy) {
                break run;
            }
            assert!(host.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert_eq!((run.host.pid, run.model.as_deref()), (host.id(), Some("starter-whisper")));
        host.kill().unwrap();
        host.wait().unwrap();

        // An engine that does not notice that its host is gone.
        let mut engine = Engine::start(&sandbox);
        let pid = engine.process.id();
        let _job = engine.entry.begin("cpu", "small");
        let file = runs.folder().join(format!("engine-{pid}.json"));
        let mut written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        written["host"] = serde_json::to_value(&run.host).unwrap();
        std::fs::write(&file, written.to_string()).unwrap();
        let said = format!(
            "steno: warning: the program with the process id {} is gone and left its engine (process id {pid}, cpu with small) behind; the engine was ended",
            run.host.pid
        );
        sandbox.run(&["memory"]).ends(0).says(&said);
        // It was told to end; the system takes its time where much else runs.
        let since = std::time::Instant::now();
        while engine.runs() {
            assert!(since.elapsed().as_secs() < 10, "it still runs");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(runs.list().is_empty() && !file.exists());
    }

    #[test]
    fn watching_looks_again() {
        use std::io::{BufRead, BufReader};
        let sandbox = Sandbox::with(&[]);
        let mut watch =
            sandbox.command(&["memory", "--json", "--watch", "1"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        for line in lines.take(2) {
            let json: Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert!(json["engines"].is_array());
        }
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
}
