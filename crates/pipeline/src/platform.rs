//! What only the operating system can tell or do.

/// glibc raises its threshold for returning large blocks after the first one
/// is freed, and from then on keeps freed tensors; fixed, they go back.
pub fn keep_freed_memory_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Buffers reused from step to step stay below it; layers' buffers lie above.
        const THRESHOLD: i32 = 32 << 20;
        // SAFETY: mallopt only sets a number of the allocator.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * THRESHOLD);
        }
    }
}

/// Gives freed memory back to the system.
pub fn trim_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Largest resident memory of this process so far, in bytes.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status, "VmHWM:")
}

/// (total, available) memory of the machine, in bytes.
pub fn machine_memory() -> (Option<u64>, Option<u64>) {
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return (None, None) };
    (kilobytes(&info, "MemTotal:"), kilobytes(&info, "MemAvailable:"))
}

pub fn processor_name() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}
