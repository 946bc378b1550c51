//! Parakeet: a [FastConformer encoder](crate::fast_conformer) with a CTC head
//! (Graves and others, 2006) or a token-and-duration transducer (Xu and others, arXiv:2304.06795).
//! Names and layout are those of transformers' `ParakeetForCTC` and `ParakeetForTDT`.
//!
//! Windows are encoded one after the other, each alone, and read together, greedily or with beams.

mod beams;
mod model;
mod tdt;

pub use model::{Ctc, Head, Parakeet};
pub use tdt::{PredictorState, Tdt};
