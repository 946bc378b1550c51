//! What happens while a recording is transcribed, with a model of any family.

use std::ops::Range;

use transcript::{Segment, Time};
use wire::Point;

use crate::StageError;

/// Frames of the spectrogram per second.
pub const FRAMES_PER_SECOND: f64 = 100.0;

/// Where speech is, in frames; `None`: not known, everything may be.
pub type Speech<'a> = Option<&'a [Range<usize>]>;

/// What happens while a recording is transcribed.
#[derive(Debug)]
pub enum Step {
    /// So many windows are about to be computed, the first from this sample of
    /// the 16 kHz stream on. Where several were decoded together, each is
    /// announced once more before it is decoded on its own or its text is
    /// repaired: whatever kills the engine then is that window's doing.
    /// Decoding begins at this sample, so many windows together.
    Began {
        /// The first sample of the 16 kHz stream.
        position: u64,
        /// How many windows are decoded together.
        windows: usize,
    },
    /// A window is done.
    Found(Found),
}

/// What one window gave.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The segments of the window, in order of time.
    pub segments: Vec<Segment>,
    /// Text over silence that the model itself doubted.
    pub discarded: Vec<Segment>,
    /// Everything before it is done: from here on the text can be continued.
    pub point: Point,
    /// Windows decoded for it: 0 for one that was passed over.
    pub windows: usize,
}

impl Found {
    /// Everything before this is done.
    pub fn position(&self) -> Time {
        Time::from_seconds(self.point.position as f64 / f64::from(audio::SAMPLE_RATE))
    }

    /// Adds what a further look at the same window gave.
    pub(crate) fn add(&mut self, more: Found) {
        self.segments.extend(more.segments);
        self.discarded.extend(more.discarded);
        self.windows += more.windows;
        self.point = more.point;
    }
}

/// Who asked for the text: is told of each step, and may end the run.
pub trait Observer {
    /// How many windows may be decoded together now; asked before each batch.
    fn batch_size(&mut self) -> usize {
        1
    }

    /// An error ends the run at once: nothing of the window is kept.
    ///
    /// # Errors
    /// What ends the run early.
    fn step(&mut self, step: Step) -> Result<(), StageError>;
}

impl<F: FnMut(Step) -> Result<(), StageError>> Observer for F {
    fn step(&mut self, step: Step) -> Result<(), StageError> {
        self(step)
    }
}

/// First sample of a frame.
pub fn sample(frame: usize) -> u64 {
    (frame * audio::HOP) as u64
}

pub fn time(frame: usize) -> Time {
    Time::from_seconds(frame as f64 / FRAMES_PER_SECOND)
}

pub fn frame(time: Time) -> usize {
    (time.seconds() * FRAMES_PER_SECOND).round() as usize
}
