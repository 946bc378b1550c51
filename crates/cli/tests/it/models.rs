//! Models by the command line: downloaded from a server that speaks the hub's
//! protocol, imported, found, verified, repaired, moved and removed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server::{Fault, Server};
use crate::support::{Ran, Sandbox};
use serde_json::Value;

const NAME: &str = "whisper-tiny";

struct Machine {
    sandbox: Sandbox,
    server: Server,
}

impl Machine {
    fn new() -> Self {
        let sandbox = Sandbox::with(&["talk.flac"]);
        let server = Server::start();
        server.put_folder("openai/whisper-tiny", &micro(&sandbox, "micro"));
        Self { sandbox, server }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        isolate(&mut command, &self.sandbox);
        command.env("HF_ENDPOINT", self.server.url());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments).ends(0).out).unwrap()
    }

    fn store(&self) -> PathBuf {
        self.sandbox.home.path().join("data/steno/models")
    }

    /// Of `steno models list`.
    fn listed(&self, name: &str) -> Option<Value> {
        let all = self.json(&["models", "list", "--json"]);
        all.as_array().unwrap().iter().find(|model| model["name"] == name).cloned()
    }
}

/// Nothing of the surroundings that has to do with models or the network.
fn isolate(command: &mut Command, sandbox: &Sandbox) {
    for name in ["HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.env("HOME", sandbox.home.path()).env("XDG_DATA_HOME", sandbox.home.path().join("data"));
}

/// A whole model, small enough for a test of seconds.
fn micro(sandbox: &Sandbox, name: &str) -> PathBuf {
    let folder = sandbox.home.path().join(name);
    let size = random_models::Size::named("micro").unwrap();
    random_models::write(&folder, size, &random_models::Options::default()).unwrap();
    folder
}

fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_model_is_downloaded_used_damaged_repaired_and_removed() {
    let machine = Machine::new();
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(1).says("steno models pull whisper-tiny");
    let all = machine.json(&["models", "list", "--all", "--json"]);
    let entry = all.as_array().unwrap().iter().find(|model| model["name"] == NAME).unwrap();
    assert_eq!(
        (&entry["state"], &entry["catalogue"]["approx_megabytes"]),
        (&"available".into(), &151.into())
    );

    let pulled = machine.json(&["models", "pull", NAME, "--json"]);
    assert_eq!((&pulled[0]["id"], &pulled[0]["state"]["state"]), (&NAME.into(), &"ready".into()));
    assert_eq!(machine.listed(NAME).unwrap()["path"], pulled[0]["path"]);
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(0);
    let verified = machine.json(&["models", "verify", "--json"]);
    assert_eq!((&verified[0]["id"], verified[0]["damaged"].as_array().unwrap().len()), (&NAME.into(), 0));

    damage(&machine.store().join(NAME).join("model.safetensors"));
    let ran = machine.run(&["models", "verify", NAME]).ends(1);
    assert!(ran.out.contains("model.safetensors: Its checksum has changed."), "{}", ran.out);
    assert_eq!(machine.listed(NAME).unwrap()["state"], "damaged");
    let refused = machine.run(&["transcribe", "talk.flac", "--force", "--model", NAME]).ends(1);
    refused.says("This model is damaged: model.safetensors").says_not("panicked");
    machine.run(&["models", "verify", "--repair", NAME, "--offline"]).ends(1).says("turned off");
    machine.run(&["models", "verify", "--repair", NAME]).ends(0).says("was repaired");
    machine.run(&["transcribe", "talk.flac", "--force", "--model", NAME]).ends(0);

    let removed = machine.json(&["models", "remove", NAME, "--json"]);
    assert_eq!(removed[0]["id"], NAME);
    assert!(machine.listed(NAME).is_none() && !machine.store().join(NAME).exists());
    let gone = machine.run(&["models", "remove", NAME]).ends(1);
    gone.says("is not installed").says("lists the installed models").says_not("Download");

    let told = machine.run(&["models", "connections"]).ends(0).out;
    assert!(told.contains("127.0.0.1") && told.contains("model.safetensors of whisper-tiny"), "{told}");
}

trait SaysNot {
    fn says_not(self, part: &str) -> Self;
}

impl SaysNot for Ran {
    #[track_caller]
    fn says_not(self, part: &str) -> Self {
        assert!(!self.err.contains(part), "{}", self.err);
        self
    }
}

#[test]
fn what_goes_wrong_is_said_with_the_way_out() {
    let machine = Machine::new();
    for (arguments, part) in [
        (&["models", "pull", "whisper-huge"][..], "`steno models list --all` shows what is known"),
        (&["models", "pull", "nobody/nothing"], "127.0.0.1 has no"),
        (&["models", "pull", NAME, "--offline"], "network access is turned off"),
        (&["models", "pull", NAME, "--hub", "http://127.0.0.1:9"], "127.0.0.1 can't be reached"),
        (&["models", "import", "talk.flac"], "neither safetensors nor GGUF"),
        (&["models", "import", "nothing"], "No such file"),
        (&["models", "verify", "nobody"], "There is no model named"),
    ] {
        let ran = machine.run(arguments).ends(1);
        assert!(ran.err.contains(part) && ran.out.is_empty(), "{arguments:?}: {}", ran.err);
    }
    let ran = machine.run(&["models", "pull", NAME, "--hub", "mirror"]).ends(2);
    assert!(ran.err.contains("--hub is \"mirror\"; it takes the address of the hub"), "{}", ran.err);
    for switch in ["STENO_OFFLINE", "HF_HUB_OFFLINE"] {
        let output = machine.command(&["models", "pull", NAME]).env(switch, "1").output().unwrap();
        Ran::from(output).ends(1).says("turned off");
    }
    assert!(machine.listed(NAME).is_none());
}

#[test]
fn ctrl_c_keeps_what_has_come_and_the_next_download_goes_on() {
    let machine = Machine::new();
    machine.server.faults("GET", "model.safetensors", [Fault::None, Fault::Hold(20_000)]);
    let child = machine
        .command(&["models", "pull", NAME])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    machine.server.wait_until_held();
    // SAFETY: the call takes numbers only; the child is ours and was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let ran = Ran::from(child.wait_with_output().unwrap()).ends(130);
    ran.says("the download resumes where it stopped");
    assert_eq!(machine.listed(NAME).unwrap()["state"], "interrupted");
    let listed = machine.run(&["models"]).ends(0).out;
    assert!(listed.contains("`steno models pull whisper-tiny` resumes"), "{listed}");
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(1).says("was interrupted");
    machine.run(&["models", "pull", NAME]).ends(0);
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(0);
}

#[test]
fn a_download_keeps_to_its_options() {
    let machine = Machine::new();
    let pulled = machine.run(&["models", "pull", NAME, "--name", "mine", "--quiet"]).ends(0);
    assert_eq!(pulled.err, "");
    assert!(machine.listed("mine").is_some() && machine.listed(NAME).is_none());
    let imported = machine.json(&[
        "models",
        "import",
        machine.store().join("mine").to_str().unwrap(),
        "--name",
        "copy",
        "--json",
    ]);
    assert!(machine.listed("copy").is_some(), "{imported}");

    // What is at the hub now is something else: it is taken only where that was asked for.
    let told = machine.run(&["models", "pull", NAME]).ends(0);
    assert!(!told.err.is_empty(), "progress is told without --quiet");
    machine.run(&["models", "remove", NAME]).ends(0);
    machine.server.put("openai/whisper-tiny/config.json", "{}");
    machine.server.commit(&"a1".repeat(20));
    machine.run(&["models", "pull", NAME]).ends(1).says("--renew");
    machine.run(&["models", "pull", NAME, "--renew"]).ends(1).says_not("--renew");

    // Models that were added are downloaded from where they were said to be.
    let file = format!("{}/model.gguf", machine.server.url());
    machine.run(&["models", "add", "far", "--repository", "somebody/nothing"]).ends(0);
    machine.run(&["models", "add", "file", "--url", &file]).ends(0);
    machine.run(&["models", "pull", "far"]).ends(1).says("somebody/nothing");
    machine.run(&["models", "pull", "file"]).ends(1).says("model.gguf");
}

#[test]
fn the_network_is_used_as_it_is_set() {
    let machine = Machine::new();
    // Takes what is meant for a hub or a proxy, and has nothing.
    let other = Server::start();
    let url = other.url();
    machine.run(&["models", "pull", NAME]).ends(0);
    damage(&machine.store().join(NAME).join("model.safetensors"));
    let goes_elsewhere = |mut command: Command| {
        machine.server.forget();
        other.forget();
        Ran::from(command.output().unwrap()).ends(1);
        assert!(machine.server.seen().is_empty() && !other.seen().is_empty(), "{command:?}");
    };
    let stays_off = |mut command: Command| {
        machine.server.forget();
        Ran::from(command.output().unwrap()).ends(1).says("turned off");
        assert!(machine.server.seen().is_empty(), "{command:?}");
    };
    let file = machine.sandbox.path("config.toml");
    let with_file = |arguments: &[&str], key: &str, value: &str| {
        std::fs::write(&file, format!("[network]\n{key} = \"{value}\"\n")).unwrap();
        let mut command = machine.command(arguments);
        command.env("STENO_CONFIG", &file);
        command
    };
    let pull = ["models", "pull", "openai/whisper-tiny", "--name", "other"];
    let repair = ["models", "verify", "--repair", NAME];
    for command in [&pull[..], &repair] {
        let with = |options: &[&str]| machine.command(&[command, options].concat());
        let with_variable = |name: &str, value: &str| {
            let mut command = with(&[]);
            command.env(name, value);
            command
        };
        stays_off(with(&["--offline"]));
        stays_off(with_variable("STENO_OFFLINE", "true"));
        stays_off(with_file(command, "off", "true"));
        goes_elsewhere(with(&["--hub", &url]));
        goes_elsewhere(with_variable("HF_ENDPOINT", &url));
        let mut without_variable = with_file(command, "hub", &url);
        without_variable.env_remove("HF_ENDPOINT");
        goes_elsewhere(without_variable);
        goes_elsewhere(with(&["--proxy", &url]));
        goes_elsewhere(with_variable("STENO_PROXY", &url));
        goes_elsewhere(with_file(command, "proxy", &url));
        Ran::from(with(&[]).output().unwrap()).ends(0);
    }
}

#[test]
fn models_of_other_programs_are_used_and_left_alone() {
    let machine = Machine::new();
    let cache = machine.sandbox.home.path().join(".cache/huggingface/hub/models--openai--whisper-tiny");
    let snapshot = cache.join("snapshots/c0ffee");
    std::fs::create_dir_all(cache.join("refs")).unwrap();
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(cache.join("blobs")).unwrap();
    std::fs::write(cache.join("refs/main"), "c0ffee").unwrap();
    let source = micro(&machine.sandbox, "source");
    for (number, entry) in std::fs::read_dir(source).unwrap().map(Result::unwrap).enumerate() {
        let blob = cache.join(format!("blobs/{number}"));
        std::fs::copy(entry.path(), &blob).unwrap();
        std::os::unix::fs::symlink(format!("../../blobs/{number}"), snapshot.join(entry.file_name()))
            .unwrap();
    }
    assert_eq!(machine.listed(NAME).unwrap()["path"], snapshot.display().to_string());
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(0);
    machine.run(&["models", "remove", NAME]).ends(1).says("leaves it alone");
    assert!(snapshot.join("model.safetensors").is_file());
    // Half of one is none.
    std::fs::remove_file(snapshot.join("model.safetensors")).unwrap();
    assert!(machine.listed(NAME).is_none());
}

#[test]
fn the_models_move_and_are_found_where_they_are() {
    let machine = Machine::new();
    machine.run(&["models", "pull", NAME]).ends(0);
    machine.run(&["models", "move", "other disk"]).ends(0);
    let moved = machine.sandbox.path("other disk").canonicalize().unwrap();
    assert_eq!(machine.listed(NAME).unwrap()["path"], moved.join(NAME).display().to_string());
    machine.run(&["transcribe", "talk.flac", "--model", NAME]).ends(0);
    // Others go there too.
    let source = micro(&machine.sandbox, "source");
    machine.run(&["models", "import", source.to_str().unwrap(), "--name", "mine"]).ends(0);
    assert!(moved.join("mine/model.safetensors").is_file());
    let output = machine.command(&["models", "move", "x"]).env("STENO_MODELS", &moved).output().unwrap();
    Ran::from(output).ends(1).says("STENO_MODELS sets where the models are");
}

fn are_told_whether_they_fit(machine: &Machine, names: &[&str]) {
    let report = machine.json(&["doctor", "--json"]);
    let recommended = machine.json(&["models", "recommend", "--json"]);
    let cpu = recommended["devices"].as_array().unwrap().last().unwrap().clone();
    for &name in names {
        let fits = report["fits"].as_array().unwrap();
        assert!(fits.iter().any(|fit| fit["model"] == name), "{name} is not in {fits:?}");
        let choice =
            cpu["choices"].as_array().unwrap().iter().find(|choice| choice["model"] == name).unwrap();
        assert_eq!(choice["installed"], true);
        let ran = machine.run(&["transcribe", "talk.flac", "--force", "--model", name]).ends(0);
        ran.says(name).says(": fits. It needs ");
    }
}

#[test]
#[ignore = "full corpus: make soak"]
fn a_file_of_whisper_cpp_is_told_whether_it_fits() {
    let machine = Machine::new();
    let file = random_models::corpus::full().join("models/starter-ggml/ggml-starter-q8_0.bin");
    machine.run(&["models", "import", file.to_str().unwrap()]).ends(0);
    are_told_whether_they_fit(&machine, &["ggml-starter-q8_0"]);
}

#[test]
fn models_of_every_kind_are_told_whether_they_fit() {
    let machine = Machine::new();
    let source = micro(&machine.sandbox, "source");
    machine.run(&["models", "import", source.to_str().unwrap(), "--name", "mine"]).ends(0);
    machine.run(&["models", "add", "here", "--path", source.to_str().unwrap()]).ends(0);
    are_told_whether_they_fit(&machine, &["mine", "here"]);
    let ran = machine.run(&["models", "recommend"]).ends(0);
    assert!(ran.out.contains("Use "), "{}", ran.out);
    machine.run(&["models", "remove", "here"]).ends(0);
    assert!(source.join("config.json").is_file() && machine.listed("here").is_none());
}

/// Where there is no network at all everything but `pull` works, and nothing
/// tries to use one.
#[cfg(target_os = "linux")]
#[test]
fn without_any_network_everything_but_a_download_works() {
    let possible =
        Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: this system allows no namespace without a network (unshare -rn)");
        return;
    }
    let machine = Machine::new();
    let source = micro(&machine.sandbox, "source");
    let source = source.to_str().unwrap();
    let traced =
        Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !traced {
        println!("skipped: there is no strace to see attempts with; only their success is looked at");
    }
    let trace = machine.sandbox.home.path().join("trace");
    let run = |arguments: &[&str]| -> Ran {
        let plain = machine.command(arguments);
        let mut command = Command::new("unshare");
        command.arg("-rn");
        if traced {
            command.args(["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o"]).arg(&trace);
        }
        command.arg(plain.get_program()).args(plain.get_args());
        command.current_dir(plain.get_current_dir().unwrap()).stdin(Stdio::null());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.output().unwrap().into()
    };
    for arguments in [
        &["models", "import", source, "--name", "mine"][..],
        &["models", "list", "--all"],
        &["models", "recommend"],
        &["models", "verify"],
        &["transcribe", "talk.flac", "--model", "mine"],
        &["detect-language", "talk.flac"],
        &["transcribe", "talk.flac", "--format", "json,srt", "--output", "out"],
        &["export", "out/talk.json", "--format", "vtt"],
        &["doctor"],
        &["memory"],
        &["resume", "--list"],
        &["models", "connections"],
        &["models", "remove", "mine"],
    ] {
        let ran = run(arguments).ends(0);
        let attempts = std::fs::read_to_string(&trace).unwrap_or_default();
        let attempts: Vec<&str> = attempts.lines().filter(|line| line.contains("AF_INET")).collect();
        assert!(attempts.is_empty(), "{arguments:?}: {attempts:?}\n{}", ran.err);
    }
    run(&["models", "pull", NAME, "--quiet"]).ends(1).says("can't be reached");
    if traced {
        // What would have been seen.
        assert!(std::fs::read_to_string(&trace).unwrap().contains("AF_INET"));
    }
}
