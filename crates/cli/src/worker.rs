//! `steno worker`: jobs that others submitted, one after the other.

use std::ffi::OsString;
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use cluster::{Supervised, Told, WorkerOptions};
use config::Preferences;
use config::folders::steno_state;
use memory::bytes::human;
use supervisor::runs::Runs;
use supervisor::{Supervisor, SupervisorOptions};
use tokio::sync::watch;
use wire::{ErrorCode, Failure};

use crate::args::{EXIT_CODES, Machine, SpeakerModel, positive};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::memory_args::{Memory, SETTINGS};
use crate::nats::{Copies, Nats, Sftp, unless};
use crate::times::{clock, wait};
use crate::{models, platform};

/// After NATS could not be reached.
const AGAIN: Duration = Duration::from_secs(2);

const LONG: &str = "\
Take jobs that `steno submit` put into a queue in NATS, on any number of machines.

The worker takes jobs for the installed models that fit its memory, one after the other, and puts their transcripts \
into NATS. It fetches recordings itself and deletes them afterwards. If it is ended, it hands its job back; if it \
dies, another worker goes on where it was.";

/// Transcribe recordings that others submit, as one of many machines
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES, after_long_help = format!("{SETTINGS}\n\n{EXIT_CODES}"))]
pub struct Worker {
    /// What the worker is called in lists [default: the name of the machine]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Take jobs for this model only: its name or its folder; may be given more than once [default: every installed
    /// model that fits]
    #[arg(long, short, value_name = "NAME|FOLDER")]
    pub model: Vec<OsString>,

    /// Seconds without a sign of life from its worker after which a job goes to another one
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = positive)]
    pub redeliver_after: usize,

    /// Number of times that a job is tried before it is given up
    #[arg(long, value_name = "N", default_value = "5", value_parser = positive)]
    pub max_deliveries: usize,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub nats: Nats,
    #[command(flatten)]
    pub copies: Copies,
    #[command(flatten)]
    pub sftp: Sftp,
    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub memory: Memory,
    #[command(flatten)]
    pub speakers: SpeakerModel,
}

pub async fn run(args: Worker, mut interrupt: Interrupt) -> Ended {
    match work(args, &mut interrupt).await {
        // A worker is meant to be ended so.
        Ok(()) | Err(Ended::Cancelled) => Ended::Done,
        Err(ended) => ended,
    }
}

async fn work(args: Worker, interrupt: &mut Interrupt) -> Result<(), Ended> {
    let mut console = Console::new(args.quiet);
    let flags = [args.memory.flags(), args.machine.flags(), args.speakers.flags()].concat();
    let preferences =
        Preferences::of_this_user(&flags).map_err(|failure| Ended::Usage(failure.to_string()))?;
    SpeakerModel::check(&preferences)?;
    let Some(state) = steno_state() else {
        let message = "There is no folder for fetched recordings. STENO_STATE_FOLDER names one.";
        return Err(Failure::new(ErrorCode::OutputUnwritable, message).into());
    };
    let models = if args.model.is_empty() {
        advisor::list_models()
    } else {
        args.model.iter().map(|model| models::named(model)).collect::<Result<_, _>>()?
    };
    let options = WorkerOptions {
        name: args.name.clone().unwrap_or_else(platform::host_name),
        state,
        models,
        preferences: preferences.clone(),
        device: args.machine.device(),
        ssh: args.sftp.ssh(&preferences),
        redeliver_after: Duration::from_secs(args.redeliver_after as u64),
        max_deliveries: args.max_deliveries as u64,
    };
    let access = args.nats.access(&preferences, args.copies.replicas);
    let mut is_told = false;
    let cluster = loop {
        match unless(interrupt, access.connect()).await {
            // It may be started after its workers.
            Err(Ended::Failed(failure)) if failure.code == ErrorCode::NetworkFailed => {
                if !std::mem::replace(&mut is_told, true) {
                    console.warning(&format!("{failure} Waiting for it."));
                }
                tokio::select! {
                    () = tokio::time::sleep(AGAIN) => {}
                    () = interrupt.raised() => return Err(Ended::Cancelled),
                }
            }
            connected => break connected?,
        }
    };
    let runs = Runs::of_this_user();
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: args.machine.engine_options(preferences.engine),
        // What a job reached is in NATS, where another machine finds it.
        journal: None,
        runs: runs.clone(),
        voices: supervisor::voices_file(),
        choose_model: None,
        memory: preferences.memory.clone(),
    });
    let runner = Supervised::new(supervisor.clone(), runs, preferences);
    let worker = cluster::Worker::new(cluster, runner, options).await?;
    let ready = tokio::select! {
        engine = supervisor.ready() => engine.map(drop).map_err(Ended::Failed),
        () = interrupt.raised() => Err(Ended::Cancelled),
    };
    if let Err(ended) = ready {
        supervisor.shutdown().await;
        return Err(ended);
    }
    let status = worker.status();
    let fitting: Vec<&str> =
        status.models.iter().filter(|offer| offer.fits).map(|offer| offer.model.as_str()).collect();
    console.info(&format!(
        "Worker {} takes jobs for {} on {} ({} free). Ctrl-C ends it.",
        status.name,
        fitting.join(", "),
        status.device,
        human(status.free)
    ));
    let (stopping, stop) = watch::channel(false);
    let console = Mutex::new(console);
    let tell = |told: Told| {
        let mut console = console.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        say(&mut console, &told);
    };
    let mut running = std::pin::pin!(worker.run(stop, tell));
    tokio::select! {
        () = &mut running => {}
        () = interrupt.raised() => {
            stopping.send_replace(true);
            running.await;
        }
    }
    supervisor.shutdown().await;
    Ok(())
}

fn say(console: &mut Console, told: &Told) {
    match told {
        Told::Began { name, resumed_at: None } => console.info(&format!("{}: begins", wire::printable(name))),
        Told::Began { name, resumed_at: Some(at) } => {
            let name = wire::printable(name);
            console.info(&format!("{name}: goes on at {}, where another worker left it", clock(*at)));
        }
        Told::Finished { name, duration, seconds } => {
            let (name, length) = (wire::printable(name), clock(*duration));
            console.info(&format!("{name}: {length} in {}", wait(*seconds)));
        }
        Told::PutBack { failure, .. } => console.warning(&format!("{failure} It will be tried again.")),
        Told::GaveUp { failure, .. } => console.error(&failure.to_string()),
        Told::HandedBack { name } => {
            console.info(&format!("{}: handed back to the queue", wire::printable(name)));
        }
        Told::Waiting(failure) => console.warning(&format!("{} Waiting for it.", failure.message)),
        Told::Back => console.info("NATS answers again."),
    }
}
