//! An adapter is trained, compared with the model as it is, and kept where it is better.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use advisor::adapters::Adapters;
use advisor::fit::{self, DeviceMemory};
use advisor::{ModelRef, speed};
use config::{Preferences, folders};
use formats::{AdapterFigures, AdapterFile, ModelInfo, WordErrors};
use memory::{DeviceKind, Footprint, Network, Plan, Precision, TrainingFootprint};
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

/// File name extensions of the adapters that engines write: of remembered corrections, and of trained matrices.
const REMEMBERED: &str = "remembered";
const CANDIDATE: &str = "candidate";

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

/// The form in which an adapter is tried or kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// The corrections that it remembers, without matrices.
    Remembered,
    /// Trained matrices, scaled by this strength, 0 to 1.
    Trained(f32),
}

impl Form {
    /// The share of what was learnt that it uses, 0 to 1.
    pub fn strength(self) -> f32 {
        match self {
            Self::Remembered => 1.0,
            Self::Trained(strength) => strength,
        }
    }
}

/// How far it is.
#[derive(Debug)]
pub enum News {
    /// It is trained.
    Training(AdaptationNews),
    /// Recordings are transcribed with and without the adapter in this form.
    Comparing(Form),
    /// Memory did not suffice for training; the remembered corrections are kept.
    NotTrained(Failure),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the adapter is called, or would be.
    pub name: String,
    /// The adapter's file; `None`: it was not kept.
    pub path: Option<PathBuf>,
    /// The form that is kept; `None`: the adapter is not kept.
    pub form: Option<Form>,
    /// The training.
    pub adapted: Adapted,
    /// Word errors without the adapter and with the form that is kept; where none is, with the last one at full strength.
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
        let choice = preferences.engine.device;
        let kind = if fit::expects_gpu(choice) { DeviceKind::Gpu } else { DeviceKind::Host };
        if settings.epochs == 0 {
            let plan = Plan { beams: 1, ..network.plan(kind, settings.precision) };
            let memory = Footprint::of(&network, &plan).peak(1);
            return Ok(Prediction { memory, least: memory, pace: Some(0.0) });
        }
        let (rank, tokens) = (u64::from(settings.rank), dimensions.text_context / 2);
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
        let mut comparing = Comparing::new(self);
        // It takes as long as transcribing the same. Where it gets all corrections right, nothing is left to train for.
        let remembered = self.made(self.asked(&folder, true)?, &mut tell).await?;
        if remembered.adapted.remembered > 0 {
            comparing.try_remembered(&remembered, &mut tell).await?;
        } else if self.settings.epochs == 0 {
            self.clear(&folder);
            let text = "There is nothing to remember: in no corrected text does the model write other words.";
            return Err(Failure::new(ErrorCode::BadSettings, text));
        }
        let mut adapted = remembered.adapted;
        if self.settings.epochs > 0 && !comparing.is_all_right() {
            comparing.listener.end().await;
            match self.made(self.asked(&folder, false)?, &mut tell).await {
                Ok(trained) => {
                    for strength in STRENGTHS {
                        if comparing.try_form(&trained.file, Form::Trained(strength), &mut tell).await? {
                            break;
                        }
                    }
                    if !matches!(comparing.best, Some((Form::Remembered, ..))) {
                        adapted = trained.adapted;
                    }
                }
                Err(failure) if failure.code == ErrorCode::OutOfMemory && comparing.best.is_some() => {
                    tell(News::NotTrained(failure));
                }
                Err(failure) => return Err(failure),
            }
        }
        comparing.listener.end().await;
        let usual = format!("{}-{}", self.model.name, jiff::Zoned::now().strftime("%Y-%m-%d"));
        let name = self.name.clone().unwrap_or_else(|| self.store.free_name(&usual));
        let (mut path, mut form) = (None, None);
        let figures = match comparing.best {
            Some((kept, mut file, figures)) => {
                file.card.figures = Some(figures.clone());
                // Under another name: what was made stays as it is until the end.
                file.path = folder.with_extension("kept");
                written(&file)?;
                let kept_file =
                    TempPath::try_from_path(&file.path).map_err(|error| unwritable(&file.path, &error))?;
                path = Some(self.store.add(&kept_file, &name)?);
                self.store.switch_on(&name)?;
                form = Some(kept);
                figures
            }
            None => comparing.whole.unwrap_or_default(),
        };
        self.clear(&folder);
        Ok(Outcome { name, path, form, adapted, figures })
    }

    /// The request to remember corrections or to train; its files lie beside `folder`.
    fn asked(&self, folder: &Path, remember: bool) -> Result<Adapt, Failure> {
        let (own, output) = match remember {
            true => (folder.with_extension("remembering"), folder.with_extension(REMEMBERED)),
            false => (folder.to_owned(), folder.with_extension(CANDIDATE)),
        };
        Ok(Adapt {
            job: Job { alternatives: self.ways()?, ..self.job(&self.model.path) },
            lessons: self.collected.lessons.clone(),
            settings: self.settings,
            remember,
            folder: own.as_path().into(),
            output: output.as_path().into(),
        })
    }

    /// Has an engine do it, unless an earlier run that was interrupted later has its result already.
    async fn made(&self, asked: Adapt, tell: &mut impl FnMut(News)) -> Result<Made, Failure> {
        let file = asked.output.as_path().to_owned();
        let done = Done::at(with_ending(&file, "done"), &asked);
        let is_there = |adapted: &Adapted| file.is_file() || (asked.remember && adapted.remembered == 0);
        let adapted = match done.read().filter(is_there) {
            Some(adapted) => adapted,
            None => {
                let making = supervisor::adapt(&self.engine, asked, |news| tell(News::Training(news)));
                let adapted = making.await?;
                done.write(&adapted)?;
                adapted
            }
        };
        Ok(Made { file, done, adapted })
    }

    /// Removes the files that are kept for an interruption.
    fn clear(&self, folder: &Path) {
        for own in [folder.to_owned(), folder.with_extension("remembering")] {
            let _ = std::fs::remove_dir_all(own);
        }
        for ending in [REMEMBERED, CANDIDATE] {
            let file = folder.with_extension(ending);
            let beside = ["done", "figures"].map(|ending| with_ending(&file, ending));
            for file in beside.iter().chain([&file]) {
                let _ = std::fs::remove_file(file);
            }
        }
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
}

/// An adapter that an engine wrote, and the engine's report.
struct Made {
    file: PathBuf,
    done: Done,
    adapted: Adapted,
}

/// Forms of what was learnt, compared with the model as it is on corrections that were held back, on other recordings and on
/// corrections that were learnt.
struct Comparing<'a> {
    kinds: [Vec<(Job, &'a str)>; 3],
    listener: Listener<'a>,
    /// The comparisons without an adapter; empty until the first form is tried.
    before: Vec<Vec<Comparison>>,
    /// Those of the latest form that was tried at full strength.
    whole: Option<AdapterFigures>,
    /// The one with the fewest wrong corrections among those with which nothing gets worse.
    best: Option<(Form, AdapterFile, AdapterFigures)>,
}

impl<'a> Comparing<'a> {
    fn new(learning: &'a Learning) -> Self {
        let Collected { lessons, others, .. } = &learning.collected;
        let corrected = |held_back: bool| {
            let all = lessons.iter().filter(|lesson| lesson.corrected);
            all.filter(move |lesson| lesson.held_back == held_back)
        };
        let of_lesson = |lesson: &Lesson| Job {
            span: lesson.span,
            language: lesson.language.clone(),
            ..learning.job(lesson.file.as_path())
        };
        let both = |lesson: &'a Lesson| (of_lesson(lesson), lesson.text.as_str());
        let apart = corrected(false).count().div_ceil(MOST_LEARNT).max(1);
        let learnt = corrected(false).step_by(apart).map(both).collect();
        let others = others.iter().map(|(file, text, language)| {
            (Job { language: language.clone(), ..learning.job(file) }, text.as_str())
        });
        Self {
            kinds: [corrected(true).map(both).collect(), others.collect(), learnt],
            listener: Listener {
                learning,
                runs: Runs::of_this_user(),
                at_work: None,
                form: Form::Remembered,
            },
            before: Vec::new(),
            whole: None,
            best: None,
        }
    }

    /// Whether no correction that was held back is wrong with what is best.
    fn is_all_right(&self) -> bool {
        self.best.as_ref().is_some_and(|(_, _, figures)| figures.corrections.after == 0)
    }

    /// Compares the remembered corrections, unless an earlier run that was interrupted later has done so.
    async fn try_remembered(&mut self, made: &Made, tell: &mut impl FnMut(News)) -> Result<(), Failure> {
        let path = with_ending(&made.file, "figures");
        let known = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let known = known.filter(|(request, _): &(String, AdapterFigures)| *request == made.done.request);
        if let Some((_, figures)) = known {
            self.whole = Some(figures.clone());
            if is_better(&figures) {
                self.best = Some((Form::Remembered, taken(&made.file, Form::Remembered)?, figures));
            }
            return Ok(());
        }
        self.try_form(&made.file, Form::Remembered, tell).await?;
        let bytes = serde_json::to_vec(&(&made.done.request, &self.whole)).unwrap_or_default();
        formats::write_whole(&path, &bytes).map_err(|error| unwritable(&path, &error))
    }

    /// Compares a form of an adapter. `true`: with less of it there is nothing to gain.
    async fn try_form(
        &mut self,
        candidate: &Path,
        form: Form,
        tell: &mut impl FnMut(News),
    ) -> Result<bool, Failure> {
        let Self { kinds, listener, before, whole, best } = self;
        listener.form = form;
        tell(News::Comparing(form));
        for recordings in kinds.iter().skip(before.len()) {
            before.push(listener.compared(recordings, None, tell).await?);
        }
        let mut file = taken(candidate, form)?;
        // A model is not loaded anew for a file of the same name.
        file.path = with_ending(candidate, &format!("{:.0}", 100.0 * form.strength()));
        written(&file)?;
        let path = TempPath::try_from_path(&file.path).map_err(|error| unwritable(&file.path, &error))?;
        let mut errors = Vec::new();
        for (recordings, before) in kinds.iter().zip(before) {
            let after = listener.compared(recordings, Some(&path), tell).await?;
            errors.push((!recordings.is_empty()).then(|| count(before, &after)));
        }
        let mut errors = errors.into_iter();
        let mut next = || errors.next().flatten();
        let figures =
            AdapterFigures { corrections: next().unwrap_or_default(), others: next(), learnt: next() };
        let is_in_vain = figures.corrections.after >= figures.corrections.before;
        let is_better = is_better(&figures);
        if form.strength() == 1.0 {
            *whole = Some(figures.clone());
        }
        let wrong =
            |(_, _, best): &(_, _, AdapterFigures)| figures.corrections.after < best.corrections.after;
        if is_better && best.as_ref().is_none_or(wrong) {
            *best = Some((form, file, figures));
        }
        Ok(is_in_vain || is_better)
    }
}

/// Transcribes recordings, to be compared with their texts.
struct Listener<'a> {
    learning: &'a Learning,
    runs: Option<Runs>,
    at_work: Option<(Engine, Option<DeviceLease>)>,
    /// What is compared.
    form: Form,
}

/// What an engine says of what it made, for a comparison that is interrupted.
struct Done {
    path: PathBuf,
    /// All that was asked for.
    request: String,
}

impl Done {
    fn at(path: PathBuf, asked: &Adapt) -> Self {
        Self { path, request: serde_json::to_string(asked).unwrap_or_default() }
    }

    /// `None` where something else was asked for.
    fn read(&self) -> Option<Adapted> {
        let (request, adapted): (String, Adapted) =
            serde_json::from_slice(&std::fs::read(&self.path).ok()?).ok()?;
        Some(adapted).filter(|_| request == self.request)
    }

    fn write(&self, adapted: &Adapted) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(&(&self.request, adapted)).unwrap_or_default();
        formats::write_whole(&self.path, &bytes).map_err(|error| unwritable(&self.path, &error))
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
                tell(News::Comparing(self.form));
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

/// An adapter in one of its forms.
fn taken(candidate: &Path, form: Form) -> Result<AdapterFile, Failure> {
    let mut file = AdapterFile::read(candidate)
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()).file(candidate))?;
    let strength = form.strength();
    file.card.alpha *= strength;
    file.card.strength = (strength < 1.0).then_some(strength);
    Ok(file)
}

/// The path with another extension appended.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
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
            remember: false,
            folder: folder.path().into(),
            output: folder.path().join("candidate").into(),
        };
        let trained = |rank| Done::at(folder.path().join("trained"), &asked(rank));
        assert_eq!(trained(8).read(), None);
        let adapted = Adapted {
            adapter: folder.path().join("candidate").into(),
            epoch: 3,
            losses: vec![1.0, 0.5],
            held_back: vec![2.0, 1.5],
            remembered: 0,
        };
        trained(8).write(&adapted).unwrap();
        assert_eq!(trained(8).read(), Some(adapted));
        assert_eq!(trained(4).read(), None, "another rank");
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
        let whole =
            AdapterFile { path: path.clone(), card, matrices: vec![matrix], ..AdapterFile::default() };
        whole.write().unwrap();
        let less = taken(&path, Form::Trained(0.5)).unwrap();
        assert_eq!((less.card.alpha, less.card.strength), (1.0, Some(0.5)));
        assert_eq!(less.matrices, whole.matrices);
        assert_eq!(taken(&path, Form::Trained(1.0)).unwrap().card, whole.card);
        assert_eq!(taken(&path, Form::Remembered).unwrap().card, whole.card);
        assert!(taken(&folder.path().join("none"), Form::Remembered).is_err());
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
