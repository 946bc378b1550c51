//! What differs between operating systems.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

/// Where a user's programs keep what the user installed for them.
pub fn data_folder() -> Option<PathBuf> {
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

/// Where a user's programs keep their settings.
pub fn config_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return variable("APPDATA");
    }
    variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| {
        let home = variable("HOME")?;
        Some(home.join(if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" }))
    })
}

/// Has the child lead a process group of its own: what it starts can then be
/// ended with it, and a terminal's interrupt reaches the host alone, which
/// cancels in good order.
pub fn lead_own_group(program: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(program, 0);
    #[cfg(windows)]
    {
        /// No console window flashes up beside the window.
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        std::os::windows::process::CommandExt::creation_flags(program, CREATE_NO_WINDOW);
    }
    #[cfg(not(any(unix, windows)))]
    let _ = program;
}

/// Kills the child and, where there are groups, whatever else is in its group.
/// To be called before the child is collected.
pub fn kill_group(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(id) = libc::pid_t::try_from(child.id())
        && wait_id(child) != Wait::Collected
    {
        // SAFETY: the call takes numbers only.
        unsafe { libc::kill(-id, libc::SIGKILL) };
    }
    // Without effect on a child that was collected.
    let _ = child.kill();
}

/// Whether the child ended. On Unix it is left to be collected, so that its
/// number stays its own.
pub fn has_ended(child: &mut Child) -> bool {
    #[cfg(unix)]
    {
        wait_id(child) != Wait::Runs
    }
    #[cfg(not(unix))]
    {
        !matches!(child.try_wait(), Ok(None))
    }
}

#[cfg(unix)]
#[derive(PartialEq, Eq)]
enum Wait {
    Runs,
    Ended,
    /// By us or, where the host ignores `SIGCHLD`, by the kernel.
    Collected,
}

#[cfg(unix)]
fn wait_id(child: &Child) -> Wait {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `waitid` fills the structure that it is given and nothing else;
    // all zero bytes are a valid value of it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_PID, child.id() as libc::id_t, &mut info, flags) {
            0 if info.si_pid() == 0 => Wait::Runs,
            0 => Wait::Ended,
            _ => Wait::Collected,
        }
    }
}

/// How a process ended, to follow "it".
pub fn describe_status(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            libc::SIGKILL => "SIGKILL, often a sign that the machine ran out of memory",
            libc::SIGSEGV => "SIGSEGV, a fault in native code",
            libc::SIGABRT => "SIGABRT, often a failed allocation",
            libc::SIGILL => "SIGILL, an instruction that this processor lacks",
            libc::SIGBUS => "SIGBUS, often a file that shrank while it was read",
            libc::SIGTERM => "SIGTERM",
            _ => return format!("was ended by signal {signal}"),
        };
        return format!("was ended by signal {signal} ({name})");
    }
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        None => "exited".into(),
    }
}

/// Whether the NVIDIA driver's library can be loaded.
pub fn has_cuda_driver() -> bool {
    #[cfg(unix)]
    {
        // SAFETY: the name is a C string. Loading runs the library's
        // initialisers, which any program with CUDA does; the handle is closed
        // again and nothing of the library is used.
        unsafe {
            let handle = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
            if handle.is_null() {
                return false;
            }
            libc::dlclose(handle);
            true
        }
    }
    #[cfg(not(unix))]
    {
        let root = std::env::var_os("SystemRoot").map(PathBuf::from);
        root.is_some_and(|root| root.join("System32/nvcuda.dll").is_file())
    }
}
