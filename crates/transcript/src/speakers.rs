//! Who speaks when, and whose words are whose.

use std::collections::BTreeMap;

use crate::edit::words_of_text;
use crate::translation::divide;
use crate::{Segment, Span, Time, Transcript, Word};

/// A stretch in which one speaker is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// From when to when.
    pub span: Span,
    /// The speaker's number, from 0.
    pub speaker: usize,
    /// The channel, where each was listened to on its own.
    pub channel: Option<u32>,
}

/// A stretch in which a speaker of this name is heard.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NamedTurn {
    /// From when to when.
    #[serde(flatten)]
    pub span: Span,
    /// The speaker's name.
    pub speaker: String,
    /// The channel, where each was listened to on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
}

/// The turns of a transcript with the speakers' current names; where there are none,
/// those that the segments say.
///
/// Speakers are edited in the segments. A turn has the names that its own text has now, and
/// is divided where they change; a turn without text of its own has the name that most text
/// of its speaker has.
pub fn current_turns(transcript: &Transcript) -> Vec<NamedTurn> {
    if transcript.turns.is_empty() {
        return turns_of_segments(&transcript.segments);
    }
    let (names, turns) = numbered(&transcript.turns);
    let indices = Indices::new(&turns);
    let mut said: BTreeMap<Key, Vec<(Span, &str)>> = BTreeMap::new();
    let mut totals: Vec<BTreeMap<&str, Time>> = vec![BTreeMap::new(); names.len()];
    for segment in &transcript.segments {
        let Some(now) = segment.speaker.as_deref() else { continue };
        let (span, index) = (Span::new(segment.start, segment.end), indices.of(segment.channel));
        let Some(own) = index.speaker(span) else { continue };
        for turn in index.around(span).iter().filter(|turn| turn.speaker == own) {
            let Some(common) = turn.span.intersection(span) else { continue };
            let total = totals[own].entry(now).or_default();
            *total = *total + common.length();
            said.entry(key(turn)).or_default().push((common, now));
        }
    }
    let usual = |speaker: usize| {
        let most = totals[speaker].iter().max_by_key(|(_, time)| **time);
        most.map_or(names[speaker], |(name, _)| name)
    };
    let mut current = Vec::with_capacity(turns.len());
    for turn in &turns {
        let said = said.get(&key(turn)).map_or(&[][..], Vec::as_slice);
        let named = |start, name: &str| NamedTurn {
            span: Span::new(start, turn.span.end),
            speaker: name.to_owned(),
            channel: turn.channel,
        };
        let first = said.first().map_or_else(|| usual(turn.speaker), |(_, name)| name);
        let mut last = named(turn.span.start, first);
        let mut end = said.first().map_or(Time::ZERO, |(span, _)| span.end);
        for (span, name) in said.iter().skip(1) {
            // Of texts that overlap, the earlier one says whose turn it is.
            if last.speaker != *name && span.start >= end {
                last.span.end = span.start;
                current.push(std::mem::replace(&mut last, named(span.start, name)));
            }
            end = end.max(span.end);
        }
        current.push(last);
    }
    current.sort_by_key(|turn| (turn.span.start, turn.span.end));
    current
}

type Key = (Time, Time, usize, Option<u32>);

fn key(turn: &Turn) -> Key {
    (turn.span.start, turn.span.end, turn.speaker, turn.channel)
}

/// The names of speakers in the order in which they are first heard, and turns with their numbers.
fn numbered(turns: &[NamedTurn]) -> (Vec<&str>, Vec<Turn>) {
    let mut names: Vec<&str> = Vec::new();
    let mut numbered = Vec::with_capacity(turns.len());
    for turn in turns {
        let known = names.iter().position(|name| *name == turn.speaker);
        let speaker = known.unwrap_or_else(|| {
            names.push(&turn.speaker);
            names.len() - 1
        });
        numbered.push(Turn { span: turn.span, speaker, channel: turn.channel });
    }
    (names, numbered)
}

/// Consecutive segments of one speaker are a turn.
fn turns_of_segments(segments: &[Segment]) -> Vec<NamedTurn> {
    let mut turns: Vec<NamedTurn> = Vec::new();
    for segment in segments {
        let Some(speaker) = &segment.speaker else { continue };
        match turns.last_mut() {
            Some(last)
                if last.speaker == *speaker
                    && last.channel == segment.channel
                    && segment.start.saturating_sub(last.span.end) < NEAR =>
            {
                last.span.end = segment.end.max(last.span.end);
            }
            _ => turns.push(NamedTurn {
                span: Span::new(segment.start, segment.end),
                speaker: speaker.clone(),
                channel: segment.channel,
            }),
        }
    }
    turns
}

/// A word further than this from any turn has the speaker of the words beside it.
const NEAR: Time = Time::from_millis(1000);

/// Gives each segment the speaker who is heard for most of it, undivided: what can be said while
/// only the beginning of a recording was listened to. Returns the index of the first segment that
/// has another speaker than before.
pub fn guess(segments: &mut [Segment], turns: &[NamedTurn]) -> Option<usize> {
    let (names, turns) = numbered(turns);
    let indices = Indices::new(&turns);
    let mut first = None;
    for (number, segment) in segments.iter_mut().enumerate() {
        let heard = indices.of(segment.channel).speaker(Span::new(segment.start, segment.end));
        let name = heard.and_then(|speaker| names.get(speaker)).map(|name| (*name).to_owned());
        if segment.speaker != name {
            segment.speaker = name;
            first = first.or(Some(number));
        }
    }
    first
}

/// What a speaker is called whom nobody has named, counted from 0: `Speaker 1`.
pub fn default_name(speaker: usize) -> String {
    format!("Speaker {}", speaker + 1)
}

/// Gives each segment the speaker of its words, and splits it where the speaker
/// changes. `turns` are in order of their starts; `name` says what a speaker is
/// called.
///
/// A word belongs to the turn that covers most of it, else to the nearest one. A
/// lone word or two between words of another speaker stay with those: a voice does not
/// change for so short. A segment without word times is not split. Of turns of several
/// channels, those of a segment's own channel count for it.
pub fn assign(segments: Vec<Segment>, turns: &[Turn], name: &dyn Fn(usize) -> String) -> Vec<Segment> {
    if turns.is_empty() {
        return segments;
    }
    let indices = Indices::new(turns);
    let assigned = |segment: Segment| {
        let index = indices.of(segment.channel);
        assign_one(segment, index, name)
    };
    segments.into_iter().flat_map(assigned).collect()
}

/// A transcript whose speakers are those of `turns`, which are in order of their starts. Names that
/// segments had are replaced; their texts stay, edited ones too. New segments have no id yet.
pub fn with_turns(transcript: &Transcript, turns: Vec<NamedTurn>) -> Transcript {
    let (names, numbered) = numbered(&turns);
    let aligned = |segment: &Segment| Segment { words: words_of_text(segment), ..segment.clone() };
    let segments = transcript.segments.iter().map(aligned).collect();
    let segments = assign(segments, &numbered, &|speaker| names[speaker].to_owned());
    Transcript { segments, turns, ..transcript.clone() }
}

fn assign_one(segment: Segment, turns: &TurnIndex, name: &dyn Fn(usize) -> String) -> Vec<Segment> {
    if segment.words.is_empty() {
        let speaker =
            turns.speaker(Span::new(segment.start, segment.end)).or(segment_nearest(&segment, turns));
        return vec![Segment { speaker: speaker.map(name), ..segment }];
    }
    let of_words = segment.words.iter().map(|word| turns.speaker(Span::new(word.start, word.end)));
    let mut of_words: Vec<Option<usize>> = of_words.collect();
    fill(&mut of_words);
    smooth(&mut of_words, &segment.words);
    let Some(Some(first)) = of_words.first().copied() else {
        let speaker = segment_nearest(&segment, turns);
        return vec![Segment { speaker: speaker.map(name), ..segment }];
    };
    if of_words.iter().all(|speaker| *speaker == Some(first)) {
        return vec![Segment { speaker: Some(name(first)), ..segment }];
    }
    let mut parts: Vec<(usize, Vec<Word>)> = Vec::new();
    for (word, speaker) in segment.words.iter().zip(of_words) {
        let speaker = speaker.unwrap_or(first);
        match parts.last_mut() {
            Some((last, words)) if *last == speaker => words.push(word.clone()),
            _ => parts.push((speaker, vec![word.clone()])),
        }
    }
    let count = parts.len();
    let letters: Vec<usize> =
        parts.iter().map(|(_, words)| words.iter().map(|word| word.text.chars().count()).sum()).collect();
    let translations = segment.translation.as_deref().map(|translation| divide(translation, &letters));
    let made = parts.into_iter().enumerate().map(|(number, (speaker, words))| {
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        let (from, to) = (words.first().map(|word| word.start), words.last().map(|word| word.end));
        Segment {
            // The outer edges stay where they were.
            start: if number == 0 { segment.start } else { from.unwrap_or(segment.start) },
            end: if number + 1 == count { segment.end } else { to.unwrap_or(segment.end) },
            text: text.trim().to_owned(),
            translation: translations.as_ref().and_then(|parts| parts.get(number).cloned().flatten()),
            words,
            speaker: Some(name(speaker)),
            // An editor numbers what has no number.
            id: if number == 0 { segment.id } else { 0 },
            raw_text: None,
            ..segment.clone()
        }
    });
    made.filter(|part| !part.text.is_empty()).collect()
}

fn segment_nearest(segment: &Segment, turns: &TurnIndex) -> Option<usize> {
    turns.nearest(Span::new(segment.start, segment.end), NEAR)
}

/// Words without a turn take the speaker of the words before them, the first ones
/// that of those behind.
fn fill(speakers: &mut [Option<usize>]) {
    let mut last = None;
    for speaker in speakers.iter_mut() {
        last = speaker.or(last);
        *speaker = last;
    }
    let mut next = None;
    for speaker in speakers.iter_mut().rev() {
        next = speaker.or(next);
        *speaker = next;
    }
}

/// A run of so few words, and so short, between words of one other speaker or at
/// an end of the segment, is no change of speaker.
const FEW_WORDS: usize = 2;
const SHORT: Time = Time::from_millis(700);

fn smooth(speakers: &mut [Option<usize>], words: &[Word]) {
    let mut start = 0;
    while start < speakers.len() {
        let end = start + speakers[start..].iter().take_while(|it| **it == speakers[start]).count();
        let before = start.checked_sub(1).and_then(|at| speakers[at]);
        let behind = speakers.get(end).copied().flatten();
        let long = words[end - 1].end.saturating_sub(words[start].start) > SHORT;
        let surrounded = before.is_some() && before == behind;
        // A sentence does not change its speaker in its first or last word.
        let at_an_edge = end - start == 1 && before.is_some() != behind.is_some();
        if !long && end - start <= FEW_WORDS && (surrounded || at_an_edge) {
            let other = before.or(behind);
            speakers[start..end].iter_mut().for_each(|speaker| *speaker = other);
        }
        start = end;
    }
}

/// Turns by channel and time.
struct Indices {
    all: TurnIndex,
    channels: BTreeMap<u32, TurnIndex>,
}

impl Indices {
    fn new(turns: &[Turn]) -> Self {
        let mut by_channel: BTreeMap<u32, Vec<Turn>> = BTreeMap::new();
        for turn in turns {
            if let Some(channel) = turn.channel {
                by_channel.entry(channel).or_default().push(*turn);
            }
        }
        let channels = by_channel.into_iter().map(|(channel, turns)| (channel, TurnIndex::new(&turns)));
        Self { channels: channels.collect(), all: TurnIndex::new(turns) }
    }

    /// The turns that a segment of this channel can belong to.
    fn of(&self, channel: Option<u32>) -> &TurnIndex {
        channel.and_then(|channel| self.channels.get(&channel)).unwrap_or(&self.all)
    }
}

/// Turns by time.
struct TurnIndex {
    turns: Vec<Turn>,
    /// The latest end of all turns up to each one.
    latest: Vec<Time>,
}

impl TurnIndex {
    fn new(turns: &[Turn]) -> Self {
        let mut turns = turns.to_vec();
        turns.sort_by_key(|turn| (turn.span.start, turn.span.end));
        let latest = turns.iter().scan(Time::default(), |latest, turn| {
            *latest = turn.span.end.max(*latest);
            Some(*latest)
        });
        let latest = latest.collect();
        Self { turns, latest }
    }

    /// The turns that may touch `span`.
    fn around(&self, span: Span) -> &[Turn] {
        let end = self.turns.partition_point(|turn| turn.span.start <= span.end);
        let first = self.latest[..end].partition_point(|latest| *latest < span.start);
        &self.turns[first..end]
    }

    /// The speaker who is heard for most of `span`; `None` where nobody is.
    fn speaker(&self, span: Span) -> Option<usize> {
        let mut heard: BTreeMap<usize, Time> = BTreeMap::new();
        for turn in self.around(span) {
            if let Some(common) = turn.span.intersection(span) {
                let total = heard.entry(turn.speaker).or_default();
                *total = *total + common.end.saturating_sub(common.start);
            }
        }
        // Of two who talk at once it is the one whose turn it is, the earlier one.
        let most = heard.values().copied().max()?;
        self.around(span).iter().map(|turn| turn.speaker).find(|speaker| heard.get(speaker) == Some(&most))
    }

    /// The speaker of the turn nearest to `span`, if it is not further than `far`.
    fn nearest(&self, span: Span, far: Time) -> Option<usize> {
        let wide = Span::new(span.start.saturating_sub(far), span.end + far);
        let distance = |turn: &&Turn| {
            let before = span.start.saturating_sub(turn.span.end);
            before.max(turn.span.start.saturating_sub(span.end))
        };
        self.around(wide).iter().min_by_key(distance).map(|turn| turn.speaker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of words of 0.4 s with 0.1 s between them, from `start` on.
    fn said(start: f64, text: &str) -> Segment {
        let words: Vec<Word> = text
            .split(' ')
            .enumerate()
            .map(|(number, word)| {
                let from = start + number as f64 * 0.5;
                let (start, end) = (Time::from_seconds(from), Time::from_seconds(from + 0.4));
                Word { text: format!(" {word}"), start, end, probability: 1.0 }
            })
            .collect();
        let (start, end) = (words[0].start, words[words.len() - 1].end);
        Segment { start, end, text: text.into(), words, ..Segment::default() }
    }

    fn turns(turns: &[(f64, f64, usize)]) -> Vec<Turn> {
        let turn = |(start, end, speaker): &(f64, f64, usize)| Turn {
            span: Span::new(Time::from_seconds(*start), Time::from_seconds(*end)),
            speaker: *speaker,
            channel: None,
        };
        turns.iter().map(turn).collect()
    }

    #[test]
    fn a_guess_names_whole_segments_and_says_from_where_they_changed() {
        let mut segments = vec![said(0.0, "a b c"), said(2.0, "d e f"), said(4.0, "g h i")];
        let turn = |start: f64, end: f64, speaker: &str| NamedTurn {
            span: Span::new(Time::from_seconds(start), Time::from_seconds(end)),
            speaker: speaker.into(),
            channel: None,
        };
        let names = |segments: &[Segment]| -> Vec<Option<String>> {
            segments.iter().map(|segment| segment.speaker.clone()).collect()
        };
        let (anna, ben) = (Some("Anna".to_owned()), Some("Ben".to_owned()));
        // The beginning alone was heard; most of the second segment is Ben's.
        let first = [turn(0.0, 2.3, "Anna"), turn(2.3, 3.5, "Ben")];
        assert_eq!(guess(&mut segments, &first), Some(0));
        assert_eq!(names(&segments), [anna.clone(), ben.clone(), None]);
        assert_eq!(segments.len(), 3);
        assert_eq!(guess(&mut segments, &first), None);
        let second = [turn(0.0, 2.3, "Anna"), turn(2.3, 6.0, "Ben")];
        assert_eq!(guess(&mut segments, &second), Some(2));
        assert_eq!(names(&segments), [anna, ben.clone(), ben]);
    }

    /// (text, turns) -> the text with its speakers
    #[test]
    fn words_have_the_speaker_of_their_time() {
        type Case = (&'static str, &'static [(f64, f64, usize)], &'static str);
        let cases: &[Case] = &[
            ("a b c d", &[(0.0, 2.0, 0)], "1: a b c d"),
            // Split where the speaker changes.
            ("a b c d e f", &[(0.0, 1.45, 0), (1.45, 3.0, 1)], "1: a b c|2: d e f"),
            // A turn that begins within a word does not take it.
            ("a b c d e f", &[(0.0, 1.65, 0), (1.65, 3.0, 1)], "1: a b c|2: d e f"),
            // Neither the last word nor one in the middle is another's for so short.
            ("a b c d e f", &[(0.0, 2.5, 0), (2.5, 3.0, 1)], "1: a b c d e f"),
            ("a b c d e f", &[(0.0, 1.0, 0), (1.0, 1.5, 1), (1.5, 3.0, 0)], "1: a b c d e f"),
            // Who talks meanwhile does not take the word of whose turn it is.
            ("a b c d", &[(0.0, 2.0, 0), (0.0, 2.0, 1)], "1: a b c d"),
            // Between turns and beyond them: the words beside it.
            ("a b c d", &[(0.0, 0.9, 0), (1.5, 1.7, 0)], "1: a b c d"),
            // Nobody near.
            ("a b", &[(60.0, 61.0, 0)], "a b"),
            ("a b", &[], "a b"),
        ];
        for (text, heard, expected) in cases {
            let found = assign(vec![said(0.0, text)], &turns(heard), &|speaker| (speaker + 1).to_string());
            let shown: Vec<String> = found
                .iter()
                .map(|segment| match &segment.speaker {
                    Some(speaker) => format!("{speaker}: {}", segment.text),
                    None => segment.text.clone(),
                })
                .collect();
            assert_eq!(shown.join("|"), *expected, "{text} {heard:?}");
            // No word is lost, and times stay in order.
            assert_eq!(found.iter().map(|it| it.words.len()).sum::<usize>(), text.split(' ').count());
            assert!(found.iter().all(|it| it.start <= it.end));
            assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    #[test]
    fn a_segment_without_word_times_has_the_speaker_of_most_of_it() {
        let segment = Segment { words: Vec::new(), ..said(10.0, "a b c d e f") };
        let found = assign(vec![segment], &turns(&[(0.0, 10.9, 0), (11.0, 14.0, 1)]), &default_name);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].speaker.as_deref(), Some("Speaker 2"));
    }

    fn with_names(turns: &[(f64, f64, usize)]) -> Vec<NamedTurn> {
        let named = |turn: Turn| NamedTurn {
            span: turn.span,
            speaker: default_name(turn.speaker),
            channel: turn.channel,
        };
        self::turns(turns).into_iter().map(named).collect()
    }

    /// Turns follow what became of their text: (segments' speakers now) -> turns
    #[test]
    fn turns_have_the_names_that_their_text_has_now() {
        let heard = with_names(&[(0.0, 4.0, 0), (2.0, 2.4, 1), (5.0, 8.0, 1), (9.0, 12.0, 0)]);
        type Said = &'static [(f64, &'static str, &'static str)];
        let cases: &[(Said, &str)] = &[
            // As they were found; who only talks meanwhile has no text there.
            (
                &[
                    (0.0, "a b c d e f g", "Speaker 1"),
                    (5.0, "h i j", "Speaker 2"),
                    (9.0, "k l", "Speaker 1"),
                ],
                "0-4 Speaker 1|2-2.4 Speaker 2|5-8 Speaker 2|9-12 Speaker 1",
            ),
            // Renamed everywhere.
            (
                &[(0.0, "a b c d e f g", "Anna"), (5.0, "h i j", "Ben"), (9.0, "k l", "Anna")],
                "0-4 Anna|2-2.4 Ben|5-8 Ben|9-12 Anna",
            ),
            // One speaker becomes two.
            (
                &[(0.0, "a b c d e f g", "Anna"), (5.0, "h i j", "Ben"), (9.0, "k l", "Cleo")],
                "0-4 Anna|2-2.4 Ben|5-8 Ben|9-12 Cleo",
            ),
            // Some words are another's.
            (
                &[(0.0, "a b", "Anna"), (1.0, "c d", "Ben"), (2.0, "e f", "Anna"), (5.0, "h i j", "Ben")],
                "0-1 Anna|1-2 Ben|2-2.4 Ben|2-4 Anna|5-8 Ben|9-12 Anna",
            ),
        ];
        for (said_by, expected) in cases {
            let segment = |(start, text, speaker): &(f64, &str, &str)| Segment {
                speaker: Some((*speaker).into()),
                ..said(*start, text)
            };
            let transcript = Transcript {
                segments: said_by.iter().map(segment).collect(),
                turns: heard.clone(),
                ..crate::export::tests::transcript(Vec::new())
            };
            let shown: Vec<String> = current_turns(&transcript)
                .iter()
                .map(|turn| {
                    format!("{}-{} {}", turn.span.start.seconds(), turn.span.end.seconds(), turn.speaker)
                })
                .collect();
            assert_eq!(shown.join("|"), *expected);
        }
    }

    /// Two people who talk at once on two channels keep their own words.
    #[test]
    fn words_of_a_channel_belong_to_the_turns_of_that_channel() {
        let on = |channel: u32, segment: Segment| Segment { channel: Some(channel), ..segment };
        let segments = vec![on(0, said(0.0, "a b c d e f")), on(1, said(1.0, "u v w"))];
        let turn = |start, end, speaker| Turn {
            channel: Some(speaker as u32),
            ..turns(&[(start, end, speaker)])[0]
        };
        let found = assign(segments, &[turn(0.0, 3.0, 0), turn(0.9, 2.6, 1)], &default_name);
        let shown: Vec<_> = found.iter().map(|it| (it.text.as_str(), it.speaker.as_deref())).collect();
        assert_eq!(shown, [("a b c d e f", Some("Speaker 1")), ("u v w", Some("Speaker 2"))]);
    }
}
