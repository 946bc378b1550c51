//! Against stand-ins for logind and the desktop on a bus of the test's own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, helpers included")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A bus and what pretends to be logind and the desktop's notifications on it,
/// which prints a line for all that it is asked.
struct Desktop {
    bus: Child,
    stand_in: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Desktop {
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
        let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in.py");
        let mut stand_in =
            Command::new("/usr/bin/python3").arg(stand_in).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(stand_in.stdout.take().unwrap()).lines();
        let mut desktop = Self { bus, stand_in, lines };
        let ready = desktop.said();
        assert_eq!(ready.as_deref(), Some("ready"), "this test needs python3-gi: run scripts/setup.sh test");
        desktop
    }

    fn said(&mut self) -> Option<String> {
        self.lines.next()?.ok()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in [&mut self.stand_in, &mut self.bus] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_machine_is_kept_awake_until_the_work_is_done_and_messages_arrive() {
    let mut desktop = Desktop::start();
    let awake = desktop::stay_awake("Transcribing").unwrap();
    assert_eq!(desktop.said().unwrap(), "inhibit sleep:idle Steno Transcribing block");
    desktop::notify("3 recordings are done", "1 failed").unwrap();
    assert_eq!(desktop.said().unwrap(), "notify Steno: 3 recordings are done, 1 failed");
    drop(awake);
    assert_eq!(desktop.said().unwrap(), "released");
    // Asked again it refuses, as logind does for who is not at the machine.
    let refused = desktop::stay_awake("refuse").unwrap_err();
    assert!(refused.starts_with("The machine may go to sleep"), "{refused}");
    assert!(refused.contains("\"Access denied\""), "{refused}");
    drop(desktop);
    // With the bus gone: a sentence, and this process lives.
    let gone = desktop::stay_awake("Transcribing").unwrap_err();
    assert!(gone.starts_with("The machine may go to sleep"), "{gone}");
    assert!(desktop::notify("Done", "").unwrap_err().starts_with("A message could not be shown"));
}
