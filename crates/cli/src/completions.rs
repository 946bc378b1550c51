use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::ended::Ended;
use crate::outputs::print;

const EXAMPLE: &str = "\
For bash, for example:
  steno completions bash > ~/.local/share/bash-completion/completions/steno";

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

pub fn run(args: &Completions) -> Ended {
    // Made in memory first: the generator panics where writing fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "steno", &mut script);
    print(|out| out.write_all(&script)).map_or_else(|ended| ended, |()| Ended::Done)
}
