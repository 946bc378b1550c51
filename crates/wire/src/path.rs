use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that survives the trip whatever bytes it holds: a string where it
/// is UTF-8, else its raw bytes (Unix) or UTF-16 units (Windows).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePath(pub PathBuf);

impl FilePath {
    /// The path itself, for functions of the standard library.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl<P: Into<PathBuf>> From<P> for FilePath {
    fn from(path: P) -> Self {
        Self(path.into())
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// A path for people to read. A name may hold line breaks, what a terminal obeys, and marks
/// that turn the direction of text, by which a name passes for another: they become `�`.
pub fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Text of one line without what a terminal obeys and without marks that turn its
/// direction.
pub fn printable(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if breaks(c) || turns(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Encoded {
    Text(String),
    Raw { raw: Vec<u16> },
}

impl Serialize for FilePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => Encoded::Text(text.into()),
            None => Encoded::Raw { raw: to_units(self.0.as_os_str()) },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Encoded::deserialize(deserializer)? {
            Encoded::Text(text) => text.into(),
            Encoded::Raw { raw } => from_units(&raw).into(),
        }))
    }
}

#[cfg(unix)]
fn to_units(text: &std::ffi::OsStr) -> Vec<u16> {
    use std::os::unix::ffi::OsStrExt;
    text.as_bytes().iter().map(|byte| u16::from(*byte)).collect()
}

#[cfg(unix)]
fn from_units(units: &[u16]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(units.iter().map(|unit| *unit as u8).collect())
}

#[cfg(windows)]
fn to_units(text: &std::ffi::OsStr) -> Vec<u16> {
    use std::os::windows::ffi::OsStrExt;
    text.encode_wide().collect()
}

#[cfg(windows)]
fn from_units(units: &[u16]) -> OsString {
    use std::os::windows::ffi::OsStringExt;
    OsString::from_wide(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_and_reads_as_it_is() {
        for (name, expected) in [
            ("talk.mp3", "talk.mp3"),
            ("naïve – 日本 مرحبا.mp3", "naïve – 日本 مرحبا.mp3"),
            ("a\nsteno: all is well\r", "a\u{fffd}steno: all is well\u{fffd}"),
            ("a\u{1b}[2J", "a\u{fffd}[2J"),
            ("invoice\u{202e}3pm.exe", "invoice\u{fffd}3pm.exe"),
            ("\u{2066}a\u{2069}\u{2028}", "\u{fffd}a\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(FilePath::from(name).to_string(), expected);
        }
    }
}
