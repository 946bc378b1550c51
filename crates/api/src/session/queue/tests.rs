use super::*;
use transcript::Time;
use wire::{ErrorCode, NO_JOB};

fn failure() -> Failure {
    Failure::new(ErrorCode::FileEmpty, "The file is empty.")
}

fn segment(text: &str) -> Segment {
    Segment { text: text.into(), end: Time::from_millis(500), ..Segment::default() }
}

fn said(text: &str) -> Event {
    Event::Segment { id: NO_JOB, segment: segment(text) }
}

fn transcript(texts: &[&str]) -> Box<Transcript> {
    let json = r#"{"schema_version": 1, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {"name": "talk", "duration": 1, "sample_rate": 16000, "channels": 1, "format": "wav"},
        "model": {"name": "m", "precision": "f32", "demonstration": true},
        "segments": [], "completeness": {"speech": 1, "covered": 1, "gaps": []}}"#;
    let mut transcript = Transcript::from_json(json.as_bytes()).unwrap();
    transcript.segments = texts.iter().map(|text| segment(text)).collect();
    Box::new(transcript)
}

fn queue(files: &[&str]) -> Queue {
    let mut queue = Queue::default();
    for file in files {
        queue.add(file.into(), None, false, None);
    }
    queue
}

/// Somebody who follows a text as the window does.
#[derive(Default)]
struct Reader {
    seen: u64,
    texts: Vec<String>,
}

impl Reader {
    fn look(&mut self, queue: &Queue, id: JobId) -> bool {
        let change = queue.text_since(id, self.seen, self.texts.len());
        self.seen = queue.version();
        let Some(change) = change else { return false };
        self.texts.truncate(change.from);
        self.texts.extend(change.segments.into_iter().map(|segment| segment.text));
        true
    }
}

#[test]
fn recordings_are_taken_in_order_and_broken_ones_left_out() {
    let mut queue = queue(&["a", "b"]);
    queue.add("empty".into(), Some(0), false, Some(failure()));
    let mut taken = Vec::new();
    while let Some(entry) = queue.start_next() {
        taken.push(entry.file.display().to_string());
        queue.apply(entry.id, Event::Finished { id: NO_JOB, transcript: transcript(&[]), renewal: None });
    }
    assert_eq!(taken, ["a", "b"]);
    assert_eq!(queue.get(3).map(|entry| entry.state), Some(State::Failed));
    assert_eq!(queue.unfinished(), 0);
}

#[test]
fn only_the_users_own_recordings_are_held_for_a_better_model() {
    let mut queue = queue(&["own"]);
    queue.add("sample".into(), None, true, None);
    queue.hold(|_| true);
    assert_eq!(queue.start_next().map(|entry| entry.id), Some(2));
    assert!(queue.start_next().is_none());
    queue.hold(|_| false);
    assert_eq!(queue.start_next().map(|entry| entry.id), Some(1));
}

#[test]
fn cancelling_asks_the_engine_only_about_what_runs() {
    let mut queue = queue(&["runs", "waits"]);
    queue.start_next();
    assert!(queue.cancel(1));
    assert_eq!(queue.get(1).map(|entry| entry.state), Some(State::Stopping));
    assert!(!queue.cancel(1), "once is enough");
    assert!(!queue.cancel(2));
    assert_eq!(queue.get(2).map(|entry| entry.state), Some(State::Cancelled));
    queue.apply(1, Event::Cancelled { id: NO_JOB, partial: Some(transcript(&["half"])) });
    assert_eq!(queue.get(1).map(|entry| (entry.state, entry.segments().len())), Some((State::Cancelled, 1)));
}

#[test]
fn a_follower_sees_what_was_repaired_at_the_end() {
    for (streamed, last) in [
        (vec!["a", "b", "c"], vec!["a", "b", "c"]),
        (vec!["a", "b", "c"], vec!["a", "B", "c"]),
        (vec!["a", "b", "c"], vec!["a"]),
        (vec!["a"], vec!["a", "b", "c"]),
        (vec!["a", "b"], vec![]),
        (vec![], vec!["a"]),
    ] {
        // Whenever somebody looks: never before the end, once, or after each segment.
        for looks in [0, 1, 9] {
            let (mut queue, mut reader) = (queue(&["talk"]), Reader::default());
            queue.start_next();
            for (index, text) in streamed.iter().enumerate() {
                queue.apply(1, said(text));
                if index < looks {
                    reader.look(&queue, 1);
                }
            }
            queue.apply(1, Event::Finished { id: NO_JOB, transcript: transcript(&last), renewal: None });
            reader.look(&queue, 1);
            assert_eq!(reader.texts, last, "{streamed:?}, {looks} looks");
            assert!(!reader.look(&queue, 1), "nothing is told twice");
        }
    }
}

#[test]
fn trying_again_starts_with_an_empty_page() {
    let (mut queue, mut reader) = (queue(&["talk"]), Reader::default());
    queue.start_next();
    queue.apply(1, said("a"));
    queue.apply(1, said("b"));
    reader.look(&queue, 1);
    queue.apply(1, Event::Failed { id: NO_JOB, error: failure(), partial: None });
    queue.retry(1, None);
    assert_eq!(queue.start_next().map(|entry| entry.id), Some(1));
    queue.apply(1, said("c"));
    reader.look(&queue, 1);
    assert_eq!(reader.texts, ["c"]);
    assert!(queue.get(1).is_some_and(|entry| entry.failure.is_none()));
}

#[test]
fn a_second_end_changes_nothing() {
    let mut queue = queue(&["talk"]);
    queue.start_next();
    queue.apply(1, Event::Finished { id: NO_JOB, transcript: transcript(&["a"]), renewal: None });
    queue.end(1, State::Failed, None, Some(failure()));
    assert!(queue.get(1).is_some_and(|entry| entry.state == State::Finished && entry.failure.is_none()));
}

#[test]
fn followers_of_the_list_hear_of_what_changed_and_nothing_else() {
    let mut queue = queue(&["a", "b", "c"]);
    let version = queue.version();
    assert_eq!(queue.changes_since(0).changed.len(), 3);
    queue.start_next();
    queue.apply(1, said("a"));
    queue.remove(2);
    queue.remove(1);
    let changes = queue.changes_since(version);
    let changed: Vec<_> = changes.changed.iter().map(|entry| entry.id).collect();
    assert_eq!((changed, changes.removed), (vec![1], vec![2]), "what runs can't be removed");
    assert!(changes.changed[0].segments().is_empty(), "texts are not copied for a list");
    let changes = queue.changes_since(queue.version());
    assert!(changes.changed.is_empty() && changes.removed.is_empty());
}

#[test]
fn closing_would_lose_what_was_not_saved() {
    let mut queue = queue(&["talk"]);
    queue.add("sample".into(), None, true, None);
    for id in [1, 2] {
        queue.start_next();
        queue.apply(id, Event::Finished { id: NO_JOB, transcript: transcript(&["a"]), renewal: None });
    }
    assert_eq!(queue.unsaved(), 1, "nobody misses the sample's");
    queue.saved(1, "talk.srt".into());
    assert_eq!(queue.unsaved(), 0);
}

#[test]
fn the_order_is_the_users_and_is_told_where_it_changed() {
    // (moved, in front of) -> order of five; None: nothing is told
    type Case<'a> = (&'a [JobId], Option<JobId>, Option<&'a [JobId]>);
    let cases: [Case; 7] = [
        (&[4], Some(2), Some(&[1, 4, 2, 3, 5])),
        (&[1], None, Some(&[2, 3, 4, 5, 1])),
        (&[5, 3], Some(1), Some(&[3, 5, 1, 2, 4])),
        (&[2], Some(3), None),
        (&[2], Some(2), None),
        (&[5], None, None),
        (&[9], Some(1), None),
    ];
    for (moved, before, expected) in cases {
        let mut queue = queue(&["a", "b", "c", "d", "e"]);
        let seen = queue.version();
        queue.reorder(moved, before);
        let changes = queue.changes_since(seen);
        assert_eq!(changes.order.as_deref(), expected, "{moved:?} before {before:?}");
        assert!(changes.changed.is_empty());
        let first = expected.map_or(1, |order| order[0]);
        assert_eq!(queue.start_next().map(|entry| entry.id), Some(first));
    }
    // What is removed has no turn, and what is added comes last.
    let mut queue = queue(&["a", "b", "c"]);
    queue.reorder(&[3], Some(1));
    queue.remove(1);
    let added = queue.add("d".into(), None, false, None);
    assert_eq!(queue.iter().map(|entry| entry.id).collect::<Vec<_>>(), [3, 2, added]);
}

#[test]
fn a_part_asked_for_again_takes_its_place_or_says_why_not() {
    let span = |start, end| transcript::Span::new(Time::from_millis(start), Time::from_millis(end));
    let mut queue = queue(&["a"]);
    queue.ask_again(1, span(0, 1_000));
    assert!(queue.next_again().is_none(), "there is nothing yet to be asked about");
    queue.start_next();
    queue.apply(1, Event::Finished { id: NO_JOB, transcript: transcript(&["one", "two"]), renewal: None });
    queue.saved(1, "a.txt".into());
    let mut reader = Reader::default();
    reader.look(&queue, 1);

    // Asked for twice it is done once; the text is another one then, and not saved.
    queue.ask_again(1, span(0, 1_000));
    queue.ask_again(1, span(0, 1_000));
    let (entry, asked) = queue.next_again().unwrap();
    assert_eq!((entry.id, asked, entry.again.len()), (1, span(0, 1_000), 1));
    queue.remove(1);
    queue.answer_again(1, asked, Ok(Some(transcript(&["new"]))));
    assert!(reader.look(&queue, 1));
    assert_eq!(reader.texts, ["new"]);
    assert!(queue.get(1).unwrap().saved.is_none() && queue.next_again().is_none());

    // Stopped or failed, the text stays as it was.
    for answer in [Ok(None), Err(failure())] {
        let failed = answer.is_err();
        queue.ask_again(1, span(0, 500));
        queue.answer_again(1, span(0, 500), answer);
        reader.look(&queue, 1);
        assert_eq!(reader.texts, ["new"]);
        let last = queue.get(1).unwrap().notices().last().unwrap().clone();
        assert_eq!(last.severity == Severity::Failed, failed, "{last:?}");
    }
}
