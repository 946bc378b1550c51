//! What of a transcript somebody should listen to, the most doubtful first.

use crate::edit::SegmentId;
use crate::{Segment, Span, Suspicion, Transcript, Word};

/// A word of less probability than this is shown as uncertain.
pub const UNSURE: f32 = 0.5;

/// How likely a flag means that something is wrong. Ranks, not measurements:
/// speech without text comes first, text over silence is nearly
/// always invented, and the model's own doubt says least.
const GAP: f32 = 1.0;
const OVER_SILENCE: f32 = 0.95;
const LOOP: f32 = 0.9;
const TOO_FAST: f32 = 0.8;
const LOW_CONFIDENCE: f32 = 0.6;

/// A passage that should be listened to.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// `None`: speech without text.
    pub segment: Option<SegmentId>,
    pub span: Span,
    pub reasons: Vec<Reason>,
    /// How likely something in it is wrong, 0 to 1.
    pub doubt: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Speech was heard, and there is no text.
    Gap,
    Suspicion(Suspicion),
    /// Words of less probability than [`UNSURE`].
    UnsureWords,
}

/// All passages that anything speaks against, in order of doubt, then of time.
/// Segments have to be numbered.
pub fn review(transcript: &Transcript) -> Vec<Passage> {
    let gaps = transcript.completeness.gaps.iter().map(|gap| Passage {
        segment: None,
        span: *gap,
        reasons: vec![Reason::Gap],
        doubt: GAP,
    });
    let mut passages: Vec<Passage> = gaps.chain(transcript.segments.iter().filter_map(of_segment)).collect();
    passages.sort_by(|a, b| b.doubt.total_cmp(&a.doubt).then(a.span.start.cmp(&b.span.start)));
    passages
}

fn of_segment(segment: &Segment) -> Option<Passage> {
    let mut reasons: Vec<Reason> = segment.suspicions.iter().copied().map(Reason::Suspicion).collect();
    if segment.words.iter().any(is_unsure) {
        reasons.push(Reason::UnsureWords);
    }
    let flags = segment.suspicions.iter().map(|suspicion| 1.0 - weight(*suspicion));
    // Each speaks for itself: all is right where none of them is wrong.
    let unsure = segment.words.iter().filter(|word| is_unsure(word)).map(|word| word.probability);
    let right: f32 = flags.chain(unsure).map(|right| right.clamp(0.0, 1.0)).product();
    (!reasons.is_empty()).then(|| Passage {
        segment: Some(segment.id),
        span: Span::new(segment.start, segment.end),
        reasons,
        doubt: 1.0 - right,
    })
}

fn is_unsure(word: &Word) -> bool {
    word.probability < UNSURE
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

    /// A second each, at as many seconds as its number says.
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
        assert!(found.iter().all(|passage| (0.0..=1.0).contains(&passage.doubt)), "{found:?}");
        found.into_iter().map(|passage| passage.segment).collect()
    }

    #[test]
    fn the_most_doubtful_comes_first_and_what_nothing_speaks_against_not_at_all() {
        use Suspicion::*;
        /// Segments, gaps, and the order of what is found in them.
        type Case<'a> = (&'a [Segment], &'a [Span], &'a [Option<SegmentId>]);
        let cases: &[Case] = &[
            (&[segment(1, &[0.9, 0.5], &[]), segment(2, &[], &[])], &[], &[]),
            // The less probable word, and several before one of them.
            (&[segment(1, &[0.4, 0.9], &[]), segment(2, &[0.9, 0.1], &[])], &[], &[Some(2), Some(1)]),
            (&[segment(1, &[0.3, 0.9], &[]), segment(2, &[0.4, 0.4], &[])], &[], &[Some(2), Some(1)]),
            // Equal doubt: in the order of the recording.
            (&[segment(1, &[0.4], &[]), segment(2, &[0.4], &[])], &[], &[Some(1), Some(2)]),
            // What is missing or invented before what is merely uncertain.
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
            // Figures that no model writes do no harm.
            (&[segment(1, &[-1.0], &[]), segment(2, &[f32::NAN], &[])], &[], &[Some(1)]),
        ];
        for (segments, gaps, expected) in cases {
            assert_eq!(order(segments, gaps), *expected, "{segments:?}");
        }
    }

    #[test]
    fn reasons_are_told() {
        let flagged = transcript(vec![segment(1, &[0.2], &[Suspicion::Loop])]);
        assert_eq!(review(&flagged)[0].reasons, [Reason::Suspicion(Suspicion::Loop), Reason::UnsureWords]);
        assert_eq!(review(&flagged)[0].span, seconds(1, 2));
    }

    #[test]
    fn what_is_accepted_is_gone_and_comes_back_when_that_is_undone() {
        let mut talk = transcript(vec![segment(1, &[0.2], &[Suspicion::Loop])]);
        talk.completeness.gaps = vec![seconds(5, 8), seconds(9, 12)];
        let begun = talk.clone();
        let mut done = Vec::new();
        let accepted = [
            (Edit::Accept { segments: vec![1] }, 2),
            (Edit::AcceptGap { gap: seconds(5, 8) }, 1),
            // It is not there any more.
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
