//! How text is found with a Parakeet model, CTC or transducer, [piece by piece](crate::pieces).

use candle_core::Tensor;
use formats::Abilities;
use memory::{Network, Precision};
use models::Token;
use models::boost::Boost;
use models::fast_conformer::Encoder;
use models::parakeet::Parakeet;
use transcript::Task;
use wire::{ErrorCode, Failure, Point};

use crate::pieces::{self, PieceReader, tick};
use crate::speech_model::{HearsLanguages, Request, SpeechModel, UNDETERMINED};
use crate::steps::Observer;
use crate::whisper::language_name_or_code;
use crate::{Control, StageError};

impl SpeechModel for Parakeet {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn mel_bins(&self) -> usize {
        self.config.dimensions.encoder.mel_bins as usize
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

    fn usual_language(&self) -> Option<&str> {
        Some(if self.config.multilingual { UNDETERMINED } else { "en" })
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
        let settings = request.settings;
        let boost = self.words_to_expect(&settings.vocabulary, settings.bounded_strength());
        let network = Network::Parakeet(self.config.dimensions);
        let beams = settings.beams(Abilities::of(&network).usual_beams);
        pieces::run(&Reader { model: self, beams, boost }, request, from, observer)
    }
}

/// A model with how its text is searched for.
struct Reader<'a> {
    model: &'a Parakeet,
    beams: usize,
    boost: Option<Boost>,
}

impl PieceReader for Reader<'_> {
    fn spelling(&self) -> &[String] {
        &self.model.pieces
    }

    fn encoder(&self) -> &Encoder {
        &self.model.encoder
    }

    fn mel_bins(&self) -> usize {
        SpeechModel::mel_bins(self.model)
    }

    fn has_exact_ends(&self) -> bool {
        true
    }

    fn read(&self, windows: &[Tensor], control: &Control) -> Result<Vec<Vec<Token>>, models::Error> {
        self.model.read(windows, self.beams, self.boost.as_ref(), &tick(control))
    }
}
