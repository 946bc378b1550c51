//! What differs between operating systems.

#[cfg(unix)]
pub use unix::{end_at_decoding_limit, end_now, host, take_streams};

#[cfg(not(unix))]
pub use other::{end_at_decoding_limit, end_now, host, take_streams};

/// Has the kernel, when memory runs out, end the engine rather than the
/// window or another program of the user: an engine can be started again.
pub fn offer_self_to_the_out_of_memory_killer() {
    /// Of 1000. Above every ordinary program's 0, below what a user may have
    /// marked as expendable.
    const SCORE: i32 = 500;
    if cfg!(target_os = "linux") {
        let file = "/proc/self/oom_score_adj";
        let now = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<i32>().ok());
        if now.is_some_and(|now| now < SCORE) {
            // Where this isn't allowed, nothing else changes.
            let _ = std::fs::write(file, SCORE.to_string());
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, RawFd};

    /// Standard input and output for the conversation with the host, moved out
    /// of everyone else's reach: descriptor 0 becomes `/dev/null` and 1 becomes
    /// standard error, so that neither a stray print nor a program started
    /// from here takes part in it.
    ///
    /// # Errors
    /// Where a stream can't be duplicated.
    pub fn take_streams() -> io::Result<(File, File)> {
        let input = duplicate(libc::STDIN_FILENO)?;
        let output = duplicate(libc::STDOUT_FILENO)?;
        let nothing = OpenOptions::new().read(true).open("/dev/null")?;
        replace(libc::STDIN_FILENO, nothing.as_raw_fd())?;
        replace(libc::STDOUT_FILENO, libc::STDERR_FILENO)?;
        Ok((input, output))
    }

    /// A second descriptor, above the standard ones, closed in child processes.
    fn duplicate(descriptor: RawFd) -> io::Result<File> {
        // SAFETY: the call takes numbers only; the descriptor that it returns
        // belongs to no other process.
        unsafe {
            match libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) {
                -1 => Err(io::Error::last_os_error()),
                new => Ok(File::from_raw_fd(new)),
            }
        }
    }

    fn replace(descriptor: RawFd, by: RawFd) -> io::Result<()> {
        // SAFETY: the call takes numbers only.
        match unsafe { libc::dup2(by, descriptor) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// The process to which the engine answers.
    #[derive(Debug, Clone, Copy)]
    pub struct Host(u32);

    /// The process that started this one.
    pub fn host() -> Host {
        Host(std::os::unix::process::parent_id())
    }

    impl Host {
        /// Whether it is this process's parent still, and its first thread goes on.
        ///
        /// The kernel closes the pipes of a process that is killed, and gives
        /// its children another parent, when the *last* of its threads has
        /// ended. On a busy machine that takes seconds where one of them has
        /// the lowest priority, as the graphics driver's thread for its cache
        /// on disk has.
        pub fn lives(self) -> bool {
            std::os::unix::process::parent_id() == self.0 && !first_thread_ended(self.0)
        }
    }

    /// Known on Linux alone. Where `/proc` doesn't tell, it goes on.
    fn first_thread_ended(process: u32) -> bool {
        let Ok(status) = std::fs::read(format!("/proc/{process}/stat")) else { return false };
        // The kernel cuts the name after 15 bytes, which may be within a character.
        let status = String::from_utf8_lossy(&status);
        // "PID (NAME) STATE ...", where the name may have brackets too.
        status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use std::process::{Command, Stdio};
        use std::time::{Duration, Instant};

        use super::*;

        #[test]
        fn a_process_that_nothing_waits_for_has_ended() {
            assert!(!first_thread_ended(std::process::id()));
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            assert!(!first_thread_ended(child.id()));
            drop(child.stdin.take());
            let start = Instant::now();
            while !first_thread_ended(child.id()) {
                assert!(start.elapsed() < Duration::from_secs(30), "it goes on");
                std::thread::sleep(Duration::from_millis(5));
            }
            child.wait().unwrap();
        }
    }

    /// Called by the allocator, so it allocates nothing.
    pub fn end_at_decoding_limit() -> ! {
        let text = b"steno-engine: decoding this file asks for more memory than any recording needs\n";
        // SAFETY: the bytes are there for as long as the call.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        end_now(wire::exit_status::DECODING_LIMIT)
    }

    /// Ends the process at once: no destructors and no exit handlers, which
    /// may wait for a device that another thread still uses. Programs started
    /// from here end too where the host made this process the leader of a
    /// group; elsewhere they see their pipe close.
    pub fn end_now(status: i32) -> ! {
        // SAFETY: none of these calls touches memory of ours, but for `waitid`,
        // which fills the structure it is given.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let has_children = libc::waitid(libc::P_ALL, 0, &mut info, flags) == 0;
            if has_children && libc::getpgrp() == libc::getpid() {
                libc::kill(0, libc::SIGKILL);
            }
            libc::_exit(status)
        }
    }
}

/// No redirection, and nothing is known of the parent: the end of standard
/// input alone tells that the host is gone.
#[cfg(not(unix))]
mod other {
    use std::io::{self, Stdin, Stdout};

    pub fn take_streams() -> io::Result<(Stdin, Stdout)> {
        Ok((io::stdin(), io::stdout()))
    }

    pub struct Host;

    pub fn host() -> Host {
        Host
    }

    impl Host {
        pub fn lives(&self) -> bool {
            true
        }
    }

    pub fn end_now(status: i32) -> ! {
        std::process::exit(status)
    }

    pub fn end_at_decoding_limit() -> ! {
        std::process::exit(wire::exit_status::DECODING_LIMIT)
    }
}
