//! What real engines hopefully never do, and a host that can be killed. The
//! name under which this program is started says which.
// A test's part, though cargo builds it as an executable.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(unix)]
mod hostile;
mod windows;

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Duration;

use transcript::{Model, Notice, Segment, Severity, Source, Time};
use wire::{Backend, Command, Envelope, Event, Job, JobId, PROTOCOL_VERSION, read_frame, write_frame};

fn main() {
    let name = std::env::args_os().next().unwrap();
    let name = Path::new(&name).file_name().unwrap().to_str().unwrap().to_owned();
    match name.as_str() {
        "host" => host(),
        "run" => run(),
        "turn" => turn(),
        "silent" => forever(),
        "missing-library" => {
            eprintln!(
                "{name}: error while loading shared libraries: libcublas.so.13: cannot open shared object"
            );
            std::process::exit(127);
        }
        "not-an-engine" => println!("Usage: something else entirely"),
        "wrong-version" => {
            let protocol = PROTOCOL_VERSION + 4711;
            say(Event::Hello { protocol, engine: "9.9".into(), backend: Backend::Cpu, pid: 0 });
            forever();
        }
        _ => engine(&name),
    }
}

fn engine(name: &str) {
    let mut input = io::stdin().lock();
    let mut work = 0;
    while let Some(command) = read_frame::<Command>(&mut input).unwrap() {
        match command {
            Command::Hello { .. } => {
                let (protocol, pid) = (PROTOCOL_VERSION, std::process::id());
                say(Event::Hello { protocol, engine: "double".into(), backend: Backend::Cpu, pid });
            }
            Command::Ping { .. } if name == "deaf" => {}
            Command::Ping { nonce } => {
                work += u64::from(!matches!(name, "at-a-standstill" | "windows"));
                say(Event::Pong { nonce, work });
            }
            // On a thread of its own, so that pings are answered whatever it does.
            Command::Transcribe(job) if name == "windows" => {
                std::thread::spawn(move || windows::transcribe(&job));
            }
            Command::Transcribe(job) => transcribe(name, &job),
            Command::Shutdown if name == "lingering" => forever(),
            Command::Shutdown => return,
            // Cancels above all.
            _ => {}
        }
    }
}

fn transcribe(name: &str, job: &Job) {
    let id = job.id;
    #[cfg(unix)]
    if let Some(seed) = name.strip_prefix("hostile-") {
        return hostile::transcribe(seed.parse().unwrap(), job);
    }
    tell(
        id,
        Event::Started {
            source: Source { name: "talk.flac".into(), ..Source::default() },
            model: Model { name: "double".into(), ..Model::default() },
            device: "cpu".into(),
        },
    );
    tell(id, segment(0, "One."));
    tell(id, Event::Notice { notice: Notice::new("audio.mono", Severity::Info, "It is mono.") });
    tell(id, segment(1, "Two."));
    match name {
        "crashing" => {
            eprintln!("first sign of trouble\nmemory allocation of 123 bytes failed");
            std::process::abort();
        }
        "flooding" => {
            for second in 2.. {
                tell(id, segment(second, &"More. ".repeat(1000)));
            }
        }
        "greedy" => std::process::exit(wire::exit_status::DECODING_LIMIT),
        "leaving" => std::process::exit(7),
        "garbled" => {
            io::stdout().write_all(b"a stray line on the wrong stream\n").unwrap();
            io::stdout().flush().unwrap();
            forever();
        }
        // Closes its output and lives on.
        #[cfg(unix)]
        "hanging-up" => {
            // SAFETY: the call takes a number only; nothing is written there any more.
            unsafe { libc::close(1) };
            forever();
        }
        // The others go on and on.
        _ => {}
    }
}

fn segment(second: u32, text: &str) -> Event {
    let segment = Segment {
        start: Time::from_millis(1000 * second),
        end: Time::from_millis(1000 * second + 900),
        text: text.into(),
        ..Segment::default()
    };
    Event::Segment { segment }
}

fn tell(job: JobId, event: Event) {
    write(&Envelope::of_job(job, event));
}

fn say(event: Event) {
    write(&Envelope::of_engine(event));
}

fn write(envelope: &Envelope) {
    // A host that is gone is not this program's to mourn.
    if write_frame(&mut io::stdout().lock(), envelope).is_err() {
        std::process::exit(0);
    }
}

fn forever() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Arguments: engine, and a recording and a model where it is to be busy.
/// Prints the engine's process id once it is.
fn host() {
    let mut arguments = std::env::args_os().skip(1);
    let options =
        supervisor::EngineOptions { program: arguments.next().map(Into::into), ..Default::default() };
    let job = arguments.next().zip(arguments.next());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = supervisor::Engine::start(&options).await.unwrap();
        let mut handle = job.map(|(file, model)| {
            let mut job = Job::new(0, file, model);
            job.voice_activity = wire::VoiceActivity::Off;
            engine.transcribe(job)
        });
        if let Some(handle) = &mut handle {
            while !matches!(handle.next().await, Some(Event::Started { .. })) {}
        }
        println!("{}", engine.pid());
        forever();
    });
}

/// Arguments: run folder and device. Writes down a process of no use as its
/// engine and prints that one's process id.
fn run() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut engine = std::process::Command::new("sleep");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut engine, 0);
    let mut engine = engine.arg("3600").stdout(std::process::Stdio::null()).spawn().unwrap();
    let _entry = supervisor::runs::Runs::at(&arguments[0]).register(engine.id(), &arguments[1]).unwrap();
    println!("{}", engine.id());
    engine.wait().unwrap();
    forever();
}

/// Arguments: run folder and device. Prints `waiting PID` where it has to wait
/// and `taken` when it has its turn, which it gives up when its input closes.
fn turn() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let runs = supervisor::runs::Runs::at(&arguments[0]);
    let waiting = |holder: supervisor::runs::Holder| println!("waiting {}", holder.pid.unwrap_or(0));
    let turn = runtime.block_on(runs.lease(&arguments[1], waiting)).unwrap();
    println!("taken");
    let _ = io::stdin().lock().read_line(&mut String::new());
    drop(turn);
    println!("left");
    forever();
}
