//! Exporting transcripts to the file formats of other programs, one module per
//! format. A new format needs a module with a `write` function, a variant of
//! [`Format`] that is also in [`Format::ALL`], and golden files; the window's
//! `formats.ts` and texts fail to compile until they know it.
//!
//! Every exporter writes the same bytes for the same transcript and options,
//! independent of locale, time zone and operating system; only PDF depends on the
//! fonts of the computer. Text formats are
//! UTF-8 without a byte order mark, with `\n` at line ends.

mod ass;
mod chapters;
mod csv;
mod cues;
mod document;
mod docx;
mod html;
mod json;
mod lrc;
mod md;
mod pdf;
mod rttm;
mod shape;
mod srt;
pub(crate) mod text;
mod tsv;
mod txt;
mod vtt;
mod whisperx;

pub use document::{DocumentOptions, space_between};
pub(crate) use pdf::NoFont;
pub use shape::Shaping;
pub use text::clock;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Transcript;

/// The warning that every export of the demonstration model's text carries.
/// Plain text has it in brackets, which the usual text normalisers drop.
pub const DEMONSTRATION_WARNING: &str =
    "Demonstration model: this text is not reliable. Use a real model for your own recordings.";

/// Writes `transcript` to `out` in many small pieces: buffer `out` if its calls
/// are expensive.
///
/// # Errors
/// Those of `out`; for PDF also letters that no installed font has.
pub fn export(
    transcript: &Transcript,
    format: Format,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Txt => txt::write(transcript, options, out),
        Format::Srt => srt::write(transcript, options, out),
        Format::Vtt => vtt::write(transcript, options, out),
        Format::Json => json::write(transcript, options, out),
        Format::Ass => ass::write(transcript, options, out),
        Format::Lrc => lrc::write(transcript, options, out),
        Format::Md => md::write(transcript, options, out),
        Format::Html => html::write(transcript, options, out),
        Format::Docx => docx::write(transcript, options, out),
        Format::Pdf => pdf::write(transcript, options, out),
        Format::Csv => csv::write(transcript, options, out),
        Format::Tsv => tsv::write(transcript, options, out),
        Format::Whisperx => whisperx::write(transcript, out),
        Format::Rttm => rttm::write(transcript, out),
        Format::Chapters => chapters::write_txt(transcript, out),
        Format::ChaptersVtt => chapters::write_vtt(transcript, out),
    }
}

/// How to export. Formats ignore the options that don't concern them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Options {
    /// JSON: leave out what varies between runs of the same job ([`Transcript::run`]).
    pub reproducible: bool,
    /// Subtitles: divide the text into cues that fit a screen; `None` writes a cue
    /// per segment.
    pub shaping: Option<Shaping>,
    /// WebVTT, SubStation Alpha and LRC: write the time of each word.
    pub word_times: bool,
    /// Tables and SubRip: keep text that other programs take for a formula or a tag.
    #[serde(default)]
    pub raw_text: bool,
    /// Subtitles, plain text and documents: the translation stands below what was said;
    /// csv: in a column of its own.
    #[serde(default)]
    pub translation: bool,
    /// Markdown, HTML, Word and PDF: what stands beside the text, and how it is divided.
    #[serde(default)]
    pub document: DocumentOptions,
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain text, one segment per line.
    Txt,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// Advanced SubStation Alpha subtitles.
    Ass,
    /// Lines with times, as music players show lyrics.
    Lrc,
    /// The whole transcript; the only format that [`Transcript::load`] reads.
    Json,
    /// Markdown, in paragraphs.
    Md,
    /// A web page that needs no other file, in paragraphs.
    Html,
    /// A document for Word and LibreOffice, in paragraphs.
    Docx,
    /// A document to print, in paragraphs.
    Pdf,
    /// Comma-separated values for spreadsheets.
    Csv,
    /// Tab-separated values with the columns of openai/whisper.
    Tsv,
    /// JSON with the fields of WhisperX.
    Whisperx,
    /// Who speaks when, without the text, as diarization tools exchange it.
    Rttm,
    /// Starts and titles of the chapters, as YouTube reads them.
    Chapters,
    /// WebVTT with the chapters, for players.
    #[serde(rename = "chapters-vtt")]
    ChaptersVtt,
}

impl Format {
    /// All formats, in the order in which to offer them.
    pub const ALL: &[Format] = &[
        Format::Txt,
        Format::Srt,
        Format::Vtt,
        Format::Ass,
        Format::Lrc,
        Format::Json,
        Format::Md,
        Format::Html,
        Format::Docx,
        Format::Pdf,
        Format::Csv,
        Format::Tsv,
        Format::Whisperx,
        Format::Rttm,
        Format::Chapters,
        Format::ChaptersVtt,
    ];

    /// The name by which the user chooses the format, e.g. `srt`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Txt => "txt",
            Format::Srt => "srt",
            Format::Vtt => "vtt",
            Format::Ass => "ass",
            Format::Lrc => "lrc",
            Format::Json => "json",
            Format::Md => "md",
            Format::Html => "html",
            Format::Docx => "docx",
            Format::Pdf => "pdf",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Whisperx => "whisperx",
            Format::Rttm => "rttm",
            Format::Chapters => "chapters",
            Format::ChaptersVtt => "chapters-vtt",
        }
    }

    /// The file extension, without the leading dot.
    pub fn extension(self) -> &'static str {
        match self {
            // These differ from `json`, `txt` and `vtt`, so that both can be in one folder.
            Format::Whisperx => "whisperx.json",
            Format::Chapters => "chapters.txt",
            Format::ChaptersVtt => "chapters.vtt",
            other => other.name(),
        }
    }

    /// Whether it lists the chapters, which only a transcript has in which they were found.
    pub fn is_of_chapters(self) -> bool {
        matches!(self, Format::Chapters | Format::ChaptersVtt)
    }

    /// A phrase for help texts.
    pub fn description(self) -> &'static str {
        match self {
            Format::Txt => "plain text, one segment per line",
            Format::Srt => "SubRip subtitles",
            Format::Vtt => "WebVTT subtitles",
            Format::Ass => "SubStation Alpha subtitles",
            Format::Lrc => "lines with times, for music players that show lyrics",
            Format::Json => "all data, for `steno export` and other programs",
            Format::Md => "Markdown, in paragraphs",
            Format::Html => "a single web page, in paragraphs",
            Format::Docx => "a document for Word and LibreOffice, in paragraphs",
            Format::Pdf => "a document for printing, in paragraphs, with this computer's fonts",
            Format::Csv => "a table for spreadsheets",
            Format::Tsv => "a table in the style of openai/whisper",
            Format::Whisperx => "json in the style of WhisperX",
            Format::Rttm => "who speaks when, for diarization tools",
            Format::Chapters => "times and titles of the chapters, for the description of a YouTube video",
            Format::ChaptersVtt => "the chapters as WebVTT, for players",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no [`Format`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a transcript format; known formats are {known}",
    known = Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Ignores case and a leading dot.
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let wanted = name.trim();
        let wanted = wanted.strip_prefix('.').unwrap_or(wanted);
        Format::ALL
            .iter()
            .copied()
            .find(|format| format.name().eq_ignore_ascii_case(wanted))
            .ok_or_else(|| UnknownFormat(name.into()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Completeness, Model, Segment, Source, Task, Time};

    pub fn segment(start: u32, end: u32, text: &str) -> Segment {
        Segment {
            start: Time::from_millis(start),
            end: Time::from_millis(end),
            text: text.into(),
            ..Segment::default()
        }
    }

    pub fn transcript(segments: Vec<Segment>) -> Transcript {
        Transcript {
            schema_version: crate::SCHEMA_VERSION,
            source: Source { name: "talk.wav".into(), ..Source::default() },
            model: Model { name: "tiny".into(), precision: "f32".into(), ..Model::default() },
            language: "en".into(),
            language_probability: None,
            task: Task::Transcribe,
            settings: serde_json::Value::Null,
            segments,
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: Vec::new(),
            completeness: Completeness::default(),
            notices: Vec::new(),
            complete: true,
            run: None,
        }
    }

    #[test]
    fn formats_are_known_by_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(*format));
            assert_eq!(format!(".{}", format.name().to_uppercase()).parse(), Ok(*format));
        }
        let error = "doc".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("`doc`") && error.contains("srt, vtt, ass"), "{error}");
    }
}
