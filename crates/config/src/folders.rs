//! Where a user's files belong on this operating system.

use std::path::PathBuf;

/// Where a user's own folders lie.
pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where a user's programs keep what the user installed for them.
pub fn data() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return variable("LOCALAPPDATA");
    }
    // The specification has relative values ignored.
    variable("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(|| {
        let home = variable("HOME")?;
        Some(if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            home.join(".local/share")
        })
    })
}

/// Where a user's programs keep what they could make anew.
pub fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return variable("LOCALAPPDATA");
    }
    variable("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| {
        let home = variable("HOME")?;
        Some(home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }))
    })
}

/// Where a user's programs keep their settings.
pub fn config() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return variable("APPDATA");
    }
    variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| {
        let home = variable("HOME")?;
        Some(home.join(if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" }))
    })
}

/// Where a user's programs keep what is of use from one start to the next and
/// can be lost without harm: logs above all.
pub fn state() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(any(windows, target_os = "macos")) {
        return data();
    }
    variable("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(variable("HOME")?.join(".local/state")))
}

/// Where a user's programs keep what is true only while they run.
pub fn runtime() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    folder.filter(|path| path.is_absolute())
}

/// Makes a folder, and those that it lies in, for this user alone.
///
/// # Errors
/// Those of the file system.
pub fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// `STENO_STATE_FOLDER`, else the one that this system has for such files.
/// `None` where it has no place for them.
pub fn steno_state() -> Option<PathBuf> {
    named_state().or_else(|| state().map(|folder| folder.join("steno")))
}

/// The folder that `STENO_STATE_FOLDER` names, if any.
pub fn named_state() -> Option<PathBuf> {
    std::env::var_os("STENO_STATE_FOLDER").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}
