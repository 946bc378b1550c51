//! `steno words`: words that the user corrects again and again.

use clap::Args;
use wire::{ErrorCode, Failure, printable};

use crate::args::EXIT_CODES;
use crate::console::Console;
use crate::ended::Ended;
use crate::outputs::print;
use crate::search::existing;

const LONG: &str = "\
List words that you wrote in place of others at least twice, in the transcripts of the history, one per line.

Let later recordings expect them: `steno words > words.txt`, then `steno transcribe talk.mp3 --vocabulary-file \
words.txt`. The window offers them beside \"Names and words to expect\". Words that the transcripts mostly have \
without a correction are left out, and those that you ignore, here or in the window.";

/// List words that you correct again and again
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Words {
    /// Most words to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,

    /// Leave this word out from now on, here and in the window; spelled as it is listed (can be repeated)
    #[arg(long, value_name = "WORD", value_parser = word)]
    pub ignore: Vec<String>,

    /// No longer leave this word out (can be repeated)
    #[arg(long, value_name = "WORD", value_parser = word, conflicts_with = "ignore")]
    pub restore: Vec<String>,

    /// Print the words that are left out instead
    #[arg(long, conflicts_with_all = ["ignore", "restore", "limit", "json"])]
    pub ignored: bool,

    /// Print JSON, with how often each was written and what was there before
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Words) -> Ended {
    list(args).map_or_else(|ended| ended, |()| Ended::Done)
}

fn list(args: &Words) -> Result<(), Ended> {
    let documents = existing()?;
    for word in &args.ignore {
        let Some(documents) = &documents else {
            return Err(refused("There is no history yet, so no word is suggested.")
                .remedy("Correct a transcript in the window first.")
                .into());
        };
        documents.ignore_word(word, true).map_err(|error| error.failure())?;
    }
    let ignored = match &documents {
        Some(documents) => documents.ignored_words().map_err(|error| error.failure())?,
        None => Vec::new(),
    };
    if args.ignored {
        return print(|out| ignored.iter().try_for_each(|word| writeln!(out, "{}", printable(word))));
    }
    for word in &args.restore {
        let is_changed = match &documents {
            Some(documents) => documents.ignore_word(word, false).map_err(|error| error.failure())?,
            None => false,
        };
        if !is_changed {
            return Err(refused(&format!("\"{word}\" is not ignored."))
                .remedy("List the ignored words with `steno words --ignored`.")
                .into());
        }
    }
    let words = match documents {
        Some(documents) => documents.corrected_words(args.limit).map_err(|error| error.failure())?,
        None => Vec::new(),
    };
    if words.is_empty() && !args.json {
        let mut console = Console::new(false);
        if ignored.is_empty() {
            console.info("No word was corrected twice in the transcripts of the history.");
        } else {
            console.info("No word is left to suggest. `steno words --ignored` lists the ignored ones.");
        }
    }
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &words)?;
            return writeln!(out);
        }
        words.iter().try_for_each(|one| writeln!(out, "{}", printable(&one.word)))
    })
}

fn refused(message: &str) -> Failure {
    Failure::new(ErrorCode::BadSettings, message)
}

/// A word as it is printed, without the space around it.
fn word(text: &str) -> Result<String, String> {
    let word = text.trim();
    if word.is_empty() { Err("a word is missing".to_owned()) } else { Ok(word.to_owned()) }
}
