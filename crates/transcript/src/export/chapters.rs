//! The chapters, for what shows them beside a film.

use std::io::{self, Write};

use super::DEMONSTRATION_WARNING;
use super::document::reading_clock;
use super::text::{clock, escape_markup, one_line};
use crate::{Time, Transcript};

/// YouTube shows none of the chapters where one is shorter.
const LEAST: Time = Time::from_millis(10_000);

/// Lines of a time and a title, as YouTube reads them in the description of a film: the first chapter begins
/// at 0:00, and none is shorter than ten seconds; a shorter one is a part of the one before.
pub fn write_txt(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    if transcript.model.demonstration {
        writeln!(out, "[{DEMONSTRATION_WARNING}]")?;
    }
    let end = end(transcript);
    let mut latest: Option<Time> = None;
    for (index, (start, title)) in chapters(transcript).enumerate() {
        let start = if index == 0 { Time::ZERO } else { start };
        let is_long = latest.is_none_or(|latest| start.saturating_sub(latest) >= LEAST);
        if index == 0 || (is_long && end.saturating_sub(start) >= LEAST) {
            writeln!(out, "{} {title}", reading_clock(start))?;
            latest = Some(start);
        }
    }
    Ok(())
}

/// A WebVTT file of the kind `chapters`: a cue for each, up to the next one.
pub fn write_vtt(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "WEBVTT")?;
    if transcript.model.demonstration {
        writeln!(out, "\nNOTE {DEMONSTRATION_WARNING}")?;
    }
    let ends = chapters(transcript).map(|(start, _)| start).skip(1).chain([end(transcript)]);
    for ((start, title), end) in chapters(transcript).zip(ends).filter(|((start, _), end)| start < end) {
        writeln!(out, "\n{} --> {}\n{}", clock(start, '.'), clock(end, '.'), escape_markup(&title))?;
    }
    Ok(())
}

/// Starts and titles.
fn chapters(transcript: &Transcript) -> impl Iterator<Item = (Time, String)> {
    let placed = transcript.placed_chapters().into_iter();
    placed.map(move |(at, chapter)| (transcript.segments[at].start, one_line(&chapter.title).into_owned()))
}

/// Of the recording, or of the text where that is not known.
fn end(transcript: &Transcript) -> Time {
    let text = transcript.segments.iter().map(|segment| segment.end).max().unwrap_or_default();
    transcript.source.duration.max(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::Chapter;
    use crate::export::tests::{segment, transcript};

    #[test]
    fn youtube_shows_what_is_written() {
        for (starts, end, expected) in [
            (&[8, 60, 120][..], 180, "0:00 A\n1:00 B\n2:00 C\n"),
            (&[0, 9, 19], 180, "0:00 A\n0:19 C\n"),
            (&[0, 60, 3_600], 3_605, "0:00 A\n1:00 B\n"),
            (&[0, 3_700], 4_000, "0:00 A\n1:01:40 B\n"),
            (&[3], 5, "0:00 A\n"),
            (&[], 5, ""),
        ] {
            let segments = starts.iter().map(|start| segment(start * 1000, (start + 1) * 1000, "Text."));
            let mut talk = transcript(segments.collect());
            talk.source.duration = Time::from_millis(end * 1000);
            talk.chapters = starts
                .iter()
                .zip(["A", "B", "C"])
                .map(|(start, title)| Chapter {
                    start: Time::from_millis(start * 1000),
                    title: title.into(),
                    ..Chapter::default()
                })
                .collect();
            let mut written = Vec::new();
            write_txt(&talk, &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{starts:?}");
        }
    }
}
