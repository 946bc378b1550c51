//! What differs between operating systems: this process's resident memory, the
//! machine's memory, control groups, and the C library's allocator.

use std::path::{Path, PathBuf};

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Not backed by a file: heap, stacks, private copies. What counts against
    /// a limit and what comes back when it is freed.
    pub anonymous: u64,
    /// Pages of mapped files (weights, libraries); the system drops them by
    /// itself when memory is short.
    pub file: u64,
}

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// What is installed.
    pub total: u64,
    /// Can be had without swapping, caches that may be dropped included.
    pub available: u64,
}

/// A control group with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    limit: u64,
    usage_file: PathBuf,
    stat_file: PathBuf,
    /// Key of the pages in `stat_file` that are dropped under pressure.
    cache_key: &'static str,
}

impl Group {
    /// Bytes that may be used in this group.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use by all processes of the group, without cached file pages
    /// that go when they are needed.
    pub fn used(&self) -> Option<u64> {
        let usage = read_number(&self.usage_file)?;
        let stat = std::fs::read_to_string(&self.stat_file).unwrap_or_default();
        let cache = field(&stat, self.cache_key).unwrap_or(0);
        Some(usage.saturating_sub(cache))
    }
}

/// Finds the tightest memory limit over a process: `listing` is the text of
/// `/proc/PID/cgroup`, `root` where control groups are mounted
/// (`/sys/fs/cgroup`). Both versions; a limit on any parent group counts.
///
/// In a container the paths of the listing often don't exist below `root`: the
/// container's own group is mounted as the root itself. Then the root is asked.
pub fn tightest_group(listing: &str, root: &Path) -> Option<Group> {
    let mut found: Vec<Group> = Vec::new();
    for line in listing.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let version_1 = controllers.split(',').any(|controller| controller == "memory");
        if !version_1 && !controllers.is_empty() {
            continue;
        }
        let base = if version_1 { root.join("memory") } else { root.to_owned() };
        let names = if version_1 {
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        } else {
            ("memory.max", "memory.current", "inactive_file")
        };
        let mut folder = base.join(path.trim_start_matches('/'));
        while folder.starts_with(&base) {
            // "max" (version 2) is no number: no limit.
            if let Some(limit) = read_number(&folder.join(names.0)) {
                found.push(Group {
                    limit,
                    usage_file: folder.join(names.1),
                    stat_file: folder.join("memory.stat"),
                    cache_key: names.2,
                });
            }
            if !folder.pop() {
                break;
            }
        }
    }
    found.into_iter().min_by_key(|group| group.limit)
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after `key` at the start of a line, in the unit of the file.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    })
}

/// `RssAnon` and `RssFile` of the text of `/proc/PID/status`.
///
/// These are the kernel's running counters: a microsecond to read, where
/// `smaps_rollup` walks all pages, which takes tens of milliseconds in a large
/// process.
pub fn parse_status(status: &str) -> Option<Resident> {
    let kilobytes = |key| field(status, key).map(|kb| kb * 1024);
    Some(Resident { anonymous: kilobytes("RssAnon")?, file: kilobytes("RssFile").unwrap_or(0) })
}

/// Pages of anonymous memory from the text of `/proc/PID/statm`: all that are
/// resident less those of files and of shared memory. `None` for a process that
/// has ended and waits to be asked for its status: it has no page at all.
pub fn parse_statm(text: &str) -> Option<u64> {
    let mut counts = text.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (counts.next()?.ok()?, counts.next()?.ok()?);
    (resident > 0).then(|| resident.saturating_sub(shared))
}

/// `MemTotal` and `MemAvailable` of the text of `/proc/meminfo`.
pub fn parse_meminfo(text: &str) -> Option<Machine> {
    let kilobytes = |key| field(text, key).map(|kb| kb * 1024);
    Some(Machine { total: kilobytes("MemTotal")?, available: kilobytes("MemAvailable")? })
}

/// `VmHWM` of the text of `/proc/PID/status`, in bytes.
pub fn parse_peak(status: &str) -> Option<u64> {
    field(status, "VmHWM").map(|kb| kb * 1024)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;

    /// `None`: this process.
    /// Resident memory of a process; `None` for the pid: of this one.
    pub fn resident(pid: Option<u32>) -> Option<Resident> {
        let path = match pid {
            Some(pid) => format!("/proc/{pid}/status"),
            None => "/proc/self/status".to_owned(),
        };
        parse_status(&std::fs::read_to_string(path).ok()?)
    }

    /// Anonymous resident memory of a process, for frequent readings: reads one line
    /// of a file that stays open, in a fifteenth of [`resident`]'s time.
    #[derive(Debug)]
    pub struct Anonymous(std::fs::File);

    impl Anonymous {
        /// `None`: this process.
        pub fn of(pid: Option<u32>) -> Option<Self> {
            let pid = pid.unwrap_or_else(std::process::id);
            Some(Self(std::fs::File::open(format!("/proc/{pid}/statm")).ok()?))
        }

        /// Bytes; `None` once the process has ended.
        pub fn read(&self) -> Option<u64> {
            use std::os::unix::fs::FileExt;
            let mut text = [0; 128];
            let length = self.0.read_at(&mut text, 0).ok()?;
            // SAFETY: asks for a number of the system.
            let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
            Some(parse_statm(std::str::from_utf8(&text[..length]).ok()?)? * page)
        }
    }

    /// Highest resident memory of a process, files' pages included, since its
    /// start or [`reset_peak_resident`].
    pub fn peak_resident(pid: u32) -> Option<u64> {
        parse_peak(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    /// Starts a new count of [`peak_resident`]: `proc(5)`, `clear_refs`.
    ///
    /// # Errors
    ///
    /// Fails where the process has ended or belongs to another user.
    pub fn reset_peak_resident(pid: u32) -> std::io::Result<()> {
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
    }

    /// Memory of this machine; `None` where the system does not say.
    pub fn machine() -> Option<Machine> {
        parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
    }

    /// The tightest control group over this process, where one has a limit.
    pub fn group() -> Option<Group> {
        let listing = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        tightest_group(&listing, Path::new("/sys/fs/cgroup"))
    }

    /// Name of a process's executable; `None` where it has ended.
    pub fn process_name(pid: u32) -> Option<String> {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(name.trim().to_owned())
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "documented in the module of the same name above")]
mod system {
    use super::*;

    pub fn resident(_: Option<u32>) -> Option<Resident> {
        None
    }

    #[derive(Debug)]
    pub struct Anonymous;

    impl Anonymous {
        pub fn of(_: Option<u32>) -> Option<Self> {
            None
        }

        pub fn read(&self) -> Option<u64> {
            None
        }
    }

    pub fn peak_resident(_: u32) -> Option<u64> {
        None
    }

    pub fn reset_peak_resident(_: u32) -> std::io::Result<()> {
        Err(std::io::Error::other("this system does not count it"))
    }

    pub fn machine() -> Option<Machine> {
        None
    }

    pub fn group() -> Option<Group> {
        None
    }

    pub fn process_name(_: u32) -> Option<String> {
        None
    }
}

pub use system::{Anonymous, group, machine, peak_resident, process_name, reset_peak_resident, resident};

/// How the C library keeps and gives back memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorSettings {
    /// Blocks from this size on are mapped on their own and go back to the
    /// system when they are freed. Bytes.
    pub mmap_threshold: usize,
    /// Free memory at the top of the heap from which on it goes back without
    /// being asked. Bytes.
    pub trim_threshold: usize,
    /// Heaps that threads allocate from.
    pub arenas: usize,
}

impl Default for AllocatorSettings {
    /// glibc raises its threshold by itself whenever a mapped block is freed,
    /// so that what a stage freed stays reserved; a fixed one prevents
    /// that. It is high because fresh pages are dear: activations come from
    /// the heap and are used again layer after layer, and the trim at the end
    /// of a stage gives them back. 32 MiB is the highest that glibc takes.
    ///
    /// One arena, since those of other threads consist of pieces of 64 MiB
    /// that large tensors fill badly: with whisper-small and five beams the
    /// engine took 1257 MB with an arena per thread and 1225 MB with one, in no
    /// more time.
    fn default() -> Self {
        Self { mmap_threshold: 32 << 20, trim_threshold: 64 << 20, arenas: 1 }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::AllocatorSettings;

    /// The thresholds in force, 0 while the C library chooses for itself.
    static TRIM_THRESHOLD: AtomicUsize = AtomicUsize::new(0);
    static MMAP_THRESHOLD: AtomicUsize = AtomicUsize::new(0);

    /// Fixes the allocator's thresholds for the life of the process; call it
    /// first thing in `main`. Returns whether the C library took them.
    pub fn fix_allocator(settings: AllocatorSettings) -> bool {
        let mapped = set(libc::M_MMAP_THRESHOLD, settings.mmap_threshold);
        let trimmed = set(libc::M_TRIM_THRESHOLD, settings.trim_threshold);
        let shared = set(libc::M_ARENA_MAX, settings.arenas);
        if trimmed {
            TRIM_THRESHOLD.store(settings.trim_threshold, Ordering::Relaxed);
        }
        if mapped {
            MMAP_THRESHOLD.store(settings.mmap_threshold, Ordering::Relaxed);
        }
        mapped && trimmed && shared
    }

    /// While weights are loaded every tensor is mapped on its own. As it is
    /// read, widened and dropped again, each would otherwise leave a hole in
    /// the heap that the next does not fill: with whisper-large-v3-turbo the
    /// engine's peak was 3503 MB so and is 3282 MB this way.
    pub fn set_loading(loading: bool) {
        /// Biases and norms stay on the heap.
        const WHILE_LOADING: usize = 256 << 10;
        let working = MMAP_THRESHOLD.load(Ordering::Relaxed);
        if working > 0 {
            set(libc::M_MMAP_THRESHOLD, if loading { WHILE_LOADING.min(working) } else { working });
        }
    }

    fn set(parameter: libc::c_int, value: usize) -> bool {
        let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
        // SAFETY: mallopt takes two integers and locks what it changes.
        unsafe { libc::mallopt(parameter, value) == 1 }
    }

    /// Gives every free page of every arena back to the system.
    ///
    /// `malloc_trim` leaves the topmost block of a thread's own arena alone:
    /// up to the trim threshold. That goes back when something is freed there
    /// while the threshold is nil.
    pub fn trim_allocator() {
        let threshold = TRIM_THRESHOLD.load(Ordering::Relaxed);
        if threshold > 0 {
            /// From 64 KiB on a freed block makes the library look at the top.
            const PROBE: usize = 128 << 10;
            set(libc::M_TRIM_THRESHOLD, 0);
            // SAFETY: a block is allocated and freed; the allocator takes null too.
            unsafe { libc::free(std::hint::black_box(libc::malloc(PROBE))) };
            set(libc::M_TRIM_THRESHOLD, threshold);
        }
        // SAFETY: malloc_trim locks each arena while it works on it.
        unsafe { libc::malloc_trim(0) };
    }

    /// Bytes in blocks that are in use, resident or not.
    pub fn in_use() -> Option<u64> {
        // SAFETY: mallinfo2 takes no argument and returns figures by value.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "documented in the module of the same name above")]
mod allocator {
    use super::AllocatorSettings;

    /// Other C libraries have nothing of the kind.
    pub fn fix_allocator(_: AllocatorSettings) -> bool {
        false
    }

    pub fn trim_allocator() {}

    pub fn set_loading(_: bool) {}

    pub fn in_use() -> Option<u64> {
        None
    }
}

pub use allocator::{fix_allocator, in_use, set_loading, trim_allocator};

/// The signal that ended a process, on systems that have signals.
#[cfg(unix)]
pub fn signal_of(status: std::process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// There are no signals here.
#[cfg(not(unix))]
pub fn signal_of(_: std::process::ExitStatus) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_over_a_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        // Version 2: a limit on the parent, none on the group itself.
        put("memory.current", "900\n");
        put("a/memory.max", "5000\n");
        put("a/memory.current", "1200\n");
        put("a/memory.stat", "anon 1000\ninactive_file 200\nactive_file 7\n");
        put("a/b/memory.max", "max\n");
        // Version 1, in its own tree.
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/c/memory.limit_in_bytes", "3000\n");
        put("memory/c/memory.usage_in_bytes", "700\n");
        put("memory/c/memory.stat", "inactive_file 9\ntotal_inactive_file 100\n");
        // Version 2 mounted as a container sees it: the limit is at the root.
        put("boxed/memory.max", "2000\n");
        put("boxed/memory.current", "300\n");

        let boxed = root.path().join("boxed");
        type Expected = Option<(u64, Option<u64>)>;
        let cases: [(&str, &Path, Expected); 7] = [
            ("0::/a/b\n", root.path(), Some((5000, Some(1000)))),
            ("0::/\n", root.path(), None),
            ("9:name=systemd:/\n4:memory:/c\n1:cpu:/a\n", root.path(), Some((3000, Some(600)))),
            ("4:cpuacct,memory:/c/gone\n0::/\n", root.path(), Some((3000, Some(600)))),
            ("0::/docker/12345\n", &boxed, Some((2000, Some(300)))),
            ("", root.path(), None),
            ("garbage\n", root.path(), None),
        ];
        for (listing, root, expected) in cases {
            let group = tightest_group(listing, root);
            assert_eq!(group.map(|group| (group.limit(), group.used())), expected, "{listing:?}");
        }
    }

    #[test]
    fn the_kernels_figures_are_read() {
        let status = "Name:\tx\nVmRSS:\t    1632 kB\nRssAnon:\t     116 kB\nRssFile:\t    1516 kB\nRssShmem:\t       0 kB\n";
        let expected = Resident { anonymous: 116 * 1024, file: 1516 * 1024 };
        assert_eq!(parse_status(status), Some(expected));
        assert_eq!(parse_peak("VmHWM:\t    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(parse_status("Name:\tkthreadd\n"), None);
        assert_eq!(parse_statm("70000 5000 1200 30 0 9000 0\n"), Some(3800));
        assert_eq!(parse_statm("0 0 0 0 0 0 0\n"), None);
        assert_eq!(parse_statm("70000"), None);
        let meminfo = "MemTotal:       24000 kB\nMemFree:         100 kB\nMemAvailable:   16000 kB\n";
        assert_eq!(parse_meminfo(meminfo), Some(Machine { total: 24000 * 1024, available: 16000 * 1024 }));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn both_ways_to_ask_see_what_a_process_takes() {
        // In a process of its own: the tests beside this one take and release memory as well.
        const ALONE: &str = "STENO_TEST_MEASURES_ITSELF";
        if std::env::var_os(ALONE).is_none() {
            let alone = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "platform::tests::both_ways_to_ask_see_what_a_process_takes"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&alone.stdout);
            assert!(alone.status.success() && output.contains("1 passed"), "{output}");
            return;
        }

        let pid = Some(std::process::id());
        let often = Anonymous::of(pid).unwrap();
        let figures = || (resident(pid).unwrap().anonymous, often.read().unwrap());
        let before = figures();
        let taken = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = figures();
        for grown in [after.0 - before.0, after.1 - before.1] {
            assert!((60 << 20..80 << 20).contains(&grown), "{grown} bytes of {}", taken.len());
        }

        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = Anonymous::of(Some(child.id())).unwrap();
        assert!(of_child.read().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of_child.read(), None);
    }
}
