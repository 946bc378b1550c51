use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// What a file must hash to, in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    /// Of the file's content, in hexadecimal digits.
    Sha256(String),
    /// Of git's object: small files of a repository on the hub have no other.
    GitBlob(String),
    /// A publisher's own table.
    Sha1(String),
}

impl Digest {
    /// An entity tag of the hub: sha256 of a large file, git's hash of a small
    /// one, `None` for any other.
    pub fn of_etag(etag: &str) -> Option<Self> {
        let text = etag.trim().trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        match text.len() {
            64 => Some(Self::Sha256(text)),
            40 => Some(Self::GitBlob(text)),
            _ => None,
        }
    }

    /// The checksum itself, in hexadecimal digits.
    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) | Self::Sha1(hex) => hex,
        }
    }
}

/// What a file on disk hashes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hashes {
    pub size: u64,
    pub sha256: String,
    pub git_blob: String,
    pub sha1: String,
}

/// Hashes of git's kind are made for files up to this size only: beyond, the
/// hub has sha256.
const LARGEST_IN_GIT: u64 = 64 << 20;

impl Hashes {
    /// Reads the whole file. `on_bytes` hears how many were read each time;
    /// `true` from it ends the reading with `Interrupted`.
    pub fn of_file(path: &Path, also_sha1: bool, on_bytes: &mut dyn FnMut(u64) -> bool) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let small = length <= LARGEST_IN_GIT;
        let mut sha256 = Sha256::new();
        let mut git = Sha1::new();
        let mut sha1 = Sha1::new();
        git.update(format!("blob {length}\0"));
        let mut buffer = vec![0; 1 << 20];
        let mut size = 0;
        loop {
            let count = file.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            sha256.update(bytes);
            if small {
                git.update(bytes);
            }
            if also_sha1 {
                sha1.update(bytes);
            }
            size += count as u64;
            if on_bytes(count as u64) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(Self {
            size,
            sha256: format!("{:x}", sha256.finalize()),
            git_blob: if small { format!("{:x}", git.finalize()) } else { String::new() },
            sha1: if also_sha1 { format!("{:x}", sha1.finalize()) } else { String::new() },
        })
    }

    /// What the file has of the kind that `digest` is.
    pub fn like(&self, digest: &Digest) -> &str {
        match digest {
            Digest::Sha256(_) => &self.sha256,
            Digest::GitBlob(_) => &self.git_blob,
            Digest::Sha1(_) => &self.sha1,
        }
    }

    pub fn are(&self, digest: &Digest) -> bool {
        self.like(digest) == digest.hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_usual_tools() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "hello\n").unwrap();
        let hashes = Hashes::of_file(&path, true, &mut |_| false).unwrap();
        // sha256sum, git hash-object, sha1sum.
        for (digest, expected) in [
            (
                Digest::Sha256(String::new()),
                "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
            ),
            (Digest::GitBlob(String::new()), "ce013625030ba8dba906f756967f9e9ca394464a"),
            (Digest::Sha1(String::new()), "f572d396fae9206628714fb2ce00f72e94f2258f"),
        ] {
            assert_eq!(hashes.like(&digest), expected);
        }
        assert_eq!(hashes.size, 6);
    }

    #[test]
    fn entity_tags() {
        let (sha256, git) = ("AB".repeat(32), "cd".repeat(20));
        for (etag, expected) in [
            (format!("\"{sha256}\""), Some(Digest::Sha256(sha256.to_lowercase()))),
            (format!("W/\"{git}\""), Some(Digest::GitBlob(git))),
            ("\"5d41402abc4b2a76b9719d911017c592-2\"".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(Digest::of_etag(&etag), expected, "{etag}");
        }
    }
}
