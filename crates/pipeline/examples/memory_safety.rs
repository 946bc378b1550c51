//! What watching memory costs, what freeing each stage's models saves, and how
//! long it takes until the text goes on after memory ran out.
//!
//!     cargo run --example memory_safety MODEL RECORDING [ROUNDS]
//!
//! Runs the same job with watching on and off in turns, in one process, and
//! prints the wall times and the processor's: the second hardly move where other
//! programs take a core away. Then with the models of a finished stage freed and
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
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?.max(1);
    let mut job = Job::new(1, file.as_str(), model.as_str());
    job.device = DeviceChoice::Cpu;
    job.language = Some("en".into());

    let mut engine = Engine::new();
    let mut run = |job: &Job| -> Result<Spent, Box<dyn std::error::Error>> {
        let (started, before) = (Instant::now(), processor_time()?);
        let done = engine.transcribe(job, &Control::default(), &mut |_| ());
        done.map_err(|stopped| stopped.failure)?;
        Ok(Spent { wall: started.elapsed(), processor: processor_time()? - before })
    };
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        // Who comes first changes from round to round.
        for watch in [round % 2 == 0, round % 2 != 0] {
            job.memory.watch = watch;
            // A new desk, and so the model loaded anew, for either.
            let spent = run(&job)?;
            // The first round warms caches.
            if round > 0 {
                if watch { &mut on } else { &mut off }.push(spent);
            }
        }
    }
    compare("wall time", &off, &on, |spent| spent.wall);
    compare("processor time", &off, &on, |spent| spent.processor);

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

#[derive(Clone, Copy)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

/// Of all threads of this process.
fn processor_time() -> Result<Duration, std::io::Error> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one value that it is given.
    if unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default()))
}

/// Prints the least and the median of either, and the median of the rounds' ratios:
/// neighbours in time share the machine's speed.
fn compare(what: &str, off: &[Spent], on: &[Spent], of: impl Fn(&Spent) -> Duration) {
    let sorted = |spent: &[Spent]| {
        let mut seconds: Vec<f64> = spent.iter().map(|spent| of(spent).as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        seconds
    };
    let mut ratios: Vec<f64> =
        off.iter().zip(on).map(|(off, on)| of(on).as_secs_f64() / of(off).as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let (without, with) = (sorted(off), sorted(on));
    let middle = ratios.len() / 2;
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    println!(
        "{what}: off {:.3} s at least and {:.3} by median, on {:.3} and {:.3}; cost {:+.2} % and {:+.2} %, of \
         neighbouring rounds {:+.2} % (quartiles {:+.2} and {:+.2})",
        without[0],
        without[middle],
        with[0],
        with[middle],
        percent(with[0] / without[0]),
        percent(with[middle] / without[middle]),
        percent(ratios[middle]),
        percent(ratios[ratios.len() / 4]),
        percent(ratios[ratios.len() * 3 / 4]),
    );
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
