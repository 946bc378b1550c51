//! A model learns from the user's corrections, one model at a time, beside the recordings, which go first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use advisor::ModelRef;
use advisor::adapters::{Adapters, ListedAdapter};
use config::Priority;
use learning::{Collected, CorrectedRecording, Form, Learning, News, Outcome, Prediction};
use library::DocumentId;
use supervisor::{AdaptationNews, EngineOptions};
use tokio::task::JoinHandle;
use wire::{AdaptProgress, AdaptSettings, ErrorCode, Event, Failure};

use super::Session;

/// What is being learnt, or was last.
#[derive(Debug, Clone)]
pub struct LearningRun {
    /// The model's name.
    pub model: String,
    /// How far it is.
    pub state: LearningState,
    /// It waits: recordings go first.
    pub waits: bool,
    /// The training, once it began.
    pub progress: Option<AdaptProgress>,
    /// Steps from 1 with their losses, since it began or went on.
    pub losses: Vec<(u32, f32)>,
    /// The loss of what was held back, with the steps that were done: before the first epoch and after each.
    pub held_back: Vec<(u32, f32)>,
}

/// How far a model's learning is.
#[derive(Debug, Clone, PartialEq)]
pub enum LearningState {
    /// It is trained.
    Training,
    /// A form of what was learnt is compared with the model as it is.
    Comparing(Form),
    /// It is done; kept or not.
    Finished(Box<Outcome>),
    /// The user ended it; the same goes on from there.
    Stopped,
    /// It failed.
    Failed(Failure),
}

impl LearningState {
    fn is_over(&self) -> bool {
        matches!(self, Self::Finished(_) | Self::Stopped | Self::Failed(_))
    }
}

/// The learning of a session.
#[derive(Debug)]
pub(super) struct Learner {
    engine: EngineOptions,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    run: Option<LearningRun>,
    task: Option<JoinHandle<()>>,
}

impl Learner {
    pub(super) fn new(engine: &EngineOptions) -> Self {
        let engine = EngineOptions { priority: Priority::Low, ..engine.clone() };
        Self { engine, work: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// The transcripts that can be learnt from; none without a history. Waits for the disk.
    ///
    /// # Errors
    /// Where the history can't be read.
    pub fn corrected_recordings(&self) -> Result<Vec<CorrectedRecording>, Failure> {
        CorrectedRecording::all(self.documents()?)
    }

    /// What having a model learn is predicted to take. Waits for the card's driver.
    ///
    /// # Errors
    /// For a model that can't learn.
    pub fn predicted_to_learn(&self, model: &ModelRef) -> Result<Prediction, Failure> {
        Learning::predicted(model, &AdaptSettings::default(), &self.preferences())
    }

    /// What is being learnt, or was last.
    pub fn learning(&self) -> Option<LearningRun> {
        self.inner.learning.lock().run.clone()
    }

    /// Has a model learn from the corrections in these transcripts. Those without any are compared on. Waits for the disk.
    ///
    /// # Errors
    /// Where something is being learnt already, there is nothing to learn from, or the history can't be read.
    pub fn learn(&self, model: ModelRef, recordings: &[DocumentId]) -> Result<(), Failure> {
        self.predicted_to_learn(&model)?;
        let store = adapters()?;
        let all: Vec<DocumentId> = self.corrected_recordings()?.iter().map(|it| it.document).collect();
        let mut collected = Collected::default();
        let wanted = |document| recordings.contains(&document) || !all.contains(&document);
        collected.history(self.documents()?, &wanted)?;
        collected.hold_back(AdaptSettings::default().seed);
        let learning = Learning {
            name: None,
            model,
            collected,
            settings: AdaptSettings::default(),
            preferences: self.preferences(),
            engine: self.inner.learning.engine.clone(),
            store,
        };
        let mut work = self.inner.learning.lock();
        if work.run.as_ref().is_some_and(|run| !run.state.is_over()) {
            let text = "A model is learning already.";
            return Err(
                Failure::new(ErrorCode::BadSettings, text).remedy("Wait until it is done, or stop it.")
            );
        }
        work.run = Some(LearningRun {
            model: learning.model.name.clone(),
            state: LearningState::Training,
            waits: false,
            progress: None,
            losses: Vec::new(),
            held_back: Vec::new(),
        });
        let session = self.clone();
        work.task = Some(self.inner.runtime.spawn(async move {
            let learnt = learning.run(|news| session.note_learning(news)).await;
            session.change_learning(|run| {
                run.state = match learnt {
                    Ok(learnt) => LearningState::Finished(Box::new(learnt)),
                    Err(failure) => LearningState::Failed(failure),
                };
            });
            session.judge_later();
        }));
        Ok(())
    }

    /// Ends what is being learnt; the same goes on from there.
    pub fn stop_learning(&self) {
        let mut work = self.inner.learning.lock();
        if let Some(task) = work.task.take() {
            task.abort();
        }
        if let Some(run) = work.run.as_mut().filter(|run| !run.state.is_over()) {
            run.state = LearningState::Stopped;
        }
    }

    /// What models have learnt. Waits for the disk.
    ///
    /// # Errors
    /// Where there is no home folder.
    pub fn adapters(&self) -> Result<Vec<ListedAdapter>, Failure> {
        Ok(adapters()?.list())
    }

    /// Uses a model with what it has learnt, or as it is.
    ///
    /// # Errors
    /// Where there is no such adapter, it is damaged, or that can't be written down.
    pub fn switch_adapter(&self, name: &str, is_on: bool) -> Result<(), Failure> {
        match is_on {
            true => adapters()?.switch_on(name).map(drop)?,
            false => adapters()?.switch_off(name)?,
        }
        self.adapters_changed();
        Ok(())
    }

    /// Removes what a model has learnt for good.
    ///
    /// # Errors
    /// Where there is no such adapter, or it can't be removed.
    pub fn remove_adapter(&self, name: &str) -> Result<(), Failure> {
        adapters()?.remove(name)?;
        self.adapters_changed();
        Ok(())
    }

    /// Takes in an adapter's file, off, under a name like the file's.
    ///
    /// # Errors
    /// Where it is no adapter, or the folder can't be written.
    pub fn import_adapter(&self, file: &std::path::Path) -> Result<(), Failure> {
        let store = adapters()?;
        let name = store.free_name(&file.file_stem().unwrap_or_default().to_string_lossy());
        store.add(file, &name).map(drop)
    }

    /// Copies an adapter to a file, which is replaced where it is there.
    ///
    /// # Errors
    /// Where there is no such adapter, it is damaged, or the file can't be written.
    pub fn export_adapter(&self, name: &str, to: &std::path::Path) -> Result<(), Failure> {
        adapters()?.export(name, to, true)
    }

    fn adapters_changed(&self) {
        // What a finished run says of its adapter may be true no longer.
        let mut work = self.inner.learning.lock();
        work.run.take_if(|run| matches!(run.state, LearningState::Finished(_)));
        drop(work);
        // What was begun without it, or with it, does not go on otherwise.
        self.judge_later();
    }

    fn change_learning(&self, change: impl FnOnce(&mut LearningRun)) {
        let mut work = self.inner.learning.lock();
        if let Some(run) = work.run.as_mut().filter(|run| !run.state.is_over()) {
            change(run);
        }
    }

    fn note_learning(&self, news: News) {
        self.change_learning(|run| match news {
            News::Comparing(form) => {
                run.waits = false;
                // What follows may be something else.
                run.progress.take_if(|_| form == Form::Remembered);
                run.state = LearningState::Comparing(form);
            }
            News::Training(AdaptationNews::Waits { .. }) => run.waits = true,
            News::Training(AdaptationNews::Event(event)) => {
                run.waits = false;
                // What is remembered may have been compared before.
                run.state = LearningState::Training;
                if let Event::Adapting { progress } = *event {
                    run.note(*progress);
                }
            }
            News::Training(AdaptationNews::Replaced { .. }) | News::NotTrained(_) => {}
        });
    }
}

impl LearningRun {
    /// Events of a run that went on from a checkpoint come a second time.
    fn note(&mut self, progress: AdaptProgress) {
        let step = progress.step;
        self.losses.retain(|(done, _)| *done < step);
        self.losses.extend(progress.loss.filter(|_| step > 0).map(|loss| (step, loss)));
        let is_new = self.progress.as_ref().is_none_or(|old| old.held_back_loss != progress.held_back_loss);
        self.held_back.retain(|(done, _)| *done <= step);
        self.held_back.extend(progress.held_back_loss.filter(|_| is_new).map(|loss| (step, loss)));
        self.progress = Some(progress);
    }
}

fn adapters() -> Result<Adapters, Failure> {
    Adapters::of_this_user().ok_or_else(|| {
        Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep adapters in.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::JobSettings;

    fn progress(step: u32, loss: Option<f32>, held_back_loss: Option<f32>) -> AdaptProgress {
        AdaptProgress { step, loss, held_back_loss, epochs: 2, steps: 4, ..AdaptProgress::default() }
    }

    #[test]
    fn losses_are_kept_by_step_and_a_step_that_is_done_again_takes_its_place() {
        let mut run = LearningRun {
            model: "m".into(),
            state: LearningState::Training,
            waits: false,
            progress: None,
            losses: Vec::new(),
            held_back: Vec::new(),
        };
        for told in [
            progress(0, None, Some(2.0)),
            progress(1, Some(3.0), Some(2.0)),
            progress(2, Some(2.5), Some(2.0)),
            progress(2, Some(2.5), Some(1.5)),
            // An engine died: it goes on from the checkpoint after the first step.
            progress(2, Some(2.4), Some(1.5)),
            progress(3, Some(2.0), Some(1.5)),
        ] {
            run.note(told);
        }
        assert_eq!(run.losses, [(1, 3.0), (2, 2.4), (3, 2.0)]);
        assert_eq!(run.held_back, [(0, 2.0), (2, 1.5)]);
    }

    #[tokio::test]
    async fn without_corrections_nothing_is_learnt_and_the_user_is_told() {
        let starter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
        let model = advisor::models::model_at(starter.as_ref()).unwrap();
        let session = Session::new(EngineOptions::default(), JobSettings::default());
        assert!(session.predicted_to_learn(&model).unwrap().memory > 0);
        // A history that can't be used is not one without corrections.
        assert_eq!(session.learn(model.clone(), &[]).unwrap_err().code, ErrorCode::OutputUnwritable);
        assert_eq!(session.corrected_recordings().unwrap_err().code, ErrorCode::OutputUnwritable);
        let folder = tempfile::tempdir().unwrap();
        session.keep_documents(library::Documents::open(&folder.path().join("history.sqlite")).unwrap().0);
        session.learn(model, &[]).unwrap();
        let ended = async {
            loop {
                if let Some(LearningState::Failed(failure)) = session.learning().map(|run| run.state) {
                    return failure;
                }
                tokio::task::yield_now().await;
            }
        };
        let failure = tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.unwrap();
        assert_eq!(failure.code, ErrorCode::BadSettings, "{failure}");
    }
}
