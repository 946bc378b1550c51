//! How text is found with a Canary model, [piece by piece](crate::pieces): it is told which language is spoken and which one
//! to write. When each token is spoken follows from what the decoder attends to as it writes it.

use candle_core::Tensor;
use memory::Precision;
use models::Token;
use models::boost::Boost;
use models::canary::Canary;
use models::fast_conformer::Encoder;
use transcript::Task;
use wire::{ErrorCode, Failure, Point};

use crate::alignment::Attended;
use crate::pieces::{self, PieceReader, tick};
use crate::speech_model::{HearsLanguages, Request, SpeechModel};
use crate::steps::Observer;
use crate::whisper::language_name_or_code;
use crate::{Control, StageError};

impl SpeechModel for Canary {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn mel_bins(&self) -> usize {
        self.config.dimensions.encoder.mel_bins as usize
    }

    fn known_language(&self, language: &str) -> Option<String> {
        let code = language_name_or_code(language)?;
        self.tokens.languages.iter().any(|(known, _)| known == code).then(|| code.to_owned())
    }

    fn hears_languages(&self) -> Option<&dyn HearsLanguages> {
        None
    }

    fn usual_language(&self) -> Option<&str> {
        None
    }

    fn transcribe(
        &self,
        request: &Request,
        from: &Point,
        observer: &mut dyn Observer,
    ) -> Result<(), StageError> {
        let Request { settings, task, language, .. } = *request;
        let written = match task {
            Task::Transcribe => language,
            Task::Translate => "en",
        };
        let Some(prompt) = self.tokens.prompt(language, written) else {
            let message = format!("This model can't write {written} for {language}.");
            return Err(Failure::new(ErrorCode::LanguageUnknown, message)
                .remedy("Choose another language, or a Whisper model.")
                .into());
        };
        let boost = self.words_to_expect(&settings.vocabulary, settings.bounded_strength());
        pieces::run(&Reader { model: self, prompt, boost }, request, from, observer)
    }
}

/// A model with what it is asked for.
struct Reader<'a> {
    model: &'a Canary,
    prompt: Vec<u32>,
    boost: Option<Boost>,
}

impl PieceReader for Reader<'_> {
    fn spelling(&self) -> &[String] {
        &self.model.tokens.pieces
    }

    fn encoder(&self) -> &Encoder {
        &self.model.encoder
    }

    fn mel_bins(&self) -> usize {
        SpeechModel::mel_bins(self.model)
    }

    fn has_exact_ends(&self) -> bool {
        false
    }

    fn read(&self, windows: &[Tensor], control: &Control) -> Result<Vec<Vec<Token>>, models::Error> {
        let tick = tick(control);
        let read = |frames: &Tensor| {
            let read = self.model.read(frames, &self.prompt, self.boost.as_ref(), &tick)?;
            let (rows, positions) = (read.tokens.len() + 1, frames.dim(0)?);
            let starts = Attended { shares: read.shares, rows, positions }.starts();
            let tokens = read.tokens.iter().zip(starts.windows(2));
            let token = |((id, probability), at): (&(u32, f32), &[usize])| Token {
                id: *id,
                frame: at[0],
                frames: at[1] - at[0],
                probability: *probability,
            };
            Ok(tokens.map(token).collect())
        };
        windows.iter().map(read).collect()
    }
}
