//! What watching memory costs, what freeing each stage's models saves, and how
//! long it takes until the text goes on after memory ran out.
//!
//!     cargo run --example memory_safety MODEL RECORDING [ROUNDS]
//!
//! Runs the same job with watching on and off in turns, in one process, and
//! prints the wall times; then with the models of a finished stage freed and
//! kept, and prints the peaks of anonymous memory; then with each reservation
//! refused once, and prints the times to the next decoded window.

use std::time::{Duration, Instant};

use memory::{Host, Probe};
use pipeline::{Control, Engine};
use wire::{DeviceChoice, Event, Job};

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
    drop(engine);
    job.speakers = false;
    recovery(&job)
}

/// From a step that was taken to the next window whose text is there.
fn recovery(job: &Job) -> Result<(), Box<dyn std::error::Error>> {
    let mut slowest = Duration::ZERO;
    let mut refused = 0;
    for k in 1.. {
        // The model is loaded anew for each, and its loading refused as well.
        let mut engine = Engine::new();
        engine.refuse_nth(k);
        let (mut stepped, mut windows) = (None, Vec::new());
        let mut began = Instant::now();
        let done = engine.transcribe(job, &Control::default(), &mut |event| match event {
            Event::Rung { .. } => stepped = Some(Instant::now()),
            Event::Window { .. } => began = Instant::now(),
            Event::Reached { .. } => {
                windows.push(began.elapsed());
                if let Some(stepped) = stepped.take() {
                    refused += 1;
                    slowest = slowest.max(Instant::now() - stepped);
                }
            }
            _ => {}
        });
        done.map_err(|stopped| stopped.failure)?;
        if k > engine.reservations() {
            windows.sort();
            let usual = windows.get(windows.len() / 2).copied().unwrap_or_default();
            println!(
                "same engine, {refused} reservations refused: the next window decoded after {:.0} ms at most; a \
                 window takes {:.0} ms",
                slowest.as_secs_f64() * 1000.0,
                usual.as_secs_f64() * 1000.0
            );
            break;
        }
    }
    Ok(())
}
