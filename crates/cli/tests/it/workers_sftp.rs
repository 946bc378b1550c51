//! Workers that fetch recordings over SFTP, from a real `sshd`.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::nats::Nats;
use crate::support::sshd::{Sshd, breaking_line};
use crate::workers::{Working, assert_as_local, locally, recordings, repeated, run};

#[test]
fn recordings_come_over_sftp_also_where_the_line_breaks_in_the_middle() {
    let (Some(nats), Some(sshd)) = (Nats::start(), Sshd::start()) else { return };
    let sandbox = Sandbox::with(&[]);
    let mut names = recordings(&sandbox, 2);
    std::fs::write(sandbox.path("in/long.wav"), repeated(20)).unwrap();
    std::fs::create_dir(sandbox.path("in/.hidden")).unwrap();
    sandbox.write("in/notes.txt", "no recording");
    std::fs::remove_file(sandbox.path("in/notes.txt")).unwrap();
    names.push("long.wav".into());
    locally(&sandbox);
    sandbox.write("in/notes.txt", "no recording");
    // The listing goes straight there, and what workers read over a line that breaks twice.
    let (port, broke) = breaking_line(sshd.port, 2, 1_500_000);
    let known = sshd.known_hosts("host", &[sshd.port, port]);
    let key = sshd.key();
    let ssh = ["--ssh-key", &key, "--known-hosts", &known];
    let worker = Working::real(&nats, &ssh).ready();
    let folder = Sshd::address(port, &sandbox.path("in"));
    let submit = [&["submit", &folder, "--wait", "-f", "json", "-o", "out"][..], &ssh].concat();
    run(&sandbox, &nats, &submit).ends(0).says("3 jobs were submitted.");
    assert_as_local(&sandbox, &names, "out");
    assert_eq!(broke.load(Ordering::Relaxed), 2);
    assert!(worker.fetched().is_empty());
    // The same recordings with the same settings are the same jobs; one file, and folders within, are found too.
    run(&sandbox, &nats, &submit).ends(0).says("0 jobs were submitted, 3 are finished already.");
    let one = format!("{folder}/long.wav");
    run(&sandbox, &nats, &[&["submit", &one][..], &ssh].concat()).ends(0).says("1 are finished already");
    let above = Sshd::address(port, sandbox.folder.path());
    run(&sandbox, &nats, &[&["submit", &above][..], &ssh].concat()).ends(1).says("Add --recursive");
    let within = [&["submit", &above, "--recursive", "--limit", "5"][..], &ssh].concat();
    run(&sandbox, &nats, &within).ends(0).says("3 jobs were submitted.");
    let missing = format!("{folder}/missing.wav");
    run(&sandbox, &nats, &[&["submit", &missing][..], &ssh].concat())
        .ends(1)
        .says("There is no such file or folder.");
    // Both ends say whom they connected to.
    for machine in [&sandbox, &worker.sandbox] {
        let out = machine.run(&["models", "connections", "--json"]).ends(0).out;
        let logged: Value = serde_json::from_str(&out).unwrap();
        let of = |why: &str| logged.as_array().unwrap().iter().filter(|it| it["why"]["of"] == why).count();
        assert!(of("jobs") >= 1 && of("recordings") >= 3, "{logged}");
    }
}

#[test]
fn a_server_with_another_key_is_refused() {
    let (Some(nats), Some(sshd)) = (Nats::start(), Sshd::start()) else { return };
    let sandbox = Sandbox::with(&[]);
    recordings(&sandbox, 1);
    let (right, wrong) = (sshd.known_hosts("host", &[sshd.port]), sshd.known_hosts("other", &[sshd.port]));
    let key = sshd.key();
    let folder = Sshd::address(sshd.port, &sandbox.path("in"));
    let submit = |known: &str, key: &str| {
        run(&sandbox, &nats, &["submit", &folder, "--known-hosts", known, "--ssh-key", key])
    };
    submit(&wrong, &key).ends(1).says("Its key is not the one in the file of known hosts");
    // One that is not known is no better, and neither is a key that the server does not know.
    submit("/dev/null", &key).ends(1).says("Its key is not the one in the file of known hosts");
    submit(&right, "/dev/null").ends(1).says("Add your key on the server");
    // Nor does a worker take what such a server gives.
    submit(&right, &key).ends(0);
    let options = ["--known-hosts", &wrong, "--ssh-key", &key, "--max-deliveries", "1"];
    let worker = Working::real(&nats, &options).ready();
    let ran = run(&sandbox, &nats, &["collect", "--wait", "-o", "out"]).ends(1);
    ran.says("000.wav: 127.0.0.1 can't be reached over SFTP");
    assert!(!sandbox.path("out/000.txt").exists() && worker.fetched().is_empty());
    let now: Value = serde_json::from_str(&run(&sandbox, &nats, &["cluster", "--json"]).ends(0).out).unwrap();
    assert_eq!(now["failed"], json!(1));
}
