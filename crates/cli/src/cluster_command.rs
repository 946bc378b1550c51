//! `steno cluster`: workers, queue and rates.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use cluster::{Overview, WorkerStatus};
use config::Preferences;
use config::preferences::Values;
use memory::bytes::human;

use crate::args::EXIT_CODES;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::nats::{Nats, unless};
use crate::outputs::print;
use crate::times::{clock, wait};

/// Show the workers, the queue, its rate and the time left
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Cluster {
    /// Print JSON; with --watch one line per update
    #[arg(long)]
    pub json: bool,

    /// Update continuously until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub watch: Option<u32>,

    #[command(flatten)]
    pub nats: Nats,
}

pub async fn run(args: &Cluster, mut interrupt: Interrupt) -> Ended {
    match show(args, &mut interrupt).await {
        Ok(()) => Ended::Done,
        Err(Ended::Cancelled) if args.watch.is_some() => Ended::Done,
        Err(ended) => ended,
    }
}

async fn show(args: &Cluster, interrupt: &mut Interrupt) -> Result<(), Ended> {
    let preferences =
        Preferences::of_this_user(&Values::new()).map_err(|failure| Ended::Usage(failure.to_string()))?;
    let cluster = args.nats.connect(&preferences, 1, interrupt).await?;
    loop {
        let overview = unless(interrupt, cluster.overview()).await?;
        print(|out| match (args.json, args.watch) {
            (true, Some(_)) => {
                serde_json::to_writer(&mut *out, &overview)?;
                writeln!(out)
            }
            (true, None) => {
                serde_json::to_writer_pretty(&mut *out, &overview)?;
                writeln!(out)
            }
            (false, _) => write(&overview, out),
        })?;
        let Some(seconds) = args.watch else { return Ok(()) };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(u64::from(seconds))) => {}
            () = interrupt.raised() => return Ok(()),
        }
        if !args.json {
            print(|out| writeln!(out))?;
        }
    }
}

fn write(overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    let (mut waiting, mut running) = (0, 0);
    for model in &overview.models {
        waiting += model.waiting;
        running += model.running;
    }
    writeln!(
        out,
        "{} waiting, {running} running, {} finished, {} failed",
        waiting, overview.finished, overview.failed
    )?;
    if let (Some(jobs), Some(speed)) = (overview.jobs_per_minute, overview.speed) {
        let left = match overview.left {
            Some(left) if waiting + running > 0 => format!(", about {} left", wait(left)),
            _ => String::new(),
        };
        writeln!(out, "{jobs:.1} jobs per minute, {speed:.1} times real time{left}")?;
    }
    for unplaced in &overview.unplaced {
        writeln!(out, "{} They wait for {}.", unplaced.text(), wait(unplaced.seconds as f64))?;
    }
    if overview.workers.is_empty() {
        return writeln!(out, "No workers.");
    }
    overview.workers.iter().try_for_each(|worker| write_worker(worker, out))
}

fn write_worker(worker: &WorkerStatus, out: &mut dyn Write) -> io::Result<()> {
    let (free, total) = (human(worker.free), human(worker.total));
    let name = wire::printable(&worker.name);
    write!(out, "{name} (process {}): {}, {free} of {total} free", worker.pid, worker.device)?;
    let fitting: Vec<&str> =
        worker.models.iter().filter(|offer| offer.fits).map(|offer| offer.model.as_str()).collect();
    write!(out, ", models {}", fitting.join(", "))?;
    match worker.speed() {
        Some(speed) => write!(out, ", {} finished, {speed:.1} times real time", worker.finished)?,
        None => write!(out, ", nothing finished yet")?,
    }
    match &worker.job {
        Some(under) => {
            let of = under.duration.map(|duration| format!(" of {}", clock(duration))).unwrap_or_default();
            let name = wire::printable(&under.name);
            writeln!(out, "; {name} at {}{of} with {}", clock(under.position), under.model)
        }
        None => writeln!(out, "; idle"),
    }
}
