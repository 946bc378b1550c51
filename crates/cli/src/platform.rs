//! What only the operating system can tell.

/// Columns of the terminal that standard error is, if it is one.
#[cfg(unix)]
pub fn terminal_width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills the winsize that it is given and keeps no pointer to it.
    let answered = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) } == 0;
    (answered && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
pub fn terminal_width() -> Option<usize> {
    None
}

/// Whether this process was started with the signal ignored.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: a null action changes nothing; the old one is written to a value
    // that is all zeroes, which is a valid sigaction.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether the path names our own standard input, under any of its names. The
/// engine, a process of its own, would read another one under that name.
pub fn is_standard_input(path: &std::path::Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == std::path::Path::new(name))
}
