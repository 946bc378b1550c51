//! Whether the machine was short of memory when a process was killed: tells the kernel's
//! out-of-memory killer from a person, a container or a service manager that ended it.

use std::path::Path;

/// Below this share of free memory, programs that look after a machine (systemd-oomd,
/// earlyoom) kill before the kernel does.
const LOW: f64 = 0.1;

/// A look at the system's own account of memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shortage {
    /// Processes of this control group that were killed for lack of memory.
    pub killed_in_group: Option<u64>,
    /// Processes of the machine that were.
    pub killed: Option<u64>,
    /// Least free share, 0 to 1, of the machine and the control group.
    pub free: Option<f64>,
}

impl Shortage {
    /// As it is now; takes a few reads below /proc and /sys.
    pub fn now() -> Self {
        Self {
            killed_in_group: counts::of_group(),
            killed: counts::of_machine(),
            free: [machine_free(), group_free()].into_iter().flatten().reduce(f64::min),
        }
    }

    /// Whether a SIGKILL between this look and the `later` one was for lack of memory.
    pub fn explains_kill(self, later: Self) -> bool {
        let rose = |before: Option<u64>, after: Option<u64>| before.zip(after).is_some_and(|(b, a)| a > b);
        rose(self.killed_in_group, later.killed_in_group)
            || rose(self.killed, later.killed)
            || self.free.is_some_and(|free| free < LOW)
    }
}

fn machine_free() -> Option<f64> {
    let machine = crate::platform::machine()?;
    (machine.total > 0).then(|| machine.available as f64 / machine.total as f64)
}

fn group_free() -> Option<f64> {
    let group = crate::platform::group()?;
    let (used, limit) = (group.used()?, group.limit());
    (limit > 0).then(|| limit.saturating_sub(used) as f64 / limit as f64)
}

/// The counter `oom_kill` of the text of `memory.events`, `memory.oom_control` or
/// `/proc/vmstat`.
pub fn parse_kills(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// That counter of the group in a listing (`/proc/PID/cgroup`), mounted below `root`. In a
/// container the group itself is often mounted as the root.
pub fn kills_of_group(listing: &str, root: &Path) -> Option<u64> {
    listing.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (base, file) = match controllers {
            "" => (root.to_owned(), "memory.events"),
            of if of.split(',').any(|one| one == "memory") => (root.join("memory"), "memory.oom_control"),
            _ => return None,
        };
        let read = |folder: &Path| parse_kills(&std::fs::read_to_string(folder.join(file)).ok()?);
        read(&base.join(path)).or_else(|| read(&base))
    })
}

#[cfg(target_os = "linux")]
mod counts {
    use std::fs::read_to_string;

    pub fn of_group() -> Option<u64> {
        super::kills_of_group(&read_to_string("/proc/self/cgroup").ok()?, "/sys/fs/cgroup".as_ref())
    }

    pub fn of_machine() -> Option<u64> {
        super::parse_kills(&read_to_string("/proc/vmstat").ok()?)
    }
}

#[cfg(not(target_os = "linux"))]
mod counts {
    pub fn of_group() -> Option<u64> {
        None
    }

    pub fn of_machine() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_for_lack_of_memory_only_where_the_system_says_so() {
        let look = |group, machine, free| Shortage { killed_in_group: group, killed: machine, free };
        let calm = look(Some(2), Some(7), Some(0.8));
        for (before, after, expected) in [
            (calm, calm, false),
            (calm, look(Some(3), Some(8), Some(0.9)), true),
            (calm, look(None, Some(8), None), true),
            (look(None, None, Some(0.5)), look(None, None, Some(0.5)), false),
            (look(None, None, Some(0.04)), look(None, None, Some(0.9)), true),
            // The engine's own memory is free again.
            (calm, look(Some(2), Some(7), Some(0.01)), false),
            (Shortage::default(), Shortage::default(), false),
        ] {
            assert_eq!(before.explains_kill(after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn counters_are_read_in_both_versions_of_control_groups() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("user/steno/memory.events", "low 0\noom 5\noom_kill 3\noom_group_kill 9\n");
        write("memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
        write("memory.events", "oom_kill 6\n");
        for (listing, expected) in [
            ("0::/user/steno\n", Some(3)),
            ("12:cpu:/x\n11:memory:/old\n", Some(4)),
            ("0::/not/mounted/here\n", Some(6)),
            ("12:cpu:/x\n", None),
            ("", None),
        ] {
            assert_eq!(kills_of_group(listing, root.path()), expected, "{listing}");
        }
    }
}
