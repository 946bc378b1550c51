//! Every format, byte for byte, of a transcript with everything in it that a
//! writer could get wrong. Run with `STENO_BLESS=1` to write the files anew
//! after a format was changed on purpose, and read the difference.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use transcript::chapters::Chapter;
use transcript::export::{DocumentOptions, Format, Options, Shaping, export};
use transcript::speakers::NamedTurn;
use transcript::{
    Completeness, Model, Notice, RunInfo, SCHEMA_VERSION, Segment, Severity, Source, Span, StageTime,
    Suspicion, Task, Time, Transcript, Word,
};

fn segment(start: u32, end: u32, text: &str) -> Segment {
    Segment {
        start: Time::from_millis(start),
        end: Time::from_millis(end),
        text: text.into(),
        mean_log_probability: -0.25,
        compression_ratio: 1.5,
        no_speech_probability: 0.01,
        ..Segment::default()
    }
}

/// Words of equal length with the segment's text.
fn with_words(mut segment: Segment) -> Segment {
    let count = segment.text.split_whitespace().count() as u32;
    let step = (segment.end.millis() - segment.start.millis()) / count;
    segment.words = (0..count)
        .zip(segment.text.split_whitespace())
        .map(|(index, word)| Word {
            text: format!(" {word}"),
            start: Time::from_millis(segment.start.millis() + index * step),
            end: Time::from_millis(segment.start.millis() + (index + 1) * step),
            probability: 0.9,
        })
        .collect();
    segment
}

fn said_by(speaker: &str, segment: Segment) -> Segment {
    Segment { speaker: Some(speaker.into()), ..segment }
}

/// Two of the speakers were renamed since.
fn turn(start: u32, end: u32, speaker: &str) -> NamedTurn {
    let span = Span::new(Time::from_millis(start), Time::from_millis(end));
    NamedTurn { span, speaker: speaker.into(), channel: None }
}

fn chapter(start: u32, title: &str) -> Chapter {
    Chapter { start: Time::from_millis(start), title: title.into(), ..Chapter::default() }
}

fn talk() -> Transcript {
    Transcript {
        schema_version: SCHEMA_VERSION,
        source: Source {
            name: "talk & more <1>.mkv".into(),
            duration: Time::from_millis(3_725_250),
            sample_rate: 48_000,
            channels: 2,
            format: "matroska, opus".into(),
        },
        model: Model { name: "small".into(), precision: "f16".into(), demonstration: false, adapter: None },
        language: "en".into(),
        language_probability: Some(0.98),
        task: Task::Transcribe,
        settings: serde_json::json!({ "beam_size": 5, "temperatures": [0.0, 0.2] }),
        segments: vec![
            said_by("Ada", with_words(segment(0, 2_500, "Good morning, Grace."))),
            // Two at once, then one within another.
            said_by("Grace", segment(2_000, 4_000, "Morning! R&D says a < b --> c.")),
            said_by("Ada", segment(2_000, 3_000, "Right.")),
            said_by("عمر", segment(5_000, 7_250, "مرحبا، \u{2067}Steno 2.0\u{2069} هنا.")),
            Segment {
                language: Some("ja".into()),
                suspicions: vec![Suspicion::TooFast],
                raw_text: Some("テスト テスト".into()),
                ..segment(8_000, 9_500, "これは「字幕」のテストです。")
            },
            segment(10_000, 10_000, "One line.\n\nAnother one.\r\n"),
            segment(11_000, 12_000, "  \n"),
            segment(3_723_004, 3_725_250, "\"Quoted\", with a tab\tand the end, 100 %."),
        ],
        turns: vec![turn(0, 2_600, "Ada"), turn(2_000, 4_100, "Speaker 2"), turn(5_000, 7_300, "Speaker 3")],
        chapters: vec![
            chapter(0, "Good *morning*, R&D <1>"),
            // Too short for YouTube.
            chapter(5_000, "Steno 2.0 هنا"),
            chapter(10_000, "- Lines\n& more"),
        ],
        discarded: vec![segment(9_500, 9_900, "Thanks for watching!")],
        completeness: Completeness {
            speech: Time::from_millis(14_000),
            covered: Time::from_millis(11_500),
            gaps: vec![Span::new(Time::from_millis(12_000), Time::from_millis(14_500))],
        },
        notices: vec![
            Notice::new("audio.truncated", Severity::Degraded, "The file ends in the middle of a frame.")
                .at(Time::from_millis(3_725_250)),
        ],
        complete: true,
        run: Some(RunInfo {
            finished_at: "2026-01-02T03:04:05Z".into(),
            device: "cpu".into(),
            engine: "0.1.0".into(),
            stages: [("load_model", 0.5), ("transcribe", 620.25)]
                .map(|(name, seconds)| StageTime {
                    name: name.into(),
                    seconds,
                    processor_seconds: 1.5 * seconds,
                })
                .into(),
            real_time_factor: 0.1665,
            peak_memory_bytes: Some(734_003_200),
        }),
    }
}

fn demonstration() -> Transcript {
    let mut transcript = talk();
    transcript.model =
        Model { name: "starter".into(), precision: "f16".into(), demonstration: true, adapter: None };
    transcript.segments.truncate(1);
    transcript.chapters.truncate(1);
    transcript.run = None;
    transcript
}

/// All but pdf, and docx, whose bytes depend on how a library compresses:
/// [`the_parts_of_a_docx_equal_their_golden_files`] looks inside.
const TEXT: &[Format] = &[
    Format::Txt,
    Format::Srt,
    Format::Vtt,
    Format::Ass,
    Format::Lrc,
    Format::Json,
    Format::Md,
    Format::Html,
    Format::Csv,
    Format::Tsv,
    Format::Whisperx,
    Format::Rttm,
    Format::Chapters,
    Format::ChaptersVtt,
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[track_caller]
fn check(name: &str, transcript: &Transcript, format: Format, options: &Options) {
    let mut written = Vec::new();
    export(transcript, format, options, &mut written).unwrap();
    compare(name, &written);
}

#[track_caller]
fn compare(name: &str, written: &[u8]) {
    let path = folder().join(name);
    if std::env::var_os("STENO_BLESS").is_some() {
        std::fs::write(&path, written).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_default();
    assert!(
        written == expected,
        "{name} differs.\nwritten:\n{}\nexpected:\n{}",
        String::from_utf8_lossy(written),
        String::from_utf8_lossy(&expected)
    );
}

/// Two paragraphs of a German talk in English as well; a segment has no translation.
fn translated() -> Transcript {
    let said = |start, text: &str, translation: Option<&str>| Segment {
        translation: translation.map(Into::into),
        ..segment(start, start + 1_000, text)
    };
    let segments = vec![
        said(0, "Guten Tag.", Some("Good day.")),
        said(1_000, "Wie geht es Ihnen?", Some("How are *you*?")),
        said(9_000, "- 2 < 3.", Some("- 2 < 3, \"surely\".")),
        said(19_000, "Hm.", None),
    ];
    Transcript { segments, turns: Vec::new(), chapters: Vec::new(), language: "de".into(), ..talk() }
}

fn bilingual() -> Options {
    Options { translation: true, ..Options::default() }
}

#[test]
fn every_format_equals_its_golden_file() {
    // docx is compressed, and pdf takes the fonts of the computer; their own tests read them.
    assert_eq!(TEXT.len() + 2, Format::ALL.len(), "a format has no golden files");
    for format in TEXT {
        check(&format!("talk.{}", format.extension()), &talk(), *format, &Options::default());
        let name = format!("demonstration.{}", format.extension());
        check(&name, &demonstration(), *format, &Options::default());
    }
    check("reproducible.json", &talk(), Format::Json, &Options { reproducible: true, ..Options::default() });
    let shaping = Shaping { line_width: 24, ..Shaping::default() };
    let shaped = Options { shaping: Some(shaping), word_times: true, ..Options::default() };
    check("shaped.srt", &talk(), Format::Srt, &shaped);
    check("shaped.vtt", &talk(), Format::Vtt, &shaped);
    check("shaped.ass", &talk(), Format::Ass, &shaped);
    check("shaped.lrc", &talk(), Format::Lrc, &shaped);
    let document = DocumentOptions { times: false, speakers: false, paragraphs: false };
    let bare = Options { document, ..Options::default() };
    check("bare.md", &talk(), Format::Md, &bare);
    check("bare.html", &talk(), Format::Html, &bare);
    for format in [Format::Txt, Format::Srt, Format::Md, Format::Html, Format::Csv] {
        check(&format!("bilingual.{}", format.extension()), &translated(), format, &bilingual());
    }
}

#[test]
fn the_parts_of_a_docx_equal_their_golden_files() {
    let document = DocumentOptions { times: false, speakers: false, paragraphs: false };
    let bare = Options { document, ..Options::default() };
    for (name, transcript, options) in [
        ("talk", talk(), Options::default()),
        ("demonstration", demonstration(), Options::default()),
        ("bare", talk(), bare),
        ("bilingual", translated(), bilingual()),
    ] {
        let mut written = Vec::new();
        export(&transcript, Format::Docx, &options, &mut written).unwrap();
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(written)).unwrap();
        let mut parts = String::new();
        for index in 0..archive.len() {
            let mut part = archive.by_index(index).unwrap();
            parts += &format!("==> {} <==\n", part.name().unwrap());
            part.read_to_string(&mut parts).unwrap();
        }
        compare(&format!("{name}.docx.txt"), parts.as_bytes());
    }
}

#[test]
fn a_transcript_without_text_is_a_valid_file_in_every_format() {
    let mut empty = demonstration();
    empty.segments.clear();
    for format in TEXT {
        check(&format!("empty.{}", format.extension()), &empty, *format, &Options::default());
    }
}

#[test]
fn saved_json_is_read_back() {
    assert_eq!(Transcript::load(&folder().join("talk.json")).unwrap(), talk());
}
