//! `steno collect`: the transcripts of a queue, as files.

use clap::Args;
use config::Preferences;
use config::preferences::Values;

use crate::args::EXIT_CODES;
use crate::collected::{Collector, Files};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::nats::Nats;

const LONG: &str = "\
Write the transcripts of a queue's finished jobs, and report jobs that were given up.

Files are named after the recordings. If two have the same name, the one that was submitted later keeps its extension \
(talk.wav.srt). Every file is written whole or not at all, and those that are there are left alone, so the command can \
be repeated until everything is collected. Results stay in NATS until --remove.";

/// Write the transcripts that workers made
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Collect {
    #[command(flatten)]
    pub files: Files,

    /// Wait until all jobs are finished
    #[arg(long)]
    pub wait: bool,

    /// Remove from NATS what was collected, and jobs that were given up; these can be submitted again
    #[arg(long)]
    pub remove: bool,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub nats: Nats,
}

pub async fn run(args: Collect, mut interrupt: Interrupt) -> Ended {
    match collect(args, &mut interrupt).await {
        Ok(ended) | Err(ended) => ended,
    }
}

async fn collect(args: Collect, interrupt: &mut Interrupt) -> Result<Ended, Ended> {
    let request = args.files.request().map_err(Ended::Usage)?;
    let preferences =
        Preferences::of_this_user(&Values::new()).map_err(|failure| Ended::Usage(failure.to_string()))?;
    let cluster = args.nats.connect(&preferences, 1, interrupt).await?;
    let console = Console::new(args.quiet);
    let collector = Collector::new(cluster, None, request, args.remove, console, interrupt).await?;
    Ok(collector.run(args.wait, interrupt).await)
}
