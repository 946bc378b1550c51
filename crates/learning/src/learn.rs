//! An adapter is trained, compared with the model as it is, and kept where it is better.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use advisor::adapters::Adapters;
use advisor::fit::{self, DeviceMemory};
use advisor::{ModelRef, speed};
use config::{Preferences, folders};
use formats::{AdapterFigures, AdapterFile, ModelInfo, WordErrors};
use memory::{DeviceKind, Network, Precision, TrainingFootprint};
use supervisor::runs::{DeviceLease, Runs};
use supervisor::{AdaptationNews, Engine, EngineOptions};
use tempfile::TempPath;
use transcript::errors::{Comparison, compare};
use wire::{
    Adapt, AdaptSettings, Adapted, Alternative, ErrorCode, Event, Failure, FilePath, Job, Lesson, NO_JOB,
};

use crate::Collected;

/// Of what was learnt, so much is tried one after the other, until nothing else gets worse: a little less of it
/// often keeps what it gained, and forgets less (Wortsman and others, arXiv:2109.01903).
const STRENGTHS: [f32; 4] = [1.0, 0.85, 0.7, 0.5];

/// Seconds of speech of a window that is learnt, of 30, in the mean, with parts of about four seconds: they have pauses
/// between them, and many windows are not filled.
const WINDOW: f64 = 16.0;

/// So many corrections that were learnt are transcribed once more: they must not be worse than before.
const MOST_LEARNT: usize = 30;

/// A model that is to learn, and from what.
#[derive(Debug)]
pub struct Learning {
    /// The model; it stays as it is.
    pub model: ModelRef,
    /// What the adapter will be called; `None`: after the model and the day on which it is done.
    pub name: Option<String>,
    /// What is learnt, and what the result is compared on.
    pub collected: Collected,
    /// How it is trained.
    pub settings: AdaptSettings,
    /// Device, threads and memory.
    pub preferences: Preferences,
    /// How engines are started.
    pub engine: EngineOptions,
    /// Where the adapter is kept.
    pub store: Adapters,
}

/// What training is predicted to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Bytes, as the settings have it.
    pub memory: u64,
    /// Bytes with the least that memory's ladder comes to.
    pub least: u64,
    /// Seconds, about, for a second of speech in all epochs, of which there may be fewer; `None` where this machine's speed was not
    /// measured.
    pub pace: Option<f64>,
}

/// How far it is.
#[derive(Debug)]
pub enum News {
    /// It is trained.
    Training(AdaptationNews),
    /// The rest is transcribed with so much of what was learnt, of 1, to be compared.
    Comparing {
        /// How much.
        strength: f32,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the adapter is called, or would be.
    pub name: String,
    /// The adapter's file; `None`: it was not kept.
    pub path: Option<PathBuf>,
    /// How much of what was learnt is kept, of 1; `None`: none of it.
    pub strength: Option<f32>,
    /// The training.
    pub adapted: Adapted,
    /// Word errors without it and with what is kept, or with all of it.
    pub figures: AdapterFigures,
}

impl Learning {
    /// What training is predicted to take on the device of these preferences. Waits for the card's driver.
    ///
    /// # Errors
    /// For a model that can't learn.
    pub fn predicted(
        model: &ModelRef,
        settings: &AdaptSettings,
        preferences: &Preferences,
    ) -> Result<Prediction, Failure> {
        let network = ModelInfo::network(&model.path).map_err(|error| {
            Failure::new(ErrorCode::ModelInvalid, error.to_string()).file(model.path.as_path())
        })?;
        let Network::Whisper(dimensions) = network else {
            return Err(Failure::new(ErrorCode::ModelUnsupported, "Only Whisper models can be adapted."));
        };
        let (rank, tokens) = (u64::from(settings.rank), dimensions.text_context / 2);
        let choice = preferences.engine.device;
        let kind = if fit::expects_gpu(choice) { DeviceKind::Gpu } else { DeviceKind::Host };
        let peak = |precision, batch, keeps_everything| {
            let footprint =
                TrainingFootprint::of(&dimensions, kind, precision, rank, tokens, settings.encoder);
            footprint.peak(batch, keeps_everything)
        };
        let memory = peak(settings.precision, u64::from(settings.batch), true);
        let smaller = if preferences.memory.pins.precision { settings.precision } else { Precision::Bf16 };
        let least = peak(smaller, 1, false).min(memory);
        let device = DeviceMemory::of(kind == DeviceKind::Gpu, choice, &preferences.memory).ok();
        let window = device
            .and_then(|device| speed::to_learn(&speed::measured(), &device.name, &network, settings.encoder));
        let pace = window.map(|seconds| f64::from(settings.epochs) * seconds / WINDOW);
        Ok(Prediction { memory, least, pace })
    }

    /// Trains, compares, and keeps what is better, switched on. Recordings go first. Dropping the future ends it; the same
    /// can be run again and goes on.
    ///
    /// # Errors
    /// Where there is nothing to learn from, the name is taken, memory runs out with the least of everything, or
    /// something can't be read or written.
    pub async fn run(&self, mut tell: impl FnMut(News)) -> Result<Outcome, Failure> {
        if self.collected.lessons.iter().all(|lesson| lesson.held_back || !lesson.corrected) {
            let text = "There is nothing to learn from.";
            let remedy = "Correct at least two segments of a transcript in the window, or name recordings with \
                their texts: --pair AUDIO TEXT.";
            return Err(Failure::new(ErrorCode::BadSettings, text).remedy(remedy));
        }
        if let Some(name) = &self.name
            && self.store.path(name)?.exists()
        {
            let text = format!("There is an adapter named {name} already.");
            let remedy = "Choose another name with --name, or remove it: steno adapters remove NAME.";
            return Err(Failure::new(ErrorCode::NameTaken, text).remedy(remedy));
        }
        let folder = self.folder()?;
        let candidate = folder.with_extension("candidate");
        let asked = Adapt {
            job: Job { alternatives: self.ways()?, ..self.job(&self.model.path) },
            lessons: self.collected.lessons.clone(),
            settings: self.settings,
            folder: folder.as_path().into(),
            output: candidate.as_path().into(),
        };
        // Training that was done before the comparison was interrupted is not done again.
        let trained = Trained::at(folder.with_extension("trained"), &asked);
        let adapted = match trained.read().filter(|_| candidate.is_file()) {
            Some(adapted) => adapted,
            None => {
                let training = supervisor::adapt(&self.engine, asked, |news| tell(News::Training(news)));
                let adapted = training.await?;
                trained.write(&adapted)?;
                adapted
            }
        };
        let (strength, figures) = self.strength(&candidate, &mut tell).await?;
        let usual = format!("{}-{}", self.model.name, jiff::Zoned::now().strftime("%Y-%m-%d"));
        let name = self.name.clone().unwrap_or_else(|| self.store.free_name(&usual));
        let mut path = None;
        if let Some(strength) = strength {
            let mut file = weakened(&candidate, strength)?;
            file.card.figures = Some(figures.clone());
            // Under another name: what was trained stays as it is until the end.
            file.path = candidate.with_extension("kept");
            written(&file)?;
            let kept = TempPath::try_from_path(&file.path).map_err(|error| unwritable(&file.path, &error))?;
            path = Some(self.store.add(&kept, &name)?);
            self.store.switch_on(&name)?;
        }
        trained.remove();
        let _ = std::fs::remove_file(&candidate);
        Ok(Outcome { name, path, strength, adapted, figures })
    }

    /// Where it can go on after an interruption: one place for each name that is given, else for each model.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let state = folders::steno_state().ok_or_else(|| {
            Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to work in.")
        })?;
        let invalid = |error: formats::Error| {
            Failure::new(ErrorCode::ModelInvalid, error.to_string()).file(self.model.path.as_path())
        };
        let name = match &self.name {
            Some(name) => name.clone(),
            None => format!("of-{}", formats::fingerprint(&self.model.path).map_err(invalid)?),
        };
        let folder = state.join("adaptations").join(name);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        Ok(folder)
    }

    fn job(&self, file: &Path) -> Job {
        let engine = &self.preferences.engine;
        Job {
            device: engine.device,
            threads: engine.threads,
            memory: self.preferences.memory.clone(),
            ..Job::new(NO_JOB, file, self.model.path.as_path())
        }
    }

    /// How the model may be held while it learns: where memory runs short, in fewer bits.
    fn ways(&self) -> Result<Vec<Alternative>, Failure> {
        let network = advisor::model_info::read(&self.model.path)?;
        let ways = network.ways_to_learn(&self.model.name, self.settings.precision, self.settings.rank);
        let path = FilePath::from(self.model.path.as_path());
        Ok(ways.into_iter().map(|installed| Alternative { path: path.clone(), installed }).collect())
    }

    /// How much of the adapter is kept, the most with which nothing gets worse; `None`: none of it. With the word errors
    /// without it and with that much, or all, of it, on what was held back and on other recordings.
    async fn strength(
        &self,
        candidate: &Path,
        tell: &mut impl FnMut(News),
    ) -> Result<(Option<f32>, AdapterFigures), Failure> {
        let lessons = |held_back: bool| {
            let all = self.collected.lessons.iter().filter(|lesson| lesson.corrected);
            all.filter(move |lesson| lesson.held_back == held_back)
        };
        let of_lesson = |lesson: &Lesson| Job {
            span: lesson.span,
            language: lesson.language.clone(),
            ..self.job(lesson.file.as_path())
        };
        let both = |lesson| (of_lesson(lesson), lesson.text.as_str());
        let corrections: Vec<(Job, &str)> = lessons(true).map(both).collect();
        let apart = lessons(false).count().div_ceil(MOST_LEARNT).max(1);
        let learnt: Vec<(Job, &str)> = lessons(false).step_by(apart).map(both).collect();
        let others = self.collected.others.iter().map(|(file, text, language)| {
            (Job { language: language.clone(), ..self.job(file) }, text.as_str())
        });
        let others: Vec<(Job, &str)> = others.collect();
        let mut listener =
            Listener { learning: self, runs: Runs::of_this_user(), at_work: None, strength: STRENGTHS[0] };
        let kinds = [&corrections, &others, &learnt];
        let mut before = Vec::new();
        tell(News::Comparing { strength: STRENGTHS[0] });
        for recordings in kinds {
            before.push(listener.compared(recordings, None, tell).await?);
        }
        let mut strongest = None;
        let mut kept = None;
        for strength in STRENGTHS {
            if strength < 1.0 {
                tell(News::Comparing { strength });
            }
            listener.strength = strength;
            let mut file = weakened(candidate, strength)?;
            // A model is not loaded anew for a file of the same name.
            file.path = candidate.with_extension(format!("{strength}"));
            written(&file)?;
            let path = TempPath::try_from_path(&file.path).map_err(|error| unwritable(&file.path, &error))?;
            let mut errors = Vec::new();
            for (recordings, before) in kinds.into_iter().zip(&before) {
                let after = listener.compared(recordings, Some(&path), tell).await?;
                errors.push((!recordings.is_empty()).then(|| count(before, &after)));
            }
            let mut errors = errors.into_iter();
            let mut next = || errors.next().flatten();
            let figures =
                AdapterFigures { corrections: next().unwrap_or_default(), others: next(), learnt: next() };
            if is_better(&figures) {
                kept = Some((strength, figures));
                break;
            }
            // With less of it there would be less to gain.
            let is_in_vain = figures.corrections.after >= figures.corrections.before;
            strongest.get_or_insert(figures);
            if is_in_vain {
                break;
            }
        }
        listener.end().await;
        Ok(match kept {
            Some((strength, figures)) => (Some(strength), figures),
            None => (None, strongest.unwrap_or_default()),
        })
    }
}

/// Transcribes recordings, to be compared with their texts.
struct Listener<'a> {
    learning: &'a Learning,
    runs: Option<Runs>,
    at_work: Option<(Engine, Option<DeviceLease>)>,
    /// What is compared.
    strength: f32,
}

/// What a finished training says of itself, for a comparison that is interrupted.
struct Trained {
    path: PathBuf,
    /// All that was asked for.
    request: String,
}

impl Trained {
    fn at(path: PathBuf, asked: &Adapt) -> Self {
        Self { path, request: serde_json::to_string(asked).unwrap_or_default() }
    }

    /// `None` where another training was asked for.
    fn read(&self) -> Option<Adapted> {
        let (request, adapted): (String, Adapted) =
            serde_json::from_slice(&std::fs::read(&self.path).ok()?).ok()?;
        Some(adapted).filter(|_| request == self.request)
    }

    fn write(&self, adapted: &Adapted) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(&(&self.request, adapted)).unwrap_or_default();
        formats::write_whole(&self.path, &bytes).map_err(|error| unwritable(&self.path, &error))
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Listener<'_> {
    /// Recordings transcribed with an adapter or without one, compared with their texts.
    async fn compared(
        &mut self,
        recordings: &[(Job, &str)],
        adapter: Option<&Path>,
        tell: &mut impl FnMut(News),
    ) -> Result<Vec<Comparison>, Failure> {
        let mut compared = Vec::new();
        for (job, text) in recordings {
            let mut job = Job { adapter: adapter.map(Into::into), ..job.clone() };
            job.decoding.word_times = false;
            let heard = text_of(self.engine(tell).await?, job).await?;
            compared.push(compare(text, &heard));
        }
        Ok(compared)
    }

    /// The engine, where it is its turn at the device. Between two recordings, others' go first.
    async fn engine(&mut self, tell: &mut impl FnMut(News)) -> Result<&Engine, Failure> {
        let choice = self.learning.preferences.engine.device;
        let is_awaited =
            |engine: &Engine| self.runs.as_ref().is_some_and(|runs| runs.is_awaited(&engine.device(choice)));
        if self.at_work.as_ref().is_some_and(|(engine, _)| is_awaited(engine)) {
            self.end().await;
        }
        if self.at_work.is_none() {
            let engine = Engine::start(&self.learning.engine).await?;
            let device = engine.device(choice);
            let mut waited = false;
            let waiting = |_| {
                waited = true;
                tell(News::Training(AdaptationNews::Waits { device: device.clone() }));
            };
            // A folder that can't be used is no reason not to work.
            let lease = match &self.runs {
                Some(runs) => runs.lease(&device, waiting).await.ok(),
                None => None,
            };
            self.at_work = Some((engine, lease));
            if waited {
                tell(News::Comparing { strength: self.strength });
            }
        }
        let none = || Failure::new(ErrorCode::Internal, "There is no engine.");
        self.at_work.as_ref().map(|(engine, _)| engine).ok_or_else(none)
    }

    async fn end(&mut self) {
        if let Some((engine, _lease)) = self.at_work.take() {
            engine.shutdown().await;
        }
    }
}

async fn text_of(engine: &Engine, job: Job) -> Result<String, Failure> {
    let mut handle = engine.transcribe(job);
    loop {
        match handle.next().await {
            Some(Event::Finished { transcript, .. }) => {
                let texts = transcript.segments.iter().map(|segment| segment.text.as_str());
                return Ok(texts.collect::<Vec<_>>().join(" "));
            }
            Some(Event::Failed { error, .. }) => return Err(error),
            Some(Event::Cancelled { .. }) | None => {
                let text = "The engine stopped in the middle of the job.";
                return Err(Failure::new(ErrorCode::EngineFailed, text).remedy("Try again."));
            }
            Some(_) => {}
        }
    }
}

/// Kept only where fewer of the corrected words that were held back are wrong, and no more of what was learnt and of others.
fn is_better(figures: &AdapterFigures) -> bool {
    let is_no_worse = |errors: &Option<WordErrors>| errors.as_ref().is_none_or(|it| it.after <= it.before);
    let is_better = figures.corrections.after < figures.corrections.before;
    is_better && is_no_worse(&figures.others) && is_no_worse(&figures.learnt)
}

/// What was learnt, so much of it.
fn weakened(candidate: &Path, strength: f32) -> Result<AdapterFile, Failure> {
    let mut file = AdapterFile::read(candidate)
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()).file(candidate))?;
    file.card.alpha *= strength;
    file.card.strength = (strength < 1.0).then_some(strength);
    Ok(file)
}

fn written(file: &AdapterFile) -> Result<(), Failure> {
    file.write().map_err(|error| unwritable(&file.path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(ErrorCode::OutputUnwritable, format!("It can't be written: {error}.")).file(path)
}

/// The errors of all, with the words that are right with the adapter alone and without it alone.
fn count(before: &[Comparison], after: &[Comparison]) -> WordErrors {
    let (mut better, mut worse) = (BTreeMap::new(), BTreeMap::new());
    let mut errors = WordErrors::default();
    for (before, after) in before.iter().zip(after) {
        errors.words += before.reference.len();
        errors.before += before.errors;
        errors.after += after.errors;
        for ((word, was), (_, is)) in before.reference.iter().zip(&after.reference) {
            match (was, is) {
                (false, true) => *better.entry(word.clone()).or_default() += 1,
                (true, false) => *worse.entry(word.clone()).or_default() += 1,
                _ => {}
            }
        }
    }
    let sorted = |found: BTreeMap<String, usize>| {
        /// Words that are shown.
        const MOST: usize = 20;
        let mut found: Vec<(String, usize)> = found.into_iter().collect();
        found.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        found.truncate(MOST);
        found
    };
    WordErrors { better: sorted(better), worse: sorted(worse), ..errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_that_is_done_is_found_again_where_the_same_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let asked = |rank| Adapt {
            job: Job::new(NO_JOB, "a.wav", "model"),
            lessons: Vec::new(),
            settings: AdaptSettings { rank, ..AdaptSettings::default() },
            folder: folder.path().into(),
            output: folder.path().join("candidate").into(),
        };
        let trained = |rank| Trained::at(folder.path().join("trained"), &asked(rank));
        assert_eq!(trained(8).read(), None);
        let adapted = Adapted {
            adapter: folder.path().join("candidate").into(),
            epoch: 3,
            losses: vec![1.0, 0.5],
            held_back: vec![2.0, 1.5],
        };
        trained(8).write(&adapted).unwrap();
        assert_eq!(trained(8).read(), Some(adapted));
        assert_eq!(trained(4).read(), None, "another rank");
        trained(8).remove();
        assert_eq!(trained(8).read(), None);
    }

    #[test]
    fn an_adapter_is_kept_only_where_nothing_gets_worse() {
        let errors = |before, after| WordErrors { words: 10, before, after, ..WordErrors::default() };
        let cases = [
            (errors(5, 2), None, true),
            (errors(5, 5), None, false),
            (errors(5, 6), None, false),
            (errors(5, 2), Some(errors(3, 3)), true),
            (errors(5, 2), Some(errors(3, 4)), false),
        ];
        for (corrections, others, kept) in cases {
            let figures = AdapterFigures { corrections, others, learnt: None };
            assert_eq!(is_better(&figures), kept, "{figures:?}");
            // What was learnt must not be worse for it.
            for (learnt, is_fine) in [(errors(4, 4), true), (errors(4, 5), false)] {
                let figures = AdapterFigures { learnt: Some(learnt), ..figures.clone() };
                assert_eq!(is_better(&figures), kept && is_fine, "{figures:?}");
            }
        }
    }

    #[test]
    fn less_of_an_adapter_is_the_same_matrices_times_less() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learnt");
        let card = formats::AdapterCard { rank: 1, alpha: 2.0, ..Default::default() };
        let matrix = formats::AdapterMatrix {
            name: "model.decoder.layers.0.fc1".into(),
            output: 2,
            input: 1,
            a: vec![1.0],
            b: vec![1.0, 2.0],
        };
        let whole = AdapterFile { path: path.clone(), card, matrices: vec![matrix] };
        whole.write().unwrap();
        let less = weakened(&path, 0.5).unwrap();
        assert_eq!((less.card.alpha, less.card.strength), (1.0, Some(0.5)));
        assert_eq!(less.matrices, whole.matrices);
        assert_eq!(weakened(&path, 1.0).unwrap().card, whole.card);
        assert!(weakened(&folder.path().join("none"), 1.0).is_err());
    }

    #[test]
    fn words_that_got_better_and_worse_are_counted() {
        let before = [compare("the zolmivane", "the soul me vane"), compare("a boat", "a boat")];
        let after = [compare("the zolmivane", "the zolmivane"), compare("a boat", "a moat")];
        let errors = count(&before, &after);
        assert_eq!((errors.words, errors.before, errors.after), (4, 3, 1));
        assert_eq!(errors.better, [("zolmivane".to_owned(), 1)]);
        assert_eq!(errors.worse, [("boat".to_owned(), 1)]);
    }
}
