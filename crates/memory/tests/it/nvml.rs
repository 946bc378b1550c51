//! The driver's figures, read through the real wrapper from a mock library
//! (`scripts/cuda/mock/nvml.c`).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic, its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;

use memory::bytes::{GIB, MIB};
use memory::nvml::{Driver, GpuId};
use memory::{Budgeted, Cause, Probe};
use tempfile::TempDir;

const FIRST: &str = "GPU-11111111-2222-3333-4444-555555555555";
const SECOND: &str = "GPU-99999999-8888-7777-6666-555555555555";

/// A copy of the mock library of its own, with what it is to answer.
struct Mock {
    folder: TempDir,
}

impl Mock {
    fn build(answers: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cuda/mock/nvml.c");
        let mock = Self { folder };
        let compiled = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(mock.library())
            .arg(&source)
            .arg("-ldl")
            .output()
            .expect("this test needs a C compiler named cc");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        mock.answer(answers);
        mock
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libnvidia-ml.so.1")
    }

    fn answer(&self, answers: &str) {
        std::fs::write(self.folder.path().join("libnvidia-ml.so.1.conf"), answers).unwrap();
    }

    fn driver(&self) -> Driver {
        Driver::open_library(self.library().as_os_str()).unwrap()
    }
}

/// Two cards in the driver's order.
fn two_cards() -> String {
    format!(
        "gpu {SECOND} 0:21:00.0 {} {} Big Card\ngpu {FIRST} 0:01:00.0 {} {} Small Card\n",
        24 * GIB,
        20 * GIB,
        8 * GIB,
        3 * GIB
    )
}

#[test]
fn cards_go_by_name_and_not_by_number() {
    let mock = Mock::build(&two_cards());
    let driver = mock.driver();
    let gpus = driver.gpus().unwrap();
    let listed: Vec<(&str, &str, u64)> =
        gpus.iter().map(|gpu| (gpu.uuid.as_str(), gpu.name.as_str(), gpu.free / GIB)).collect();
    assert_eq!(listed, [(SECOND, "Big Card", 20), (FIRST, "Small Card", 3)]);
    for (id, total, used) in [
        (GpuId::Uuid(FIRST.into()), 8, 5),
        (GpuId::Uuid(SECOND.into()), 24, 4),
        (GpuId::Pci("0000:01:00.0".into()), 8, 5),
        (GpuId::Pci(gpus[0].pci.clone()), 24, 4),
    ] {
        let reading = driver.probe(id.clone()).unwrap().read().unwrap();
        assert_eq!((reading.total / GIB, reading.used / GIB), (total, used), "{id}");
    }
    let error = driver.probe(GpuId::Uuid("GPU-0".into())).unwrap_err();
    assert_eq!(error.cause, Cause::NoSuchDevice);
    assert_eq!(error.reason, "There is no NVIDIA card GPU-0 in this machine.");
}

#[test]
fn what_is_ours_is_what_the_driver_attributes_to_us() {
    let mock = Mock::build(&two_cards());
    let driver = mock.driver();
    let me = std::process::id();
    let engine = me + 1;
    // Lines of processes; pids that are ours -> bytes of ours and of others in MB, 5 GB in use.
    type Expected = Option<(u64, u64)>;
    let cases: [(String, Vec<u32>, Expected); 7] = [
        (String::new(), vec![me], None),
        (format!("process {FIRST} compute {me} {}\n", GIB), vec![me], Some((1024, 4096))),
        // Another's process beside it, and a process that only draws.
        (
            format!(
                "process {FIRST} compute {me} {}\nprocess {FIRST} compute 1 {}\nprocess {FIRST} graphics 2 {}\n",
                GIB,
                2 * GIB,
                GIB
            ),
            vec![me],
            Some((1024, 4096)),
        ),
        // One that computes and draws is in both lists.
        (
            format!("process {FIRST} compute {me} {}\nprocess {FIRST} graphics {me} {}\n", GIB, GIB),
            vec![me],
            Some((1024, 4096)),
        ),
        // The host and its engine.
        (
            format!("process {FIRST} compute {engine} {}\nprocess {FIRST} compute {me} {}\n", GIB, 512 * MIB),
            vec![me, engine],
            Some((1536, 3584)),
        ),
        // The driver lists us but does not say how much.
        (format!("process {FIRST} compute {me} -\n"), vec![me], None),
        // The same pid on another card.
        (format!("process {SECOND} compute {me} {}\n", GIB), vec![me], None),
    ];
    for (processes, ours, expected) in cases {
        mock.answer(&format!("{}{processes}", two_cards()));
        let probe = driver.probe(GpuId::Uuid(FIRST.into())).unwrap();
        probe.set_ours(ours);
        let reading = probe.read().unwrap();
        let found = reading.ours.map(|ours| ours.held() / MIB).zip(reading.others.map(|others| others / MIB));
        assert_eq!(found, expected, "{processes}");
    }
}

#[test]
fn a_limit_applies_to_a_real_card_too() {
    let answers = format!("{}process {FIRST} compute {} {}\n", two_cards(), std::process::id(), GIB);
    let mock = Mock::build(&answers);
    let probe = mock.driver().probe(GpuId::Uuid(FIRST.into())).unwrap();
    // 8 GB, 1 ours, 4 others'. (limit, total, free, others) in GB
    for (limit, total, free, others) in [(2, 2, 1, 0), (6, 6, 3, 2), (10, 8, 3, 4)] {
        let reading = Budgeted::new(&probe, limit * GIB).read().unwrap();
        assert_eq!(
            (reading.total, reading.free, reading.others),
            (total * GIB, free * GIB, Some(others * GIB)),
            "{limit}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_driver_is_said() {
    // Return codes of nvml.h.
    for (answers, cause, reason) in [
        ("init 9\n", Cause::NoDriver, "The NVIDIA driver is installed but does not run"),
        ("init 18\n", Cause::VersionMismatch, "The NVIDIA driver was updated while it was running"),
        ("init 4\n", Cause::NoPermission, "This user may not ask the NVIDIA driver."),
    ] {
        let mock = Mock::build(answers);
        let error = Driver::open_library(mock.library().as_os_str()).unwrap_err();
        assert_eq!(error.cause, cause, "{answers}");
        assert!(error.reason.starts_with(reason), "{}", error.reason);
    }
    let mock = Mock::build(&two_cards());
    let probe = mock.driver().probe(GpuId::Uuid(FIRST.into())).unwrap();
    for (code, cause) in [(15, Cause::DeviceLost), (3, Cause::Other), (999, Cause::Other)] {
        mock.answer(&format!("{}memory {FIRST} {code}\n", two_cards()));
        assert_eq!(probe.read().unwrap_err().cause, cause, "{code}");
        // The other card is still there.
        assert_eq!(mock.driver().gpus().unwrap().len(), 1, "{code}");
    }
    mock.answer("");
    assert_eq!(probe.read().unwrap_err().cause, Cause::NoSuchDevice);
}
