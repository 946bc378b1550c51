//! Parakeet: a FastConformer encoder (Rekesh and others, arXiv:2305.05084) with a CTC head
//! (Graves and others, 2006) or a token-and-duration transducer (Xu and others, arXiv:2304.06795).
//! Names and layout are those of transformers' `ParakeetForCTC` and `ParakeetForTDT`.
//!
//! Windows are encoded one after the other, each alone, and read together, greedily.

mod attention;
mod convolution;
mod encoder;
mod model;
mod subsampling;
mod tdt;

pub use encoder::Encoder;
pub use model::{Ctc, Head, Parakeet, Token, text_of};
pub use tdt::{PredictorState, Tdt};
