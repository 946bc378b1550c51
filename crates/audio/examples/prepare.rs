//! Prepares recordings and says what they are, how fast it went and how much
//! memory it took: `cargo run -p audio --example prepare -- FILES...`

use std::ops::ControlFlow;
use std::time::Instant;

use audio::{PrepareOptions, prepare};

fn main() {
    for path in std::env::args_os().skip(1) {
        let begin = Instant::now();
        match prepare(path.as_ref(), &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())) {
            Ok(recording) => {
                let wall = begin.elapsed().as_secs_f64();
                let seconds = recording.seconds();
                let speech: f64 = recording.speech.iter().map(|region| region.seconds()).sum();
                println!("{:#?}", recording.info);
                println!(
                    "{seconds:.3} s, {speech:.1} s of them speech in {} regions",
                    recording.speech.len()
                );
                println!("{wall:.2} s, {:.0} times as fast as real time", seconds / wall);
                for warning in &recording.warnings {
                    println!("{warning:?}");
                }
            }
            Err(error) => println!("{error}"),
        }
        if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
            status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
        }
    }
}
