//! How long the history takes: a transcript of 20,000 segments opened, edited
//! and undone, and words looked for in 1,000 transcripts.
//!
//! usage: cargo run -p library --example history [FOLDER RECORDING SEGMENTS|FILE.json]
//! With arguments it only writes a history into that folder, with one transcript
//! of so many segments, four seconds each, for the measurements in tests/window, or with the one that is saved
//! in a JSON file of that name.

use std::path::Path;
use std::time::{Duration, Instant};

use library::Documents;
use library::documents::{Filter, HISTORY_FILE, StepDirection};
use transcript::edit::{self, Edit, TextPattern};
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, Word};

const SEGMENTS: u32 = 20_000;
const TRANSCRIPTS: u32 = 1_000;
/// Of each of the many, about 20 minutes.
const SHORT: u32 = 300;
const WORDS: [&str; 16] = [
    "harbour", "ferry", "morning", "quay", "ships", "weather", "islands", "screen", "tugs", "people",
    "hundred", "metres", "spring", "charge", "quiet", "northern",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [folder, recording, segments] = &arguments[..] {
        let (documents, _) = Documents::open(&Path::new(folder).join(HISTORY_FILE))?;
        let talk = match segments.parse() {
            Ok(segments) => talk(segments, TRANSCRIPTS)?,
            Err(_) => {
                let mut saved = Transcript::load(Path::new(segments))?;
                edit::assign_ids(&mut saved);
                saved
            }
        };
        documents.add(Path::new(recording), None, &talk)?;
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("steno-history-{}", std::process::id()));
    let result = measure(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn measure(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let file = folder.join(HISTORY_FILE);
    let (documents, _) = Documents::open(&file)?;
    let begun = Instant::now();
    for number in 0..TRANSCRIPTS {
        documents.add(Path::new("/recordings/talk.wav"), None, &talk(SHORT, number)?)?;
    }
    println!(
        "{TRANSCRIPTS} transcripts of {SHORT} segments written down: {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let long = talk(SEGMENTS, TRANSCRIPTS)?;
    let begun = Instant::now();
    let id = documents.add(Path::new("/recordings/long.wav"), None, &long)?;
    println!("one of {SEGMENTS}: {}", millis(begun.elapsed()));
    println!("file: {} MB", std::fs::metadata(&file)?.len() / 1_000_000);
    let (mut opened, took) = timed(|| documents.read(id))?;
    println!("opened: {took}");
    let opened = opened.as_mut().ok_or("it is not there")?;
    let mut done = 0;
    for (name, edit) in [
        ("text", Edit::SetText { segment: SEGMENTS / 2, text: "Another text, said here.".into() }),
        ("split", Edit::Split { segment: SEGMENTS / 2, at: 13 }),
        ("merge", Edit::Merge { segment: SEGMENTS / 2 }),
        (
            "speaker of all",
            Edit::SetSpeaker { segments: (1..=SEGMENTS).collect(), speaker: Some("Ada".into()) },
        ),
        ("rename", Edit::RenameSpeaker { from: "Ada".into(), to: "Grace".into() }),
        ("replace all", {
            let pattern = TextPattern { text: "ferry".into(), ..TextPattern::default() };
            pattern.finder()?.replace_all(&opened.transcript, "boat").0
        }),
    ] {
        let begun = Instant::now();
        let changes = edit.plan(&opened.transcript)?;
        documents.record(id, done, &changes)?;
        edit::apply(&mut opened.transcript, &changes)?;
        done += 1;
        println!("{name}: {}", millis(begun.elapsed()));
    }
    for way in [StepDirection::Undo, StepDirection::Redo] {
        let begun = Instant::now();
        for _ in 0..6 {
            let Some((changes, undo_position)) = documents.step(id, done, way)? else {
                return Err("nothing to step".into());
            };
            edit::apply(&mut opened.transcript, &changes)?;
            done = undo_position.done;
        }
        println!("{way:?} of all six: {}", millis(begun.elapsed()));
    }
    for words in ["harbour", "northern quay", "er", "y", "zebra", "morning quay ships"] {
        let (hits, took) = timed(|| documents.search(words, &Filter::default()))?;
        println!("search \"{words}\": {} hits, {took}", hits.hits.len());
    }
    let (list, took) = timed(|| documents.list())?;
    println!("list of {}: {took}", list.len());
    Ok(())
}

fn timed<T, E>(work: impl Fn() -> Result<T, E>) -> Result<(T, String), E> {
    let mut times = Vec::new();
    for _ in 0..4 {
        let begun = Instant::now();
        work()?;
        times.push(begun.elapsed());
    }
    let begun = Instant::now();
    let result = work()?;
    times.push(begun.elapsed());
    times.sort();
    Ok((result, format!("median of 5 {}, longest {}", millis(times[2]), millis(times[4]))))
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Other words in every transcript, from a small generator.
fn talk(segments: u32, seed: u32) -> Result<Transcript, Box<dyn std::error::Error>> {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 0, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes())?;
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    for number in 0..segments {
        let word = |index: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let start = Time::from_millis(4000 * number + 380 * index);
            let text = format!(" {}", WORDS[(state >> 24) as usize % WORDS.len()]);
            Word { text, start, end: start + Time::from_millis(350), probability: 0.93 }
        };
        let words: Vec<_> = (0..10).map(word).collect();
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        let (start, end) = (Time::from_millis(4000 * number), Time::from_millis(4000 * number + 3800));
        talk.segments.push(Segment { start, end, text: text.trim().into(), words, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    Ok(talk)
}
