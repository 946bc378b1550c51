//! Tells speakers apart: [`listen()`] hears who speaks in each window of ten seconds;
//! [`diarize`] compares the voices and says who speaks when in the recording.

mod channels;
mod clusters;
mod encode;
mod known;
mod listen;
mod stage;
mod turns;

pub use channels::{Channel, diarize_channels};
pub use clusters::Bounds;
pub(crate) use encode::encode_voice;
pub use known::{Names, names};
pub use listen::{Heard, Networks, listen};
pub(crate) use stage::{decide, hear};
pub use turns::{Diarization, diarize};
