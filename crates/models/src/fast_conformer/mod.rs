//! The FastConformer encoder (Rekesh and others, arXiv:2305.05084), Parakeet's and Canary's. Names and layout are those of
//! transformers' `ParakeetEncoder`.

mod attention;
mod convolution;
mod encoder;
mod subsampling;

pub use encoder::Encoder;
