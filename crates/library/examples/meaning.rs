//! How long a search by meaning takes, how large its file is and how long an index is written: 100,000
//! passages of 384 dimensions with random vectors, whose values don't change the work; and the bare scan with
//! vectors in 32 and in 16 bits for comparison.
//!
//! usage: cargo run -p library --example meaning [PASSAGES [DIMENSIONS]]
//!        cargo run -p library --example meaning write FOLDER PASSAGES
//! The latter only writes a history into a folder, with the sentences of tests/data/retrieval.json.

use std::path::Path;
use std::time::{Duration, Instant};

use library::Documents;
use library::documents::{Filter, HISTORY_FILE, IndexModel, Meaning, PassageId, Question};
use rusqlite::Connection;
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};

/// Of each transcript, about 20 minutes.
const SEGMENTS: u32 = 300;
const WORDS_OF_SEGMENT: usize = 11;
/// Different words; how often each occurs goes with its rank, as in a language.
const WORDS: usize = 20_000;
/// As in a job: vectors that are stored at once.
const BATCH: usize = 256;
const QUESTIONS: usize = 200;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "write").is_some() {
        let (folder, passages) = arguments.next().zip(arguments.next()).ok_or("write FOLDER PASSAGES")?;
        return write(Path::new(&folder), passages.parse()?);
    }
    let passages: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let dimensions: usize = arguments.next().map_or(Ok(384), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("steno-meaning-{}", std::process::id()));
    let result = measure(&folder, passages, dimensions);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn measure(folder: &Path, passages: u64, dimensions: usize) -> Result<()> {
    let file = folder.join(HISTORY_FILE);
    let (documents, _) = Documents::open(&file)?;
    let mut random = Random(1);
    let model = IndexModel { name: "random".into(), version: "1".into(), dimensions };
    let index = documents.index_of(&model)?.id;
    let begun = Instant::now();
    let mut transcripts = 0;
    while transcripts % 20 != 0 || documents.index_of(&model)?.passages < passages {
        documents.add(
            Path::new("/recordings/talk.wav"),
            None,
            &talk(&mut || random.sentence(WORDS_OF_SEGMENT))?,
        )?;
        transcripts += 1;
    }
    let count = documents.index_of(&model)?.passages;
    println!("{transcripts} transcripts, {count} passages: {:.1} s", begun.elapsed().as_secs_f64());
    drop(documents);
    let before = std::fs::metadata(&file)?.len();
    println!("file without vectors: {} MB", before / 1_000_000);

    let (documents, _) = Documents::open(&file)?;
    let begun = Instant::now();
    let mut last = PassageId(0);
    loop {
        let missing = documents.passages_without_vector(index, last, BATCH)?;
        let Some((id, _)) = missing.last() else { break };
        last = *id;
        let vectors: Vec<_> = missing.into_iter().map(|(id, _)| (id, random.unit(dimensions))).collect();
        documents.put_vectors(index, &vectors)?;
    }
    documents.finish_index(index)?;
    println!("vectors stored in batches of {BATCH}: {:.1} s", begun.elapsed().as_secs_f64());
    drop(documents);
    let after = std::fs::metadata(&file)?.len();
    println!("file: {} MB, {} of them for meaning", after / 1_000_000, (after - before) / 1_000_000);
    let begun = Instant::now();
    let (documents, _) = Documents::open(&file)?;
    println!("opened: {}", millis(begun.elapsed()));

    let mut ask = |name: &str, text: bool, meaning: bool, filter: &Filter| -> Result<()> {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let text = if text { random.sentence(7) } else { String::new() };
            let meaning = meaning.then(|| Meaning { index, vector: random.unit(dimensions) });
            let question = Question { text, meaning, filter: filter.clone(), most: 20 };
            let begun = Instant::now();
            documents.find(&question)?;
            times.push(begun.elapsed());
        }
        println!("{name}: {}", told(times));
        Ok(())
    };
    let all = Filter::default();
    ask("words of a question", true, false, &all)?;
    ask("its meaning", false, true, &all)?;
    ask("both", true, true, &all)?;
    ask("both, of one speaker", true, true, &Filter { speaker: Some("Ada".into()), ..Filter::default() })?;
    let mut times = Vec::new();
    for number in 0..50 {
        let begun = Instant::now();
        documents.similar(index, PassageId(1 + number * 1000), &all, 20)?;
        times.push(begun.elapsed());
    }
    println!("more like this: {}", told(times));
    println!("memory of this process at its peak: {} MB", peak_megabytes().unwrap_or_default());
    drop(documents);
    for (name, bytes) in [("32 bits", 4), ("16 bits", 2), ("8 bits", 1)] {
        println!("bare scan, {name}: {}", bare_scan(&folder.join(name), count, dimensions, bytes)?);
    }
    Ok(())
}

/// A history of at least so many passages, of English sentences.
fn write(folder: &Path, passages: u64) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Set {
        passages: Vec<String>,
    }
    let set: Set = serde_json::from_str(include_str!("../../../tests/data/retrieval.json"))?;
    let sentences: Vec<&str> = set.passages.iter().flat_map(|text| text.split_inclusive(". ")).collect();
    let (documents, _) = Documents::open(&folder.join(HISTORY_FILE))?;
    let mut random = Random(1);
    let mut sentence = || sentences[(random.next() * sentences.len() as f64) as usize].trim().to_owned();
    let model = IndexModel { name: "none".into(), version: "1".into(), dimensions: 1 };
    while documents.index_of(&model)?.passages < passages {
        for _ in 0..10 {
            documents.add(Path::new("/recordings/talk.wav"), None, &talk(&mut sentence)?)?;
        }
    }
    println!("{} passages", documents.index_of(&model)?.passages);
    Ok(())
}

/// The scan alone, with components of so many bytes.
fn bare_scan(file: &Path, count: u64, dimensions: usize, bytes: usize) -> Result<String> {
    let mut connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA mmap_size = 1073741824; CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB)",
    )?;
    let transaction = connection.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO vectors (vector) VALUES (?1)")?;
    for number in 0..count {
        insert.execute([vec![(number % 251) as u8 & 0x3f; dimensions * bytes]])?;
    }
    drop(insert);
    transaction.commit()?;
    let question: Vec<f32> = (0..dimensions).map(|number| number as f32).collect();
    let (mut times, mut best) = (Vec::new(), f32::MIN);
    for _ in 0..20 {
        let begun = Instant::now();
        let mut select = connection.prepare("SELECT id, vector FROM vectors")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let blob = row.get_ref(1)?.as_blob()?;
            // Sixteen sums, which compilers turn into vector instructions.
            let mut sums = [0.0_f32; 16];
            for (vector, question) in blob.chunks_exact(16 * bytes).zip(question.as_chunks::<16>().0) {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let component = match bytes {
                        4 => f32::from_le_bytes([
                            vector[4 * lane],
                            vector[4 * lane + 1],
                            vector[4 * lane + 2],
                            vector[4 * lane + 3],
                        ]),
                        // bfloat16: the upper half.
                        2 => f32::from_le_bytes([0, 0, vector[2 * lane], vector[2 * lane + 1]]),
                        _ => f32::from(vector[lane] as i8),
                    };
                    *sum += component * question[lane];
                }
            }
            best = best.max(sums.iter().sum());
        }
        times.push(begun.elapsed());
    }
    let size = std::fs::metadata(file)?.len() / 1_000_000;
    Ok(format!("{}, file {size} MB (best {best:.1e})", told(times)))
}

fn told(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| millis(times[((times.len() - 1) as f64 * share).round() as usize]);
    format!("median of {} {}, 99th percentile {}", times.len(), at(0.5), at(0.99))
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1000)
}

/// Knuth's linear congruential generator.
struct Random(u64);

impl Random {
    /// From 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn unit(&mut self, dimensions: usize) -> Vec<f32> {
        let vector: Vec<f32> = (0..dimensions).map(|_| self.next() as f32 - 0.5).collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.into_iter().map(|x| x / length).collect()
    }

    /// The word of rank r is drawn about 1/r as often as the first.
    fn word(&mut self) -> String {
        let mut rank = (WORDS as f64).powf(self.next()) as usize;
        let mut word = String::new();
        // Frequent words are short.
        for syllable in [b"tbdklmnrsv", b"aeiouaeiou"].iter().cycle() {
            word.push(char::from(syllable[rank % 10]));
            rank /= 10;
            if rank == 0 && word.len() > 2 {
                return word;
            }
        }
        word
    }

    fn sentence(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn talk(sentence: &mut dyn FnMut() -> String) -> Result<Transcript> {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 0, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes())?;
    for number in 0..SEGMENTS {
        let (start, end) = (Time::from_millis(4000 * number), Time::from_millis(4000 * number + 3800));
        let speaker = Some(if number % 60 < 45 { "Ada" } else { "Grace" }.to_owned());
        let text = sentence();
        talk.segments.push(Segment { start, end, text, speaker, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    Ok(talk)
}
