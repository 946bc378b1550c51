//! Replacing a part of a transcript by a new transcription of that part.

use crate::chapters::{anchored, beginnings};
use crate::{Completeness, Segment, Severity, Span, Time, Transcript};

impl Transcript {
    /// Replaces the segments of `span` by those of `found`, a transcript of that
    /// span alone, with its discarded segments, completeness and warnings. A
    /// segment belongs to the span if its middle does; new segments are cut
    /// where they overlap old ones. Returns the index of the first segment that
    /// may have changed.
    pub fn replace(&mut self, span: Span, found: Transcript) -> usize {
        let belongs = |segment: &Segment| span.contains(middle(segment));
        let first = self.segments.partition_point(|segment| middle(segment) < span.start);
        let (removed, kept): (Vec<_>, Vec<_>) = self.segments.drain(..).partition(belongs);
        self.segments = kept;
        let before = self.segments[..first.min(self.segments.len())].last().map(|segment| segment.end);
        let after = self.segments.get(first).map(|segment| segment.start);
        for mut segment in found.segments {
            // The segments before and after the span keep their times.
            segment.start = segment.start.max(before.unwrap_or(segment.start));
            segment.end = segment.end.min(after.unwrap_or(segment.end));
            if segment.start < segment.end {
                for word in &mut segment.words {
                    word.start = word.start.clamp(segment.start, segment.end);
                    word.end = word.end.clamp(segment.start, segment.end);
                }
                self.segments.push(segment);
            }
        }
        self.segments.sort_by_key(|segment| (segment.start, segment.channel));
        self.chapters = anchored(&self.chapters, &beginnings(&self.segments));
        self.discarded.retain(|segment| !belongs(segment));
        self.discarded.extend(found.discarded);
        self.discarded.sort_by_key(|segment| segment.start);
        self.completeness = self.completeness.replaced(span, &found.completeness, &removed);
        self.notices.extend(found.notices.into_iter().filter(|notice| notice.severity != Severity::Info));
        first
    }
}

fn middle(segment: &Segment) -> Time {
    Time::from_millis(segment.start.millis().midpoint(segment.end.millis()))
}

impl Completeness {
    /// The completeness after the `removed` segments of `span` gave way to new ones.
    fn replaced(&self, span: Span, found: &Completeness, removed: &[Segment]) -> Completeness {
        let gone = removed.iter().map(|segment| Span::new(segment.start, segment.end).overlap(span)).sum();
        let mut gaps: Vec<Span> = Vec::new();
        for gap in &self.gaps {
            // The parts of a gap outside the span remain gaps.
            let outside =
                [Span::new(gap.start, gap.end.min(span.start)), Span::new(gap.start.max(span.end), gap.end)];
            gaps.extend(outside.into_iter().filter(|gap| gap.start < gap.end));
        }
        gaps.extend(&found.gaps);
        gaps.sort_by_key(|gap| gap.start);
        let covered = self.covered.saturating_sub(gone) + found.covered;
        Completeness { speech: self.speech, covered, gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(start: u32, end: u32) -> Span {
        Span::new(Time::from_millis(start * 1000), Time::from_millis(end * 1000))
    }

    fn transcript(segments: &[(u32, u32, &str)], gaps: &[(u32, u32)]) -> Transcript {
        let segment = |(start, end, text): &(u32, u32, &str)| {
            let Span { start, end } = seconds(*start, *end);
            Segment { start, end, text: (*text).into(), ..Segment::default() }
        };
        Transcript {
            schema_version: crate::SCHEMA_VERSION,
            source: crate::Source::default(),
            model: crate::Model::default(),
            language: "en".into(),
            language_probability: None,
            task: crate::Task::Transcribe,
            settings: serde_json::Value::Null,
            segments: segments.iter().map(segment).collect(),
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: Vec::new(),
            completeness: Completeness {
                speech: Time::from_millis(60_000),
                covered: segments.iter().map(|it| seconds(it.0, it.1).length()).sum(),
                gaps: gaps.iter().map(|it| seconds(it.0, it.1)).collect(),
            },
            notices: Vec::new(),
            complete: true,
            run: None,
        }
    }

    #[test]
    fn segments_of_the_span_are_replaced() {
        type Segments<'a> = &'a [(u32, u32, &'a str)];
        // span, found, expected, first changed
        let cases: &[((u32, u32), Segments, Segments, usize)] = &[
            // A gap is filled.
            ((20, 30), &[(21, 29, "new")], &[(0, 10, "a"), (10, 20, "b"), (21, 29, "new"), (30, 40, "c")], 2),
            // Text is replaced, also by nothing.
            (
                (8, 22),
                &[(9, 15, "x"), (15, 22, "y")],
                &[(0, 10, "a"), (10, 15, "x"), (15, 22, "y"), (30, 40, "c")],
                1,
            ),
            ((8, 22), &[], &[(0, 10, "a"), (30, 40, "c")], 1),
            // New segments that overlap old ones are cut.
            ((10, 31), &[(9, 33, "long")], &[(0, 10, "a"), (10, 30, "long"), (30, 40, "c")], 1),
            // After the last segment.
            ((50, 60), &[(50, 55, "end")], &[(0, 10, "a"), (10, 20, "b"), (30, 40, "c"), (50, 55, "end")], 3),
        ];
        for ((start, end), found, expected, first) in cases {
            let mut whole = transcript(&[(0, 10, "a"), (10, 20, "b"), (30, 40, "c")], &[(20, 30), (45, 60)]);
            let at = whole.replace(seconds(*start, *end), transcript(found, &[]));
            assert_eq!(whole.segments, transcript(expected, &[]).segments, "{start} to {end}");
            assert_eq!(at, *first, "{start} to {end}");
            assert!(
                whole.completeness.gaps.iter().all(|gap| gap.intersection(seconds(*start, *end)).is_none())
            );
        }
    }

    #[test]
    fn gaps_outside_the_span_remain_and_new_ones_are_added() {
        let mut whole = transcript(&[(0, 10, "a")], &[(12, 20), (30, 40)]);
        whole.replace(seconds(15, 18), transcript(&[(15, 16, "x")], &[(16, 18)]));
        let expected = [(12, 15), (16, 18), (18, 20), (30, 40)].map(|(start, end)| seconds(start, end));
        assert_eq!(whole.completeness.gaps, expected);
        assert_eq!(whole.completeness.covered, Time::from_millis(11_000));
    }
}
