//! The engine for the emulated card of scripts/cuda/mock. An example, so that it lies where no host looks for the
//! CUDA engine, and has the features of the tests, which alone use it.
include!("../src/main.rs");
