//! Subtitle layout: divides a segment into cues of a few short lines, broken
//! where a reader would pause.

use serde::{Deserialize, Serialize};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cues::{Cue, CueLine, CuePiece, matching_words};
use super::text::one_line;
use crate::{Segment, Time};

/// Limits for the layout of subtitles. The defaults are common among broadcasters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shaping {
    /// Most columns of a line; a full-width character takes two.
    pub line_width: usize,
    /// Most lines of a cue.
    pub lines: usize,
    /// Columns that people read per second. Cues are extended for it until the
    /// next one starts.
    pub reading_speed: f32,
    /// Least pause between two cues.
    pub min_gap: Time,
    /// Least duration of a cue, if the next one leaves room for it.
    pub min_duration: Time,
    /// Duration beyond which a segment is divided into several cues.
    pub max_duration: Time,
}

impl Default for Shaping {
    fn default() -> Self {
        Self {
            line_width: 42,
            lines: 2,
            reading_speed: 17.0,
            min_gap: Time::from_millis(80),
            min_duration: Time::from_millis(833),
            max_duration: Time::from_millis(7000),
        }
    }
}

/// Costs of breaking a line or a cue, in columns of uneven line length that are
/// accepted to avoid them: highest between two words, lower after a clause,
/// none after a sentence.
const COST_ANYWHERE: usize = 12;
const COST_AFTER_CLAUSE: usize = 4;
/// Cost of each cue, higher than all costs of breaks: fewer cues are always better.
const COST_OF_CUE: usize = 100;
/// A pause of at least this length counts as the end of a clause.
const PAUSE: Time = Time::from_millis(300);

/// Columns that a text occupies.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A piece of text that is not broken: a word, or a character of a script
/// without spaces.
struct Unit {
    text: String,
    space_before: bool,
    width: usize,
    start: Time,
    end: Time,
    /// Whether the start is a word's own and not estimated.
    timed: bool,
}

/// The cues of one segment, in order, with the times at which they are said.
pub fn cues(segment: &Segment, label: Option<String>, shaping: &Shaping) -> Vec<Cue> {
    let line_width = shaping.line_width.max(2);
    let max_lines = shaping.lines.max(1);
    let units = units(segment, line_width);
    // The name, a colon and a space. A name that leaves no room for text is not counted.
    let label_width = label.as_deref().map(|label| width(label) + 2).filter(|width| width * 2 <= line_width);
    let label_width = label_width.unwrap_or(0);
    partition(&units, line_width, max_lines, label_width, shaping.max_duration)
        .into_iter()
        .filter_map(|range| {
            let units = &units[range];
            let (first, last) = (units.first()?, units.last()?);
            let mut lines = balanced(units, line_width, max_lines, label_width);
            if let Some(line) = lines.first_mut() {
                line.label.clone_from(&label);
            }
            Some(Cue { start: first.start, end: last.end.max(first.start), lines })
        })
        .collect()
}

fn units(segment: &Segment, line_width: usize) -> Vec<Unit> {
    let text = one_line(&segment.text);
    let mut units = Vec::new();
    if let Some(words) = matching_words(segment, &text) {
        // White space can also be at the end of the word before.
        let mut gap_before = false;
        for word in words {
            // More than one part is rare.
            let parts: Vec<&str> = word.text.split_whitespace().collect();
            let total = parts.iter().map(|part| width(part)).sum::<usize>().max(1) as f64;
            let length = word.end.saturating_sub(word.start).seconds();
            let mut said = 0;
            let at = |said: usize| word.start + Time::from_seconds(length * said as f64 / total);
            for (index, part) in parts.iter().enumerate() {
                let apart = index > 0 || word.text.starts_with(char::is_whitespace) || gap_before;
                let space_before = apart && !units.is_empty();
                let end = said + width(part);
                add(&mut units, part, space_before, at(said)..at(end), index == 0, line_width);
                said = end;
            }
            gap_before = word.text.ends_with(char::is_whitespace);
        }
        return units;
    }
    // Without word times an even pace is assumed.
    let total = width(&text).max(1) as f64;
    let length = segment.end.saturating_sub(segment.start).seconds();
    let mut said = 0;
    let at = |said: usize| segment.start + Time::from_seconds(length * said as f64 / total);
    for (index, word) in text.split_whitespace().enumerate() {
        said += usize::from(index > 0);
        let end = said + width(word);
        add(&mut units, word, index > 0, at(said)..at(end), false, line_width);
        said = end;
    }
    units
}

/// Adds a word, divided if its script has no spaces or if it is longer than a line.
fn add(
    units: &mut Vec<Unit>,
    word: &str,
    space_before: bool,
    span: std::ops::Range<Time>,
    timed: bool,
    line_width: usize,
) {
    if word.is_empty() {
        return;
    }
    let whole = width(word);
    let mut parts: Vec<String> = Vec::new();
    let may_break = whole > line_width || word.chars().any(is_wide);
    let mut before: Option<char> = None;
    for c in word.chars() {
        let long = whole > line_width;
        let breaks = may_break && before.is_some_and(|before| breaks_between(before, c, long));
        match parts.last_mut() {
            Some(part) if !breaks => part.push(c),
            _ => parts.push(c.into()),
        }
        before = Some(c);
    }
    // A part can still be too long, such as a row of brackets.
    let parts = parts.into_iter().flat_map(|part| cut(part, line_width));
    let length = span.end.saturating_sub(span.start).seconds();
    let mut said = 0;
    for (index, part) in parts.enumerate() {
        let columns = width(&part);
        let at = |said: usize| span.start + Time::from_seconds(length * said as f64 / whole.max(1) as f64);
        units.push(Unit {
            width: columns,
            space_before: space_before && index == 0,
            start: at(said),
            end: at(said + columns),
            timed: timed && index == 0,
            text: part,
        });
        said += columns;
    }
}

fn is_wide(c: char) -> bool {
    c.width() == Some(2)
}

/// Whether a line may break between two characters. Combining marks stay with
/// their letter, closing signs with the character before, opening signs with
/// the character after.
fn breaks_between(before: char, after: char, anywhere: bool) -> bool {
    const NOT_FIRST: &str =
        "、。，．・：；！？）］｝〕〉》」』】’”ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々.,!?;:)]}%\"'…";
    const NOT_LAST: &str = "（［｛〔〈《「『【‘“([{$¥";
    let joined = after.width().unwrap_or(0) == 0 || before == '\u{200d}';
    !joined
        && !NOT_FIRST.contains(after)
        && !NOT_LAST.contains(before)
        && (anywhere || is_wide(before) || is_wide(after))
}

/// Cuts a text into parts of at most `line_width` columns.
fn cut(part: String, line_width: usize) -> Vec<String> {
    if width(&part) <= line_width {
        return vec![part];
    }
    let mut pieces: Vec<String> = Vec::new();
    for c in part.chars() {
        match pieces.last_mut() {
            Some(piece) if width(piece) + c.width().unwrap_or(0) <= line_width => piece.push(c),
            _ => pieces.push(c.into()),
        }
    }
    pieces
}

/// The cost of a break after a unit.
fn cost_after(units: &[Unit], index: usize) -> usize {
    let text = units[index].text.trim_end_matches(['"', '\'', '”', '’', ')', '」', '』', '）', '»']);
    let pause = units.get(index + 1).is_some_and(|next| next.start.saturating_sub(units[index].end) >= PAUSE);
    match text.chars().last() {
        Some('.' | '!' | '?' | '…' | '。' | '！' | '？' | '؟' | '۔' | '।') => 0,
        Some(',' | ';' | ':' | '、' | '，' | '；' | '：' | '،' | '؛' | '–' | '—') => {
            COST_AFTER_CLAUSE
        }
        _ if pause => COST_AFTER_CLAUSE,
        _ => COST_ANYWHERE,
    }
}

/// Divides units into the fewest cues, broken at the cheapest places, by dynamic
/// programming.
fn partition(
    units: &[Unit],
    line_width: usize,
    max_lines: usize,
    label_width: usize,
    longest: Time,
) -> Vec<std::ops::Range<usize>> {
    // best[n]: the lowest cost of dividing the first n units, and the start of the last cue.
    let mut best: Vec<(usize, usize)> = vec![(0, 0)];
    for end in 1..=units.len() {
        let mut cheapest = (usize::MAX, end - 1);
        for start in (0..end).rev() {
            let span = units[end - 1].end.saturating_sub(units[start].start);
            let alone = end - start == 1;
            if !alone
                && (span > longest || lines_needed(&units[start..end], line_width, label_width) > max_lines)
            {
                break;
            }
            let cost = best[start].0 + COST_OF_CUE + cost_after(units, end - 1);
            if cost < cheapest.0 {
                cheapest = (cost, start);
            }
        }
        best.push(cheapest);
    }
    let mut ranges = Vec::new();
    let mut end = units.len();
    while end > 0 {
        let start = best[end].1;
        ranges.push(start..end);
        end = start;
    }
    ranges.reverse();
    ranges
}

/// The number of lines if each is filled before the next.
fn lines_needed(units: &[Unit], line_width: usize, label_width: usize) -> usize {
    let mut lines = 1;
    let mut used = label_width;
    for (index, unit) in units.iter().enumerate() {
        let space = usize::from(unit.space_before && index > 0);
        if index > 0 && used + space + unit.width > line_width {
            lines += 1;
            used = unit.width;
        } else {
            used += space + unit.width;
        }
    }
    lines
}

/// Divides a cue's units into the fewest lines, of similar length and broken at
/// the cheapest places.
fn balanced(units: &[Unit], line_width: usize, max_lines: usize, label_width: usize) -> Vec<CueLine> {
    let lines = lines_needed(units, line_width, label_width).min(max_lines);
    let mut widths: Vec<usize> = vec![0];
    for (index, unit) in units.iter().enumerate() {
        let space = usize::from(unit.space_before && index > 0);
        widths.push(widths[index] + space + unit.width);
    }
    let line = |start: usize, end: usize| {
        let space = usize::from(start > 0 && units[start].space_before);
        widths[end] - widths[start] - if start > 0 { space } else { 0 }
            + if start == 0 { label_width } else { 0 }
    };
    let even = (widths[units.len()] + label_width).div_ceil(lines);
    // best[n][end]: the lowest cost of putting the first `end` units on n lines.
    let mut best = vec![vec![(usize::MAX, 0); units.len() + 1]; lines + 1];
    best[0][0] = (0, 0);
    for count in 1..=lines {
        for end in 1..=units.len() {
            for start in (0..end).rev() {
                let columns = line(start, end);
                if columns > line_width && end - start > 1 {
                    break;
                }
                let before = best[count - 1][start].0;
                if before == usize::MAX {
                    continue;
                }
                let uneven = columns.abs_diff(even);
                let place = if end < units.len() { cost_after(units, end - 1) } else { 0 };
                let cost = before + uneven + place;
                if cost < best[count][end].0 {
                    best[count][end] = (cost, start);
                }
            }
        }
    }
    let mut ends = vec![units.len()];
    for count in (1..=lines).rev() {
        let end = ends.last().copied().unwrap_or(0);
        ends.push(best[count][end].1);
    }
    ends.reverse();
    ends.windows(2)
        .filter(|pair| pair[0] < pair[1])
        .map(|pair| CueLine { label: None, pieces: pieces(&units[pair[0]..pair[1]]) })
        .collect()
}

fn pieces(units: &[Unit]) -> Vec<CuePiece> {
    units
        .iter()
        .enumerate()
        .map(|(index, unit)| {
            let space = if unit.space_before && index > 0 { " " } else { "" };
            CuePiece { text: format!("{space}{}", unit.text), start: unit.timed.then_some(unit.start) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::cues::cues as all_cues;
    use crate::export::tests::{segment, transcript};
    use crate::export::{Options, Shaping};

    fn check(text: &str, line_width: usize, lines: usize, expected: &[&str]) {
        let shaping = Shaping { line_width, lines, ..Shaping::default() };
        let found: Vec<String> = cues(&segment(0, 5000, text), None, &shaping)
            .iter()
            .map(|cue| cue.lines.iter().map(CueLine::text).collect::<Vec<_>>().join("|"))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn lines_break_at_the_best_places() {
        check("Short enough.", 42, 2, &["Short enough."]);
        // Lines of similar length.
        check("one two three four five six", 20, 2, &["one two three|four five six"]);
        // After a sentence.
        check("I came early. Then I saw it all.", 20, 2, &["I came early.|Then I saw it all."]);
        check("I came. I saw. I won it all.", 10, 2, &["I came.|I saw.", "I won|it all."]);
        check("First this, then that", 16, 2, &["First this,|then that"]);
        // Full-width characters take two columns; closing signs start no line.
        check("これは字幕のテストです。", 12, 2, &["これは字幕の|テストです。"]);
        // A word longer than a line.
        check("Donaudampfschifffahrtsgesellschaft", 12, 3, &["Donaudampfsc|hifffahrtsge|sellschaft"]);
        // A text longer than a cue.
        check("a b c d e f g h", 3, 2, &["a b|c d", "e f|g h"]);
        check("", 10, 2, &[]);
    }

    #[test]
    fn cues_are_extended_until_the_next_one() {
        let shaping = Shaping::default();
        let options = Options { shaping: Some(shaping.clone()), ..Options::default() };
        let mut transcript = transcript(vec![
            segment(0, 200, "Yes."),
            segment(5_000, 5_500, "Thirty-four characters are a while."),
            segment(5_520, 6_000, "And so on."),
        ]);
        transcript.source.duration = Time::from_millis(6_100);
        let times: Vec<_> = all_cues(&transcript, &options)
            .iter()
            .map(|cue| (cue.start.millis(), cue.end.millis()))
            .collect();
        // For the least duration; until the gap before the next cue; until the end of the recording.
        assert_eq!(times, [(0, 833), (5_000, 5_440), (5_520, 6_100)]);
    }
}
