//! The search of the history: by words at once, by meaning where a model for it is installed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use config::preferences::Priority;
use library::Documents;
use library::documents::{
    CorrectedWord, Filter, FoundPassage, IndexModel, Meaning, PassageId, Question, SearchHits,
};
use supervisor::chapters::{self, ChaptersError};
use supervisor::indexing::{self, IndexProgress};
use supervisor::meanings::{Meanings, PassagesOf};
use supervisor::{EmbedderSettings, EmbeddingModel, EngineOptions};
use tokio::sync::{Notify, watch};
use transcript::Transcript;
use transcript::chapters::Chapter;
use wire::{ErrorCode, Failure, TextRole};

use super::activity::is_busy;
use super::{Inner, Session, Shared};

/// Passages of one search: more than are read.
const MOST: usize = 50;

/// Words that are offered to be expected.
const MOST_SUGGESTED: usize = 30;

/// What a search by words and meaning found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundPassages {
    /// The best first.
    pub passages: Vec<FoundPassage>,
    /// Meanings were compared, and not words alone.
    pub by_meaning: bool,
}

/// How far the search by meaning is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexState {
    /// The name of the model; `None`: none is installed.
    pub model: Option<String>,
    /// Passages that have a vector of that model, and all of them.
    pub progress: IndexProgress,
    /// Grows whenever vectors were computed: a search may find something else then.
    pub revision: u64,
    /// Vectors are being computed, or are about to be.
    pub works: bool,
    /// Why they can't be computed.
    pub failure: Option<Failure>,
}

impl Session {
    /// Segments of the history that contain these words, in any part of a word. Waits for the disk, as do the
    /// other methods here.
    ///
    /// # Errors
    /// Where there is no history, or it can't be read.
    pub fn search_documents(&self, words: &str, filter: &Filter) -> Result<SearchHits, Failure> {
        self.documents()?.search(words, filter).map_err(|error| error.failure())
    }

    /// The passages that answer a question best. `by_meaning`: their meaning is compared too, where a model
    /// for that is installed, which takes longer.
    ///
    /// # Errors
    /// Where there is no history, or it can't be read. A model that fails is none: the state of the index says so.
    pub fn find_passages(
        &self,
        text: &str,
        filter: Filter,
        by_meaning: bool,
    ) -> Result<FoundPassages, Failure> {
        let documents = self.documents()?;
        let meaning = if by_meaning { self.meaning_of(text) } else { None };
        let by_meaning = meaning.is_some();
        let question = Question { text: text.into(), meaning, filter, most: MOST };
        let passages = documents.find(&question).map_err(|error| error.failure())?;
        Ok(FoundPassages { passages, by_meaning })
    }

    /// The passages whose meaning is most like that of another one.
    ///
    /// # Errors
    /// Where there is no history, or it can't be read.
    pub fn similar_passages(&self, passage: PassageId, filter: &Filter) -> Result<FoundPassages, Failure> {
        let documents = self.documents()?;
        let index = documents.index().map_err(|error| error.failure())?;
        let Some(index) = index else { return Ok(FoundPassages::default()) };
        let passages = documents.similar(index.id, passage, filter, MOST).map_err(|error| error.failure())?;
        Ok(FoundPassages { passages, by_meaning: true })
    }

    /// The speakers and languages of the history.
    ///
    /// # Errors
    /// Where there is no history, or it can't be read.
    pub fn search_choices(&self) -> Result<(Vec<String>, Vec<String>), Failure> {
        self.documents()?.speakers_and_languages().map_err(|error| error.failure())
    }

    /// Words that the user corrects again and again, the most frequent first; none without a history.
    ///
    /// # Errors
    /// Where the history can't be read.
    pub fn corrected_words(&self) -> Result<Vec<CorrectedWord>, Failure> {
        let Some(documents) = self.inner.documents.get() else { return Ok(Vec::new()) };
        documents.corrected_words(MOST_SUGGESTED).map_err(|error| error.failure())
    }

    /// Whether a word is left out of [`Self::corrected_words`].
    ///
    /// # Errors
    /// Where there is no history, or it can't be written.
    pub fn ignore_word(&self, word: &str, is_ignored: bool) -> Result<(), Failure> {
        self.documents()?.ignore_word(word, is_ignored).map(drop).map_err(|error| error.failure())
    }

    /// How far the search by meaning is, now and whenever that changes.
    pub fn follow_index(&self) -> watch::Receiver<IndexState> {
        let mut state = self.inner.searching.state.subscribe();
        state.mark_changed();
        state
    }
}

/// Finds the installed models that turn texts into vectors, the best first; true: for texts in English alone.
/// Reads the disk.
type FindModels = Box<dyn Fn(bool) -> Vec<EmbeddingModel> + Send + Sync>;

/// What searches by meaning need.
pub(super) struct Searching {
    meanings: Meanings,
    find_models: OnceLock<FindModels>,
    /// Models were installed or removed.
    models_changed: Notify,
    pub(super) state: watch::Sender<IndexState>,
}

impl std::fmt::Debug for Searching {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Searching").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Searching {
    pub(super) fn new(engine: &EngineOptions) -> Self {
        // Behind every other work of this machine.
        let options = EngineOptions { priority: Priority::Low, ..engine.clone() };
        Self {
            meanings: Meanings::new(options),
            find_models: OnceLock::new(),
            models_changed: Notify::new(),
            state: watch::Sender::new(IndexState::default()),
        }
    }

    fn models(&self, documents: &Documents) -> Vec<EmbeddingModel> {
        let Some(find) = self.find_models.get() else { return Vec::new() };
        let languages =
            documents.speakers_and_languages().map(|(_, languages)| languages).unwrap_or_default();
        find(languages.iter().all(|language| language == "en"))
    }

    /// Tells what changed, once.
    fn tell(&self, change: impl FnOnce(&mut IndexState)) {
        self.state.send_if_modified(|state| {
            let before = state.clone();
            change(state);
            *state != before
        });
    }
}

impl Session {
    /// Once, after [`Session::keep_documents`]: meanings are compared with these models from now on, and the
    /// history's index is kept up to date in the background.
    pub fn compare_meanings(
        &self,
        find_models: impl Fn(bool) -> Vec<EmbeddingModel> + Send + Sync + 'static,
    ) {
        if self.inner.searching.find_models.set(Box::new(find_models)).is_ok() {
            let inner = Arc::clone(&self.inner);
            self.inner.runtime.spawn(keep_up_to_date(inner));
        }
    }

    /// Models were installed or removed: one that compares meanings may be among them.
    pub(super) fn look_for_embedding_models(&self) {
        self.inner.searching.models_changed.notify_one();
    }

    /// What a question means to the index's model; `None` where there is no such index, or its model is not
    /// installed or fails.
    fn meaning_of(&self, text: &str) -> Option<Meaning> {
        if text.trim().is_empty() {
            return None;
        }
        let documents = self.documents().ok()?;
        let index = documents.index().ok()??;
        let searching = &self.inner.searching;
        let model =
            searching.models(documents).into_iter().find(|model| IndexModel::from(model) == index.model)?;
        let settings = self.inner.embedder_settings();
        let texts = vec![text.to_owned()];
        let embedded = searching.meanings.embed(&model, &settings, TextRole::Query, texts);
        match self.inner.runtime.block_on(embedded) {
            Ok(vectors) => vectors.into_iter().next().map(|vector| Meaning { index: index.id, vector }),
            Err(failure) => {
                searching.tell(|state| state.failure = Some(failure));
                None
            }
        }
    }
}

impl Session {
    /// The chapters of a transcript. Waits for the model, until the session is closed.
    pub(super) fn chapters_of(&self, transcript: &Transcript) -> Result<Vec<Chapter>, Failure> {
        let searching = &self.inner.searching;
        let others = transcript.segments.iter().filter_map(|segment| segment.language.as_deref());
        let english_only = [transcript.language.as_str()].into_iter().chain(others).all(|one| one == "en");
        let model = searching.find_models.get().and_then(|find| find(english_only).into_iter().next());
        let settings = self.inner.embedder_settings();
        let mut version = self.inner.version.subscribe();
        self.inner.runtime.block_on(async {
            let closed = async {
                while !self.lock().closed {
                    if version.changed().await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                found = chapters::find(transcript, &searching.meanings, model.as_ref(), &settings, |_, _| {}) => {
                    found.map_err(ChaptersError::failure)
                }
                () = closed => Err(Failure::new(ErrorCode::Cancelled, "Steno was closed.")),
            }
        })
    }
}

impl Inner {
    fn embedder_settings(&self) -> EmbedderSettings {
        let preferences = self.lock().preferences.clone();
        EmbedderSettings {
            device: preferences.engine.device,
            threads: preferences.engine.threads,
            memory: preferences.memory,
        }
    }
}

/// After a change, until the index is looked at: edits come in bursts.
const PAUSE: Duration = Duration::from_secs(2);
/// So long without a question or a passage the engine is kept.
const KEPT: Duration = Duration::from_secs(120);

/// Between two looks at whether it is still used.
const LOOK: Duration = Duration::from_secs(30);

/// Computes what is missing in the index while no recording is transcribed, until the session is closed.
async fn keep_up_to_date(inner: Arc<Inner>) {
    let mut version = inner.version.subscribe();
    let (may_work, mut turn) = watch::channel(!inner.lock().is_busy());
    tokio::spawn(take_turns(Arc::clone(&inner), may_work));
    loop {
        // Where the other side is gone the session is closed.
        if turn.wait_for(|may| *may).await.is_err() {
            break;
        }
        version.mark_unchanged();
        bring_up_to_date(&inner, &mut turn).await;
        tokio::select! {
            changed = version.changed() => {
                if changed.is_err() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            () = inner.searching.models_changed.notified() => {}
        }
        if inner.lock().closed {
            break;
        }
    }
}

/// Says when the index may be worked at, and ends its engine when it may not or is idle.
async fn take_turns(inner: Arc<Inner>, may_work: watch::Sender<bool>) {
    let mut version = inner.version.subscribe();
    loop {
        let (busy, closed) = {
            let shared = inner.lock();
            (shared.is_busy(), shared.closed)
        };
        let began = may_work.send_replace(!busy && !closed) && busy;
        if closed || began {
            inner.searching.meanings.rest().await;
        }
        if closed {
            return;
        }
        tokio::select! {
            changed = version.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => inner.searching.meanings.rest_after(KEPT).await,
        }
    }
}

async fn bring_up_to_date(inner: &Arc<Inner>, turn: &mut watch::Receiver<bool>) {
    let searching = &inner.searching;
    let Some(documents) = inner.documents.get() else { return };
    let (looking, history) = (Arc::clone(inner), documents.clone());
    let models = tokio::task::spawn_blocking(move || looking.searching.models(&history)).await;
    let models = models.unwrap_or_default();
    let Some(model) = models.into_iter().next() else {
        return searching.tell(|state| *state = IndexState::default());
    };
    let index_model = IndexModel::from(&model);
    let index = match indexing::look(documents, &index_model).await {
        Ok(index) => index,
        Err(failure) => return searching.tell(|state| state.failure = Some(failure)),
    };
    let progress =
        IndexProgress { done: index.passages - index.missing, total: index.passages, per_second: 0.0 };
    searching.tell(|state| {
        let failure = state.failure.take().filter(|_| state.model.as_ref() == Some(&model.name));
        let (model, works) = (Some(model.name.clone()), index.missing > 0);
        *state = IndexState { model, progress, works, failure, ..*state };
    });
    let settings = inner.embedder_settings();
    let mut passages = PassagesOf { meanings: &searching.meanings, model: &model, settings: &settings };
    let done = indexing::bring_up_to_date(documents, &index_model, &mut passages, turn, |progress| {
        searching.tell(|state| (state.progress, state.failure) = (progress, None));
    });
    let done = done.await;
    searching.tell(|state| {
        state.revision += u64::from(index.missing > 0);
        state.works = false;
        // It is tried again after the next change of the history.
        state.failure = done.err();
    });
}

impl Shared {
    fn is_busy(&self) -> bool {
        is_busy(&self.queue, self.paused)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use transcript::{SCHEMA_VERSION, Segment, Time, Transcript};
    use wire::ErrorCode;

    use super::*;
    use crate::session::{JobSettings, JobState};

    fn talk(texts: &[&str]) -> Transcript {
        let json = format!(
            r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
            "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1, "format": "wav"}},
            "model": {{"name": "small", "precision": "f32", "demonstration": false}},
            "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
        );
        let mut talk = Transcript::from_json(json.as_bytes()).unwrap();
        for (number, text) in texts.iter().enumerate() {
            let start = Time::from_millis(1000 * number as u32);
            let (end, speaker) = (start + Time::from_millis(900), Some(number.to_string()));
            talk.segments.push(Segment { start, end, speaker, text: (*text).into(), ..Segment::default() });
        }
        transcript::edit::assign_ids(&mut talk);
        talk
    }

    /// A session with a history of two passages, whose engine can't be started.
    fn session(folder: &Path) -> Session {
        let options = EngineOptions { program: Some(folder.join("no engine")), ..EngineOptions::default() };
        let session = Session::new(options, JobSettings::default());
        let (documents, _) = Documents::open(&folder.join("history.sqlite")).unwrap();
        documents.add(Path::new("/r/a.wav"), None, &talk(&["The boat is sold.", "It rains."])).unwrap();
        session.keep_documents(documents);
        session
    }

    fn model(folder: &Path) -> EmbeddingModel {
        EmbeddingModel { folder: folder.into(), name: "m".into(), version: "1".into(), dimensions: 2 }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn words_are_found_and_the_reason_is_told_where_meanings_can_not_be_compared() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let mut state = session.follow_index();
        assert_eq!(*state.borrow_and_update(), IndexState::default());
        let asked = folder.path().to_owned();
        session.compare_meanings(move |english_only| {
            assert!(english_only);
            vec![model(&asked)]
        });
        let failed = state.wait_for(|state| state.failure.is_some()).await.unwrap().clone();
        assert_eq!(failed.failure.map(|failure| failure.code), Some(ErrorCode::EngineNotFound));
        assert_eq!((failed.model.as_deref(), failed.progress.total, failed.works), (Some("m"), 2, false));
        let asking = session.clone();
        let find = move || asking.find_passages("boat", Filter::default(), true);
        let found = tokio::task::spawn_blocking(find).await.unwrap().unwrap();
        assert_eq!((found.passages.len(), found.by_meaning), (1, false));
        assert_eq!(session.search_choices().unwrap(), (vec!["0".into(), "1".into()], vec!["en".into()]));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_chapters_lack_is_told_with_a_code() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let documents = session.documents().unwrap();
        let long = documents.add(Path::new("/r/b.wav"), None, &talk(&["We sail the boat."; 300])).unwrap();
        let short = documents.list().unwrap().into_iter().find(|one| one.id != long).unwrap().id;
        let find = |document| {
            let session = session.clone();
            tokio::task::spawn_blocking(move || {
                let job = session.open_document(document).unwrap();
                session.review(job);
                session.find_chapters(job).map(|_| ()).map_err(|failure| failure.code)
            })
        };
        assert_eq!(find(short).await.unwrap(), Err(ErrorCode::RecordingTooShort));
        assert_eq!(find(long).await.unwrap(), Err(ErrorCode::NoEmbeddingModel));
        let asked = folder.path().to_owned();
        session.compare_meanings(move |_| vec![model(&asked)]);
        assert_eq!(find(long).await.unwrap(), Err(ErrorCode::EngineNotFound));
    }

    /// The engine would be started, and fail, if the index were worked at.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_index_waits_for_recordings() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        session.pause(true);
        let file = folder.path().join("talk.wav");
        std::fs::write(&file, "sound").unwrap();
        let id = session.add([file])[0];
        let set = |state| session.inner.change(|shared| shared.queue.end(id, state, None, None));
        session.inner.change(|shared| shared.queue.start_next());
        assert!(session.lock().is_busy());
        let (asked, mut state) = (folder.path().to_owned(), session.follow_index());
        session.compare_meanings(move |_| vec![model(&asked)]);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(*state.borrow_and_update(), IndexState::default());
        set(JobState::Cancelled);
        state.wait_for(|state| state.failure.is_some()).await.unwrap();
    }

    /// A model that is installed while the window is open is used, and one that is removed is not.
    #[tokio::test(flavor = "multi_thread")]
    async fn models_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let here = folder.path().join("model");
        let mut state = session.follow_index();
        let looking = here.clone();
        session.compare_meanings(move |_| if looking.exists() { vec![model(&looking)] } else { Vec::new() });
        std::fs::create_dir(&here).unwrap();
        session.look_for_embedding_models();
        state.wait_for(|state| state.model.is_some()).await.unwrap();
        std::fs::remove_dir(&here).unwrap();
        session.look_for_embedding_models();
        state.wait_for(|state| state.model.is_none()).await.unwrap();
    }
}
