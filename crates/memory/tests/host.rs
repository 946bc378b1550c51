//! The host's probe against this process, in a process of its own: other tests
//! allocate too.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memory::bytes::MIB;
use memory::{Device, DeviceKind, Host, Ours, Probe, Remains, Scope, Stage, Tracker, platform};

const BLOCK: u64 = 128 * MIB;

/// Tests that measure this process take turns, and none finds what the one
/// before left in the allocator.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    platform::fix_allocator(platform::AllocatorSettings::default());
    platform::trim_allocator();
    turn
}

/// Bytes that are really resident.
fn touched(bytes: u64) -> Vec<u8> {
    vec![1; bytes as usize]
}

fn ours(host: &Host) -> Ours {
    host.read().unwrap().ours.unwrap()
}

#[test]
fn what_is_allocated_is_seen_and_comes_back() {
    let _alone = alone();
    let host = Host::new();
    let before = ours(&host);
    let block = touched(BLOCK);
    let during = ours(&host);
    assert!(during.reserved >= before.reserved + BLOCK * 9 / 10, "{before:?} {during:?}");
    assert!(during.allocated >= before.allocated + BLOCK * 9 / 10, "{before:?} {during:?}");
    drop(block);
    host.trim().unwrap();
    let after = ours(&host);
    assert!(after.reserved <= before.reserved + BLOCK / 10, "{before:?} {after:?}");
}

#[test]
fn a_peak_between_two_readings_is_seen() {
    let _alone = alone();
    let host = Host::new().sampled(Duration::from_millis(1));
    host.reset_peak();
    let before = ours(&host).reserved;
    let block = touched(BLOCK);
    // The first of these looks may have begun before the block was there.
    let looks = host.looks();
    while host.looks() < looks + 2 {
        std::thread::yield_now();
    }
    drop(block);
    host.trim().unwrap();
    let peak = ours(&host).peak.unwrap();
    assert!(peak >= before + BLOCK * 9 / 10, "{peak} after {before}");
}

#[test]
fn another_process_can_be_read_until_it_ends() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let host = Host::of_process(child.id());
    assert!(ours(&host).reserved > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let error = host.read().unwrap_err();
    assert_eq!(error.reason, format!("The process {} has ended.", child.id()));
}

/// What an allocator keeps of a stage's many small buffers must be given back
/// at its end, and a buffer that survives must be missed.
#[test]
fn a_stage_on_the_host_gives_back_what_it_took() {
    let _alone = alone();
    let tracker = Tracker::new(Host::new());
    for (forgotten, verified) in [(0, true), (40, false)] {
        let scope = Scope::enter(&tracker, Stage::Transcribe, 200 * MIB).unwrap();
        // All of these lie below the threshold from which blocks are mapped.
        let mut buffers: Vec<Vec<u8>> = (0..200).map(|_| touched(MIB)).collect();
        tracker.checkpoint(memory::Checkpoint::Batch);
        let kept = buffers.split_off(200 - forgotten);
        let recovery = scope.leave(|| drop(buffers)).recovery.unwrap();
        assert!(recovery.taken >= 190 * MIB, "{recovery:?}");
        assert_eq!(recovery.verified, verified, "{recovery:?}");
        assert_eq!(recovery.remains == Remains::InUse, !verified, "{recovery:?}");
        drop(kept);
        tracker.device().trim().unwrap();
    }
    assert_eq!(tracker.device().kind(), DeviceKind::Host);
}

/// Weights are read in 16 bits, widened to 32 and dropped. Loaded as such they
/// leave nothing behind but themselves.
#[test]
fn loading_leaves_no_holes() {
    let _alone = alone();
    let mut left = Vec::new();
    for told in [false, true] {
        let host = Host::new();
        host.trim().unwrap();
        let before = ours(&host).reserved;
        host.set_loading(told);
        let mut weights = Vec::new();
        for layer in 0..16 {
            for megabytes in [2, 2, 2, 2, 8, 8] {
                let stored = touched((megabytes * MIB - layer * 4096) / 2);
                weights.push(touched(2 * stored.len() as u64));
            }
        }
        host.set_loading(false);
        let held: usize = weights.iter().map(Vec::len).sum();
        left.push((ours(&host).reserved.saturating_sub(before)).saturating_sub(held as u64) / MIB);
    }
    assert!(left[1] <= 4, "{left:?} MB more than the weights, untold and told");
    assert!(left[0] > left[1], "telling is of no use: {left:?} MB");
}

/// What is free between used blocks is what fragmentation looks like.
#[test]
fn the_allocators_idle_memory_is_told_from_what_is_in_use() {
    let _alone = alone();
    let host = Host::new();
    let before = ours(&host);
    let mut buffers: Vec<Option<Vec<u8>>> = (0..128).map(|_| Some(touched(MIB))).collect();
    for buffer in buffers.iter_mut().step_by(2) {
        *buffer = None;
    }
    let idle = ours(&host).slack().saturating_sub(before.slack());
    assert!(idle >= 56 * MIB, "{} of 64 MB are idle", idle / MIB);
    host.trim().unwrap();
    let trimmed = ours(&host).slack().saturating_sub(before.slack());
    assert!(trimmed <= 8 * MIB, "{} MB are idle after a trim", trimmed / MIB);
    drop(buffers);
}
