//! An engine that sends anything at all: messages in any order, about any job, with any numbers,
//! bytes that are no message, or nothing, until it ends in any way. The seed repeats it.

use std::io::{self, Write};
use std::time::Duration;

use transcript::{Model, Notice, Severity, Source, Time, Transcript};
use wire::{ErrorCode, Event, Failure, Job, JobId, Point, Progress, Stage};

use super::windows;

/// Messages after which it falls silent, which the host takes for a hang.
const MESSAGES: u64 = 200;

pub fn transcribe(seed: u64, job: &Job) {
    let mut random = Random(seed);
    for _ in 0..1 + random.below(MESSAGES) {
        // Most messages are about the job, since the host passes over the others.
        let about = if random.below(10) == 0 { random.next() as JobId } else { job.id };
        match random.below(100) {
            0 => return raw(&[0xff; 64]),
            1 => return raw(&u32::MAX.to_le_bytes()),
            // A length, and less than it says.
            2 => return raw(&[&4096u32.to_le_bytes()[..], b"{\"job\":"].concat()),
            3 => raw(&[&7u32.to_le_bytes()[..], b"{\"a\":1}"].concat()),
            4 => raw(&0u32.to_le_bytes()),
            5 => std::process::exit(random.below(256) as i32),
            6 => std::process::abort(),
            7 => {
                // SAFETY: the call takes numbers only; the process is this one.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            8 => std::thread::sleep(Duration::from_millis(random.below(50))),
            _ => super::tell(about, event(&mut random, job)),
        }
    }
}

fn event(random: &mut Random, job: &Job) -> Event {
    match random.below(40) {
        0 => Event::LanguagesDone,
        1 => Event::Finished { transcript: Box::new(transcript(random, job)), renewal: None },
        2 => Event::Cancelled { partial: (random.below(2) == 0).then(|| Box::new(transcript(random, job))) },
        3 => Event::Failed {
            error: Failure::new(ErrorCode::AudioBroken, text(random)),
            partial: (random.below(2) == 0).then(|| Box::new(transcript(random, job))),
        },
        4 => Event::Pong { nonce: random.next(), work: random.next() },
        5..10 => Event::Notice { notice: Notice::new(&text(random), Severity::Info, text(random)) },
        10..15 => Event::Reached {
            point: Box::new(Point {
                channel: random.next() as usize,
                position: random.next(),
                ..Point::default()
            }),
            discarded: Vec::new(),
        },
        15..20 => Event::Window { channel: random.next() as usize, position: random.next() },
        20..25 => Event::Progress {
            progress: Progress {
                stage: Stage::Transcribe,
                position: time(random),
                duration: (random.below(2) == 0).then(|| time(random)),
                speed: Some(f32::from_bits(random.next() as u32)).filter(|speed| speed.is_finite()),
                left: Some(-1.0),
            },
        },
        _ => Event::Segment { segment: segment(random) },
    }
}

fn transcript(random: &mut Random, job: &Job) -> Transcript {
    let segments = (0..random.below(4)).map(|_| segment(random)).collect();
    windows::transcript(job, Source::default(), Model::default(), segments, Vec::new())
}

fn segment(random: &mut Random) -> transcript::Segment {
    transcript::Segment { start: time(random), end: time(random), text: text(random), ..Default::default() }
}

fn time(random: &mut Random) -> Time {
    Time::from_millis(random.next() as u32)
}

fn text(random: &mut Random) -> String {
    let length = if random.below(20) == 0 { 50_000 } else { 20 };
    (0..random.below(length))
        .map(|_| char::from_u32(random.next() as u32 % 0x11_0000).unwrap_or('\u{202e}'))
        .collect()
}

fn raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    // A host that is gone reads nothing.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Knuth's MMIX generator: the same engine for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The lower bits repeat soon.
        self.0 >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
