use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, platform};

/// Writes JSON beside its place and renames it there.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let beside = path.with_extension(format!("new{}", std::process::id()));
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| Error::io(path, error))
}

/// `None` where there is no such file. One that is no such JSON is an error
/// that names it.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::io(path, error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| Error::Invalid {
        path: path.into(),
        problem: format!("the file is damaged ({error})"),
        remedy: "Remove the file, then run the same command again.".into(),
    })
}

/// Names of what lies in a folder, sorted; none where there is no folder.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Error::io(folder, error)),
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Bytes of a file, or of everything in a folder; what can't be read is 0.
pub fn bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes(&entry.path())).sum()
}

/// Copies a folder with everything in it. Links become what they lead to.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(|error| Error::io(to, error))?;
    for name in names(from)? {
        let (source, target) = (from.join(&name), to.join(&name));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            let copied = fs::copy(&source, &target).and_then(|_| File::open(&target)?.sync_all());
            copied.map_err(|error| Error::io(&target, error))?;
        }
    }
    platform::sync_folder(to).map_err(|error| Error::io(to, error))
}

/// Moves a folder away by a rename and then removes it: a reader sees all
/// of it or nothing.
pub(crate) fn remove_folder(folder: &Path, trash: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(trash).map_err(|error| Error::io(trash, error))?;
    let away = unused(trash);
    fs::rename(folder, &away).map_err(|error| Error::io(folder, error))?;
    match fs::remove_dir_all(&away) {
        // Another program that cleans up was quicker.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&away, error)),
        _ => Ok(()),
    }
}

fn unused(folder: &Path) -> PathBuf {
    let mut number = 0;
    loop {
        let path = folder.join(format!("{}-{number}", std::process::id()));
        if !path.exists() {
            return path;
        }
        number += 1;
    }
}

/// Whether a name can be that of a folder or file of ours on every system, and
/// of nothing outside the folder that it is put in.
pub(crate) fn is_plain_name(name: &str) -> bool {
    const LONGEST: usize = 120;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let first = name.chars().next();
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |start: &str| stem.strip_prefix(start).is_some_and(|rest| rest.len() == 1);
    let is_device =
        matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt");
    name.len() <= LONGEST
        && name.chars().all(fits)
        && first.is_some_and(|c| c.is_ascii_alphanumeric())
        && !name.ends_with('.')
        && !is_device
}

/// Of what a server sent, as much as can be shown in a message.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 80;
    text.chars().take(LONGEST).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Whether a file of a model may lie there: in its folder, or in a folder within that.
pub(crate) fn is_plain_path(name: &str) -> bool {
    match name.split_once('/') {
        Some((folder, file)) => is_plain_name(folder) && is_plain_name(file),
        None => is_plain_name(name),
    }
}

/// Makes the folder that a file of a model lies in.
pub(crate) fn create_parent(file: &Path) -> Result<(), Error> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for name in
            ["model.safetensors", "whisper-large-v3", "ggml-large-v3-turbo-q5_0.bin", "distil-large-v3.5"]
        {
            assert!(is_plain_name(name) && is_plain_path(name), "{name}");
        }
        for name in ["segmentation/pytorch_model.bin", "plda/plda.npz"] {
            assert!(is_plain_path(name) && !is_plain_name(name), "{name}");
        }
        for name in ["/a", "a/", "a/..", "../a", "a/b/c", "a//b", "a\\b", "con/a", "a/./b"] {
            assert!(!is_plain_path(name), "{name}");
        }
        for name in
            ["", ".", "..", ".partial", "a/b", "a\\b", "a:b", "con", "NUL.txt", "lpt1", "a.", "-x", "ä"]
        {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}
