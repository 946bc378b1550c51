//! How text is found with a Whisper model: everything that assumes windows of
//! 30 s, Whisper's tokens or its prompt is in here.

mod batched;
mod cut;
mod decode;
mod fallback;
mod language;
mod logits_filter;
mod loops;
mod missed;
mod packing;
mod prompt;
mod rating;
mod sampling;
mod scores;
mod sequential;
mod source;
mod steps;
mod timing;
mod transcriber;
mod word_times;
mod words;

pub use decode::{Decoded, WindowOptions, decode, decode_together};
pub use fallback::mix;
pub use language::{detect_language, language_name_or_code};
pub use source::{encode_window, encode_windows};
pub(crate) use steps::frame;
pub use steps::{Found, Observer, Speech, Step};
pub use timing::{AlignedWord, align};
pub use transcriber::Transcriber;

/// Frames of log-mel per second.
const FRAMES_PER_SECOND: f64 = 100.0;
