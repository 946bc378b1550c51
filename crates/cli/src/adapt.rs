//! `steno adapt`: a model learns from corrections.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use advisor::ModelRef;
use clap::Args;
use config::{Preferences, folders};
use formats::{AdapterFigures, AdapterFile, ModelInfo, WordErrors};
use memory::bytes::human;
use memory::{DeviceKind, Network, TrainingFootprint};
use serde::Serialize;
use supervisor::{AdaptationNews, Engine};
use transcript::errors::{Comparison, compare};
use wire::{
    Adapt as Asked, AdaptProgress, AdaptSettings, ErrorCode, Event, Failure, FilePath, Job, Lesson, NO_JOB,
};

use crate::adapters::{all_word_errors, store};
use crate::args::{EXIT_CODES, Machine};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::lessons::Collected;
use crate::memory_args::Amounts;
use crate::outputs::print;
use crate::times::wait;
use crate::{models, own_engine, search};

const LONG: &str = "\
Have a model learn from your corrections, on this computer.

Without --pair and --folder, it learns from the history: from segments that you corrected, and from others beside \
them so that it forgets nothing. A tenth is held back. Afterwards the held-back parts and other recordings are \
transcribed with and without what was learnt, and so are some of the learnt parts. The result is kept and switched on \
only if fewer of the held-back corrected words are wrong and no more of the rest; where something else got worse, \
less of what was learnt is tried.

The model itself stays as it is: what is learnt is an adapter, a file of a few megabytes (see `steno adapters`). \
If the command is stopped, the same command goes on where it was. While it learns, it lets recordings go first.";

/// Of what was learnt, so much is tried one after the other, until nothing else gets worse: a little less of it
/// often keeps what it gained, and forgets less (Wortsman and others, arXiv:2109.01903).
const STRENGTHS: [f32; 4] = [1.0, 0.7, 0.5, 0.35];

/// So many corrections that were learnt are transcribed once more: they must not be worse than before.
const MOST_LEARNT: usize = 30;

/// Have a model learn from your corrections
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Adapt {
    /// A Whisper model: its name (see `steno models`) or its folder
    #[arg(value_name = "NAME|FOLDER")]
    pub model: OsString,

    /// Learn from this recording and its text, a JSON transcript or plain text of at most 30 seconds; can be
    /// repeated
    #[arg(long, num_args = 2, value_names = ["AUDIO", "TEXT"], action = clap::ArgAction::Append)]
    pub pair: Vec<PathBuf>,

    /// Learn from every recording in this folder that has a text beside it: talk.json or talk.txt for talk.wav
    #[arg(long, value_name = "FOLDER")]
    pub folder: Vec<PathBuf>,

    /// Compare also on every recording in this folder that has a text beside it; the result must not be worse there
    #[arg(long, value_name = "FOLDER")]
    pub compare: Vec<PathBuf>,

    /// Language of texts that name none, as a two-letter code
    #[arg(long, value_name = "CODE", default_value = "en")]
    pub language: String,

    /// Name of the adapter [default: that of the model with the date]
    #[arg(long)]
    pub name: Option<String>,

    /// Most times to go through everything
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().epochs, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub epochs: u32,

    /// Rank of the adapters: more can learn more, and takes a larger file
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().rank, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub rank: u32,

    /// Highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = AdaptSettings::default().rate, value_parser = rate)]
    pub rate: f64,

    /// Windows of 30 seconds per step
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().batch, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub batch: u32,

    /// The same seed gives the same adapter
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Only say what would be learnt from, and how much memory it would take
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print no progress and no hints, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub amounts: Amounts,
    #[command(flatten)]
    pub machine: Machine,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 0.1);
    rate.ok_or_else(|| "a number above 0, at most 0.1, is needed".into())
}

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    name: &'a str,
    kept: bool,
    /// How much of what was learnt is kept, of 1.
    strength: Option<f32>,
    adapter: Option<FilePath>,
    epoch: u32,
    losses: &'a [f32],
    held_back: &'a [f32],
    figures: &'a AdapterFigures,
}

pub async fn run(args: &Adapt, interrupt: Interrupt) -> Ended {
    adapt(args, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn adapt(args: &Adapt, mut interrupt: Interrupt) -> Result<(), Ended> {
    let mut console = Console::new(args.quiet);
    let model = models::named(&args.model)?;
    let network = ModelInfo::network(&model.path).map_err(|error| {
        Failure::new(ErrorCode::ModelInvalid, error.to_string()).file(model.path.as_path())
    })?;
    let flags = [args.amounts.flags(), args.machine.flags()].concat();
    let preferences = Preferences::of_this_user(&flags)?;
    let collected = args.collect()?;
    let lessons = &collected.lessons;
    let held_back = lessons.iter().filter(|lesson| lesson.held_back).count();
    console.info(&format!(
        "{} parts to learn from, {} of them corrected; {held_back} are held back; {} other recordings to compare on.",
        lessons.len() - held_back,
        lessons.iter().filter(|lesson| lesson.corrected && !lesson.held_back).count(),
        collected.others.len(),
    ));
    if collected.left_out > 0 {
        console.info(&format!(
            "{} parts without text or longer than 30 seconds are left out.",
            collected.left_out
        ));
    }
    if args.dry_run {
        return predict(args, &network);
    }
    if lessons.len() - held_back == 0 {
        let text = "There is nothing to learn from.";
        let remedy = "Correct at least two segments of a transcript in the window, or name recordings with \
            their texts: --pair AUDIO TEXT.";
        return Err(Failure::new(ErrorCode::BadSettings, text).remedy(remedy).into());
    }
    let store = store()?;
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| format!("{}-{}", model.name, jiff::Zoned::now().strftime("%Y-%m-%d")));
    let path = store.path(&name)?;
    if path.exists() {
        let text = format!("There is an adapter named {name} already.");
        let remedy = "Choose another name with --name, or remove it: steno adapters remove NAME.";
        return Err(Failure::new(ErrorCode::NameTaken, text).remedy(remedy).into());
    }
    let work = Work { args, model: &model, preferences: &preferences, name: &name, collected: &collected };
    let folder = work.folder()?;
    let candidate = folder.with_extension("candidate");
    let asked = work.asked(&folder, &candidate);
    let options = args.machine.engine_options(preferences.engine);
    let learning = supervisor::adapt(&options, asked, |news| tell(&news, &mut console));
    let adapted = tokio::select! {
        adapted = learning => adapted?,
        () = interrupt.raised() => return Err(Ended::Cancelled),
    };
    console.clear();
    console.info("Comparing with and without what was learnt.");
    let (strength, figures) = work.strength(&candidate, &mut console, &mut interrupt).await?;
    if let Some(strength) = strength {
        let mut file = weakened(&candidate, strength)?;
        file.card.figures = Some(figures.clone());
        written(&file)?;
        store.add(&candidate, &name)?;
        store.switch_on(&name)?;
    }
    // What is left is only in the way.
    let _ = std::fs::remove_file(&candidate);
    let kept = strength.is_some();
    print(|out| {
        if args.json {
            let result = Outcome {
                name: &name,
                kept,
                strength,
                adapter: kept.then(|| path.clone().into()),
                epoch: adapted.epoch,
                losses: &adapted.losses,
                held_back: &adapted.held_back,
                figures: &figures,
            };
            serde_json::to_writer_pretty(&mut *out, &result)?;
            return writeln!(out);
        }
        all_word_errors(out, &figures)?;
        if figures.others.is_none() {
            writeln!(out, "There are no other recordings to compare on.")?;
        }
        if let Some(strength) = strength.filter(|strength| *strength < 1.0) {
            writeln!(out, "With {:.0} % of what was learnt, nothing else gets worse.", 100.0 * strength)?;
        }
        match kept {
            true => writeln!(out, "{name} is kept and switched on (off again: steno adapters off {name})."),
            false => writeln!(out, "It is not kept: the model is better without it."),
        }
    })
}

/// Kept only where fewer of the corrected words that were held back are wrong, and no more of what was learnt and of others.
fn is_better(figures: &AdapterFigures) -> bool {
    let is_no_worse = |errors: &Option<WordErrors>| errors.as_ref().is_none_or(|it| it.after <= it.before);
    let is_better = figures.corrections.after < figures.corrections.before;
    is_better && is_no_worse(&figures.others) && is_no_worse(&figures.learnt)
}

fn predict(args: &Adapt, network: &Network) -> Result<(), Ended> {
    let Network::Whisper(dimensions) = network else {
        return Err(Failure::new(ErrorCode::ModelUnsupported, "Only Whisper models can be adapted.").into());
    };
    let footprint = TrainingFootprint::of(
        dimensions,
        DeviceKind::Host,
        u64::from(args.rank),
        dimensions.text_context / 2,
    );
    print(|out| {
        let batch = u64::from(args.batch);
        writeln!(out, "Predicted memory: {}", human(footprint.peak(batch, true)))?;
        writeln!(out, "At least: {}", human(footprint.peak(1, false)))
    })
}

fn tell(news: &AdaptationNews, console: &mut Console) {
    match news {
        AdaptationNews::Waits { device } => {
            console.clear();
            console.info(&format!("Another program computes on {device}; this goes on afterwards."));
        }
        AdaptationNews::Replaced { why } => {
            console.clear();
            console.warning(&format!("{why} It goes on from the last checkpoint."));
        }
        AdaptationNews::Event(event) => match &**event {
            Event::Adapting { progress } => console.redraw(&line(progress)),
            Event::Notice { notice } => {
                console.clear();
                console.warning(&notice.text);
            }
            _ => {}
        },
    }
}

fn line(progress: &AdaptProgress) -> String {
    let AdaptProgress { epoch, epochs, step, steps, loss, held_back_loss, left, peak, .. } = progress;
    let number = |value: &Option<f32>| value.map_or_else(|| "-".into(), |value| format!("{value:.3}"));
    let left = left.map(|left| format!(", {} left at most", wait(f64::from(left)))).unwrap_or_default();
    format!(
        "epoch {epoch} of {epochs}, step {step} of {steps}, loss {}, held back {}, {}{left}",
        number(loss),
        number(held_back_loss),
        human(*peak)
    )
}

impl Adapt {
    fn collect(&self) -> Result<Collected, Ended> {
        let mut collected = Collected::default();
        let language = Some(self.language.as_str());
        for pair in self.pair.chunks(2) {
            if let [audio, text] = pair {
                collected.pair(audio, text, language)?;
            }
        }
        for folder in &self.folder {
            collected.folder(folder, language)?;
        }
        if self.pair.is_empty()
            && self.folder.is_empty()
            && let Some(documents) = search::existing()?
        {
            collected.history(&documents)?;
        }
        for folder in &self.compare {
            collected.compared(folder, language)?;
        }
        collected.hold_back(self.seed);
        Ok(collected)
    }
}

/// What the parts of one run share.
struct Work<'a> {
    args: &'a Adapt,
    model: &'a ModelRef,
    preferences: &'a Preferences,
    name: &'a str,
    collected: &'a Collected,
}

impl Work<'_> {
    /// Where it can go on after an interruption.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let state = folders::steno_state().ok_or_else(|| {
            Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to work in.")
        })?;
        let folder = state.join("adaptations").join(self.name);
        std::fs::create_dir_all(&folder).map_err(|error| {
            let text = format!("The folder can't be made: {error}.");
            Failure::new(ErrorCode::OutputUnwritable, text).file(folder.as_path())
        })?;
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

    fn asked(&self, folder: &Path, candidate: &Path) -> Asked {
        let Adapt { epochs, rank, rate, batch, seed, .. } = *self.args;
        let alpha = 2.0 * rank as f32;
        Asked {
            job: self.job(&self.model.path),
            lessons: self.collected.lessons.clone(),
            settings: AdaptSettings { epochs, rank, alpha, rate, batch, seed, ..AdaptSettings::default() },
            folder: folder.into(),
            output: candidate.into(),
        }
    }

    /// How much of the adapter is kept, the most with which nothing gets worse; `None`: none of it. With the word errors
    /// without it and with that much, or all, of it, on what was held back and on other recordings.
    async fn strength(
        &self,
        candidate: &Path,
        console: &mut Console,
        interrupt: &mut Interrupt,
    ) -> Result<(Option<f32>, AdapterFigures), Ended> {
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
        let (engine, _lease) = own_engine::start(&self.args.machine, console, interrupt).await?;
        let kinds = [&corrections, &others, &learnt];
        let mut before = Vec::new();
        for recordings in kinds {
            before.push(transcribed(&engine, recordings, None, interrupt).await?);
        }
        let mut strongest = None;
        let mut kept = None;
        for strength in STRENGTHS {
            if strength < 1.0 {
                console.info(&format!("The same with {:.0} % of it.", 100.0 * strength));
            }
            let mut file = weakened(candidate, strength)?;
            // A model is not loaded anew for a file of the same name.
            file.path = candidate.with_extension(format!("{strength}"));
            written(&file)?;
            let compared = async {
                let mut errors = Vec::new();
                for (recordings, before) in kinds.into_iter().zip(&before) {
                    let after = transcribed(&engine, recordings, Some(&file.path), interrupt).await?;
                    errors.push((!recordings.is_empty()).then(|| count(before, &after)));
                }
                Ok(errors)
            };
            let errors: Result<Vec<Option<WordErrors>>, Ended> = compared.await;
            let _ = std::fs::remove_file(&file.path);
            let mut errors = errors?.into_iter();
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
        engine.shutdown().await;
        Ok(match kept {
            Some((strength, figures)) => (Some(strength), figures),
            None => (None, strongest.unwrap_or_default()),
        })
    }
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
    file.write().map_err(|error| {
        Failure::new(ErrorCode::OutputUnwritable, format!("It can't be written: {error}."))
            .file(file.path.as_path())
    })
}

/// Recordings transcribed with an adapter or without one, compared with their texts.
async fn transcribed(
    engine: &Engine,
    recordings: &[(Job, &str)],
    adapter: Option<&Path>,
    interrupt: &mut Interrupt,
) -> Result<Vec<Comparison>, Ended> {
    let mut compared = Vec::new();
    for (job, text) in recordings {
        let mut job = Job { adapter: adapter.map(Into::into), ..job.clone() };
        job.decoding.word_times = false;
        let found = own_engine::follow(engine.transcribe(job), interrupt, |event| match event {
            Event::Finished { transcript, .. } => {
                let texts = transcript.segments.iter().map(|segment| segment.text.as_str());
                ControlFlow::Break(Ok(texts.collect::<Vec<_>>().join(" ")))
            }
            _ => ControlFlow::Continue(()),
        });
        compared.push(compare(text, &found.await?));
    }
    Ok(compared)
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
