use serde::Serialize;

use crate::digest::{Digest, Hashes};
use crate::manifest::Manifest;
use crate::store::Store;
use crate::{Control, Error};

/// What a model's files were found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The model's name.
    pub id: String,
    /// Bytes that were read.
    pub bytes: u64,
    /// Each with what is wrong with it, in a sentence; empty where all is well.
    pub damaged: Vec<(String, String)>,
}

/// Reads every byte of a model again and compares it with what came at the
/// download or import. What is found is remembered: a damaged model is listed
/// as such from then on. `on_bytes` hears of bytes read, and of all there are.
///
/// # Errors
///
/// Fails with `UnknownModel`, `InUse`, `Cancelled`, and where a file can't be read.
pub fn verify(
    store: &Store,
    id: &str,
    control: &Control,
    on_bytes: &mut dyn FnMut(u64, u64),
) -> Result<Verified, Error> {
    let model = store.model(id)?;
    let _lock = store.lock(id)?;
    let Some(mut manifest) = Manifest::read(&model.folder)? else {
        return Err(Error::UnknownModel { name: id.into() });
    };
    let total = manifest.bytes();
    let mut read = 0;
    let mut damaged = Vec::new();
    for file in &manifest.files {
        let path = model.folder.join(&file.name);
        let hashes = Hashes::of_file(&path, false, &mut |bytes| {
            read += bytes;
            on_bytes(read, total);
            control.is_cancelled()
        });
        let problem = match hashes {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("It is missing.".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Err(Error::Cancelled),
            Err(error) => return Err(Error::io(&path, error)),
            Ok(hashes) => wrong(file.size, file.sha256.as_deref(), &file.promised, &hashes),
        };
        damaged.extend(problem.map(|problem| (file.name.clone(), problem)));
    }
    let names: Vec<String> = damaged.iter().map(|(name, _)| name.clone()).collect();
    if manifest.damaged != names {
        manifest.damaged = names;
        manifest.write(&model.folder)?;
    }
    Ok(Verified { id: id.into(), bytes: read, damaged })
}

fn wrong(size: Option<u64>, sha256: Option<&str>, promised: &[Digest], hashes: &Hashes) -> Option<String> {
    if let Some(size) = size.filter(|size| *size != hashes.size) {
        return Some(format!("It has {} bytes, but must have {size}.", hashes.size));
    }
    let measured = sha256.map(|hex| Digest::Sha256(hex.to_owned()));
    let is_other = |digest: &&Digest| !matches!(digest, Digest::Sha1(_)) && !hashes.are(digest);
    let differs = promised.iter().chain(&measured).find(is_other);
    differs.map(|_| "Its checksum has changed.".to_owned())
}
