use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc;

use memory::allocation::limited;
use player::{DECODING_BYTES, Server};
use wire::{ErrorCode, Failure, PlayerAnswer, PlayerCommand};

#[global_allocator]
static COUNTED: memory::allocation::Counted = memory::allocation::Counted::new(end_at_decoding_limit);

/// The window starts another player when this one ends.
fn end_at_decoding_limit() -> ! {
    // Allocates nothing, which an allocator must not do.
    std::process::abort()
}

const EXPLANATION: &str = "\
The part of Steno that decodes recordings for listening. The window starts it
and speaks to it over its standard streams; it ends when its input closes.

--port N   serve at this port of the machine itself [default: a free one]
--help     this text
--version  the version";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] if std::io::stdin().is_terminal() => {
            eprintln!("{EXPLANATION}");
            ExitCode::from(2)
        }
        [] => serve(0),
        ["--version" | "-V"] => {
            println!("steno-player {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            println!("{EXPLANATION}");
            ExitCode::SUCCESS
        }
        ["--port", port] if let Ok(port) = port.parse() => serve(port),
        _ => {
            eprintln!("steno-player: unknown arguments.\n\n{EXPLANATION}");
            ExitCode::from(2)
        }
    }
}

fn serve(port: u16) -> ExitCode {
    let server = match Server::start_at(port) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("steno-player: this machine cannot be served: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (lines, commands) = mpsc::channel();
    // In a thread of its own, so that the process ends with its host even while opening a recording.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    for line in commands {
        let answer = match serde_json::from_str(&line) {
            Ok(PlayerCommand::Open { path, track, keep }) => {
                let keep = keep.as_ref().map(|keep| keep.as_path());
                match limited(DECODING_BYTES, || server.open(path.as_path(), track, keep)) {
                    Ok(opened) => PlayerAnswer::Opened(opened),
                    Err(failure) => PlayerAnswer::Failed { failure },
                }
            }
            Ok(PlayerCommand::Probe { path }) => {
                match limited(DECODING_BYTES, || player::probe(path.as_path())) {
                    Ok(probed) => PlayerAnswer::Probed(probed),
                    Err(failure) => PlayerAnswer::Failed { failure },
                }
            }
            Ok(PlayerCommand::Clip { path, track, span, out, replace }) => {
                let (path, out) = (path.as_path(), out.as_path());
                match limited(DECODING_BYTES, || player::clip(path, track, span, out, replace)) {
                    Ok(()) => PlayerAnswer::Clipped,
                    Err(failure) => PlayerAnswer::Failed { failure },
                }
            }
            Ok(PlayerCommand::Close { token }) => {
                server.close(&token);
                PlayerAnswer::Closed
            }
            Err(error) => {
                let text = format!("The player received an unknown command: {error}.");
                PlayerAnswer::Failed { failure: Failure::new(ErrorCode::ProtocolMismatch, text) }
            }
        };
        let Ok(mut text) = serde_json::to_string(&answer) else { return ExitCode::FAILURE };
        text.push('\n');
        let mut output = std::io::stdout().lock();
        if output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
