//! A model learns from corrections: what it learns from, training, and whether the result is kept. The command line
//! and the window have it done here.

mod learn;
mod lessons;

pub use learn::{Form, Learning, News, Outcome, Prediction};
pub use lessons::{Collected, CorrectedRecording, CorrectedSegment};
