//! How wrong a diarization is: the error rate of NIST (RT-09), as
//! `pyannote.metrics` computes it.

use std::collections::BTreeMap;
use std::path::Path;

/// One speaker from when to when, in seconds.
pub type Turn = (f64, f64, String);

/// Seconds of speech by what is wrong with them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Errors {
    /// Said by somebody who was not heard.
    pub missed: f64,
    /// Heard though nobody said it.
    pub false_alarm: f64,
    /// Taken for somebody else's.
    pub confused: f64,
    /// All speech; two speakers at once count twice.
    pub total: f64,
}

impl Errors {
    /// All errors over all speech.
    pub fn rate(&self) -> f64 {
        (self.missed + self.false_alarm + self.confused) / self.total
    }

    /// The errors of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            missed: self.missed + other.missed,
            false_alarm: self.false_alarm + other.false_alarm,
            confused: self.confused + other.confused,
            total: self.total + other.total,
        }
    }
}

/// The turns of an RTTM file.
///
/// Panics where it is none.
#[allow(clippy::unwrap_used, reason = "called by tests alone")]
pub fn read_rttm(path: &Path) -> Vec<Turn> {
    parse_rttm(&std::fs::read_to_string(path).unwrap())
}

/// The turns of a text in RTTM.
///
/// Panics where it is none.
#[allow(clippy::unwrap_used, reason = "called by tests alone")]
pub fn parse_rttm(text: &str) -> Vec<Turn> {
    let turn = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (start, length): (f64, f64) = (fields[3].parse().unwrap(), fields[4].parse().unwrap());
        (start, start + length, fields[7].to_owned())
    };
    text.lines().map(turn).collect()
}

/// Compares who speaks when. Nothing counts within `collar` seconds of where a turn
/// of the reference begins or ends. Speakers are paired so that the fewest are
/// confused.
pub fn errors(reference: &[Turn], hypothesis: &[Turn], collar: f64) -> Errors {
    let (reference, hypothesis) = (by_speaker(reference), by_speaker(hypothesis));
    let mut edges: Vec<f64> = Vec::new();
    let mut ignored: Vec<(f64, f64)> = Vec::new();
    for (start, end) in reference.iter().flatten() {
        for edge in [start, end] {
            ignored.push((edge - collar, edge + collar));
            edges.extend([*edge, edge - collar, edge + collar]);
        }
    }
    edges.extend(hypothesis.iter().flatten().flat_map(|(start, end)| [*start, *end]));
    edges.sort_by(f64::total_cmp);
    let mut errors = Errors::default();
    let mut common = vec![vec![0.0; hypothesis.len()]; reference.len()];
    let mut both = 0.0;
    for pair in edges.windows(2) {
        let (length, middle) = (pair[1] - pair[0], (pair[0] + pair[1]) / 2.0);
        if length <= 0.0 || ignored.iter().any(|(start, end)| *start < middle && middle < *end) {
            continue;
        }
        let speaking = |speakers: &[Vec<(f64, f64)>]| -> Vec<usize> {
            let is =
                |turns: &Vec<(f64, f64)>| turns.iter().any(|(start, end)| *start < middle && middle < *end);
            (0..speakers.len()).filter(|number| is(&speakers[*number])).collect()
        };
        let (said, heard) = (speaking(&reference), speaking(&hypothesis));
        let count = |speakers: usize| speakers as f64 * length;
        errors.total += count(said.len());
        errors.missed += count(said.len().saturating_sub(heard.len()));
        errors.false_alarm += count(heard.len().saturating_sub(said.len()));
        both += count(said.len().min(heard.len()));
        for said in &said {
            heard.iter().for_each(|heard| common[*said][*heard] += length);
        }
    }
    errors.confused = (both - largest_pairing(&common)).max(0.0);
    errors
}

/// Each speaker's turns, joined where they overlap.
fn by_speaker(turns: &[Turn]) -> Vec<Vec<(f64, f64)>> {
    let mut speakers: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut sorted: Vec<&Turn> = turns.iter().collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (start, end, speaker) in sorted {
        let turns = speakers.entry(speaker).or_default();
        match turns.last_mut() {
            Some(last) if last.1 >= *start => last.1 = last.1.max(*end),
            _ => turns.push((*start, *end)),
        }
    }
    speakers.into_values().collect()
}

/// The largest sum of elements in different rows and columns, by the best sum of
/// each set of columns. There are few speakers.
fn largest_pairing(values: &[Vec<f64>]) -> f64 {
    let columns = values.first().map_or(0, Vec::len);
    assert!(columns <= 16, "{columns} speakers");
    let mut best = vec![0.0f64; 1 << columns];
    for row in values {
        let before = best.clone();
        for set in 0..best.len() {
            for (column, value) in row.iter().enumerate().filter(|(column, _)| set & (1 << column) != 0) {
                best[set] = best[set].max(before[set & !(1 << column)] + value);
            }
        }
    }
    best.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    /// The cases are made by reference/speakers/make_error_rate.py.
    #[test]
    fn the_error_rate_is_that_of_pyannote() {
        let path = corpus::bundled().join("reference/speakers/error_rate.json");
        let cases: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let turns = |value: &serde_json::Value| -> Vec<Turn> {
            let turn = |turn: &serde_json::Value| {
                (turn[0].as_f64().unwrap(), turn[1].as_f64().unwrap(), turn[2].as_str().unwrap().to_owned())
            };
            value.as_array().unwrap().iter().map(turn).collect()
        };
        let cases = cases.as_array().unwrap();
        assert_eq!(cases.len(), 32);
        for (number, case) in cases.iter().enumerate() {
            let found = errors(
                &turns(&case["reference"]),
                &turns(&case["hypothesis"]),
                case["collar"].as_f64().unwrap(),
            );
            let Errors { missed, false_alarm, confused, total } = found;
            for (name, value) in
                [("missed", missed), ("false_alarm", false_alarm), ("confused", confused), ("total", total)]
            {
                let expected = case["expected"][name].as_f64().unwrap();
                assert!((value - expected).abs() < 1e-3, "case {number}, {name}: {value}, not {expected}");
            }
        }
    }
}
