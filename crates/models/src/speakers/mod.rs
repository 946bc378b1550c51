//! Networks that tell speakers apart: [`PyanNet`] finds who of up to three
//! speakers is heard in ten seconds, [`VoiceEncoder`] turns a voice into a
//! vector. Both are small and in the program itself, so that they work without
//! a download. Both compute in 32 bits.

mod lstm;
mod pyannet;
mod tensors;
mod voice_encoder;

pub use pyannet::PyanNet;
pub use voice_encoder::VoiceEncoder;
