//! Decoding through the `ffmpeg` program.

use std::ffi::OsString;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use crate::child;
use crate::decoded::{DecodeStep, DecodedPiece};
use crate::{AudioError, MediaInfo, Track, Warning};

/// The environment variable with the executable; empty or `none` disables `ffmpeg`.
const VARIABLE: &str = "STENO_FFMPEG";
/// Demuxers of containers that hold their own sound. Those of playlists (`hls`, `dash`, `concat`,
/// `sdp`, ...) would have `ffmpeg` open other files of the user.
const DEMUXERS: &str = "aa,aac,aax,ac3,ac4,adx,aiff,alaw,amr,amrnb,amrwb,ape,asf,asf_o,au,avi,avr,bonk,caf,codec2,\
daud,dsf,dts,dtshd,dv,ea,eac3,flac,flv,g722,g726,g726le,g729,gsm,gxf,iff,ircam,live_flv,loas,m4v,matroska,mlp,mov,mp3,\
mpc,mpc8,mpeg,mpegts,mpegvideo,mulaw,mxf,nist,nsv,nut,ogg,oma,osq,paf,pvf,qcp,rm,rso,sbc,sds,sdx,shn,sln,smjpeg,sol,\
sox,spdif,swf,tak,truehd,tta,vmd,voc,w64,wav,wsaud,wsd,wtv,wv,xwma";
/// Frames of a piece.
const PIECE_FRAMES: usize = 16_384;
/// Bytes of its last messages that are kept.
const MESSAGE_BYTES: usize = 4096;
/// A recording that is shorter than declared by more than this, in seconds, is reported as truncated.
const TOLERANCE_SECONDS: f64 = 0.5;

/// The `ffmpeg` executable: the one that `STENO_FFMPEG` names (none if that is
/// empty or `none`), else the first in the search path.
pub fn find_ffmpeg() -> Option<PathBuf> {
    let executable = if cfg!(windows) { "ffmpeg.exe" } else { "ffmpeg" };
    let in_path = |name: &Path| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
    };
    match std::env::var_os(VARIABLE) {
        None => in_path(Path::new(executable)),
        Some(name) if name.is_empty() || name == "none" => None,
        Some(name) => {
            let name = PathBuf::from(name);
            if name.is_file() { Some(name) } else { in_path(&name) }
        }
    }
}

/// Names of the codecs that an installed `ffmpeg` adds to [`codecs`](crate::codecs()).
pub fn ffmpeg_codecs() -> Vec<String> {
    const WANTED: &[(&str, &str)] = &[
        ("aac", "HE-AAC"),
        ("ac3", "AC-3"),
        ("eac3", "E-AC-3"),
        ("dca", "DTS"),
        ("truehd", "TrueHD"),
        ("amrnb", "AMR-NB"),
        ("amrwb", "AMR-WB"),
        ("wmav2", "WMA"),
        ("wmapro", "WMA Pro"),
        ("opus", "Opus with more than two channels"),
        ("speex", "Speex"),
        ("libspeex", "Speex"),
        ("wavpack", "WavPack"),
        ("ape", "Monkey's Audio"),
        ("cook", "RealAudio"),
        ("gsm", "GSM"),
        ("g726", "G.726"),
    ];
    let Some(ffmpeg) = find_ffmpeg() else { return Vec::new() };
    let Ok(output) = Command::new(ffmpeg).args(["-hide_banner", "-decoders"]).stdin(Stdio::null()).output()
    else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let known: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let mut names: Vec<String> = WANTED
        .iter()
        .filter(|(decoder, _)| known.contains(decoder))
        .map(|(_, name)| (*name).into())
        .collect();
    names.dedup();
    names
}

/// A child process that decodes. It is killed when this is dropped.
pub(crate) struct Ffmpeg {
    child: Child,
    sound: BufReader<ChildStdout>,
    messages: Option<JoinHandle<String>>,
    info: MediaInfo,
    bytes: Vec<u8>,
    first: Option<DecodedPiece>,
    frames: u64,
    pub(crate) warnings: Vec<Warning>,
}

impl Ffmpeg {
    /// Starts decoding audio track number `track`, or the default one. `codec`
    /// replaces the name that `ffmpeg` gives the codec.
    pub(crate) fn open(
        executable: &Path,
        path: &Path,
        track: Option<usize>,
        codec: Option<&str>,
    ) -> Result<Self, AudioError> {
        let listing = list(executable, path)?;
        if let Some(format) = refused_format(&listing) {
            let detail = Some(format!("its format is {format}, which is not one of recordings"));
            return Err(AudioError::UnknownFormat { path: path.into(), detail });
        }
        let Some(mut info) = parse_listing(&listing) else {
            return Err(AudioError::UnknownFormat { path: path.into(), detail: last_line(&listing) });
        };
        if info.tracks.is_empty() {
            return Err(AudioError::NoAudioTrack { path: path.into() });
        }
        let index = track.or_else(|| info.tracks.iter().position(|track| track.default)).unwrap_or(0);
        let Some(chosen) = info.tracks.get(index) else {
            return Err(AudioError::NoSuchTrack {
                path: path.into(),
                track: index,
                available: info.tracks.len(),
            });
        };
        info.track = index;
        info.codec = codec.unwrap_or(&chosen.codec).into();

        let mut child = command(executable);
        child
            .args(["-v", "error"])
            .args(input(path))
            .args(["-map", &format!("0:a:{index}"), "-vn", "-sn", "-dn"])
            // Fills gaps in the time stamps with silence, so that times remain those of the recording.
            .args(["-af", "aresample=async=1:min_hard_comp=0.2:first_pts=0"])
            .args(["-c:a", "pcm_f32be", "-f", "au", "pipe:1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child =
            child::spawn(child).map_err(|source| AudioError::Ffmpeg { path: path.into(), source })?;
        let (Some(sound), Some(mut errors)) = (child.stdout.take(), child.stderr.take()) else {
            let source = std::io::Error::other("its output cannot be read");
            return Err(AudioError::Ffmpeg { path: path.into(), source });
        };
        // Read continuously: a full pipe of messages would block the process.
        let messages = std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut piece = [0; 1024];
            while let Ok(count @ 1..) = errors.read(&mut piece) {
                kept.extend_from_slice(&piece[..count]);
                kept.drain(..kept.len().saturating_sub(MESSAGE_BYTES));
            }
            String::from_utf8_lossy(&kept).into_owned()
        });
        let mut this = Self {
            child,
            sound: BufReader::with_capacity(1 << 16, sound),
            messages: Some(messages),
            info,
            bytes: Vec::new(),
            first: None,
            frames: 0,
            warnings: Vec::new(),
        };
        let mut first = DecodedPiece::default();
        if this.read_header().is_none() || this.read_piece(&mut first) == 0 {
            let detail = last_line(&this.finish_child());
            let codec = this.info.codec.clone();
            return Err(AudioError::UnsupportedCodec { path: path.into(), codec, detail });
        }
        this.first = Some(first);
        Ok(this)
    }

    pub(crate) fn info(&self) -> &MediaInfo {
        &self.info
    }

    pub(crate) fn next(&mut self, out: &mut DecodedPiece) -> DecodeStep {
        if let Some(first) = self.first.take() {
            *out = first;
        } else if self.read_piece(out) == 0 {
            if self.messages.is_some() {
                self.judge_end();
            }
            return DecodeStep::End;
        }
        self.frames += out.frames() as u64;
        DecodeStep::Piece
    }

    /// Reads the header of an AU file: magic number, size of the header, size of the
    /// data, encoding, rate and channels, each of 32 bits, big-endian.
    fn read_header(&mut self) -> Option<()> {
        let mut header = [0; 24];
        self.sound.read_exact(&mut header).ok()?;
        let (words, _) = header.as_chunks();
        let [magic, size, _, encoding, rate, channels] = *words else { return None };
        let [size, encoding, rate, channels] = [size, encoding, rate, channels].map(u32::from_be_bytes);
        const FLOAT: u32 = 6;
        if magic != *b".snd" || encoding != FLOAT || channels == 0 {
            return None;
        }
        let rest = u64::from(size.checked_sub(24)?);
        std::io::copy(&mut self.sound.by_ref().take(rest), &mut std::io::sink()).ok()?;
        self.info.sample_rate = rate;
        self.info.channels = channels;
        Some(())
    }

    /// Reads a piece and returns its number of frames, 0 at the end.
    fn read_piece(&mut self, out: &mut DecodedPiece) -> usize {
        let channels = self.info.channels as usize;
        self.bytes.clear();
        let wanted = (4 * channels * PIECE_FRAMES) as u64;
        // A read error counts as the end of the stream.
        let _ = self.sound.by_ref().take(wanted).read_to_end(&mut self.bytes);
        let frames = self.bytes.len() / (4 * channels);
        out.rate = self.info.sample_rate;
        out.low_frequency = None;
        out.planes.resize(channels, Vec::new());
        for (channel, plane) in out.planes.iter_mut().enumerate() {
            plane.clear();
            let samples = self.bytes.as_chunks().0.iter().skip(channel).step_by(channels).take(frames);
            plane.extend(samples.map(|bytes| f32::from_be_bytes(*bytes)));
        }
        frames
    }

    /// Warns if the recording is damaged or shorter than declared.
    fn judge_end(&mut self) {
        let messages = self.finish_child();
        let seconds = self.frames as f64 / f64::from(self.info.sample_rate.max(1));
        let failed = !self.child.wait().is_ok_and(|status| status.success());
        let short = self.info.duration_seconds.is_some_and(|declared| seconds + TOLERANCE_SECONDS < declared);
        let detail = last_line(&messages);
        if failed || short {
            self.warnings.push(Warning::Truncated { decoded: seconds, declared: None, detail });
        } else if !messages.trim().is_empty() {
            self.warnings.push(Warning::Damaged { at: None, detail });
        }
    }

    /// Waits for the process to end and returns its messages.
    fn finish_child(&mut self) -> String {
        let _ = self.child.wait();
        self.messages.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Encodes a WAV file of this program's own as FLAC, losslessly.
///
/// # Errors
/// If no `ffmpeg` is installed, or it fails.
pub fn encode_flac(wav: &Path, flac: &Path) -> Result<(), AudioError> {
    let missing = || AudioError::NeedsFfmpeg { path: flac.into(), what: "FLAC".into() };
    let executable = find_ffmpeg().ok_or_else(missing)?;
    let mut encoding = command(&executable);
    encoding.args(["-v", "error", "-y"]).args(input(wav)).args(["-c:a", "flac", "-f", "flac"]);
    let mut name = OsString::from("file:");
    name.push(flac);
    encoding.arg(name).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |source| AudioError::Ffmpeg { path: flac.into(), source };
    let output = child::spawn(encoding).and_then(Child::wait_with_output).map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let reason = last_line(&String::from_utf8_lossy(&output.stderr)).unwrap_or_default();
    Err(failed(std::io::Error::other(reason)))
}

impl Drop for Ffmpeg {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn command(executable: &Path) -> Command {
    let mut command = Command::new(executable);
    command.args(["-hide_banner", "-nostdin"]).stdin(Stdio::null());
    #[cfg(windows)]
    {
        // Opens no console window.
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        std::os::windows::process::CommandExt::creation_flags(&mut command, CREATE_NO_WINDOW);
    }
    command
}

/// The input as a `file:` URL, so that no name is taken for an option, a protocol or
/// a pattern. The lists keep it from opening other files and network addresses.
pub(crate) fn input(path: &Path) -> [OsString; 6] {
    let mut name = OsString::from("file:");
    name.push(path);
    [
        "-format_whitelist".into(),
        DEMUXERS.into(),
        "-protocol_whitelist".into(),
        "file,pipe".into(),
        "-i".into(),
        name,
    ]
}

/// The format that the list of demuxers excludes, if that is why `ffmpeg` refused the file. Its
/// line is `[png_pipe @ 0x5562] Format not on whitelist 'aac,ac3,...'`.
fn refused_format(listing: &str) -> Option<&str> {
    let line = listing.lines().find(|line| line.contains("Format not on whitelist"))?;
    let name = line.trim_start().strip_prefix('[')?.split([' ', '@', ']']).next()?;
    Some(name.strip_suffix("_pipe").unwrap_or(name))
}

/// The description of the file that `ffmpeg` prints if no output is given.
pub(crate) fn list(executable: &Path, path: &Path) -> Result<String, AudioError> {
    let mut listing = command(executable);
    listing.args(input(path)).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = child::spawn(listing)
        .and_then(std::process::Child::wait_with_output)
        .map_err(|source| AudioError::Ffmpeg { path: path.into(), source })?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Parses the description; `None` if `ffmpeg` did not recognise the file.
fn parse_listing(listing: &str) -> Option<MediaInfo> {
    let mut info = MediaInfo { by_ffmpeg: true, ..MediaInfo::default() };
    let mut recognised = false;
    // The lines after an audio stream are about it.
    let mut in_audio = false;
    for line in listing.lines() {
        let line = line.trim();
        let is_stream = line.starts_with("Stream #0:");
        if is_stream {
            in_audio = line.contains(": Audio: ");
        } else if in_audio
            && let Some((key, title)) = line.split_once(':')
            && key.trim() == "title"
            && let Some(track) = info.tracks.last_mut()
        {
            track.title = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
        }
        if let Some(rest) = line.strip_prefix("Input #0, ") {
            recognised = true;
            info.container = rest.split(", from ").next().unwrap_or(rest).into();
        } else if let Some(rest) = line.strip_prefix("Duration: ") {
            info.duration_seconds = rest.split(',').next().and_then(clock_seconds);
        } else if let Some(rest) = line.strip_prefix("Stream #0:")
            && let Some((id, description)) = rest.split_once(": Audio: ")
        {
            let mut fields = description.split(", ");
            let codec = fields.next().unwrap_or_default();
            let language = id.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
            let rate = fields.next().and_then(|field| field.strip_suffix(" Hz")?.parse().ok());
            info.tracks.push(Track {
                index: info.tracks.len(),
                codec: codec.split(' ').next().unwrap_or(codec).into(),
                language: language.filter(|language| *language != "und").map(str::to_owned),
                title: None,
                sample_rate: rate,
                channels: fields.next().and_then(channels_of_layout),
                default: description.contains("(default)"),
            });
        }
    }
    let default = info.tracks.iter().position(|track| track.default).unwrap_or(0);
    for track in &mut info.tracks {
        track.default = track.index == default;
    }
    recognised.then_some(info)
}

fn clock_seconds(text: &str) -> Option<f64> {
    text.trim().split(':').try_fold(0.0, |sum, part| Some(60.0 * sum + part.parse::<f64>().ok()?))
}

fn channels_of_layout(layout: &str) -> Option<u32> {
    match layout.split('(').next()?.trim() {
        "mono" => Some(1),
        "stereo" => Some(2),
        other => match other.strip_suffix(" channels") {
            Some(count) => count.parse().ok(),
            None => other.split('.').map(|part| part.parse::<u32>().ok()).sum(),
        },
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    // "FILE: what is wrong": the caller names the file.
    Some(line.rsplit_once(": ").map_or(line, |(_, reason)| reason).to_owned())
}
