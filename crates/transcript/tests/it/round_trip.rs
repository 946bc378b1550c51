//! Whatever a transcript holds, what is written can be read back and says the
//! same. The readers here follow the formats' descriptions, not our writers.

use std::io::Read as _;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use transcript::export::{DEMONSTRATION_WARNING, Format, Options, Shaping, export};
use transcript::{Completeness, Model, Notice, RunInfo, SCHEMA_VERSION, Segment, Severity, Source, Span};
use transcript::{StageTime, Suspicion, Task, Time, Transcript, Word};

/// Text as people and models write it, and what breaks writers: markup,
/// arrows, blank lines, control characters, right-to-left, digits alone.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z äöüß.,?!]{1,12}",
        1 => Just("-->".to_string()),
        1 => Just("--->".to_string()),
        1 => Just("&amp; <b>x</b>".to_string()),
        1 => Just("\n\n".to_string()),
        1 => Just("\r\n".to_string()),
        1 => Just("\n7\n00:00:01,000 --> 00:00:02,000\n".to_string()),
        1 => Just("\u{2067}שלום\u{2069} مرحبا".to_string()),
        1 => Just("日本語のテキスト".to_string()),
        1 => Just("NOTE\n\nWEBVTT".to_string()),
        2 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn time() -> impl Strategy<Value = Time> {
    // Small ones collide often, large ones pass 100 hours.
    prop_oneof![0..20_000u32, 0..400_000_000u32].prop_map(Time::from_millis)
}

fn word() -> impl Strategy<Value = Word> {
    (text(), time(), time(), 0f32..1.0).prop_map(|(text, start, end, probability)| Word {
        text,
        start,
        end,
        probability,
    })
}

/// Words as a model writes them: the text, divided before its white space.
fn words_of(text: &str, start: Time, end: Time) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if !c.is_whitespace() || word.text.trim().is_empty() => word.text.push(c),
            _ => words.push(Word { text: c.into(), ..Word::default() }),
        }
    }
    let step = end.saturating_sub(start).millis() / words.len().max(1) as u32;
    for (index, word) in (0..).zip(&mut words) {
        word.start = start + Time::from_millis(index * step);
        word.end = word.start + Time::from_millis(step);
    }
    words
}

fn segment() -> impl Strategy<Value = Segment> {
    (
        (time(), time(), text(), vec(word(), 0..3), option::of("[a-z]{2}"), option::of(text())),
        (option::of(0..3u32), any::<f32>(), any::<f32>(), 0f32..1.0, 0f32..50.0, option::of(text())),
        (any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(
                (start, end, text, words, language, speaker),
                (channel, t, l, n, c, raw_text),
                (doubted, spoken),
            )| {
                let finite = |value: f32| if value.is_finite() { value } else { 0.0 };
                let words = if spoken { words_of(&text, start, end) } else { words };
                let suspicions =
                    if doubted { vec![Suspicion::Loop, Suspicion::OverSilence] } else { Vec::new() };
                Segment {
                    id: 0,
                    start,
                    end,
                    text,
                    translation: raw_text.clone(),
                    words,
                    language,
                    speaker,
                    channel,
                    temperature: finite(t),
                    mean_log_probability: finite(l),
                    no_speech_probability: n,
                    compression_ratio: c,
                    suspicions,
                    raw_text,
                }
            },
        )
}

prop_compose! {
    fn transcript()(
        segments in vec(segment(), 0..8),
        name in text(),
        demonstration in any::<bool>(),
        complete in any::<bool>(),
        translate in any::<bool>(),
        language_probability in option::of(0f32..1.0),
        gap in (time(), time()),
        notice in option::of((text(), option::of(time()))),
        run in option::of((text(), 0f64..1e6, option::of(any::<u64>()))),
    ) -> Transcript {
        Transcript {
            schema_version: SCHEMA_VERSION,
            source: Source { name, duration: gap.1, sample_rate: 44_100, channels: 2, format: "flac".into() },
            model: Model { name: "tiny".into(), precision: "f16".into(), demonstration, adapter: None },
            language: "en".into(),
            language_probability,
            task: if translate { Task::Translate } else { Task::Transcribe },
            settings: serde_json::json!({"beam_size": 5, "temperatures": [0.0, 0.2], "prompt": null}),
            segments,
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: Vec::new(),
            completeness: Completeness { speech: gap.0, covered: gap.1, gaps: vec![Span::new(gap.0, gap.1)] },
            notices: notice
                .map(|(text, at)| Notice { code: "x.y".into(), severity: Severity::Degraded, text, at, data: None })
                .into_iter()
                .collect(),
            complete,
            run: run.map(|(device, factor, peak)| RunInfo {
                finished_at: "2026-01-02T03:04:05Z".into(),
                device,
                engine: "0.1.0".into(),
                stages: vec![StageTime { name: "transcribe".into(), seconds: factor, processor_seconds: 2.0 * factor }],
                real_time_factor: factor,
                peak_memory_bytes: peak,
            }),
        }
    }
}

fn exported(transcript: &Transcript, format: Format, options: &Options) -> String {
    let mut bytes = Vec::new();
    export(transcript, format, options, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[derive(Debug, PartialEq)]
struct Read {
    start: u32,
    end: u32,
    lines: Vec<String>,
}

fn clock(text: &str, point: char) -> u32 {
    let (rest, millis) = text.rsplit_once(point).unwrap();
    let parts: Vec<u32> = rest.split(':').map(|part| part.parse().unwrap()).collect();
    assert!(parts.len() == 3 && parts[1] < 60 && parts[2] < 60 && millis.len() == 3, "{text}");
    ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1000 + millis.parse::<u32>().unwrap()
}

fn times(line: &str, point: char) -> (u32, u32) {
    let (start, end) = line.split_once(" --> ").unwrap();
    (clock(start, point), clock(end, point))
}

/// Blocks divided by blank lines: number, times, text.
fn read_srt(srt: &str) -> Vec<Read> {
    let mut cues = Vec::new();
    for block in srt.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut lines = block.lines();
        let number: usize = lines.next().unwrap().parse().unwrap();
        assert_eq!(number, cues.len() + 1);
        let (start, end) = times(lines.next().unwrap(), ',');
        cues.push(Read { start, end, lines: lines.map(String::from).collect() });
    }
    cues
}

/// Blocks divided by blank lines; a block with an arrow in its first or
/// second line is a cue. Tags are dropped and character references resolved.
fn read_vtt(vtt: &str) -> Vec<Read> {
    let mut blocks = vtt.split("\n\n");
    assert_eq!(blocks.next().map(str::trim_end), Some("WEBVTT"));
    let mut cues = Vec::new();
    for block in blocks.filter(|block| !block.trim().is_empty() && !block.starts_with("NOTE")) {
        let (head, text) = block.split_once('\n').unwrap();
        let (start, end) = times(head, '.');
        assert!(!text.contains("-->"));
        let mut plain = String::new();
        let mut in_tag = false;
        for c in text.chars() {
            match c {
                '<' => in_tag = true,
                '>' if in_tag => in_tag = false,
                c if !in_tag => plain.push(c),
                _ => {}
            }
        }
        let plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        cues.push(Read { start, end, lines: plain.lines().map(String::from).collect() });
    }
    cues
}

fn check_cues(cues: &[Read]) -> Result<(), TestCaseError> {
    for cue in cues {
        prop_assert!(cue.start < cue.end, "{cue:?}");
        prop_assert!(
            !cue.lines.is_empty() && cue.lines.iter().all(|line| !line.trim().is_empty()),
            "{cue:?}"
        );
    }
    for pair in cues.windows(2) {
        prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
    Ok(())
}

/// All that is said, in order of time, letters and signs only.
fn said(transcript: &Transcript) -> String {
    let mut segments: Vec<_> = transcript.segments.iter().collect();
    segments.sort_by_key(|segment| segment.start);
    squeezed(segments.iter().map(|segment| segment.text.as_str()))
}

/// Without white space and control characters, which a format may rearrange.
fn squeezed<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.flat_map(str::chars).filter(|c| !c.is_whitespace() && !c.is_control()).collect()
}

fn spoken_text(segment: &Segment) -> String {
    squeezed([segment.text.as_str()].into_iter())
}

/// RFC 4180.
fn read_csv(csv: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                row.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line has no end");
    rows
}

/// Text of a page or a document: tags gone, character references resolved.
/// What stands in `dropped` elements goes as well.
fn without_tags(markup: &str, dropped: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some(open) = rest.find('<') {
        text += &rest[..open];
        let close = open + rest[open..].find('>').unwrap();
        let tag = &rest[open + 1..close];
        rest = &rest[close + 1..];
        if !dropped.is_empty() && tag == dropped {
            rest = &rest[rest.find(&format!("</{dropped}>")).unwrap()..];
        }
    }
    text += rest;
    for (reference, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
    {
        text = text.replace(reference, character);
    }
    text
}

fn without_speakers(mut transcript: Transcript) -> Transcript {
    for segment in &mut transcript.segments {
        segment.speaker = None;
        segment.channel = None;
    }
    transcript
}

/// Without what guards players and spreadsheets.
fn raw() -> Options {
    Options { raw_text: true, ..Options::default() }
}

proptest! {
    #[test]
    fn json_is_read_back_as_it_was(original in transcript()) {
        let json = exported(&original, Format::Json, &Options::default());
        prop_assert_eq!(&Transcript::from_json(json.as_bytes()).unwrap(), &original);
        prop_assert_eq!(json.contains(DEMONSTRATION_WARNING), original.model.demonstration);

        // Two runs of one job differ in nothing once the run is left out.
        let mut again = original.clone();
        again.run = None;
        let reproducible = Options { reproducible: true, ..Options::default() };
        prop_assert_eq!(
            exported(&original, Format::Json, &reproducible),
            exported(&again, Format::Json, &reproducible)
        );
    }

    #[test]
    fn srt_is_read_back_in_order_and_whole(original in transcript()) {
        let cues = read_srt(&exported(&original, Format::Srt, &Options::default()));
        check_cues(&cues)?;

        let mut plain = without_speakers(original);
        plain.model.demonstration = false;
        let cues = read_srt(&exported(&plain, Format::Srt, &raw()));
        check_cues(&cues)?;
        let found = squeezed(cues.iter().flat_map(|cue| cue.lines.iter().map(String::as_str)));
        // SubRip has no escape for the arrow between two times: it becomes another one.
        prop_assert_eq!(found.replace('→', "-->"), said(&plain).replace('→', "-->"));
    }

    #[test]
    fn vtt_is_read_back_in_order_and_whole(original in transcript()) {
        let vtt = exported(&original, Format::Vtt, &Options::default());
        prop_assert_eq!(vtt.contains(DEMONSTRATION_WARNING), original.model.demonstration);
        let cues = read_vtt(&vtt);
        check_cues(&cues)?;
        let found = squeezed(cues.iter().flat_map(|cue| cue.lines.iter().map(String::as_str)));
        prop_assert_eq!(found, said(&original));
    }

    #[test]
    fn txt_has_a_line_per_segment(original in transcript()) {
        let mut plain = without_speakers(original);
        plain.model.demonstration = false;
        let txt = exported(&plain, Format::Txt, &Options::default());
        let spoken: Vec<String> = plain
            .segments
            .iter()
            .map(|segment| squeezed([segment.text.as_str()].into_iter()))
            .filter(|text| !text.is_empty())
            .collect();
        let lines: Vec<String> = txt.split_terminator('\n').map(|line| squeezed([line].into_iter())).collect();
        prop_assert_eq!(lines, spoken);
    }

    #[test]
    fn shaped_subtitles_keep_to_their_size_and_lose_nothing(
        original in transcript(),
        line_width in 2usize..40,
        lines in 1usize..4,
        gap in 0u32..500,
    ) {
        let mut plain = without_speakers(original);
        plain.model.demonstration = false;
        let shaping = Shaping { line_width, lines, min_gap: Time::from_millis(gap), ..Shaping::default() };
        let options = Options { shaping: Some(shaping), word_times: true, ..Options::default() };
        for cues in [
            read_vtt(&exported(&plain, Format::Vtt, &options)),
            read_srt(&exported(&plain, Format::Srt, &options)),
        ] {
            check_cues(&cues)?;
            for cue in &cues {
                prop_assert!(cue.lines.len() <= lines, "{cue:?}");
                for line in &cue.lines {
                    prop_assert!(unicode_width::UnicodeWidthStr::width(line.as_str()) <= line_width, "{cue:?}");
                }
            }
        }
        // Texts of segments that overlap may be interleaved; without overlap the order is kept.
        let mut order = plain;
        for (index, segment) in order.segments.iter_mut().enumerate() {
            segment.start = Time::from_millis(index as u32 * 10_000);
            segment.end = Time::from_millis(index as u32 * 10_000 + 8_000);
            segment.words.clear();
        }
        let cues = read_vtt(&exported(&order, Format::Vtt, &options));
        let found = squeezed(cues.iter().flat_map(|cue| cue.lines.iter().map(String::as_str)));
        prop_assert_eq!(found, said(&order));
    }

    #[test]
    fn tables_are_read_back_field_by_field(original in transcript()) {
        let spoken: Vec<&Segment> =
            original.segments.iter().filter(|segment| !spoken_text(segment).is_empty()).collect();
        let columns = if original.model.demonstration { 7 } else { 6 };
        let rows = read_csv(&exported(&original, Format::Csv, &raw()));
        prop_assert_eq!(rows.len(), spoken.len() + 1);
        prop_assert!(rows.iter().all(|row| row.len() == columns), "{:?}", rows);
        for (row, segment) in rows[1..].iter().zip(&spoken) {
            prop_assert_eq!(squeezed([row[5].as_str()].into_iter()), spoken_text(segment));
            prop_assert_eq!(Time::from_seconds(row[0].parse().unwrap()), segment.start);
            prop_assert_eq!(Time::from_seconds(row[1].parse().unwrap()), segment.end);
        }
        let tsv = exported(&without_speakers(original.clone()), Format::Tsv, &raw());
        let rows: Vec<Vec<&str>> = tsv.split_terminator('\n').map(|row| row.split('\t').collect()).collect();
        prop_assert_eq!(rows.len(), spoken.len() + 1);
        prop_assert!(rows.iter().all(|row| row.len() == columns - 3), "{:?}", rows);
        for (row, segment) in rows[1..].iter().zip(&spoken) {
            prop_assert_eq!(row[0].parse::<u32>().unwrap(), segment.start.millis());
            prop_assert_eq!(squeezed([row[2]].into_iter()), spoken_text(segment));
        }
    }

    #[test]
    fn pages_and_documents_hold_every_word_and_no_markup_of_their_own(original in transcript()) {
        let plain = without_speakers(original);
        let spoken: String = plain.segments.iter().map(spoken_text).collect();

        let html = exported(&plain, Format::Html, &Options::default());
        let main = html.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0;
        prop_assert_eq!(squeezed([without_tags(main, "time").as_str()].into_iter()), spoken.clone());
        prop_assert_eq!(html.contains(DEMONSTRATION_WARNING), plain.model.demonstration);

        let mut docx = Vec::new();
        export(&plain, Format::Docx, &Options::default(), &mut docx).unwrap();
        let mut again = Vec::new();
        export(&plain, Format::Docx, &Options::default(), &mut again).unwrap();
        prop_assert!(docx == again, "two exports of one transcript differ");
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(docx)).unwrap();
        let mut document = String::new();
        archive.by_name("word/document.xml").unwrap().read_to_string(&mut document).unwrap();
        prop_assert_eq!(document.contains(&DEMONSTRATION_WARNING[..19]), plain.model.demonstration);
        let text = squeezed([without_tags(&document, "").as_str()].into_iter());
        let found: String = plain.segments.iter().map(spoken_text).collect::<Vec<_>>().join("");
        // Heading, facts and times stand between; every segment is there whole and in order.
        let mut rest = text.as_str();
        for segment in &plain.segments {
            let wanted: String =
                spoken_text(segment).chars().filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')).collect();
            let at = rest.find(&wanted);
            prop_assert!(at.is_some(), "{wanted:?} of {found:?} is not in {text:?}");
            rest = &rest[at.unwrap() + wanted.len()..];
        }

        let whisperx = exported(&plain, Format::Whisperx, &Options::default());
        let json: serde_json::Value = serde_json::from_str(&whisperx).unwrap();
        for (segment, read) in plain.segments.iter().zip(json["segments"].as_array().unwrap()) {
            prop_assert_eq!(read["text"].as_str().unwrap(), segment.text.as_str());
        }
    }

    #[test]
    fn reading_never_panics(json in vec(any::<u8>(), 0..200)) {
        let _ = Transcript::from_json(&json);
    }
}
