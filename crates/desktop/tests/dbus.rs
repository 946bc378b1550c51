//! Simulated logind and notifications on a private bus. One test, since it sets
//! environment variables.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A private bus with a simulation of logind and of desktop notifications, which
/// prints a line per call.
struct SimulatedDesktop {
    bus: Child,
    simulation: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl SimulatedDesktop {
    /// Needs the packages dbus and python3-gi.
    fn start() -> Self {
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs dbus-daemon: run scripts/setup.sh test");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        // SAFETY: no other thread of this test runs yet.
        unsafe {
            std::env::set_var("DBUS_SYSTEM_BUS_ADDRESS", address.trim());
            std::env::set_var("DBUS_SESSION_BUS_ADDRESS", address.trim());
        }
        let simulation = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulated_desktop.py");
        let mut simulation =
            Command::new("/usr/bin/python3").arg(simulation).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(simulation.stdout.take().unwrap()).lines();
        let mut desktop = Self { bus, simulation, lines };
        let ready = desktop.said();
        assert_eq!(ready.as_deref(), Some("ready"), "this test needs python3-gi: run scripts/setup.sh test");
        desktop
    }

    /// The next line of the simulation.
    fn said(&mut self) -> Option<String> {
        self.lines.next()?.ok()
    }
}

impl Drop for SimulatedDesktop {
    fn drop(&mut self) {
        for child in [&mut self.simulation, &mut self.bus] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn sleep_is_inhibited_and_notifications_and_files_are_shown() {
    let mut desktop = SimulatedDesktop::start();
    let awake = desktop::stay_awake("Transcribing").unwrap();
    assert_eq!(desktop.said().unwrap(), "inhibit sleep:idle Steno Transcribing block");
    desktop::notify("3 recordings are done", "1 failed").unwrap();
    assert_eq!(desktop.said().unwrap(), "notify Steno: 3 recordings are done, 1 failed");
    desktop::show_in_folder(std::path::Path::new("/tmp/two words/ü.srt")).unwrap();
    assert_eq!(desktop.said().unwrap(), "show file:///tmp/two%20words/%C3%BC.srt");
    drop(awake);
    assert_eq!(desktop.said().unwrap(), "released");
    // The simulation refuses this reason, as logind refuses remote users.
    let refused = desktop::stay_awake("refuse").unwrap_err();
    assert!(refused.starts_with("The computer can't be kept awake"), "{refused}");
    assert!(refused.contains("\"Access denied\""), "{refused}");
    drop(desktop);
    // Without the bus there is an error, and this process goes on.
    let gone = desktop::stay_awake("Transcribing").unwrap_err();
    assert!(gone.starts_with("The computer can't be kept awake"), "{gone}");
    assert!(desktop::notify("Done", "").unwrap_err().starts_with("A notification could not be shown"));
}
