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

    /// Masks one row of logits, given the tokens sampled so far.
    pub fn apply(&self, logits: &mut [f32], sampled: &[u32]) {
        let vocabulary = self.vocabulary;
        if sampled.is_empty() {
            mask(logits, &vocabulary.begin_suppressed);
        }
        mask(logits, &vocabulary.suppressed);
        mask(logits, self.suppress);
        if self.timestamps {
            self.apply_timestamps(logits, sampled);
        }
    }

    fn apply_timestamps(&self, logits: &mut [f32], sampled: &[u32]) {
        let vocabulary = self.vocabulary;
        let begin = vocabulary.timestamp_begin as usize;
        let end_of_text = vocabulary.end_of_text as usize;
        let is_timestamp = |token: Option<&u32>| token.is_some_and(|token| vocabulary.is_timestamp(*token));
        mask(logits, &[vocabulary.no_timestamps]);

        // Times come in pairs, end and start, except directly before the end.
        let last = is_timestamp(sampled.last());
        let second_last = sampled.len() < 2 || is_timestamp(sampled.get(sampled.len() - 2));
        if last {
            if second_last {
                logits[begin..].fill(f32::NEG_INFINITY);
            } else {
                logits[..end_of_text].fill(f32::NEG_INFINITY);
            }
        }

        // Times never decrease, and no segment is empty, which would loop for ever.
        if let Some(latest) = sampled.iter().rev().find(|token| vocabulary.is_timestamp(**token)) {
            let first_allowed = if last && !second_last { *latest } else { latest + 1 } as usize;
            let first_allowed = first_allowed.min(logits.len());
            logits[begin..first_allowed].fill(f32::NEG_INFINITY);
        }

        if sampled.is_empty() {
            logits[..begin].fill(f32::NEG_INFINITY);
            if let Some(latest) = self.max_initial_timestamp {
                let first_masked = (begin + latest as usize + 1).min(logits.len());
                logits[first_masked..].fill(f32::NEG_INFINITY);
            }
        }

        // All times together likelier than any one word: it is time for a time.
        // The common normaliser of both sides cancels out.
        if log_sum_exp(&logits[begin..]) > max(&logits[..begin]) {
            logits[..begin].fill(f32::NEG_INFINITY);
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
