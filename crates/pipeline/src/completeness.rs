use transcript::{Completeness, Segment, Span, Time};

/// Speech without text is listed from this length on.
const LISTED_GAP: Time = Time::from_millis(2000);
/// It is listed only where more than this is voice: regions of speech have pauses within them, and a margin.
const LISTED_VOICE: Time = Time::from_millis(1000);

/// Compares the speech that was heard with the text that was found. All in
/// order of time; `voiced` is where in the speech there is a voice.
pub fn check(speech: &[Span], voiced: &[Span], segments: &[Segment]) -> Completeness {
    let mut found = compare(speech, segments);
    let voice = |gap: &Span| -> Time { voiced.iter().map(|run| run.overlap(*gap)).sum() };
    found.gaps.retain(|gap| voice(gap) > LISTED_VOICE);
    found
}

/// As [`check`], however much of the speech is voice.
fn compare(speech: &[Span], segments: &[Segment]) -> Completeness {
    let mut covered = Time::ZERO;
    let mut gaps = Vec::new();
    let mut push_gap = |gap: Span| gaps.extend((gap.length() > LISTED_GAP).then_some(gap));
    for region in speech {
        let mut from = region.start;
        for segment in segments {
            let span = Span::new(segment.start, segment.end);
            if span.overlap(*region) == Time::ZERO {
                continue;
            }
            push_gap(Span::new(from, segment.start));
            covered = covered + Span::new(from, segment.end).overlap(span).min(span.overlap(*region));
            from = from.max(segment.end);
        }
        push_gap(Span::new(from, region.end));
    }
    Completeness { speech: speech.iter().map(|region| region.length()).sum(), covered, gaps }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(seconds: &[(f64, f64)]) -> Vec<Span> {
        let at = Time::from_seconds;
        seconds.iter().map(|(start, end)| Span::new(at(*start), at(*end))).collect()
    }

    #[test]
    fn voice_is_added_up() {
        let voice = spans(&[(0.0, 0.5), (0.6, 1.2)]);
        assert_eq!(check(&spans(&[(0.0, 10.0)]), &voice, &[]).gaps, spans(&[(0.0, 10.0)]));
    }

    #[test]
    fn gaps_and_coverage() {
        type Seconds<'a> = &'a [(f64, f64)];
        // speech, text, gaps, seconds covered
        let cases: &[(Seconds, Seconds, Seconds, f64)] = &[
            (&[(0.0, 10.0)], &[(0.0, 10.0)], &[], 10.0),
            (&[(0.0, 10.0)], &[], &[(0.0, 10.0)], 0.0),
            (&[(0.0, 10.0)], &[(3.0, 5.0)], &[(0.0, 3.0), (5.0, 10.0)], 2.0),
            (&[(0.0, 10.0)], &[(1.0, 9.0)], &[], 8.0),
            (&[(0.0, 4.0), (20.0, 25.0)], &[(0.0, 4.5)], &[(20.0, 25.0)], 4.0),
            // Text over silence covers nothing.
            (&[(0.0, 4.0)], &[(0.0, 4.0), (6.0, 9.0)], &[], 4.0),
            (&[], &[(6.0, 9.0)], &[], 0.0),
        ];
        for (speech, text, gaps, covered) in cases {
            let segments: Vec<Segment> = spans(text)
                .into_iter()
                .map(|span| Segment { start: span.start, end: span.end, ..Segment::default() })
                .collect();
            let found = check(&spans(speech), &spans(speech), &segments);
            assert_eq!(found.gaps, spans(gaps), "{speech:?} {text:?}");
            assert_eq!(found.covered, Time::from_seconds(*covered), "{speech:?} {text:?}");
            // With a second of voice or less in it, speech without text is a pause.
            let silent = check(&spans(speech), &spans(&[(0.0, 0.5), (0.6, 1.1)]), &segments);
            assert_eq!((silent.gaps, silent.covered), (Vec::new(), found.covered), "{speech:?} {text:?}");
        }
    }
}
