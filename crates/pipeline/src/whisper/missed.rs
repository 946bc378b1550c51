//! Speech that a window left without text.

use std::ops::Range;

use super::FRAMES_PER_SECOND;
use super::word_times::Passage;

/// Speech of this length that a window left without text is looked at again, in frames.
const MISSED_SPEECH: usize = 150;

/// Where speech begins that a window passed over after its last text. `None`
/// where there is too little of it to be worth another look.
pub fn first_missed(speech: &[Range<usize>], written_to: f64, seek: usize, next: usize) -> Option<usize> {
    let end = (written_to * FRAMES_PER_SECOND).ceil() as usize;
    // Without progress the same window would come again.
    if end < seek + MISSED_SPEECH || end >= next {
        return None;
    }
    let missed = |region: &Range<usize>| region.end.min(next).saturating_sub(region.start.max(end));
    let total: usize = speech.iter().map(missed).sum();
    (total >= MISSED_SPEECH)
        .then(|| speech.iter().find(|region| missed(region) > 0))
        .flatten()
        .map(|region| region.start.max(end))
}

/// A part of a window that is listened to again: the numbers of its passages, and the frames that are theirs alone, up
/// to the passages before and behind them.
pub type Part = (Range<usize>, Range<usize>);

/// Passages that have voice for much more text than theirs, by the pace of the median passage: a sentence may be missing
/// within them, or be another one. For each the parts of `window` to listen to, one after the other, until one has what
/// is missing: with the passage behind it, since a sentence is heard better beside others, and alone, since a sentence
/// that is skipped beside others may be heard without them. `lengths` are those of the passages' texts, in characters.
pub fn sparse(
    voiced: &[Range<usize>],
    passages: &[Passage],
    lengths: &[usize],
    window: Range<usize>,
) -> Vec<Vec<Part>> {
    let own: Vec<Range<usize>> = passages
        .iter()
        .map(|passage| {
            // Words at a passage's ends may be found in the sentences beside it.
            let (start, end) = passage.written();
            (start * FRAMES_PER_SECOND) as usize..(end * FRAMES_PER_SECOND) as usize
        })
        .collect();
    let voice: Vec<usize> = own.iter().map(|frames| voice_in(voiced, frames)).collect();
    let Some(pace) = pace(&voice, lengths) else { return Vec::new() };
    let part = |numbers: Range<usize>| {
        let before = numbers.start.checked_sub(1).and_then(|before| own.get(before));
        let start = before.map_or(window.start, |before| before.end.max(window.start));
        let end = own.get(numbers.end).map_or(window.end, |behind| behind.start.min(window.end));
        (start < end).then_some((numbers, start..end))
    };
    let mut found: Vec<Vec<Part>> = Vec::new();
    let mut looked_at = 0;
    for number in 0..own.len() {
        if number < looked_at || !is_unexplained(voice[number], lengths[number], pace) {
            continue;
        }
        let mut pairs = vec![number..own.len().min(number + 2), number..number + 1];
        pairs.dedup();
        let parts: Vec<Part> = pairs.into_iter().filter_map(part).collect();
        if let Some((numbers, _)) = parts.first() {
            looked_at = numbers.end;
            found.push(parts);
        }
    }
    found
}

/// Frames with voice.
pub fn voice_in(voiced: &[Range<usize>], frames: &Range<usize>) -> usize {
    voiced.iter().map(|run| run.end.min(frames.end).saturating_sub(run.start.max(frames.start))).sum()
}

/// Frames of voice per character in the median passage; `None` where there are too few to tell.
fn pace(voice: &[usize], lengths: &[usize]) -> Option<f64> {
    /// Of three, one may be wrong.
    const FEWEST: usize = 3;
    let spoken = voice.iter().zip(lengths).filter(|(_, length)| **length > 0);
    let mut paces: Vec<f64> = spoken.map(|(voice, length)| *voice as f64 / *length as f64).collect();
    paces.sort_by(f64::total_cmp);
    (paces.len() >= FEWEST).then(|| paces[paces.len() / 2])
}

/// Whether so much voice is left over by a text that it would be looked at again without a text.
fn is_unexplained(voice: usize, length: usize, pace: f64) -> bool {
    voice as f64 - length as f64 * pace >= MISSED_SPEECH as f64
}

/// Stretches of speech from `start` to the end of the last passage, in frames,
/// that lie under no passage and are long enough to be looked at again.
pub fn gaps(speech: &[Range<usize>], passages: &[Passage], start: usize) -> Vec<Range<usize>> {
    let frame = |seconds: f64| (seconds * FRAMES_PER_SECOND) as usize;
    let mut gaps = Vec::new();
    let mut from = start;
    for passage in passages {
        let (begin, end) = passage.reach();
        let to = frame(begin);
        for region in speech.iter().filter(|region| region.end > from && region.start < to) {
            let gap = region.start.max(from)..region.end.min(to);
            if gap.len() >= MISSED_SPEECH {
                gaps.push(gap);
            }
        }
        from = from.max(frame(end));
    }
    gaps
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges that happen to have one")]
mod tests {
    use super::*;

    #[test]
    fn a_passage_over_a_sentence_without_text_is_sparse() {
        // Seconds of passages, characters of their texts, frames of the window, what is sparse.
        type Case<'a> = (&'a [(f64, f64)], &'a [usize], Range<usize>, &'a [&'a [Part]]);
        let cases: &[Case] = &[
            (&[(0.0, 3.0), (3.5, 6.5), (7.0, 10.0)], &[50, 52, 48], 0..1100, &[]),
            // Slow, but less than a second and a half more than its text takes.
            (&[(0.0, 3.0), (3.5, 6.5), (7.0, 10.0)], &[50, 50, 30], 0..1100, &[]),
            (&[(0.0, 3.0), (3.5, 6.5), (7.0, 11.0)], &[50, 50, 40], 0..1200, &[&[(2..3, 650..1200)]]),
            (
                &[(0.0, 3.0), (3.5, 6.5), (7.0, 10.0)],
                &[50, 15, 50],
                0..1100,
                &[&[(1..3, 300..1100), (1..2, 300..700)]],
            ),
            (
                &[(0.0, 3.0), (3.5, 6.5), (7.0, 10.0)],
                &[15, 50, 50],
                0..1100,
                &[&[(0..2, 0..700), (0..1, 0..350)]],
            ),
            // Too few to tell whether the others are fast or this one is slow.
            (&[(0.0, 3.0), (3.5, 6.5)], &[50, 10], 0..800, &[]),
        ];
        for (passages, lengths, window, expected) in cases {
            let passages: Vec<Passage> =
                passages.iter().map(|(start, end)| Passage::new(Vec::new(), *start, *end)).collect();
            let found = sparse(&[0..2000], &passages, lengths, window.clone());
            assert_eq!(found, *expected, "{lengths:?}");
            // Silence takes no text.
            assert!(sparse(&[], &passages, lengths, window.clone()).is_empty());
        }
    }
}
