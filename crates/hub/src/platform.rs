//! What differs between operating systems.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes that this user may still write to the disk that a folder is on.
#[cfg(unix)]
pub fn free_space(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path ends in a zero; `statvfs` fills the structure that it is
    // given, of which all zero bytes are a valid value.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut stat) == 0).then_some(stat)?
    };
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    Some((stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64))
}

/// Not known: a write that fails says so then.
#[cfg(not(unix))]
pub fn free_space(_: &Path) -> Option<u64> {
    None
}

/// Whether what is moved from one folder to the other need not be copied.
#[cfg(unix)]
pub fn same_disk(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let disk = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
    disk(a).is_some_and(|found| disk(b) == Some(found))
}

#[cfg(not(unix))]
pub fn same_disk(_: &Path, _: &Path) -> bool {
    false
}

/// Has a folder's entries outlast a power cut. Only Unix opens folders.
///
/// # Errors
///
/// Fails as the system's call does.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// A path as bytes that [`from_bytes`] reads again.
#[cfg(unix)]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}

/// The text that [`to_bytes`] made these of.
#[cfg(unix)]
pub fn from_bytes(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
pub fn from_bytes(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Has the system start the file as a program.
pub(crate) fn make_executable(path: &std::path::Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
    }
    #[cfg(not(unix))]
    path.metadata().map(drop)
}
