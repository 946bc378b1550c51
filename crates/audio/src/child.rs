//! Child processes that end with this one.

use std::io;
use std::process::{Child, Command};

/// Starts a program that the kernel kills when this process ends, in whatever way. Only Linux can
/// do that; elsewhere the program ends when it next writes to its closed pipe.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    #[cfg(target_os = "linux")]
    {
        linux::spawn(command)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let mut command = command;
        command.spawn()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::sync::OnceLock;
    use std::sync::mpsc::{Sender, channel};

    type Order = (Command, Sender<io::Result<Child>>);

    /// Starts the program from a thread that lives as long as this process: the kernel sends the
    /// signal when the thread that started a child ends.
    pub(super) fn spawn(command: Command) -> io::Result<Child> {
        static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
        let orders = ORDERS.get_or_init(|| {
            let (sender, orders) = channel::<Order>();
            std::thread::spawn(move || {
                for (command, answer) in orders {
                    // Without a receiver the child is dropped, and ends at its closed pipes.
                    let _ = answer.send(start(command));
                }
            });
            sender
        });
        let gone = || io::Error::other("the thread that starts programs ended");
        let (answer, child) = channel();
        orders.send((command, answer)).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }

    fn start(mut command: Command) -> io::Result<Child> {
        let parent = std::process::id();
        let die_with_parent = move || {
            // SAFETY: both calls take plain numbers and may be made between fork and exec.
            let (set, parent_now) =
                unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
            if set != 0 {
                return Err(io::Error::last_os_error());
            }
            // It ended before the signal was asked for.
            if parent_now as u32 != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(die_with_parent) };
        command.spawn()
    }
}
