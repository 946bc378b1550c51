//! Subtitles that fit a screen: one segment becomes cues of a few short lines,
//! broken where a reader would pause.

use serde::{Deserialize, Serialize};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cues::{Cue, Line, Piece, matching_words};
use super::text::one_line;
use crate::{Segment, Time};

/// How subtitles are to look. The defaults are what broadcasters commonly ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shaping {
    /// Columns per line; a full-width character takes two.
    pub line_width: usize,
    /// Lines per cue.
    pub lines: usize,
    /// Columns per second that a reader manages. Cues stay longer for it where
    /// there is room.
    pub reading_speed: f32,
    /// Between two cues where they would touch.
    pub min_gap: Time,
    pub min_duration: Time,
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

/// Breaking a line or a cue costs this much where nothing invites it, less
/// after a comma, nothing after a full stop. In columns: that much unevenness
/// is accepted for a better place.
const COST_ANYWHERE: usize = 12;
const COST_AFTER_CLAUSE: usize = 4;
/// One cue less is worth any number of better places.
const COST_OF_CUE: usize = 100;
/// A pause in speech invites a new cue as a comma does.
const PAUSE: Time = Time::from_millis(300);

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// What stays together on a line.
struct Token {
    text: String,
    space_before: bool,
    width: usize,
    start: Time,
    end: Time,
    /// The time is the word's own, not worked out from the segment's.
    timed: bool,
}

/// The cues of one segment, in order, with the times at which they are said.
pub fn cues(segment: &Segment, label: Option<String>, shaping: &Shaping) -> Vec<Cue> {
    let line_width = shaping.line_width.max(2);
    let max_lines = shaping.lines.max(1);
    let tokens = tokens(segment, line_width);
    // The name and the colon and space after it; a name that leaves no room for text is not counted.
    let label_width = label.as_deref().map(|label| width(label) + 2).filter(|width| width * 2 <= line_width);
    let label_width = label_width.unwrap_or(0);
    partition(&tokens, line_width, max_lines, label_width, shaping.max_duration)
        .into_iter()
        .filter_map(|range| {
            let tokens = &tokens[range];
            let (first, last) = (tokens.first()?, tokens.last()?);
            let mut lines = balanced(tokens, line_width, max_lines, label_width);
            if let Some(line) = lines.first_mut() {
                line.label.clone_from(&label);
            }
            Some(Cue { start: first.start, end: last.end.max(first.start), lines })
        })
        .collect()
}

fn tokens(segment: &Segment, line_width: usize) -> Vec<Token> {
    let text = one_line(&segment.text);
    let mut tokens = Vec::new();
    if let Some(words) = matching_words(segment, &text) {
        // White space after a word parts it from the next as well.
        let mut gap_before = false;
        for word in words {
            // Hardly ever more than one part: models write a word per word.
            let parts: Vec<&str> = word.text.split_whitespace().collect();
            let total = parts.iter().map(|part| width(part)).sum::<usize>().max(1) as f64;
            let length = word.end.saturating_sub(word.start).seconds();
            let mut said = 0;
            let at = |said: usize| word.start + Time::from_seconds(length * said as f64 / total);
            for (index, part) in parts.iter().enumerate() {
                let apart = index > 0 || word.text.starts_with(char::is_whitespace) || gap_before;
                let space_before = apart && !tokens.is_empty();
                let end = said + width(part);
                add(&mut tokens, part, space_before, at(said)..at(end), index == 0, line_width);
                said = end;
            }
            gap_before = word.text.ends_with(char::is_whitespace);
        }
        return tokens;
    }
    // Without words of their own, texts are taken to be said at an even pace.
    let total = width(&text).max(1) as f64;
    let length = segment.end.saturating_sub(segment.start).seconds();
    let mut said = 0;
    let at = |said: usize| segment.start + Time::from_seconds(length * said as f64 / total);
    for (index, word) in text.split_whitespace().enumerate() {
        said += usize::from(index > 0);
        let end = said + width(word);
        add(&mut tokens, word, index > 0, at(said)..at(end), false, line_width);
        said = end;
    }
    tokens
}

/// Adds a word, in parts where it has no white space to break at but may be
/// broken: scripts that write none, and words longer than a line.
fn add(
    tokens: &mut Vec<Token>,
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
    // Parts that may not be broken can still be too long, as a row of brackets is.
    let parts = parts.into_iter().flat_map(|part| cut(part, line_width));
    let length = span.end.saturating_sub(span.start).seconds();
    let mut said = 0;
    for (index, part) in parts.enumerate() {
        let columns = width(&part);
        let at = |said: usize| span.start + Time::from_seconds(length * said as f64 / whole.max(1) as f64);
        tokens.push(Token {
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

/// Marks that combine stay with their letter; signs that close stay with what
/// they close, signs that open with what they open.
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

/// Last resort: no line is ever longer than it may be.
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

/// What it costs to break after this token.
fn cost_after(tokens: &[Token], index: usize) -> usize {
    let text = tokens[index].text.trim_end_matches(['"', '\'', '”', '’', ')', '」', '』', '）', '»']);
    let pause =
        tokens.get(index + 1).is_some_and(|next| next.start.saturating_sub(tokens[index].end) >= PAUSE);
    match text.chars().last() {
        Some('.' | '!' | '?' | '…' | '。' | '！' | '？' | '؟' | '۔' | '।') => 0,
        Some(',' | ';' | ':' | '、' | '，' | '；' | '：' | '،' | '؛' | '–' | '—') => {
            COST_AFTER_CLAUSE
        }
        _ if pause => COST_AFTER_CLAUSE,
        _ => COST_ANYWHERE,
    }
}

/// Divides tokens into cues: as few as can be, broken at the best places.
fn partition(
    tokens: &[Token],
    line_width: usize,
    max_lines: usize,
    label_width: usize,
    longest: Time,
) -> Vec<std::ops::Range<usize>> {
    // The cheapest way to divide the first so many tokens, and where its last cue begins.
    let mut best: Vec<(usize, usize)> = vec![(0, 0)];
    for end in 1..=tokens.len() {
        let mut cheapest = (usize::MAX, end - 1);
        for start in (0..end).rev() {
            let span = tokens[end - 1].end.saturating_sub(tokens[start].start);
            let alone = end - start == 1;
            if !alone
                && (span > longest || lines_needed(&tokens[start..end], line_width, label_width) > max_lines)
            {
                break;
            }
            let cost = best[start].0 + COST_OF_CUE + cost_after(tokens, end - 1);
            if cost < cheapest.0 {
                cheapest = (cost, start);
            }
        }
        best.push(cheapest);
    }
    let mut ranges = Vec::new();
    let mut end = tokens.len();
    while end > 0 {
        let start = best[end].1;
        ranges.push(start..end);
        end = start;
    }
    ranges.reverse();
    ranges
}

/// Lines that the tokens take when each is filled before the next is begun.
fn lines_needed(tokens: &[Token], line_width: usize, label_width: usize) -> usize {
    let mut lines = 1;
    let mut used = label_width;
    for (index, token) in tokens.iter().enumerate() {
        let space = usize::from(token.space_before && index > 0);
        if index > 0 && used + space + token.width > line_width {
            lines += 1;
            used = token.width;
        } else {
            used += space + token.width;
        }
    }
    lines
}

/// Divides a cue's tokens into the fewest lines, of even length, broken at the
/// best places.
fn balanced(tokens: &[Token], line_width: usize, max_lines: usize, label_width: usize) -> Vec<Line> {
    let lines = lines_needed(tokens, line_width, label_width).min(max_lines);
    let mut widths: Vec<usize> = vec![0];
    for (index, token) in tokens.iter().enumerate() {
        let space = usize::from(token.space_before && index > 0);
        widths.push(widths[index] + space + token.width);
    }
    let line = |start: usize, end: usize| {
        let space = usize::from(start > 0 && tokens[start].space_before);
        widths[end] - widths[start] - if start > 0 { space } else { 0 }
            + if start == 0 { label_width } else { 0 }
    };
    let even = (widths[tokens.len()] + label_width).div_ceil(lines);
    // best[n][end]: the cheapest way to put the first `end` tokens on n lines.
    let mut best = vec![vec![(usize::MAX, 0); tokens.len() + 1]; lines + 1];
    best[0][0] = (0, 0);
    for count in 1..=lines {
        for end in 1..=tokens.len() {
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
                let place = if end < tokens.len() { cost_after(tokens, end - 1) } else { 0 };
                let cost = before + uneven + place;
                if cost < best[count][end].0 {
                    best[count][end] = (cost, start);
                }
            }
        }
    }
    let mut ends = vec![tokens.len()];
    for count in (1..=lines).rev() {
        let end = ends.last().copied().unwrap_or(0);
        ends.push(best[count][end].1);
    }
    ends.reverse();
    ends.windows(2)
        .filter(|pair| pair[0] < pair[1])
        .map(|pair| Line { label: None, pieces: pieces(&tokens[pair[0]..pair[1]]) })
        .collect()
}

fn pieces(tokens: &[Token]) -> Vec<Piece> {
    tokens
        .iter()
        .enumerate()
        .map(|(index, token)| {
            let space = if token.space_before && index > 0 { " " } else { "" };
            Piece { text: format!("{space}{}", token.text), start: token.timed.then_some(token.start) }
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
            .map(|cue| cue.lines.iter().map(Line::text).collect::<Vec<_>>().join("|"))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn lines_break_where_a_reader_would() {
        check("Short enough.", 42, 2, &["Short enough."]);
        // Even lines rather than a full one and a rest.
        check("one two three four five six", 20, 2, &["one two three|four five six"]);
        // After a full stop rather than in the middle.
        check("I came early. Then I saw it all.", 20, 2, &["I came early.|Then I saw it all."]);
        check("I came. I saw. I won it all.", 10, 2, &["I came.|I saw.", "I won|it all."]);
        check("First this, then that", 16, 2, &["First this,|then that"]);
        // Full-width characters take two columns; closing signs are not pushed to a new line.
        check("これは字幕のテストです。", 12, 2, &["これは字幕の|テストです。"]);
        // Longer than a line.
        check("Donaudampfschifffahrtsgesellschaft", 12, 3, &["Donaudampfsc|hifffahrtsge|sellschaft"]);
        // More than a cue holds.
        check("a b c d e f g h", 3, 2, &["a b|c d", "e f|g h"]);
        check("", 10, 2, &[]);
    }

    #[test]
    fn cues_stay_long_enough_to_be_read_where_there_is_room() {
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
        // Shown for the shortest time; up to the gap before the next; up to the end of the file.
        assert_eq!(times, [(0, 833), (5_000, 5_440), (5_520, 6_100)]);
    }
}
