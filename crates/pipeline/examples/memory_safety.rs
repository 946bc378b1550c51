//! What watching memory costs, and what freeing each stage's models saves.
//!
//!     cargo run --example memory_safety MODEL RECORDING [ROUNDS]
//!
//! Runs the same job with watching on and off in turns, in one process, and
//! prints the wall times; then with the models of a finished stage freed and
//! kept, and prints the peaks of anonymous memory.

use std::time::{Duration, Instant};

use memory::{Host, Probe};
use pipeline::{Control, Engine};
use wire::{DeviceChoice, Job};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "MODEL RECORDING [ROUNDS]";
    let (model, file) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let mut job = Job::new(1, file.as_str(), model.as_str());
    job.device = DeviceChoice::Cpu;
    job.language = Some("en".into());

    let mut engine = Engine::new();
    let mut run = |job: &Job| -> Result<f64, Box<dyn std::error::Error>> {
        let started = Instant::now();
        let done = engine.transcribe(job, &Control::default(), &mut |_| ());
        done.map_err(|stopped| stopped.failure)?;
        Ok(started.elapsed().as_secs_f64())
    };
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (watch, times) in [false, true].into_iter().zip(&mut times) {
            job.memory.watch = watch;
            // A new desk, and so the model loaded anew, for either.
            let seconds = run(&job)?;
            // The first round warms caches.
            if round > 0 {
                times.push(seconds);
            }
        }
    }
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    let [off, on] = times.map(|times| (times[0], times[times.len() / 2]));
    println!("watching off: least {:.3} s, median {:.3} s", off.0, off.1);
    println!("watching on:  least {:.3} s, median {:.3} s", on.0, on.1);
    println!(
        "cost: least {:+.2} %, median {:+.2} %",
        100.0 * (on.0 / off.0 - 1.0),
        100.0 * (on.1 / off.1 - 1.0)
    );

    let host = Host::new().sampled(Duration::from_millis(2));
    job.memory.watch = true;
    job.speakers = true;
    job.memory.speaker_batch_size = Some(4);
    for release in [true, false] {
        job.memory.release = release;
        host.reset_peak();
        run(&job)?;
        let peak = host.read()?.ours.and_then(|ours| ours.peak).unwrap_or_default();
        println!("stages freed: {release}, peak {} MB", peak >> 20);
    }
    Ok(())
}
