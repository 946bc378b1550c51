//! Recording from the microphone, by a program of the system that writes samples to its standard
//! output: a page in WebKit is not given the microphone, and a library for sound would be linked
//! for this alone.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use config::Priority;
use wire::{ErrorCode, Failure};

use crate::platform;

/// Samples per second, of 16 bits and one channel: what engines work on.
const RATE: u32 = 16_000;
/// More of one person tells nothing more, in seconds.
const LONGEST: usize = 120;
/// Samples between two looks at the level: 50 ms.
const BLOCK: usize = RATE as usize / 20;
/// Quieter than this many decibels below full scale shows no level.
const QUIETEST: f32 = 60.0;

/// Programs that write raw samples, with what asks them for it; of PulseAudio (which PipeWire
/// answers too), ALSA, PipeWire.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("parecord", &["--raw", "--rate=16000", "--channels=1", "--format=s16le"]),
    ("arecord", &["-q", "-t", "raw", "-f", "S16_LE", "-r", "16000", "-c", "1"]),
    ("pw-record", &["--raw", "--rate", "16000", "--channels", "1", "--format", "s16", "-"]),
];

/// A program that records, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorder {
    program: PathBuf,
    arguments: &'static [&'static str],
}

impl Recorder {
    /// The program that `STENO_MICROPHONE` names, else the first one that is installed.
    pub fn find() -> Option<Self> {
        let chosen = std::env::var_os("STENO_MICROPHONE").filter(|value| !value.is_empty());
        Self::among(chosen.as_deref(), std::env::var_os("PATH").as_deref())
    }

    fn among(chosen: Option<&OsStr>, path: Option<&OsStr>) -> Option<Self> {
        if let Some(program) = chosen {
            return Some(Self { program: program.into(), arguments: &[] });
        }
        let folders: Vec<PathBuf> =
            path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
        PROGRAMS.iter().find_map(|(name, arguments)| {
            let program = folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file())?;
            Some(Self { program, arguments })
        })
    }

    /// Begins to record.
    ///
    /// # Errors
    /// `NoMicrophone` if the program can't be started.
    pub fn start(&self) -> Result<Capture, Failure> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        platform::lead_own_group(&mut command, Priority::default());
        let cannot = |error: io::Error| {
            no_microphone(format!("{} can't be started: {error}.", self.program.display()))
        };
        let mut child = command.spawn().map_err(cannot)?;
        let Some(output) = child.stdout.take() else { return Err(cannot(io::ErrorKind::BrokenPipe.into())) };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let theirs = Arc::clone(&heard);
        let read = move || read(output, &theirs);
        let reader = std::thread::Builder::new().name("microphone".into()).spawn(read).map_err(cannot)?;
        Ok(Capture { child, heard, reader: Some(reader) })
    }
}

/// A recording that is being made. Dropped, it ends.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    heard: Arc<Mutex<Heard>>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Heard {
    samples: Vec<i16>,
    level: f32,
    /// The program wrote all that it will.
    ended: bool,
}

impl Capture {
    /// Seconds so far, and how loud the latest is, from 0 to 1.
    pub fn level(&self) -> (f64, f32) {
        let heard = lock(&self.heard);
        (seconds(&heard.samples), heard.level)
    }

    /// Why nothing is recorded, once that is certain.
    pub fn failure(&mut self) -> Option<Failure> {
        let is_without_sound = {
            let heard = lock(&self.heard);
            heard.ended && heard.samples.is_empty()
        };
        if !is_without_sound {
            return None;
        }
        // It has closed its output, and ends.
        platform::kill_group(&mut self.child);
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let why = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no reason given");
        Some(no_microphone(format!("Recording failed: {why}.")))
    }

    /// Ends the recording and writes it as a WAV file; returns how many seconds it has.
    ///
    /// # Errors
    /// `NoMicrophone` if nothing was recorded, `OutputUnwritable` if the file can't be written.
    pub fn finish(mut self, file: &Path) -> Result<f64, Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.end();
        let heard = lock(&self.heard);
        if heard.samples.is_empty() {
            return Err(no_microphone("Nothing was recorded."));
        }
        write_wav(file, &heard.samples).map_err(|error| {
            Failure::new(ErrorCode::OutputUnwritable, format!("The recording can't be saved ({error})."))
                .file(file)
                .remedy("Free some disk space, or set TMPDIR to another folder.")
        })?;
        Ok(seconds(&heard.samples))
    }

    fn end(&mut self) {
        platform::kill_group(&mut self.child);
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(mut output: ChildStdout, heard: &Mutex<Heard>) {
    let mut block = vec![0; 2 * BLOCK];
    loop {
        // Whole blocks, so that the level is that of a stretch of sound.
        let mut filled = 0;
        while filled < block.len() {
            match output.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let samples = block[..filled].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
        let samples: Vec<i16> = samples.collect();
        let mut heard = lock(heard);
        heard.level = level(&samples);
        heard.samples.extend(samples);
        if filled < block.len() || heard.samples.len() >= LONGEST * RATE as usize {
            heard.ended = true;
            return;
        }
    }
}

/// From 0 (-60 dB and below) to 1 (full scale), by the mean power.
fn level(samples: &[i16]) -> f32 {
    let power = samples.iter().map(|sample| (f64::from(*sample) / 32768.0).powi(2)).sum::<f64>();
    let decibels = 10.0 * (power / samples.len().max(1) as f64 + 1e-12).log10() as f32;
    (1.0 + decibels / QUIETEST).clamp(0.0, 1.0)
}

fn seconds(samples: &[i16]) -> f64 {
    samples.len() as f64 / f64::from(RATE)
}

fn write_wav(path: &Path, samples: &[i16]) -> io::Result<()> {
    let length = 2 * samples.len() as u32;
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"RIFF")?;
    file.write_all(&(36 + length).to_le_bytes())?;
    file.write_all(b"WAVEfmt \x10\0\0\0\x01\0\x01\0")?;
    file.write_all(&RATE.to_le_bytes())?;
    file.write_all(&(2 * RATE).to_le_bytes())?;
    file.write_all(b"\x02\0\x10\0data")?;
    file.write_all(&length.to_le_bytes())?;
    for sample in samples {
        file.write_all(&sample.to_le_bytes())?;
    }
    file.flush()
}

fn no_microphone(text: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::NoMicrophone, text)
        .remedy("Connect a microphone and choose it in the system's settings, or add a recording instead.")
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    use super::*;

    /// A program that takes the place of one that records.
    fn program(folder: &Path, script: &str) -> Recorder {
        let path = folder.join("record");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        Recorder::among(Some(path.as_os_str()), None).unwrap()
    }

    #[track_caller]
    fn until(mut look: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !look() {
            assert!(Instant::now() < end, "waited in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_program_records_has_a_level_and_becomes_a_file() {
        let folder = tempfile::tempdir().unwrap();
        // Two seconds that are as loud as can be, then nothing: it records on until it is ended.
        let loud: Vec<u8> = [0xff, 0x7f, 0x01, 0x80].repeat(16_000);
        std::fs::write(folder.path().join("loud"), loud).unwrap();
        let recorder =
            program(folder.path(), &format!("cat {}/loud; exec sleep 600", folder.path().display()));
        let mut capture = recorder.start().unwrap();
        until(|| capture.level().0 >= 2.0);
        assert!(capture.level().1 > 0.99, "{:?}", capture.level());
        assert_eq!(capture.failure(), None);
        let file = folder.path().join("voice.wav");
        let seconds = capture.finish(&file).unwrap();
        assert!((2.0..2.1).contains(&seconds));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 44 + 64_000);
    }

    #[test]
    fn a_program_that_records_nothing_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = program(folder.path(), "echo 'audio open error: No such device' >&2; exit 1");
        let mut capture = recorder.start().unwrap();
        let mut found = None;
        until(|| {
            found = capture.failure();
            found.is_some()
        });
        let failure = found.unwrap();
        assert_eq!(failure.code, ErrorCode::NoMicrophone);
        assert!(failure.message.contains("No such device"), "{failure:?}");
        assert!(Recorder::among(Some("/nowhere".as_ref()), None).unwrap().start().is_err());
    }

    #[test]
    fn the_first_program_that_is_installed_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().as_os_str());
        assert_eq!(Recorder::among(None, path), None, "none is installed");
        for (name, arguments) in PROGRAMS.iter().rev() {
            std::fs::write(folder.path().join(name), "").unwrap();
            let expected = Recorder { program: folder.path().join(name), arguments };
            assert_eq!(Recorder::among(None, path), Some(expected));
        }
    }
}
