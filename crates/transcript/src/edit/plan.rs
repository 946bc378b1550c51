//! Planning: the changes that each edit makes to a transcript.

use std::ops::Range;

use super::words::{align, joined_text, needs_space, split, spread_evenly};
use super::{Change, Edit, EditError, SegmentId, next_id};
use crate::chapters::{Chapter, anchored, beginning, beginnings};
use crate::translation::{divide, join};
use crate::{Segment, Span, Time, Transcript, Word};

/// Longest duration of an inserted segment.
const LONGEST_INSERTION: Time = Time::from_millis(3000);

impl Edit {
    /// The changes that carry out the edit; empty if the transcript is already as wanted.
    ///
    /// # Errors
    /// If a segment or gap does not exist, or the edit is impossible, see [`EditError`].
    pub fn plan(&self, transcript: &Transcript) -> Result<Vec<Change>, EditError> {
        let mut changes = self.plan_itself(transcript)?;
        changes.extend(chapters_after(transcript, &changes));
        Ok(changes)
    }

    fn plan_itself(&self, transcript: &Transcript) -> Result<Vec<Change>, EditError> {
        let find = |id: SegmentId| find_segment(transcript, id);
        match self {
            Self::SetText { segment, text } => {
                let (at, segment) = find(*segment)?;
                Ok(set_text(at, segment, text).into_iter().collect())
            }
            Self::SetTexts { texts } => set_texts(transcript, texts),
            Self::Split { segment, at: character } => {
                let (at, segment) = find(*segment)?;
                let next = transcript.segments.get(at + 1).map(|next| next.start);
                let both = split_segment(segment, *character, next, next_id(transcript))?;
                Ok(vec![replaced(at, std::slice::from_ref(segment), both)])
            }
            Self::Merge { segment } => {
                let (at, _) = find(*segment)?;
                let Some([first, second]) = transcript.segments.get(at..at + 2) else {
                    return Err(EditError::NothingToMerge);
                };
                let both = merged(first, second);
                Ok(vec![replaced(at, &transcript.segments[at..at + 2], vec![both])])
            }
            Self::Delete { segments } => {
                let indices = find_segments(transcript, segments)?;
                // From the end, so that earlier indices stay valid.
                let removed = ranges(&indices).into_iter().rev();
                Ok(removed
                    .map(|(from, to)| replaced(from, &transcript.segments[from..to], Vec::new()))
                    .collect())
            }
            Self::Insert { after, text } => {
                let at = after.map_or(Ok(0), |after| Ok(find(after)?.0 + 1))?;
                Ok(vec![replaced(at, &[], vec![inserted(transcript, at, text)])])
            }
            Self::Retime { segment, start, end } => {
                let (at, _) = find(*segment)?;
                retime(transcript, at, Span::new(*start, *end))
            }
            Self::SetSpeaker { segments, speaker } => Ok(set_speaker(
                transcript,
                &find_segments(transcript, segments)?,
                speaker_name(speaker.as_deref()),
            )),
            Self::SetSpeakerOfWords { segment, from, to, speaker } => {
                let (at, _) = find(*segment)?;
                set_speaker_of_words(transcript, at, *from..*to, speaker_name(speaker.as_deref()))
            }
            Self::RenameSpeaker { from, to } => {
                let is_it = |at: &usize| transcript.segments[*at].speaker.as_ref() == Some(from);
                let indices: Vec<_> = (0..transcript.segments.len()).filter(is_it).collect();
                Ok(set_speaker(transcript, &indices, speaker_name(Some(to))))
            }
            Self::Accept { segments } => {
                let accepted = find_segments(transcript, segments)?.into_iter().filter_map(|at| {
                    let before = &transcript.segments[at];
                    let after = accepted(before);
                    (after != *before).then(|| replaced(at, std::slice::from_ref(before), vec![after]))
                });
                Ok(accepted.collect())
            }
            Self::AcceptGap { gap } => {
                let mut after = transcript.completeness.clone();
                after.gaps.retain(|other| other != gap);
                if after == transcript.completeness {
                    return Err(EditError::NotFound);
                }
                Ok(vec![Change::completeness(transcript, after)])
            }
            Self::SetChapters { chapters } => set_chapters(transcript, chapters),
        }
    }
}

/// The change of the chapters that follows from changes of segments.
fn chapters_after(transcript: &Transcript, changes: &[Change]) -> Option<Change> {
    // Typing changes texts alone, which must not take long.
    if transcript.chapters.is_empty()
        || !changes.iter().any(|change| matches!(change, Change::Segments { .. }))
    {
        return None;
    }
    let mut segments = beginnings(&transcript.segments);
    for change in changes {
        if let Change::Segments { at, removed, inserted } = change {
            segments.splice(*at..*at + removed.len(), beginnings(inserted));
        }
    }
    Change::chapters(transcript, anchored(&transcript.chapters, &segments))
}

fn set_chapters(transcript: &Transcript, wanted: &[(SegmentId, String)]) -> Result<Vec<Change>, EditError> {
    let chapter = |(at, title): (usize, &str)| {
        let segment = &transcript.segments[at];
        let title = match single_line(title) {
            none if none.is_empty() => {
                beginning(transcript.segments[at..].iter().map(|segment| segment.text.as_str()))
            }
            title => title,
        };
        Chapter { segment: segment.id, start: segment.start, title }
    };
    let mut places = wanted
        .iter()
        .map(|(id, title)| Ok((find_segment(transcript, *id)?.0, title.as_str())))
        .collect::<Result<Vec<_>, EditError>>()?;
    if !places.is_empty() && places.iter().all(|(at, _)| *at > 0) {
        places.push((0, ""));
    }
    let chapters: Vec<Chapter> = places.into_iter().map(chapter).collect();
    let chapters = anchored(&chapters, &beginnings(&transcript.segments));
    Ok(Change::chapters(transcript, chapters).into_iter().collect())
}

fn replaced(at: usize, removed: &[Segment], inserted: Vec<Segment>) -> Change {
    Change::Segments { at, removed: removed.to_vec(), inserted }
}

fn find_segment(transcript: &Transcript, id: SegmentId) -> Result<(usize, &Segment), EditError> {
    let found = transcript.segments.iter().enumerate().find(|(_, segment)| segment.id == id);
    found.filter(|_| id != 0).ok_or(EditError::NotFound)
}

/// The indices of segments, in the transcript's order.
fn find_segments(transcript: &Transcript, ids: &[SegmentId]) -> Result<Vec<usize>, EditError> {
    let wanted: std::collections::BTreeSet<_> = ids.iter().collect();
    let segments = transcript.segments.iter().enumerate();
    let found: Vec<_> =
        segments.filter(|(_, segment)| wanted.contains(&segment.id)).map(|(at, _)| at).collect();
    if found.len() == wanted.len() { Ok(found) } else { Err(EditError::NotFound) }
}

/// Joins adjacent indices, which must be sorted, into ranges.
fn ranges(indices: &[usize]) -> Vec<(usize, usize)> {
    let runs = indices.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| Some((*run.first()?, run.last()? + 1))).collect()
}

fn speaker_name(speaker: Option<&str>) -> Option<String> {
    speaker.map(str::trim).filter(|name| !name.is_empty()).map(Into::into)
}

fn span(segment: &Segment) -> Span {
    Span::new(segment.start, segment.end)
}

/// The text on one line, without surrounding white space.
fn single_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The segment's words, aligned with its text if they differ from it; none if it has none.
pub(crate) fn words_of_text(segment: &Segment) -> Vec<Word> {
    if segment.words.is_empty() || joined_text(&segment.words) == segment.text {
        segment.words.clone()
    } else {
        align(&segment.words, &segment.text, span(segment))
    }
}

fn set_text(at: usize, segment: &Segment, text: &str) -> Option<Change> {
    let text = single_line(text);
    if text == segment.text {
        return None;
    }
    let words = if segment.text.is_empty() && segment.words.is_empty() {
        spread_evenly(&text, span(segment))
    } else if segment.words.is_empty() {
        // The segment was transcribed without word times.
        Vec::new()
    } else {
        align(&segment.words, &text, span(segment))
    };
    Change::text(at, segment, &text, &words)
}

fn set_texts(transcript: &Transcript, texts: &[(SegmentId, String)]) -> Result<Vec<Change>, EditError> {
    let texts: std::collections::BTreeMap<_, _> = texts.iter().map(|(id, text)| (*id, text)).collect();
    let mut found = 0;
    let mut changes = Vec::new();
    for (at, segment) in transcript.segments.iter().enumerate() {
        if let Some(text) = texts.get(&segment.id) {
            found += 1;
            changes.extend(set_text(at, segment, text));
        }
    }
    if found == texts.len() { Ok(changes) } else { Err(EditError::NotFound) }
}

fn split_segment(
    segment: &Segment,
    at: usize,
    next: Option<Time>,
    id: SegmentId,
) -> Result<Vec<Segment>, EditError> {
    let cut = segment.text.char_indices().nth(at).map_or(segment.text.len(), |(byte, _)| byte);
    let (left, right) = (segment.text[..cut].trim(), segment.text[cut..].trim());
    if left.is_empty() || right.is_empty() {
        return Err(EditError::NothingToSplit);
    }
    let (left_words, right_words) = split(&words_of_text(segment), at);
    let share = u64::from(span(segment).length().millis()) * left.chars().count() as u64
        / segment.text.chars().count().max(1) as u64;
    let middle = segment.start + Time::from_millis(u32::try_from(share).unwrap_or(u32::MAX));
    let within = |time: Time| time.clamp(segment.start, segment.end.max(segment.start));
    let end = within(left_words.last().map_or(middle, |word| word.end));
    let mut start = within(right_words.first().map_or(middle, |word| word.start)).max(end);
    if let Some(next) = next.filter(|next| *next >= segment.start) {
        // If the next segment overlaps this one, the order by start must be kept.
        start = start.min(next);
    }
    let part = |id, start, end, text: &str, words| Segment {
        id,
        start,
        end,
        text: text.into(),
        words,
        raw_text: None,
        ..segment.clone()
    };
    let mut first = part(segment.id, segment.start, end, left, left_words);
    let mut second = part(id, start, segment.end.max(start), right, right_words);
    if let Some(translation) = &segment.translation {
        let mut parts = divide(translation, &[left.chars().count(), right.chars().count()]).into_iter();
        first.translation = parts.next().flatten();
        second.translation = parts.next().flatten();
    }
    Ok(vec![first, second])
}

fn merged(first: &Segment, second: &Segment) -> Segment {
    let joined = |first: &str, second: &str| {
        let between =
            if needs_space(first, second) && !first.is_empty() && !second.is_empty() { " " } else { "" };
        format!("{first}{between}{second}")
    };
    let text = joined(&first.text, &second.text);
    let end = first.end.max(second.end);
    let mut words = words_of_text(first);
    let mut more = words_of_text(second);
    if let (Some(word), true) =
        (more.first_mut(), needs_space(&first.text, &second.text) && !words.is_empty())
    {
        word.text = format!(" {}", word.text.trim_start());
    }
    words.extend(more);
    if !words.is_empty() && joined_text(&words) != text {
        words = align(&words, &text, Span::new(first.start, end));
    }
    let mut translation = first.translation.clone().unwrap_or_default();
    join(&mut translation, second.translation.as_deref().unwrap_or_default());
    let mut suspicions = first.suspicions.clone();
    suspicions.extend(second.suspicions.iter().filter(|one| !first.suspicions.contains(one)));
    Segment {
        end,
        text,
        translation: Some(translation).filter(|text| !text.is_empty()),
        words,
        speaker: first.speaker.clone().or_else(|| second.speaker.clone()),
        temperature: first.temperature.max(second.temperature),
        mean_log_probability: first.mean_log_probability.min(second.mean_log_probability),
        no_speech_probability: first.no_speech_probability.max(second.no_speech_probability),
        compression_ratio: first.compression_ratio.max(second.compression_ratio),
        suspicions,
        raw_text: None,
        ..first.clone()
    }
}

fn inserted(transcript: &Transcript, at: usize, text: &str) -> Segment {
    let before = at.checked_sub(1).and_then(|before| transcript.segments.get(before));
    let after = transcript.segments.get(at);
    let limit = match (after, transcript.source.duration) {
        (Some(after), _) => after.start,
        (None, Time::ZERO) => Time::from_millis(u32::MAX),
        (None, duration) => duration,
    };
    let earliest = before.map_or(Time::ZERO, |before| before.start);
    let start = before.map_or(Time::ZERO, |before| before.end).min(limit).max(earliest);
    let end = (start + LONGEST_INSERTION).min(limit).max(start);
    let text = single_line(text);
    let words = spread_evenly(&text, Span::new(start, end));
    let speaker = before.and_then(|before| before.speaker.clone());
    let channel = before.or(after).and_then(|beside| beside.channel);
    Segment { id: next_id(transcript), start, end, text, words, speaker, channel, ..Segment::default() }
}

fn retime(transcript: &Transcript, at: usize, wanted: Span) -> Result<Vec<Change>, EditError> {
    let segment = &transcript.segments[at];
    let before = at.checked_sub(1).map(|before| &transcript.segments[before]);
    // Segments that overlap already may go on overlapping.
    let first = before.map_or(Time::ZERO, |before| before.end.min(segment.start).max(before.start));
    let (mut latest, mut last) = (Time::from_millis(u32::MAX), Time::from_millis(u32::MAX));
    if let Some(after) = transcript.segments.get(at + 1) {
        (latest, last) = (after.start, after.start.max(segment.end));
    } else if transcript.source.duration > Time::ZERO {
        last = transcript.source.duration.max(segment.end);
    }
    let start = wanted.start.max(first).min(latest);
    let end = wanted.end.min(last);
    if start >= end {
        return Err(EditError::NoTime);
    }
    if (start, end) == (segment.start, segment.end) {
        return Ok(Vec::new());
    }
    let mut after = Segment { start, end, ..segment.clone() };
    let is_moved = i64::from(end.millis()) - i64::from(segment.end.millis())
        == i64::from(start.millis()) - i64::from(segment.start.millis());
    let moved = |time: Time| match is_moved {
        true => (time + start).saturating_sub(segment.start),
        false => time,
    };
    for word in &mut after.words {
        word.start = moved(word.start).clamp(start, end);
        word.end = moved(word.end).clamp(start, end);
    }
    Ok(vec![replaced(at, std::slice::from_ref(segment), vec![after])])
}

fn set_speaker(transcript: &Transcript, indices: &[usize], speaker: Option<String>) -> Vec<Change> {
    let mut by_name: std::collections::BTreeMap<&Option<String>, Vec<usize>> =
        std::collections::BTreeMap::new();
    for at in indices {
        by_name.entry(&transcript.segments[*at].speaker).or_default().push(*at);
    }
    by_name.remove(&speaker);
    let change = |(before, indices): (&Option<String>, Vec<usize>)| Change::Speaker {
        ranges: ranges(&indices),
        before: before.clone(),
        after: speaker.clone(),
    };
    by_name.into_iter().map(change).collect()
}

fn set_speaker_of_words(
    transcript: &Transcript,
    at: usize,
    range: Range<usize>,
    speaker: Option<String>,
) -> Result<Vec<Change>, EditError> {
    let segment = &transcript.segments[at];
    let words = whole_words(segment, range).ok_or(EditError::NotFound)?;
    if segment.speaker == speaker {
        return Ok(Vec::new());
    }
    let mut next = transcript.segments.get(at + 1).map(|next| next.start);
    let mut ids = next_id(transcript)..;
    let mut parts = vec![segment.clone()];
    // From the end, so that what stands before stays where it is.
    for cut in [words.end, words.start] {
        let Ok(two) = split_segment(&parts[0], cut, next, ids.next().unwrap_or_default()) else { continue };
        next = two.get(1).map(|second| second.start);
        parts.splice(..1, two);
    }
    let meant = usize::from(words.start > 0);
    parts[meant].speaker = speaker;
    Ok(vec![replaced(at, std::slice::from_ref(segment), parts)])
}

/// The characters of the words that lie at least partly within a range of characters.
fn whole_words(segment: &Segment, range: Range<usize>) -> Option<Range<usize>> {
    let words = match words_of_text(segment) {
        words if words.is_empty() => spread_evenly(&segment.text, span(segment)),
        words => words,
    };
    let mut place = 0;
    let mut found: Option<Range<usize>> = None;
    for (index, word) in words.iter().enumerate() {
        let text = if index == 0 { word.text.trim_start() } else { &word.text };
        let start = place + text.chars().take_while(|character| character.is_whitespace()).count();
        place += text.chars().count();
        if start < range.end && range.start < place {
            found = Some(found.map_or(start, |found| found.start)..place);
        }
    }
    found
}

fn accepted(segment: &Segment) -> Segment {
    let mut after = Segment { suspicions: Vec::new(), ..segment.clone() };
    after.words.iter_mut().for_each(|word| word.probability = 1.0);
    after
}
