//! Several programs at one store, and programs that are killed at any moment:
//! a model is whole or not there. `STENO_KILL_ROUNDS` asks for more kills than
//! the few of an ordinary run (scripts/soak.sh does).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Fault, Server};
use hub::{Control, Store, StoredState};

/// Of the catalogue: its name decides which files there are.
const NAME: &str = "whisper-tiny";
const REPOSITORY: &str = "openai/whisper-tiny";

struct Place {
    server: Server,
    folder: tempfile::TempDir,
    model: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let server = Server::start();
        let model = tempfile::tempdir().unwrap();
        let size = random_models::Size::named("micro").unwrap();
        random_models::write(model.path(), size, &random_models::Options::default()).unwrap();
        server.put_folder(REPOSITORY, model.path());
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        Self { server, folder, model, store }
    }

    fn puller(&self, more: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_steno-hub-puller"))
            .arg(self.server.url())
            .arg(self.folder.path())
            .arg(NAME)
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Under its name there is all of the model or nothing.
    #[track_caller]
    fn is_whole_or_absent(&self, what: &str) -> bool {
        let folder = self.store.folder().join(NAME);
        if !folder.exists() {
            for model in self.store.list().unwrap() {
                assert!(matches!(model.state, StoredState::Interrupted { .. }), "{what}: {model:?}");
            }
            return false;
        }
        self.is_whole(&folder, what);
        true
    }

    #[track_caller]
    fn is_whole(&self, folder: &Path, what: &str) {
        for entry in std::fs::read_dir(self.model.path()).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            let same = std::fs::read(folder.join(&name)).unwrap() == std::fs::read(entry.path()).unwrap();
            assert!(same, "{what}: {name:?} differs");
        }
        assert_eq!(self.store.model(NAME).unwrap().state, StoredState::Ready, "{what}");
        let verified = hub::verify(&self.store, NAME, &Control::default(), &mut |_, _| {}).unwrap();
        assert_eq!(verified.damaged, [], "{what}");
    }

    /// What is left does not stand in the way of the next program.
    #[track_caller]
    fn comes_right(&self, what: &str) {
        self.server.no_more_faults();
        let ended = self.puller(&[]).wait_with_output().unwrap();
        assert!(ended.status.success(), "{what}: {}", String::from_utf8_lossy(&ended.stderr));
        assert!(self.is_whole_or_absent(what), "{what}: it is not there");
        let rest = std::fs::read_dir(self.store.folder().join(".partial")).unwrap().count();
        assert_eq!(rest, 0, "{what}");
    }
}

fn rounds(ordinary: usize) -> usize {
    let asked = std::env::var("STENO_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(ordinary)
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn a_program_killed_at_any_byte_leaves_a_store_that_is_right() {
    let place = Place::new();
    let files = ["config.json", "tokenizer.json", "model.safetensors"];
    let mut random = Random(7);
    for round in 0..rounds(10) {
        // Every second one goes on where the one before was killed, which is
        // to have something left to get.
        let again = round % 2 == 1;
        let name = if again { "model.safetensors" } else { files[random.below(files.len())] };
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len() as usize);
        let have = length(&place.store.folder().join(format!(".partial/{NAME}/{name}.part")));
        let at = random.below(length(&place.model.path().join(name)) - have);
        let what = format!("round {round}, killed at byte {at} of what is left of {name}");
        // The answer of the hub comes before that of where it redirects to.
        let before = if name.ends_with("safetensors") { vec![Fault::None] } else { Vec::new() };
        place.server.faults("GET", name, before.into_iter().chain([Fault::Hold(at)]));
        let mut child = place.puller(&[]);
        place.server.wait_until_held();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!place.is_whole_or_absent(&what), "{what}: it is there");
        if again {
            place.comes_right(&what);
            place.store.remove(NAME).unwrap();
        }
        place.server.no_more_faults();
    }
    place.comes_right("at last");
}

/// Before, during and after the rename that makes the model visible.
#[test]
fn a_program_killed_while_it_installs_leaves_all_or_nothing() {
    let place = Place::new();
    let mut outcomes = [0, 0];
    let moments: Vec<Vec<String>> = ["verify", "install", "installed"]
        .iter()
        .map(|stage| vec![(*stage).to_owned()])
        .chain((0..rounds(10)).map(|round| vec!["install".into(), (round * 400).to_string()]))
        .collect();
    for moment in moments {
        let moment: Vec<&str> = moment.iter().map(String::as_str).collect();
        let what = format!("killed at {moment:?}");
        let child = place.puller(&moment).wait_with_output().unwrap();
        let is_there = place.is_whole_or_absent(&what);
        assert_ne!(child.status.code(), Some(1), "{what}: {}", String::from_utf8_lossy(&child.stderr));
        outcomes[usize::from(is_there)] += 1;
        place.comes_right(&what);
        place.store.remove(NAME).unwrap();
    }
    assert!(outcomes[0] >= 2 && outcomes[1] >= 1, "{outcomes:?}");
}

#[test]
fn of_two_programs_one_downloads_and_the_other_says_so() {
    let place = Place::new();
    place.server.faults("GET", "model.safetensors", [Fault::None, Fault::Hold(1000)]);
    let mut first = place.puller(&[]);
    place.server.wait_until_held();
    let second = place.puller(&[]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("process {}", first.id())), "{said}");
    let removed = place.store.remove(NAME).unwrap_err().to_string();
    assert!(removed.contains("is using the model"), "{removed}");
    first.kill().unwrap();
    first.wait().unwrap();
    place.comes_right("after the first was killed");
}

#[test]
fn two_programs_that_start_together_leave_one_model() {
    let place = Place::new();
    for _ in 0..5 {
        let children: Vec<Child> = (0..3).map(|_| place.puller(&[])).collect();
        let ended: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        assert!(ended.iter().any(|it| it.status.success()));
        for it in ended.iter().filter(|it| !it.status.success()) {
            let said = String::from_utf8_lossy(&it.stderr);
            assert!(said.contains("is using the model"), "{said}");
        }
        assert!(place.is_whole_or_absent("three together"));
        place.store.remove(NAME).unwrap();
    }
}
