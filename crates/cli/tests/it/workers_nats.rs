//! How `nats-server` itself may be run: with TLS.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::nats::Nats;
use crate::support::{Ran, Sandbox, project};

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name).to_str().unwrap().to_owned()
}

/// A worker, killed when it is dropped.
pub struct Worker(std::process::Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn worker(sandbox: &Sandbox, url: &str, prepare: impl Fn(&mut Command)) -> Worker {
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
