//! Training of low-rank adapters (Hu and others, 2021, arXiv:2106.09685): beside each matrix W
//! of attention and feed-forward layers of the decoder, or of all, two small ones, A and B, are learnt, and the layer
//! computes x (W + alpha/rank B A)'. The weights stay as they are.
//!
//! The networks of [`whisper`](crate::whisper) have no gradients: their products are fused and
//! write in place. [`Trainee`] is the same network for training, in 32 bits.

mod adapters;
mod optimiser;
mod trainee;
mod with_gradient;

pub(crate) use adapters::Merge;
pub use adapters::{Adapters, Gradients};
pub use optimiser::{AdamW, cosine};
pub use trainee::{Aim, Example, Keep, Trainee};
pub use with_gradient::Ticker;
