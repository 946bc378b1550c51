//! Who speaks at each moment, as the windows that hear it say.

use audio::SAMPLE_RATE;
use models::speakers::PyanNet;
use transcript::speakers::Turn;
use transcript::{Span, Time};

use super::clusters::Assigned;
use super::{CommunityHeard, STEP};

/// The turns of the speakers, and the same with one speaker at a time. Where the windows
/// count more speakers at once than there are, speakers behind the last one make up the
/// number, as in pyannote's pipeline.
pub fn turns(heard: &CommunityHeard, found: &Assigned, most: usize, seconds: f64) -> (Vec<Turn>, Vec<Turn>) {
    let count = found.centres.len();
    let mut all = Runs::new(count.max(PyanNet::SPEAKERS), seconds);
    let mut exclusive = Runs::new(count, seconds);
    let frames = first_frame(heard.windows.len() - 1) + PyanNet::FRAMES;
    // The voices of a window lie side by side.
    let mut of_window = vec![0..0; heard.windows.len()];
    let mut at = 0;
    for voices in heard.voices.chunk_by(|a, b| a.window == b.window) {
        of_window[voices[0].window] = at..at + voices.len();
        at += voices.len();
    }
    let mut oldest = 0;
    let mut votes = vec![0u32; count];
    for frame in 0..frames {
        while first_frame(oldest) + PyanNet::FRAMES <= frame {
            oldest += 1;
        }
        votes.fill(0);
        let (mut hearing, mut sum) = (0, 0);
        let windows = (oldest..heard.windows.len()).take_while(|window| first_frame(*window) <= frame);
        for window in windows {
            let mask = heard.windows[window][frame - first_frame(window)];
            hearing += 1;
            sum += mask.count_ones();
            // Two voices of a window that are one speaker count once.
            let mut heard_here = 0u64;
            for at in of_window[window].clone() {
                let Some(speaker) = found.speakers[at] else { continue };
                let is_first = speaker >= 64 || heard_here & (1 << speaker) == 0;
                if mask & (1 << heard.voices[at].speaker) != 0 && is_first {
                    votes[speaker] += 1;
                    heard_here |= if speaker < 64 { 1 << speaker } else { 0 };
                }
            }
        }
        let speaking = rounded(sum, hearing).min(most);
        let mut order: Vec<usize> = (0..count.max(speaking)).collect();
        order.sort_by_key(|speaker| std::cmp::Reverse(votes.get(*speaker).copied().unwrap_or(0)));
        order.truncate(speaking);
        all.add(frame, &order);
        order.truncate(1);
        exclusive.add(frame, &order);
    }
    (all.end(frames), exclusive.end(frames))
}

/// The frame of the recording that is nearest to a window's first.
fn first_frame(window: usize) -> usize {
    (2 * window * STEP + PyanNet::FRAME_STEP) / (2 * PyanNet::FRAME_STEP)
}

/// `sum / count`, halves rounded to the even number.
fn rounded(sum: u32, count: u32) -> usize {
    if count == 0 {
        return 0;
    }
    (f64::from(sum) / f64::from(count)).round_ties_even() as usize
}

/// Turns, as frame after frame is added.
struct Runs {
    since: Vec<Option<usize>>,
    turns: Vec<Turn>,
    seconds: f64,
}

impl Runs {
    fn new(speakers: usize, seconds: f64) -> Self {
        Self { since: vec![None; speakers], turns: Vec::new(), seconds }
    }

    fn add(&mut self, frame: usize, speaking: &[usize]) {
        for speaker in 0..self.since.len() {
            match (self.since[speaker], speaking.contains(&speaker)) {
                (None, true) => self.since[speaker] = Some(frame),
                (Some(since), false) => {
                    self.push(speaker, since, frame);
                    self.since[speaker] = None;
                }
                _ => (),
            }
        }
    }

    fn push(&mut self, speaker: usize, start: usize, end: usize) {
        // The middle of a frame.
        let at = |frame: usize| {
            let sample = (frame * PyanNet::FRAME_STEP) as f64 + PyanNet::FRAME_WIDTH as f64 / 2.0;
            Time::from_seconds((sample / f64::from(SAMPLE_RATE)).min(self.seconds))
        };
        let span = Span::new(at(start), at(end));
        if span.end > span.start {
            self.turns.push(Turn { span, speaker, channel: None });
        }
    }

    /// All turns, in order of their starts.
    fn end(mut self, frames: usize) -> Vec<Turn> {
        for speaker in 0..self.since.len() {
            if let Some(since) = self.since[speaker] {
                self.push(speaker, since, frames);
            }
        }
        self.turns.sort_by_key(|turn| (turn.span.start, turn.span.end, turn.speaker));
        self.turns
    }
}
