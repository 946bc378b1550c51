//! A transcript as a document of facts and paragraphs, which Markdown, HTML,
//! Word and PDF have in common.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::text::{SpeakerLabels, one_line};
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Segment, Task, Time, Transcript};

/// A paragraph longer than this ends at the next end of a sentence.
const LONG_PARAGRAPH: Time = Time::from_millis(60_000);
/// A pause of at least this length starts a new paragraph.
const PAUSE: Time = Time::from_millis(3_000);

/// What stands beside the text of a document, and how the text is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default)]
pub struct DocumentOptions {
    /// The time before each paragraph.
    pub times: bool,
    /// The speaker before each paragraph.
    pub speakers: bool,
    /// Paragraphs of several segments; else one per segment.
    pub paragraphs: bool,
}

impl Default for DocumentOptions {
    fn default() -> Self {
        Self { times: true, speakers: true, paragraphs: true }
    }
}

/// Consecutive segments of one speaker.
pub struct Paragraph<'a> {
    /// The title of the chapter that begins with it.
    pub chapter: Option<Cow<'a, str>>,
    /// The start of the first segment, if the document shows times.
    pub time: Option<String>,
    /// The speaker, if the document shows speakers.
    pub label: Option<String>,
    pub sentences: Vec<Sentence<'a>>,
    /// What the sentences mean in the language of the translation, if it is to stand below them.
    pub translation: Option<String>,
}

/// One segment's text.
pub struct Sentence<'a> {
    pub segment: &'a Segment,
    pub text: Cow<'a, str>,
    /// What separates it from the sentence before it.
    pub space: &'static str,
}

pub fn title(transcript: &Transcript) -> Cow<'_, str> {
    match one_line(&transcript.source.name) {
        name if name.is_empty() => "Transcript".into(),
        name => name,
    }
}

/// Facts about the transcript as names and values, in the order in which to show them.
pub fn facts(transcript: &Transcript) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Length", reading_clock(transcript.source.duration))];
    let probability = transcript.language_probability;
    let probability = probability.map(|it| format!(" ({:.0} %)", it * 100.0)).unwrap_or_default();
    let task = if transcript.task == Task::Translate { ", translated to English" } else { "" };
    facts.push(("Language", format!("{}{probability}{task}", one_line(&transcript.language))));
    let (name, precision) = (one_line(&transcript.model.name), one_line(&transcript.model.precision));
    let precision = if precision.is_empty() { String::new() } else { format!(" ({precision})") };
    facts.push(("Model", format!("{name}{precision}")));
    if !transcript.complete {
        facts.push(("Incomplete", "the job ended early".into()));
    }
    let gaps: Vec<String> = transcript
        .completeness
        .gaps
        .iter()
        .map(|gap| format!("{} to {}", reading_clock(gap.start), reading_clock(gap.end)))
        .collect();
    if !gaps.is_empty() {
        facts.push(("Speech without text", gaps.join(", ")));
    }
    facts
}

/// `0:07`, `12:34`, `1:02:03`.
pub fn reading_clock(time: Time) -> String {
    let seconds = time.millis() / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// The paragraphs of a transcript. A new one starts with a new chapter, speaker or
/// direction of writing, after a long pause and, if a paragraph has become
/// long, after a sentence.
pub fn paragraphs<'a>(transcript: &'a Transcript, options: &Options) -> Vec<Paragraph<'a>> {
    let document = &options.document;
    let labels = SpeakerLabels::of(transcript);
    let mut paragraphs: Vec<Paragraph<'_>> = Vec::new();
    let mut latest: Option<&Segment> = None;
    let mut chapters = transcript.placed_chapters().into_iter().peekable();
    let mut begins = None;
    for (index, segment) in transcript.segments.iter().enumerate() {
        let text = one_line(&segment.text);
        // What begins with a segment without text begins with the next one.
        while let Some((_, chapter)) = chapters.next_if(|(at, _)| *at <= index) {
            begins = Some(one_line(&chapter.title));
        }
        if text.is_empty() {
            continue;
        }
        let label = labels.label(segment);
        let continues = paragraphs.last_mut().zip(latest).filter(|(paragraph, before)| {
            let long = before.end.saturating_sub(paragraph.sentences[0].segment.start) >= LONG_PARAGRAPH;
            let ended = before.text.trim_end().ends_with(['.', '!', '?', '。', '！', '？', '؟', '…', '"']);
            document.paragraphs
                && begins.is_none()
                && paragraph.label == label
                && direction(&paragraph.sentences[0].text) == direction(&text)
                && segment.start.saturating_sub(before.end) < PAUSE
                && !(long && ended)
        });
        match continues {
            Some((paragraph, before)) => {
                let space = space_between(&before.text, &text);
                paragraph.sentences.push(Sentence { segment, text, space });
            }
            None => {
                let sentences = vec![Sentence { segment, text, space: "" }];
                let time = document.times.then(|| reading_clock(segment.start));
                paragraphs.push(Paragraph {
                    chapter: begins.take(),
                    time,
                    label,
                    sentences,
                    translation: None,
                });
            }
        }
        latest = Some(segment);
    }
    // Only now: a new speaker begins a paragraph, named or not.
    if !document.speakers {
        paragraphs.iter_mut().for_each(|paragraph| paragraph.label = None);
    }
    if options.translation {
        paragraphs.iter_mut().for_each(|paragraph| paragraph.translation = translation(&paragraph.sentences));
    }
    paragraphs
}

/// The translations of a paragraph's sentences, one after the other.
fn translation(sentences: &[Sentence<'_>]) -> Option<String> {
    let parts = sentences.iter().filter_map(|sentence| sentence.segment.translation.as_deref()).map(one_line);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The separator of two sentences: none between full-width characters.
pub fn space_between(before: &str, after: &str) -> &'static str {
    use unicode_width::UnicodeWidthChar;
    let wide = |c: Option<char>| c.is_some_and(|c| c.width() == Some(2));
    if wide(before.trim_end().chars().last()) && wide(after.chars().next()) { "" } else { " " }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    LeftToRight,
    RightToLeft,
}

/// How a run of text looks.
#[derive(Debug, Clone, Copy)]
pub enum RunStyle {
    Plain,
    Bold,
    Small,
    SmallGrey,
    Grey,
    Highlighted,
}

/// What a heading is the heading of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    Document,
    Chapter,
}

/// A paragraph with its looks, for the formats that have pages.
pub struct Block {
    pub heading: Option<Heading>,
    pub direction: Direction,
    pub runs: Vec<(RunStyle, String)>,
}

/// A heading, the facts, and the paragraphs below the titles of their chapters, each before its translation; doubtful
/// sentences are highlighted.
pub fn blocks(transcript: &Transcript, options: &Options) -> Vec<Block> {
    let name = title(transcript);
    let note = |runs| Block { heading: None, direction: Direction::LeftToRight, runs };
    let heading = |of, text: Cow<str>| Block {
        heading: Some(of),
        direction: direction(&text),
        runs: vec![(RunStyle::Plain, text.into_owned())],
    };
    let mut blocks = vec![heading(Heading::Document, name)];
    if transcript.model.demonstration {
        blocks.push(note(vec![(RunStyle::Bold, DEMONSTRATION_WARNING.to_owned())]));
    }
    blocks.extend(facts(transcript).into_iter().map(|(name, value)| {
        note(vec![(RunStyle::SmallGrey, format!("{name}: ")), (RunStyle::Small, value)])
    }));
    for paragraph in paragraphs(transcript, options) {
        blocks.extend(paragraph.chapter.map(|title| heading(Heading::Chapter, title)));
        let direction = direction(&paragraph.sentences[0].text);
        let time = paragraph.time.map(|time| (RunStyle::SmallGrey, format!("{time} ")));
        let label = paragraph.label.map(|label| (RunStyle::Bold, format!("{label}: ")));
        let sentences = paragraph.sentences.iter().map(|sentence| {
            let doubtful = !sentence.segment.suspicions.is_empty();
            let style = if doubtful { RunStyle::Highlighted } else { RunStyle::Plain };
            (style, format!("{}{}", sentence.space, sentence.text))
        });
        let runs = time.into_iter().chain(label).chain(sentences).collect();
        blocks.push(Block { heading: None, direction, runs });
        blocks.extend(paragraph.translation.map(|translation| note(vec![(RunStyle::Grey, translation)])));
    }
    blocks
}

/// The direction of the first letter, as browsers determine it for `dir="auto"`.
pub fn direction(text: &str) -> Direction {
    let first = text.chars().find(|c| c.is_alphabetic());
    let right_to_left = first.is_some_and(|c| {
        // Hebrew to Arabic Extended-A, presentation forms, and the historic and
        // other right-to-left scripts of the Supplementary Multilingual Plane.
        matches!(u32::from(c), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff | 0x10800..=0x10fff | 0x1e800..=0x1efff)
    });
    if right_to_left { Direction::RightToLeft } else { Direction::LeftToRight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    fn check(segments: Vec<Segment>, expected: &[&str]) {
        let transcript = transcript(segments);
        let found: Vec<String> = paragraphs(&transcript, &Options::default())
            .iter()
            .map(|paragraph| {
                paragraph.sentences.iter().map(|it| format!("{}{}", it.space, it.text)).collect()
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn paragraphs_end_at_pauses_and_after_a_minute() {
        check(vec![segment(0, 1000, "A."), segment(1000, 2000, "B.")], &["A. B."]);
        check(vec![segment(0, 1000, "A."), segment(4000, 5000, "B.")], &["A.", "B."]);
        check(
            vec![segment(0, 61_000, "A"), segment(61_000, 62_000, "goes on."), segment(62_000, 63_000, "B.")],
            &["A goes on.", "B."],
        );
        check(vec![segment(0, 1000, "你好。"), segment(1000, 2000, "再见。")], &["你好。再见。"]);
        check(vec![segment(0, 1000, "Hello."), segment(1000, 2000, "שלום.")], &["Hello.", "שלום."]);
        check(vec![segment(0, 1000, " \n")], &[]);
    }

    #[test]
    fn a_new_speaker_starts_a_paragraph() {
        let by = |speaker: &str, segment: Segment| Segment { speaker: Some(speaker.into()), ..segment };
        check(
            vec![
                by("Ada", segment(0, 1000, "A.")),
                by("Ada", segment(1000, 2000, "B.")),
                by("Grace", segment(2000, 3000, "C.")),
            ],
            &["A. B.", "C."],
        );
    }

    #[test]
    fn directions() {
        for (text, expected) in [
            ("Hello", Direction::LeftToRight),
            ("12 «שלום» a", Direction::RightToLeft),
            ("مرحبا", Direction::RightToLeft),
            ("日本", Direction::LeftToRight),
            ("123", Direction::LeftToRight),
        ] {
            assert_eq!(direction(text), expected, "{text}");
        }
    }
}
