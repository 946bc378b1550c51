//! Times as people read and type them.

use transcript::Time;

/// `0:07`, `12:34`, `1:02:03`.
pub fn clock(time: Time) -> String {
    let seconds = time.millis() / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A wait in words, no more exact than a guess is.
pub fn wait(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    if seconds < 60.0 {
        format!("{:.0} s", seconds.max(0.0).ceil())
    } else if minutes < 90.0 {
        format!("{minutes:.0} min")
    } else {
        format!("{:.1} h", minutes / 60.0)
    }
}

/// As [`parse`], but more than nothing.
pub fn length(text: &str) -> Result<Time, String> {
    match parse(text)? {
        Time::ZERO => Err("it must be more than 0".into()),
        length => Ok(length),
    }
}

/// Seconds (`90`, `12.5`) or a clock (`1:30`, `1:02:03`).
pub fn parse(text: &str) -> Result<Time, String> {
    let wrong = || format!("`{text}` is not a time: use seconds (90) or minutes and hours (1:30, 1:02:03)");
    let mut seconds = 0.0;
    for (index, part) in text.split(':').enumerate() {
        let number: f64 = part.trim().parse().map_err(|_| wrong())?;
        let is_clock_part = index == 0 || number < 60.0;
        if index > 2 || !number.is_finite() || number < 0.0 || !is_clock_part {
            return Err(wrong());
        }
        seconds = seconds * 60.0 + number;
    }
    Ok(Time::from_seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_typed() {
        for (text, millis) in [
            ("0", 0),
            ("0:00", 0),
            ("90", 90_000),
            ("12.5", 12_500),
            ("1:30", 90_000),
            ("75:00", 4_500_000),
            ("1:02:03.5", 3_723_500),
        ] {
            assert_eq!(parse(text), Ok(Time::from_millis(millis)), "{text}");
            assert_eq!(length(text).is_ok(), millis > 0, "{text}");
        }
        for text in ["", "-3", "ten", "1:2:3:4", "inf", "nan", "1:", "1:99", "1:60:00"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_written_as_read() {
        for (millis, expected) in [(7_999, "0:07"), (754_000, "12:34"), (3_723_000, "1:02:03")] {
            assert_eq!(clock(Time::from_millis(millis)), expected);
        }
        for (seconds, expected) in [(-1.0, "0 s"), (4.2, "5 s"), (150.0, "2 min"), (9000.0, "2.5 h")] {
            assert_eq!(wait(seconds), expected);
        }
    }
}
