//! How well a search finds, on the set that scripts/retrieval/generate.py makes: the ranks of words and of
//! meaning, fused, are at least as good as either. The fake model here knows what the generator knows, and
//! errs as often as a small real one; examples/retrieval.rs of the command line measures real ones.

use std::path::Path;

use library::Documents;
use library::documents::{HISTORY_FILE, IndexModel, Meaning, PassageId, Question};
use serde::Deserialize;
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};

#[derive(Deserialize)]
struct Set {
    passages: Vec<String>,
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    text: String,
    passage: usize,
}

/// Every event is told in each of so many situations.
const SITUATIONS: usize = 10;
const EVENTS: usize = 50;

/// The event and the situation, and noise that differs from text to text.
fn vector(passage: usize, text: &str) -> Vec<f32> {
    let mut state = text.bytes().fold(7_u64, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 * 0.9
    };
    let mut vector: Vec<f32> = (0..EVENTS + SITUATIONS).map(|_| noise()).collect();
    vector[passage / SITUATIONS] += 2.0;
    vector[EVENTS + passage % SITUATIONS] += 1.0;
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

#[test]
fn words_and_meaning_together_find_at_least_what_each_finds() {
    let set: Set = serde_json::from_str(include_str!("../../../../tests/data/retrieval.json")).unwrap();
    assert_eq!((set.passages.len(), set.questions.len()), (EVENTS * SITUATIONS, 100));
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::open(&folder.path().join(HISTORY_FILE)).unwrap().0;
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    for (number, text) in set.passages.iter().enumerate() {
        let start = Time::from_millis(20_000 * number as u32);
        let (end, speaker) = (start + Time::from_millis(19_000), Some(number.to_string()));
        talk.segments.push(Segment { start, end, text: text.clone(), speaker, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    documents.add(Path::new("/recordings/talk.wav"), None, &talk).unwrap();
    let model = IndexModel { name: "fake".into(), version: "1".into(), dimensions: EVENTS + SITUATIONS };
    let index = documents.index_of(&model).unwrap().id;
    let passages = documents.passages_without_vector(index, PassageId(0), 1000).unwrap();
    let number = |text: &str| set.passages.iter().position(|one| one == text).unwrap();
    let vectors: Vec<_> = passages.into_iter().map(|(id, text)| (id, vector(number(&text), &text))).collect();
    documents.put_vectors(index, &vectors).unwrap();
    assert!(documents.finish_index(index).unwrap());

    // Of questions in other words, and of questions that quote the rare words of what is looked for.
    let quoted = |passage: usize| {
        let words = set.passages[passage].split_whitespace().filter(|word| word.len() > 5).take(4);
        words.collect::<Vec<_>>().join(" ")
    };
    let paraphrased: Vec<_> = set.questions.iter().map(|one| (one.text.clone(), one.passage)).collect();
    let literal: Vec<_> = set.questions.iter().map(|one| (quoted(one.passage), one.passage)).collect();
    let recall = |questions: &[(String, usize)], words: bool, meaning: bool| {
        let found = questions.iter().filter(|(text, passage)| {
            let question = Question {
                text: if words { text.clone() } else { String::new() },
                meaning: meaning.then(|| Meaning { index, vector: vector(*passage, text) }),
                most: 5,
                ..Question::default()
            };
            documents.find(&question).unwrap().iter().any(|one| one.text == set.passages[*passage])
        });
        found.count()
    };
    for (name, questions, words_find) in [("paraphrased", paraphrased, 0..=5), ("literal", literal, 60..=100)]
    {
        let [words, meaning, both] = [(true, false), (false, true), (true, true)]
            .map(|(words, meaning)| recall(&questions, words, meaning));
        println!("recall at 5 of 100, {name}: words {words}, meaning {meaning}, both {both}");
        assert!(words_find.contains(&words), "{name}: {words}");
        assert!((60..100).contains(&meaning), "{name}: {meaning}");
        assert!(both >= words && both >= meaning, "{name}: words {words}, meaning {meaning}, both {both}");
    }
}
