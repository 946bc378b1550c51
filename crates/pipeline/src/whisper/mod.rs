//! How text is found with a Whisper model: everything that assumes windows of
//! 30 s, Whisper's tokens or its prompt is in here.

mod decode;
mod fallback;
mod language;
mod loops;
mod rules;
mod sampling;
mod scores;
mod sequential;
mod timing;
mod word_times;
mod words;

pub use decode::{Decoded, WindowOptions, decode};
pub use fallback::mix;
pub use language::{detect_language, language_name_or_code};
pub use sequential::{Found, Sequential, Speech, encode_window};
pub use timing::{AlignedWord, align};
