//! Passages: overlapping stretches of a few sentences, of one speaker each, whose meaning can be
//! compared with that of a question.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::edit::SegmentId;
use crate::{Segment, Span, Transcript};

/// A passage ends with the segment that brings it to so many columns (full-width characters take two):
/// three to five spoken sentences, well within the 256 tokens that the smallest embedding models read.
const LENGTH: usize = 320;

/// The next passage begins at least so many columns behind the beginning of this one, with a segment that
/// [may begin one](may_begin), and within this one: what is said across the end of a passage lies within
/// another.
const LEAST_STEP: usize = 80;

/// A few sentences of one speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The first segment.
    pub segment: SegmentId,
    /// From the start of the first segment to the end of the last one.
    pub span: Span,
    /// Who speaks, if known.
    pub speaker: Option<String>,
    /// ISO 639-1 code of the language.
    pub language: String,
    /// The texts of the segments.
    pub text: String,
}

/// Cuts a transcript into passages, in order. Each is within one speaker, one language and one channel.
/// Where a passage begins depends only on the segments shortly before it, so that an edit changes few
/// passages.
pub fn passages(transcript: &Transcript) -> Vec<Passage> {
    let spoken: Vec<&Segment> = transcript.segments.iter().filter(|one| !one.text.is_empty()).collect();
    let is_same = |a: &&Segment, b: &&Segment| {
        (&a.speaker, &a.language, a.channel) == (&b.speaker, &b.language, b.channel)
    };
    spoken.chunk_by(is_same).flat_map(|turn| of_turn(turn, &transcript.language)).collect()
}

fn of_turn(turn: &[&Segment], language: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut begin = 0;
    loop {
        let length = count_until(&turn[begin..], LENGTH);
        passages.extend(passage(&turn[begin..begin + length], language));
        if begin + length == turn.len() {
            return passages;
        }
        let least = count_until(&turn[begin..], LEAST_STEP);
        let next = (least..length).find(|next| may_begin(turn[begin + next])).unwrap_or(length - 1);
        begin += next.max(1);
    }
}

/// Every other segment, by its text alone. So the beginnings of passages are soon the same again behind a
/// segment that was added, removed or changed; counted from the beginning they would all be others.
fn may_begin(segment: &Segment) -> bool {
    // FNV-1a, whose value must never change; its upper bits depend on all bytes.
    let hash = segment.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) & 1 == 0
}

/// How many of the first segments have `columns` together; all of them where they have less.
fn count_until(segments: &[&Segment], columns: usize) -> usize {
    let mut sum = 0;
    let enough = segments.iter().position(|segment| {
        sum += segment.text.width();
        sum >= columns
    });
    enough.map_or(segments.len(), |last| last + 1)
}

fn passage(segments: &[&Segment], language: &str) -> Option<Passage> {
    let first = segments.first()?;
    let mut text = String::new();
    for segment in segments {
        if needs_space(&text, &segment.text) {
            text.push(' ');
        }
        text.push_str(&segment.text);
    }
    let end = segments.iter().map(|segment| segment.end).max()?;
    Some(Passage {
        segment: first.id,
        span: Span::new(first.start, end),
        speaker: first.speaker.clone(),
        language: first.language.as_deref().unwrap_or(language).into(),
        text,
    })
}

/// Whether a space belongs between two texts. Chinese and Japanese sentences have none.
fn needs_space(before: &str, after: &str) -> bool {
    let is_hangul = |character: &char| ('\u{AC00}'..='\u{D7A3}').contains(character);
    let is_wide = |character: Option<char>| {
        character.filter(|one| !is_hangul(one)).is_some_and(|one| one.width() == Some(2))
    };
    let are_wide = is_wide(before.chars().next_back()) && is_wide(after.chars().next());
    !before.is_empty() && !are_wide
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::edit::{self, Edit};
    use crate::{SCHEMA_VERSION, Time};

    /// Segments of four seconds: speaker, language, text.
    fn talk(said: &[(Option<&str>, Option<&str>, &str)]) -> Transcript {
        let json = format!(
            r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
            "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
            "model": {{"name": "small", "precision": "f32", "demonstration": false}},
            "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
        );
        let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
        for (number, (speaker, language, text)) in said.iter().enumerate() {
            let start = Time::from_millis(4000 * number as u32);
            talk.segments.push(Segment {
                start,
                end: start + Time::from_millis(3500),
                text: (*text).into(),
                speaker: speaker.map(Into::into),
                language: language.map(Into::into),
                ..Segment::default()
            });
        }
        edit::assign_ids(&mut talk);
        talk
    }

    fn numbered(count: usize) -> Transcript {
        let texts: Vec<String> = (0..count)
            .map(|number| format!("Sentence {number} {}.", "x".repeat(20 + number * 7 % 60)))
            .collect();
        talk(&texts.iter().map(|text| (None, None, text.as_str())).collect::<Vec<_>>())
    }

    #[test]
    fn passages_end_where_speaker_or_language_change_and_know_them() {
        let talk = talk(&[
            (Some("Ada"), None, "The boat is old."),
            (Some("Ada"), None, ""),
            (Some("Ada"), None, "We sell it."),
            (Some("Grace"), None, "Do we?"),
            (Some("Grace"), Some("ja"), "船を売る。"),
            (Some("Grace"), Some("ja"), "本当に？"),
            (None, None, "Yes."),
        ]);
        let found: Vec<_> = passages(&talk)
            .into_iter()
            .map(|one| {
                (
                    one.segment,
                    one.speaker,
                    one.language,
                    one.text,
                    one.span.start.seconds(),
                    one.span.end.seconds(),
                )
            })
            .collect();
        let row = |segment, speaker: Option<&str>, language: &str, text: &str, start, end| {
            (segment, speaker.map(str::to_owned), language.to_owned(), text.to_owned(), start, end)
        };
        assert_eq!(
            found,
            [
                row(1, Some("Ada"), "en", "The boat is old. We sell it.", 0.0, 11.5),
                row(4, Some("Grace"), "en", "Do we?", 12.0, 15.5),
                row(5, Some("Grace"), "ja", "船を売る。本当に？", 16.0, 23.5),
                row(7, None, "en", "Yes.", 24.0, 27.5),
            ]
        );
        assert_eq!(passages(&self::talk(&[])), []);
    }

    #[test]
    fn passages_overlap_and_leave_nothing_out() {
        let talk = numbered(200);
        let all = passages(&talk);
        assert_eq!((all[0].span.start, all.last().unwrap().span.end), (Time::ZERO, talk.segments[199].end));
        for pair in all.windows(2) {
            let (before, after) = (pair[0].span, pair[1].span);
            assert!(before.start < after.start && after.start < before.end, "{pair:?}");
        }
        for one in &all {
            assert!(one.text.width() < LENGTH + 100, "{}", one.text);
        }
        let lengthy = "A sentence without an end. ".repeat(100);
        let one_segment = self::talk(&[(None, None, &lengthy), (None, None, "Short.")]);
        let texts: Vec<String> = passages(&one_segment).into_iter().map(|one| one.text).collect();
        assert_eq!(texts, [lengthy.clone(), "Short.".into()]);
    }

    /// What did not change is not computed anew: only few passages may differ after an edit.
    #[test]
    fn an_edit_changes_few_passages() {
        let before = numbered(300);
        let known: BTreeSet<String> = passages(&before).into_iter().map(|one| one.text).collect();
        for edit in [
            Edit::SetText {
                segment: 150,
                text: "Another sentence that is somewhat longer than it was.".into(),
            },
            Edit::Split { segment: 150, at: 9 },
            Edit::Merge { segment: 150 },
            Edit::Delete { segments: vec![150] },
            Edit::Insert { after: Some(150), text: "This one is new here.".into() },
        ] {
            let mut after = before.clone();
            edit::apply(&mut after, &edit.plan(&before).unwrap()).unwrap();
            let new = passages(&after).into_iter().filter(|one| !known.contains(&one.text)).count();
            assert!(new <= 8, "{edit:?}: {new} of {}", known.len());
        }
    }
}
