//! Decoding to a stream of 16 kHz mono samples.

use std::path::Path;

use crate::decoded::{DecodeStep, DecodedPiece};
use crate::ffmpeg::{Ffmpeg, find_ffmpeg};
use crate::limits;
use crate::mix::Mixer;
use crate::native::{HE_AAC, Native, Refusal};
use crate::resample::Resampler;
use crate::{AudioError, MediaInfo, OpenOptions, SAMPLE_RATE, Warning, mp4, source};

/// Least samples of a block but the last one: half a second.
const BLOCK_SAMPLES: usize = 8_000;

/// Opens a recording and decodes its beginning, to tell what it is.
///
/// # Errors
/// If the file can't be read or decoded.
pub fn probe(path: &Path) -> Result<MediaInfo, AudioError> {
    Ok(Reader::open(path, &OpenOptions::default())?.info().clone())
}

/// Names of the codecs that are decoded without `ffmpeg`.
pub fn codecs() -> Vec<String> {
    ["PCM", "A-law", "mu-law", "ADPCM", "FLAC", "ALAC", "MP1", "MP2", "MP3", "AAC-LC", "Vorbis", "Opus"]
        .map(String::from)
        .to_vec()
}

/// A recording as a stream of blocks of 16 kHz mono samples.
pub struct Reader {
    source: PieceSource,
    mixer: Mixer,
    resampler: Option<Resampler>,
    decoded: DecodedPiece,
    mono: Vec<f32>,
    block: Vec<f32>,
    /// Samples left until the limit, if there is one.
    left: Option<u64>,
    ended: bool,
    warnings: Vec<Warning>,
    path: std::path::PathBuf,
}

/// Where decoded pieces come from.
pub(crate) enum PieceSource {
    Native(Box<Native>),
    Ffmpeg(Box<Ffmpeg>),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("info", self.info()).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file, through `ffmpeg` if necessary, and decodes its beginning.
    ///
    /// # Errors
    /// If the file can't be read or decoded, or does not have the chosen track or
    /// channel.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, AudioError> {
        source::check(path)?;
        let source = open_source(path, options.track)?;
        let mut reader = Self {
            source,
            mixer: Mixer::default(),
            resampler: None,
            decoded: DecodedPiece::default(),
            mono: Vec::new(),
            block: Vec::new(),
            left: options
                .limit_seconds
                .map(|seconds| (seconds.max(0.0) * f64::from(SAMPLE_RATE)).round() as u64),
            ended: false,
            warnings: Vec::new(),
            path: path.into(),
        };
        let channels = reader.info().channels as usize;
        if let Some(channel) = options.channels.index().filter(|channel| *channel >= channels && channels > 0)
        {
            if channels > 1 {
                return Err(AudioError::NoSuchChannel { path: path.into(), channel, available: channels });
            }
            reader.warnings.push(Warning::Mono);
        }
        reader.mixer = Mixer::new(options.channels.index());
        Ok(reader)
    }

    /// What is known of the recording.
    pub fn info(&self) -> &MediaInfo {
        match &self.source {
            PieceSource::Native(native) => native.info(),
            PieceSource::Ffmpeg(ffmpeg) => ffmpeg.info(),
        }
    }

    /// The warnings so far. They are complete once [`Reader::next_block`] has returned `None`.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The next block of samples; `None` at the end.
    ///
    /// # Errors
    /// [`AudioError::Broken`] if the file switches to an impossible sample rate.
    pub fn next_block(&mut self) -> Result<Option<&[f32]>, AudioError> {
        self.block.clear();
        while !self.ended && self.block.len() < BLOCK_SAMPLES {
            let step = match &mut self.source {
                PieceSource::Native(native) => native.next(&mut self.decoded),
                PieceSource::Ffmpeg(ffmpeg) => ffmpeg.next(&mut self.decoded),
            };
            match step {
                DecodeStep::Piece => self.convert()?,
                DecodeStep::End => self.finish()?,
            }
        }
        if let Some(left) = &mut self.left {
            self.block.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= self.block.len() as u64;
            self.ended |= *left == 0;
        }
        Ok((!self.block.is_empty()).then_some(&self.block))
    }

    /// See [`Mixer::phase_loss`].
    pub(crate) fn phase_loss(&self) -> Option<(usize, f64)> {
        self.mixer.phase_loss()
    }

    /// Mixes and resamples the piece in `decoded` and appends it to the block.
    fn convert(&mut self) -> Result<(), AudioError> {
        if self.decoded.frames() == 0 {
            return Ok(());
        }
        self.mixer.mix(&self.decoded, &mut self.mono);
        let broken = |detail| AudioError::Broken { path: self.path.clone(), detail };
        // The rate changes between chained streams.
        if let Some(old) = &mut self.resampler
            && old.rate() != self.decoded.rate
        {
            old.finish(&mut self.block).map_err(broken)?;
            self.resampler = None;
        }
        let resampler = match &mut self.resampler {
            Some(resampler) => resampler,
            None => self.resampler.insert(Resampler::new(self.decoded.rate).map_err(broken)?),
        };
        resampler.push(&self.mono, &mut self.block).map_err(broken)
    }

    fn finish(&mut self) -> Result<(), AudioError> {
        self.ended = true;
        if let Some(resampler) = &mut self.resampler {
            let broken = |detail| AudioError::Broken { path: self.path.clone(), detail };
            resampler.finish(&mut self.block).map_err(broken)?;
        }
        self.warnings.append(match &mut self.source {
            PieceSource::Native(native) => &mut native.warnings,
            PieceSource::Ffmpeg(ffmpeg) => &mut ffmpeg.warnings,
        });
        Ok(())
    }
}

/// Opens a file for decoding, here or through `ffmpeg`, if it is what a recording can be.
pub(crate) fn open_source(path: &Path, track: Option<usize>) -> Result<PieceSource, AudioError> {
    let source = open_unchecked(path, track)?;
    let info = match &source {
        PieceSource::Native(native) => native.info(),
        PieceSource::Ffmpeg(ffmpeg) => ffmpeg.info(),
    };
    limits::check(path, info)?;
    Ok(source)
}

fn open_unchecked(path: &Path, track: Option<usize>) -> Result<PieceSource, AudioError> {
    let foreign = source::foreign_format(path);
    let refusal = match foreign {
        Some(format) => Refusal::Codec(format.into()),
        None => match Native::open(path, track) {
            Ok(native) => return Ok(PieceSource::Native(Box::new(native))),
            Err(refusal) => refusal,
        },
    };
    if let Refusal::Unreadable(source) = refusal {
        return Err(AudioError::Unreadable { path: path.into(), source });
    }
    if matches!(refusal, Refusal::UnknownFormat | Refusal::Broken(_)) && mp4::lacks_index(path) {
        return Err(AudioError::Incomplete { path: path.into() });
    }
    let Some(ffmpeg) = find_ffmpeg() else {
        return Err(match refusal {
            Refusal::UnknownFormat | Refusal::Unreadable(_) => AudioError::UnknownFormat {
                path: path.into(),
                detail: Some("an installed ffmpeg would add more formats".into()),
            },
            Refusal::NoAudioTrack => AudioError::NoAudioTrack { path: path.into() },
            Refusal::NoSuchTrack { available } => {
                AudioError::NoSuchTrack { path: path.into(), track: track.unwrap_or(0), available }
            }
            Refusal::Codec(what) => AudioError::NeedsFfmpeg { path: path.into(), what },
            Refusal::Broken(detail) => AudioError::Broken { path: path.into(), detail },
        });
    };
    // ffmpeg names it plain AAC.
    let codec = matches!(&refusal, Refusal::Codec(name) if name == HE_AAC).then_some(HE_AAC);
    match (Ffmpeg::open(&ffmpeg, path, track, codec), refusal) {
        (Ok(ffmpeg), _) => Ok(PieceSource::Ffmpeg(Box::new(ffmpeg))),
        // The container was recognised here, so damage is the better explanation.
        (
            Err(AudioError::UnknownFormat { .. } | AudioError::UnsupportedCodec { .. }),
            Refusal::Broken(detail),
        ) => Err(AudioError::Broken { path: path.into(), detail }),
        (Err(error), _) => Err(error),
    }
}
