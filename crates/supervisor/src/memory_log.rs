//! What memory did during a job, one file per job in the user's state folder:
//! a line per checkpoint and per notice, for `grep` and for
//! [`memory::log::parse`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use memory::Mark;
use wire::Job;

use config::folders;

/// More than a user looks back through; each is some ten kilobytes.
pub const MOST_LOGS: usize = 50;

/// In the folder for state.
const FOLDER: &str = "memory";
const ENDING: &str = "log";

/// The log of one job. Made at its first line, so that a job that reports
/// nothing leaves no file.
#[derive(Debug)]
pub struct MemoryLog {
    folder: PathBuf,
    recording: PathBuf,
    /// A job that goes on in a new engine goes on in its log.
    resumed: bool,
    file: Option<File>,
    /// A full disk must not end a job: nothing more is written then.
    failed: bool,
}

/// Logs of this process by their recordings.
static LOGS: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());

/// Tells two jobs of the same second apart.
static NUMBER: AtomicU32 = AtomicU32::new(1);

impl MemoryLog {
    /// `None` where this user has no folder for such files.
    pub fn of(job: &Job) -> Option<Self> {
        folders::steno_state().map(|folder| Self::within(folder.join(FOLDER), job))
    }

    pub fn within(folder: PathBuf, job: &Job) -> Self {
        let recording = job.file.as_path().to_path_buf();
        Self { folder, recording, resumed: job.resume.is_some(), file: None, failed: false }
    }

    pub fn write(&mut self, mark: &Mark) {
        if !self.failed && self.try_write(mark).is_err() {
            self.failed = true;
        }
    }

    fn try_write(&mut self, mark: &Mark) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.folder, &self.recording, self.resumed)?),
        };
        // One write per line: a job that is killed leaves whole ones.
        file.write_all(format!("{}\n", mark.line()).as_bytes())
    }
}

fn open(folder: &Path, recording: &Path, resumed: bool) -> io::Result<File> {
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = logs.get(recording).filter(|path| resumed && path.starts_with(folder)) {
        return OpenOptions::new().append(true).create(true).open(path);
    }
    folders::make_private(folder)?;
    prune(folder, MOST_LOGS - 1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{}-{}-{number}.{ENDING}", stamp(), std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
    logs.insert(recording.to_path_buf(), path);
    Ok(file)
}

/// Keeps the `most` latest logs; their names begin with when they were begun.
fn prune(folder: &Path, most: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut logs: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    logs.sort();
    for log in logs.iter().take(logs.len().saturating_sub(most)) {
        // It may be gone already: another host prunes as well.
        let _ = fs::remove_file(log);
    }
}

/// Now in UTC, as `20260131-235959`.
fn stamp() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of the Gregorian calendar, from days since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::log::{Line, parse};
    use memory::{Checkpoint, Code, DeviceKind, Levels, Notice, Sample, Severity};

    fn marks() -> Vec<Mark> {
        let sample = |checkpoint, levels| {
            let reason = Some("No reading:\nnone at all.".into());
            Mark::Sample(Sample { checkpoint, batch: None, at_ms: 0, kind: DeviceKind::Host, levels, reason })
        };
        let levels = Levels {
            allocated: 1 << 28,
            reserved: 1 << 29,
            free: 1 << 33,
            total: 1 << 34,
            ..Levels::default()
        };
        let mut marks: Vec<Mark> = Checkpoint::ALL
            .iter()
            .filter(|it| **it != Checkpoint::Batch)
            .map(|it| sample(*it, Some(levels)))
            .collect();
        marks.push(sample(Checkpoint::PipelineStart, None));
        let notice = |code: &Code| Mark::Notice(Notice::new(*code, Severity::Info, "Text:\nof two lines."));
        marks.extend(Code::ALL.iter().map(notice));
        marks
    }

    fn logs(folder: &Path) -> Vec<PathBuf> {
        let mut logs: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.sort();
        logs
    }

    #[test]
    fn every_line_of_a_jobs_log_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::new(1, "every line.flac", "model");
        let mut log = MemoryLog::within(folder.path().join("new"), &job);
        for mark in marks() {
            log.write(&mark);
        }
        let logs = logs(&folder.path().join("new"));
        assert_eq!(logs.len(), 1);
        let text = fs::read_to_string(&logs[0]).unwrap();
        let lines: Vec<Line> =
            text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
        assert_eq!(lines.len(), marks().len());
    }

    #[test]
    fn a_job_that_is_resumed_goes_on_in_its_log_and_one_that_is_silent_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut job = Job::new(1, "resumed.flac", "model");
        let write = |job: &Job| MemoryLog::within(folder.path().into(), job).write(&marks()[0]);
        write(&job);
        job.resume = Some(Box::default());
        write(&job);
        assert_eq!(fs::read_to_string(&logs(folder.path())[0]).unwrap().lines().count(), 2);
        // Another job on the same recording has a log of its own.
        job.resume = None;
        write(&job);
        drop(MemoryLog::within(folder.path().into(), &job));
        assert_eq!(logs(folder.path()).len(), 2);
    }

    #[test]
    fn old_logs_make_room() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.txt"), "").unwrap();
        for number in 0..MOST_LOGS + 5 {
            fs::write(folder.path().join(format!("20200101-0000{number:02}-1-1.log")), "").unwrap();
        }
        MemoryLog::within(folder.path().into(), &Job::new(1, "new.flac", "model")).write(&marks()[0]);
        let logs = logs(folder.path());
        assert_eq!(logs.len(), MOST_LOGS + 1);
        assert!(logs[0].ends_with("20200101-000006-1-1.log"), "{logs:?}");
        assert!(fs::metadata(&logs[MOST_LOGS - 1]).unwrap().len() > 0);
    }

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_722, (2023, 12, 31)),
            (19_782, (2024, 2, 29)),
            (20_454, (2026, 1, 1)),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
