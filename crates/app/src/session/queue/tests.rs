use super::*;
use crate::session::again::{AgainKind, Attempt};
use transcript::Severity;
use transcript::Time;
use transcript::edit::Edit;
use wire::ErrorCode;

fn failure() -> Failure {
    Failure::new(ErrorCode::FileEmpty, "The file is empty.")
}

fn segment(text: &str) -> Segment {
    Segment { text: text.into(), end: Time::from_millis(500), ..Segment::default() }
}

fn said(text: &str) -> Event {
    Event::Segment { segment: segment(text) }
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
struct Reader {
    seen: u64,
    text: Box<Transcript>,
    /// Segments that it takes at once.
    most: usize,
    /// How many it got.
    got: usize,
    live_text: Option<String>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { seen: 0, text: transcript(&[]), most: usize::MAX, got: 0, live_text: None }
    }
}

impl Reader {
    fn look(&mut self, queue: &Queue, id: JobId) -> bool {
        let change = queue.text_since(id, self.seen, self.text.segments.len(), self.most);
        self.seen = queue.version();
        let Some(change) = change else { return false };
        self.got += change.segments.len();
        self.live_text = change.live_text;
        self.text.segments.truncate(change.from);
        self.text.segments.extend(change.segments);
        for changes in &change.changes {
            edit::apply(&mut self.text, changes).unwrap();
        }
        true
    }

    fn texts(&self) -> Vec<&str> {
        self.text.segments.iter().map(|segment| segment.text.as_str()).collect()
    }
}

#[test]
fn recordings_are_taken_in_order_and_broken_ones_left_out() {
    let mut queue = queue(&["a", "b"]);
    queue.add("empty".into(), Some(0), false, Some(failure()));
    let mut taken = Vec::new();
    while let Some(entry) = queue.start_next() {
        taken.push(entry.file.display().to_string());
        queue.apply(entry.id, Event::Finished { transcript: transcript(&[]), renewal: None });
    }
    assert_eq!(taken, ["a", "b"]);
    assert_eq!(queue.get(3).map(|entry| entry.state), Some(JobState::Failed));
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
    assert_eq!(queue.get(1).map(|entry| entry.state), Some(JobState::Stopping));
    assert!(!queue.cancel(1), "once is enough");
    assert!(!queue.cancel(2));
    assert_eq!(queue.get(2).map(|entry| entry.state), Some(JobState::Cancelled));
    queue.apply(1, Event::Cancelled { partial: Some(transcript(&["half"])) });
    assert_eq!(
        queue.get(1).map(|entry| (entry.state, entry.segments().len())),
        Some((JobState::Cancelled, 1))
    );
}

#[test]
fn what_is_paused_waits_for_the_user_and_then_goes_first() {
    let mut queue = queue(&["long", "short", "shorter"]);
    for (id, seconds) in [(1, 900.0), (2, 60.0), (3, 30.0)] {
        queue.measured(id, Length::Seconds(seconds), Vec::new());
    }
    queue.start_next();
    assert!(queue.pause(1) && !queue.pause(1), "the engine is asked once");
    assert!(!queue.pause(2), "what waits can't be paused");
    queue.apply(1, Event::Cancelled { partial: Some(transcript(&["half"])) });
    let state = |queue: &Queue| queue.get(1).map(|entry| (entry.state, entry.segments().len()));
    assert_eq!(state(&queue), Some((JobState::Paused, 1)));
    assert_eq!((queue.unfinished(), queue.unsaved()), (2, 0), "its text is in the journal");
    assert!(!queue.set_own(1, Some(JobSettings::default())), "it keeps its settings");
    queue.retry(1, Some(failure()));
    assert_eq!(state(&queue), Some((JobState::Paused, 1)));
    for shortest_first in [false, true] {
        let mut queue =
            Queue { entries: queue.entries.clone(), ..self::queue(&["long", "short", "shorter"]) };
        queue.reorder(&[1], None);
        queue.put_shortest_first(shortest_first);
        queue.retry(1, None);
        queue.measured(1, Length::Seconds(900.0), Vec::new());
        queue.arrange();
        let first = queue.iter().next().map(|entry| entry.id);
        let taken = queue.start_next().map(|entry| (entry.id, entry.resumed));
        assert_eq!((first, taken), (Some(1), Some((1, true))), "shortest first: {shortest_first}");
    }
    // Stopped while it is being paused, it is stopped.
    queue.start_next();
    queue.pause(2);
    assert!(queue.cancel(2));
    queue.apply(2, Event::Cancelled { partial: None });
    assert_eq!(queue.get(2).map(|entry| entry.state), Some(JobState::Cancelled));
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
            queue.apply(1, Event::Finished { transcript: transcript(&last), renewal: None });
            reader.look(&queue, 1);
            assert_eq!(reader.texts(), last, "{streamed:?}, {looks} looks");
            assert!(!reader.look(&queue, 1), "nothing is told twice");
        }
    }
}

#[test]
fn a_follower_sees_who_speaks_as_far_as_is_known_and_then_who_does() {
    let (mut queue, mut reader) = (queue(&["talk"]), Reader::default());
    queue.start_next();
    for text in ["a", "b"] {
        queue.apply(1, said(text));
    }
    reader.look(&queue, 1);
    let turns = |name: &str| {
        let span = ::transcript::Span::new(Time::ZERO, Time::from_millis(500));
        let turn = speakers::NamedTurn { span, speaker: name.into(), channel: None };
        Event::Turns { turns: vec![turn] }
    };
    let names = |reader: &Reader| -> Vec<Option<String>> {
        reader.text.segments.iter().map(|segment| segment.speaker.clone()).collect()
    };
    for name in ["Speaker 1", "Anna"] {
        queue.apply(1, turns(name));
        assert!(reader.look(&queue, 1));
        assert_eq!(names(&reader), vec![Some(name.to_owned()); 2]);
        queue.apply(1, turns(name));
        assert_eq!(reader.texts(), ["a", "b"]);
    }
    // What an interrupted job leaves has no guesses in it.
    queue.apply(1, Event::Cancelled { partial: Some(transcript(&["a", "b"])) });
    reader.look(&queue, 1);
    assert_eq!(names(&reader), [None, None]);
}

#[test]
fn what_is_being_written_is_shown_until_it_is_final() {
    let (mut queue, mut reader) = (queue(&["talk"]), Reader::default());
    queue.start_next();
    let live = |text: &str| Event::LiveText { text: text.into() };
    let reached = || Event::Reached { point: Box::default(), discarded: Vec::new() };
    // what comes, and what is shown behind the segments then
    for (event, expected) in [
        (live("a b"), Some("a b")),
        (live("a c d"), Some("a c d")),
        (said("a c d"), None),
        (reached(), None),
        (live("hm"), Some("hm")),
        // Nothing was said there after all.
        (reached(), None),
        (live("e"), Some("e")),
        (Event::Failed { error: failure(), partial: Some(transcript(&["a c d"])) }, None),
    ] {
        queue.apply(1, event);
        reader.look(&queue, 1);
        assert_eq!(reader.live_text.as_deref(), expected);
        assert!(reader.texts().iter().all(|text| *text == "a c d"));
    }
    // The text of the run before is no beginning of this one's.
    queue.retry(1, None);
    queue.start_next();
    for (event, expected) in [(live("f"), None), (said("f"), None), (live("g"), Some("g"))] {
        queue.apply(1, event);
        reader.look(&queue, 1);
        assert_eq!(reader.live_text.as_deref(), expected);
    }
}

#[test]
fn trying_again_starts_with_an_empty_page() {
    let (mut queue, mut reader) = (queue(&["talk"]), Reader::default());
    queue.start_next();
    queue.apply(1, said("a"));
    queue.apply(1, said("b"));
    reader.look(&queue, 1);
    queue.apply(1, Event::Failed { error: failure(), partial: None });
    queue.retry(1, None);
    assert_eq!(queue.start_next().map(|entry| entry.id), Some(1));
    queue.apply(1, said("c"));
    reader.look(&queue, 1);
    assert_eq!(reader.texts(), ["c"]);
    assert!(queue.get(1).is_some_and(|entry| entry.failure.is_none()));
}

#[test]
fn a_recording_that_was_cut_off_says_up_to_where() {
    let mut queue = queue(&["talk"]);
    queue.start_next();
    let notice =
        Notice::new("audio.truncated", Severity::Degraded, "It is cut off.").at(Time::from_millis(9_000));
    queue.apply(1, Event::Notice { notice: notice.clone() });
    assert_eq!(queue.get(1).unwrap().truncated_at, Some(Time::from_millis(9_000)));
    let whole = Transcript { notices: vec![notice], ..*transcript(&["a"]) };
    queue.apply(1, Event::Finished { transcript: Box::new(whole), renewal: None });
    // The list has it without the texts.
    let changes = queue.changes_since(0);
    assert_eq!(changes.changed[0].truncated_at, Some(Time::from_millis(9_000)));
}

#[test]
fn a_second_end_changes_nothing() {
    let mut queue = queue(&["talk"]);
    queue.start_next();
    queue.apply(1, Event::Finished { transcript: transcript(&["a"]), renewal: None });
    queue.end(1, JobState::Failed, None, Some(failure()));
    assert!(queue.get(1).is_some_and(|entry| entry.state == JobState::Finished && entry.failure.is_none()));
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
fn the_text_of_an_earlier_window_is_shown_until_its_job_has_more() {
    let mut queue = queue(&["talk"]);
    queue.start_next();
    queue.show_earlier(1, None);
    let segments = |queue: &Queue| queue.get(1).map(|entry| entry.segments().len());
    assert_eq!(segments(&queue), Some(0));
    queue.show_earlier(1, Some(transcript(&["so", "far"])));
    assert_eq!(segments(&queue), Some(2));
    queue.apply(1, Event::Cancelled { partial: None });
    assert_eq!(segments(&queue), Some(2), "it ended before it had any");
}

#[test]
fn closing_would_lose_what_was_not_saved() {
    let mut queue = queue(&["talk"]);
    queue.add("sample".into(), None, true, None);
    for id in [1, 2] {
        queue.start_next();
        queue.apply(id, Event::Finished { transcript: transcript(&["a"]), renewal: None });
    }
    assert_eq!(queue.unsaved(), 1, "nobody misses the sample's");
    assert_eq!(queue.lost().map(|entry| entry.id).collect::<Vec<_>>(), [1]);
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

fn part(span: Span, attempt: Option<Attempt>) -> Again {
    Again { span, kind: AgainKind::Text, attempt, found: None }
}

#[test]
fn a_part_asked_for_again_takes_its_place_or_says_why_not() {
    let span = |start, end| transcript::Span::new(Time::from_millis(start), Time::from_millis(end));
    let mut queue = queue(&["a"]);
    queue.ask_again(1, part(span(0, 1_000), None));
    assert!(queue.next_again().is_none(), "there is nothing yet to be asked about");
    queue.start_next();
    queue.apply(1, Event::Finished { transcript: transcript(&["one", "two"]), renewal: None });
    queue.saved(1, "a.txt".into());
    let mut reader = Reader::default();
    reader.look(&queue, 1);

    // Asked for twice it is done once; the text is another one then, and not saved.
    queue.ask_again(1, part(span(0, 1_000), None));
    queue.ask_again(1, part(span(0, 1_000), None));
    let (entry, again) = queue.next_again().unwrap();
    let asked = again.span;
    assert_eq!((entry.id, asked, entry.again.len()), (1, span(0, 1_000), 1));
    queue.remove(1);
    let before = queue.get(1).unwrap().transcript.clone().unwrap();
    let mut after = before.clone();
    after.replace(asked, *transcript(&["new"]));
    queue.edit(1, edit::between(&before, &after), None).unwrap();
    queue.answer_again(1, asked, None);
    assert!(reader.look(&queue, 1));
    assert_eq!(reader.texts(), ["new"]);
    assert!(queue.get(1).unwrap().saved.is_none() && queue.next_again().is_none());

    // Stopped or failed, the text stays as it was.
    for answer in [None, Some(failure())] {
        let failed = answer.is_some();
        queue.ask_again(1, part(span(0, 500), None));
        queue.answer_again(1, span(0, 500), answer);
        reader.look(&queue, 1);
        assert_eq!(reader.texts(), ["new"]);
        let notices = queue.get(1).unwrap().notices();
        let says_why = notices.iter().any(|notice| notice.severity == Severity::Failed);
        assert_eq!(says_why, failed, "{notices:?}");
    }
}

#[test]
fn what_was_found_to_be_compared_waits_and_is_no_work() {
    let span = ::transcript::Span::new(Time::ZERO, Time::from_millis(500));
    let mut queue = queue(&["a"]);
    queue.start_next();
    queue.apply(1, Event::Finished { transcript: transcript(&["one", "two"]), renewal: None });
    let attempt = |language: &str| Some(Attempt { model: None, language: Some(language.into()) });
    queue.ask_again(1, part(span, attempt("de")));
    queue.ask_again(1, part(span, attempt("fr")));
    let (_, again) = queue.next_again().unwrap();
    assert_eq!(again.attempt, attempt("de"), "it is under way already");
    queue.offer_again(1, span, transcript(&["new"]));
    assert!(queue.next_again().is_none());
    assert_eq!(queue.found_again(1, span).unwrap().segments[0].text, "new");
    assert_eq!(queue.get(1).unwrap().segments()[0].text, "one", "nothing changes before it is chosen");
    queue.forget_again(1);
    assert!(queue.found_again(1, span).is_some(), "stopping what runs is not choosing");
    // Another attempt takes its place.
    queue.ask_again(1, part(span, attempt("fr")));
    assert_eq!(queue.next_again().unwrap().1.attempt, attempt("fr"));
    queue.forget_again(1);
    queue.offer_again(1, span, transcript(&["too late"]));
    assert!(queue.found_again(1, span).is_none(), "it was stopped");
    queue.remove(1);
    assert!(queue.get(1).is_none());
}

#[test]
fn a_follower_of_edits_gets_what_was_done_whenever_it_looks() {
    let texts: Vec<String> = (0..50).map(|number| format!("Number {number}.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut edits = vec![
        Edit::Delete { segments: vec![20, 21, 40] },
        Edit::Split { segment: 9, at: 6 },
        Edit::Merge { segment: 3 },
        Edit::Insert { after: None, text: "first".into() },
        Edit::Delete { segments: vec![50] },
        Edit::SetSpeaker { segments: vec![30, 32], speaker: Some("Ada".into()) },
    ];
    let other = |number| Edit::SetText { segment: 7, text: format!("other {number}") };
    edits.extend((0..2 * REMEMBERED).map(other));
    // After how many edits it looks, and how many segments it takes at once.
    for (every, most) in [(1, 99), (2, 99), (REMEMBERED, 99), (REMEMBERED + 1, 99), (1, 3), (4, 7)] {
        let (mut queue, mut reader) = (queue(&["talk"]), Reader { most, ..Reader::default() });
        queue.start_next();
        queue.apply(1, Event::Finished { transcript: transcript(&texts), renewal: None });
        reader.look(&queue, 1);
        for edits in edits.chunks(every) {
            let (has_all, got) = (reader.texts().len() == queue.get(1).unwrap().segments().len(), reader.got);
            for edit in edits {
                let changes = edit.plan(queue.get(1).unwrap().transcript.as_ref().unwrap()).unwrap();
                queue.edit(1, changes, None).unwrap();
            }
            assert!(reader.look(&queue, 1));
            if has_all && every <= REMEMBERED {
                assert_eq!(reader.got, got, "what did not change is not sent");
                assert_eq!(reader.text.segments, queue.get(1).unwrap().segments(), "every {every}");
            }
        }
        while reader.look(&queue, 1) {}
        assert_eq!(reader.text.segments, queue.get(1).unwrap().segments(), "every {every}, {most} at once");
    }
}

#[test]
fn where_only_the_beginning_can_be_read_it_can_be_read_and_nothing_is_begun_anew() {
    let mut queue = queue(&[]);
    let edited =
        Edited { document: library::DocumentId(1), undo_position: UndoPosition::default(), revision: 0 };
    let id = queue.open("talk.wav".into(), false, vec![segment("begun")], edited);
    queue.opened(id, Err(failure()));
    let entry = queue.get(id).unwrap();
    assert_eq!((entry.state, entry.edited, entry.segments().len()), (JobState::Finished, None, 1));
    assert!(entry.notices()[0].text.contains("The file is empty."), "{:?}", entry.notices());
    queue.retry(id, None);
    assert_eq!(queue.get(id).unwrap().state, JobState::Finished);
}

#[test]
fn a_warning_that_the_model_does_not_fit_lasts_as_long_as_the_job() {
    let device = advisor::fit::DeviceMemory {
        kind: memory::DeviceKind::Host,
        name: "the CPU".into(),
        free: 1,
        total: 2,
    };
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
    let announcement = Announcement::of("starter", &wire::Job::new(1, "a", model), device).unwrap();
    for end in [
        Event::Finished { transcript: transcript(&["one"]), renewal: None },
        Event::Cancelled { partial: None },
    ] {
        let mut queue = queue(&["a"]);
        queue.start_next();
        queue.set_will_not_fit(1, Some(announcement.clone()));
        let version = queue.version();
        assert_eq!(queue.changes_since(0).changed[0].will_not_fit.as_deref(), Some(&announcement));
        queue.apply(1, end);
        assert_eq!(queue.changes_since(version).changed[0].will_not_fit, None);
    }
}
