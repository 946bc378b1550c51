//! A part of a recording as a sound file of its own, at the recording's own rate.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use audio::{AudioError, Seekable};
use transcript::Span;
use transcript::save::{Existing, SaveError, write_file};
use wire::{ErrorCode, Failure};

use crate::failure;
use crate::wave::Wave;

/// Seconds of the recording that are decoded at once.
const PIECE_SECONDS: u32 = 1;

/// Writes a part of a recording, of its default audio track or the one of this number from 0, to `out`, whole or not at all: WAV with 16 bits, or FLAC where the
/// name ends so. More than two channels are mixed into one. An end behind the recording's is its end.
///
/// # Errors
/// If the part is none of the recording's, the recording can't be decoded, or the file can't be
/// written; FLAC needs `ffmpeg`.
pub fn clip(path: &Path, track: Option<usize>, span: Span, out: &Path, replace: bool) -> Result<(), Failure> {
    let of_audio = |error: AudioError| failure::of(&error, path);
    let ending = out.extension().unwrap_or_default().to_ascii_lowercase();
    let as_flac = ending == "flac";
    if !as_flac && ending != "wav" {
        let text = "The name of the file must end in .wav or .flac.";
        return Err(Failure::new(ErrorCode::BadSettings, text).file(out));
    }
    let sound = Seekable::open_track(path, track, None).map_err(of_audio)?;
    let rate = sound.rate();
    let frame = |time: transcript::Time| (time.seconds() * f64::from(rate)).round() as u64;
    let length = sound.frames().unwrap_or(u64::MAX);
    let (from, to) = (frame(span.start), frame(span.end).min(length));
    if from >= to {
        let text = match span.start < span.end {
            true => format!("The recording ends after {:.1} s.", length as f64 / f64::from(rate)),
            false => "The end of the part must be after its start.".to_owned(),
        };
        return Err(Failure::new(ErrorCode::BadSettings, text).file(path).remedy("Choose another part."));
    }
    let existing = if replace { Existing::Replace } else { Existing::Keep };
    let mut broken = None;
    let written = write_file(out, existing, |file| {
        let kept = |error: AudioError| {
            broken = Some(error);
            io::Error::other("the sound can't be read")
        };
        if !as_flac {
            return write_wave(sound, from..to, file, kept);
        }
        let folder = tempfile::tempdir()?;
        let (wav, flac) = (folder.path().join("clip.wav"), folder.path().join("clip.flac"));
        let mut whole = BufWriter::new(File::create(&wav)?);
        let mut kept = kept;
        write_wave(sound, from..to, &mut whole, &mut kept)?;
        whole.flush()?;
        audio::encode_flac(&wav, &flac).map_err(kept)?;
        io::copy(&mut File::open(&flac)?, file).map(drop)
    });
    match (written, broken) {
        (_, Some(error)) => Err(of_audio(error)),
        (Err(error), None) => Err(unwritten(&error)),
        (Ok(()), None) => Ok(()),
    }
}

/// Frames of a recording as a WAV file. Where the recording turns out to be shorter than it says, so
/// is the file.
fn write_wave(
    mut sound: Seekable,
    frames: std::ops::Range<u64>,
    out: &mut dyn Write,
    mut failed: impl FnMut(AudioError) -> io::Error,
) -> io::Result<()> {
    let (rate, channels) = (sound.rate(), sound.channels());
    // How much there is of it is known at its end, and the header comes first.
    let mut spool = BufWriter::new(tempfile::tempfile()?);
    let mut written = 0;
    let mut keep = |samples: &[i16]| {
        written += (samples.len() / channels) as u64;
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        spool.write_all(&bytes)
    };
    if sound.is_exact() {
        let (mut at, mut samples) = (frames.start, Vec::new());
        while at < frames.end {
            let count = u64::from(rate * PIECE_SECONDS).min(frames.end - at);
            samples.clear();
            sound.read(at, count as usize, &mut samples);
            if samples.is_empty() {
                break;
            }
            keep(&samples)?;
            at += count;
        }
    } else {
        // Positions are known by decoding from the start alone.
        let mut pass = sound.pass().map_err(&mut failed)?;
        let mut at = 0;
        while at < frames.end
            && let Some(block) = pass.next_block()
        {
            let count = (block.len() / channels) as u64;
            let within = |frame: u64| (frame.clamp(at, at + count) - at) as usize * channels;
            keep(&block[within(frames.start)..within(frames.end)])?;
            at += count;
        }
    }
    let wave = Wave::new(rate, channels, written);
    if written == 0 {
        let detail = "this part has no sound".to_owned();
        return Err(failed(AudioError::Broken { path: PathBuf::new(), detail }));
    }
    if wave.joined > 1 {
        return Err(io::Error::other("a sound file can't be larger than 4 GB"));
    }
    let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
    spool.rewind()?;
    out.write_all(&wave.header())?;
    io::copy(&mut spool, out).map(drop)
}

fn unwritten(error: &SaveError) -> Failure {
    Failure::named(error.code(), &error.message(), Some(error.remedy())).file(error.path())
}
