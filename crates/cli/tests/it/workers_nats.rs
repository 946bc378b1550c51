//! How `nats-server` itself may be run: with TLS, and as a cluster of servers of which one dies.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::nats::{Nats, PATIENCE};
use crate::support::{Ran, Sandbox, project};

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name).to_str().unwrap().to_owned()
}

/// A worker, killed when it is dropped.
struct Worker(std::process::Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn worker(sandbox: &Sandbox, url: &str, prepare: impl Fn(&mut Command)) -> Worker {
    let mut command = sandbox.command(&["worker", "--nats", url, "--model", "starter-whisper"]);
    prepare(&mut command);
    Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_connection_to_nats_is_encrypted_and_a_certificate_of_ones_own_is_checked() {
    let (certificate, key) = (data("certificate.pem"), data("key.pem"));
    let options = ["--tls", "--tlscert", &certificate, "--tlskey", &key];
    let Some(nats) = Nats::start_with(&options) else { return };
    let sandbox = Sandbox::with(&[]);
    let recording = crate::support::wav(&[0; 3200]);
    std::fs::write(sandbox.path("alpha.wav"), recording).unwrap();
    let url = format!("tls://localhost:{}", nats.port());
    let trusting = |command: &mut Command| {
        command.env("SSL_CERT_FILE", data("authority.pem"));
    };
    let run = |arguments: &[&str], prepare: &dyn Fn(&mut Command)| -> Ran {
        let mut command = sandbox.command(&[arguments, &["--nats", &url]].concat());
        prepare(&mut command);
        command.output().unwrap().into()
    };
    // An authority that nobody vouches for is not believed, and nothing is sent.
    run(&["cluster"], &|command: &mut Command| {
        command.env("SSL_CERT_FILE", project().join("crates/cli/tests/data/tls/certificate.pem"));
    })
    .ends(1)
    .says("can't be reached");
    let _worker = worker(&sandbox, &url, trusting);
    run(&["submit", "alpha.wav"], &trusting).ends(0).says("1 job was submitted.");
    run(&["collect", "--wait", "-f", "txt", "-o", "out", "--quiet"], &trusting).ends(0);
    assert!(sandbox.read("out/alpha.txt").contains("Good morning."));
}

#[test]
fn results_with_three_copies_outlive_the_leader_of_three_servers() {
    let Some(mut servers) = Nats::cluster(3) else { return };
    let urls: Vec<String> = servers.iter().map(Nats::url).collect();
    let urls = urls.join(",");
    let sandbox = Sandbox::with(&[]);
    for name in ["alpha.wav", "beta.wav"] {
        let mut recording = crate::support::wav(&[0; 3200]);
        recording.extend(name.as_bytes());
        std::fs::write(sandbox.path(name), recording).unwrap();
    }
    let run = |arguments: &[&str]| sandbox.run(&[arguments, &["--nats", &urls]].concat());
    // Until the servers have found each other and chosen a leader.
    let since = Instant::now();
    loop {
        let submitted = run(&["submit", "alpha.wav", "--replicas", "3"]);
        if submitted.code == Some(0) {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "{submitted:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut listener = servers[0].listen("nothing");
    for stream in ["steno-jobs", "steno-log", "KV_steno-records", "KV_steno-workers", "OBJ_steno-files"] {
        let info = listener.ask(&format!("$JS.API.STREAM.INFO.{stream}"));
        let info: Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(info["config"]["num_replicas"], 3, "{stream}: {info}");
        assert_eq!(info["cluster"]["replicas"].as_array().map(Vec::len), Some(2), "{stream}: {info}");
    }
    let _worker = worker(&sandbox, &urls, |_| ());
    run(&["submit", "beta.wav"]).ends(0);
    run(&["collect", "--wait", "-f", "txt", "-o", "out", "--quiet"]).ends(0);
    // The one that leads the queue dies: what was in it is in the others.
    let info: Value = serde_json::from_slice(&listener.ask("$JS.API.STREAM.INFO.steno-jobs")).unwrap();
    let leader = info["cluster"]["leader"].as_str().unwrap();
    let number: usize = leader.trim_start_matches('n').parse().unwrap();
    servers[number].kill();
    let since = Instant::now();
    loop {
        // Until another one leads, NATS may not answer.
        let collected = run(&["collect", "-f", "txt", "-o", "again"]);
        let text =
            |folder: &str, name: &str| std::fs::read_to_string(sandbox.path(format!("{folder}/{name}.txt")));
        if ["alpha", "beta"].iter().all(|name| text("again", name).is_ok()) {
            for name in ["alpha", "beta"] {
                assert_eq!(text("again", name).unwrap(), text("out", name).unwrap());
                assert!(text("out", name).unwrap().contains("Good morning."), "{name}");
            }
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{collected:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
