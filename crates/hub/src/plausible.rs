//! What a server can truthfully say of a model. Answers beyond it are refused by
//! name: a hub may be a mirror, a proxy or somebody's server.

use crate::Error;

/// Larger than any file that a hub takes (50 GB), with room for the future.
const LARGEST_FILE: u64 = 1 << 40;
/// The largest known, a tokenizer with its merges, has less than a third.
const LARGEST_JSON: u64 = 32 << 20;
/// Letters of a commit in git's form, which the hub has.
const COMMIT: usize = 40;

/// The most bytes that a file of this name can have.
pub(crate) fn most(name: &str) -> u64 {
    if name.ends_with(".json") { LARGEST_JSON } else { LARGEST_FILE }
}

/// Fails for a size that no file of this name has.
pub(crate) fn size(host: &str, name: &str, bytes: u64) -> Result<(), Error> {
    if bytes <= most(name) { Ok(()) } else { Err(too_large(host, name, Some(bytes))) }
}

/// Of a file that has more bytes than any of its name, `bytes` if the server says so.
pub(crate) fn too_large(host: &str, name: &str, bytes: Option<u64>) -> Error {
    let answer = match bytes {
        Some(bytes) => format!("a size of {bytes} bytes for {name}"),
        None => format!("more than {} bytes for {name}", most(name)),
    };
    Error::Implausible { host: host.into(), answer }
}

/// Fails for what is not the name of a commit: it becomes a part of addresses.
pub(crate) fn commit(host: &str, name: &str) -> Result<(), Error> {
    if name.len() == COMMIT && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    // Shown to the user: neither a page of text nor control characters.
    let shown: String = name.chars().take(2 * COMMIT).collect();
    Err(Error::Implausible { host: host.into(), answer: format!("a commit named {shown:?}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_commits() {
        for (name, bytes, plausible) in [
            ("model.safetensors", 3 << 30, true),
            ("model.safetensors", u64::MAX, false),
            ("config.json", 2_000, true),
            ("tokenizer.json", 12 << 20, true),
            ("model.safetensors.index.json", 3 << 30, false),
        ] {
            assert_eq!(size("hub", name, bytes).is_ok(), plausible, "{name} {bytes}");
        }
        for (name, plausible) in [
            ("41f01f3fe87f28c78e2fbf8b568835947dd65ed9", true),
            ("main", false),
            ("../../../../etc?x=", false),
            ("41f01f3fe87f28c78e2fbf8b568835947dd65ed9/..", false),
            ("", false),
        ] {
            assert_eq!(commit("hub", name).is_ok(), plausible, "{name}");
        }
    }
}
