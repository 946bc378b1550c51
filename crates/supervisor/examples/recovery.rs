//! How long it takes until the text goes on after an engine was killed.
//!
//!     STENO_ENGINE=target/debug/steno-engine cargo run --example recovery MODEL RECORDING [ROUNDS]
//!
//! Kills the engine after its second window, and prints the times until the
//! next window of its successor is decoded, that engine's loading of the model
//! among them.

use std::process::Command;
use std::time::{Duration, Instant};

use supervisor::{Supervisor, SupervisorOptions};
use wire::{DeviceChoice, Event, Job};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "MODEL RECORDING [ROUNDS]";
    let (model, file) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let mut job = Job::new(1, file.as_str(), model.as_str());
    job.device = DeviceChoice::Cpu;
    job.language = Some("en".into());
    // The same work before and after.
    job.memory.pins.model = true;
    job.memory.pins.precision = true;
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(round(&job).await?);
    }
    times.sort();
    for (all, loading) in &times {
        println!(
            "new engine: the next window decoded after {:.0} ms, of which the model was loaded in {:.0} ms",
            all.as_secs_f64() * 1000.0,
            loading.as_secs_f64() * 1000.0
        );
    }
    Ok(())
}

/// From the death to the next window, and the loading within.
async fn round(job: &Job) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let supervisor = Supervisor::start(SupervisorOptions::default());
    let mut handle = supervisor.submit(job.clone());
    let (mut reached, mut killed, mut recovered) = (0, None, None);
    // What the first engine had said before it died comes first.
    let mut replaced = false;
    while let Some(event) = handle.next().await {
        match event {
            Event::Reached { .. } => {
                reached += 1;
                match killed {
                    None if reached == 2 => {
                        let engine = supervisor.engine().ok_or("there is no engine")?;
                        killed = Some(Instant::now());
                        Command::new("kill").args(["-KILL", &engine.pid().to_string()]).status()?;
                    }
                    Some(killed) if replaced && recovered.is_none() => recovered = Some(killed.elapsed()),
                    _ => {}
                }
            }
            Event::Notice { notice, .. } if notice.code == "engine.restarted" => replaced = true,
            Event::Finished { transcript, .. } => {
                let stages = transcript.run.map(|run| run.stages).unwrap_or_default();
                let loading =
                    stages.iter().find(|stage| stage.name == "load_model").map_or(0.0, |stage| stage.seconds);
                supervisor.shutdown().await;
                let recovered = recovered.ok_or("the recording has too few windows")?;
                return Ok((recovered, Duration::from_secs_f64(loading)));
            }
            Event::Failed { error, .. } => return Err(error.into()),
            _ => {}
        }
    }
    Err("the job has no end".into())
}
