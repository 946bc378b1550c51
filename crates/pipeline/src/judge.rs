use std::ops::Range;

use transcript::{Segment, Span, Suspicion, Time};
use wire::DecodingOptions;

use crate::loops::{has_loop, is_too_fast, without_loops};
use crate::steps::{Found, Speech, time};

/// Text over silence that the model was this unsure of is left out.
const DOUBTFUL_LOG_PROBABILITY: f32 = -0.7;
const DOUBTFUL_NO_SPEECH: f32 = 0.3;

/// Marks what should not be trusted, repairs loops, and leaves out what
/// neither the model nor the ear believes in.
pub fn judge(mut segment: Segment, speech: Speech, settings: &DecodingOptions, found: &mut Found) {
    if !settings.repair {
        found.segments.push(segment);
        return;
    }
    if has_loop(&segment.text) {
        segment.suspicions.push(Suspicion::Loop);
        if let Some(text) = without_loops(&segment.text) {
            segment.raw_text = Some(std::mem::replace(&mut segment.text, text));
            // The words' times belong to the raw text.
            segment.words.clear();
        }
    }
    if is_too_fast(&segment.text, segment.start, segment.end) {
        segment.suspicions.push(Suspicion::TooFast);
    }
    let unsure = |limit| segment.mean_log_probability < limit;
    if settings.log_probability_threshold.is_some_and(unsure) {
        segment.suspicions.push(Suspicion::LowConfidence);
    }
    let span = Span::new(segment.start, segment.end);
    let heard =
        |region: &Range<usize>| Span::new(time(region.start), time(region.end)).overlap(span) > Time::ZERO;
    if speech.is_some_and(|speech| !speech.iter().any(heard)) {
        segment.suspicions.push(Suspicion::OverSilence);
        let doubtful = segment.mean_log_probability < DOUBTFUL_LOG_PROBABILITY
            || segment.no_speech_probability > DOUBTFUL_NO_SPEECH;
        if doubtful {
            found.discarded.push(segment);
            return;
        }
    }
    found.segments.push(segment);
}
