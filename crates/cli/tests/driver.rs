//! What the doctor says of a machine whose driver is missing, or lacks a
//! library: with libraries made for it, one at a time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

#[path = "../../hub/tests/support/mod.rs"]
mod server;
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use server::Server;
use support::{Ran, Sandbox, project};

/// A program that is being written can't be started, also where another test
/// starts its own at that moment.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Compiles a library; false where there is no compiler.
fn library(file: &Path, source: &Path) -> bool {
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(file).arg(source).arg("-ldl").output() {
        Err(error) => {
            println!("skipped: no C compiler ({error})");
            false
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
    }
}

/// The libraries of a driver with these of its parts, in the folder `driver`.
fn driver(sandbox: &Sandbox, computes: bool, answers: Option<&str>) -> bool {
    let folder = sandbox.path("driver");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    if computes {
        sandbox.write("cuda.c", "int cuInit(unsigned flags) { return 0; }\n");
        if !library(&folder.join("libcuda.so.1"), &sandbox.path("cuda.c")) {
            return false;
        }
    }
    if let Some(answers) = answers {
        if !library(&folder.join("libnvidia-ml.so.1"), &project().join("scripts/cuda/mock/nvml.c")) {
            return false;
        }
        std::fs::write(folder.join("libnvidia-ml.so.1.conf"), answers).unwrap();
    }
    true
}

const CARD: &str =
    "gpu GPU-11111111-2222-3333-4444-555555555555 0:01:00.0 8589934592 3221225472 Small Card\n";

#[test]
fn the_doctor_names_the_library_that_is_missing_and_the_cpu_serves() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&["a.mp3"]);
    // (libcuda.so.1, what libnvidia-ml.so.1 answers) -> what is said
    let cases: [(bool, Option<&str>, &[&str]); 7] = [
        (false, None, &["gpu           No NVIDIA driver is installed on this machine."]),
        (
            true,
            None,
            &[
                "gpu           The NVIDIA driver can compute (libcuda.so.1), but its libnvidia-ml.so.1 can't",
                "Install",
            ],
        ),
        (
            false,
            Some(CARD),
            &[
                "gpu           Small Card, 3.0 GB free of 8.0 GB",
                "libcuda.so.1 can't be loaded: the CPU",
                "Install",
            ],
        ),
        (true, Some(CARD), &["gpu           Small Card, 3.0 GB free of 8.0 GB"]),
        (true, Some("init 9\n"), &["gpu           The NVIDIA driver is installed but does not run"]),
        (
            true,
            Some("init 18\n"),
            &["gpu           The NVIDIA driver was updated while it was running; restart"],
        ),
        (true, Some("init 4\n"), &["gpu           This user may not ask the NVIDIA driver."]),
    ];
    for (computes, answers, parts) in cases {
        if !driver(&sandbox, computes, answers) {
            return;
        }
        for command in [["doctor"].as_slice(), &["memory"]] {
            let output =
                sandbox.command(command).env("LD_LIBRARY_PATH", sandbox.path("driver")).output().unwrap();
            let ran = Ran::from(output).ends(0);
            for part in parts {
                // The same words, in columns of another width.
                let part =
                    if command == ["memory"] { part.trim_start_matches("gpu").trim_start() } else { part };
                let part = if command == ["memory"] { part.trim_start_matches("Small Card, ") } else { part };
                assert!(ran.out.contains(part), "{computes} {answers:?}: no {part:?} in:\n{}", ran.out);
            }
        }
        let output = sandbox
            .command(&["transcribe", "a.mp3", "--force"])
            .env("LD_LIBRARY_PATH", sandbox.path("driver"))
            .output()
            .unwrap();
        assert!(Ran::from(output).ends(0).out.contains("Good morning."));
    }
}

/// `steno` beside its engine, and beside one for cards where `cuda` says so.
fn installed(sandbox: &Sandbox, cuda: bool) {
    let bin = sandbox.path("bin");
    let _ = std::fs::remove_dir_all(&bin);
    std::fs::create_dir(&bin).unwrap();
    let scripted = env!("CARGO_BIN_EXE_steno-scripted-engine");
    std::fs::copy(env!("CARGO_BIN_EXE_steno"), bin.join("steno")).unwrap();
    for name in ["steno-engine", "steno-engine-cuda"].iter().take(1 + usize::from(cuda)) {
        std::fs::copy(scripted, bin.join(name)).unwrap();
    }
}

/// That `steno`, whose engine for cards does with its card what `card` says, and which succeeds.
fn steno(sandbox: &Sandbox, card: &str, arguments: &[&str]) -> Ran {
    tried(sandbox, card, arguments).ends(0)
}

fn tried(sandbox: &Sandbox, card: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(sandbox.path("bin/steno"));
    command.args(arguments).current_dir(sandbox.folder.path());
    command.env("LD_LIBRARY_PATH", sandbox.path("driver")).env("STENO_SCRIPT_CARD", card);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "STENO_STATE_FOLDER"] {
        command.env(name, sandbox.home.path());
    }
    command.env("STENO_MODEL", project().join("models/starter-whisper"));
    command.env("STENO_SCRIPT_JOBS", sandbox.home.path().join("jobs"));
    for name in
        ["STENO_ENGINE", "STENO_BACKEND", "STENO_GPU_MANIFEST", "STENO_OFFLINE", "CUDA_VISIBLE_DEVICES"]
    {
        command.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    Ran::from(command.output().unwrap())
}

/// A release whose engine notes its library path in the file `path` and goes on as the scripted one.
fn release(sandbox: &Sandbox) -> (Server, String) {
    let server = Server::start();
    let (noted, scripted) = (sandbox.path("path"), env!("CARGO_BIN_EXE_steno-scripted-engine"));
    let program = format!(
        "#!/bin/sh\nprintf %s \"$LD_LIBRARY_PATH\" >'{}'\nexec '{scripted}' \"$@\"\n",
        noted.display()
    );
    sandbox.write("engine", &program);
    let libraries = ["libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10"];
    libraries.iter().for_each(|name| sandbox.write(&format!("libraries/{name}"), "a library"));
    // As a release is made.
    let mut script = Command::new(project().join("scripts/package/engine.sh"));
    script.arg("--program").arg(sandbox.path("engine")).arg("--libraries").arg(sandbox.path("libraries"));
    Ran::from(script.arg("--output").arg(sandbox.path("release")).output().unwrap()).ends(0);
    for name in ["manifest.json", "steno-engine-cuda"] {
        server.put(&format!("r/{name}"), std::fs::read(sandbox.path("release").join(name)).unwrap());
    }
    for name in libraries.map(|name| format!("cuda-libs/{name}")) {
        server.put(&format!("r/{name}"), std::fs::read(sandbox.path("release").join(&name)).unwrap());
    }
    let address = format!("{}/r/manifest.json", server.url());
    (server, address)
}

/// From a card that nothing computes on to a job on it, and back.
#[test]
fn the_engine_is_downloaded_started_and_removed() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&["a.mp3"]);
    if !driver(
        &sandbox,
        true,
        Some(&format!("{CARD}capability GPU-11111111-2222-3333-4444-555555555555 8.9\n")),
    ) {
        return;
    }
    installed(&sandbox, false);
    let (_server, address) = release(&sandbox);
    let gpu =
        || -> Value { serde_json::from_str(&steno(&sandbox, "works", &["gpu", "--json"]).out).unwrap() };
    let before = gpu();
    assert_eq!(before["cards"][0]["lack"]["lacks"], "engine");
    assert_eq!((&before["install_helps"], &before["cuda_engine"]), (&json!(true), &Value::Null));
    assert_eq!(before["driver"], "580.65.06");
    let told = steno(&sandbox, "works", &["gpu"]).out;
    for part in ["cuda:0   Small Card, 3.0 GB free of 8.0 GB, compute capability 8.9", "`steno gpu install`"]
    {
        assert!(told.contains(part), "no {part:?} in {told}");
    }

    let folder = sandbox.home.path().join("steno/engines/cuda");
    steno(&sandbox, "works", &["gpu", "install", "--manifest", &address]).says("The engine is installed");
    let after = gpu();
    assert_eq!((&after["cards"][0]["lack"], &after["install_helps"]), (&Value::Null, &json!(false)));
    assert_eq!(after["cuda_engine"], json!(folder.join("steno-engine-cuda")));
    assert!(steno(&sandbox, "works", &["gpu"]).out.contains("It can compute."));
    // It starts, with NVIDIA's libraries before all others, and is what jobs use.
    let _ = std::fs::remove_file(sandbox.path("path"));
    let ran = steno(&sandbox, "works", &["transcribe", "a.mp3", "--force"]);
    assert!(ran.out.contains("Good morning.") && ran.err.contains(" on Small Card: "), "{}", ran.err);
    let path = sandbox.read("path");
    assert!(path.starts_with(folder.join("cuda-libs").to_str().unwrap()), "{path}");

    steno(&sandbox, "works", &["gpu", "remove"]).says("was removed");
    assert!(!folder.exists());
    assert_eq!(gpu()["cards"][0]["lack"]["lacks"], "engine");
    assert_ne!(tried(&sandbox, "works", &["gpu", "remove"]).says("No engine").code, Some(0));
}

#[test]
fn the_download_of_the_engine_keeps_to_its_options() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&[]);
    if !driver(&sandbox, true, Some(CARD)) {
        return;
    }
    installed(&sandbox, false);
    let (server, address) = release(&sandbox);
    let install = |options: &[&str]| tried(&sandbox, "works", &[&["gpu", "install"], options].concat());
    assert_eq!(install(&["--manifest", &address, "--offline"]).code, Some(1));
    assert!(server.seen().is_empty());
    // Nobody listens there.
    let ran = install(&["--manifest", "https://example.invalid/manifest.json", "--proxy", "nonsense:// "]);
    assert!(ran.code != Some(0) && ran.err.contains("proxy"), "{}", ran.err);
    let ran = install(&[]);
    assert!(ran.code != Some(0) && ran.err.contains("STENO_GPU_MANIFEST"), "{}", ran.err);
    assert_eq!(install(&["--manifest", &address, "--quiet"]).ends(0).err, "");
    // The variable is as good as the option.
    let mut command = Command::new(sandbox.path("bin/steno"));
    command.args(["gpu", "install"]).env("STENO_GPU_MANIFEST", "http://example.org/manifest.json");
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "STENO_STATE_FOLDER"] {
        command.env(name, sandbox.home.path());
    }
    let ran = Ran::from(command.output().unwrap());
    assert!(ran.code != Some(0) && ran.err.contains("http://example.org/manifest.json"), "{}", ran.err);
}

const OTHER: &str =
    "gpu GPU-22222222-2222-3333-4444-555555555555 0:02:00.0 25769803776 21474836480 Large Card\n";

/// A card without an engine that computes on it is not recommended, whatever the driver says.
#[test]
fn the_cpu_is_recommended_where_no_engine_computes_on_the_card() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&[]);
    let old = format!("{CARD}capability GPU-11111111-2222-3333-4444-555555555555 6.1\n");
    for (computes, card, cuda, says, reason) in [
        (
            true,
            CARD,
            false,
            "works",
            Some("Small Card is not used: the engine for NVIDIA cards is not installed."),
        ),
        (false, CARD, true, "works", Some("libcuda.so.1 can't be loaded")),
        (true, &old, true, "works", Some("Small Card is not used: it has compute capability 6.1")),
        (
            true,
            CARD,
            true,
            "The operation is wrong.",
            Some("Small Card is not used: The operation is wrong."),
        ),
        // Another engine in its place is asked anew.
        (true, CARD, true, "works", None),
    ] {
        if !driver(&sandbox, computes, Some(card)) {
            return;
        }
        installed(&sandbox, cuda);
        let out = steno(&sandbox, says, &["models", "recommend"]).out;
        match reason {
            Some(reason) => {
                assert!(out.contains(reason) && out.contains(" on the CPU: "), "no {reason:?} in {out}");
                assert!(!out.contains("Small Card: "), "{out}");
            }
            None => assert!(
                out.contains("Small Card: 3.0 GB free of 8.0 GB") && !out.contains("on the CPU: "),
                "{out}"
            ),
        }
    }
}

/// A refusal is not for ever: what the engine lacked may be there now.
#[test]
fn an_engine_that_refused_is_asked_again() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&[]);
    if !driver(&sandbox, true, Some(CARD)) {
        return;
    }
    installed(&sandbox, true);
    for (says, computes) in [("Its library is missing.", false), ("works", true)] {
        for command in [&["models", "recommend"][..], &["gpu"]] {
            let out = steno(&sandbox, says, command).out;
            assert_eq!(!out.contains("is not used: Its library"), computes, "{says} {command:?}: {out}");
        }
    }
}

/// What is recommended, what is announced and what computes is one card.
#[test]
fn of_two_cards_the_one_that_is_recommended_computes() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&["a.mp3"]);
    if !driver(&sandbox, true, Some(&format!("{CARD}{OTHER}"))) {
        return;
    }
    installed(&sandbox, true);
    let recommended =
        |options: &[&str]| steno(&sandbox, "works", &[&["models", "recommend"], options].concat()).out;
    assert!(recommended(&[]).contains(" on Large Card: "), "{}", recommended(&[]));
    let small = recommended(&["--device", "cuda:0"]);
    assert!(small.contains("Small Card: ") && !small.contains("Large Card"), "{small}");
    assert!(!recommended(&["--device", "cpu"]).contains("Card"));
    for (device, card, told) in [
        ("auto", "Large Card", r#""device":{"first":1}"#),
        ("cuda:0", "Small Card", r#""device":{"cuda":0}"#),
    ] {
        let _ = std::fs::remove_file(sandbox.home.path().join("jobs"));
        let ran = steno(&sandbox, "works", &["transcribe", "a.mp3", "--force", "--device", device]);
        assert!(ran.err.contains(&format!(" on {card}: ")), "{device}: {}", ran.err);
        let jobs = std::fs::read_to_string(sandbox.home.path().join("jobs")).unwrap();
        assert!(jobs.contains(told), "{device}: {jobs}");
    }
}

/// Where a CUDA engine is installed but a library that it needs is not, it ends
/// as programs do then, and the CPU's takes its place.
#[test]
fn a_cuda_engine_that_lacks_a_library_is_named_with_it() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sandbox = Sandbox::with(&["a.mp3"]);
    if !driver(&sandbox, true, Some(CARD)) {
        return;
    }
    let bin = sandbox.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for (from, to) in [
        (env!("CARGO_BIN_EXE_steno"), "steno"),
        (env!("CARGO_BIN_EXE_steno-scripted-engine"), "steno-engine"),
    ] {
        std::fs::copy(from, bin.join(to)).unwrap();
    }
    for missing in ["libcublas.so.13", "libcurand.so.10"] {
        let script = format!(
            "#!/bin/sh\necho \"$0: error while loading shared libraries: {missing}: cannot open shared object file: No such file or directory\" >&2\nexit 127\n"
        );
        let cuda = bin.join("steno-engine-cuda");
        std::fs::write(&cuda, script).unwrap();
        assert!(Command::new("chmod").arg("755").arg(&cuda).status().unwrap().success());
        let run = |arguments: &[&str]| {
            let mut command = Command::new(bin.join("steno"));
            command
                .args(arguments)
                .current_dir(sandbox.folder.path())
                .env("LD_LIBRARY_PATH", sandbox.path("driver"));
            command
                .env("XDG_CONFIG_HOME", sandbox.home.path())
                .env("STENO_STATE_FOLDER", sandbox.home.path());
            command.env("STENO_MODEL", project().join("models/starter-whisper"));
            for name in ["STENO_ENGINE", "STENO_BACKEND"] {
                command.env_remove(name);
            }
            Ran::from(command.output().unwrap())
        };
        let out = run(&["doctor"]).ends(0).out;
        for part in [
            "why the CPU   The CPU computes because the CUDA engine did not start: ",
            missing,
            "backend cpu",
            "gpu           Small Card, 3.0 GB free of 8.0 GB",
        ] {
            assert!(out.contains(part), "no {part:?} in:\n{out}");
        }
        assert!(run(&["transcribe", "a.mp3", "--force"]).ends(0).out.contains("Good morning."));
    }
}
