//! The list of places in a transcript that should be checked by listening, the
//! most doubtful first.

use crate::edit::SegmentId;
use crate::{Segment, Span, Suspicion, Transcript, Word};

/// A word with a lower probability than this is shown as uncertain.
pub const UNSURE_BELOW: f32 = 0.5;

/// How likely each reason means an error. These are ranks, not measurements:
/// speech without text comes first, text over silence is nearly always
/// invented, and a low probability alone is the weakest sign.
const GAP: f32 = 1.0;
const OVER_SILENCE: f32 = 0.95;
const LOOP: f32 = 0.9;
const TOO_FAST: f32 = 0.8;
const LOW_CONFIDENCE: f32 = 0.6;

/// A doubtful segment, or a stretch of speech without text.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewItem {
    /// The segment; `None` for speech without text.
    pub segment: Option<SegmentId>,
    /// Where in the recording.
    pub span: Span,
    /// Why it is doubtful, at least one reason.
    pub reasons: Vec<ReviewReason>,
    /// How likely it holds an error, 0 to 1.
    pub doubt: f32,
}

/// Why a place should be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewReason {
    /// Speech without text.
    Gap,
    /// The engine flagged the segment.
    Suspicion(Suspicion),
    /// The segment has words with a lower probability than [`UNSURE_BELOW`].
    UnsureWords,
}

/// All doubtful places, ordered by doubt, then by time. The segments need ids,
/// see [`assign_ids`](crate::edit::assign_ids).
pub fn review(transcript: &Transcript) -> Vec<ReviewItem> {
    let gaps = transcript.completeness.gaps.iter().map(|gap| ReviewItem {
        segment: None,
        span: *gap,
        reasons: vec![ReviewReason::Gap],
        doubt: GAP,
    });
    let mut items: Vec<ReviewItem> =
        gaps.chain(transcript.segments.iter().filter_map(review_segment)).collect();
    items.sort_by(|a, b| b.doubt.total_cmp(&a.doubt).then(a.span.start.cmp(&b.span.start)));
    items
}

fn review_segment(segment: &Segment) -> Option<ReviewItem> {
    let mut reasons: Vec<ReviewReason> =
        segment.suspicions.iter().copied().map(ReviewReason::Suspicion).collect();
    if segment.words.iter().any(is_unsure) {
        reasons.push(ReviewReason::UnsureWords);
    }
    let flags = segment.suspicions.iter().map(|suspicion| 1.0 - weight(*suspicion));
    // The reasons count as independent: the segment is right if none of them is an error.
    let unsure = segment.words.iter().filter(|word| is_unsure(word)).map(|word| word.probability);
    let right: f32 = flags.chain(unsure).map(|right| right.clamp(0.0, 1.0)).product();
    (!reasons.is_empty()).then(|| ReviewItem {
        segment: Some(segment.id),
        span: Span::new(segment.start, segment.end),
        reasons,
        doubt: 1.0 - right,
    })
}

fn is_unsure(word: &Word) -> bool {
    word.probability < UNSURE_BELOW
}

fn weight(suspicion: Suspicion) -> f32 {
    match suspicion {
        Suspicion::OverSilence => OVER_SILENCE,
        Suspicion::Loop => LOOP,
        Suspicion::TooFast => TOO_FAST,
        Suspicion::LowConfidence => LOW_CONFIDENCE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::edit::{Edit, apply, inverse};
    use crate::export::tests::transcript;

    /// A segment of one second that starts at second `id`.
    fn segment(id: SegmentId, probabilities: &[f32], suspicions: &[Suspicion]) -> Segment {
        let word = |probability: &f32| Word { probability: *probability, ..Word::default() };
        let Span { start, end } = seconds(id, id + 1);
        let (words, suspicions) = (probabilities.iter().map(word).collect(), suspicions.to_vec());
        Segment { id, start, end, words, suspicions, ..Segment::default() }
    }

    fn seconds(start: u32, end: u32) -> Span {
        Span::new(Time::from_millis(start * 1000), Time::from_millis(end * 1000))
    }

    fn order(segments: &[Segment], gaps: &[Span]) -> Vec<Option<SegmentId>> {
        let mut transcript = transcript(segments.to_vec());
        transcript.completeness.gaps = gaps.to_vec();
        let found = review(&transcript);
        assert!(found.iter().all(|item| (0.0..=1.0).contains(&item.doubt)), "{found:?}");
        found.into_iter().map(|item| item.segment).collect()
    }

    #[test]
    fn doubtful_places_are_listed_by_doubt_and_the_others_left_out() {
        use Suspicion::*;
        /// Segments, gaps, and the segments of the items in order.
        type Case<'a> = (&'a [Segment], &'a [Span], &'a [Option<SegmentId>]);
        let cases: &[Case] = &[
            (&[segment(1, &[0.9, 0.5], &[]), segment(2, &[], &[])], &[], &[]),
            // A less probable word before a more probable one, several words before one of them.
            (&[segment(1, &[0.4, 0.9], &[]), segment(2, &[0.9, 0.1], &[])], &[], &[Some(2), Some(1)]),
            (&[segment(1, &[0.3, 0.9], &[]), segment(2, &[0.4, 0.4], &[])], &[], &[Some(2), Some(1)]),
            // Equal doubt: in the order of the recording.
            (&[segment(1, &[0.4], &[]), segment(2, &[0.4], &[])], &[], &[Some(1), Some(2)]),
            // Missing and invented text before uncertain text.
            (
                &[
                    segment(1, &[0.45], &[]),
                    segment(2, &[0.9], &[LowConfidence]),
                    segment(3, &[0.9], &[TooFast]),
                    segment(4, &[], &[Loop]),
                    segment(5, &[0.9], &[OverSilence]),
                ],
                &[seconds(20, 23)],
                &[None, Some(5), Some(4), Some(3), Some(2), Some(1)],
            ),
            // Reasons add up.
            (
                &[segment(1, &[], &[Loop]), segment(2, &[0.2], &[Loop, LowConfidence])],
                &[],
                &[Some(2), Some(1)],
            ),
            // Invalid probabilities do no harm.
            (&[segment(1, &[-1.0], &[]), segment(2, &[f32::NAN], &[])], &[], &[Some(1)]),
        ];
        for (segments, gaps, expected) in cases {
            assert_eq!(order(segments, gaps), *expected, "{segments:?}");
        }
    }

    #[test]
    fn items_have_reasons_and_times() {
        let flagged = transcript(vec![segment(1, &[0.2], &[Suspicion::Loop])]);
        assert_eq!(
            review(&flagged)[0].reasons,
            [ReviewReason::Suspicion(Suspicion::Loop), ReviewReason::UnsureWords]
        );
        assert_eq!(review(&flagged)[0].span, seconds(1, 2));
    }

    #[test]
    fn accepted_items_leave_the_list_until_the_edit_is_undone() {
        let mut talk = transcript(vec![segment(1, &[0.2], &[Suspicion::Loop])]);
        talk.completeness.gaps = vec![seconds(5, 8), seconds(9, 12)];
        let begun = talk.clone();
        let mut done = Vec::new();
        let accepted = [
            (Edit::Accept { segments: vec![1] }, 2),
            (Edit::AcceptGap { gap: seconds(5, 8) }, 1),
            // The gap was accepted already.
            (Edit::AcceptGap { gap: seconds(5, 8) }, 1),
            (Edit::AcceptGap { gap: seconds(9, 12) }, 0),
        ];
        for (edit, left) in accepted {
            let changes = edit.plan(&talk).unwrap_or_default();
            apply(&mut talk, &changes).unwrap();
            assert_eq!(review(&talk).len(), left, "{edit:?}");
            done.push(changes);
        }
        for changes in done.iter().rev() {
            apply(&mut talk, &inverse(changes.clone())).unwrap();
        }
        assert_eq!(talk, begun);
    }
}
