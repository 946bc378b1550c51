use transcript::{Completeness, Segment, Span, Time};

/// Speech of this length without text is listed, in milliseconds.
const LISTED_GAP: Time = Time::from_millis(2000);

/// Compares the speech that was heard with the text that was found. Both in
/// order of time.
pub fn check(speech: &[Span], segments: &[Segment]) -> Completeness {
    compare(speech, segments, LISTED_GAP)
}

/// As [`check`], listing speech without text from this length on.
pub fn compare(speech: &[Span], segments: &[Segment], listed: Time) -> Completeness {
    let mut covered = Time::ZERO;
    let mut gaps = Vec::new();
    let mut push_gap = |gap: Span| gaps.extend((gap.length() > listed).then_some(gap));
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
            let found = check(&spans(speech), &segments);
            assert_eq!(found.gaps, spans(gaps), "{speech:?} {text:?}");
            assert_eq!(found.covered, Time::from_seconds(*covered), "{speech:?} {text:?}");
        }
    }
}
