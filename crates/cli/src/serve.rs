//! `steno serve`: an HTTP API for other programs and machines.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use config::Preferences;
use config::folders::steno_state;
use server::tokens::Tokens;
use server::{Limits, Options, Server, TlsFiles};
use supervisor::runs::Runs;
use supervisor::{Supervisor, SupervisorOptions};
use transcript::Time;
use wire::{ErrorCode, Failure};

use crate::args::{EXIT_CODES, Machine, SpeakerModel, positive};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::memory_args::{Memory, SETTINGS};
use crate::outputs::print;
use crate::{models, times};

const LONG: &str = "\
Serve an HTTP API: OpenAI's endpoints for transcriptions and translations, and jobs with events and every format.

Only this computer can use it, unless --listen names an address that others can reach: then every request needs a \
token. Recordings are transcribed one after the other. A server that is ended or killed goes on with its jobs when it \
is started again. GET /openapi.json describes the API.";

/// Serve an HTTP API for other programs and machines
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES, after_long_help = format!("{SETTINGS}\n\n{EXIT_CODES}"))]
pub struct Serve {
    /// Address and port to listen on; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8642")]
    pub listen: SocketAddr,

    /// Model for requests that name none, or whisper-1: its name or its folder [default: the recommended installed
    /// model]
    #[arg(long, short, value_name = "NAME|FOLDER", env = "STENO_MODEL", hide_env_values = true)]
    pub model: Option<OsString>,

    /// Folder whose recordings jobs may name by their path; may be given more than once
    #[arg(long, value_name = "FOLDER")]
    pub allow: Vec<PathBuf>,

    /// File that gets a line per request: time, token, method, path, status, bytes of the answer, seconds
    #[arg(long, value_name = "FILE")]
    pub request_log: Option<PathBuf>,

    #[command(flatten)]
    pub access: Access,
    #[command(flatten)]
    pub bounds: Bounds,
    #[command(flatten)]
    pub machine: Machine,
    #[command(flatten)]
    pub memory: Memory,
    #[command(flatten)]
    pub speakers: SpeakerModel,
}

/// Who may use it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub struct Access {
    /// Create a token for a client of this name, print it, and serve nothing; it can't be shown again
    #[arg(long, value_name = "NAME")]
    pub create_token: Option<String>,

    /// Remove the token of this name, and serve nothing
    #[arg(long, value_name = "NAME", conflicts_with = "create_token")]
    pub remove_token: Option<String>,

    /// Ask for a token on a loopback address too, for instance behind a proxy
    #[arg(long)]
    pub require_token: bool,

    /// Web page that may use the API, by its origin: scheme, host and port; may be given more than once
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,

    /// Certificate for HTTPS, with those above it, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// What requests may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct Bounds {
    /// Largest upload, such as 500MiB [default: 2GiB]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    pub max_upload: Option<u64>,

    /// Longest recording: seconds, or a time such as 1:30:00 [default: 12 hours]
    #[arg(long, value_name = "SECONDS", value_parser = times::length)]
    pub max_duration: Option<Time>,

    /// Maximum number of jobs that wait; further ones are refused until later [default: 100]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub queue: Option<usize>,

    /// Maximum number of unfinished jobs per token [default: 50]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub jobs_per_token: Option<usize>,

    /// Maximum number of connections [default: 256]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub connections: Option<usize>,

    /// Time for the head of a request, and for an idle connection, in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub header_timeout: Option<usize>,

    /// Time in which an upload must bring at least 16 kB, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub body_timeout: Option<usize>,

    /// How long transcripts are kept on the server, in hours [default: 24]
    #[arg(long, value_name = "HOURS", value_parser = positive)]
    pub keep_results: Option<usize>,
}

impl Bounds {
    fn limits(&self) -> Limits {
        let usual = Limits::default();
        let seconds = |given: Option<usize>, usual| given.map_or(usual, |it| Duration::from_secs(it as u64));
        let hours = self.keep_results.map(|hours| hours.saturating_mul(3600));
        Limits {
            upload: self.max_upload.unwrap_or(usual.upload),
            duration: self.max_duration.unwrap_or(usual.duration),
            waiting: self.queue.unwrap_or(usual.waiting),
            jobs_per_token: self.jobs_per_token.unwrap_or(usual.jobs_per_token),
            connections: self.connections.unwrap_or(usual.connections),
            header_time: seconds(self.header_timeout, usual.header_time),
            body_time: seconds(self.body_timeout, usual.body_time),
            keep: seconds(hours, usual.keep),
        }
    }
}

fn amount(text: &str) -> Result<u64, String> {
    memory::bytes::parse(text).map_err(|error| error.to_string())
}

pub async fn run(args: Serve, interrupt: Interrupt) -> Ended {
    let Some(state) = steno_state() else {
        let message = "There is no folder for the server's jobs. STENO_STATE_FOLDER names one.";
        return Failure::new(ErrorCode::OutputUnwritable, message).into();
    };
    let tokens = Tokens::of(&state);
    let done = match (&args.access.create_token, &args.access.remove_token) {
        (Some(name), _) => match tokens.create(name) {
            Ok(token) => print(|out| writeln!(out, "{token}")),
            Err(failure) => Err(failure.into()),
        },
        (None, Some(name)) => tokens.remove(name).map_err(Ended::from),
        (None, None) => serve(args, state, interrupt).await,
    };
    done.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn serve(args: Serve, state: PathBuf, mut interrupt: Interrupt) -> Result<(), Ended> {
    let flags = [args.memory.flags(), args.machine.flags(), args.speakers.flags()].concat();
    let preferences =
        Preferences::of_this_user(&flags).map_err(|failure| Ended::Usage(failure.to_string()))?;
    SpeakerModel::check(&preferences)?;
    let model = args.model.as_deref().map(models::named).transpose()?;
    let mut console = Console::new(false);
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: args.machine.engine_options(preferences.engine),
        journal: supervisor::journal::open(|problem| console.warning(&problem)),
        runs: Runs::of_this_user(),
        voices: supervisor::voices_file(),
        choose_model: Some(advisor::by_language::choose),
        memory: preferences.memory.clone(),
    });
    let Access { tls_cert, tls_key, origin, require_token, .. } = args.access;
    let tls = tls_cert.zip(tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = Server::bind(Options {
        listen: args.listen,
        state,
        supervisor,
        preferences,
        model,
        device: args.machine.device(),
        allow: args.allow,
        origins: origin,
        require_token,
        tls,
        limits: args.bounds.limits(),
        request_log: args.request_log,
    })
    .await?;
    let address = server.address();
    console.info(&format!(
        "Listening on {scheme}://{address}. Ctrl-C ends the server; its jobs go on at the next start."
    ));
    if !address.ip().is_loopback() && scheme == "http" {
        console.warning(&format!(
            "Recordings, texts and tokens are not encrypted on their way. Use --tls-cert and --tls-key, or listen on \
             127.0.0.1 with --require-token and put a proxy with TLS in front: caddy reverse-proxy --from NAME --to \
             127.0.0.1:{}",
            address.port()
        ));
    }
    server.run(async { interrupt.raised().await }).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_names_the_limits_in_force() {
        let Limits { upload, duration, waiting, jobs_per_token, connections, header_time, body_time, keep } =
            Limits::default();
        let command = crate::args::Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        for (option, value) in [
            ("max_upload", format!("{}GiB", upload >> 30)),
            ("max_duration", format!("{} hours", duration.seconds() / 3600.0)),
            ("queue", waiting.to_string()),
            ("jobs_per_token", jobs_per_token.to_string()),
            ("connections", connections.to_string()),
            ("header_timeout", header_time.as_secs().to_string()),
            ("body_timeout", body_time.as_secs().to_string()),
            ("keep_results", (keep.as_secs() / 3600).to_string()),
        ] {
            let argument = serve.get_arguments().find(|argument| argument.get_id() == option).unwrap();
            let help = argument.get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("[default: {value}]")), "{help}");
        }
    }
}
