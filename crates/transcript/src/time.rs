//! Times as whole milliseconds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in a recording, or a length: whole milliseconds, serialised as
/// seconds (`12.34`). Integers keep comparing, adding and exporting exact.
/// Arithmetic saturates at both ends of the range (0 to 49 days).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[cfg_attr(feature = "ts", ts(as = "f64"))]
pub struct Time(u32);

impl Time {
    /// The start of a recording.
    pub const ZERO: Time = Time(0);

    /// A time of so many milliseconds.
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis)
    }

    /// Rounds to the nearest millisecond; negative and NaN become zero.
    pub fn from_seconds(seconds: f64) -> Self {
        // `as` saturates, which is right at both ends.
        Self((seconds * 1000.0).round() as u32)
    }

    /// The time in milliseconds.
    pub const fn millis(self) -> u32 {
        self.0
    }

    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The difference of two times, zero if `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, |total, time| total + time)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.seconds())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::from_seconds)
    }
}

/// A stretch of a recording, start included, end excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Span {
    /// First millisecond of the stretch.
    pub start: Time,
    /// The millisecond after the stretch.
    pub end: Time,
}

impl Span {
    /// The stretch from `start` to `end`.
    pub fn new(start: Time, end: Time) -> Self {
        Self { start, end }
    }

    /// Length of the stretch, zero if it ends before it starts.
    pub fn length(self) -> Time {
        self.end.saturating_sub(self.start)
    }

    /// Whether `time` lies in the stretch. Its end does not.
    pub fn contains(self, time: Time) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// The part that both stretches share, `None` if they share nothing.
    pub fn intersection(self, other: Span) -> Option<Span> {
        let common = Span::new(self.start.max(other.start), self.end.min(other.end));
        (common.start < common.end).then_some(common)
    }

    /// Length of the part that both stretches share.
    pub fn overlap(self, other: Span) -> Time {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}
