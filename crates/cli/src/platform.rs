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

/// What this machine is called.
#[cfg(unix)]
pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the call writes at most as many bytes as it is told, the last of which stays 0.
    let answered = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } == 0;
    let text: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&text).into_owned();
    if answered && !text.is_empty() { text } else { "worker".into() }
}

#[cfg(not(unix))]
pub fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".into())
}
