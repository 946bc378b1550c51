use proptest::prelude::*;

use super::words::joined_text;
use super::*;
use crate::export::tests::transcript;
use crate::{Segment, Span, Suspicion, Word};

fn millis(millis: u32) -> Time {
    Time::from_millis(millis)
}

/// A segment of words that start a second apart.
fn said(id: SegmentId, start: u32, words: &[&str]) -> Segment {
    let word = |(index, text): (usize, &&str)| Word {
        text: (*text).into(),
        start: millis(start + 1000 * index as u32),
        end: millis(start + 1000 * index as u32 + 900),
        probability: 0.5,
    };
    let words: Vec<_> = words.iter().enumerate().map(word).collect();
    let end = words.last().map_or(millis(start + 1000), |word| word.end);
    Segment { id, start: millis(start), end, text: joined_text(&words), words, ..Segment::default() }
}

fn talk() -> Transcript {
    let mut talk = transcript(vec![
        said(1, 0, &[" The", " ferry", " is", " late."]),
        said(2, 5000, &[" So", " am", " I."]),
        said(3, 9000, &["大きな", "船", "が来る。"]),
    ]);
    talk.source.duration = millis(20_000);
    talk
}

fn done(transcript: &Transcript, edit: &Edit) -> Transcript {
    let mut after = transcript.clone();
    let changes = edit.plan(transcript).unwrap();
    apply(&mut after, &changes).unwrap();
    let mut back = after.clone();
    apply(&mut back, &inverse(changes.clone())).unwrap();
    assert_eq!(back, *transcript, "{edit:?}");
    after
}

fn shown(words: &[Word]) -> Vec<(&str, u32, u32)> {
    words.iter().map(|word| (word.text.as_str(), word.start.millis(), word.end.millis())).collect()
}

#[test]
fn unchanged_words_keep_their_times_and_new_words_share_the_rest() {
    type Words<'a> = &'a [(&'a str, u32, u32)];
    let cases: &[(SegmentId, &str, Words)] = &[
        // A replaced word: the new one takes its time.
        (
            1,
            "The boat is late.",
            &[(" The", 0, 900), (" boat", 1000, 1900), (" is", 2000, 2900), (" late.", 3000, 3900)],
        ),
        // Two words for one share its time by length.
        (
            1,
            "The old ferries late.",
            &[(" The", 0, 900), (" old", 1000, 1570), (" ferries", 1570, 2900), (" late.", 3000, 3900)],
        ),
        // An added word takes the pause.
        (
            2,
            "So am not I.",
            &[(" So", 5000, 5900), (" am", 6000, 6900), (" not", 6900, 7000), (" I.", 7000, 7900)],
        ),
        (1, "ferry", &[(" ferry", 1000, 1900)]),
        (
            1,
            "The ferryman is late.",
            &[(" The", 0, 900), (" ferryman", 1000, 1900), (" is", 2000, 2900), (" late.", 3000, 3900)],
        ),
        (1, "", &[]),
        (3, "大きな舟が来る。", &[("大きな", 9000, 9900), ("舟", 10000, 10900), ("が来る。", 11000, 11900)]),
    ];
    for (segment, text, expected) in cases {
        let after = done(&talk(), &Edit::SetText { segment: *segment, text: (*text).into() });
        let found = after.segments.iter().find(|one| one.id == *segment).unwrap();
        assert_eq!(found.text, *text);
        assert_eq!(shown(&found.words), *expected, "{text}");
    }
}

#[test]
fn a_translation_follows_its_text() {
    let mut talk = talk();
    talk.segments[0].translation = Some("Le bac est en retard.".into());
    let of = |talk: &Transcript| -> Vec<Option<String>> {
        talk.segments.iter().map(|segment| segment.translation.clone()).collect()
    };
    let split = done(&talk, &Edit::Split { segment: 1, at: 9 });
    assert_eq!(of(&split)[..2], [Some("Le bac est".into()), Some("en retard.".into())]);
    let joined = done(&split, &Edit::Merge { segment: 1 });
    assert_eq!(of(&joined), of(&talk));
}

#[test]
fn segments_are_split_at_a_character_and_merged_again() {
    // segment, at, texts, times of both
    type Case = (SegmentId, usize, [&'static str; 2], [(u32, u32); 2]);
    let cases: &[Case] = &[
        (1, 9, ["The ferry", "is late."], [(0, 1900), (2000, 3900)]),
        (1, 10, ["The ferry", "is late."], [(0, 1900), (2000, 3900)]),
        (1, 6, ["The fe", "rry is late."], [(0, 1360), (1360, 3900)]),
        (3, 4, ["大きな船", "が来る。"], [(9000, 10900), (11000, 11900)]),
    ];
    for (segment, at, texts, times) in cases {
        let split = done(&talk(), &Edit::Split { segment: *segment, at: *at });
        let first = split.segments.iter().position(|one| one.id == *segment).unwrap();
        let parts = &split.segments[first..first + 2];
        assert_eq!([parts[0].text.as_str(), parts[1].text.as_str()], *texts);
        assert_eq!([0, 1].map(|it| (parts[it].start.millis(), parts[it].end.millis())), *times, "{texts:?}");
        assert!(parts.iter().all(|part| joined_text(&part.words) == part.text), "{parts:?}");
        let joined = done(&split, &Edit::Merge { segment: *segment });
        let whole = &joined.segments[first];
        assert_eq!((whole.start, whole.end), (millis(times[0].0), millis(times[1].1)));
        assert_eq!(joined_text(&whole.words), whole.text);
    }
    for at in [0, 99] {
        assert_eq!(Edit::Split { segment: 1, at }.plan(&talk()), Err(EditError::NothingToSplit));
    }
    assert_eq!(Edit::Merge { segment: 3 }.plan(&talk()), Err(EditError::NothingToMerge));
    assert_eq!(Edit::Merge { segment: 9 }.plan(&talk()), Err(EditError::NotFound));
}

#[test]
fn times_are_limited_by_the_neighbours() {
    // wanted, found
    for (wanted, found) in
        [((4500, 8000), (4500, 8000)), ((0, 99_000), (3900, 9000)), ((5500, 7000), (5500, 7000))]
    {
        let edit = Edit::Retime { segment: 2, start: millis(wanted.0), end: millis(wanted.1) };
        let after = done(&talk(), &edit);
        let segment = &after.segments[1];
        assert_eq!((segment.start.millis(), segment.end.millis()), found);
        assert!(segment.words.iter().all(|word| segment.start <= word.start && word.end <= segment.end));
    }
    let edit = Edit::Retime { segment: 2, start: millis(8000), end: millis(6000) };
    assert_eq!(edit.plan(&talk()), Err(EditError::NoTime));
}

#[test]
fn speakers_are_assigned_renamed_and_joined_without_copying_texts() {
    let speaker = |name: &str| Some(name.to_owned());
    let all = done(&talk(), &Edit::SetSpeaker { segments: vec![1, 3], speaker: speaker(" Ada ") });
    let two = done(&all, &Edit::SetSpeaker { segments: vec![2], speaker: speaker("Grace") });
    let names = |transcript: &Transcript| {
        transcript.segments.iter().map(|segment| segment.speaker.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&two), [speaker("Ada"), speaker("Grace"), speaker("Ada")]);
    let rename = Edit::RenameSpeaker { from: "Ada".into(), to: "Grace".into() };
    assert_eq!(names(&done(&two, &rename)), vec![speaker("Grace"); 3]);
    let changes = rename.plan(&two).unwrap();
    assert!(serde_json::to_string(&changes).unwrap().len() < 200, "{changes:?}");
    assert_eq!(names(&done(&two, &Edit::SetSpeaker { segments: vec![1], speaker: None }))[0], None);
}

#[test]
fn some_words_of_a_segment_are_given_to_another_speaker() {
    let bare = |mut talk: Transcript| {
        talk.segments.iter_mut().for_each(|segment| segment.words.clear());
        talk
    };
    // transcript, segment, characters, texts with speakers
    type Case = (Transcript, SegmentId, (usize, usize), &'static str);
    let cases: &[Case] = &[
        (talk(), 1, (4, 9), "The|Ada: ferry|is late."),
        // A word that is touched is meant whole.
        (talk(), 1, (6, 11), "The|Ada: ferry is|late."),
        (talk(), 1, (0, 2), "Ada: The|ferry is late."),
        (talk(), 1, (12, 99), "The ferry is|Ada: late."),
        (talk(), 1, (0, 18), "Ada: The ferry is late."),
        (talk(), 3, (3, 4), "大きな|Ada: 船|が来る。"),
        // Transcribed without word times.
        (bare(talk()), 1, (4, 9), "The|Ada: ferry|is late."),
        (bare(talk()), 3, (3, 4), "大きな|Ada: 船|が来る。"),
    ];
    for (talk, segment, (from, to), expected) in cases {
        let edit = Edit::SetSpeakerOfWords {
            segment: *segment,
            from: *from,
            to: *to,
            speaker: Some(" Ada ".into()),
        };
        let after = done(talk, &edit);
        check_order(&after);
        let first = after.segments.iter().position(|one| one.id == *segment).unwrap();
        let count = after.segments.len() + 1 - talk.segments.len();
        let shown: Vec<String> = after.segments[first..first + count]
            .iter()
            .map(|part| match &part.speaker {
                Some(speaker) => format!("{speaker}: {}", part.text),
                None => part.text.clone(),
            })
            .collect();
        assert_eq!(shown.join("|"), *expected);
    }
    let ada = done(&talk(), &Edit::SetSpeaker { segments: vec![1], speaker: Some("Ada".into()) });
    let again = Edit::SetSpeakerOfWords { segment: 1, from: 4, to: 9, speaker: Some("Ada".into()) };
    assert_eq!(again.plan(&ada), Ok(Vec::new()), "they are Ada's already");
    for (from, to) in [(3, 3), (3, 4), (99, 120)] {
        let edit = Edit::SetSpeakerOfWords { segment: 1, from, to, speaker: None };
        assert_eq!(edit.plan(&talk()), Err(EditError::NotFound), "{from}..{to} is no word");
    }
}

#[test]
fn segments_are_inserted_into_pauses_and_deleted() {
    // after, start, end
    for (after, start, end) in [(None, 0, 0), (Some(1), 3900, 5000), (Some(3), 11_900, 14_900)] {
        let found = done(&talk(), &Edit::Insert { after, text: "Hm, hm.".into() });
        let new = found.segments.iter().find(|segment| segment.id == 4).unwrap();
        assert_eq!((new.start.millis(), new.end.millis()), (start, end));
        assert_eq!(joined_text(&new.words), "Hm, hm.");
    }
    let left = done(&talk(), &Edit::Delete { segments: vec![1, 3] });
    assert_eq!(left.segments.iter().map(|segment| segment.id).collect::<Vec<_>>(), [2]);
}

#[test]
fn accepted_segments_have_no_suspicions() {
    let mut talk = talk();
    talk.segments[0].suspicions = vec![Suspicion::Loop];
    let after = done(&talk, &Edit::Accept { segments: vec![1] });
    assert!(after.segments[0].suspicions.is_empty());
    assert!(after.segments[0].words.iter().all(|word| word.probability == 1.0));
    assert!(Edit::Accept { segments: vec![1] }.plan(&after).unwrap().is_empty());
}

#[test]
fn matches_depend_on_case_and_whole_words() {
    // what, case, whole words, text, replaced by x
    for (what, case, whole_words, text, expected) in [
        ("ferry", false, false, "Ferry, FERRY and ferryman", "x, x and xman"),
        ("ferry", true, false, "Ferry, ferry", "Ferry, x"),
        ("ferry", false, true, "Ferry, ferryman, a-ferry", "x, ferryman, a-x"),
        ("uber", false, false, "Über uber", "Über x"),
        ("ÜBER", false, false, "über", "x"),
        ("aa", false, false, "aaa", "xa"),
        ("船", false, false, "大きな船。", "大きなx。"),
        ("i̇", false, false, "İstanbul", "xstanbul"),
        // A match that starts and ends within letters covers both letters.
        ("\u{307}i", false, false, "İİİ", "xİ"),
        ("", false, false, "nothing", "nothing"),
    ] {
        let pattern = TextPattern { text: what.into(), case, whole_words, regular_expression: false };
        let found = pattern.finder().unwrap().replace(text, "x").map_or(text.to_owned(), |(text, _)| text);
        assert_eq!(found, expected, "{what} in {text}");
    }
    let pattern = TextPattern { text: "is".into(), ..TextPattern::default() };
    let (edit, count) = pattern.finder().unwrap().replace_all(&talk(), "was");
    assert_eq!((count, done(&talk(), &edit).segments[0].text.as_str()), (1, "The ferry was late."));
}

#[test]
fn regular_expressions_are_found_and_replaced() {
    for (what, case, whole_words, with, text, expected) in [
        (r"(\d+) mg", false, false, "$1 milligrams", "5 mg and 10 MG", "5 milligrams and 10 milligrams"),
        (r"mg", true, false, "g", "5 mg and 10 MG", "5 g and 10 MG"),
        (r"fer+y", false, true, "boat", "Ferry, ferryman", "boat, ferryman"),
        (r"(?<first>\w+) (\w+)", false, false, "$2 ${first}", "one two three four", "two one four three"),
        // A group's number ends with its digits.
        (r"(f)erry", false, false, "$1erryboat", "ferry", "ferryboat"),
        (r"(\d)EUR", false, false, "$$$1st, $1$", "5EUR", "$5st, 5$"),
        // What matches nothing replaces nothing.
        (r"x*", false, false, "y", "axxb", "ayb"),
        (r"^um,? ", false, false, "", "Um, the ferry, um, left.", "the ferry, um, left."),
        // `$` is a sign of its own where no expression is meant.
        (r"$", false, false, "x", "5 $", "5 $"),
    ] {
        let pattern = TextPattern { text: what.into(), case, whole_words, regular_expression: true };
        let finder = pattern.finder().unwrap();
        let found = finder.replace(text, with).map_or(text.to_owned(), |(text, _)| text);
        assert_eq!(found, expected, "{what} in {text}");
        // One by one it comes to the same.
        let (mut now, mut behind) = (text.to_owned(), 0);
        while let Some(range) = finder.matches(&now).into_iter().find(|range| range.start >= behind) {
            (now, behind) = finder.replace_one(&now, &range, with).unwrap();
        }
        if !what.starts_with('^') && !what.contains('*') {
            assert_eq!(now, expected, "{what} in {text}, one by one");
        }
    }
    let literal = TextPattern { text: "$".into(), ..TextPattern::default() };
    assert_eq!(literal.finder().unwrap().replace("5 $", "$1 USD"), Some(("5 $1 USD".into(), 1)));
    let wrong = TextPattern { text: "(a".into(), regular_expression: true, ..TextPattern::default() };
    let error = wrong.finder().unwrap_err().to_string();
    assert_eq!(error, "This is not a regular expression: unclosed group.");
    let finder = literal.finder().unwrap();
    assert_eq!(finder.replace_one("5 $", &(0..1), "x"), None, "the text is another one by now");
}

#[test]
fn transcribing_a_part_again_is_undone_like_an_edit() {
    let before = talk();
    let mut after = before.clone();
    let found = transcript(vec![Segment { id: 0, ..said(0, 5000, &[" So", " is", " it."]) }]);
    after.replace(Span::new(millis(4900), millis(8000)), found);
    assign_ids(&mut after);
    let changes = between(&before, &after);
    let mut now = before.clone();
    assert_eq!(apply(&mut now, &changes), Ok(1), "the first changed segment");
    assert_eq!(now, after);
    apply(&mut now, &inverse(changes.clone())).unwrap();
    assert_eq!(now, before);
    assert_eq!(apply(&mut after, &changes), Err(Mismatch));
}

#[test]
fn stored_changes_of_metadata_are_called_about() {
    let before = talk();
    let mut after = before.clone();
    after.completeness.speech = millis(1000);
    let stored = serde_json::to_value(between(&before, &after)).unwrap();
    assert_eq!(stored[0]["kind"], "about");
}

/// An edit of an existing segment; the numbers choose its kind, segment and arguments.
fn any_edit(transcript: &Transcript, (kind, which, how, text): &(u8, usize, usize, String)) -> Edit {
    let ids: Vec<_> = transcript.segments.iter().map(|segment| segment.id).collect();
    if ids.is_empty() {
        return Edit::Insert { after: None, text: text.clone() };
    }
    let at = which % ids.len();
    let segment = ids[at];
    let several = ids[at..(at + 1 + how % 3).min(ids.len())].to_vec();
    let name = |number: usize| format!("Speaker {}", number % 3);
    match kind % 12 {
        0..=2 => {
            // Letters inserted into the text.
            let old = &transcript.segments[at].text;
            let cut = old.char_indices().nth(how % (old.chars().count() + 1)).map_or(old.len(), |it| it.0);
            Edit::SetText { segment, text: format!("{}{text}{}", &old[..cut], &old[cut..]) }
        }
        3 => Edit::SetText { segment, text: text.clone() },
        4 => Edit::Split { segment, at: how % 40 },
        5 => Edit::Merge { segment },
        6 => Edit::Delete { segments: several },
        7 => Edit::Insert { after: Some(segment), text: text.clone() },
        8 => {
            let start = transcript.segments[at].start.millis();
            Edit::Retime {
                segment,
                start: millis((start + 500).saturating_sub((how % 1000) as u32)),
                end: millis(start + *how as u32 % 4000),
            }
        }
        10 => Edit::SetSpeakerOfWords {
            segment,
            from: how % 20,
            to: how % 20 + which % 12,
            speaker: Some(name(*how)),
        },
        9 => Edit::SetSpeaker { segments: several, speaker: Some(name(*how)) },
        _ => Edit::RenameSpeaker { from: name(*which), to: name(*how) },
    }
}

fn texts(transcript: &Transcript) -> Vec<&str> {
    transcript.segments.iter().map(|segment| segment.text.as_str()).collect()
}

fn check_order(transcript: &Transcript) {
    assert!(transcript.segments.is_sorted_by_key(|segment| segment.start), "{:?}", transcript.segments);
    for segment in &transcript.segments {
        assert!(segment.start <= segment.end, "{segment:?}");
        assert!(segment.words.iter().all(|word| word.start <= word.end), "{segment:?}");
        assert!(segment.words.is_sorted_by_key(|word| word.start), "{segment:?}");
        assert!(segment.words.is_empty() || joined_text(&segment.words) == segment.text, "{segment:?}");
    }
    let mut ids: Vec<_> = transcript.segments.iter().map(|segment| segment.id).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]) && !ids.contains(&0), "{ids:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_hundred_edits_are_undone_and_redone(
        seeds in prop::collection::vec((any::<u8>(), 0..1000usize, 0..5000usize, "[a-c ,.船ü]{0,12}"), 200),
    ) {
        let begun = talk();
        let (mut now, mut history, mut states) = (begun.clone(), Vec::new(), vec![begun.clone()]);
        for seed in &seeds {
            let Ok(changes) = any_edit(&now, seed).plan(&now) else { continue };
            // Through JSON, as the history stores them.
            let kept = serde_json::to_string(&changes).unwrap();
            let changes: Vec<Change> = serde_json::from_str(&kept).unwrap();
            let before = now.segments.clone();
            for known in [1, 2, before.len()] {
                let mut beginning = before[..known.min(before.len())].to_vec();
                apply_to_prefix(&mut beginning, &changes).unwrap();
                let mut after = now.clone();
                apply(&mut after, &changes).unwrap();
                prop_assert_eq!(&beginning[..], &after.segments[..beginning.len()]);
                prop_assert!(known < before.len() || beginning.len() == after.segments.len());
            }
            let first = apply(&mut now, &changes).unwrap();
            prop_assert_eq!(&before[..first], &now.segments[..first]);
            let growth: isize = changes.iter().map(Change::growth).sum();
            prop_assert_eq!(before.len().checked_add_signed(growth), Some(now.segments.len()));
            check_order(&now);
            history.push(changes);
            states.push(now.clone());
        }
        for (changes, before) in history.iter().zip(&states).rev() {
            apply(&mut now, &inverse(changes.clone())).unwrap();
            prop_assert_eq!(texts(&now), texts(before));
            prop_assert_eq!(&now, before);
        }
        prop_assert_eq!(&now, &begun);
        for changes in &history {
            apply(&mut now, changes).unwrap();
        }
        prop_assert_eq!(&now, states.last().unwrap());
    }
}
