use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use steno_engine::{ALLOCATOR, platform, serve};
use wire::{Backend, PROTOCOL_VERSION, exit_status};

#[global_allocator]
static COUNTED: memory::allocation::Counted = ALLOCATOR;

const BACKEND: Backend = if cfg!(feature = "cuda") { Backend::Cuda } else { Backend::Cpu };

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str()).collect();
    match arguments.as_slice() {
        [] if std::io::stdin().is_terminal() => {
            let _ = writeln!(std::io::stderr(), "{}", explanation());
            ExitCode::from(exit_status::USAGE as u8)
        }
        [] => match platform::take_streams() {
            Ok(streams) => serve(streams, BACKEND, pipeline::Engine::new),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "steno-engine: standard streams can't be used: {error}");
                ExitCode::FAILURE
            }
        },
        [Some("--version" | "-V")] => {
            let _ = writeln!(std::io::stdout(), "{}", version());
            ExitCode::SUCCESS
        }
        [Some("--help" | "-h")] => {
            let _ = writeln!(std::io::stdout(), "{}", explanation());
            ExitCode::SUCCESS
        }
        _ => {
            let _ = writeln!(std::io::stderr(), "steno-engine: unknown arguments.\n\n{}", explanation());
            ExitCode::from(exit_status::USAGE as u8)
        }
    }
}

fn version() -> String {
    let backend = match BACKEND {
        Backend::Cpu => "cpu",
        Backend::Cuda => "cuda",
    };
    format!("steno-engine {} ({backend}, protocol {PROTOCOL_VERSION})", env!("CARGO_PKG_VERSION"))
}

fn explanation() -> String {
    format!(
        "{}\n\n\
         The part of Steno that decodes audio and computes. It is started by the window and by\n\
         the command line `steno` and speaks to them over its standard streams in a form that\n\
         isn't meant for people. To transcribe a recording, run\n\n    \
         steno transcribe RECORDING\n\n\
         --help     this text\n\
         --version  version, backend and protocol",
        version()
    )
}
