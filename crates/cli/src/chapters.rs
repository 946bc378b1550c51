//! `steno chapters`: the parts of a transcript, each about one subject.

use std::path::{Path, PathBuf};

use clap::Args;
use config::Preferences;
use library::documents::UndoPosition;
use library::{DocumentId, Documents};
use serde::Serialize;
use supervisor::chapters::ChaptersError;
use supervisor::meanings::Meanings;
use supervisor::{EmbedderSettings, chapters};
use transcript::chapters::Chapter;
use transcript::edit::Edit;
use transcript::{Time, Transcript, edit};
use wire::{ErrorCode, Failure, printable};

use crate::args::{EXIT_CODES, Machine};
use crate::console::Console;
use crate::ended::{Ended, from_load};
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::search;
use crate::speakers::replace;
use crate::times::clock;

const LONG: &str = "\
Divide a transcript into chapters where its subject changes, and name them after words that are said in them.

It takes a model for meaning (see `steno models`); nothing is transcribed again. The chapters are printed; \
--save writes them into the transcript, from which `steno export` makes other formats: chapters for YouTube, \
chapters-vtt for players, and headings in documents.";

/// Divide a transcript into chapters where its subject changes
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Chapters {
    /// A transcript saved with --format json, or the number of one in the history (`document` in what
    /// `steno search --json` prints)
    #[arg(value_name = "FILE.json|NUMBER")]
    pub transcript: PathBuf,

    /// Write the chapters into the transcript, in place of those that it has
    #[arg(long)]
    pub save: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub machine: Machine,
}

/// A chapter as `--json` prints it. Times are seconds.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    start: Time,
    end: Time,
    title: &'a str,
}

pub async fn run(args: &Chapters, mut interrupt: Interrupt) -> Ended {
    let preferences = match Preferences::of_this_user(&args.machine.flags()) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
    let meanings = Meanings::new(args.machine.engine_options(preferences.engine));
    let settings = EmbedderSettings {
        device: preferences.engine.device,
        threads: preferences.engine.threads,
        memory: preferences.memory,
    };
    let done = tokio::select! {
        done = find(args, &meanings, &settings) => done,
        () = interrupt.raised() => Err(Ended::Cancelled),
    };
    meanings.rest().await;
    done.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn find(args: &Chapters, meanings: &Meanings, settings: &EmbedderSettings) -> Result<(), Ended> {
    let mut console = Console::new(args.quiet);
    let (mut transcript, place) = Place::read(&args.transcript)?;
    let is_english = |language: &str| language == "en";
    let others = transcript.segments.iter().filter_map(|segment| segment.language.as_deref());
    let english_only = is_english(&transcript.language) && others.into_iter().all(is_english);
    let model = advisor::embedding_model(english_only);
    let found = chapters::find(&transcript, meanings, model.as_ref(), settings, |done, all| {
        console.redraw(&format!("{done} of {all} texts compared"));
    })
    .await;
    console.clear();
    let found = found.map_err(|error| match error {
        // It is no fault of a file that no model is installed.
        ChaptersError::TooShort | ChaptersError::OneSubject => place.named(error.failure()),
        other => other.failure(),
    })?;
    if args.save {
        place.save(&mut transcript, found)?;
        console.info(&format!(
            "{} chapters written to {}",
            transcript.chapters.len(),
            wire::shown(&args.transcript)
        ));
    } else {
        transcript.chapters = found;
    }
    if args.json || !args.save { show(args, &transcript) } else { Ok(()) }
}

/// Where a transcript was read.
enum Place {
    File(PathBuf),
    History(Documents, DocumentId, UndoPosition),
}

impl Place {
    fn read(named: &Path) -> Result<(Transcript, Self), Ended> {
        let number = named.to_str().and_then(|text| text.parse().ok()).filter(|_| !named.exists());
        let Some(number) = number else {
            let transcript = Transcript::load(named).map_err(|error| from_load(named, &error))?;
            return Ok((transcript, Self::File(named.into())));
        };
        let missing = || {
            let text = format!("The history has no transcript {number}.");
            Failure::new(ErrorCode::TranscriptGone, text)
                .remedy("`steno search --json` prints the numbers, as `document`.")
        };
        let documents = search::existing()?.ok_or_else(missing)?;
        let opened = documents.read(DocumentId(number)).map_err(|error| error.failure())?;
        let opened = opened.ok_or_else(missing)?;
        Ok((opened.transcript, Self::History(documents, DocumentId(number), opened.undo_position)))
    }

    fn named(&self, failure: Failure) -> Failure {
        match self {
            Self::File(file) => failure.file(file.as_path()),
            Self::History(..) => failure,
        }
    }

    /// Gives the transcript the chapters, where it was read: in the history as an edit, which the window can
    /// undo.
    fn save(&self, transcript: &mut Transcript, found: Vec<Chapter>) -> Result<(), Ended> {
        match self {
            Self::File(file) => {
                transcript.chapters = found;
                replace(file, transcript)?;
            }
            Self::History(documents, document, position) => {
                let chapters = found.into_iter().map(|chapter| (chapter.segment, chapter.title)).collect();
                let internal = |error: String| Failure::new(ErrorCode::Internal, error);
                let changes = Edit::SetChapters { chapters }.plan(transcript);
                let changes = changes.map_err(|error| internal(error.to_string()))?;
                if !changes.is_empty() {
                    documents.record(*document, position.done, &changes).map_err(|error| error.failure())?;
                    edit::apply(transcript, &changes).map_err(|error| internal(error.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

fn show(args: &Chapters, transcript: &Transcript) -> Result<(), Ended> {
    let chapters = &transcript.chapters;
    let end = transcript.segments.iter().map(|segment| segment.end).max().unwrap_or_default();
    let ends = chapters.iter().skip(1).map(|next| next.start).chain([end.max(transcript.source.duration)]);
    print(|out| {
        if args.json {
            let all: Vec<Printed> = chapters
                .iter()
                .zip(ends)
                .map(|(chapter, end)| Printed { start: chapter.start, end, title: &chapter.title })
                .collect();
            serde_json::to_writer_pretty(&mut *out, &all)?;
            return writeln!(out);
        }
        chapters
            .iter()
            .try_for_each(|chapter| writeln!(out, "{}  {}", clock(chapter.start), printable(&chapter.title)))
    })
}
