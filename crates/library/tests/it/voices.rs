//! Voices on a real disk: several samples, removal for good, and damage.

use std::path::{Path, PathBuf};

use library::voices::VOICES_FILE;
use library::{Flaw, Problem, VoiceSample, Voices};

/// A file in a folder that does not exist yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steno").join(VOICES_FILE);
    (folder, path)
}

/// Of length 1, with `angle` between it and the first axis.
fn at(angle: f32) -> Vec<f32> {
    let mut vector = vec![0.0; 256];
    (vector[0], vector[1]) = (angle.cos(), angle.sin());
    vector
}

fn sample(source: &str, seconds: f64, angle: f32) -> VoiceSample {
    let network = "a".into();
    VoiceSample { source: source.into(), seconds, seconds_of_others: 0.0, network, vector: at(angle) }
}

#[test]
fn a_voice_is_the_mean_of_its_samples() {
    let (_folder, path) = place();
    assert!(Voices::open_existing(&path).unwrap().is_none());
    assert!(!path.exists(), "nothing is there before the user adds a voice");
    let voices = Voices::open(&path).unwrap();
    voices.add("Ben", &[sample("ben.wav", 12.0, 1.5)]).unwrap();
    voices.add("Anna", &[sample("a.wav", 12.0, 0.2)]).unwrap();
    voices.add("Anna", &[sample("b.wav", 12.0, -0.2)]).unwrap();
    drop(voices);
    let voices = Voices::open_existing(&path).unwrap().unwrap();
    let known = voices.known().unwrap();
    assert_eq!(known.iter().map(|voice| voice.name.as_str()).collect::<Vec<_>>(), ["Anna", "Ben"]);
    assert!((known[0].vector[0] - 1.0).abs() < 1e-6, "{:?}", &known[0].vector[..2]);
    let (listed, damaged) = voices.list().unwrap();
    assert!(damaged.is_empty());
    assert_eq!(listed[0].samples.len(), 2);
    assert!((listed[0].distance(0).unwrap() - (1.0 - 0.4f32.cos())).abs() < 1e-6);
    assert_eq!(listed[1].distance(0), None);
    assert!(voices.rename("Ben", "Benno").unwrap());
    assert!(!voices.rename("Benno", "Anna").unwrap(), "nobody is replaced");
    assert!(!voices.rename("Ben", "Bea").unwrap());
}

#[test]
fn a_bad_sample_is_known_as_one() {
    let (_folder, path) = place();
    let voices = Voices::open(&path).unwrap();
    let mixed = VoiceSample { seconds_of_others: 4.0, ..sample("mixed.wav", 12.0, 0.0) };
    let samples =
        [sample("good.wav", 12.0, 0.1), sample("short.wav", 2.0, 0.0), mixed, sample("other.wav", 12.0, 1.2)];
    voices.add("Anna", &samples).unwrap();
    let anna = &voices.list().unwrap().0[0];
    let flaws: Vec<Vec<Flaw>> = (0..4).map(|number| anna.flaws(number)).collect();
    assert_eq!(flaws, [vec![], vec![Flaw::Short], vec![Flaw::Mixed], vec![Flaw::Unlike]]);
}

/// Its bytes are in no file of the folder any more.
#[test]
fn what_is_removed_is_gone_for_good() {
    let (_folder, path) = place();
    let voices = Voices::open(&path).unwrap();
    let unlike = |number: usize| (0..256).map(|at| ((at * 7 + number) % 13) as f32 - 6.0).collect::<Vec<_>>();
    let vectors: Vec<Vec<f32>> = (0..3)
        .map(|number| {
            let vector = unlike(number);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter().map(|x| x / length).collect()
        })
        .collect();
    let of = |name: &str, vector: &Vec<f32>| VoiceSample { vector: vector.clone(), ..sample(name, 9.0, 0.0) };
    voices.add("Removed", &[of("removed-source.wav", &vectors[0])]).unwrap();
    voices.add("Kept", &[of("kept.wav", &vectors[1]), of("second.wav", &vectors[2])]).unwrap();
    let bytes = |vector: &[f32]| vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let contains = |wanted: &[u8]| {
        let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .any(|content| content.windows(wanted.len()).any(|window| window == wanted))
    };
    let [removed, kept, second] = [0, 1, 2].map(|number| bytes(&vectors[number]));
    assert!(contains(&removed) && contains(&kept) && contains(&second));
    assert!(voices.remove("Removed").unwrap());
    assert!(!voices.remove("Removed").unwrap());
    assert!(voices.remove_sample("Kept", 1).unwrap());
    assert!(!voices.remove_sample("Kept", 1).unwrap());
    for gone in [&removed[..], &second, b"Removed", b"removed-source"] {
        assert!(!contains(gone), "still there");
    }
    assert!(contains(&kept));
}

#[test]
fn damage_costs_no_other_voice_and_replaces_no_file() {
    let (_folder, path) = place();
    let voices = Voices::open(&path).unwrap();
    voices.add("Anna", &[sample("a.wav", 9.0, 0.0), sample("b.wav", 9.0, 0.1)]).unwrap();
    voices.add("Ben", &[sample("c.wav", 9.0, 1.0)]).unwrap();
    drop(voices);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let damage = "UPDATE samples SET vector = zeroblob(7) WHERE source = 'a.wav'";
    assert_eq!(connection.execute(damage, []).unwrap(), 1);
    drop(connection);
    let voices = Voices::open(&path).unwrap();
    let (listed, damaged) = voices.list().unwrap();
    assert_eq!(damaged, ["Anna"]);
    assert_eq!(listed.iter().map(|voice| voice.samples.len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(voices.known().unwrap().len(), 2);
    drop(voices);
    // A file that is none of SQLite's stays as it is.
    std::fs::write(&path, "no voices").unwrap();
    let error = Voices::open(&path).unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged(_)), "{error}");
    assert!(error.to_string().contains("The file of voices"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"no voices");
}

#[cfg(unix)]
#[test]
fn no_other_user_can_read_voices() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = place();
    let voices = Voices::open(&path).unwrap();
    voices.add("Anna", &[sample("a.wav", 9.0, 0.0)]).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}
