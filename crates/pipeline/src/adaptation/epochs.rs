//! What is heard in an epoch, and how: drawn anew each time, so that words are learnt and not recordings.

use audio::{SAMPLE_RATE, WINDOW_SAMPLES};
use fastrand::Rng;
use wire::OTHERS_PER_CORRECTION;

use super::windows::{AS_IT_IS, Hearing, Material};

/// Lessons are heard at one of these speeds, in percent of their own: as if by other voices (Ko and others, 2015, "Audio
/// augmentation for speech recognition").
const SPEEDS: [u32; 7] = [85, 90, 95, AS_IT_IS, 105, 110, 115];

/// The silence before a lesson, in seconds, drawn evenly.
const PAUSES: (f64, f64) = (0.1, 1.5);

/// The part of a window that lessons fill, drawn evenly, where corrections are among them: a word is to be known in a short
/// recording and at every place of a long one. What is drawn above 1 is a full window.
const FILLED: (f64, f64) = (0.1, 1.3);

/// The windows of an epoch, which follow from seed and number: all corrections, and of the rest [`OTHERS_PER_CORRECTION`]
/// times as many, others in each epoch until all had their turn. As many of the rest as there are corrections share
/// windows with these, which are filled to different lengths; what is left fills whole windows, as in a long recording.
pub fn windows(material: &Material, learnt: &[usize], seed: u64, epoch: u32) -> Vec<Vec<Hearing>> {
    let (corrected, mut rest): (Vec<usize>, Vec<usize>) =
        learnt.iter().partition(|lesson| material.lesson(**lesson).corrected);
    Rng::with_seed(seed).shuffle(&mut rest);
    let count = rest.len().min(OTHERS_PER_CORRECTION * corrected.len());
    let first = epoch as usize * count % rest.len().max(1);
    let mut others: Vec<usize> = rest.iter().copied().cycle().skip(first).take(count).collect();
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(epoch));
    rng.shuffle(&mut others);
    let mut among = others.split_off(others.len().saturating_sub(corrected.len()));
    among.extend(&corrected);
    rng.shuffle(&mut among);
    let mut windows = Vec::new();
    for (order, filled) in [(among, FILLED), (others, (1.0, 1.0))] {
        let heard = |lesson| Hearing {
            lesson,
            speed: SPEEDS[rng.usize(..SPEEDS.len())],
            pause: (drawn(&mut rng, PAUSES) * f64::from(SAMPLE_RATE)) as usize,
        };
        let mut order: Vec<Hearing> = order.into_iter().map(heard).collect();
        // Those of a window share a language.
        order.sort_by_key(|it| material.lesson(it.lesson).language.clone());
        let room = || (drawn(&mut rng, filled) * WINDOW_SAMPLES as f64) as usize;
        windows.extend(material.windows(&order, room));
    }
    // A window may begin in the midst of speech.
    for window in &mut windows {
        if rng.bool() {
            window[0].pause = 0;
        }
    }
    rng.shuffle(&mut windows);
    windows
}

fn drawn(rng: &mut Rng, (least, most): (f64, f64)) -> f64 {
    least + (most - least) * rng.f64()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use wire::Lesson;

    use super::*;
    use crate::adaptation::sounds::Sounds;

    /// Of 60 lessons of four seconds one in so many is corrected.
    fn epochs(count: u32, one_in: usize) -> (Vec<Vec<Vec<Hearing>>>, Vec<Lesson>) {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
        let vocabulary = models::whisper::vocabulary(&model).unwrap();
        let lesson = |number: usize| Lesson {
            file: Path::new("a.wav").into(),
            span: None,
            text: "The house is open.".into(),
            language: Some("en".into()),
            corrected: number.is_multiple_of(one_in),
            held_back: false,
        };
        let lessons: Vec<Lesson> = (0..60).map(lesson).collect();
        let sounds = Sounds::of_lengths(&[4 * SAMPLE_RATE as usize; 60]);
        let material = Material::new(&vocabulary, &lessons, &sounds, 224).unwrap();
        let learnt = material.lessons(false);
        let epochs = (0..count).map(|epoch| windows(&material, &learnt, 3, epoch)).collect();
        (epochs, lessons)
    }

    #[test]
    fn each_epoch_hears_all_corrections_and_the_rest_in_turn() {
        let (epochs, lessons) = epochs(5, 6);
        let mut times = [0; 60];
        for windows in &epochs {
            let heard: Vec<usize> = windows.iter().flatten().map(|it| it.lesson).collect();
            assert_eq!(heard.len(), 10 + 10 * OTHERS_PER_CORRECTION);
            heard.iter().for_each(|lesson| times[*lesson] += 1);
        }
        for (lesson, times) in lessons.iter().zip(times) {
            // Of 50 others 40 are heard in each epoch.
            assert_eq!(times, if lesson.corrected { 5 } else { 4 });
        }
        assert_ne!(epochs[0], epochs[1]);
    }

    #[test]
    fn corrections_are_heard_alone_and_among_others_at_all_speeds() {
        let (epochs, lessons) = epochs(20, 6);
        let windows: Vec<&Vec<Hearing>> = epochs.iter().flatten().collect();
        let has_correction = |window: &Vec<Hearing>| window.iter().any(|it| lessons[it.lesson].corrected);
        let counts: BTreeSet<usize> =
            windows.iter().filter(|it| has_correction(it)).map(|it| it.len()).collect();
        assert!(counts.is_superset(&BTreeSet::from([1, 2, 3, 4, 5])), "{counts:?}");
        let full = windows.iter().filter(|window| !has_correction(window) && window.len() > 4).count();
        assert!(full > windows.len() / 4, "the rest fills {full} of {} windows", windows.len());
        let corrected = || windows.iter().copied().flatten().filter(|it| lessons[it.lesson].corrected);
        assert_eq!(corrected().map(|it| it.speed).collect::<BTreeSet<_>>(), BTreeSet::from(SPEEDS));
        let pauses: BTreeSet<usize> = corrected().map(|it| it.pause).collect();
        assert!(pauses.len() > 50, "{pauses:?}");
        let drawn = |pause: &usize| *pause == 0 || (1_600..=24_320).contains(pause);
        assert!(pauses.iter().all(drawn), "{pauses:?}");
        assert!(windows.iter().any(|it| it[0].pause == 0) && windows.iter().any(|it| it[0].pause > 0));
    }

    #[test]
    fn all_others_come_beside_corrections_at_some_time() {
        // All others in each epoch, and twenty for each correction.
        for one_in in [5, 20] {
            let (epochs, lessons) = epochs(30, one_in);
            let beside: BTreeSet<usize> = epochs
                .iter()
                .flatten()
                .filter(|window| window.iter().any(|it| lessons[it.lesson].corrected))
                .flatten()
                .map(|it| it.lesson)
                .collect();
            assert!(beside.len() > 30, "{} of 60 lessons where one in {one_in} is corrected", beside.len());
        }
    }

    #[test]
    fn corrections_without_others_are_heard_in_each_epoch() {
        let (epochs, _) = epochs(2, 1);
        assert!(epochs.iter().all(|windows| windows.iter().flatten().count() == 60));
    }
}
