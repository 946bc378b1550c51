use std::path::PathBuf;

use clap::{Args, CommandFactory};
use transcript::save::{self, Existing};
use wire::{ErrorCode, Failure};

use crate::args::Cli;
use crate::ended::{Ended, from_save};
use crate::outputs::print;

const EXAMPLE: &str = "\
To read it now:
  steno man | man -l -
To install all pages:
  steno man --output ~/.local/share/man/man1";

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Man {
    /// The command, such as transcribe [default: the overview]
    pub command: Option<String>,

    /// Write the pages of all commands to this folder
    #[arg(long, short, value_name = "FOLDER", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &Man) -> Ended {
    write(args).map_or_else(|ended| ended, |()| Ended::Done)
}

fn write(args: &Man) -> Result<(), Ended> {
    let pages = pages()?;
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::new(ErrorCode::OutputUnwritable, format!("The folder could not be created ({error})."))
                .remedy("Choose another folder.")
                .file(folder)
        })?;
        for (name, page) in &pages {
            let path = folder.join(format!("{name}.1"));
            save::write_file(&path, Existing::Replace, |out| out.write_all(page))
                .map_err(|error| from_save(&error))?;
        }
        return Ok(());
    }
    let wanted = match &args.command {
        Some(command) => format!("steno-{command}"),
        None => "steno".into(),
    };
    match pages.iter().find(|(name, _)| *name == wanted) {
        Some((_, page)) => print(|out| out.write_all(page)),
        None => {
            let known: Vec<_> = pages.iter().filter_map(|(name, _)| name.strip_prefix("steno-")).collect();
            Err(Ended::Usage(format!("there is no such page; available pages: {}", known.join(", "))))
        }
    }
}

/// Name and text of every page, the overview first.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Ended> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    for page in
        std::iter::once(&command).chain(command.get_subcommands().filter(|it| it.get_name() != "help"))
    {
        let name = page.get_display_name().unwrap_or(page.get_name()).to_string();
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone()).render(&mut text)?;
        pages.push((name, text));
    }
    Ok(pages)
}
