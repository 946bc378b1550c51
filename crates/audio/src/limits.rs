//! What a recording can be. Damaged and hostile files declare more, and a decoder that believes
//! them asks for all the memory of a machine. Transcription and playback
//! keep to the same limits.

use std::path::Path;

use crate::{AudioError, MediaInfo};

/// Sample rates that recordings have, in hertz.
pub(crate) const RATES: std::ops::RangeInclusive<u32> = 1_000..=768_000;
/// More than any microphone array has.
const MOST_CHANNELS: u32 = 512;
/// Longest declared duration, in seconds: a month.
const LONGEST_SECONDS: f64 = 31.0 * 24.0 * 3600.0;

/// Refuses what a recording can't be. Values that are not declared count as plausible.
pub(crate) fn check(path: &Path, info: &MediaInfo) -> Result<(), AudioError> {
    let implausible = |what: String| Err(AudioError::Implausible { path: path.into(), what });
    let MediaInfo { sample_rate, channels, duration_seconds, .. } = info;
    if *sample_rate != 0 && !RATES.contains(sample_rate) {
        return implausible(format!("a sample rate of {sample_rate} Hz"));
    }
    if *channels > MOST_CHANNELS {
        return implausible(format!("{channels} channels"));
    }
    match duration_seconds {
        Some(seconds) if !seconds.is_finite() => implausible("a duration that is no number".into()),
        Some(seconds) if !(0.0..=LONGEST_SECONDS).contains(seconds) => {
            implausible(format!("a duration of {seconds:.0} s"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_recording_can_be_is_accepted() {
        let info = |sample_rate, channels, duration_seconds| MediaInfo {
            sample_rate,
            channels,
            duration_seconds,
            ..MediaInfo::default()
        };
        let day = 24.0 * 3600.0;
        for (info, refused) in [
            (info(16_000, 1, Some(10.0)), None),
            (info(384_000, 64, Some(7.0 * day)), None),
            (info(0, 0, None), None),
            (info(u32::MAX, 1, Some(1.0)), Some("a sample rate of 4294967295 Hz")),
            (info(999, 1, None), Some("a sample rate of 999 Hz")),
            (info(48_000, 65_535, None), Some("65535 channels")),
            (info(48_000, 2, Some(1e18)), Some("a duration of 1000000000000000000 s")),
            (info(48_000, 2, Some(f64::NAN)), Some("a duration that is no number")),
        ] {
            let found = check(Path::new("x.caf"), &info).map_err(|error| error.to_string());
            match refused {
                None => assert_eq!(found, Ok(())),
                Some(what) => assert!(found.unwrap_err().contains(what), "{what}"),
            }
        }
    }
}
