//! Canary (Puvvada and others, arXiv:2406.19674; version 2: Sekoyan and others, arXiv:2509.14128): a
//! [FastConformer encoder](crate::fast_conformer) and a [decoder](crate::decoder) that is told the language that is spoken
//! and the one to write. Names and layout are those of transformers' `CanaryForConditionalGeneration`.
//!
//! Windows are read one after the other, greedily.

mod model;
mod read;

pub use model::Canary;
pub use read::Read;
