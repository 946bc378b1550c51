//! Decoding with Symphonia and libopus.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use symphonia::core::codecs::audio::well_known::{CODEC_ID_AAC, CODEC_ID_OPUS};
use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, AudioDecoder};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::TimeBase;

use crate::codecs::{OPUS_RATE, audio_tracks, decoder_for, low_frequency, trims_itself};
use crate::decoded::{DecodeStep, DecodedPiece};
use crate::{MediaInfo, Warning, he_aac, mkv, mp4, tail};

mod seek;

pub(crate) use seek::{PacketMark, STRIDE, SeekTarget};

/// Access units that are searched for HE-AAC that is not signalled: about half a second.
const UNITS_TO_PROBE: usize = 24;
/// Jumps of the time stamps by more than this many seconds are gaps and become
/// silence. Smaller ones come from rounding by the container.
const GAP_SECONDS: f64 = 0.2;
/// Consecutive errors after which the stream counts as ended.
const MAX_FAULTS: usize = 64;
/// Longest gap that becomes silence if the container states a duration, and if not.
/// Longer ones are taken for damage.
const MAX_GAP_SECONDS: f64 = 3600.0;
const MAX_UNCONFIRMED_GAP_SECONDS: f64 = 60.0;
/// Name of the codec, which Symphonia does not have.
pub(crate) const HE_AAC: &str = "HE-AAC";
const MATROSKA: &str = "matroska";

/// Why a file can't be decoded here. `ffmpeg` may be able to.
#[derive(Debug)]
pub(crate) enum Refusal {
    UnknownFormat,
    NoAudioTrack,
    NoSuchTrack {
        available: usize,
    },
    /// There is no decoder for the codec of this name.
    Codec(String),
    Broken(String),
    Unreadable(io::Error),
}

/// A decoder of one track.
pub(crate) struct Native {
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    codec: AudioCodecId,
    track_id: u32,
    time_base: Option<TimeBase>,
    info: MediaInfo,
    /// Packets that were read ahead.
    packets: VecDeque<Packet>,
    /// A decoded piece that follows `silence` frames of silence.
    held: Option<DecodedPiece>,
    silence: u64,
    /// Hertz of the present pieces. `info` has the rate of the first one.
    rate: u32,
    /// Frames returned so far, including silence.
    position: u64,
    /// Frames to skip at the start, and the most frames to return.
    skip: u64,
    keep: Option<u64>,
    /// Factor for every sample.
    gain: f32,
    /// Time stamp, in seconds, of the start of the recording.
    origin: f64,
    /// Latest time stamp of any track, in seconds: the end of a file with video.
    latest: f64,
    /// How to tell whether the file was cut off.
    expected_end: tail::ExpectedEnd,
    faults: usize,
    first_fault: Option<(f64, String)>,
    ended: bool,
    judged: bool,
    pub(crate) warnings: Vec<Warning>,
    place: seek::SeekState,
}

impl Native {
    /// Opens audio track number `track`, or the default one.
    pub(crate) fn open(path: &Path, track: Option<usize>) -> Result<Self, Refusal> {
        guarded(|| Self::try_open(path, track)).unwrap_or_else(|panic| Err(Refusal::Broken(panic)))
    }

    fn try_open(path: &Path, wanted: Option<usize>) -> Result<Self, Refusal> {
        let file = File::open(path).map_err(Refusal::Unreadable)?;
        let stream = MediaSourceStream::new(Box::new(file), Default::default());
        // The probe gets no extension as a hint, since extensions can be wrong.
        let format = symphonia::default::get_probe()
            .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
            .map_err(|error| match error {
                Error::IoError(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
                    Refusal::Unreadable(source)
                }
                Error::Unsupported(_) => Refusal::UnknownFormat,
                other => Refusal::Broken(other.to_string()),
            })?;

        let (mut tracks, ids) = audio_tracks(format.as_ref());
        if tracks.is_empty() {
            return Err(Refusal::NoAudioTrack);
        }
        if format.format_info().short_name == MATROSKA {
            let entries = mkv::track_entries(path);
            let entry = |id| entries.iter().find(|entry| entry.number == id);
            let default = ids.iter().position(|id| entry(*id).is_some_and(|entry| entry.is_default));
            for (track, id) in tracks.iter_mut().zip(&ids) {
                track.default = track.index == default.unwrap_or(0);
                track.title = entry(*id).and_then(|entry| entry.name.clone());
            }
        }
        let index = match wanted {
            None => tracks.iter().position(|track| track.default).unwrap_or(0),
            Some(index) if index < tracks.len() => index,
            Some(_) => return Err(Refusal::NoSuchTrack { available: tracks.len() }),
        };
        let chosen = format.tracks().iter().find(|track| track.id == ids[index]);
        let Some((chosen, parameters)) =
            chosen.and_then(|track| Some((track, track.codec_params.as_ref()?.audio()?.clone())))
        else {
            return Err(Refusal::NoAudioTrack);
        };
        let announced = || parameters.extra_data.as_deref().is_some_and(he_aac::announced);
        if parameters.codec == CODEC_ID_AAC && announced() {
            return Err(Refusal::Codec(HE_AAC.into()));
        }
        let time_base = chosen.time_base;
        let seconds = |ticks: u64| time_base.map(|base| ticks as f64 * base_seconds(base));
        let declared = chosen
            .duration
            .and_then(|duration| seconds(duration.get()))
            .or_else(|| Some(chosen.num_frames? as f64 / f64::from(parameters.sample_rate?)))
            .or_else(|| {
                let media = format.media_info();
                Some(media.duration?.get() as f64 * base_seconds(media.time_base?))
            });
        let container = format.format_info().short_name;
        let mut native = Self {
            decoder: decoder_for(&parameters)?,
            codec: parameters.codec,
            track_id: chosen.id,
            time_base,
            info: MediaInfo {
                container: container.into(),
                codec: tracks[index].codec.clone(),
                sample_rate: parameters.sample_rate.unwrap_or(0),
                channels: tracks[index].channels.unwrap_or(0),
                duration_seconds: declared.filter(|seconds| *seconds > 0.0),
                tracks,
                track: index,
                by_ffmpeg: false,
            },
            packets: VecDeque::new(),
            held: None,
            silence: 0,
            rate: parameters.sample_rate.unwrap_or(0),
            position: 0,
            skip: 0,
            keep: None,
            gain: 1.0,
            origin: 0.0,
            latest: 0.0,
            expected_end: tail::expected(path, container),
            faults: 0,
            first_fault: None,
            ended: false,
            judged: false,
            warnings: Vec::new(),
            place: seek::SeekState::default(),
            format,
        };
        native.read_ahead();
        native.refuse_unannounced_he_aac()?;
        native.set_opus_header(&parameters);
        native.decode_first(path)?;
        Ok(native)
    }

    pub(crate) fn info(&self) -> &MediaInfo {
        &self.info
    }

    /// Reads the first packets to find the time of the start and to detect HE-AAC.
    fn read_ahead(&mut self) {
        let mut origin = f64::INFINITY;
        let wanted = if self.codec == CODEC_ID_AAC { UNITS_TO_PROBE } else { 1 };
        while self.packets.len() < wanted {
            match self.format.next_packet() {
                Ok(Some(packet)) => {
                    origin = origin.min(self.stamp(&packet));
                    if packet.track_id == self.track_id {
                        self.packets.push_back(packet);
                    }
                }
                // Decoding meets the error again and handles it.
                Ok(None) | Err(_) => break,
            }
        }
        // Matroska may start at any time; all other containers start at 0.
        if self.info.container == MATROSKA && origin.is_finite() {
            self.origin = origin.max(0.0);
        }
    }

    fn refuse_unannounced_he_aac(&self) -> Result<(), Refusal> {
        if self.codec != CODEC_ID_AAC {
            return Ok(());
        }
        // An access unit of AAC-LC has 1024 samples, one of HE-AAC has 2048.
        let long = self.packets.iter().all(|packet| {
            let seconds = self.time_base.map_or(0.0, |base| packet.dur.get() as f64 * base_seconds(base));
            seconds * f64::from(self.info.sample_rate) > 1500.0
        });
        if (long && !self.packets.is_empty()) || he_aac::present(self.packets.iter().map(|p| &*p.data)) {
            return Err(Refusal::Codec(HE_AAC.into()));
        }
        Ok(())
    }

    /// Sets the delay and the gain of an Opus header (RFC 7845, section 5.1), which is
    /// big-endian in MP4.
    fn set_opus_header(&mut self, parameters: &AudioCodecParameters) {
        let header = parameters.extra_data.as_deref().filter(|_| self.codec == CODEC_ID_OPUS);
        let word = |at: usize| {
            let bytes = header?.get(at..at + 2)?.try_into().ok()?;
            Some(if self.info.container == "isomp4" {
                u16::from_be_bytes(bytes)
            } else {
                u16::from_le_bytes(bytes)
            })
        };
        self.skip = word(10).map_or(0, u64::from);
        if self.info.container == "ogg"
            && let Some(duration) = &mut self.info.duration_seconds
        {
            // Positions in Ogg include the delay.
            *duration -= self.skip as f64 / f64::from(OPUS_RATE);
        }
        // In 256ths of a decibel.
        let decibels = f32::from(word(16).map_or(0, u16::cast_signed)) / 256.0;
        self.gain = 10f32.powf(decibels / 20.0);
    }

    /// Decodes the first piece, which has the true rate and number of channels, and
    /// sets what to skip at both ends.
    fn decode_first(&mut self, path: &Path) -> Result<(), Refusal> {
        let mut first = DecodedPiece::default();
        while first.frames() == 0 {
            if self.step(&mut first) == DecodeStep::End {
                return match self.first_fault.take() {
                    Some((_, fault)) => Err(Refusal::Broken(fault)),
                    // The recording has no samples.
                    None => Ok(()),
                };
            }
        }
        self.info.sample_rate = first.rate;
        self.rate = first.rate;
        self.info.channels = first.planes.len() as u32;
        if self.info.container == "isomp4"
            && let Some(edit) = mp4::edit_of(path, self.track_id)
        {
            self.skip = (edit.skip * f64::from(first.rate)).round() as u64;
            let offset = (edit.offset * f64::from(first.rate)).round() as u64;
            self.keep = edit.keep.map(|keep| offset + (keep * f64::from(first.rate)).ceil() as u64);
            self.silence = offset;
            self.origin = edit.skip - edit.offset;
            if let Some(keep) = edit.keep {
                self.info.duration_seconds = Some(edit.offset + keep);
            }
        }
        self.position = 0;
        let frames = first.frames();
        self.hold(first, frames);
        Ok(())
    }

    /// Holds a decoded piece until the silence before it was returned.
    fn hold(&mut self, mut piece: DecodedPiece, frames: usize) {
        if piece.rate != self.rate {
            self.place.irregular = true;
            // A chained stream, or damage: positions are converted to the new rate.
            let ratio = f64::from(piece.rate) / f64::from(self.rate.max(1));
            self.position = (self.position as f64 * ratio) as u64;
            self.keep = self.keep.map(|keep| (keep as f64 * ratio) as u64);
            self.rate = piece.rate;
        }
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(frames);
        self.skip -= skipped as u64;
        piece.trim(skipped, 0);
        self.held = Some(piece);
    }

    /// Decodes the next piece: at most a packet, or a second of silence.
    pub(crate) fn next(&mut self, out: &mut DecodedPiece) -> DecodeStep {
        loop {
            if self.keep.is_some_and(|keep| self.position >= keep) {
                self.held = None;
                self.ended = true;
            }
            if let Some(held) = &mut self.held {
                if self.silence > 0 {
                    let frames = self.silence.min(u64::from(held.rate)) as usize;
                    self.silence -= frames as u64;
                    out.rate = held.rate;
                    out.planes.resize(held.planes.len(), Vec::new());
                    out.silence(frames);
                } else {
                    std::mem::swap(out, held);
                    self.held = None;
                }
                if let Some(keep) = self.keep {
                    out.truncate(usize::try_from(keep - self.position).unwrap_or(usize::MAX));
                }
                self.position += out.frames() as u64;
                return DecodeStep::Piece;
            }
            let mut piece = DecodedPiece::default();
            if self.ended || self.step(&mut piece) == DecodeStep::End {
                self.ended = true;
                if !std::mem::replace(&mut self.judged, true) {
                    self.judge_end();
                }
                return DecodeStep::End;
            }
            let frames = piece.frames();
            if self.is_before_target() {
                continue;
            }
            let whole = self.skip == 0 && frames > 0;
            self.hold(piece, frames);
            if whole {
                self.note_position();
            }
        }
    }

    /// Reads and decodes one packet. One that can't be decoded becomes silence.
    fn step(&mut self, out: &mut DecodedPiece) -> DecodeStep {
        match guarded(|| self.try_step(out)) {
            Ok(step) => step,
            Err(panic) => {
                // A decoder that panicked may be in an invalid state and is not used again.
                self.note_fault(&format!("a fault in the decoder: {panic}"));
                self.ended = true;
                DecodeStep::End
            }
        }
    }

    fn try_step(&mut self, out: &mut DecodedPiece) -> DecodeStep {
        let mut packet = loop {
            if let Some(packet) = self.packets.pop_front() {
                break packet;
            }
            match self.format.next_packet() {
                Ok(Some(packet)) => {
                    self.latest = self.latest.max(self.stamp(&packet) + self.length(&packet));
                    if packet.track_id == self.track_id {
                        break packet;
                    }
                }
                Ok(None) => return DecodeStep::End,
                Err(Error::ResetRequired) => match self.follow_chain() {
                    Some(()) => {}
                    None => return DecodeStep::End,
                },
                Err(Error::IoError(error)) => {
                    // A wave file that was written to a pipe states no length.
                    let endless = self.info.container == "wave" && self.info.duration_seconds.is_none();
                    if !(endless && error.kind() == io::ErrorKind::UnexpectedEof) {
                        self.note_fault(&error.to_string());
                    }
                    return DecodeStep::End;
                }
                Err(error) => {
                    self.note_fault(&error.to_string());
                    self.faults += 1;
                    if self.faults > MAX_FAULTS {
                        return DecodeStep::End;
                    }
                }
            }
        };
        let due = self.stamp(&packet) - self.origin;
        self.place.enter(&mut packet);
        match self.decoder.decode(&packet) {
            Ok(buffer) => {
                out.rate = buffer.spec().rate();
                out.low_frequency = low_frequency(buffer.spec().channels());
                buffer.copy_to_vecs_planar(&mut out.planes);
                self.faults = 0;
                if self.gain != 1.0 {
                    out.planes.iter_mut().flatten().for_each(|sample| *sample *= self.gain);
                }
                if !trims_itself(self.codec) {
                    out.trim(packet.trim_start.get() as usize, packet.trim_end.get() as usize);
                }
                self.fill_gap(due, out.rate);
            }
            Err(error) => {
                self.note_fault(&error.to_string());
                self.faults += 1;
                if self.faults > MAX_FAULTS {
                    return DecodeStep::End;
                }
                let rate = self.rate;
                out.rate = rate;
                out.planes.resize(self.info.channels as usize, Vec::new());
                // Limited to a second, since no packet of any codec is longer.
                out.silence((self.length(&packet) * f64::from(rate)).min(f64::from(rate)) as usize);
            }
        }
        DecodeStep::Piece
    }

    /// Adds silence if the time stamps jump.
    fn fill_gap(&mut self, due: f64, rate: u32) {
        let given = (self.position + self.silence) as f64 - self.skip as f64;
        let behind = due - given / f64::from(rate.max(1));
        // Other containers store no time stamps; they are counted.
        let stamped = matches!(self.info.container.as_str(), MATROSKA | "isomp4" | "ogg");
        let believed = match self.info.duration_seconds {
            Some(duration) => behind <= MAX_GAP_SECONDS && due <= duration + 1.0,
            None => behind <= MAX_UNCONFIRMED_GAP_SECONDS,
        };
        if stamped && behind > GAP_SECONDS && believed {
            self.silence += (behind * f64::from(rate)) as u64;
        }
    }

    /// Opens a decoder for the next one of several chained Ogg streams.
    fn follow_chain(&mut self) -> Option<()> {
        let (tracks, ids) = audio_tracks(self.format.as_ref());
        let id = *ids.get(self.info.track.min(tracks.len().checked_sub(1)?))?;
        let track = self.format.tracks().iter().find(|track| track.id == id)?;
        let parameters = track.codec_params.as_ref()?.audio()?.clone();
        self.time_base = track.time_base;
        self.track_id = id;
        self.codec = parameters.codec;
        self.decoder = decoder_for(&parameters).ok()?;
        self.place.irregular = true;
        self.gain = 1.0;
        self.skip = 0;
        self.set_opus_header(&parameters);
        // The time stamps of each stream start at 0.
        self.origin = -(self.position as f64) / f64::from(self.rate.max(1));
        self.info.duration_seconds = None;
        self.expected_end = tail::ExpectedEnd::Unknown;
        Some(())
    }

    /// Warns if the file is damaged or was cut off.
    fn judge_end(&mut self) {
        let seconds = self.position as f64 / f64::from(self.rate.max(1));
        let short = match self.expected_end {
            tail::ExpectedEnd::Unknown => false,
            tail::ExpectedEnd::Missing => true,
            tail::ExpectedEnd::Declared { tolerance } => self
                .info
                .duration_seconds
                .is_some_and(|declared| seconds.max(self.latest) + tolerance < declared),
        };
        let fault = self.first_fault.take();
        // An error that no sound follows is the end of the file.
        let at_end = fault.as_ref().is_some_and(|(at, _)| at + 0.5 >= seconds);
        if short || at_end {
            let declared = self.info.duration_seconds.filter(|declared| *declared > seconds + 0.01);
            self.warnings.push(Warning::Truncated { decoded: seconds, declared, detail: None });
        } else if let Some((at, fault)) = fault {
            self.warnings.push(Warning::Damaged { at: Some(at), detail: Some(fault) });
        }
    }

    fn note_fault(&mut self, fault: &str) {
        if self.first_fault.is_none() {
            let at = self.position as f64 / f64::from(self.rate.max(1));
            self.first_fault = Some((at, fault.to_owned()));
        }
    }

    /// Time stamp of a packet in seconds.
    fn stamp(&self, packet: &Packet) -> f64 {
        let base = if packet.track_id == self.track_id {
            self.time_base
        } else {
            self.format
                .tracks()
                .iter()
                .find(|track| track.id == packet.track_id)
                .and_then(|track| track.time_base)
        };
        base.map_or(0.0, |base| packet.pts.get() as f64 * base_seconds(base))
    }

    /// Length of a packet in seconds.
    fn length(&self, packet: &Packet) -> f64 {
        self.time_base.map_or(0.0, |base| packet.dur.get() as f64 * base_seconds(base))
    }
}

/// Runs code that reads untrusted bytes. A panic becomes an error with its message.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into())
    })
}

fn base_seconds(base: TimeBase) -> f64 {
    f64::from(base.numer.get()) / f64::from(base.denom.get())
}
