//! Search for what was meant, on a real disk. The vectors come from a fake model that knows which words mean
//! the same.

use std::path::Path;

use library::documents::{
    Filter, FoundPassage, HISTORY_FILE, Index, IndexModel, Meaning, PassageId, Question, StepDirection,
};
use library::{DocumentId, Documents};
use transcript::edit::{self, Edit};
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript};

/// Words of each row mean the same.
const MEANINGS: [&[&str]; 7] = [
    &["sell", "sold", "selling", "buyer"],
    &["boat", "ship", "yacht", "vessel"],
    &["doctor", "surgeon", "hospital", "clinic"],
    &["rain", "storm", "weather"],
    &["school", "teacher", "lesson"],
    &["bread", "oven", "baker"],
    &["船", "売る"],
];

fn model(name: &str) -> IndexModel {
    IndexModel { name: name.into(), version: "1".into(), dimensions: MEANINGS.len() + 1 }
}

/// One component per meaning, and one that all texts have.
fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let mut vector = vec![0.3];
    for words in MEANINGS {
        vector.push(words.iter().filter(|word| text.contains(*word)).count() as f32);
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| x / length).collect()
}

fn open(folder: &Path) -> Documents {
    Documents::open(&folder.join(HISTORY_FILE)).unwrap().0
}

/// Segments of ten seconds: speaker and text.
fn talk(language: &str, said: &[(&str, &str)]) -> Transcript {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "{language}", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
    for (number, (speaker, text)) in said.iter().enumerate() {
        let start = Time::from_millis(10_000 * number as u32);
        let end = start + Time::from_millis(9_000);
        let speaker = Some((*speaker).to_owned()).filter(|name| !name.is_empty());
        talk.segments.push(Segment { start, end, text: (*text).into(), speaker, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    talk
}

fn add(documents: &Documents, file: &str, language: &str, said: &[(&str, &str)]) -> DocumentId {
    documents.add(Path::new(file), None, &talk(language, said)).unwrap()
}

/// Gives every passage its vector; the number of those that had none.
fn embed(documents: &Documents, model: &IndexModel) -> usize {
    while documents.cut_passages().unwrap() {}
    let index = documents.index_of(model).unwrap().id;
    let missing = documents.passages_without_vector(index, PassageId(0), usize::MAX >> 1).unwrap();
    let vectors: Vec<_> = missing.iter().map(|(id, text)| (*id, vector(text))).collect();
    documents.put_vectors(index, &vectors).unwrap();
    assert!(documents.finish_index(index).unwrap());
    missing.len()
}

fn question(documents: &Documents, text: &str, filter: &Filter) -> Question {
    let meaning = documents.index().unwrap().map(|index| Meaning { index: index.id, vector: vector(text) });
    Question { text: text.into(), meaning, filter: filter.clone(), most: 5 }
}

fn find(documents: &Documents, text: &str) -> Vec<FoundPassage> {
    documents.find(&question(documents, text, &Filter::default())).unwrap()
}

fn texts(found: &[FoundPassage]) -> Vec<&str> {
    found.iter().map(|one| one.text.as_str()).collect()
}

/// File, language, speakers with what they say.
type Talk = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const TALKS: [Talk; 3] = [
    (
        "/recordings/family/july.wav",
        "en",
        &[
            ("Ada", "We finally found a buyer for the yacht."),
            ("Grace", "The surgeon called from the clinic."),
            ("Ada", "There was a storm all night."),
        ],
    ),
    (
        "/recordings/office/monday.wav",
        "en",
        &[("Grace", "Our teacher was late for the lesson."), ("Linus", "The oven at the baker is broken.")],
    ),
    ("/recordings/office/japan.wav", "ja", &[("", "父は船を売ると言いました。")]),
];

fn filled(folder: &Path) -> (Documents, Vec<DocumentId>) {
    let documents = open(folder);
    let ids = TALKS.iter().map(|(file, language, said)| add(&documents, file, language, said)).collect();
    (documents, ids)
}

#[test]
fn a_question_finds_what_was_meant_and_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let (documents, ids) = filled(folder.path());
    // Without a model words alone are found.
    assert_eq!(find(&documents, "the one where she talks about selling the boat"), []);
    assert_eq!(texts(&find(&documents, "surgeon"))[0], TALKS[0].2[1].1);
    assert_eq!(embed(&documents, &model("fake")), 6);

    let found = find(&documents, "the one where she talks about selling the boat");
    assert_eq!((found[0].document, found[0].segment, found[0].title.as_str()), (ids[0], 1, "july.wav"));
    assert_eq!((found[0].speaker.as_deref(), found[0].words.len()), (Some("Ada"), 0));
    assert!(found[0].similarity.unwrap() > 0.9, "{found:?}");

    let found = find(&documents, "was the Surgeon at the hospital?");
    assert_eq!(found[0].text, TALKS[0].2[1].1);
    let words: Vec<&str> = found[0].words.iter().map(|range| &found[0].text[range.clone()]).collect();
    assert_eq!(words, ["surgeon"]);
    assert!(found[0].similarity.is_some());

    assert_eq!(find(&documents, "船を売る")[0].text, TALKS[2].2[0].1);
    assert_eq!(find(&documents, "  "), find(&documents, ""));
    // It is all there after a restart.
    drop(documents);
    assert_eq!(find(&open(folder.path()), "a vessel that was sold")[0].text, TALKS[0].2[0].1);
}

#[test]
fn filters_leave_the_rest_out_in_every_kind_of_search() {
    let folder = tempfile::tempdir().unwrap();
    let (documents, ids) = filled(folder.path());
    documents.set_tags(ids[1], &["court".into()]).unwrap();
    embed(&documents, &model("fake"));
    let (first, created) = {
        let list = documents.list().unwrap();
        (ids[0], list.iter().find(|one| one.id == ids[0]).unwrap().created)
    };
    let filter = Filter::default;
    let cases: [(Filter, &[DocumentId], usize); 9] = [
        (filter(), &ids, 6),
        (Filter { speaker: Some("ada".into()), ..filter() }, &[first], 2),
        (Filter { speaker: Some("Grace".into()), ..filter() }, &ids[..2], 2),
        (Filter { language: Some("ja".into()), ..filter() }, &ids[2..], 1),
        (Filter { folder: Some("/recordings/office".into()), ..filter() }, &ids[1..], 3),
        (Filter { tag: Some("court".into()), ..filter() }, &ids[1..2], 2),
        (Filter { since: Some(created), ..filter() }, &ids, 6),
        (Filter { since: Some(i64::MAX), ..filter() }, &[], 0),
        (Filter { until: Some(created), ..filter() }, &[], 0),
    ];
    for (filter, expected, passages) in cases {
        let index = documents.index().unwrap().unwrap().id;
        let all = Question { most: 100, ..question(&documents, "boat", &filter) };
        let of = |found: &[FoundPassage]| {
            let mut ids: Vec<_> = found.iter().map(|one| one.document).collect();
            ids.dedup();
            ids.sort();
            ids.dedup();
            ids
        };
        let found = documents.find(&all).unwrap();
        assert_eq!((of(&found), found.len()), (expected.to_vec(), passages), "{filter:?}");
        let every = documents.search("e", &filter).unwrap();
        let mut hits: Vec<_> = every.hits.iter().map(|hit| hit.document).collect();
        hits.sort();
        hits.dedup();
        let western: Vec<_> = expected.iter().copied().filter(|id| *id != ids[2]).collect();
        assert_eq!((hits, every.hits.len()), (western, passages - usize::from(expected.contains(&ids[2]))));
        // Like the first passage, without itself.
        let like = documents.similar(index, PassageId(1), &filter, 100).unwrap();
        assert!(like.iter().all(|one| one.id != PassageId(1) && expected.contains(&one.document)));
    }
    assert_eq!(
        documents.speakers_and_languages().unwrap(),
        (vec!["Ada".into(), "Grace".into(), "Linus".into()], vec!["en".into(), "ja".into()])
    );
}

#[test]
fn an_edit_takes_vectors_of_what_changed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    let lines: Vec<String> = (0..400)
        .map(|number| format!("Line {number} is about nothing of any weight, {}.", number * 7919))
        .collect();
    let said: Vec<_> = lines.iter().map(|line| ("Ada", line.as_str())).collect();
    let id = add(&documents, "/recordings/long.wav", "en", &said);
    let all = embed(&documents, &model("fake"));
    assert!(all > 100, "{all}");
    let mut done = 0;
    let mut change = |edit: &Edit| {
        let opened = documents.read(id).unwrap().unwrap();
        documents.record(id, done, &edit.plan(&opened.transcript).unwrap()).unwrap();
        done += 1;
    };
    change(&Edit::SetText { segment: 200, text: "Then they sold the boat.".into() });
    let index = documents.index().unwrap().unwrap();
    // The words are found at once; the meaning as soon as it is computed.
    assert!(find(&documents, "they sold the boat")[0].text.contains("sold the boat"));
    assert!((1..=8).contains(&embed(&documents, &model("fake"))));
    assert_eq!(find(&documents, "the yacht has a buyer")[0].speaker.as_deref(), Some("Ada"));
    assert!(find(&documents, "the yacht has a buyer")[0].text.contains("sold the boat"));
    change(&Edit::RenameSpeaker { from: "Ada".into(), to: "Grace".into() });
    assert_eq!(embed(&documents, &model("fake")), 0, "the texts are the same");
    assert_eq!(find(&documents, "the yacht has a buyer")[0].speaker.as_deref(), Some("Grace"));
    documents.step(id, done, StepDirection::Undo).unwrap();
    documents.step(id, done - 1, StepDirection::Undo).unwrap();
    assert!((1..=8).contains(&embed(&documents, &model("fake"))));
    let now = documents.index().unwrap().unwrap();
    assert_eq!((now.id, now.passages, now.missing), (index.id, all as u64, 0));
}

#[test]
fn another_model_is_used_once_all_its_vectors_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let (documents, _) = filled(folder.path());
    assert_eq!(documents.index().unwrap(), None);
    embed(&documents, &model("old"));
    let serving = |documents: &Documents| {
        documents.index().unwrap().map(|Index { model, missing, .. }| (model.name, missing))
    };
    let new = documents.index_of(&model("new")).unwrap();
    assert_eq!((new.missing, new.passages), (6, 6));
    assert_eq!(serving(&documents), Some(("old".into(), 0)));
    let some = documents.passages_without_vector(new.id, PassageId(0), 4).unwrap();
    let vectors: Vec<_> = some.iter().map(|(id, text)| (*id, vector(text))).collect();
    documents.put_vectors(new.id, &vectors).unwrap();
    // A vector of another length, or of a passage that is gone, is not stored.
    documents.put_vectors(new.id, &[(PassageId(6), vec![1.0]), (PassageId(99), vector("boat"))]).unwrap();
    assert!(!documents.finish_index(new.id).unwrap());
    assert_eq!(find(&documents, "selling the boat")[0].text, TALKS[0].2[0].1);
    drop(documents);
    let documents = open(folder.path());
    assert_eq!(serving(&documents), Some(("old".into(), 0)));
    assert_eq!(embed(&documents, &model("new")), 2, "what was computed is kept");
    assert_eq!(serving(&documents), Some(("new".into(), 0)));
    assert_eq!(find(&documents, "selling the boat")[0].text, TALKS[0].2[0].1);
}

#[test]
fn a_deleted_transcript_leaves_no_vector_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (documents, ids) = filled(folder.path());
    embed(&documents, &model("fake"));
    // The last index of a file is the one that is asked.
    let index = documents.index().unwrap().unwrap().id;
    let secret: Vec<f32> = (0..8).map(|number| [0.11, -0.53, 0.47, 0.29][number % 4]).collect();
    documents.put_vectors(index, &[(PassageId(1), secret)]).unwrap();
    let bytes = [26_i8, -127, 113, 69, 26, -127, 113, 69].map(|byte| byte as u8);
    let is_in_file = || {
        let content = ["", "-wal"].map(|ending| {
            std::fs::read(folder.path().join(format!("{HISTORY_FILE}{ending}"))).unwrap_or_default()
        });
        content.iter().any(|content| content.windows(8).any(|window| window == bytes))
    };
    assert!(is_in_file(), "the test looks for the wrong bytes");
    documents.delete(ids[0], true).unwrap();
    assert!(!texts(&find(&documents, "selling the boat")).contains(&TALKS[0].2[0].1));
    assert_eq!(documents.index().unwrap().unwrap().passages, 3);
    documents.purge(i64::MAX).unwrap();
    drop(documents);
    assert!(!is_in_file());
    let documents = open(folder.path());
    assert_eq!(documents.index().unwrap().unwrap().missing, 0);
    assert!(find(&documents, "surgeon").iter().all(|one| one.document != ids[0] && one.words.is_empty()));
}

/// Vectors are stored in 8 bits: what they find is what all bits would find.
#[test]
fn stored_vectors_are_as_near_as_exact_ones() {
    const DIMENSIONS: usize = 384;
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut unit = || {
        let vector: Vec<f32> = (0..DIMENSIONS).map(|_| random()).collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.into_iter().map(|x| x / length).collect::<Vec<f32>>()
    };
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    let lines: Vec<String> = (0..500).map(|number| format!("Speaker {number} says it.")).collect();
    let names: Vec<String> = (0..500).map(|number| number.to_string()).collect();
    let said: Vec<_> = names.iter().zip(&lines).map(|(name, line)| (name.as_str(), line.as_str())).collect();
    add(&documents, "/recordings/many.wav", "en", &said);
    let model = IndexModel { dimensions: DIMENSIONS, ..model("random") };
    let index = documents.index_of(&model).unwrap().id;
    let passages = documents.passages_without_vector(index, PassageId(0), 1000).unwrap();
    let vectors: Vec<_> = passages.into_iter().map(|(id, _)| (id, unit())).collect();
    documents.put_vectors(index, &vectors).unwrap();
    assert!(documents.finish_index(index).unwrap());
    for _ in 0..20 {
        let asked = unit();
        let mut exact: Vec<_> = vectors
            .iter()
            .map(|(id, vector)| (vector.iter().zip(&asked).map(|(a, b)| a * b).sum::<f32>(), *id))
            .collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        let meaning = Some(Meaning { index, vector: asked });
        let found = documents.find(&Question { meaning, most: 10, ..Question::default() }).unwrap();
        for (one, (similarity, _)) in found.iter().zip(&exact) {
            assert!((one.similarity.unwrap() - similarity).abs() < 0.002, "{one:?} {similarity}");
        }
        assert_eq!(found[0].id, exact[0].1);
    }
}

/// How many documents have what word: the rest of the question says nothing.
#[test]
fn words_that_are_everywhere_do_not_answer_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let documents = open(folder.path());
    for number in 0..40 {
        add(
            &documents,
            &format!("/r/{number}.wav"),
            "en",
            &[("", "She talks about that and about the weather.")],
        );
    }
    add(&documents, "/r/boat.wav", "en", &[("", "The old boat."), ("", "It goes to the harbour.")]);
    let found = find(&documents, "she talks about the harbour");
    assert_eq!((found.len(), found[0].title.as_str(), found[0].segment), (1, "boat.wav", 2));
    assert_eq!(found[0].at, Time::from_millis(10_000));
    assert_eq!(find(&documents, "that zebra"), []);
    // No word begins with it.
    assert_eq!(find(&documents, "eather"), []);
    assert_eq!(find(&documents, "weath").len(), 5);
}
