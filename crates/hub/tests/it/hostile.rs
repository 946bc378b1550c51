//! A hub that lies at random, several ways at once: a download ends in good time with the right
//! model or with an error, and nothing is written outside the store.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{Fault, Server, content};
use hub::{Connections, Control, Model, NetworkLimits, Puller, Store, Wanted};

const WEIGHTS: &str = "model.safetensors";
const SIZE: usize = 100_000;
/// The model, a part of another length, and what one JSON file may take.
const MOST_ON_DISK: u64 = 48 << 20;
/// Far above what the limits below add up to.
const LONGEST: Duration = Duration::from_secs(60);

/// More of them to search for faults: `STENO_HOSTILE_ROUNDS=2000`.
fn rounds() -> u64 {
    std::env::var("STENO_HOSTILE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30)
}

#[test]
fn hostile_hubs_cost_neither_the_program_nor_the_disk_nor_a_name() {
    let mut installed = 0;
    for seed in 0..rounds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let server = Server::start();
        put_model(&server);
        let lies: Vec<String> = (0..random.usize(1..=4)).map(|_| lie(&server, &mut random)).collect();
        let told = format!("seed {seed}: {}", lies.join(", "));

        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("models"));
        let begun = Instant::now();
        let pulled = pull(&server, &store, random.bool());
        assert!(begun.elapsed() < LONGEST, "{told}: {:?}", begun.elapsed());
        match pulled {
            Ok(model) => {
                installed += 1;
                let weights = std::fs::read(store.folder().join(&model.id).join(WEIGHTS)).unwrap();
                assert!(weights == content(SIZE), "{told}: other weights were installed");
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "{told}");
                assert!(!store.folder().join("model").exists(), "{told}: installed despite {error}");
            }
        }
        let (beside, bytes) = written(folder.path());
        assert_eq!(beside, [folder.path().join("models")], "{told}");
        assert!(bytes < MOST_ON_DISK, "{told}: {bytes} bytes on the disk");
    }
    println!("{installed} of {} models arrived all the same", rounds());
    assert!(installed > 0, "no lie was small enough to be survived");
}

fn put_model(server: &Server) {
    server.put("us/model/config.json", "{\"model_type\": \"test\"}\n");
    server.put("us/model/tokenizer.json", "{}\n");
    server.put(&format!("us/model/{WEIGHTS}"), content(SIZE));
}

/// Prepares one lie and names it.
fn lie(server: &Server, random: &mut fastrand::Rng) -> String {
    let size = [0, 1, SIZE as u64 / 2, SIZE as u64 + 1, 1 << 32, u64::MAX >> 1, u64::MAX][random.usize(..7)];
    let name = ["config.json", "tokenizer.json", WEIGHTS][random.usize(..3)];
    match random.u8(..4) {
        0 => {
            server.claim_size(&format!("us/model/{name}"), size);
            format!("{name} of {size} bytes")
        }
        1 => {
            let commits = ["", "main", "../../../../etc?x=", "c0ffee", "%2e%2e%2f", "\u{7f}", "é"];
            let commit = commits[random.usize(..commits.len())];
            if commit.is_ascii() && commit != "\u{7f}" {
                server.commit(commit);
            }
            format!("commit {commit:?}")
        }
        2 => {
            let names = [
                "../../outside",
                "/outside",
                "a/../../../outside",
                ".pins",
                "con:",
                "-rf",
                "..",
                "\\outside",
            ];
            let name = names[random.usize(..names.len())];
            server.put(&format!("us/model/{name}"), content(1000));
            format!("a file {name:?}")
        }
        _ => {
            let method = ["HEAD", "GET"][random.usize(..2)];
            let faults: Vec<Fault> = (0..random.usize(1..=8)).map(|_| fault(random)).collect();
            let told = format!("{method} {name}: {faults:?}");
            server.faults(method, name, faults);
            told
        }
    }
}

fn fault(random: &mut fastrand::Rng) -> Fault {
    let at = random.usize(..SIZE);
    let elsewhere = [
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "http://[::1]:1/x",
        "/us/model/resolve/main/config.json",
        "https://",
        "data:text/plain,x",
        "",
    ];
    match random.u8(..12) {
        0 => Fault::Status([100, 204, 301, 400, 401, 403, 404, 416, 429, 500, 503, 599][random.usize(..12)]),
        1 => Fault::Later([429, 503][random.usize(..2)], [0, 1, u64::MAX, 1 << 40][random.usize(..4)]),
        2 => Fault::Cut(at),
        // Within the shortest file.
        3 => Fault::WrongByte(at % 3),
        4 => Fault::Longer,
        5 => Fault::NoRanges,
        6 => Fault::Hold(at),
        7 => Fault::Trickle,
        8 => Fault::Endless,
        9 => Fault::Silent,
        _ => Fault::To(elsewhere[random.usize(..elsewhere.len())].into()),
    }
}

/// With limits that end a wait soon. `names`: which files there are is known, else the hub is asked.
fn pull(server: &Server, store: &Store, names: bool) -> Result<Model, hub::Error> {
    let mut settings = server.settings();
    settings.limits = NetworkLimits {
        connect: Duration::from_millis(500),
        answer: Duration::from_millis(300),
        window: Duration::from_millis(200),
        attempts: 4,
        longest_pause: Duration::from_secs(2),
        ..settings.limits
    };
    let puller = Puller::new(settings, Connections::nowhere()).unwrap();
    let mut wanted = Wanted::of_repository("model", "us/model").unwrap();
    wanted.is_speech = false;
    wanted.files = names.then(|| vec!["config.json".into(), "tokenizer.json".into(), WEIGHTS.into()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(puller.pull(store, &wanted, &Control::default(), &mut |_| {}))
}

/// What lies in the folder, and the bytes of all files below it.
fn written(folder: &Path) -> (Vec<PathBuf>, u64) {
    let bytes =
        |path: &Path| if path.is_dir() { written(path).1 } else { std::fs::metadata(path).unwrap().len() };
    let paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let sum = paths.iter().map(|path| bytes(path)).sum();
    (paths, sum)
}
