//! Gives the passages of the history their vectors, beside other work and behind it.

use std::time::Instant;

use library::Documents;
use library::documents::{Index, IndexId, IndexModel, PassageId};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use wire::{ErrorCode, Failure};

/// Computes what passages mean.
pub trait Embeds: Send {
    /// Passages that are computed in one go and stored in one transaction: as much is lost by a kill, and so
    /// long other work or a question waits.
    fn at_once(&self) -> usize;

    /// Vectors of unit length, in the order of the passages.
    fn embed_passages(
        &mut self,
        passages: Vec<String>,
    ) -> impl Future<Output = Result<Vec<Vec<f32>>, Failure>> + Send;
}

/// How far an index is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IndexProgress {
    /// Passages that have a vector.
    pub done: u64,
    /// All passages.
    pub total: u64,
    /// Passages per second of the work so far; 0 before the first.
    pub per_second: f64,
}

/// The index of a model, with all changed transcripts cut into passages: what is missing in it is to be
/// computed.
///
/// # Errors
/// If the history can't be used.
pub async fn look(documents: &Documents, model: &IndexModel) -> Result<Index, Failure> {
    let (documents, model) = (documents.clone(), model.clone());
    on_disk(move || {
        while documents.cut_passages().map_err(|error| error.failure())? {}
        documents.index_of(&model).map_err(|error| error.failure())
    })
    .await
}

/// Computes what is missing in the index of a model, and declares it complete: then it answers questions in
/// place of another model's, which is deleted. Works only while `may_work` is true, and can be dropped or
/// killed at any time: what is stored stays. `tell` hears of every transaction.
///
/// # Errors
/// If the history can't be used, and those of `embedder`.
pub async fn bring_up_to_date(
    documents: &Documents,
    model: &IndexModel,
    embedder: &mut impl Embeds,
    may_work: &mut watch::Receiver<bool>,
    mut tell: impl FnMut(IndexProgress) + Send,
) -> Result<(), Failure> {
    loop {
        let index = look(documents, model).await?;
        let (mut done, mut computed) = (index.passages - index.missing, 0);
        let begun = Instant::now();
        let mut last = PassageId(0);
        tell(IndexProgress { done, total: index.passages, per_second: 0.0 });
        loop {
            // Where the other side is gone, nothing is left to wait for.
            let _ = may_work.wait_for(|may| *may).await;
            let Some(passages) = next(documents, index.id, last, embedder.at_once()).await? else { break };
            let (ids, texts): (Vec<PassageId>, Vec<String>) = passages.into_iter().unzip();
            last = ids.last().copied().unwrap_or(last);
            let vectors = embedder.embed_passages(texts).await?;
            check(&vectors, ids.len(), model)?;
            (done, computed) = (done + ids.len() as u64, computed + ids.len());
            store(documents, index.id, ids.into_iter().zip(vectors).collect()).await?;
            let per_second = computed as f64 / begun.elapsed().as_secs_f64();
            tell(IndexProgress { done, total: index.passages.max(done), per_second });
        }
        let documents = documents.clone();
        // Transcripts that came or were edited meanwhile take another round.
        if on_disk(move || documents.finish_index(index.id).map_err(|error| error.failure())).await? {
            return Ok(());
        }
    }
}

type Passages = Vec<(PassageId, String)>;

async fn next(
    documents: &Documents,
    index: IndexId,
    last: PassageId,
    most: usize,
) -> Result<Option<Passages>, Failure> {
    let documents = documents.clone();
    let found = on_disk(move || {
        documents.passages_without_vector(index, last, most).map_err(|error| error.failure())
    });
    Ok(Some(found.await?).filter(|passages| !passages.is_empty()))
}

async fn store(
    documents: &Documents,
    index: IndexId,
    vectors: Vec<(PassageId, Vec<f32>)>,
) -> Result<(), Failure> {
    let documents = documents.clone();
    on_disk(move || documents.put_vectors(index, &vectors).map_err(|error| error.failure())).await
}

/// Vectors that the history would leave out would be missing for ever.
fn check(vectors: &[Vec<f32>], passages: usize, model: &IndexModel) -> Result<(), Failure> {
    let is_right =
        |vector: &Vec<f32>| vector.len() == model.dimensions && vector.iter().all(|x| x.is_finite());
    if vectors.len() == passages && vectors.iter().all(is_right) {
        return Ok(());
    }
    let text = format!("The model {} gave vectors that can't be compared.", model.name);
    Err(Failure::new(ErrorCode::ModelInvalid, text).remedy("Verify it with `steno models verify`."))
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Failure::new(ErrorCode::Internal, format!("The work on the history broke off: {error}.")))
    })
}
