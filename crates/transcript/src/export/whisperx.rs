use std::io::{self, Write};

use serde::Serialize;

use super::DEMONSTRATION_WARNING;
use super::text::one_line;
use crate::{Segment, Transcript};

/// JSON with the fields of WhisperX: segments with words and scores, a list of
/// all words, and the language.
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    let segments: Vec<SegmentOut<'_>> = transcript
        .segments
        .iter()
        .map(|segment| SegmentOut {
            start: segment.start.seconds(),
            end: segment.end.seconds(),
            text: &segment.text,
            words: words(segment),
            speaker: segment.speaker.as_deref(),
        })
        .collect();
    let file = File {
        warning: transcript.model.demonstration.then_some(DEMONSTRATION_WARNING),
        word_segments: transcript.segments.iter().flat_map(words).collect(),
        segments,
        language: &transcript.language,
    };
    serde_json::to_writer_pretty(&mut *out, &file)?;
    writeln!(out)
}

fn words(segment: &Segment) -> Vec<WordOut<'_>> {
    let spoken = segment.words.iter().filter(|word| !word.text.trim().is_empty());
    spoken
        .map(|word| WordOut {
            word: one_line(&word.text).into_owned(),
            start: word.start.seconds(),
            end: word.end.seconds(),
            score: word.probability,
            speaker: segment.speaker.as_deref(),
        })
        .collect()
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
    segments: Vec<SegmentOut<'a>>,
    word_segments: Vec<WordOut<'a>>,
    language: &'a str,
}

#[derive(Serialize)]
struct SegmentOut<'a> {
    start: f64,
    end: f64,
    text: &'a str,
    words: Vec<WordOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<&'a str>,
}

#[derive(Serialize)]
struct WordOut<'a> {
    word: String,
    start: f64,
    end: f64,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<&'a str>,
}
