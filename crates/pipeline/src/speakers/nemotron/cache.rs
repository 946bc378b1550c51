//! What the network remembers of the sound before a chunk: the latest frames as they
//! are, and of all before them those by which each speaker is best recognised
//! (arrival-order speaker cache: Medennikov and others, arXiv:2507.18446; the scores are
//! transformers' `Nemotron3DiarizationSpeakerCache`).

use formats::NemotronConfig;

/// An encoder frame.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    embedded: Vec<f32>,
    /// How likely each speaker speaks in it.
    activity: Vec<f32>,
}

/// See the module.
#[derive(Debug)]
pub struct SpeakerCache {
    /// By the speaker's number and time once there are more than fit, by time before.
    frames: Vec<Frame>,
    latest: Vec<Vec<f32>>,
    /// Whether frames were chosen: then their activities are those that they were chosen by.
    is_chosen: bool,
    rules: Rules,
}

/// The numbers of `streaming_config`, as frames.
#[derive(Debug)]
struct Rules {
    length: usize,
    latest: usize,
    period: usize,
    speakers: usize,
    silence: Vec<f32>,
    silence_per_speaker: usize,
    threshold: f32,
    latest_boost: f32,
    strongly_boosted: usize,
    weakly_boosted: usize,
    least_positive: usize,
    best: Best,
}

/// The places of the highest scores, as many as asked, in any order.
pub(super) type Best = fn(&[f32], usize) -> Vec<usize>;

/// What the best frames of a speaker get on top of their score, so that each speaker
/// keeps some, and those that come next.
const STRONG_BOOST: f32 = 2.0 * std::f32::consts::LN_2;
const WEAK_BOOST: f32 = std::f32::consts::LN_2;

impl SpeakerCache {
    /// An empty one; `silence` is the frame that stands for silence. `best` says which of
    /// equals are kept.
    pub fn new(config: &NemotronConfig, silence: &[f32], best: Best) -> Self {
        let of = &config.streaming_config;
        let silent = of.speaker_cache_silence_frames_per_speaker;
        let share = (of.speaker_cache_length / of.num_speakers.max(1)).saturating_sub(silent);
        let frames = |rate: f64| (share as f64 * rate) as usize;
        let rules = Rules {
            length: of.speaker_cache_length,
            latest: config.fifo_length,
            period: config.speaker_cache_update_period,
            speakers: of.num_speakers,
            silence: silence.to_vec(),
            silence_per_speaker: silent,
            threshold: of.prediction_score_threshold,
            latest_boost: of.latest_frames_score_boost,
            strongly_boosted: frames(of.strong_boost_rate),
            weakly_boosted: frames(of.weak_boost_rate),
            least_positive: frames(of.min_positive_scores_rate),
            best,
        };
        Self { frames: Vec::new(), latest: Vec::new(), is_chosen: false, rules }
    }

    /// How many frames are in it.
    pub fn count(&self) -> usize {
        self.frames.len() + self.latest.len()
    }

    /// The embedded frames that a chunk is heard with, one after the other.
    pub fn embedded(&self) -> Vec<f32> {
        let chosen = self.frames.iter().map(|frame| &frame.embedded);
        chosen.chain(&self.latest).flatten().copied().collect()
    }

    /// Takes the frames of a chunk. `activity` is how likely each speaker speaks, in each
    /// frame of [`SpeakerCache::embedded`] and then in each of the chunk.
    pub fn add<'a>(&mut self, chunk: impl Iterator<Item = &'a [f32]>, activity: &[Vec<f32>]) {
        self.latest.extend(chunk.map(<[f32]>::to_vec));
        let rules = &self.rules;
        if self.latest.len() <= rules.latest {
            return;
        }
        let leaving = rules.period.max(self.latest.len() - rules.latest).min(self.latest.len());
        let (of_frames, of_latest) = activity.split_at(self.frames.len().min(activity.len()));
        if !self.is_chosen {
            // Every chunk hears them again and knows better.
            let again = self.frames.iter_mut().zip(of_frames);
            again.for_each(|(frame, activity)| frame.activity.clone_from(activity));
        }
        let leaving = self.latest.drain(..leaving).zip(of_latest);
        self.frames
            .extend(leaving.map(|(embedded, activity)| Frame { embedded, activity: activity.clone() }));
        if self.frames.len() > rules.length {
            self.frames = rules.choose(std::mem::take(&mut self.frames));
            self.is_chosen = true;
        }
    }
}

impl Rules {
    /// As many frames as there may be, speaker by speaker, each one's with silence behind
    /// them. Frames that several speakers keep are there several times, with equal scores.
    fn choose(&self, frames: Vec<Frame>) -> Vec<Frame> {
        let mut scores = self.scores(&frames);
        for of_speaker in &mut scores {
            // Those that are new.
            of_speaker[self.length..].iter_mut().for_each(|score| *score += self.latest_boost);
            for (count, by) in [(self.strongly_boosted, STRONG_BOOST), (self.weakly_boosted, WEAK_BOOST)] {
                (self.best)(of_speaker, count).into_iter().for_each(|at| of_speaker[at] += by);
            }
        }
        // Speaker after speaker; a frame behind the last is silence.
        let silent = vec![f32::INFINITY; self.silence_per_speaker];
        let all: Vec<f32> =
            scores.iter().flat_map(|of_speaker| of_speaker.iter().chain(&silent)).copied().collect();
        let mut kept = (self.best)(&all, self.length);
        kept.retain(|at| all[*at] > f32::NEG_INFINITY);
        kept.sort_unstable();
        let silence = Frame { embedded: self.silence.clone(), activity: vec![0.0; self.speakers] };
        let per_speaker = frames.len() + self.silence_per_speaker;
        let chosen = kept.iter().map(|at| frames.get(at % per_speaker).unwrap_or(&silence));
        chosen.chain(std::iter::repeat(&silence)).take(self.length).cloned().collect()
    }

    /// How well each speaker is recognised by each frame: the logarithm of the odds that
    /// he speaks and all others are silent. Speaker after speaker.
    fn scores(&self, frames: &[Frame]) -> Vec<Vec<f32>> {
        let logarithm = |likelihood: f32| likelihood.max(self.threshold).ln();
        let others: Vec<f32> = frames
            .iter()
            .map(|frame| frame.activity.iter().map(|likely| logarithm(1.0 - likely)).sum())
            .collect();
        (0..self.speakers)
            .map(|speaker| {
                let score = |(frame, others): (&Frame, &f32)| {
                    let likely = frame.activity[speaker];
                    let score = logarithm(likely) - logarithm(1.0 - likely) + others + std::f32::consts::LN_2;
                    if likely > 0.5 { score } else { f32::NEG_INFINITY }
                };
                let mut scores: Vec<f32> = frames.iter().zip(&others).map(score).collect();
                // Of who is heard alone often enough, no frames with others are kept.
                if scores.iter().filter(|score| **score > 0.0).count() >= self.least_positive {
                    scores.iter_mut().filter(|score| **score <= 0.0).for_each(|it| *it = f32::NEG_INFINITY);
                }
                scores
            })
            .collect()
    }
}

/// Of equals the first.
pub(super) fn first_of_equals(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(count);
    order
}
