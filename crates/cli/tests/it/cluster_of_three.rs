//! `nats-server` as a cluster of servers of which one dies. The servers' own timeouts are most of its time, and tests begin
//! in the order of their names: under this one it waits beside others and not after them.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::nats::{Nats, PATIENCE};
use crate::workers_nats::worker;

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
