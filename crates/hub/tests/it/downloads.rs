//! Downloads from a server that speaks the hub's protocol, and everything that
//! can go wrong with them: the store is right after each.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{BLOCK, Fault, Server, content};
use hub::{
    Code, Connections, Control, Error, Manifest, Model, ModelSource, NetworkLimits, Proxying, Puller, Store,
    StoredState, Token, TransferProgress, TransferStage, Wanted,
};

const WEIGHTS: &str = "model.safetensors";
const SIZE: usize = 600_000;

/// A repository of two files, one in git and one elsewhere.
struct Place {
    server: Server,
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let server = Server::start();
        server.put("us/model/config.json", "{\"model_type\": \"test\"}\n");
        server.put(&format!("us/model/{WEIGHTS}"), content(SIZE));
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("models"));
        Self { server, folder, store }
    }

    fn pull(&self) -> Result<Model, Error> {
        self.pull_with(&self.server.puller(), &wanted())
    }

    fn pull_with(&self, puller: &Puller, wanted: &Wanted) -> Result<Model, Error> {
        run(puller.pull(&self.store, wanted, &Control::default(), &mut |_| {}))
    }

    /// The model is there, byte for byte, and nothing else is left.
    #[track_caller]
    fn is_right(&self) {
        let folder = self.store.folder().join("model");
        assert_eq!(std::fs::read(folder.join(WEIGHTS)).unwrap(), content(SIZE));
        assert_eq!(std::fs::read(folder.join("config.json")).unwrap(), b"{\"model_type\": \"test\"}\n");
        assert_eq!(names(&folder), ["config.json", WEIGHTS, hub::MANIFEST]);
        assert_eq!(self.store.model("model").unwrap().state, StoredState::Ready);
        for rest in [".partial", ".trash"] {
            assert_eq!(names(&self.store.folder().join(rest)), [""; 0], "{rest}");
        }
        let verified = hub::verify(&self.store, "model", &Control::default(), &mut |_, _| {}).unwrap();
        assert_eq!(verified.damaged, []);
    }

    /// Nothing shows under the model's name; at most it counts as interrupted.
    #[track_caller]
    fn is_absent(&self) {
        assert!(!self.store.folder().join("model").exists());
        for model in self.store.list().unwrap() {
            assert!(matches!(model.state, StoredState::Interrupted { .. }), "{model:?}");
        }
    }

    /// What was sent before an answer was held is on its way.
    fn wait_for_bytes(&self) {
        let part = self.store.folder().join(".partial/model/model.safetensors.part");
        let since = Instant::now();
        while std::fs::metadata(&part).map_or(0, |it| it.len()) < 100_000 {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }

    /// Where the requests for the weights' content began.
    fn starts(&self) -> Vec<u64> {
        let seen = self.server.seen();
        let gets = seen.iter().filter(|it| it.method == "GET" && it.host == "cdn");
        gets.map(|it| it.range.as_deref().map_or(0, |range| range[6..range.len() - 1].parse().unwrap()))
            .collect()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn wanted() -> Wanted {
    let mut wanted = Wanted::of_repository("model", "us/model").unwrap();
    wanted.files = Some(vec!["config.json".into(), WEIGHTS.into()]);
    wanted.is_speech = false;
    wanted
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let mut names: Vec<String> = entries.map(|it| it.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_model_arrives_and_is_left_alone_from_then_on() {
    let place = Place::new();
    let mut heard = Vec::new();
    let (puller, control) = (place.server.puller(), Control::default());
    let wanted = wanted();
    let mut on_progress = |progress: TransferProgress| heard.push(progress);
    let model = run(puller.pull(&place.store, &wanted, &control, &mut on_progress)).unwrap();
    place.is_right();
    assert_eq!(model.folder, place.store.folder().join("model"));
    let stages: Vec<TransferStage> = heard.iter().map(|it| it.stage).collect();
    let order = [
        TransferStage::Look,
        TransferStage::Download,
        TransferStage::Verify,
        TransferStage::Install,
        TransferStage::Installed,
    ];
    let mut at = 0;
    for stage in stages {
        at += usize::from(order.get(at) != Some(&stage) && order.get(at + 1) == Some(&stage));
    }
    assert_eq!(at, order.len() - 1, "{heard:?}");
    let last = heard.last().unwrap();
    assert_eq!((last.done, last.total), (SIZE as u64 + 23, SIZE as u64 + 23));
    // What was promised is what the manifest says.
    let manifest = Manifest::read(&model.folder).unwrap().unwrap();
    let weights = manifest.files.iter().find(|file| file.name == WEIGHTS).unwrap();
    assert_eq!(weights.sha256.as_deref(), Some(crate::support::sha256(&content(SIZE)).as_str()));
    place.server.forget();
    place.pull().unwrap();
    assert!(place.server.seen().is_empty(), "a model that is there was asked for again");
}

/// Connections that break, answers that fail, and what is left of it.
#[test]
fn what_passes_is_tried_again() {
    let cases: [(&str, &str, &str, Vec<Fault>); 8] = [
        ("500 at the first look", "HEAD", WEIGHTS, vec![Fault::Status(500), Fault::Status(503)]),
        ("502 for the content", "GET", WEIGHTS, vec![Fault::Status(502)]),
        ("cut in a small file", "GET", "config.json", vec![Fault::Cut(3), Fault::Cut(0)]),
        (
            "a range nobody honours",
            "GET",
            WEIGHTS,
            vec![Fault::Status(500), Fault::Cut(99_000), Fault::NoRanges],
        ),
        ("416 for what is fine", "GET", WEIGHTS, vec![Fault::None, Fault::Cut(200_000), Fault::Status(416)]),
        ("a stale address", "GET", "us/model/model.safetensors", vec![Fault::Status(403)]),
        ("five in a row", "GET", WEIGHTS, vec![Fault::Status(500); 5]),
        ("408", "HEAD", "config.json", vec![Fault::Status(408)]),
    ];
    for (what, method, path, faults) in cases {
        let place = Place::new();
        place.server.faults(method, path, faults);
        place.pull().unwrap_or_else(|error| panic!("{what}: {error}"));
        place.is_right();
    }
}

#[test]
fn what_does_not_pass_is_an_error_that_says_so() {
    type Case<'a> = (&'a str, &'a str, &'a str, Vec<Fault>, Code, &'a str);
    let cases: [Case; 11] = [
        ("HEAD", "401", "config.json", vec![Fault::Status(401)], Code::Refused, "HF_TOKEN"),
        ("HEAD", "403", "config.json", vec![Fault::Status(403)], Code::Refused, "terms"),
        ("HEAD", "404", WEIGHTS, vec![Fault::Status(404)], Code::NotFound, "127.0.0.1 has no us/model"),
        ("GET", "404", WEIGHTS, vec![Fault::Status(404)], Code::NotFound, "has no"),
        ("GET", "500", WEIGHTS, vec![Fault::Status(500); 6], Code::NetworkFailed, "status 500"),
        ("GET", "418", WEIGHTS, vec![Fault::Status(418)], Code::NetworkFailed, "status 418"),
        (
            "GET",
            "a byte",
            "us/model/model.safetensors",
            vec![Fault::None, Fault::None],
            Code::Corrupt,
            "checksum",
        ),
        ("GET", "longer", WEIGHTS, vec![Fault::None, Fault::Longer], Code::Corrupt, "but must have"),
        ("GET", "wait", WEIGHTS, vec![Fault::Later(429, 100_000)], Code::NetworkFailed, "wait 100000 s"),
        (
            "GET",
            "circles",
            WEIGHTS,
            vec![Fault::To("/us/model/resolve/main/model.safetensors".into()); 9],
            Code::NetworkFailed,
            "redirects in a loop",
        ),
        (
            "GET",
            "nowhere",
            WEIGHTS,
            vec![Fault::To("file:///etc/passwd".into())],
            Code::NetworkFailed,
            "encrypted",
        ),
    ];
    for (method, what, path, faults, code, part) in cases {
        let place = Place::new();
        if what == "a byte" {
            let wrong = vec![Fault::None, Fault::WrongByte(SIZE / 2)];
            place.server.faults("GET", WEIGHTS, wrong);
        } else {
            place.server.faults(method, path, faults);
        }
        let error = place.pull().unwrap_err();
        assert_eq!(error.code(), code, "{what}: {error}");
        assert!(error.to_string().contains(part), "{what}: {error}");
        place.is_absent();
        // Nothing of it stands in the way of the next try.
        place.server.no_more_faults();
        place.pull().unwrap_or_else(|error| panic!("after {what}: {error}"));
        place.is_right();
    }
}

#[test]
fn a_download_that_is_cut_goes_on_where_it_was_cut() {
    let place = Place::new();
    let mut random = 12_345_u64;
    let mut cuts: Vec<usize> = (0..10)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            20_000 + (random >> 33) as usize % (SIZE - 40_000)
        })
        .collect();
    cuts.sort_unstable();
    // Each time it is another program that goes on.
    let log = place.folder.path().join("connections.jsonl");
    let settings = || {
        let mut settings = place.server.settings();
        settings.limits = NetworkLimits { attempts: 1, least_bytes: u64::MAX, ..settings.limits };
        settings
    };
    for cut in cuts {
        let have = std::fs::metadata(place.store.folder().join(".partial/model/model.safetensors.part"));
        let have = have.map_or(0, |it| it.len() as usize);
        place.server.faults("GET", WEIGHTS, [Fault::None, Fault::Cut(cut.saturating_sub(have))]);
        let puller = Puller::new(settings(), Connections::in_file(&log)).unwrap();
        let error = place.pull_with(&puller, &wanted()).unwrap_err();
        assert_eq!(error.code(), Code::NetworkFailed, "{error}");
        place.is_absent();
    }
    let puller = Puller::new(settings(), Connections::in_file(&log)).unwrap();
    place.pull_with(&puller, &wanted()).unwrap();
    place.is_right();
    let came: u64 = Connections::read(&log)
        .unwrap()
        .iter()
        .filter(|it| it.why.to_string().starts_with(WEIGHTS))
        .filter_map(|it| it.bytes)
        .sum();
    assert!(came >= SIZE as u64 && came <= (SIZE + BLOCK) as u64, "{came} bytes came for {SIZE}");
    let starts = place.starts();
    assert_eq!(starts.len(), 11, "{starts:?}");
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn a_wrong_byte_of_an_earlier_day_costs_one_more_download_and_no_more() {
    let place = Place::new();
    place.server.faults("GET", WEIGHTS, [Fault::None, Fault::Hold(300_000)]);
    interrupted(&place);
    let part = place.store.folder().join(".partial/model/model.safetensors.part");
    let mut bytes = std::fs::read(&part).unwrap();
    assert!(bytes.len() > 100_000, "{} bytes came", bytes.len());
    bytes[1000] ^= 1;
    std::fs::write(&part, &bytes).unwrap();
    place.server.forget();
    place.pull().unwrap();
    place.is_right();
    assert_eq!(place.starts(), [bytes.len() as u64, 0]);
}

/// Pulls until the server holds an answer, then stops.
fn interrupted(place: &Place) {
    let (puller, control) = (place.server.puller(), Control::default());
    let wanted = wanted();
    std::thread::scope(|scope| {
        let pulling = scope.spawn(|| run(puller.pull(&place.store, &wanted, &control, &mut |_| {})));
        place.server.wait_until_held();
        place.wait_for_bytes();
        control.cancel();
        assert_eq!(pulling.join().unwrap().unwrap_err().code(), Code::Cancelled);
    });
}

#[test]
fn an_interrupted_download_is_listed_and_goes_on_only_if_it_is_the_same_file() {
    let place = Place::new();
    place.server.faults("GET", WEIGHTS, [Fault::None, Fault::Hold(300_000)]);
    interrupted(&place);
    place.is_absent();
    let listed = place.store.list().unwrap();
    let StoredState::Interrupted { done, total } = listed[0].state else { panic!("{listed:?}") };
    assert_eq!(total, Some(SIZE as u64 + 23));
    assert!(done > 100_000);
    // The file behind the name becomes another one.
    let other: Vec<u8> = content(SIZE).iter().map(|byte| byte ^ 0xff).collect();
    place.server.put(&format!("us/model/{WEIGHTS}"), other.clone());
    let error = place.pull().unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.to_string().contains("has changed since the first download"), "{error}");
    assert!(error.to_string().contains("--renew"), "{error}");
    place.is_absent();
    // Who trusts it takes it, all of it new.
    let renewed = Wanted { renew: true, ..wanted() };
    place.pull_with(&place.server.puller(), &renewed).unwrap();
    assert_eq!(std::fs::read(place.store.folder().join("model").join(WEIGHTS)).unwrap(), other);
}

#[test]
fn what_was_pinned_holds_after_the_model_was_removed() {
    let place = Place::new();
    place.pull().unwrap();
    place.store.remove("model").unwrap();
    assert_eq!(place.store.list().unwrap(), []);
    // The branch moves on: the commit of the first download is asked for.
    place.server.commit(&"beef".repeat(10));
    place.server.forget();
    place.pull().unwrap();
    assert!(place.server.seen().iter().all(|it| !it.path.contains("/resolve/main/")));
    place.store.remove("model").unwrap();
    place.server.put(&format!("us/model/{WEIGHTS}"), content(SIZE - 1));
    assert_eq!(place.pull().unwrap_err().code(), Code::Corrupt);
    place.is_absent();
}

#[test]
fn content_that_changes_between_two_answers_is_not_mixed() {
    let place = Place::new();
    place.server.faults("GET", WEIGHTS, [Fault::None, Fault::Cut(300_000)]);
    let (puller, control, wanted) = (place.server.puller(), Control::default(), wanted());
    let other: Vec<u8> = content(SIZE).iter().map(|byte| byte ^ 0xff).collect();
    let mut changed = false;
    let mut on_progress = |progress: TransferProgress| {
        if progress.stage == TransferStage::Wait && !std::mem::replace(&mut changed, true) {
            place.server.put(&format!("us/model/{WEIGHTS}"), other.clone());
        }
    };
    let error = run(puller.pull(&place.store, &wanted, &control, &mut on_progress)).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt, "{error}");
    assert!(changed);
    place.is_absent();
}

#[test]
fn a_token_goes_to_the_hub_and_nowhere_else() {
    let place = Place::new();
    place.server.needs_token("hf_secret");
    let log = place.folder.path().join("connections.jsonl");
    let mut settings = place.server.settings();
    assert_eq!(place.pull().unwrap_err().code(), Code::Refused);
    settings.token = Token::new("hf_secret");
    let puller = Puller::new(settings, Connections::in_file(&log)).unwrap();
    assert!(!format!("{puller:?}").contains("secret"));
    place.server.forget();
    place.pull_with(&puller, &wanted()).unwrap();
    place.is_right();
    let seen = place.server.seen();
    for it in &seen {
        assert_eq!(it.token.is_some(), it.host == "hub", "{it:?}");
    }
    assert!(seen.iter().any(|it| it.host == "cdn"));
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(!logged.contains("secret") && !logged.contains("signature"), "{logged}");
}

#[test]
fn a_wait_that_the_server_asks_for_is_kept() {
    let place = Place::new();
    place.server.faults("HEAD", WEIGHTS, [Fault::Later(429, 1)]);
    place.pull().unwrap();
    place.is_right();
    let heads: Vec<Instant> = place
        .server
        .seen()
        .iter()
        .filter(|it| it.method == "HEAD" && it.path.ends_with(WEIGHTS))
        .map(|it| it.at)
        .collect();
    assert!(heads[1] - heads[0] >= Duration::from_secs(1));
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_given_up() {
    for faults in
        [vec![Fault::None, Fault::Trickle], vec![Fault::Silent], vec![Fault::None, Fault::Hold(50_000)]]
    {
        let place = Place::new();
        let mut settings = place.server.settings();
        let short = Duration::from_millis(300);
        settings.limits = NetworkLimits {
            window: short,
            answer: short,
            least_bytes: 60_000,
            attempts: 2,
            ..settings.limits
        };
        let puller = Puller::new(settings, Connections::nowhere()).unwrap();
        place.server.faults("GET", WEIGHTS, faults.iter().cloned().cycle().take(2 * faults.len()));
        let error = place.pull_with(&puller, &wanted()).unwrap_err();
        assert!(matches!(error, Error::TooSlow { .. }), "{faults:?}: {error}");
        place.is_absent();
        place.pull().unwrap();
        place.is_right();
    }
}

/// A hub that lies costs neither the program, nor the disk, nor a name in the store.
#[test]
fn an_implausible_answer_is_refused_by_name() {
    let weights = format!("us/model/{WEIGHTS}");
    type Lie<'a> = (&'a str, &'a dyn Fn(&Server));
    let lies: [Lie; 6] = [
        ("a size of 18446744073709551615 bytes", &|server| server.claim_size(&weights, u64::MAX)),
        ("a size of 9223372036854775807 bytes", &|server| server.claim_size(&weights, u64::MAX >> 1)),
        ("a commit named \"../../../../etc?x=\"", &|server| server.commit("../../../../etc?x=")),
        ("a commit named \"main\"", &|server| server.commit("main")),
        ("more than 33554432 bytes for config.json", &|server| {
            server.faults("HEAD", "config.json", [Fault::Endless]);
            server.faults("GET", "config.json", [Fault::Endless]);
        }),
        ("a size of 40000000 bytes for config.json", &|server| {
            server.put("us/model/config.json", vec![b' '; 40_000_000]);
        }),
    ];
    for (told, lie) in lies {
        let place = Place::new();
        lie(&place.server);
        let error = place.pull().unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{told}: {error}");
        assert!(error.to_string().contains(told), "{told}: {error}");
        place.is_absent();
        assert_eq!(names(&place.store.folder().join(".pins")), [""; 0], "{told}: it was pinned");
        let part = place.store.folder().join(".partial/model/config.json.part");
        assert!(!part.exists(), "{told}: {part:?} takes space");
    }
}

#[test]
fn the_disk_is_looked_at_first_and_believed_later() {
    let place = Place::new();
    place.server.claim_size(&format!("us/model/{WEIGHTS}"), 1 << 40);
    let error = place.pull().unwrap_err();
    assert_eq!(error.code(), Code::DiskFull, "{error}");
    assert!(
        error.to_string().contains("GB is needed") && error.to_string().contains("steno models move"),
        "{error}"
    );
    assert!(place.server.seen().iter().all(|it| it.method == "HEAD"), "something was downloaded");
    place.is_absent();
}

/// The kernel's own full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_loses_nothing() {
    let place = Place::new();
    let partial = place.store.folder().join(".partial/model");
    std::fs::create_dir_all(&partial).unwrap();
    let part = partial.join("model.safetensors.part");
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    let error = place.pull().unwrap_err();
    assert_eq!(error.code(), Code::DiskFull, "{error}");
    place.is_absent();
    std::fs::remove_file(&part).unwrap();
    place.pull().unwrap();
    place.is_right();
}

#[test]
fn a_pause_lets_go_of_the_connection_and_goes_on_from_there() {
    let place = Place::new();
    place.server.faults("GET", WEIGHTS, [Fault::None, Fault::Hold(300_000)]);
    let (puller, control, wanted) = (place.server.puller(), Control::default(), wanted());
    let (sender, waits) = std::sync::mpsc::channel();
    let mut on_progress = |progress: TransferProgress| {
        if progress.stage == TransferStage::Wait {
            sender.send(()).unwrap();
        }
    };
    std::thread::scope(|scope| {
        let pulling = scope.spawn(|| run(puller.pull(&place.store, &wanted, &control, &mut on_progress)));
        place.server.wait_until_held();
        place.wait_for_bytes();
        control.pause();
        waits.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(!pulling.is_finished());
        control.resume();
        pulling.join().unwrap().unwrap();
    });
    place.is_right();
    let starts = place.starts();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!(starts[1] > 0);
}

#[test]
fn with_the_network_off_nothing_connects() {
    let place = Place::new();
    let mut settings = place.server.settings();
    settings.offline = true;
    let log = place.folder.path().join("connections.jsonl");
    let puller = Puller::new(settings, Connections::in_file(&log)).unwrap();
    let error = place.pull_with(&puller, &wanted()).unwrap_err();
    assert_eq!(error.code(), Code::NetworkOff);
    assert!(error.to_string().contains("turned off"), "{error}");
    assert!(place.server.seen().is_empty() && !log.exists());
    assert_eq!(place.store.list().unwrap(), []);
}

#[test]
fn every_connection_is_logged() {
    let place = Place::new();
    let log = place.folder.path().join("state/connections.jsonl");
    let puller = Puller::new(place.server.settings(), Connections::in_file(&log)).unwrap();
    place.pull_with(&puller, &wanted()).unwrap();
    let logged = Connections::read(&log).unwrap();
    assert_eq!(logged.len(), place.server.seen().len());
    assert!(logged.iter().all(|it| it.host == "127.0.0.1" && it.bytes.is_some()), "{logged:?}");
    let weights: Vec<_> =
        logged.iter().filter(|it| it.why.to_string() == "model.safetensors of model").collect();
    // The redirect and the content.
    assert_eq!(weights.iter().filter_map(|it| it.bytes).collect::<Vec<_>>(), [0, SIZE as u64]);
}

#[test]
fn damage_is_found_listed_and_repaired_with_what_is_damaged_alone() {
    let place = Place::new();
    place.pull().unwrap();
    let folder = place.store.folder().join("model");
    let state = || place.store.model("model").unwrap().state;
    let damaged = StoredState::Damaged { files: vec![WEIGHTS.into()] };
    // Another length shows at once, another byte when all is read.
    let mut bytes = content(SIZE);
    bytes[77] ^= 1;
    for (changed, found_by_reading) in [(&bytes[..SIZE - 1], false), (&bytes[..], true)] {
        std::fs::write(folder.join(WEIGHTS), changed).unwrap();
        if found_by_reading {
            assert_eq!(state(), StoredState::Ready);
            let verified = hub::verify(&place.store, "model", &Control::default(), &mut |_, _| {}).unwrap();
            assert_eq!(verified.damaged[0].0, WEIGHTS);
        }
        assert_eq!(state(), damaged);
        place.server.forget();
        place.pull().unwrap();
        place.is_right();
        assert!(place.server.seen().iter().all(|it| it.method == "HEAD" || it.path.ends_with(WEIGHTS)));
    }
}

#[test]
fn the_store_moves_to_another_folder() {
    let place = Place::new();
    place.pull().unwrap();
    let other = Store::at(place.folder.path().join("elsewhere"));
    let mut heard = Vec::new();
    assert!(place.store.move_to(&Store::at(place.store.folder().join("inside")), &mut |_| {}).is_err());
    place.store.move_to(&other, &mut |id| heard.push(id.to_owned())).unwrap();
    assert_eq!(heard, ["model"]);
    assert_eq!(place.store.list().unwrap(), []);
    let place = Place { store: other, ..place };
    place.is_right();
    // What was pinned has come along.
    place.store.remove("model").unwrap();
    place.server.put(&format!("us/model/{WEIGHTS}"), content(SIZE - 1));
    assert_eq!(place.pull().unwrap_err().code(), Code::Corrupt);
}

/// Memory that looks like a disk is another one than that of temporary files.
#[cfg(target_os = "linux")]
#[test]
fn the_store_moves_to_another_disk() {
    let place = Place::new();
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    assert!(
        !hub::platform::same_disk(other.path(), place.folder.path()),
        "this test needs a file system at /dev/shm that temporary files don't share; set TMPDIR"
    );
    place.pull().unwrap();
    // One that is not finished comes along.
    place.server.put("us/other/config.json", "{}");
    place.server.put(&format!("us/other/{WEIGHTS}"), content(1000));
    let second = Wanted {
        id: "other".into(),
        source: ModelSource::Hub { repository: "us/other".into(), revision: None },
        ..wanted()
    };
    place.server.faults("GET", WEIGHTS, [Fault::Status(404)]);
    assert!(place.pull_with(&place.server.puller(), &second).is_err());
    let moved = Store::at(other.path().join("models"));
    place.store.move_to(&moved, &mut |_| {}).unwrap();
    assert_eq!(place.store.list().unwrap(), []);
    let states: Vec<bool> = moved.list().unwrap().iter().map(|it| it.state == StoredState::Ready).collect();
    assert_eq!(states, [true, false]);
    let place = Place { store: moved, ..place };
    place.pull_with(&place.server.puller(), &second).unwrap();
    place.is_right();
}

#[test]
fn a_file_of_any_server_is_taken_at_its_address() {
    let place = Place::new();
    let url = format!("http://{}/us/model/{WEIGHTS}?key=1", place.server.cdn);
    let mut wanted = Wanted::new("single", ModelSource::Url(url)).unwrap();
    wanted.is_speech = false;
    let model = place.pull_with(&place.server.puller(), &wanted).unwrap();
    assert_eq!(std::fs::read(model.folder.join(WEIGHTS)).unwrap(), content(SIZE));
    // From then on it must be that file.
    place.store.remove("single").unwrap();
    let mut other = content(SIZE);
    other[5] ^= 1;
    place.server.put(&format!("us/model/{WEIGHTS}"), other);
    assert_eq!(place.pull_with(&place.server.puller(), &wanted).unwrap_err().code(), Code::Corrupt);
}

#[test]
fn what_is_no_model_does_not_become_one() {
    for (bytes, part) in
        [(&b"PK\x03\x04archive/data.pkl"[..], "pickle"), (b"<html>Sign in</html>", "web site")]
    {
        let place = Place::new();
        place.server.put(&format!("us/model/{WEIGHTS}"), bytes);
        let error = place.pull().unwrap_err();
        assert_eq!(error.code(), Code::Invalid);
        assert!(error.to_string().contains(part), "{error}");
        place.is_absent();
    }
}

#[test]
fn a_repository_that_nobody_listed_is_asked_what_it_has() {
    let place = Place::new();
    let model = tempfile::tempdir().unwrap();
    let size = random_models::Size::named("micro").unwrap();
    random_models::write(model.path(), size, &random_models::Options::default()).unwrap();
    place.server.put_folder("somebody/fine-tuned", model.path());
    place.server.put("somebody/fine-tuned/pytorch_model.bin", "PK\x03\x04");
    place.server.put("somebody/fine-tuned/README.md", "Take it.");
    let wanted = hub::Catalogue::public().unwrap().wanted("somebody/fine-tuned").unwrap();
    let model = place.pull_with(&place.server.puller(), &wanted).unwrap();
    let expected =
        ["config.json", "generation_config.json", WEIGHTS, "preprocessor_config.json", hub::MANIFEST];
    let found = names(&model.folder);
    assert_eq!(found, [&expected[..], &["tokenizer.json"]].concat());
    hub::inspect(&model.folder).unwrap();
}

#[test]
fn a_proxy_is_gone_through_for_every_host() {
    let place = Place::new();
    let mut settings = place.server.settings();
    // Known to the proxy alone.
    settings.endpoint = "http://hub.invalid".parse().unwrap();
    settings.token = Token::new("hf_secret");
    settings.proxy = Proxying::Through(place.server.url());
    let log = place.folder.path().join("connections.jsonl");
    let puller = Puller::new(settings, Connections::in_file(&log)).unwrap();
    place.pull_with(&puller, &wanted()).unwrap();
    place.is_right();
    let seen = place.server.seen();
    assert!(seen.iter().all(|it| it.host == "hub" && it.token.is_none()), "{seen:?}");
    let hosts: Vec<String> = Connections::read(&log).unwrap().into_iter().map(|it| it.host).collect();
    assert!(hosts.contains(&"hub.invalid".into()) && hosts.contains(&"127.0.0.1".into()), "{hosts:?}");

    let mut settings = place.server.settings();
    settings.proxy = Proxying::Through("not an address".into());
    assert_eq!(Puller::new(settings, Connections::nowhere()).unwrap_err().code(), Code::Invalid);
}

#[test]
fn small_files_behind_a_redirect_within_the_hub_are_pinned_too() {
    let place = Place::new();
    place.server.redirect_within();
    place.server.needs_token("hf_secret");
    let mut settings = place.server.settings();
    settings.token = Token::new("hf_secret");
    let puller = Puller::new(settings, Connections::nowhere()).unwrap();
    let model = place.pull_with(&puller, &wanted()).unwrap();
    place.is_right();
    let manifest = Manifest::read(&model.folder).unwrap().unwrap();
    assert!(
        manifest.files.iter().all(|file| file.promised.len() == 1 && file.size.is_some()),
        "{manifest:?}"
    );
    let hub::Origin::Hub { revision, .. } = manifest.origin else { panic!() };
    assert_eq!(revision.len(), 40, "{revision}");
}

/// The catalogue's larger model that tells speakers apart is two plain files.
#[test]
fn a_nemotron_of_the_catalogue_is_pulled() {
    const REPOSITORY: &str = "nvidia/Nemotron-3-Diarization";
    let place = Place::new();
    let source = random_models::corpus::bundled().join("reference/speakers/nemotron/model");
    let wanted = hub::Catalogue::public().unwrap().wanted("nemotron-3-diarization").unwrap();
    let put = |name: &str, bytes: Vec<u8>| place.server.put(&format!("{REPOSITORY}/{name}"), bytes);
    for name in wanted.files.as_ref().unwrap() {
        put(name, std::fs::read(source.join(name)).unwrap());
    }
    let puller = Puller::new(place.server.settings(), Connections::nowhere()).unwrap();
    let model = place.pull_with(&puller, &wanted).unwrap();
    assert_eq!(model.state, StoredState::Ready);
    assert!(hub::Catalogue::public().unwrap().wanted("nemotron-3-diarization").is_ok_and(|it| !it.is_speech));
    // What its configuration does not fit does not become one.
    place.store.remove("nemotron-3-diarization").unwrap();
    let config = std::fs::read_to_string(source.join("config.json")).unwrap();
    put("config.json", config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3").into_bytes());
    let renewed = Wanted { renew: true, ..wanted };
    let error = place.pull_with(&puller, &renewed).unwrap_err().to_string();
    assert!(error.contains("layers.2"), "{error}");
}

/// Those of the catalogue that embed texts are taken with their steps, or not at all.
#[test]
fn a_model_of_the_catalogue_that_embeds_texts_is_pulled() {
    let embedding = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding");
    let catalogue = hub::Catalogue::public().unwrap();
    for (id, repository, tiny) in [
        ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "tiny-bert"),
        ("multilingual-e5-small", "intfloat/multilingual-e5-small", "tiny-bert"),
        ("multilingual-e5-base", "intfloat/multilingual-e5-base", "tiny-xlm-roberta"),
    ] {
        let place = Place::new();
        let wanted = catalogue.wanted(id).unwrap();
        assert_eq!(catalogue.wanted(repository).unwrap(), wanted);
        assert!(!wanted.is_speech);
        let put = |name: &str, bytes: Vec<u8>| place.server.put(&format!("{repository}/{name}"), bytes);
        for name in wanted.files.as_ref().unwrap() {
            put(name, std::fs::read(embedding.join(tiny).join(name)).unwrap());
        }
        let puller = Puller::new(place.server.settings(), Connections::nowhere()).unwrap();
        let model = place.pull_with(&puller, &wanted).unwrap();
        assert_eq!(model.state, StoredState::Ready);
        assert!(model.folder.join("1_Pooling/config.json").is_file());
        place.store.remove(id).unwrap();
        put("1_Pooling/config.json", br#"{"pooling_mode_max_tokens": true}"#.to_vec());
        let error = place.pull_with(&puller, &Wanted { renew: true, ..wanted }).unwrap_err().to_string();
        assert!(error.contains("pooling"), "{error}");
    }
    // Its weights are a checkpoint, which is read without being run.
    let files = catalogue.wanted("bge-m3").unwrap().files.unwrap();
    assert!(files.contains(&"pytorch_model.bin".to_owned()));
}

/// The catalogue's model that tells speakers apart: its files lie in folders, and its
/// checkpoints are the only pickles that are taken.
#[test]
fn a_speaker_model_of_the_catalogue_is_pulled_interrupted_verified_and_repaired() {
    const REPOSITORY: &str = "pyannote-community/speaker-diarization-community-1";
    let place = Place::new();
    let source = random_models::corpus::bundled().join("reference/speakers/community/model");
    let wanted = hub::Catalogue::public().unwrap().wanted("community-1").unwrap();
    let files = wanted.files.clone().unwrap();
    for name in &files {
        place.server.put(&format!("{REPOSITORY}/{name}"), std::fs::read(source.join(name)).unwrap());
    }
    let mut settings = place.server.settings();
    settings.limits = NetworkLimits { attempts: 1, least_bytes: u64::MAX, ..settings.limits };
    let puller = Puller::new(settings, Connections::nowhere()).unwrap();
    place.server.faults("GET", "embedding/pytorch_model.bin", [Fault::None, Fault::Cut(100_000)]);
    place.pull_with(&puller, &wanted).unwrap_err();
    assert!(
        matches!(place.store.model("community-1").unwrap().state, StoredState::Interrupted { done, .. } if done > 300_000)
    );
    let model = place.pull_with(&puller, &wanted).unwrap();
    assert_eq!(model.state, StoredState::Ready);
    for name in &files {
        assert_eq!(
            std::fs::read(model.folder.join(name)).unwrap(),
            std::fs::read(source.join(name)).unwrap(),
            "{name}"
        );
    }
    let manifest = Manifest::read(&model.folder).unwrap().unwrap();
    assert!(manifest.files.iter().all(|file| file.sha256.is_some()));
    // A damaged file alone comes again.
    std::fs::write(model.folder.join("plda/plda.npz"), b"PK").unwrap();
    place.server.forget();
    assert_eq!(place.pull_with(&puller, &wanted).unwrap().state, StoredState::Ready);
    let gets = place.server.seen().into_iter().filter(|seen| seen.method == "GET");
    assert!(gets.into_iter().all(|seen| seen.path.ends_with("plda/plda.npz")));
    // What is no such model does not become one.
    place.store.remove("community-1").unwrap();
    place
        .server
        .put(&format!("{REPOSITORY}/segmentation/pytorch_model.bin"), b"\x80\x02cos\nsystem\n".to_vec());
    let renewed = Wanted { renew: true, ..wanted };
    assert!(place.pull_with(&puller, &renewed).is_err());
    assert!(place.store.model("community-1").is_ok_and(|model| model.state != StoredState::Ready));
}
