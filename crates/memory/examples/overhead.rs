//! What watching costs: `cargo run -p memory --example overhead`.
//!
//! A job takes some twenty checkpoints and one per batch, and a batch takes
//! seconds.

use std::hint::black_box;
use std::time::Instant;

use memory::bytes::{GIB, MIB};
use memory::nvml::Driver;
use memory::{Checkpoint, DeviceKind, Host, Probe, Scope, Simulated, Stage, Tracker, platform};

fn main() {
    platform::fix_allocator(platform::AllocatorSettings::default());
    let host = Host::new();
    time("read the host", || {
        let _ = black_box(host.read());
    });
    // A heap as an engine has it: a gigabyte, in blocks of all sizes.
    let blocks: Vec<Vec<u8>> = (0..2000).map(|n| vec![1; (1 + n % 1000) * 1024]).collect();
    let tracker = Tracker::new(Host::new());
    time("checkpoint on the host, 1 GB in 2000 blocks", || {
        black_box(tracker.checkpoint(Checkpoint::Batch));
    });
    drop(blocks);
    let tracker = Tracker::new(Simulated::new(DeviceKind::Gpu, 8 * GIB));
    time("checkpoint without a device", || {
        black_box(tracker.checkpoint(Checkpoint::Batch));
    });
    time("reserve and release", || {
        let _ = black_box(tracker.budget().reserve("bench", MIB));
    });
    let tracker = Tracker::new(Host::new());
    once("a stage on the host, 500 MB taken and given back", || {
        if let Ok(scope) = Scope::enter(&tracker, Stage::Transcribe, 500 * MIB) {
            let buffers: Vec<Vec<u8>> = (0..500).map(|_| vec![1; MIB as usize]).collect();
            let departure = scope.leave(|| drop(buffers));
            println!("  of which dropping, trimming and looking: {:.1} ms", departure.release_ms);
        }
    });
    match Driver::open().and_then(|driver| {
        let gpus = driver.gpus()?;
        Ok((driver, gpus))
    }) {
        Ok((driver, gpus)) => {
            for gpu in gpus {
                let Ok(probe) = driver.probe(memory::nvml::GpuId::Uuid(gpu.uuid)) else { continue };
                time(&format!("read {}", gpu.name), || {
                    let _ = black_box(probe.read());
                });
            }
        }
        Err(unavailable) => println!("no card is read: {unavailable}"),
    }
}

/// Median and worst of many.
fn time(name: &str, mut work: impl FnMut()) {
    let mut times: Vec<f64> = (0..1000)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}: median {:.1} us, 99 % below {:.1} us", times[500], times[990]);
}

fn once(name: &str, work: impl FnOnce()) {
    let began = Instant::now();
    work();
    println!("{name}: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
}
