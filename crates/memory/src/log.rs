//! One line per checkpoint and per notice, in a form that `grep` and this
//! module read back:
//!
//! ```text
//! [GPU Memory] Before Transcription: Allocated: 0.23GB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB
//! NOTICE memory.elevated: GPU memory usage is elevated (72.3%). ...
//! ```
//!
//! GB is 2^30 bytes. A notice is `NOTICE` where the result is what was asked
//! for, `WARNING` where it is less, `ERROR` where something is missing.

use crate::bytes::GIB;
use crate::notice::{Code, Notice, Severity};
use crate::probe::DeviceKind;
use crate::{Checkpoint, Sample};

/// A line of a job's memory log, read back.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A reading of the device.
    Memory {
        /// The device.
        kind: DeviceKind,
        /// The place in the job.
        checkpoint: Checkpoint,
        /// Number of the batch, from 1.
        batch: Option<u32>,
        /// `None` where the line says that there was no reading.
        figures: Option<Figures>,
    },
    /// Something the user should know.
    Notice {
        /// The first word of the line.
        level: Level,
        /// What happened.
        code: Code,
        /// The notice's text on one line.
        text: String,
    },
}

/// The figures of a line, rounded as they are written: GB of 2^30 bytes to two
/// places, percentages of the total to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// In use by this program.
    pub allocated_gb: f64,
    /// The same, as a share of the total.
    pub allocated_percent: f64,
    /// Held by this program, in use or not.
    pub reserved_gb: f64,
    /// The same, as a share of the total.
    pub reserved_percent: f64,
    /// What can be allocated.
    pub free_gb: f64,
    /// The limit in force.
    pub total_gb: f64,
}

/// The first word of a notice's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `NOTICE`: the result is what was asked for.
    Notice,
    /// `WARNING`: the result is less, or may soon be.
    Warning,
    /// `ERROR`: the recording failed.
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }

    /// A device that is nearly full is a warning although nothing is lost yet.
    pub fn of(notice: &Notice) -> Self {
        match (notice.severity, notice.code) {
            (Severity::Failed, _) => Self::Error,
            (Severity::Degraded, _)
            | (_, Code::Critical | Code::NotRecovered | Code::ReleaseFailed | Code::Leak) => Self::Warning,
            (Severity::Info, _) => Self::Notice,
        }
    }
}

/// The line of a sample, without a line break.
pub fn sample_line(sample: &Sample) -> String {
    let head = format!("[{} Memory] {}: ", sample.kind.label(), sample.label());
    let Some(levels) = sample.levels else {
        let reason = sample.reason.as_deref().unwrap_or("not known");
        return format!("{head}unavailable: {}", one_line(reason));
    };
    let gb = |bytes: u64| bytes as f64 / GIB as f64;
    let percent = |bytes: u64| if levels.total == 0 { 0.0 } else { 100.0 * gb(bytes) / gb(levels.total) };
    format!(
        "{head}Allocated: {:.2}GB ({:.1}%) | Reserved: {:.2}GB ({:.1}%) | Free: {:.2}GB | Total: {:.2}GB",
        gb(levels.allocated),
        percent(levels.allocated),
        gb(levels.reserved),
        percent(levels.reserved),
        gb(levels.free),
        gb(levels.total),
    )
}

/// The line of a notice, without a line break.
pub fn notice_line(notice: &Notice) -> String {
    format!("{} {}: {}", Level::of(notice).word(), notice.code.as_str(), one_line(&notice.text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a line back; `None` for one that neither function above wrote.
pub fn parse(line: &str) -> Option<Line> {
    let line = line.trim_end();
    parse_memory(line).or_else(|| parse_notice(line))
}

fn parse_memory(line: &str) -> Option<Line> {
    let (kind, rest) = [DeviceKind::Gpu, DeviceKind::Host].into_iter().find_map(|kind| {
        let rest = line.strip_prefix(&format!("[{} Memory] ", kind.label()))?;
        Some((kind, rest))
    })?;
    let (label, figures) = rest.split_once(": ")?;
    let (checkpoint, batch) = match label.strip_prefix("Batch ") {
        Some(number) => (Checkpoint::Batch, Some(number.parse().ok()?)),
        None => (Checkpoint::from_label(label)?, None),
    };
    let figures = match figures.strip_prefix("unavailable: ") {
        Some(_) => None,
        None => Some(parse_figures(figures)?),
    };
    Some(Line::Memory { kind, checkpoint, batch, figures })
}

fn parse_figures(text: &str) -> Option<Figures> {
    let mut fields = text.split(" | ");
    let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix(": ");
    let gb = |text: &str| text.strip_suffix("GB")?.parse::<f64>().ok();
    let both = |text: &str| {
        let (amount, share) = text.split_once(" (")?;
        Some((gb(amount)?, share.strip_suffix("%)")?.parse::<f64>().ok()?))
    };
    let (allocated_gb, allocated_percent) = both(field("Allocated")?)?;
    let (reserved_gb, reserved_percent) = both(field("Reserved")?)?;
    let free_gb = gb(field("Free")?)?;
    let total_gb = gb(field("Total")?)?;
    if fields.next().is_some() {
        return None;
    }
    Some(Figures { allocated_gb, allocated_percent, reserved_gb, reserved_percent, free_gb, total_gb })
}

fn parse_notice(line: &str) -> Option<Line> {
    let (level, rest) = [Level::Notice, Level::Warning, Level::Error]
        .into_iter()
        .find_map(|level| Some((level, line.strip_prefix(level.word())?.strip_prefix(' ')?)))?;
    let (code, text) = rest.split_once(": ")?;
    Some(Line::Notice { level, code: Code::from_code(code)?, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Levels;
    use crate::bytes::MIB;

    fn sample(checkpoint: Checkpoint, batch: Option<u32>, levels: Option<Levels>) -> Sample {
        Sample { checkpoint, batch, at_ms: 12, kind: DeviceKind::Gpu, levels, reason: None }
    }

    #[test]
    fn the_line_has_its_well_known_form() {
        let levels = Levels {
            allocated: 236 * MIB,
            reserved: 696 * MIB,
            free: 24 * GIB - 696 * MIB,
            total: 24 * GIB,
            ..Levels::default()
        };
        assert_eq!(
            sample_line(&sample(Checkpoint::BeforeTranscribe, None, Some(levels))),
            "[GPU Memory] Before Transcription: Allocated: 0.23GB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB"
        );
    }

    #[test]
    fn every_checkpoint_can_be_read_back() {
        let levels = Levels {
            allocated: 3 * GIB / 2,
            reserved: 2 * GIB,
            free: 6 * GIB,
            total: 8 * GIB,
            ..Levels::default()
        };
        for checkpoint in Checkpoint::ALL {
            let batch = (*checkpoint == Checkpoint::Batch).then_some(12);
            for levels in [Some(levels), None] {
                let written = sample(*checkpoint, batch, levels);
                let read = parse(&sample_line(&written));
                let figures = levels.map(|_| Figures {
                    allocated_gb: 1.5,
                    allocated_percent: 18.8,
                    reserved_gb: 2.0,
                    reserved_percent: 25.0,
                    free_gb: 6.0,
                    total_gb: 8.0,
                });
                let expected =
                    Line::Memory { kind: DeviceKind::Gpu, checkpoint: *checkpoint, batch, figures };
                assert_eq!(read, Some(expected), "{}", sample_line(&written));
            }
        }
    }

    #[test]
    fn notices_can_be_read_back() {
        for code in Code::ALL {
            for severity in [Severity::Info, Severity::Degraded, Severity::Failed] {
                let notice = Notice::new(*code, severity, "Two: parts,\nof  a text.");
                let expected = Line::Notice {
                    level: Level::of(&notice),
                    code: *code,
                    text: "Two: parts, of a text.".into(),
                };
                assert_eq!(parse(&notice_line(&notice)), Some(expected));
            }
        }
    }

    #[test]
    fn other_lines_are_not_taken_for_ours() {
        for line in [
            "",
            "[GPU Memory]",
            "[GPU Memory] Before Lunch: Allocated: 0.23GB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB",
            "[GPU Memory] Before Transcription: Allocated: 0.23GB (1.0%)",
            "[GPU Memory] Before Transcription: Allocated: 0.23MB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB",
            "[GPU Memory] Batch x: Allocated: 0.23GB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB",
            "[GPU Memory] Before Transcription: Allocated: 0.23GB (1.0%) | Reserved: 0.68GB (2.8%) | Free: 23.32GB | Total: 24.00GB | More: 1.00GB",
            "NOTICE memory.unheard_of: text",
            "NOTICE of something else",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }
}
