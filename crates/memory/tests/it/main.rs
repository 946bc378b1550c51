//! Memory as a whole: a job against a simulated card, the NVIDIA driver's figures
//! from a mock library, and the page that explains the notices. The host's probe
//! has a test executable of its own (`tests/host.rs`), since it measures the
//! process that it runs in.

mod nvml;
mod pipeline;
mod troubleshooting;
