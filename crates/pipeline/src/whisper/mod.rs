//! How text is found with a Whisper model: everything that assumes windows of
//! 30 s, Whisper's tokens or its prompt is in here.

mod batched;
mod cut;
mod decode;
mod fallback;
mod language;
mod logits_filter;
mod missed;
mod model;
mod prompt;
mod rating;
mod recall;
mod sampling;
mod scores;
mod sequential;
mod source;
mod steps;
mod timing;
mod transcriber;
mod word_times;
mod words;

pub use crate::steps::{Found, Observer, Speech, Step};
pub use decode::{Decoded, WindowOptions, decode, decode_together};
pub use fallback::mix;
pub use language::{detect_language, language_name_or_code};
pub use prompt::words_to_expect;
pub use recall::Heard;
pub use source::{encode_window, encode_windows};
pub use timing::{AlignedWord, Recalled, Said, align};
pub use transcriber::Transcriber;
pub use words::WITHOUT_SPACES;

use crate::steps::FRAMES_PER_SECOND;
