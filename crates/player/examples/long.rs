//! `cargo run --release -p steno-player --example long -- RECORDING [HH:MM:SS]`
//! measures seeking in a long recording: the time from a request to the first
//! samples, how far they are from the right position, and the memory that the
//! player uses. It runs the `steno-player` in the folder above the example's.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use audio::Seekable;
use wire::{Opened, PlayerAnswer, PlayerCommand};

type Answer<T> = Result<T, Box<dyn Error>>;

/// Length that is compared with decoding from the start, in seconds.
const COMPARED: f64 = 0.5;
/// Largest shift that is tried in the comparison, in seconds.
const AROUND: f64 = 0.25;

fn main() -> Answer<()> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("which recording?")?);
    let place = arguments.next().unwrap_or_else(|| "2:40:00".into());
    let seconds =
        place.split(':').try_fold(0.0, |sum, part| part.parse::<f64>().map(|part| 60.0 * sum + part))?;
    let keep = tempfile::tempdir()?;
    let keep = keep.path().join("kept.json");

    let mut player = Player::start()?;
    let before = player.resident();
    let began = Instant::now();
    let opened = player.open(&path, &keep)?;
    println!("opened in                    {:7.0} ms, {:.0} s long", ms(began), opened.seconds);
    let wave = RemoteWave::ask(&opened)?;
    let fresh = wave.part(seconds)?;
    println!("first samples, just opened   {:7.0} ms", fresh.first.as_secs_f64() * 1000.0);
    let mut sequence = Vec::new();
    for index in 0..20u64 {
        sequence.push(wave.part((index * 7919 % 10_000) as f64 / 10_000.0 * (opened.seconds - 1.0))?.first);
    }
    sequence.sort();
    println!(
        "20 places, before the pass   {:7.0} ms median, {:.0} ms longest",
        sequence[10].as_secs_f64() * 1000.0,
        sequence[19].as_secs_f64() * 1000.0
    );
    let began = Instant::now();
    while !String::from_utf8_lossy(&get(&opened.peaks, None)?.1).contains("\"done\":true") {
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("pass over the whole          {:7.1} s more", began.elapsed().as_secs_f64());
    let known = wave.part(seconds)?;
    println!("first samples, after that    {:7.0} ms", known.first.as_secs_f64() * 1000.0);
    sequence.clear();
    for index in 0..20u64 {
        sequence.push(wave.part((index * 7919 % 10_000) as f64 / 10_000.0 * (opened.seconds - 1.0))?.first);
    }
    sequence.sort();
    println!(
        "20 places, after the pass    {:7.0} ms median, {:.0} ms longest",
        sequence[10].as_secs_f64() * 1000.0,
        sequence[19].as_secs_f64() * 1000.0
    );
    let growth = player.resident().saturating_sub(before);
    println!(
        "the player grew by           {:7.1} MB to {:.1} MB",
        growth as f64 / 1e6,
        player.resident() as f64 / 1e6
    );
    drop(player);

    let mut player = Player::start()?;
    let began = Instant::now();
    let again = player.open(&path, &keep)?;
    println!("opened again in              {:7.0} ms", ms(began));
    println!(
        "first samples, opened again  {:7.0} ms",
        RemoteWave::ask(&again)?.part(seconds)?.first.as_secs_f64() * 1000.0
    );

    let right = sequential(&path, seconds - AROUND, COMPARED + 2.0 * AROUND)?;
    for (name, part) in [("just opened", &fresh), ("after the pass", &known)] {
        let (shift, apart) = best(&part.samples, &right, wave.channels);
        let rate = f64::from(wave.rate);
        println!(
            "{name:15} off by       {:7.2} ms (samples differ by {apart:.5} of their size there)",
            (shift as f64 / rate - AROUND) * 1000.0
        );
    }
    Ok(())
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

struct Player {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Player {
    fn start() -> Answer<Self> {
        let beside = std::env::current_exe()?;
        let program = beside.parent().and_then(Path::parent).ok_or("no folder")?.join("steno-player");
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, input, output })
    }

    fn open(&mut self, path: &Path, keep: &Path) -> Answer<Opened> {
        let command = PlayerCommand::Open { path: path.into(), track: None, keep: Some(keep.into()) };
        self.input.write_all(format!("{}\n", serde_json::to_string(&command)?).as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        match serde_json::from_str(&line)? {
            PlayerAnswer::Opened(opened) => Ok(opened),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// Resident memory in bytes; Linux only.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct RemoteWave {
    address: String,
    rate: u32,
    channels: usize,
}

struct Part {
    first: Duration,
    samples: Vec<i16>,
}

impl RemoteWave {
    fn ask(opened: &Opened) -> Answer<Self> {
        let (_, header) = get(&opened.audio, Some(0..44))?;
        let channels = usize::from(u16::from_le_bytes([header[22], header[23]]));
        let rate = u32::from_le_bytes([header[24], header[25], header[26], header[27]]);
        Ok(Self { address: opened.audio.clone(), rate, channels })
    }

    /// Requests a part that begins at `seconds`.
    fn part(&self, seconds: f64) -> Answer<Part> {
        let block = 2 * self.channels as u64;
        let from = 44 + (seconds * f64::from(self.rate)).round() as u64 * block;
        let wanted = (COMPARED * f64::from(self.rate)) as u64 * block;
        let (first, bytes) = get(&self.address, Some(from..from + wanted))?;
        Ok(Part { first, samples: bytes.as_chunks().0.iter().map(|two| i16::from_le_bytes(*two)).collect() })
    }
}

/// Time to the first byte of the body, and the body.
fn get(address: &str, range: Option<std::ops::Range<u64>>) -> Answer<(Duration, Vec<u8>)> {
    let (host, path) =
        address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or("address")?;
    let began = Instant::now();
    let mut stream = TcpStream::connect(host)?;
    let range =
        range.map(|range| format!("Range: bytes={}-{}\r\n", range.start, range.end - 1)).unwrap_or_default();
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n{range}\r\n").as_bytes())?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line)?;
    }
    let mut body = vec![0];
    stream.read_exact(&mut body)?;
    let first = began.elapsed();
    stream.read_to_end(&mut body)?;
    Ok((first, body))
}

/// The samples from `from` on, decoded from the start of the recording.
fn sequential(path: &Path, from: f64, seconds: f64) -> Answer<Vec<i16>> {
    let sound = Seekable::open(path, None)?;
    let per_second = f64::from(sound.rate());
    let channels = sound.channels();
    let (start, count) =
        ((from * per_second).round() as usize * channels, (seconds * per_second) as usize * channels);
    let mut pass = sound.pass()?;
    let (mut at, mut kept) = (0, Vec::new());
    while let Some(block) = pass.next_block() {
        let skip = start.saturating_sub(at).min(block.len());
        at += block.len();
        kept.extend_from_slice(&block[skip..]);
        if kept.len() >= count {
            break;
        }
    }
    Ok(kept)
}

/// The shift, in frames, at which `part` is most like `whole`, and the relative difference there.
fn best(part: &[i16], whole: &[i16], channels: usize) -> (usize, f64) {
    let at = |shift: usize, step: usize| {
        let (mut difference, mut size) = (0.0, 1.0);
        for (part, whole) in part.iter().zip(&whole[shift * channels..]).step_by(step) {
            difference += (f64::from(*part) - f64::from(*whole)).powi(2);
            size += f64::from(*whole).powi(2);
        }
        (difference / size).sqrt()
    };
    let most = (whole.len() - part.len()) / channels;
    let shift = (0..most).min_by(|a, b| at(*a, 17).total_cmp(&at(*b, 17))).unwrap_or(0);
    (shift, at(shift, 1))
}
