//! What a job asks of a speech model, whatever its family. Each family has its own windows,
//! tokens and state behind it; job, ladder, journal and exports know this alone.

use std::fmt;
use std::path::Path;

use audio::{Mel, Recording};
use candle_core::Device;
use formats::AdapterFile;
use memory::{Network, Precision};
use models::Tick;
use models::canary::Canary;
use models::parakeet::Parakeet;
use models::whisper::Whisper;
use transcript::{Span, Task};
use wire::{DecodingOptions, Point, Strategy};

use crate::steps::{Observer, Speech};
use crate::{Control, StageError};

/// The language of a text that no one named (ISO 639-2).
pub const UNDETERMINED: &str = "und";

/// A speech model on its device.
pub trait SpeechModel: fmt::Debug + Send + Sync {
    /// The precision that most weights are held in.
    fn precision(&self) -> Precision;

    /// Bands of its spectrogram.
    fn mel_bins(&self) -> usize;

    /// The code of a language, given as a code or by its name, that the model can write; `None`: it can't.
    fn known_language(&self, language: &str) -> Option<String>;

    /// How it tells which language is spoken; `None`: it doesn't.
    fn hears_languages(&self) -> Option<&dyn HearsLanguages>;

    /// The language of recordings that it can't tell by listening; `None`: it must be told it.
    fn usual_language(&self) -> Option<&str>;

    /// Transcribes a recording from the point `from` on, `Point::default()` being its beginning.
    /// From any point that was handed out, the text goes on as it would have without the
    /// interruption.
    ///
    /// # Errors
    /// The error of the observer, a failure to compute or to read the sound, or that the job was cancelled.
    fn transcribe(
        &self,
        request: &Request,
        from: &Point,
        observer: &mut dyn Observer,
    ) -> Result<(), StageError>;
}

/// Tells which language is spoken.
pub trait HearsLanguages {
    /// Bands of the spectrogram.
    fn mel_bins(&self) -> usize;

    /// Frames of a window.
    fn window_frames(&self) -> usize;

    /// Probabilities of all languages, likeliest first, per window.
    ///
    /// # Errors
    /// Where computing fails, or the job was cancelled.
    fn languages(
        &self,
        windows: Vec<Mel>,
        control: &Control,
    ) -> Result<Vec<Vec<(String, f32)>>, models::Error>;
}

/// What is to be transcribed, and how.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The sound.
    pub recording: &'a Recording,
    /// Where speech is.
    pub speech: Speech<'a>,
    /// Nothing but this part of the recording; `None`: all of it.
    pub span: Option<Span>,
    /// How it becomes windows.
    pub strategy: Strategy,
    /// How to decode.
    pub settings: &'a DecodingOptions,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// The recording's language, ISO code.
    pub language: &'a str,
    /// A window that begins at one of these samples is left without text.
    pub skip: &'a [u64],
    /// Says when to stop.
    pub control: &'a Control,
}

/// Loads the model at `path`.
///
/// # Errors
/// Where its files are not a complete model of this family, the device has no room for it, or `on_layer` said to stop.
pub fn load(
    network: &Network,
    path: &Path,
    device: &Device,
    precision: Precision,
    on_layer: &Tick,
) -> Result<Box<dyn SpeechModel>, models::Error> {
    load_adapted(network, path, None, device, precision, on_layer)
}

/// As [`load`], with an adapter of the model, which only Whisper's have.
///
/// # Errors
/// As [`load`].
pub fn load_adapted(
    network: &Network,
    path: &Path,
    adapter: Option<AdapterFile>,
    device: &Device,
    precision: Precision,
    on_layer: &Tick,
) -> Result<Box<dyn SpeechModel>, models::Error> {
    Ok(match network {
        Network::Whisper(_) => Box::new(Whisper::load_adapted(path, adapter, device, precision, on_layer)?),
        Network::Parakeet(_) => Box::new(Parakeet::load(path, device, precision, on_layer)?),
        Network::Canary(_) => Box::new(Canary::load(path, device, precision, on_layer)?),
    })
}
