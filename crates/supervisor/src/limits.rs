use std::time::Duration;

/// How patient a host is with its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From start to greeting. Loading the libraries of a GPU from a cold disk
    /// takes seconds.
    pub greeting: Duration,
    /// Between two pings. No other message is sent to an idle engine.
    pub ping_interval: Duration,
    /// For the answer to a ping, which the engine gives without asking the
    /// thread that computes.
    pub pong: Duration,
    /// For the work counter of a running job to move. It counts layers, tokens
    /// and blocks of audio: the slowest layer of the largest model takes
    /// seconds on a CPU.
    pub standstill: Duration,
    /// For a cancelled job to end, after which the engine is ended instead.
    pub cancel: Duration,
    /// Of a job's text, with the times of its words, in bytes: an engine that sends more is
    /// out of its mind.
    pub text: u64,
    /// For an orderly end.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            greeting: Duration::from_secs(30),
            ping_interval: Duration::from_secs(1),
            pong: Duration::from_secs(10),
            standstill: Duration::from_secs(60),
            cancel: Duration::from_secs(1),
            // A day of speech has about 20 MB.
            text: 128 << 20,
            shutdown: Duration::from_secs(2),
        }
    }
}
