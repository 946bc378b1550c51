//! Lists of words to expect, as text files that people write and send to each other: a word or phrase per line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use wire::{ErrorCode, Failure};

/// More would be a mistake: no list of words to expect is that long.
const MOST_BYTES: u64 = 1 << 20;

/// The words of a list, one per line, in its order; empty lines are none.
///
/// # Errors
/// `FileUnreadable` for what is no text in UTF-8, larger than a megabyte, or can't be read.
pub fn read_word_list(file: &Path) -> Result<Vec<String>, Failure> {
    let refused = |reason: &str| {
        let message = format!("The list of words can't be read: {reason}.");
        Failure::new(ErrorCode::FileUnreadable, message)
            .file(file)
            .remedy("Give a text file in UTF-8 with a word or phrase per line.")
    };
    let opened = File::open(file).map_err(|error| refused(&error.to_string()))?;
    let mut bytes = Vec::new();
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused("it is larger than a megabyte"));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("it is no text in UTF-8"))?;
    let words = text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|word| !word.is_empty());
    Ok(words.map(str::to_owned).collect())
}

/// A list of these words.
pub fn word_list(words: &[String]) -> String {
    words.iter().map(|word| format!("{word}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.txt");
        let words = ["Ada Lovelace", "naproxen", "東京"].map(str::to_owned).to_vec();
        std::fs::write(&file, word_list(&words)).unwrap();
        assert_eq!(read_word_list(&file).unwrap(), words);
        // As other systems' editors write it.
        std::fs::write(&file, "\u{feff}Ada Lovelace\r\n\r\n  naproxen \r\n東京").unwrap();
        assert_eq!(read_word_list(&file).unwrap(), words);
    }

    #[test]
    fn what_is_no_list_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.txt");
        for (bytes, reason) in [
            (vec![b'a'; MOST_BYTES as usize + 1], "larger than a megabyte"),
            (vec![0xff, 0xfe, 0], "no text in UTF-8"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let failure = read_word_list(&file).unwrap_err().to_string();
            assert!(failure.contains(reason) && failure.contains("words.txt"), "{failure}");
        }
        assert!(read_word_list(folder.path()).is_err());
        assert!(read_word_list(&folder.path().join("none.txt")).is_err());
    }
}
