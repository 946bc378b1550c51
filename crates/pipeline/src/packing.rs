//! Speech packed into windows that begin and end in pauses. What a window
//! holds depends on the recording alone, not on how many are decoded together
//! nor on what was decoded before. Where the last window but one ends depends on
//! where the speech ends, too.

use std::ops::Range;

use audio::{AudioError, HOP, Recording};
use transcript::Span;

use crate::steps::{Speech, frame};

/// A window that can't hold all the speech that follows ends in the longest
/// pause of its last third: a longer pause is a safer cut than a later one,
/// unless a later one saves a window (see [`before_rest`]).
const SEARCHED_SHARE: usize = 3;
/// A pause within speech that a window may end in, in frames: shorter ones are
/// those within words.
const SHORTEST_PAUSE: usize = 25;
/// Longer than pauses within a sentence, in frames.
const LONGEST_WITHIN: usize = 60;
/// Width of the quietest place of speech without a pause, in frames.
const QUIET_PLACE: usize = 20;

/// How many frames of speech pieces have at most.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// The first of all: its text is what one waits for.
    pub first: usize,
    /// Each other one.
    pub others: usize,
}

/// Windows that hold all speech of the recording, in order of time, not
/// overlapping. With `apart` no pause between two people who talk lies within
/// a window.
///
/// `speech` and `voiced` are the regions of speech and the runs of voice in them, in frames, `within` is what is
/// listened to.
pub fn pack(
    recording: &Recording,
    speech: Speech,
    voiced: &[Range<usize>],
    within: &Range<usize>,
    longest: usize,
    is_apart: bool,
) -> Result<Vec<Range<usize>>, AudioError> {
    let everything = std::slice::from_ref(within);
    let content = within.end;
    let regions = speech.unwrap_or(everything);
    let pauses = pauses(voiced, content);
    let mut quietest = |frames| quietest(recording, frames);
    if !is_apart {
        return fill(regions, &pauses, content, longest, &mut quietest);
    }
    let regions = apart(voiced);
    let mut windows = Vec::new();
    for (number, region) in regions.iter().enumerate() {
        let next = regions.get(number + 1).map_or(content, |next| next.start.min(content));
        windows.extend(fill(std::slice::from_ref(region), &pauses, next, longest, &mut quietest)?);
    }
    Ok(windows)
}

/// What is listened to, in frames: all of the recording, or a part of it.
pub fn heard(recording: &Recording, span: Option<Span>) -> Range<usize> {
    let content = recording.pcm.content_frames();
    span.map_or(0..content, |span| frame(span.start).min(content)..frame(span.end).min(content))
}

/// Where a voice was heard within `within`, without the padding of regions of speech, in frames.
pub fn voiced(recording: &Recording, within: &Range<usize>) -> Vec<Range<usize>> {
    let hop = HOP as u64;
    let runs = recording.voiced.iter().map(|run| (run.start / hop) as usize..run.end.div_ceil(hop) as usize);
    let runs = runs.map(|run| run.start.max(within.start)..run.end.min(within.end));
    runs.filter(|run| !run.is_empty()).collect()
}

/// Silence longer than this before the next speech is skipped, in frames.
/// Shorter pauses stay, so that a window begins as a model has learned it.
const SKIPPED_SILENCE: usize = 100;

/// Where a window begins that may begin at `seek` at the earliest.
pub fn next_start(speech: &[Range<usize>], seek: usize) -> Option<usize> {
    let next = speech.iter().find(|region| region.end > seek)?;
    Some(if next.start > seek + SKIPPED_SILENCE { next.start } else { seek })
}

/// Speech cut wherever one speaker may have given way to another, each stretch
/// from the middle of the pause before it.
fn apart(voiced: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for run in voiced {
        match regions.last_mut() {
            Some(last) if run.start < last.end + LONGEST_WITHIN => last.end = run.end,
            last => {
                let before = last.map_or(0, |last| last.end);
                regions.push(run.start - (run.start - before).min(LONGEST_WITHIN) / 2..run.end);
            }
        }
    }
    regions
}

/// `quietest` is asked where to cut speech without a pause.
fn fill<E>(
    regions: &[Range<usize>],
    pauses: &[Range<usize>],
    content: usize,
    longest: usize,
    quietest: &mut dyn FnMut(Range<usize>) -> Result<usize, E>,
) -> Result<Vec<Range<usize>>, E> {
    let last = end_of_speech(regions, content).min(content);
    let mut windows = Vec::new();
    let mut done = 0;
    while let Some(start) = next_start(regions, done).filter(|start| *start < content) {
        let limit = start + longest;
        let end = end_of_speech(regions, limit).min(content);
        let cut = if end <= limit {
            end
        } else {
            let place = cut_before(limit, longest, pauses, quietest)?;
            let holds_rest = next_start(regions, place).is_none_or(|next| next + longest >= last);
            if holds_rest { place } else { before_rest(limit, last, longest, pauses).unwrap_or(place) }
        };
        // The silence behind the window's last speech is heard as it is.
        let next = next_start(regions, cut).unwrap_or(content).min(content);
        windows.push(start..next.min(limit));
        done = cut;
    }
    Ok(windows)
}

/// The end of a sentence behind which one window holds the rest of the speech, up to `last`. `None` where there is none in
/// the last third of the window that reaches to `limit`. A nearly empty window takes the encoder as long as a full one.
fn before_rest(limit: usize, last: usize, longest: usize, pauses: &[Range<usize>]) -> Option<usize> {
    let earliest = last.saturating_sub(longest).max(limit - longest / SEARCHED_SHARE);
    if earliest >= limit {
        return None;
    }
    let between_sentences = |pause: &&Range<usize>| pause.len() >= LONGEST_WITHIN;
    let pauses: Vec<_> = pauses.iter().filter(between_sentences).cloned().collect();
    longest_pause(&pauses, &(earliest..limit))
}

/// Where the last region of speech ends that begins before `limit`, in frames.
fn end_of_speech(regions: &[Range<usize>], limit: usize) -> usize {
    let begun = regions.partition_point(|region| region.start < limit);
    regions[..begun].last().map_or(0, |last| last.end)
}

/// Where a window of `longest` frames ends that can't hold all that follows.
fn cut_before<E>(
    limit: usize,
    longest: usize,
    pauses: &[Range<usize>],
    quietest: &mut dyn FnMut(Range<usize>) -> Result<usize, E>,
) -> Result<usize, E> {
    let searched = limit - longest / SEARCHED_SHARE..limit;
    longest_pause(pauses, &searched).map_or_else(|| quietest(searched), Ok)
}

/// Where there is such a pause, speech is cut so that both parts have at least so many fifths of the longest piece. With
/// smaller parts more words are wrong; with larger ones a cut changes pieces farther away.
const SHORTEST_FIFTHS: usize = 2;

/// Pieces that hold all speech of the recording, in order of time, not overlapping, for a model whose time follows from
/// the length of what it hears. `speech`, `voiced` and `within` are those of [`pack`].
///
/// Speech that is too long for a piece is cut in its longest pause, and so are the parts. Where a piece begins thus
/// follows from the sound around it. Of a recording of which a part is heard, pieces more than a minute or so away from
/// the part's ends are mostly those of the whole; where many pauses are equally long, a change may reach farther. Where
/// there is no pause, speech is cut as [`pack`] cuts it, whatever is left behind it.
pub fn cut_in_longest_pauses(
    recording: &Recording,
    speech: Speech,
    voiced: &[Range<usize>],
    within: &Range<usize>,
    longest: Lengths,
) -> Result<Vec<Range<usize>>, AudioError> {
    let everything = std::slice::from_ref(within);
    let pauses = pauses(voiced, within.end);
    let mut quietest = |frames| quietest(recording, frames);
    cut(speech.unwrap_or(everything), &pauses, within.end, longest, &mut quietest)
}

/// `quietest` is asked where to cut speech without a pause.
fn cut<E>(
    regions: &[Range<usize>],
    pauses: &[Range<usize>],
    content: usize,
    longest: Lengths,
    quietest: &mut dyn FnMut(Range<usize>) -> Result<usize, E>,
) -> Result<Vec<Range<usize>>, E> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    // What is still to be cut, the first on top.
    let mut stretches: Vec<_> = std::iter::once(0..content).collect();
    while let Some(stretch) = stretches.pop() {
        let Some(start) = next_start(regions, stretch.start).filter(|start| *start < stretch.end) else {
            continue;
        };
        let end = end_of_speech(regions, stretch.end).min(stretch.end);
        let most = longest.others;
        let place = if pieces.is_empty() && end > start + longest.first {
            cut_before(start + longest.first, longest.first, pauses, quietest)?
        } else if end > start + most {
            let shortest = most * SHORTEST_FIFTHS / 5;
            match longest_pause(pauses, &(start + shortest..end - shortest)) {
                Some(place) => place,
                None => cut_before(start + most, most, pauses, quietest)?,
            }
        } else {
            // The silence behind the piece's last speech is heard as it is.
            let next = next_start(regions, stretch.end).unwrap_or(content).min(content);
            pieces.push(start..next.min(start + most));
            continue;
        };
        stretches.push(place..stretch.end);
        stretches.push(stretch.start..place);
    }
    Ok(pieces)
}

/// What lies between the runs of voice.
fn pauses(voiced: &[Range<usize>], content: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(voiced.iter().map(|run| run.end));
    let ends = voiced.iter().map(|run| run.start).chain([content]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|pause| pause.len() >= SHORTEST_PAUSE).collect()
}

/// The middle of the longest pause that reaches into `searched`; of equals the last.
fn longest_pause(pauses: &[Range<usize>], searched: &Range<usize>) -> Option<usize> {
    let first = pauses.partition_point(|pause| pause.end <= searched.start);
    pauses[first..]
        .iter()
        .take_while(|pause| pause.start < searched.end)
        .map(|pause| pause.start.max(searched.start)..pause.end.min(searched.end))
        .filter(|pause| pause.len() >= SHORTEST_PAUSE)
        .max_by_key(|pause| pause.len())
        .map(|pause| pause.start + pause.len() / 2)
}

/// Where within `frames` it is quietest.
fn quietest(recording: &Recording, frames: Range<usize>) -> Result<usize, AudioError> {
    let mut samples = vec![0.0; frames.len() * HOP];
    recording.pcm.read((frames.start * HOP) as i64, &mut samples)?;
    let energies: Vec<f64> = samples
        .chunks(HOP)
        .map(|frame| frame.iter().map(|sample| f64::from(*sample).powi(2)).sum())
        .collect();
    Ok(frames.start + quiet_place(&energies).min(frames.len()))
}

/// The middle of the quietest 0.2 s, of equals of the last: digital silence is there more than once.
fn quiet_place(energies: &[f64]) -> usize {
    let place = energies
        .windows(QUIET_PLACE.min(energies.len()))
        .map(|place| place.iter().sum::<f64>())
        .enumerate()
        .rev()
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(0, |(place, _)| place);
    place + QUIET_PLACE / 2
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of regions that happen to have one")]
mod tests {
    use super::*;

    #[test]
    fn stretches_apart_begin_in_their_own_pause() {
        #[allow(clippy::type_complexity)]
        let cases: &[(&[Range<usize>], &[Range<usize>])] = &[
            (&[], &[]),
            (&[10..90], &[5..90]),
            // A breath, then another speaker.
            (&[100..200, 250..300, 400..500], &[70..300, 370..500]),
            (&[100..200, 262..300], &[70..200, 232..300]),
        ];
        for (voiced, expected) in cases {
            assert_eq!(apart(voiced), *expected, "{voiced:?}");
        }
    }

    #[test]
    fn windows_hold_all_speech_and_end_in_pauses() {
        type Ranges<'a> = &'a [Range<usize>];
        #[rustfmt::skip]
        let cases: &[(&str, Ranges, Ranges, Ranges)] = &[
            ("nothing", &[], &[], &[]),
            // Silence before and behind it is heard as far as it reaches.
            ("one region", &[80..900], &[120..860], &[0..3000]),
            ("behind long silence", &[180..900], &[220..860], &[180..3180]),
            ("two that fit one window", &[100..900, 1500..2900], &[140..860, 1540..2860], &[0..3000]),
            ("two that don't", &[100..2900, 3100..5000], &[140..2860, 3140..4960], &[0..3000, 3100..6100]),
            // The second begins within reach: the pause between them is the longest.
            ("a region that reaches beyond", &[0..2500, 2800..4000], &[0..2460, 2840..4000], &[0..2800, 2800..5800]),
            ("a long region", &[0..7000], &[0..2100, 2140..2700, 2800..5200, 5230..7000], &[0..2750, 2750..5215, 5215..8000]),
            // No pause: cut where it is quietest (asked below).
            ("no pause", &[0..4000], &[0..4000], &[0..2500, 2500..5500]),
            ("a pause within a word", &[0..4000], &[0..2200, 2210..4000], &[0..2500, 2500..5500]),
            // An earlier pause is longer, but would leave more than one window.
            ("one more holds the rest", &[0..5500], &[0..2200, 2400..2520, 2590..5500], &[0..2555, 2555..5555]),
            ("partly too early", &[0..5500], &[0..2200, 2300..2465, 2530..5500], &[0..2515, 2515..5515]),
            ("no sentence ends there", &[0..5500], &[0..2200, 2400..2600, 2630..5500], &[0..2300, 2300..4800, 4800..7800]),
            // The next window begins behind the silence that the longest pause is part of.
            ("the longest leaves one", &[0..2000, 2690..5650], &[0..1960, 2730..2780, 2850..5610], &[0..2690, 2690..5690]),
            ("more than two", &[0..7990], &[0..2200, 2400..2700, 2770..5200, 5290..7990], &[0..2300, 2300..5245, 5245..8000]),
            ("beyond the end", &[0..8005], &[0..2500, 2600..4900, 5000..8000], &[0..2550, 2550..4950, 4950..7450, 7450..8000]),
        ];
        for (name, regions, voiced, expected) in cases {
            let content = 8000;
            let mut quietest = |frames: Range<usize>| Ok::<_, ()>(frames.start + 500);
            let windows = fill(regions, &pauses(voiced, content), content, 3000, &mut quietest).unwrap();
            assert_eq!(windows, *expected, "{name}");
            assert!(windows.iter().all(|window| window.len() <= 3000), "{name}");
        }
    }

    const LENGTHS: Lengths = Lengths { first: 1000, others: 3000 };

    fn cut_up(regions: &[Range<usize>], voiced: &[Range<usize>], content: usize) -> Vec<Range<usize>> {
        let mut quietest = |frames: Range<usize>| Ok::<_, ()>(frames.start + 200);
        cut(regions, &pauses(voiced, content), content, LENGTHS, &mut quietest).unwrap()
    }

    #[test]
    fn pieces_hold_all_speech_and_end_in_the_longest_pauses() {
        type Ranges<'a> = &'a [Range<usize>];
        #[rustfmt::skip]
        let cases: &[(&str, Ranges, Ranges, Ranges)] = &[
            ("nothing", &[], &[], &[]),
            ("one region", &[80..900], &[120..860], &[0..3000]),
            ("the first is shorter", &[0..2900], &[0..880, 910..1200, 1300..2860], &[0..895, 895..3895]),
            ("twice the longest", &[0..5900], &[0..900, 1300..2950, 2990..4000, 4030..5900], &[0..950, 950..2970, 2970..5970]),
            ("behind long silence", &[0..900, 6000..8000], &[0..860, 6040..8000], &[0..3000, 6000..8000]),
            ("no pause", &[0..4000], &[0..4000], &[0..867, 867..3067, 3067..6067]),
        ];
        for (name, regions, voiced, expected) in cases {
            let pieces = cut_up(regions, voiced, 8000);
            assert_eq!(pieces, *expected, "{name}");
        }
    }

    /// Pauses of all lengths, as speech has them. Where many were equal, more pieces would differ.
    #[test]
    fn a_part_of_a_recording_has_the_pieces_of_the_whole_but_at_its_ends() {
        let mut state = 11u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as usize
        };
        let mut voiced = Vec::new();
        let mut at = 0;
        while at < 360_000 {
            let start = at + 26 + random(90);
            at = start + 100 + random(600);
            voiced.push(start..at);
        }
        let whole = cut_up(std::slice::from_ref(&(0..at)), &voiced, at);
        assert!(whole.windows(2).all(|pair| pair[0].end == pair[1].start), "{whole:?}");
        assert!(whole.iter().all(|piece| piece.len() <= 3000), "{whole:?}");
        let mean = at / whole.len();
        assert!((1500..3000).contains(&mean), "{mean}");
        for part in [0..123_456, 100_000..200_000, 222_222..at] {
            let inside = |run: &Range<usize>| run.start.max(part.start)..run.end.min(part.end);
            let voiced: Vec<_> = voiced.iter().map(inside).filter(|run| !run.is_empty()).collect();
            let pieces = cut_up(std::slice::from_ref(&part), &voiced, part.end);
            let inner = part.start + 6000..part.end - 6000;
            let of = |pieces: &[Range<usize>]| -> Vec<Range<usize>> {
                let within = |piece: &&Range<usize>| inner.start <= piece.start && piece.end <= inner.end;
                pieces.iter().filter(within).cloned().collect()
            };
            assert_eq!(of(&pieces), of(&whole), "{part:?}");
            assert!(of(&pieces).len() > 20, "{part:?}");
        }
    }

    #[test]
    fn speech_without_a_pause_is_cut_in_the_last_of_the_quietest_places() {
        let with_quiet = |quiet: &[Range<usize>]| -> Vec<f64> {
            (0..1000)
                .map(|frame| if quiet.iter().any(|range| range.contains(&frame)) { 0.0 } else { 1.0 })
                .collect()
        };
        let cases: &[(&[Range<usize>], usize)] = &[
            (&[300..320], 310),
            (&[100..120, 700..720], 710),
            (&[100..500], 490),
            // Too short to be told from a stop within a word.
            (&[200..220, 900..910], 210),
            (&[], 990),
        ];
        for (quiet, expected) in cases {
            assert_eq!(quiet_place(&with_quiet(quiet)), *expected, "{quiet:?}");
        }
        assert_eq!(quiet_place(&[1.0; 5]), QUIET_PLACE / 2, "shorter than what is looked for");
    }
}
