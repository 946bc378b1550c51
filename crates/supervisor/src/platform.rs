//! What differs between operating systems.

use std::process::{Child, Command, ExitStatus};

use config::Priority;

/// As `nice` adds without a number: a tenth of the share that others get.
#[cfg(unix)]
const LOW_PRIORITY: libc::c_int = 10;

/// Has the child lead a process group of its own: what it starts can then be
/// ended with it, and a terminal's interrupt reaches the host alone, which
/// cancels in good order. At low priority it gets what other programs leave of
/// the processor.
pub fn lead_own_group(program: &mut Command, priority: Priority) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(program, 0);
    #[cfg(unix)]
    if priority == Priority::Low {
        // SAFETY: between fork and exec only this system call is made. Where it
        // fails, the child computes at the usual priority.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(program, || {
                libc::setpriority(libc::PRIO_PROCESS, 0, LOW_PRIORITY);
                Ok(())
            });
        }
    }
    #[cfg(windows)]
    {
        /// No console window flashes up beside the window.
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        const BELOW_NORMAL_PRIORITY_CLASS: u32 = 0x0000_4000;
        let class = if priority == Priority::Low { BELOW_NORMAL_PRIORITY_CLASS } else { 0 };
        std::os::windows::process::CommandExt::creation_flags(program, CREATE_NO_WINDOW | class);
    }
    #[cfg(not(any(unix, windows)))]
    let _ = (program, priority);
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
            libc::SIGKILL => "SIGKILL",
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

/// When a process started, in a form that is to be compared and nothing else;
/// `None` where there is no such process, or where it ended and is only waiting
/// to be collected.
#[cfg(target_os = "linux")]
pub fn started_at(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything, brackets too.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // `proc(5)`: the third field is the state, the 22nd the start in ticks
    // since boot, so that the boot has to be named as well.
    let state = fields.next()?;
    let ticks = fields.nth(18)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    (!matches!(state, "Z" | "X")).then(|| format!("{}/{ticks}", boot.trim()))
}

#[cfg(not(target_os = "linux"))]
pub fn started_at(_: u32) -> Option<String> {
    None
}

/// Whether [`started_at`] can tell processes apart on this system.
pub const KNOWS_STARTS: bool = cfg!(target_os = "linux");

/// Asks a process to end.
pub fn ask_to_end(pid: u32) -> std::io::Result<()> {
    signal(pid, false)
}

/// Ends a process that leads a group, and the group with it.
pub fn kill_leader(pid: u32) -> std::io::Result<()> {
    signal(pid, true)
}

#[cfg(unix)]
fn signal(pid: u32, by_force: bool) -> std::io::Result<()> {
    let id = libc::pid_t::try_from(pid).map_err(std::io::Error::other)?;
    // 0 and 1 would mean whole groups and the first process of all.
    if id <= 1 {
        return Err(std::io::Error::other("this is no process of a program"));
    }
    // SAFETY: the calls take numbers only.
    let result = unsafe {
        match by_force {
            false => libc::kill(id, libc::SIGTERM),
            true => libc::kill(-id, libc::SIGKILL).min(libc::kill(id, libc::SIGKILL)),
        }
    };
    let error = std::io::Error::last_os_error();
    // That it is gone already is what was wanted.
    if result == 0 || error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
}

#[cfg(not(unix))]
fn signal(_: u32, _: bool) -> std::io::Result<()> {
    Err(std::io::Error::other("this system has no signals"))
}
