//! The index of the history's meaning: brought up to date beside other work, by processes that are killed.
//! Vectors come from a fake model, which hashes words.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use library::Documents;
use library::documents::{HISTORY_FILE, IndexModel, Meaning, PassageId, Question};
use memory::settings::EmbeddingProfile;
use supervisor::indexing::{Embeds, IndexProgress, bring_up_to_date, look};
use supervisor::meanings::{Meanings, PassagesOf};
use supervisor::{EmbedderSettings, EmbeddingModel};
use tokio::sync::watch;
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};
use wire::{ErrorCode, Failure};

const DIMENSIONS: usize = 32;
/// Passages of one transaction.
const AT_ONCE: usize = 64;

/// Counts which words a text has, by their hashes.
#[derive(Default)]
struct HashedWords {
    embedded: Vec<String>,
    /// Fails at the passages behind so many.
    fails_after: Option<usize>,
    /// Takes so long for each call.
    pause: Duration,
}

fn hashed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; DIMENSIONS];
    for word in text.split_whitespace() {
        let hash = word.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
        vector[hash as usize % DIMENSIONS] += 1.0;
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

impl Embeds for HashedWords {
    fn at_once(&self) -> usize {
        AT_ONCE
    }

    async fn embed_passages(&mut self, passages: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
        tokio::time::sleep(self.pause).await;
        if self.fails_after.is_some_and(|most| self.embedded.len() >= most) {
            return Err(Failure::new(ErrorCode::OutOfMemory, "There is not enough memory."));
        }
        let vectors = passages.iter().map(|text| hashed(text)).collect();
        self.embedded.extend(passages);
        Ok(vectors)
    }
}

fn model(name: &str) -> IndexModel {
    IndexModel { name: name.into(), version: "1".into(), dimensions: DIMENSIONS }
}

fn open(folder: &Path) -> Documents {
    Documents::open(&folder.join(HISTORY_FILE)).unwrap().0
}

/// A transcript in which everybody says one sentence: as many passages.
fn add(documents: &Documents, name: &str, passages: usize) {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    for number in 0..passages {
        let start = Time::from_millis(1000 * number as u32);
        let (text, speaker) = (format!("{name} says sentence {number}"), Some(number.to_string()));
        talk.segments.push(Segment {
            start,
            end: start + Time::from_millis(900),
            text,
            speaker,
            ..Segment::default()
        });
    }
    edit::assign_ids(&mut talk);
    documents.add(Path::new("/recordings/talk.wav"), None, &talk).unwrap();
}

async fn index(
    documents: &Documents,
    name: &str,
    embedder: &mut HashedWords,
) -> Result<Vec<IndexProgress>, Failure> {
    let mut told = Vec::new();
    let mut may_work = watch::Sender::new(true).subscribe();
    bring_up_to_date(documents, &model(name), embedder, &mut may_work, |progress| told.push(progress))
        .await?;
    Ok(told)
}

fn found(documents: &Documents, text: &str) -> String {
    let index = documents.index().unwrap().unwrap().id;
    let meaning = Some(Meaning { index, vector: hashed(text) });
    let question = Question { meaning, most: 1, ..Question::default() };
    documents.find(&question).unwrap().remove(0).text
}

#[tokio::test]
async fn everything_gets_its_vector_once_and_what_is_new_later() {
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    add(&documents, "Ada", 150);
    let mut embedder = HashedWords::default();
    let told = index(&documents, "hashes", &mut embedder).await.unwrap();
    let done: Vec<_> = told.iter().map(|one| (one.done, one.total)).collect();
    assert_eq!(done, [(0, 150), (64, 150), (128, 150), (150, 150)]);
    assert!(told[3].per_second > 0.0);
    assert_eq!(embedder.embedded.len(), 150);
    assert_eq!(hashed(&found(&documents, "Ada says sentence 77")), hashed("Ada says sentence 77"));
    add(&documents, "Grace", 10);
    assert_eq!(look(&documents, &model("hashes")).await.unwrap().missing, 10);
    let mut embedder = HashedWords::default();
    index(&documents, "hashes", &mut embedder).await.unwrap();
    assert!(embedder.embedded.len() == 10 && embedder.embedded[0].starts_with("Grace"));
    // Another model begins anew, and answers when it is complete.
    let mut failing = HashedWords { fails_after: Some(AT_ONCE), ..HashedWords::default() };
    let failure = index(&documents, "other", &mut failing).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::OutOfMemory);
    assert_eq!(documents.index().unwrap().unwrap().model.name, "hashes");
    let mut embedder = HashedWords::default();
    index(&documents, "other", &mut embedder).await.unwrap();
    assert_eq!(embedder.embedded.len(), 160 - AT_ONCE, "what was stored stays");
    assert_eq!(documents.index().unwrap().unwrap().model.name, "other");
}

#[tokio::test]
async fn indexing_waits_while_other_work_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    add(&documents, "Ada", 3 * AT_ONCE);
    let turn = Arc::new(watch::Sender::new(true));
    let told = Arc::new(Mutex::new(Vec::new()));
    let work = tokio::spawn({
        let (documents, mut may_work, told, turn) =
            (documents.clone(), turn.subscribe(), told.clone(), turn.clone());
        async move {
            let mut embedder = HashedWords::default();
            let tell = move |progress: IndexProgress| {
                // A recording is added when the first passages are done.
                if progress.done == AT_ONCE as u64 {
                    turn.send_replace(false);
                }
                told.lock().unwrap().push(progress.done);
            };
            bring_up_to_date(&documents, &model("hashes"), &mut embedder, &mut may_work, tell).await
        }
    });
    turn.subscribe().wait_for(|may| !may).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(*told.lock().unwrap(), [0, 64], "it went on beside the recording");
    turn.send_replace(true);
    work.await.unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), [0, 64, 128, 192]);
}

#[tokio::test]
async fn vectors_that_cannot_be_compared_are_an_error() {
    struct Wrong(Vec<f32>);
    impl Embeds for Wrong {
        fn at_once(&self) -> usize {
            AT_ONCE
        }

        async fn embed_passages(&mut self, passages: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
            Ok(passages.iter().map(|_| self.0.clone()).collect())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    add(&documents, "Ada", 2);
    for vector in [vec![], vec![1.0], vec![f32::NAN; DIMENSIONS]] {
        let mut may_work = watch::Sender::new(true).subscribe();
        let done = bring_up_to_date(&documents, &model("m"), &mut Wrong(vector), &mut may_work, |_| {}).await;
        assert_eq!(done.unwrap_err().code, ErrorCode::ModelInvalid);
    }
}

/// Larger batches are of use only where as many passages come together.
#[test]
fn as_many_passages_come_together_as_the_profile_embeds() {
    let (meanings, mut settings) = (Meanings::default(), EmbedderSettings::default());
    let model = EmbeddingModel { folder: "m".into(), name: "m".into(), version: "1".into(), dimensions: 2 };
    for (profile, at_once) in [(EmbeddingProfile::Quality, 128), (EmbeddingProfile::Speed, 256)] {
        settings.memory.embedding_profile = profile;
        let passages = PassagesOf { meanings: &meanings, model: &model, settings: &settings };
        assert_eq!(passages.at_once(), at_once);
    }
}

/// Kills an indexing process again and again: what was told as done is there, and in the end all of it, once.
#[tokio::test]
async fn a_killed_indexer_loses_at_most_what_it_was_computing() {
    const INDEXER: &str = "STENO_TEST_INDEXER";
    const PASSAGES: usize = 1000;
    if let Some(folder) = std::env::var_os(INDEXER) {
        let documents = open(Path::new(&folder));
        let mut embedder = HashedWords { pause: Duration::from_millis(5), ..HashedWords::default() };
        let mut may_work = watch::Sender::new(true).subscribe();
        let tell = |progress: IndexProgress| println!("done {}", progress.done);
        bring_up_to_date(&documents, &model("hashes"), &mut embedder, &mut may_work, tell).await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    add(&open(folder.path()), "Ada", PASSAGES);
    let mut kept = 0;
    for round in 1..=5 {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "indexing::a_killed_indexer_loses_at_most_what_it_was_computing",
            ])
            .env(INDEXER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("done ")?.parse::<usize>().ok());
        // After the first transactions of this process.
        let reached = told.take_while(|done| *done < kept + 1).count();
        assert_eq!(reached, 1, "round {round} began where the last one ended");
        child.kill().unwrap();
        child.wait().unwrap();
        let documents = open(folder.path());
        let index = look(&documents, &model("hashes")).await.unwrap();
        let now = (index.passages - index.missing) as usize;
        assert!(
            now > kept && now.is_multiple_of(AT_ONCE) && now < PASSAGES,
            "round {round}: {now} after {kept}"
        );
        kept = now;
    }
    let documents = open(folder.path());
    let mut embedder = HashedWords::default();
    index(&documents, "hashes", &mut embedder).await.unwrap();
    assert_eq!(embedder.embedded.len(), PASSAGES - kept);
    for number in [0, 1, 63, 64, 500, 999] {
        let text = format!("Ada says sentence {number}");
        assert_eq!(hashed(&found(&documents, &text)), hashed(&text));
    }
    let index = documents.index().unwrap().unwrap();
    assert_eq!((index.passages, index.missing), (PASSAGES as u64, 0));
    assert!(documents.passages_without_vector(index.id, PassageId(0), 10).unwrap().is_empty());
}
