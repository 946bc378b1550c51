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
