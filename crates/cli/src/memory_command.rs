use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use memory::bytes::human;
use supervisor::runs::{EngineRun, Runs};
use supervisor::status::{Card, Engine, Status};

use crate::console::Console;
use crate::ended::Ended;
use crate::outputs::print;
use crate::times::wait;

/// An engine that was asked to end gets this long.
const PATIENCE: Duration = Duration::from_secs(1);

const EXPLANATION: &str = "\
Lists Steno's engines and the memory they use. The weights of a model are mapped from its file; the system \
drops those pages by itself when memory is short. docs/troubleshooting.md explains every figure and every \
notice.";

/// Show what uses memory now; stop idle engines
#[derive(Debug, Args)]
#[command(after_help = EXPLANATION)]
pub struct Memory {
    /// Print JSON; with --watch one line per update
    #[arg(long)]
    pub json: bool,

    /// Update continuously until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub watch: Option<u32>,

    /// Stop idle engines; they are started again when needed
    #[arg(long, conflicts_with = "watch")]
    pub release: bool,

    /// With --release: also kill engines that don't respond within a second
    #[arg(long, requires = "release")]
    pub force: bool,

    /// Reset the peak of resident memory of every engine of this user. The peak of a GPU needs no reset:
    /// each report of an engine states the peak since the previous one
    #[arg(long, conflicts_with = "watch")]
    pub reset_peak: bool,
}

pub async fn run(args: &Memory) -> Ended {
    let runs = Runs::of_this_user();
    let mut all_done = true;
    if let Some(runs) = runs.as_ref().filter(|_| args.release) {
        all_done &= release(runs, args.force);
    }
    if let Some(runs) = runs.as_ref().filter(|_| args.reset_peak) {
        all_done &= reset_peaks(runs);
    }
    loop {
        let status = Status::now(runs.as_ref());
        let printed = print(|out| match (args.json, args.watch) {
            (true, Some(_)) => {
                serde_json::to_writer(&mut *out, &status)?;
                writeln!(out)
            }
            (true, None) => {
                serde_json::to_writer_pretty(&mut *out, &status)?;
                writeln!(out)
            }
            (false, _) => write(&status, out),
        });
        if let Err(ended) = printed {
            return ended;
        }
        let Some(seconds) = args.watch else { break };
        tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
        if !args.json
            && let Err(ended) = print(|out| writeln!(out))
        {
            return ended;
        }
    }
    if all_done { Ended::Done } else { Ended::SomeFailed }
}

/// Ends idle engines; whether all of them are gone.
fn release(runs: &Runs, force: bool) -> bool {
    let mut console = Console::new(false);
    let mut all_gone = true;
    let listed = runs.list();
    if listed.is_empty() {
        console.info("No engines are running.");
    }
    for run in listed {
        let name = name(&run);
        if run.busy {
            console.info(&format!("{name} is busy and keeps running."));
            continue;
        }
        match run.end(PATIENCE, force) {
            Ok(true) => console.info(&format!("{name} was stopped.")),
            Ok(false) if force => {
                all_gone = false;
                console.error(&format!("{name} can't be stopped, not even by force."));
            }
            Ok(false) => {
                all_gone = false;
                console
                    .error(&format!("{name} does not respond; `steno memory --release --force` stops it."));
            }
            Err(error) => {
                all_gone = false;
                console.error(&format!("{name} can't be stopped ({error})."));
            }
        }
    }
    all_gone
}

fn reset_peaks(runs: &Runs) -> bool {
    let mut console = Console::new(false);
    let mut all_done = true;
    for run in runs.list() {
        if let Err(error) = memory::platform::reset_peak_resident(run.engine.pid) {
            all_done = false;
            console.error(&format!("{}: its peak of resident memory can't be reset ({error}).", name(&run)));
        }
    }
    all_done
}

fn name(run: &EngineRun) -> String {
    format!("The engine with the process id {}", run.engine.pid)
}

fn write(status: &Status, out: &mut dyn Write) -> io::Result<()> {
    if let Some(problem) = &status.gpu.gpu_problem {
        line(out, "gpu", problem)?;
    }
    for card in &status.gpu.cards {
        write_card(card, out)?;
    }
    match &status.host {
        Ok(host) => line(out, "host", &format!("{} free of {}", human(host.free), human(host.total)))?,
        Err(unavailable) => line(out, "host", &unavailable.reason)?,
    }
    if status.engines.is_empty() {
        line(out, "engines", "none running")?;
    }
    status.engines.iter().try_for_each(|engine| write_engine(engine, out))
}

fn write_card(card: &Card, out: &mut dyn Write) -> io::Result<()> {
    let gpu = &card.gpu;
    let mut text = format!("{} ({}): {} free of {}", gpu.name, gpu.uuid, human(gpu.free), human(gpu.total));
    match &card.reading {
        Ok(reading) => {
            if let (Some(ours), Some(others)) = (reading.ours, reading.others) {
                text += &format!("; Steno {}, others {}", human(ours.held()), human(others));
            }
        }
        Err(unavailable) => text += &format!("; {}", unavailable.reason),
    }
    line(out, "gpu", &text)?;
    for process in &card.processes {
        let bytes = process.bytes.map_or("an unknown amount".into(), human);
        let ours = if process.ours { ", Steno's" } else { "" };
        let name = process.name.as_deref().unwrap_or("process");
        line(out, "", &format!("{name} [{}] {bytes}{ours}", process.pid))?;
    }
    Ok(())
}

fn write_engine(engine: &Engine, out: &mut dyn Write) -> io::Result<()> {
    let run = &engine.run;
    let model = run.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let since = wait(now.saturating_sub(run.since) as f64);
    let state = if run.busy { "busy" } else { "idle" };
    line(
        out,
        "engine",
        &format!(
            "process {} on {}{model}, {state}, for {since}, host process {}",
            run.engine.pid, run.device, run.host.pid
        ),
    )?;
    if let Some(anonymous) = engine.anonymous {
        let mapped = human(engine.mapped.unwrap_or(0));
        let peak = engine.peak_resident.map(|peak| format!(", at most {} resident", human(peak)));
        line(
            out,
            "",
            &format!("{} anonymous, {mapped} of mapped files{}", human(anonymous), peak.unwrap_or_default()),
        )?;
    }
    if let Some(pool) = engine.pool() {
        line(
            out,
            "",
            &format!(
                "at its last report {} in use of {} reserved, peak since the report before {}",
                human(pool.allocated),
                human(pool.reserved),
                human(pool.peak)
            ),
        )?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{name:<10}{value}")
}
