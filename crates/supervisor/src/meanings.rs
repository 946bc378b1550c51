//! What texts mean, computed by one engine that is kept warm for the next question.

use std::time::{Duration, Instant};

use library::documents::IndexModel;
use tokio::sync::Mutex;
use wire::{Failure, TextRole};

use crate::embedder::{Embedder, EmbedderSettings, EmbeddingModel};
use crate::engine::EngineOptions;
use crate::indexing::Embeds;

/// An engine for the meaning of texts, of one model at a time; it is started with the first text. Questions
/// and passages take turns, in the order in which they came.
#[derive(Debug, Default)]
pub struct Meanings {
    options: EngineOptions,
    running: Mutex<Option<(EmbeddingModel, Embedder, Instant)>>,
}

impl Meanings {
    /// Engines are started with these options.
    pub fn new(options: EngineOptions) -> Self {
        Self { options, running: Mutex::default() }
    }

    /// Vectors of unit length, in the order of the texts.
    ///
    /// # Errors
    /// As [`Embedder::start`] and [`Embedder::embed`].
    pub async fn embed(
        &self,
        model: &EmbeddingModel,
        settings: &EmbedderSettings,
        role: TextRole,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let mut running = self.running.lock().await;
        if let Some((_, other, _)) = running.take_if(|(loaded, ..)| loaded != model) {
            other.shut_down().await;
        }
        let mut embedder = match running.take() {
            Some((_, embedder, _)) => embedder,
            None => Embedder::start(self.options.clone(), model, settings.clone()).await?,
        };
        // What fails is not kept, nor what is broken off.
        let vectors = embedder.embed(role, texts).await?;
        *running = Some((model.clone(), embedder, Instant::now()));
        Ok(vectors)
    }

    /// Ends the engine, so that its memory is free; the next text starts another.
    pub async fn rest(&self) {
        if let Some((_, embedder, _)) = self.running.lock().await.take() {
            embedder.shut_down().await;
        }
    }

    /// As [`Meanings::rest`], if nothing was asked for so long.
    pub async fn rest_after(&self, unused: Duration) {
        // Where it is taken something is being asked.
        let Ok(mut running) = self.running.try_lock() else { return };
        if let Some((_, embedder, _)) = running.take_if(|(_, _, used)| used.elapsed() >= unused) {
            embedder.shut_down().await;
        }
    }
}

/// Passages for one model.
#[derive(Debug)]
pub struct PassagesOf<'a> {
    /// What computes.
    pub meanings: &'a Meanings,
    /// The model.
    pub model: &'a EmbeddingModel,
    /// Device and limits.
    pub settings: &'a EmbedderSettings,
}

impl Embeds for PassagesOf<'_> {
    fn at_once(&self) -> usize {
        self.settings.memory.embedding_profile.batch() as usize
    }

    async fn embed_passages(&mut self, passages: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
        self.meanings.embed(self.model, self.settings, TextRole::Passage, passages).await
    }
}

impl From<&EmbeddingModel> for IndexModel {
    fn from(model: &EmbeddingModel) -> Self {
        Self { name: model.name.clone(), version: model.version.clone(), dimensions: model.dimensions }
    }
}
