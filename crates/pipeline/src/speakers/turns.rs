//! From voices in windows to turns of speakers in the recording.

use std::ops::Range;

use audio::SAMPLE_RATE;
use models::speakers::{PyanNet, VoiceEncoder};
use transcript::speakers::Turn;
use transcript::{Span, Time};

use super::clusters::Bounds;
use super::listen::{FRAME_SECONDS, Heard, STEP, Utterance, WINDOWS_PER_MOMENT, normalise};
use super::people::voices;

/// Weight of all that a window's speaker says, beside the utterance itself.
const WEIGHT_OF_SPEAKER: f32 = 0.25;
/// Frames from which on two utterances are at the same time: 0.1 s.
const COMMON_FRAMES: usize = 6;
/// Within a turn, a pause of one speaker in which nobody else speaks, in seconds.
const LONGEST_PAUSE: f32 = 1.5;
/// Added to each end of a turn, where nobody else speaks, in seconds: the network
/// finds the voice, not the breath and the faint sounds around it.
const EDGE: f32 = 0.2;
/// Turns shorter than this are dropped, in seconds.
const SHORTEST_TURN: f32 = 0.2;
/// Seconds from one decision to the next.
const STEP_SECONDS: f32 = 0.02;
/// Who spoke when.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diarization {
    /// In order of their starts; speakers are numbered from 0 in the order in
    /// which they are first heard. Turns of different speakers may overlap.
    pub turns: Vec<Turn>,
    /// The same with one speaker at a time, for words; empty where the turns serve.
    pub exclusive: Vec<Turn>,
    /// Each speaker's voice, a vector of length 1.
    pub voices: Vec<Vec<f32>>,
    /// The network that made the voices.
    pub network: String,
}

impl Diarization {
    /// The turns by which words get their speakers.
    pub fn of_words(&self) -> &[Turn] {
        if self.exclusive.is_empty() { &self.turns } else { &self.exclusive }
    }
}

/// Decides who is who and when they speak. `seconds` is the recording's length.
pub fn diarize(heard: &Heard, seconds: f64, bounds: Bounds) -> Diarization {
    if heard.utterances.is_empty() {
        return Diarization::default();
    }
    let centres = voices(&heard.utterances, bounds);
    let assigned = assign(heard, &centres);
    let active = active(heard, &assigned, centres.len(), seconds);
    let mut turns = turns(&active, centres.len());
    turns.sort_by_key(|turn| (turn.span.start, turn.span.end));
    number_by_appearance(turns, Vec::new(), centres, VoiceEncoder::NAME)
}

/// Who says each utterance. Two that are said at the same time in one window have
/// different speakers.
fn assign(heard: &Heard, centres: &[Vec<f32>]) -> Vec<usize> {
    let mut assigned = Vec::with_capacity(heard.utterances.len());
    for of_window in heard.utterances.chunk_by(|a, b| a.window == b.window) {
        let likeness: Vec<Vec<f32>> = of_window
            .iter()
            .map(|utterance| {
                let all = all_of_speaker(of_window, utterance.speaker);
                let of = |centre: &Vec<f32>| {
                    (1.0 - WEIGHT_OF_SPEAKER) * product(centre, &utterance.vector)
                        + WEIGHT_OF_SPEAKER * product(centre, &all)
                };
                centres.iter().map(of).collect()
            })
            .collect();
        let ranked: Vec<Vec<usize>> = likeness.iter().map(|likeness| ranked(likeness)).collect();
        let mut best: Vec<usize> = ranked.iter().map(|ranked| ranked[0]).collect();
        for a in 0..of_window.len() {
            for b in 0..a {
                if best[a] != best[b] || centres.len() < 2 || !at_once(&of_window[a], &of_window[b]) {
                    continue;
                }
                let loss = |row: usize| likeness[row][ranked[row][0]] - likeness[row][ranked[row][1]];
                let moved = if loss(a) < loss(b) { a } else { b };
                best[moved] = ranked[moved][1];
            }
        }
        assigned.extend(best);
    }
    assigned
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The numbers of the values, the largest value first.
fn ranked(values: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order
}

fn at_once(a: &Utterance, b: &Utterance) -> bool {
    let common = a.frames.end.min(b.frames.end).saturating_sub(a.frames.start.max(b.frames.start));
    a.speaker != b.speaker && common > COMMON_FRAMES
}

/// How one of a window's speakers sounds over all utterances.
fn all_of_speaker(of_window: &[Utterance], speaker: u8) -> Vec<f32> {
    let mut sum: Vec<f32> = Vec::new();
    for utterance in of_window.iter().filter(|utterance| utterance.speaker == speaker) {
        sum.resize(utterance.vector.len(), 0.0);
        sum.iter_mut().zip(&utterance.vector).for_each(|(sum, x)| *sum += utterance.seconds * x);
    }
    normalise(&mut sum);
    sum
}

/// Who speaks at each moment, as the windows that hear it say: as many speakers as
/// they count on average, those that most of them heard.
fn active(heard: &Heard, assigned: &[usize], speakers: usize, seconds: f64) -> Vec<Vec<usize>> {
    let moments = (seconds / f64::from(STEP_SECONDS)).ceil() as usize;
    let step = STEP as f32 / SAMPLE_RATE as f32;
    let half = PyanNet::FRAME_WIDTH as f32 / 2.0 / SAMPLE_RATE as f32;
    // The utterances of a window lie side by side.
    let count = heard.windows.len();
    let mut of_window = vec![0..0; count];
    let mut at = 0;
    for utterances in heard.utterances.chunk_by(|a, b| a.window == b.window) {
        of_window[utterances[0].window] = at..at + utterances.len();
        at += utterances.len();
    }
    let mut votes = vec![0u32; speakers];
    (0..moments)
        .map(|moment| {
            // In 64 bits: a moment of a long recording is a large number.
            let time = moment as f64 * f64::from(STEP_SECONDS);
            let last = (time / f64::from(step)) as usize;
            let first = (last + 1).saturating_sub(WINDOWS_PER_MOMENT);
            votes.fill(0);
            let (mut hearing, mut sum) = (0, 0);
            let windows = first.min(count)..(last + 1).min(count);
            let listening = heard.windows[windows.clone()].iter().zip(&of_window[windows]);
            for (window, (frames, utterances)) in (first..).zip(listening) {
                let within = (time - window as f64 * f64::from(step)) as f32 - half;
                let frame = (within / FRAME_SECONDS).round().max(0.0) as usize;
                let Some(mask) = frames.get(frame) else { continue };
                hearing += 1;
                sum += mask.count_ones();
                for at in utterances.clone() {
                    let utterance = &heard.utterances[at];
                    if mask & (1 << utterance.speaker) != 0 && utterance.frames.contains(&frame) {
                        votes[assigned[at]] += 1;
                    }
                }
            }
            let speaking = if hearing == 0 { 0 } else { (2 * sum + hearing) / (2 * hearing) };
            let mut who: Vec<usize> = (0..speakers).filter(|speaker| votes[*speaker] > 0).collect();
            who.sort_by_key(|speaker| std::cmp::Reverse(votes[*speaker]));
            who.truncate(speaking as usize);
            who
        })
        .collect()
}

/// Turns, with short pauses closed and their edges moved out.
fn turns(active: &[Vec<usize>], speakers: usize) -> Vec<Turn> {
    let moments = |seconds: f32| (seconds / STEP_SECONDS).round() as usize;
    let at = |moment: usize| Time::from_seconds(moment as f64 * f64::from(STEP_SECONDS));
    let mut runs: Vec<Vec<Range<usize>>> = vec![Vec::new(); speakers];
    for (moment, who) in active.iter().enumerate() {
        for speaker in who {
            match runs[*speaker].last_mut() {
                Some(last)
                    if moment - last.end < moments(LONGEST_PAUSE)
                        && active[last.end..moment].iter().all(Vec::is_empty) =>
                {
                    last.end = moment + 1;
                }
                _ => runs[*speaker].push(moment..moment + 1),
            }
        }
    }
    let is_silent = |moment: usize| active.get(moment).is_some_and(Vec::is_empty);
    let widened = |run: Range<usize>| {
        let before = (1..=moments(EDGE)).take_while(|by| *by <= run.start && is_silent(run.start - by));
        let behind = (0..moments(EDGE)).take_while(|by| is_silent(run.end + by));
        run.start - before.count()..run.end + behind.count()
    };
    let mut turns = Vec::new();
    for (speaker, runs) in runs.into_iter().enumerate() {
        for run in runs.into_iter().filter(|run| run.len() > moments(SHORTEST_TURN)) {
            let run = widened(run);
            turns.push(Turn { span: Span::new(at(run.start), at(run.end)), speaker, channel: None });
        }
    }
    turns
}

/// Numbers the speakers in the order in which they are heard; one without a turn
/// is left out.
pub(super) fn number_by_appearance(
    turns: Vec<Turn>,
    exclusive: Vec<Turn>,
    centres: Vec<Vec<f32>>,
    network: &str,
) -> Diarization {
    let mut order: Vec<usize> = Vec::new();
    for turn in &turns {
        if !order.contains(&turn.speaker) {
            order.push(turn.speaker);
        }
    }
    let number = |speaker: usize| order.iter().position(|other| *other == speaker).unwrap_or(0);
    let voices = order.iter().filter_map(|speaker| centres.get(*speaker).cloned());
    let voices = voices
        .map(|mut voice| {
            normalise(&mut voice);
            voice
        })
        .collect();
    let numbered = |turns: Vec<Turn>| -> Vec<Turn> {
        turns.into_iter().map(|turn| Turn { speaker: number(turn.speaker), ..turn }).collect()
    };
    Diarization { turns: numbered(turns), exclusive: numbered(exclusive), voices, network: network.into() }
}
