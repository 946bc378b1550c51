//! How text is found with a Parakeet model, CTC or transducer: pieces that end in pauses, tokens
//! with frames and durations, words and sentences made of them.

mod pieces;
mod words;

use memory::Precision;
use models::parakeet::Parakeet;
use transcript::Task;
use wire::{ErrorCode, Failure, Point};

use crate::StageError;
use crate::speech_model::{HearsLanguages, Request, SpeechModel, UNDETERMINED};
use crate::steps::Observer;
use crate::whisper::language_name_or_code;

/// Frames of the spectrogram that become one of the encoder.
const FRAMES_PER_TOKEN_FRAME: usize = 8;

impl SpeechModel for Parakeet {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn mel_bins(&self) -> usize {
        self.config.dimensions.mel_bins as usize
    }

    /// It writes what it hears: what the caller knows of the language is believed.
    fn known_language(&self, language: &str) -> Option<String> {
        if language == UNDETERMINED {
            return Some(language.to_owned());
        }
        let code = language_name_or_code(language)?;
        (self.config.multilingual || code == "en").then(|| code.to_owned())
    }

    fn hears_languages(&self) -> Option<&dyn HearsLanguages> {
        None
    }

    fn usual_language(&self) -> &str {
        if self.config.multilingual { UNDETERMINED } else { "en" }
    }

    fn transcribe(
        &self,
        request: &Request,
        from: &Point,
        observer: &mut dyn Observer,
    ) -> Result<(), StageError> {
        if request.task == Task::Translate {
            let message = "This model can't translate.";
            return Err(Failure::new(ErrorCode::BadSettings, message)
                .remedy("Choose a Whisper model that translates.")
                .into());
        }
        pieces::run(self, request, from, observer)
    }
}
