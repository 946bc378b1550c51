//! `steno search`: passages of the history by what was said and by what was meant.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use config::{Preferences, folders};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use library::Documents;
use library::documents::{Filter, FoundPassage, HISTORY_FILE, Index, IndexModel, Meaning, Question};
use serde::Serialize;
use supervisor::indexing::{self, IndexProgress};
use supervisor::meanings::{Meanings, PassagesOf};
use supervisor::{EmbedderSettings, EmbeddingModel};
use tokio::sync::watch;
use transcript::Time;
use wire::{ErrorCode, Failure, FilePath, TextRole, printable};

use crate::args::{EXIT_CODES, Machine};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::times::{clock, wait};
use crate::values;

const LONG: &str = "\
Search in all transcripts of the history.

QUERY may be a few words or a whole question: with a model for meaning (see `steno models`), passages are found \
that say the same in other words. Words and meaning are both ranked, and the best of both come first. The window \
keeps the index for that up to date by itself; here --reindex does.";

/// Search in all transcripts, by words and by meaning
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Search {
    /// What to look for
    #[arg(required_unless_present = "reindex")]
    pub query: Option<String>,

    /// Only passages of this speaker
    #[arg(long, value_name = "NAME")]
    pub speaker: Option<String>,

    /// Only passages in this language, as a two-letter code
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,

    /// Only what was transcribed on this day or later, as in 2026-01-31
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub since: Option<Date>,

    /// Only what was transcribed on this day or earlier
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub until: Option<Date>,

    /// Only recordings in this folder and in those within it
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,

    /// Only transcripts with this tag
    #[arg(long)]
    pub tag: Option<String>,

    /// Most passages to print
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,

    /// Compare words only, without a model
    #[arg(long)]
    pub words_only: bool,

    /// First compute what is missing in the index of meanings, or all of it for another model
    #[arg(long, conflicts_with = "words_only")]
    pub reindex: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print no progress and no hints, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub machine: Machine,
}

/// A passage as `--json` prints it. Times within the recording are seconds.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    /// The transcript's number in the history.
    document: i64,
    title: &'a str,
    file: FilePath,
    /// When it was transcribed, in UTC.
    created: String,
    start: Time,
    end: Time,
    /// Start of the segment with the first word that was asked for, else as `start`.
    at: Time,
    speaker: Option<&'a str>,
    language: &'a str,
    text: &'a str,
    /// Words that were asked for; empty where the meaning alone matched.
    words: Vec<&'a str>,
    /// Cosine similarity of the meanings; null where words alone matched.
    similarity: Option<f32>,
}

pub async fn run(args: &Search, interrupt: Interrupt) -> Ended {
    search(args, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn search(args: &Search, mut interrupt: Interrupt) -> Result<(), Ended> {
    let filter = args.filter()?;
    let mut console = Console::new(args.quiet);
    let Some(documents) = existing()? else {
        console.info("The history has no transcripts yet: those of the window are kept there.");
        return if args.json { show(args, &[]) } else { Ok(()) };
    };
    let preferences = Preferences::of_this_user(&args.machine.flags())?;
    let meanings = Meanings::new(args.machine.engine_options(preferences.engine));
    let settings = EmbedderSettings {
        device: preferences.engine.device,
        threads: preferences.engine.threads,
        memory: preferences.memory,
    };
    let work = async {
        if args.reindex {
            reindex(&documents, &meanings, &settings, &mut console).await?;
        }
        let Some(query) = &args.query else { return Ok(()) };
        let meaning = match args.words_only {
            true => None,
            false => meaning_of(query, &documents, &meanings, &settings, &mut console).await?,
        };
        let question = Question { text: query.clone(), meaning, filter, most: args.limit };
        let found = documents.find(&question).map_err(|error| error.failure())?;
        if found.is_empty() {
            console.info("Nothing was found.");
        }
        show(args, &found)
    };
    let done = tokio::select! {
        done = work => done,
        () = interrupt.raised() => Err(Ended::Cancelled),
    };
    meanings.rest().await;
    done
}

impl Search {
    fn filter(&self) -> Result<Filter, Ended> {
        let begins = |day: Date| {
            let moment = day.to_zoned(TimeZone::system()).map(|begins| begins.timestamp().as_millisecond());
            moment.map_err(|error| Ended::Usage(error.to_string()))
        };
        let day_after = |day: Date| begins(day.tomorrow().unwrap_or(day));
        let folder = self.folder.as_ref().map(|folder| std::path::absolute(folder).unwrap_or(folder.clone()));
        Ok(Filter {
            speaker: self.speaker.clone(),
            language: self.language.clone(),
            since: self.since.map(begins).transpose()?,
            until: self.until.map(day_after).transpose()?,
            folder,
            tag: self.tag.clone(),
        })
    }
}

/// The user's history; `None` where nothing was ever kept.
pub fn existing() -> Result<Option<Documents>, Failure> {
    let file = folders::steno_state().map(|folder| folder.join(HISTORY_FILE));
    let Some(file) = file.filter(|file| file.is_file()) else { return Ok(None) };
    let (documents, aside) = Documents::open(&file).map_err(|error| error.failure())?;
    if let Some(aside) = aside {
        Console::new(false).warning(&aside.to_string());
    }
    Ok(Some(documents))
}

/// The installed models for meaning, the best for this history first.
fn models(documents: &Documents) -> Result<Vec<EmbeddingModel>, Failure> {
    let (_, languages) = documents.speakers_and_languages().map_err(|error| error.failure())?;
    Ok(advisor::embedding_models(languages.iter().all(|language| language == "en")))
}

async fn reindex(
    documents: &Documents,
    meanings: &Meanings,
    settings: &EmbedderSettings,
    console: &mut Console,
) -> Result<(), Failure> {
    let model = models(documents)?.into_iter().next().ok_or_else(|| {
        Failure::new(ErrorCode::ModelNotFound, "No model that compares meanings is installed.")
            .remedy("Install one: steno models pull multilingual-e5-small")
    })?;
    let mut passages = PassagesOf { meanings, model: &model, settings };
    let mut always = watch::Sender::new(true).subscribe();
    let mut last = IndexProgress::default();
    let index = IndexModel::from(&model);
    let done = indexing::bring_up_to_date(documents, &index, &mut passages, &mut always, |now| {
        last = now;
        let IndexProgress { done, total, per_second } = now;
        let left = if per_second > 0.0 {
            format!(", {per_second:.0} per second, {} left", wait((total - done) as f64 / per_second))
        } else {
            String::new()
        };
        console.redraw(&format!("{}: {done} of {total} passages{left}", model.name));
    });
    done.await?;
    console.info(&format!(
        "{} passages can be found by their meaning ({}).",
        last.total,
        printable(&model.name)
    ));
    Ok(())
}

/// What the query means to the model of the index. `None` where words alone can be compared, which is said.
async fn meaning_of(
    query: &str,
    documents: &Documents,
    meanings: &Meanings,
    settings: &EmbedderSettings,
    console: &mut Console,
) -> Result<Option<Meaning>, Failure> {
    let models = models(documents)?;
    if models.is_empty() {
        console.info(
            "Only words were compared. A model for meaning finds what was said in other words: \
             steno models pull multilingual-e5-small",
        );
        return Ok(None);
    }
    let index = documents.index().map_err(|error| error.failure())?;
    let model = |index: &Index| models.iter().find(|model| IndexModel::from(*model) == index.model).cloned();
    let Some((index, model)) = index.and_then(|index| Some((index.clone(), model(&index)?))) else {
        console.info("Only words were compared: the index of meanings is not made yet. Add --reindex.");
        return Ok(None);
    };
    if index.missing > 0 {
        let Index { missing, passages, .. } = index;
        console.info(&format!(
            "{missing} of {passages} passages can't be found by their meaning yet. Add --reindex."
        ));
    }
    let vectors = meanings.embed(&model, settings, TextRole::Query, vec![query.to_owned()]).await?;
    Ok(vectors.into_iter().next().map(|vector| Meaning { index: index.id, vector }))
}

fn show(args: &Search, found: &[FoundPassage]) -> Result<(), Ended> {
    print(|out| {
        if args.json {
            let all: Vec<Printed> = found.iter().map(printed).collect();
            serde_json::to_writer_pretty(&mut *out, &all)?;
            return writeln!(out);
        }
        found.iter().try_for_each(|one| write(out, one))
    })
}

fn printed(found: &FoundPassage) -> Printed<'_> {
    let created = jiff::Timestamp::from_millisecond(found.created).map(|time| time.to_string());
    Printed {
        document: found.document.0,
        title: &found.title,
        file: Path::new(&found.file).into(),
        created: created.unwrap_or_default(),
        start: found.start,
        end: found.end,
        at: found.at,
        speaker: found.speaker.as_deref(),
        language: &found.language,
        text: &found.text,
        words: found.words.iter().map(|word| &found.text[word.clone()]).collect(),
        similarity: found.similarity,
    }
}

fn write(out: &mut dyn Write, found: &FoundPassage) -> std::io::Result<()> {
    let speaker = found.speaker.as_deref().map(|name| format!("  {}", printable(name))).unwrap_or_default();
    let matched = match (found.words.is_empty(), found.similarity) {
        (false, Some(_)) => "words and meaning",
        (false, None) => "words",
        (true, _) => "meaning",
    };
    writeln!(out, "{}  {}{speaker}  ({matched})", printable(&found.title), clock(found.at))?;
    writeln!(out, "    {}", printable(&found.text))
}
