//! Disks of a few kilobytes under the results, the program's state, or both: real file systems that
//! are full at another place each time. A file that is there is whole, and the text can be had again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::{Ran, Sandbox};

const FORMATS: &str = "txt,srt,vtt,json,csv,docx,html,pdf";

/// Kilobytes; each page holds 4. More of them in `make soak`: `STENO_DISK_SIZES=300`.
fn sizes() -> impl Iterator<Item = u32> {
    let most = std::env::var("STENO_DISK_SIZES").ok().and_then(|most| most.parse().ok());
    let usual = [4, 8, 12, 24, 64, 256].into_iter();
    usual.chain(most.into_iter().flat_map(|most| (1..most).map(|pages| 4 * pages)))
}

/// Runs `steno` with a disk of this size at `mounts`, and keeps what lies in `out` afterwards as `found`.
fn run(sandbox: &Sandbox, kilobytes: u32, mounts: &[&Path], arguments: &[&str]) -> Ran {
    let script = "set -e; size=$1; count=$2; shift 2; \
        while [ $count -gt 0 ]; do mount -t tmpfs -o size=${size}k tmpfs \"$1\"; shift; count=$((count - 1)); done; \
        code=0; \"$@\" || code=$?; rm -rf found; cp -r out found; exit $code";
    let steno = sandbox.command(arguments);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh", &kilobytes.to_string(), &mounts.len().to_string()]);
    command.args(mounts).arg(steno.get_program()).args(steno.get_args());
    command.current_dir(sandbox.folder.path());
    for (name, value) in steno.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().unwrap().into()
}

/// Names and contents.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn small_disks_hold_whole_files_or_none_and_no_text_is_lost() {
    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return println!("skipped: this system allows no mount in a namespace (unshare -rm)");
    }
    let arguments = ["transcribe", "talk.mp3", "-f", FORMATS, "-o", "out", "--reproducible"];
    let undisturbed = Sandbox::with(&["talk.mp3"]);
    undisturbed.run(&arguments).ends(0);
    let whole = files(&undisturbed.path("out"));
    assert_eq!(whole.len(), 8, "{:?}", whole.keys());

    let (mut complete, mut incomplete) = (0, 0);
    for size in sizes() {
        for (has_small_state, has_small_results) in [(false, true), (true, false), (true, true)] {
            let sandbox = Sandbox::with(&["talk.mp3"]);
            std::fs::create_dir(sandbox.path("out")).unwrap();
            let (state, out) = (sandbox.home.path(), sandbox.path("out"));
            let mut mounts = Vec::new();
            mounts.extend(has_small_state.then_some(state));
            mounts.extend(has_small_results.then_some(out.as_path()));
            let ran = run(&sandbox, size, &mounts, &arguments);
            let told =
                format!("{size} KB, state {has_small_state}, results {has_small_results}: {}", ran.err);

            let found = files(&sandbox.path("found"));
            for (name, content) in &found {
                // What was written before the disk was full may be kept as a partial transcript, whole too.
                if let Some(expected) = whole.get(name) {
                    assert!(content == expected, "{name} is not whole. {told}");
                } else {
                    assert!(name.ends_with(".partial.json"), "{name} was left. {told}");
                    assert!(serde_json::from_slice::<serde_json::Value>(content).is_ok(), "{name}. {told}");
                }
            }
            let is_complete = whole.keys().all(|name| found.contains_key(name));
            assert_eq!(ran.code, Some(i32::from(!is_complete)), "{told}");
            assert!(is_complete || !ran.err.is_empty(), "{told}");
            assert!(is_complete || has_small_results, "trouble with the journal failed a job. {told}");
            if is_complete {
                complete += 1;
                continue;
            }
            incomplete += 1;
            if !has_small_state {
                let kept = found.keys().any(|name| name.ends_with(".partial.json") || name == "talk.json");
                if !kept {
                    sandbox.run(&["resume", "--output", "elsewhere"]).ends(0);
                    let txt = files(&sandbox.path("elsewhere"));
                    assert!(txt.get("talk.txt") == whole.get("talk.txt"), "the text is lost. {told}");
                }
            }
        }
    }
    println!("{complete} complete, {incomplete} incomplete");
    assert!(complete > 0 && incomplete > 0);
}

/// What is moved is not downloaded: nothing resumes.
#[test]
fn a_disk_without_room_for_the_models_leaves_them_where_they_are() {
    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return println!("skipped: this system allows no mount in a namespace (unshare -rm)");
    }
    let sandbox = Sandbox::with(&["out/kept.txt", "disk/kept.txt"]);
    let starter = crate::support::project().join("models/starter-whisper");
    sandbox.run(&["models", "import", starter.to_str().unwrap(), "--name", "mine"]).ends(0);
    let disk = sandbox.path("disk");
    let ran = run(&sandbox, 64, &[&disk], &["models", "move", "disk/models"]).ends(1);
    let ran = ran.says("is needed, but only").says("choose a folder on another one");
    assert!(!ran.err.contains("download"), "{}", ran.err);
    let listed = sandbox.run(&["models", "verify", "mine"]).ends(0);
    assert!(listed.out.contains("mine"), "{}", listed.out);
}
