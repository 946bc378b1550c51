//! When a host that waits for work gives back the memory of the model that its engine holds.

use std::time::{Duration, Instant};

use config::Preferences;
use supervisor::Supervisor;
use tokio::sync::Notify;

use crate::fit::{DeviceMemory, expects_gpu};

/// How often an idle host looks whether other programs run short of memory.
const LOOK: Duration = Duration::from_secs(5);
/// Less than one part in so many of the memory is free: other programs run short.
const SHORT: u64 = 16;

/// The time since the last recording, in which the engine may still hold a model.
#[derive(Debug)]
pub struct Idle {
    since: Option<Instant>,
    /// No model is held: none was loaded yet, or it was released.
    released: bool,
}

impl Default for Idle {
    /// Before the first recording.
    fn default() -> Self {
        Self { since: None, released: true }
    }
}

impl Idle {
    /// A recording begins.
    pub fn end(&mut self) {
        *self = Self { since: None, released: false };
    }

    /// Until there may be something to do. Ends the engine, and with it what its model holds, once that is unused
    /// for as long as the user allows, or other programs run short of memory.
    ///
    /// Cancel safe: the time goes on when the future is dropped.
    pub async fn wait(&mut self, supervisor: &Supervisor, preferences: &Preferences, wake: &Notify) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.released || supervisor.engine().is_none() {
            return wake.notified().await;
        }
        let left = preferences.engine.idle_release.map(|allowed| allowed.saturating_sub(since.elapsed()));
        tokio::select! {
            () = wake.notified() => return,
            () = tokio::time::sleep(left.unwrap_or(LOOK).min(LOOK)) => {}
        }
        let over = preferences.engine.idle_release.is_some_and(|allowed| since.elapsed() >= allowed);
        let device = preferences.engine.device;
        // What there is, not what the user allows Steno of it.
        let memory =
            DeviceMemory::of(expects_gpu(device), device, &memory::settings::MemorySettings::default());
        if over || memory.is_ok_and(|memory| is_short(memory.free, memory.total)) {
            supervisor.rest().await;
            self.released = true;
        }
    }
}

/// Whether so many free bytes of all are so few that other programs need what an idle model holds.
fn is_short(free: u64, total: u64) -> bool {
    free < total / SHORT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_below_a_sixteenth() {
        const GIB: u64 = 1 << 30;
        for (free, expected) in [(24 * GIB, false), (3 * GIB / 2, false), (GIB, true), (0, true)] {
            assert_eq!(is_short(free, 24 * GIB), expected, "{free}");
        }
    }
}
