//! Tells speakers apart: [`listen()`] hears who speaks in each window of ten seconds;
//! [`diarize`] compares the voices and says who speaks when in the recording. With an
//! installed model [`community`] or [`nemotron`] does both; [`SpeakerNetworks`] is any of them.

mod channels;
mod clusters;
pub mod community;
mod encode;
mod known;
mod listen;
pub mod nemotron;
mod networks;
mod people;
mod stage;
mod turns;

pub use channels::{Channel, diarize_channels};
pub use clusters::Bounds;
pub(crate) use encode::encode_voice;
pub use known::{Names, names};
pub use listen::{Heard, Networks, listen};
pub use networks::{AnyHeard, SpeakerNetworks};
pub(crate) use stage::{decide, hear};
pub use turns::{Diarization, diarize};
