//! What is told where memory is short.

use crate::message::{Message, Program, Relief};
use crate::notice::Notice;
use crate::probe::{DeviceKind, ProcessUse, Reading};
use crate::{Levels, Pressure};

/// What the job could change to need less memory; set by the code that runs the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Situation {
    /// Windows decoded together.
    pub batch: u32,
    /// The next smaller model that is installed and can do the job.
    pub smaller_model: Option<String>,
    /// The next lower precision of this model that is installed.
    pub lower_precision: Option<String>,
}

/// Share of the device in use before the first load above which a notice says who
/// holds it.
pub const OCCUPIED_SHARE: f64 = 0.10;

/// Share of the limit held by other programs above which the advice names them first.
const OTHERS_MATTER: f64 = 0.25;

/// What would help most.
pub fn advice(levels: &Levels, situation: &Situation) -> Relief {
    let ours = levels.reserved.saturating_add(levels.fixed);
    let others = levels.others.unwrap_or(0);
    if others > ours && others as f64 >= OTHERS_MATTER * levels.total as f64 {
        return Relief::Others { bytes: others };
    }
    if situation.batch > 1 {
        return Relief::Batch { windows: situation.batch };
    }
    if let Some(precision) = situation.lower_precision.clone() {
        return Relief::Precision { precision };
    }
    situation.smaller_model.clone().map_or(Relief::Nothing, |model| Relief::Model { model })
}

/// The notice of an elevated (70 %) or critical (85 %) share.
pub(crate) fn pressure_notice(kind: DeviceKind, levels: &Levels, situation: &Situation) -> Notice {
    let (share, relief) = (levels.share, advice(levels, situation));
    match Pressure::of(share) {
        Pressure::Critical => Message::Critical { kind, share, relief },
        _ => Message::Elevated { kind, share, relief },
    }
    .into()
}

/// The notice that says who holds memory before the first load. `kept` bytes of
/// this program are a model that stays loaded on purpose and don't count.
pub(crate) fn occupied(
    kind: DeviceKind,
    reading: &Reading,
    kept: u64,
    processes: impl FnOnce() -> Vec<ProcessUse>,
) -> Option<Notice> {
    let ours = reading.ours?.held().saturating_sub(kept);
    let others = reading.others?;
    let used = ours.saturating_add(others);
    if reading.total == 0 || used as f64 <= OCCUPIED_SHARE * reading.total as f64 {
        return None;
    }
    let mut others_by_name: Vec<ProcessUse> =
        processes().into_iter().filter(|process| !process.ours && process.bytes.is_some()).collect();
    others_by_name.sort_by_key(|process| std::cmp::Reverse(process.bytes));
    let programs = others_by_name
        .into_iter()
        .take(3)
        .map(|process| Program {
            name: process.name,
            pid: process.pid,
            bytes: process.bytes.unwrap_or_default(),
        })
        .collect();
    let total = reading.total;
    Some(Message::Occupied { kind, used, total, ours, others, programs }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{GIB, MIB};
    use crate::probe::Ours;

    #[test]
    fn advice_names_what_helps_most() {
        let full = Situation {
            batch: 8,
            smaller_model: Some("whisper-small".into()),
            lower_precision: Some("q8_0".into()),
        };
        let single = Situation { batch: 1, ..full.clone() };
        let only_model = Situation { lower_precision: None, ..single.clone() };
        // Ours and others in GB of 8.
        let cases = [
            (2, 5, &full, "Other programs hold 5.0 GB: closing one of them helps most."),
            (6, 1, &full, "A smaller batch (now 8) needs less."),
            (6, 1, &single, "The same model in q8_0 needs less."),
            (6, 1, &only_model, "A smaller model (whisper-small) needs less."),
            (
                6,
                1,
                &Situation::default(),
                "Nothing has failed. If memory runs out, the job continues with less.",
            ),
        ];
        for (ours, others, situation, expected) in cases {
            let levels = Levels {
                reserved: ours * GIB,
                others: Some(others * GIB),
                total: 8 * GIB,
                ..Levels::default()
            };
            assert_eq!(advice(&levels, situation).text(), expected);
        }
    }

    #[test]
    fn the_first_checkpoint_says_whose_memory_it_is() {
        let process = |pid, name: &str, bytes, ours| ProcessUse {
            pid,
            bytes: Some(bytes),
            name: Some(name.into()),
            ours,
        };
        let processes = || {
            vec![
                process(7, "steno", 300 * MIB, true),
                process(9, "viewer", GIB, false),
                process(8, "game", 2 * GIB, false),
            ]
        };
        let reading = |ours, others| Reading {
            total: 8 * GIB,
            used: ours + others,
            free: 8 * GIB - ours - others,
            ours: Some(Ours { reserved: ours, ..Ours::default() }),
            others: Some(others),
            mapped: 0,
        };
        let notice = occupied(DeviceKind::Gpu, &reading(300 * MIB, 3 * GIB), 0, processes).unwrap();
        assert_eq!(
            notice.text,
            "3.3 GB of 8.0 GB of GPU memory is in use before anything is loaded: Steno 300 MB, other programs 3.0 GB (game [8] 2.0 GB, viewer [9] 1.0 GB)."
        );
        // (ours, kept, others) in MB -> told
        for ((ours, kept, others), expected) in [
            ((0, 0, 819), false),
            ((0, 0, 820), true),
            // A model kept warm is nothing to tell.
            ((4000, 4000, 0), false),
            ((4000, 0, 0), true),
        ] {
            let found = occupied(DeviceKind::Gpu, &reading(ours * MIB, others * MIB), kept * MIB, Vec::new);
            assert_eq!(found.is_some(), expected, "{ours} {kept} {others}");
        }
    }
}
