//! Tokens, by which a server that others can reach knows its clients. The file holds their hashes: whoever reads it
//! can't use it.

use std::io;
use std::path::{Path, PathBuf};

use config::folders::make_private;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use transcript::save::{Existing, write_file};
use wire::{ErrorCode, Failure};

/// What every token begins with, so that it is recognised where it was left by mistake.
const PREFIX: &str = "steno-";
/// Of randomness: it can't be guessed, so that one round of SHA-256 is enough.
const BYTES: usize = 32;
const MAX_NAME: usize = 64;

/// The tokens of this user's server.
#[derive(Debug, Clone)]
pub struct Tokens {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    name: String,
    /// SHA-256 of the token, in hexadecimal.
    hash: String,
}

impl Tokens {
    /// Those in the state folder `state`.
    pub fn of(state: &Path) -> Self {
        Self { path: crate::jobs::folder(state).join("tokens.json") }
    }

    /// Makes a token for a client that is called `name`. It is returned here and kept nowhere.
    ///
    /// # Errors
    /// Where the name can't be used or the file can't be read or written.
    pub fn create(&self, name: &str) -> Result<String, Failure> {
        let is_name =
            !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_graphic());
        if !is_name {
            let message = "The name of a token has 1 to 64 letters, digits and signs, without spaces.";
            return Err(Failure::new(ErrorCode::BadSettings, message));
        }
        let mut all = self.read()?;
        if all.iter().any(|token| token.name == name) {
            let message = format!("There is a token named {name} already.");
            return Err(Failure::new(ErrorCode::NameTaken, message)
                .remedy("Choose another name, or remove it first with --remove-token."));
        }
        let token = format!("{PREFIX}{}", random_hex::<BYTES>().map_err(|error| self.failure(&error))?);
        all.push(Stored { name: name.to_owned(), hash: hex(&hash(&token)) });
        self.write(&all)?;
        Ok(token)
    }

    /// Removes a token; a server that runs refuses it from then on.
    ///
    /// # Errors
    /// Where there is no such token or the file can't be read or written.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let mut all = self.read()?;
        let count = all.len();
        all.retain(|token| token.name != name);
        if all.len() == count {
            let names: Vec<&str> = all.iter().map(|token| token.name.as_str()).collect();
            let message = format!("There is no token named {name}. There are: {}.", names.join(", "));
            return Err(Failure::new(ErrorCode::BadSettings, message));
        }
        self.write(&all)
    }

    /// Whether there is one.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn any(&self) -> Result<bool, Failure> {
        Ok(!self.read()?.is_empty())
    }

    /// The name of the client that has this token. Takes the same time whichever of the stored tokens it is like, and
    /// however much.
    pub(crate) fn client(&self, token: &str) -> Option<String> {
        let presented = hex(&hash(token));
        let mut found = None;
        for stored in self.read().ok()? {
            if bool::from(is_same(&stored.hash, &presented)) {
                found = Some(stored.name);
            }
        }
        found
    }

    fn read(&self) -> Result<Vec<Stored>, Failure> {
        match std::fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| self.failure(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn write(&self, all: &[Stored]) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(all).map_err(|error| self.failure(&error))?;
        if let Some(folder) = self.path.parent() {
            make_private(folder).map_err(|error| self.failure(&error))?;
        }
        write_file(&self.path, Existing::Replace, |out| out.write_all(&json))
            .map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &dyn std::fmt::Display) -> Failure {
        let message = format!("The file of tokens can't be read or written ({error}).");
        Failure::new(ErrorCode::OutputUnwritable, message).file(self.path.as_path())
    }
}

/// Compares hashes in a time that does not depend on where they differ: the result's type is that of `subtle`, which
/// nothing but its comparisons makes.
fn is_same(stored: &str, presented: &str) -> Choice {
    stored.as_bytes().ct_eq(presented.as_bytes())
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So many random bytes of the system, in hexadecimal.
pub(crate) fn random_hex<const COUNT: usize>() -> io::Result<String> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measurement of time would show the file's reading, which takes a thousand times as long.
    #[test]
    fn a_wrong_token_is_compared_in_constant_time() {
        let compare: fn(&str, &str) -> Choice = is_same;
        let stored = hex(&hash("steno-right"));
        let (mut first, mut last) = (stored.clone().into_bytes(), stored.clone().into_bytes());
        first[0] ^= 1;
        *last.last_mut().unwrap() ^= 1;
        for (presented, same) in [(stored.as_bytes(), true), (&*first, false), (&*last, false), (b"", false)]
        {
            let presented = std::str::from_utf8(presented).unwrap();
            assert_eq!(compare(&stored, presented).unwrap_u8(), u8::from(same), "{presented}");
        }
    }

    #[test]
    fn a_token_is_known_until_it_is_removed_and_is_in_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        assert!(!tokens.any().unwrap());
        let (laptop, phone) = (tokens.create("laptop").unwrap(), tokens.create("phone").unwrap());
        assert_ne!(laptop, phone);
        assert_eq!(tokens.create("phone").unwrap_err().code, ErrorCode::NameTaken);
        assert_eq!(tokens.create("a b").unwrap_err().code, ErrorCode::BadSettings);
        let file = std::fs::read_to_string(&tokens.path).unwrap();
        assert!(!file.contains(&laptop) && file.contains("laptop"));
        for (token, expected) in
            [(&*laptop, Some("laptop")), (&*phone, Some("phone")), ("", None), ("steno-", None)]
        {
            assert_eq!(tokens.client(token).as_deref(), expected, "{token}");
        }
        tokens.remove("laptop").unwrap();
        assert_eq!(tokens.client(&laptop), None);
        assert!(tokens.remove("laptop").unwrap_err().message.contains("There are: phone."));
    }
}
