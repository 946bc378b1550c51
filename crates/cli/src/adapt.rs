//! `steno adapt`: a model learns from corrections.

use std::ffi::OsString;
use std::path::PathBuf;

use advisor::ModelRef;
use clap::Args;
use config::Preferences;
use formats::AdapterFigures;
use learning::{Collected, Form, Learning, News, Prediction};
use memory::Precision;
use memory::bytes::human;
use serde::Serialize;
use supervisor::AdaptationNews;
use wire::{AdaptProgress, AdaptSettings, Event, FilePath};

use crate::adapters::{all_word_errors, store};
use crate::args::{EXIT_CODES, Machine};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::memory_args::Amounts;
use crate::outputs::print;
use crate::times::wait;
use crate::{models, search};

const LONG: &str = "\
Have a model learn from your corrections, on this computer.

Without --pair and --folder, it learns from the history: from segments that you corrected, and from others beside \
them so that it forgets less. A tenth is held back. Afterwards the held-back parts and other recordings are \
transcribed with and without what was learnt, and so are some of the learnt parts. The result is kept and switched on \
only if fewer of the held-back corrected words are wrong and no more of the rest; where something else got worse, \
less of what was learnt is tried.

The model itself stays as it is: what is learnt is an adapter, a file of a few megabytes (see `steno adapters`). \
If the command is stopped, the same command goes on where it was. While it learns, it lets recordings go first.";

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

    /// Learn from every recording in this folder that has a corrected text beside it: talk.json or talk.txt for talk.wav
    #[arg(long, value_name = "FOLDER")]
    pub folder: Vec<PathBuf>,

    /// Stay as before on every recording in this folder that has a text beside it, which the model writes as it should;
    /// also where it lies in a folder of --folder
    #[arg(long, value_name = "FOLDER")]
    pub beside: Vec<PathBuf>,

    /// Compare also on every recording in this folder that has a text beside it; the result must not be worse there
    #[arg(long, value_name = "FOLDER")]
    pub compare: Vec<PathBuf>,

    /// Language of texts that name none, as a two-letter code
    #[arg(long, value_name = "CODE", default_value = "en")]
    pub language: String,

    /// Name of the adapter [default: that of the model with the date]
    #[arg(long)]
    pub name: Option<String>,

    /// Most times to go through all corrections; with 0 they are remembered and nothing is trained
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().epochs, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub epochs: u32,

    /// Rank of the adapters: more can learn more, and takes a larger file
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().rank, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub rank: u32,

    /// Have the encoder learn as well, which hears, beside the decoder, which writes: takes three to four times as long, and forgets more
    #[arg(long)]
    pub encoder: bool,

    /// Highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = AdaptSettings::default().rate, value_parser = rate)]
    pub rate: f64,

    /// Windows of 30 seconds per step
    #[arg(long, value_name = "N", default_value_t = AdaptSettings::default().batch, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub batch: u32,

    /// How the model's own matrices are held: f32, or bf16 or f16, which take half as much; where memory is short, 16 bits
    /// are used anyway
    #[arg(long, value_name = "PRECISION", default_value_t = AdaptSettings::default().precision, value_parser = precision)]
    pub precision: Precision,

    /// The same seed gives the same adapter
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Only say what would be learnt from, and how much memory and time it would take
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

fn precision(text: &str) -> Result<Precision, String> {
    let found = text.parse().ok().filter(|precision: &Precision| !precision.is_quantised());
    found.ok_or_else(|| "f32, bf16 or f16 is needed".into())
}

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    name: &'a str,
    kept: bool,
    /// Whether what is kept are corrections that are remembered, without matrices.
    remembered: bool,
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
        return predict(args, &model, &preferences, collected.seconds_per_epoch());
    }
    let store = store()?;
    let settings = args.settings();
    let name = args.name.clone();
    let engine = args.machine.engine_options(preferences.engine);
    let learning = Learning { model, name, collected, settings, preferences, engine, store };
    let learnt = tokio::select! {
        learnt = learning.run(|news| tell(&news, &mut console)) => learnt?,
        () = interrupt.raised() => return Err(Ended::Cancelled),
    };
    let learning::Outcome { name, path, form, adapted, figures } = learnt;
    let kept = form.is_some();
    let remembered = form == Some(Form::Remembered);
    let strength = form.map(Form::strength);
    print(|out| {
        if args.json {
            let result = Outcome {
                name: &name,
                kept,
                remembered,
                strength,
                adapter: path.clone().map(FilePath::from),
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
        if remembered {
            writeln!(out, "What was corrected is remembered; no matrix of the model is changed.")?;
        }
        match kept {
            true => writeln!(out, "{name} is kept and switched on (off again: steno adapters off {name})."),
            false => writeln!(out, "It is not kept: the model is better without it."),
        }
    })
}

fn predict(args: &Adapt, model: &ModelRef, preferences: &Preferences, seconds: f64) -> Result<(), Ended> {
    let Prediction { memory, least, pace } = Learning::predicted(model, &args.settings(), preferences)?;
    print(|out| {
        writeln!(out, "Predicted memory: {}", human(memory))?;
        writeln!(out, "At least: {}", human(least))?;
        match pace {
            _ if args.epochs == 0 => {
                writeln!(out, "Nothing is trained: it takes about as long as transcribing the same.")
            }
            Some(pace) => writeln!(
                out,
                "Predicted time of training: about {}; it may end earlier",
                wait(pace * seconds)
            ),
            None => writeln!(
                out,
                "How long it takes is not known: this machine was not measured yet (steno models probe)."
            ),
        }
    })
}

fn tell(news: &News, console: &mut Console) {
    let news = match news {
        News::Training(news) => news,
        News::NotTrained(failure) => {
            console.clear();
            return console.warning(&format!("Nothing is trained: {}", failure.message));
        }
        News::Comparing(form) => {
            console.clear();
            return match form {
                Form::Remembered => {
                    console.info("Comparing with and without the corrections that are remembered.")
                }
                Form::Trained(1.0) => console.info("Comparing with and without what was trained."),
                Form::Trained(strength) => {
                    console.info(&format!("The same with {:.0} % of it.", 100.0 * strength));
                }
            };
        }
    };
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
    if progress.to_hear > 0 {
        let AdaptProgress { heard, to_hear, .. } = progress;
        return format!("hears what was corrected, {heard} of {to_hear} windows, {}", human(*peak));
    }
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
    fn settings(&self) -> AdaptSettings {
        let Self { epochs, rank, encoder, rate, batch, seed, precision, .. } = *self;
        let alpha = 2.0 * rank as f32;
        AdaptSettings {
            epochs,
            rank,
            alpha,
            encoder,
            rate,
            batch,
            seed,
            precision,
            ..AdaptSettings::default()
        }
    }

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
            collected.history(&documents, &|_| true)?;
        }
        for folder in &self.beside {
            collected.beside(folder, language)?;
        }
        for folder in &self.compare {
            collected.compared(folder, language)?;
        }
        collected.hold_back(self.seed);
        Ok(collected)
    }
}
