//! Speakers of a recording whose channels are transcribed one by one, as of a telephone call.
//!
//! Each channel has speakers of its own, however alike two voices are: who is recorded apart
//! is another person. Only a voice that two channels have at the same time is one person, as
//! where one microphone picks up what is said into the other.

use transcript::speakers::Turn;
use transcript::{Span, Time};

use super::turns::number_by_appearance;
use super::{AnyHeard, Bounds, Diarization};

/// A channel that was listened to.
#[derive(Debug)]
pub struct Channel {
    /// Its number in the file, from 0.
    pub number: u32,
    /// What was heard on it.
    pub heard: AnyHeard,
}

/// Share of the speech of one speaker that another channel has at the same time, from which
/// on two alike voices are one person.
const AT_ONCE: f64 = 0.5;

/// Decides who is who and when they speak, channel by channel; `bounds` are those of all
/// channels together. `seconds` is the recording's length.
pub fn diarize_channels(channels: &[Channel], seconds: f64, bounds: Bounds) -> Diarization {
    let has_speech = |channel: &&Channel| channel.heard.has_speech();
    let channels: Vec<&Channel> = channels.iter().filter(has_speech).collect();
    // Each channel has at least one speaker.
    let most = bounds.max.saturating_sub(channels.len().saturating_sub(1)).max(1);
    let of =
        |channel: &Channel, min: usize| channel.heard.diarize(seconds, Bounds { min, max: most.max(min) });
    let mut found: Vec<Diarization> = channels.iter().map(|channel| of(channel, 1)).collect();
    let Some(alike) = channels.first().map(|channel| channel.heard.alike()) else {
        return Diarization::default();
    };
    let mut people = who_is_who(&found, alike, bounds.max);
    // Where there should be more, they are where most is said.
    let mut order: Vec<usize> = (0..channels.len()).collect();
    order.sort_by_key(|channel| std::cmp::Reverse(speech(&found[*channel].turns)));
    for channel in order {
        while count(&people) < bounds.min {
            let more = of(channels[channel], found[channel].voices.len() + 1);
            if more.voices.len() <= found[channel].voices.len() {
                break;
            }
            found[channel] = more;
            people = who_is_who(&found, alike, bounds.max);
        }
    }

    let mut voices: Vec<Vec<f32>> = vec![Vec::new(); count(&people)];
    let (mut turns, mut exclusive) = (Vec::new(), Vec::new());
    for ((found, people), channel) in found.iter().zip(&people).zip(&channels) {
        for turn in &found.turns {
            let speaker = people[turn.speaker];
            turns.push(Turn { speaker, channel: Some(channel.number), ..*turn });
            // Who speaks longer on a channel is better known there.
            let weight = turn.span.length().seconds() as f32;
            let voice = &found.voices[turn.speaker];
            voices[speaker].resize(voice.len(), 0.0);
            voices[speaker].iter_mut().zip(voice).for_each(|(sum, x)| *sum += weight * x);
        }
        let of_channel =
            |turn: &Turn| Turn { speaker: people[turn.speaker], channel: Some(channel.number), ..*turn };
        exclusive.extend(found.exclusive.iter().map(of_channel));
    }
    for turns in [&mut turns, &mut exclusive] {
        turns.sort_by_key(|turn: &Turn| (turn.span.start, turn.span.end));
    }
    let network = found.first().map(|found| found.network.as_str()).unwrap_or_default();
    number_by_appearance(turns, exclusive, voices, network)
}

/// Which person each speaker of each channel is, numbered from 0; at most so many. Voices within
/// the cosine distance `alike` may be one.
fn who_is_who(found: &[Diarization], alike: f32, most: usize) -> Vec<Vec<usize>> {
    let speakers: Vec<(usize, usize)> = found
        .iter()
        .enumerate()
        .flat_map(|(channel, found)| (0..found.voices.len()).map(move |speaker| (channel, speaker)))
        .collect();
    let mut pairs = Vec::new();
    for (b, &(of_b, speaker_b)) in speakers.iter().enumerate() {
        for (a, &(of_a, speaker_a)) in speakers[..b].iter().enumerate() {
            let voices = (&found[of_a].voices[speaker_a], &found[of_b].voices[speaker_b]);
            let distance = 1.0 - voices.0.iter().zip(voices.1).map(|(x, y)| x * y).sum::<f32>();
            let own = |channel: usize, speaker: usize| {
                found[channel].turns.iter().filter(move |turn| turn.speaker == speaker).map(|turn| turn.span)
            };
            let is_same = of_a != of_b
                && distance < alike
                && at_once(own(of_a, speaker_a).collect(), own(of_b, speaker_b).collect());
            pairs.push((!is_same, distance, a, b));
        }
    }
    // Those that are one person first, then the most alike, as far as there are too many.
    pairs.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
    let mut person: Vec<usize> = (0..speakers.len()).collect();
    let mut left = speakers.len();
    for (is_other, _, a, b) in pairs {
        if person[a] == person[b] || (is_other && left <= most.max(1)) {
            continue;
        }
        let (kept, gone) = (person[a].min(person[b]), person[a].max(person[b]));
        person.iter_mut().filter(|it| **it == gone).for_each(|it| *it = kept);
        left -= 1;
    }
    let mut kept: Vec<usize> = person.clone();
    kept.sort_unstable();
    kept.dedup();
    let mut numbers = vec![Vec::new(); found.len()];
    for ((channel, _), person) in speakers.iter().zip(&person) {
        numbers[*channel].push(kept.binary_search(person).unwrap_or(0));
    }
    numbers
}

fn count(people: &[Vec<usize>]) -> usize {
    people.iter().flatten().max().map_or(0, |last| last + 1)
}

fn speech(turns: &[Turn]) -> Time {
    turns.iter().fold(Time::ZERO, |sum, turn| sum + turn.span.length())
}

/// Whether most of what one of two speakers says is said while the other speaks. Each one's
/// turns are in order and don't overlap.
fn at_once(a: Vec<Span>, b: Vec<Span>) -> bool {
    let length = |turns: &[Span]| turns.iter().map(|turn| turn.length().seconds()).sum::<f64>();
    let (mut common, mut first) = (0.0, 0);
    for turn in &a {
        while b.get(first).is_some_and(|other| other.end <= turn.start) {
            first += 1;
        }
        let touching = b[first..].iter().take_while(|other| other.start < turn.end);
        common += touching.map(|other| other.overlap(*turn).seconds()).sum::<f64>();
    }
    common >= AT_ONCE * length(&a).min(length(&b)).max(0.1)
}
