//! Networks that tell speakers apart. [`PyanNet`] finds who of up to three speakers
//! is heard in ten seconds; [`VoiceEncoder`] and [`WeSpeaker`] turn a voice into a
//! vector; [`Plda`] transforms the latter's vectors so that voices can be compared.
//! [`Nemotron`] hears up to eight speakers and tells them apart by itself.
//! A small [`PyanNet`] and the [`VoiceEncoder`] are in the program itself, so that
//! they work without a download. All compute in 32 bits.

mod image;
pub(crate) mod lstm;
mod nemotron;
mod plda;
mod pyannet;
mod tensors;
mod voice_encoder;
mod wespeaker;

pub use nemotron::Nemotron;
pub use plda::Plda;
pub use pyannet::PyanNet;
pub use voice_encoder::VoiceEncoder;
pub use wespeaker::{VoiceFrames, WeSpeaker};
