use models::choose::Limits;
use models::log_sum_exp;
use models::whisper::Vocabulary;

use super::decode::WindowOptions;
use super::scores::max;

/// Seconds between two neighbouring time tokens: one per two frames of 10 ms.
pub const TIMESTAMP_STEP: f64 = 0.02;

/// What may be written next: the filters of openai/whisper's `decoding.py`
/// (`SuppressBlank`, `SuppressTokens`, `ApplyTimestampRules`).
#[derive(Debug)]
pub struct LogitsFilter<'a> {
    pub vocabulary: &'a Vocabulary,
    pub timestamps: bool,
    /// Latest time token of a window's first segment, counted from `<|0.00|>`.
    pub max_initial_timestamp: Option<u32>,
    pub suppress: &'a [u32],
}

impl<'a> LogitsFilter<'a> {
    pub fn new(vocabulary: &'a Vocabulary, options: &WindowOptions<'a>) -> Self {
        Self {
            vocabulary,
            timestamps: options.timestamps,
            max_initial_timestamp: options
                .max_initial_timestamp
                .map(|seconds| (f64::from(seconds) / TIMESTAMP_STEP).round() as u32),
            suppress: options.suppress,
        }
    }

    /// What may follow the tokens sampled so far, besides what is never allowed.
    pub fn limits(&self, sampled: &[u32]) -> Limits {
        let vocabulary = self.vocabulary;
        let begin = vocabulary.timestamp_begin;
        let mut limits =
            Limits { is_first: sampled.is_empty(), text_from: 0, times: begin..vocabulary.size as u32 };
        if !self.timestamps {
            return limits;
        }
        // Times come in pairs, end and start, except directly before the end.
        let is_timestamp = |token: Option<&u32>| token.is_some_and(|token| vocabulary.is_timestamp(*token));
        let last = is_timestamp(sampled.last());
        let second_last = sampled.len() < 2 || is_timestamp(sampled.get(sampled.len() - 2));
        if last && !second_last {
            limits.text_from = vocabulary.end_of_text;
        }
        // Times never decrease, and no segment is empty, which would loop for ever.
        if let Some(latest) = sampled.iter().rev().find(|token| vocabulary.is_timestamp(**token)) {
            limits.times.start = if last && !second_last { *latest } else { latest + 1 };
        }
        if last && second_last {
            limits.times.end = limits.times.start;
        }
        if sampled.is_empty() {
            limits.text_from = begin;
            if let Some(latest) = self.max_initial_timestamp {
                limits.times.end = limits.times.end.min(begin + latest + 1);
            }
        }
        limits
    }

    /// Masks one row of logits, given the tokens sampled so far.
    pub fn apply(&self, logits: &mut [f32], sampled: &[u32]) {
        let vocabulary = self.vocabulary;
        if sampled.is_empty() {
            mask(logits, &vocabulary.begin_suppressed);
        }
        mask(logits, &vocabulary.suppressed);
        mask(logits, self.suppress);
        if !self.timestamps {
            return;
        }
        mask(logits, &[vocabulary.no_timestamps]);
        let Limits { text_from, times, .. } = self.limits(sampled);
        let (text, timestamps) = logits.split_at_mut(vocabulary.timestamp_begin as usize);
        text[..text_from as usize].fill(f32::NEG_INFINITY);
        let index = |token: u32| ((token - vocabulary.timestamp_begin) as usize).min(timestamps.len());
        let allowed = index(times.start)..index(times.end);
        timestamps[..allowed.start].fill(f32::NEG_INFINITY);
        timestamps[allowed.end..].fill(f32::NEG_INFINITY);
        // All times together likelier than any one text token: a time it is. The common normaliser of both sides
        // cancels out.
        if log_sum_exp(timestamps) > max(text) {
            text.fill(f32::NEG_INFINITY);
        }
    }
}

fn mask(logits: &mut [f32], tokens: &[u32]) {
    for token in tokens {
        if let Some(logit) = logits.get_mut(*token as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}
