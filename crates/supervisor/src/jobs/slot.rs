use std::sync::Arc;

use memory::death::Death;
use memory::ladder::LadderState;
use wire::{Failure, Job};

use super::Inner;
use super::rungs::is_comparable;
use crate::Engine;

/// Tries at starting an engine that is killed before it can say its name.
const STARTS: u32 = 3;

/// The one engine, for the job whose turn it is.
#[derive(Debug, Default)]
pub struct EngineSlot {
    engine: Option<Arc<Engine>>,
    /// Files that this engine worked on.
    files: u32,
    /// It said itself that it should be replaced.
    is_worn: bool,
    /// Where the latest job that went down its ladder ended up on it.
    learned: Option<(Job, LadderState)>,
}

impl EngineSlot {
    /// The engine kept warm, or a new one where there is none, it ended, or
    /// its time has come.
    pub async fn engine(&mut self, inner: &Inner) -> Result<Arc<Engine>, Failure> {
        let limit = inner.renew_after;
        if self.is_worn || (limit > 0 && self.files >= limit) {
            self.leave(inner).await;
        }
        if let Some(engine) = self.engine.as_ref().filter(|engine| engine.is_running()) {
            return Ok(Arc::clone(engine));
        }
        let mut tries = 1;
        let engine = loop {
            match Engine::try_start(&inner.engine).await {
                Ok(engine) => break Arc::new(engine),
                Err((_, Some(Death::OutOfMemory(_) | Death::Killed))) if tries < STARTS => tries += 1,
                Err((failure, _)) => return Err(failure),
            }
        };
        *inner.current() = Some(Arc::clone(&engine));
        *self = Self { engine: Some(Arc::clone(&engine)), learned: self.learned.take(), ..Self::default() };
        Ok(engine)
    }

    /// Ends the engine and waits until it is gone.
    pub async fn leave(&mut self, inner: &Inner) {
        *inner.current() = None;
        if let Some(engine) = self.engine.take() {
            engine.shutdown().await;
        }
        *self = Self { learned: self.learned.take(), ..Self::default() };
    }

    pub fn worked(&mut self, renewal: Option<memory::Renewal>) {
        self.files += 1;
        self.is_worn |= renewal.is_some();
    }

    pub fn learn(&mut self, job: Job, state: Option<LadderState>) {
        if let Some(state) = state {
            self.learned = Some((job, state));
        }
    }

    pub fn learned_for(&self, job: &Job) -> Option<LadderState> {
        let (other, state) = self.learned.as_ref()?;
        is_comparable(other, job).then(|| state.clone())
    }
}
