use clap::Args;
use config::Preferences;
use config::preferences::Values;
use hub::{Catalogue, Control, Model, TransferProgress, TransferStage, Wanted};
use serde::Serialize;
use wire::{ErrorCode, FilePath};

use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::times::wait;

const LONG: &str = "\
Download models.

NAME is a name from `steno models list --all`, OWNER/NAME of a model on the hub, or the address of a GGUF file \
or a whisper.cpp file. Nothing is downloaded unless this command asks for it. To resume an interrupted \
download, run the same command again. A model can be used only after all of its files have been verified.";

const SETTINGS: &str = "\
Settings of the network:
  The hub or a mirror can also be set with HF_ENDPOINT, a proxy with STENO_PROXY or HTTPS_PROXY; \
STENO_OFFLINE=1 and HF_HUB_OFFLINE=1 turn all network access off. In the config file:
    [network]
    hub = \"https://mirror.example\"
    proxy = \"http://proxy.example:3128\"
    off = true
  A token is taken from HF_TOKEN or from the file of the hub's own program, and sent to the hub only. \
`steno models connections` lists every connection that Steno made.";

/// Download models
#[derive(Debug, Args)]
#[command(long_about = LONG, after_long_help = SETTINGS)]
pub struct Pull {
    #[arg(required = true, value_name = "NAME|OWNER/NAME|ADDRESS")]
    pub models: Vec<String>,

    /// The name to install it under
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Accept files that differ from those of the first download
    #[arg(long)]
    pub renew: bool,

    #[command(flatten)]
    pub network: Network,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print no progress, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub struct Network {
    /// The server: the hub or a mirror [default: huggingface.co]
    #[arg(long, value_name = "ADDRESS")]
    pub hub: Option<String>,

    /// The proxy, such as http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub proxy: Option<String>,

    /// Never use the network; fail instead
    #[arg(long)]
    pub offline: bool,
}

impl Network {
    pub fn flags(&self) -> Values {
        let offline = self.offline.then(|| "true".to_owned());
        [("HF_ENDPOINT", self.hub.clone()), ("STENO_PROXY", self.proxy.clone()), ("STENO_OFFLINE", offline)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// A model of the store, as programs read it.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub path: FilePath,
    #[serde(flatten)]
    pub model: Model,
}

impl From<Model> for Shown {
    fn from(model: Model) -> Self {
        Self { path: model.folder.as_path().into(), model }
    }
}

pub async fn run(args: Pull, interrupt: Interrupt) -> Ended {
    pull(args, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn pull(args: Pull, interrupt: Interrupt) -> Result<(), Ended> {
    if args.name.is_some() && args.models.len() > 1 {
        return Err(Ended::Usage("--name can be used with one model only".into()));
    }
    let store = advisor::store::store()?;
    let catalogue = Catalogue::with_own(store.folder()).map_err(advisor::store::failure)?;
    let mut all = Vec::new();
    for name in &args.models {
        let wanted = catalogue.wanted(name).map_err(advisor::store::failure)?;
        let wanted = match &args.name {
            Some(name) => wanted.named(name).map_err(advisor::store::failure)?,
            None => wanted,
        };
        all.push(Wanted { renew: args.renew, ..wanted });
    }
    let mut console = Console::new(args.quiet);
    let mut models = Vec::new();
    for wanted in all {
        let model = get(&wanted, &args.network, &mut console, interrupt.clone()).await?;
        console.info(&format!("{} is installed in {}", model.id, wire::shown(&model.folder)));
        models.push(Shown::from(model));
    }
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &models)?;
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Downloads one model, unless the user interrupts.
pub async fn get(
    wanted: &Wanted,
    network: &Network,
    console: &mut Console,
    mut interrupt: Interrupt,
) -> Result<Model, Ended> {
    let preferences =
        Preferences::of_this_user(&network.flags()).map_err(|failure| Ended::Usage(failure.to_string()))?;
    let store = advisor::store::store()?;
    let puller = advisor::store::puller(&preferences, network.offline)?;
    let control = Control::default();
    let mut waited = None;
    let mut on_progress = |progress: TransferProgress| {
        // Where no line can be redrawn, a wait is still reported, once.
        if !console.redraws() && progress.why != waited {
            waited.clone_from(&progress.why);
            if let Some(why) = &progress.why {
                console.info(why);
            }
        }
        console.redraw(&line(&wanted.id, &progress));
    };
    let result = {
        let pulling = puller.pull(&store, wanted, &control, &mut on_progress);
        tokio::pin!(pulling);
        tokio::select! {
            result = &mut pulling => result,
            () = interrupt.raised() => {
                control.cancel();
                pulling.await
            }
        }
    };
    console.clear();
    result.map_err(|error| {
        let failure = advisor::store::failure(error);
        if failure.code == ErrorCode::Cancelled {
            console.info(&failure.to_string());
            return Ended::Cancelled;
        }
        Ended::Failed(failure)
    })
}

/// `whisper-tiny: 45 of 151 MB, 12.3 MB/s, 9 s left`
pub fn line(id: &str, progress: &TransferProgress) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let (done, total) = (megabytes(progress.done), megabytes(progress.total));
    match progress.stage {
        TransferStage::Look => format!("{id}: contacting the server"),
        TransferStage::Wait => {
            let why = progress.why.as_deref().unwrap_or("paused");
            let seconds = progress.wait.map(|seconds| format!(" Retrying in {}.", wait(seconds)));
            format!("{id}: {why}{}", seconds.unwrap_or_default())
        }
        TransferStage::Verify => format!("{id}: verifying {}", progress.file.as_deref().unwrap_or_default()),
        TransferStage::Install | TransferStage::Installed => format!("{id}: {done:.0} MB, complete"),
        TransferStage::Download | TransferStage::Copy => {
            let speed = progress.speed.map(|speed| format!(", {:.1} MB/s", speed / 1e6)).unwrap_or_default();
            let left = progress.left.map(|left| format!(", {} left", wait(left))).unwrap_or_default();
            format!("{id}: {done:.0} of {total:.0} MB{speed}{left}")
        }
    }
}
