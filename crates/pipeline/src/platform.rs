//! What only the operating system can tell or do.

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
