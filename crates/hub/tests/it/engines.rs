//! The engine for NVIDIA cards from a server: everything that can be wrong with what it offers and how it arrives, and
//! what is in the store after each.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::{Fault, Server, content, sha256};
use hub::{Code, Connections, Control, ENGINE, Error, Model, Puller, Store, installed_engine};
use serde_json::{Value, json};

const PROGRAM: &str = "steno-engine-cuda";
const LIBRARY: &str = "cuda-libs/libcublas.so.13";

struct Place {
    server: Server,
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("engines"));
        let place = Self { server, folder, store };
        place.offer(&content(300_000));
        place
    }

    /// Puts an engine of these bytes on the server, and returns its list.
    fn offer(&self, program: &[u8]) -> Value {
        let library = content(200_000);
        self.server.put(&format!("release/{PROGRAM}"), program);
        self.server.put(&format!("release/{LIBRARY}"), &library[..]);
        let file =
            |name: &str, bytes: &[u8]| json!({ "name": name, "size": bytes.len(), "sha256": sha256(bytes) });
        let list = json!({
            "format": 1,
            "steno": env!("CARGO_PKG_VERSION"),
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "files": [file(PROGRAM, program), file(LIBRARY, &library)],
        });
        self.list(&list);
        list
    }

    fn list(&self, list: &Value) {
        self.server.put("release/manifest.json", list.to_string());
    }

    fn pull_with(&self, puller: &Puller) -> Result<Model, Error> {
        let address = format!("{}/release/manifest.json", self.server.url());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pulling =
            async { puller.pull_engine(&self.store, &address, &Control::default(), &mut |_| {}).await };
        runtime.block_on(pulling)
    }

    fn pull(&self) -> Result<Model, Error> {
        self.pull_with(&self.server.puller())
    }

    fn is_whole(&self) -> bool {
        let Some(program) = installed_engine(&self.store) else { return false };
        let folder = program.parent().unwrap();
        assert_eq!(std::fs::read(folder.join(LIBRARY)).unwrap(), content(200_000));
        true
    }
}

#[test]
fn an_engine_arrives_whole_and_can_be_started() {
    let place = Place::new();
    let model = place.pull().unwrap();
    assert_eq!(model.id, ENGINE);
    assert!(place.is_whole());
    let program = installed_engine(&place.store).unwrap();
    assert_eq!(std::fs::read(&program).unwrap(), content(300_000));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    }
    // The one that is there is left alone; another one takes its place.
    place.server.forget();
    place.pull().unwrap();
    assert_eq!(place.server.seen().len(), 1, "only the list is asked for");
    place.offer(&content(250_000));
    place.pull().unwrap();
    assert_eq!(std::fs::read(&program).unwrap(), content(250_000));
    place.store.remove(ENGINE).unwrap();
    assert_eq!(installed_engine(&place.store), None);
}

/// Whatever the list says wrong is refused by name, before anything else is asked for.
#[test]
fn a_list_that_can_not_be_right_is_refused() {
    let place = Place::new();
    let right = place.offer(&content(300_000));
    let with = |pointer: &str, value: Value| {
        let mut list = right.clone();
        *list.pointer_mut(pointer).unwrap() = value;
        list
    };
    for (list, part) in [
        (with("/format", json!(2)), "format 2"),
        (with("/steno", json!("9.9.9")), "of Steno 9.9.9"),
        (with("/system", json!("plan9")), "is for plan9"),
        (with("/architecture", json!("vax")), "vax, and this computer is"),
        (with("/files/1/name", json!("../../.bashrc")), "\"../../.bashrc\" is not allowed"),
        (with("/files/1/name", json!("/etc/passwd")), "is not allowed"),
        (with("/files/1/name", json!("a/b/c")), "is not allowed"),
        (with("/files/1/name", json!("..\\x")), "is not allowed"),
        (with("/files/1/name", json!("steno-files.json")), "is not allowed"),
        (with("/files/1/name", json!(PROGRAM)), "twice"),
        (with("/files/1/size", Value::Null), "does not say how large cuda-libs/libcublas.so.13 is"),
        (with("/files/1/size", json!(u64::MAX)), "a size of"),
        (with("/files/1/sha256", json!("abc")), "no valid checksum"),
        (with("/files/0/name", json!("other")), "steno-engine-cuda is not among"),
        (json!("nonsense"), "can't be read"),
        (json!({ "format": 1 }), "can't be read"),
    ] {
        place.list(&list);
        place.server.forget();
        let error = place.pull().unwrap_err();
        assert!(error.to_string().contains(part), "no {part:?} in: {error}");
        assert_eq!(place.server.seen().len(), 1, "{part}");
        assert!(!place.is_whole() && !place.folder.path().join("engines").join(ENGINE).exists(), "{part}");
    }
}

/// A file that is wrong is never put into place; one that breaks off goes on where it ended.
#[test]
fn what_goes_wrong_on_the_way_leaves_no_engine_and_is_made_good() {
    let place = Place::new();
    for (fault, code, part) in [
        (Fault::WrongByte(1000), Code::Corrupt, "arrived damaged"),
        (Fault::Longer, Code::Corrupt, "bytes, but must have"),
        (Fault::Status(404), Code::NotFound, LIBRARY),
    ] {
        place.server.faults("GET", LIBRARY, [fault.clone()]);
        let error = place.pull().unwrap_err();
        assert_eq!(error.code(), code, "{fault:?}: {error}");
        assert!(error.to_string().contains(part), "{fault:?}: {error}");
        assert!(!place.is_whole(), "{fault:?}");
        place.server.no_more_faults();
    }
    // Connections that break are resumed; a busy server is asked again.
    place.server.forget();
    place.server.faults("GET", LIBRARY, [Fault::Cut(70_000), Fault::Status(503), Fault::NoRanges]);
    place.pull().unwrap();
    assert!(place.is_whole());
    let ranges: Vec<_> = place.server.seen().into_iter().filter_map(|seen| seen.range).collect();
    assert!(ranges.iter().any(|range| range != "bytes=0-"), "{ranges:?}");
    // A truncated file on the server is no engine either.
    let list = place.offer(&content(250_000));
    place.server.put(&format!("release/{PROGRAM}"), &content(250_000)[..200_000]);
    place.list(&list);
    let error = place.pull().unwrap_err();
    assert_eq!(error.code(), Code::Corrupt, "{error}");
    let there = std::fs::read(installed_engine(&place.store).unwrap()).unwrap();
    assert_eq!(there, content(300_000), "the one that works stays");
}

#[test]
fn the_network_is_used_as_the_user_allows_and_each_connection_is_written_down() {
    let place = Place::new();
    let log = place.folder.path().join("connections.jsonl");
    let puller = |offline| {
        let settings = hub::HubSettings { offline, ..place.server.settings() };
        Puller::new(settings, Connections::in_file(log.clone())).unwrap()
    };
    let error = place.pull_with(&puller(true)).unwrap_err();
    assert_eq!(error.code(), Code::NetworkOff);
    assert!(place.server.seen().is_empty());
    place.pull_with(&puller(false)).unwrap();
    let logged = Connections::read(&log).unwrap();
    assert_eq!(logged.len(), place.server.seen().len());
    assert!(logged.iter().any(|connection| connection.why.to_string().contains(PROGRAM)), "{logged:?}");
    // A program does not come over a connection that anybody on the way can change.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for address in ["http://example.org/manifest.json", "file:///manifest.json", "manifest.json"] {
        let control = Control::default();
        let online = puller(false);
        let pulling = async { online.pull_engine(&place.store, address, &control, &mut |_| {}).await };
        let error = runtime.block_on(pulling).unwrap_err();
        assert!(error.to_string().contains("https://"), "{address}: {error}");
    }
}

/// Room is looked for before the first byte.
#[test]
fn an_engine_that_does_not_fit_on_the_disk_is_not_begun() {
    let place = Place::new();
    let mut list = place.offer(&content(300_000));
    list["files"][1]["size"] = json!(1u64 << 39);
    place.list(&list);
    place.server.forget();
    let error = place.pull().unwrap_err();
    assert_eq!(error.code(), Code::DiskFull, "{error}");
    assert_eq!(place.server.seen().len(), 1);
}
