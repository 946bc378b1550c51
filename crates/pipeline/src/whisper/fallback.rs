use candle_core::Tensor;
use models::whisper::Whisper;
use wire::DecodingOptions;

use super::decode::{Decoded, WindowOptions, decode};
use crate::Control;
use crate::loops::has_loop;

/// Decodes a window at each temperature in turn until a text passes the
/// thresholds (openai/whisper's `decode_with_fallback`). Where none does, the
/// likeliest text that is no loop is taken rather than the last.
pub fn decode_with_fallback(
    model: &Whisper,
    audio: &Tensor,
    base: &WindowOptions,
    settings: &DecodingOptions,
    control: &Control,
) -> Result<Decoded, models::Error> {
    let first = decode(model, audio, &at_temperature(base, first_temperature(settings)), control)?;
    fall_back(first, model, audio, base, settings, control)
}

/// The rest of [`decode_with_fallback`], where the first temperature gave `first`.
pub fn fall_back(
    first: Decoded,
    model: &Whisper,
    audio: &Tensor,
    base: &WindowOptions,
    settings: &DecodingOptions,
    control: &Control,
) -> Result<Decoded, models::Error> {
    let passes = |decoded: &Decoded| is_silence(decoded, settings) || !is_bad(decoded, settings);
    if passes(&first) {
        return Ok(first);
    }
    let mut tried = vec![first];
    for temperature in settings.temperatures.iter().skip(1) {
        let decoded = decode(model, audio, &at_temperature(base, *temperature), control)?;
        if passes(&decoded) {
            return Ok(decoded);
        }
        tried.push(decoded);
    }
    if !settings.repair {
        // The reference's choice: whatever came last.
        return tried.pop().ok_or_else(no_temperature);
    }
    let rank = |decoded: &Decoded| (!is_loop(decoded, settings), decoded.sureness);
    tried
        .into_iter()
        .reduce(|best, next| {
            let ((a_text, a), (b_text, b)) = (rank(&best), rank(&next));
            if (b_text, b) > (a_text, a) { next } else { best }
        })
        .ok_or_else(no_temperature)
}

/// What every window is decoded at first.
pub fn first_temperature(settings: &DecodingOptions) -> f32 {
    settings.temperatures.first().copied().unwrap_or(0.0)
}

pub fn at_temperature<'a>(base: &WindowOptions<'a>, temperature: f32) -> WindowOptions<'a> {
    WindowOptions { temperature, seed: mix(base.seed, u64::from(temperature.to_bits())), ..base.clone() }
}

fn no_temperature() -> models::Error {
    candle_core::Error::Msg("no temperature to decode at".into()).into()
}

/// Above the no-speech threshold, and not sure of the text either.
pub fn is_silence(decoded: &Decoded, settings: &DecodingOptions) -> bool {
    let quiet = settings.no_speech_threshold.is_some_and(|limit| decoded.no_speech_probability > limit);
    let sure = settings.log_probability_threshold.is_some_and(|limit| decoded.sureness > limit);
    quiet && !sure
}

/// Too unsure, or a loop.
pub fn is_bad(decoded: &Decoded, settings: &DecodingOptions) -> bool {
    let unsure = settings.log_probability_threshold.is_some_and(|limit| decoded.sureness < limit);
    unsure || is_loop(decoded, settings)
}

fn is_loop(decoded: &Decoded, settings: &DecodingOptions) -> bool {
    settings.compression_ratio_threshold.is_some_and(|limit| decoded.compression_ratio > limit)
        || (settings.repair && has_loop(&decoded.text))
}

/// A seed that depends on both parts in every bit (the finaliser of
/// SplitMix64, Steele et al. 2014).
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
