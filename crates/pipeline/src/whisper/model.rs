use audio::Mel;
use memory::Precision;
use models::whisper::Whisper;
use wire::Point;

use super::fallback::mix;
use super::language::{detect_language, language_name_or_code};
use super::prompt::words_to_expect;
use super::source::encode_windows;
use super::transcriber::Transcriber;
use crate::speech_model::{HearsLanguages, Request, SpeechModel};
use crate::steps::Observer;
use crate::{Control, StageError};

impl SpeechModel for Whisper {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn mel_bins(&self) -> usize {
        self.config.dimensions.mel_bins as usize
    }

    fn known_language(&self, language: &str) -> Option<String> {
        let vocabulary = &self.vocabulary;
        let known = |code: &str| match vocabulary.is_multilingual() {
            true => vocabulary.language_token(code).is_some(),
            false => code == "en",
        };
        language_name_or_code(language).filter(|code| known(code)).map(str::to_owned)
    }

    fn hears_languages(&self) -> Option<&dyn HearsLanguages> {
        Some(self)
    }

    fn usual_language(&self) -> Option<&str> {
        Some("en")
    }

    fn transcribe(
        &self,
        request: &Request,
        from: &Point,
        observer: &mut dyn Observer,
    ) -> Result<(), StageError> {
        let Request { recording, speech, span, strategy, settings, task, language, skip, control } = *request;
        let boost = words_to_expect(self, settings)?;
        let transcriber = Transcriber {
            model: self,
            settings,
            task,
            main_language: language,
            language,
            span,
            seed: mix(recording.pcm.len(), u64::from(recording.log_mel_maximum.to_bits())),
            boost: boost.as_ref(),
            control,
        };
        transcriber.run(strategy, recording, speech, from, skip, observer)
    }
}

impl HearsLanguages for Whisper {
    fn mel_bins(&self) -> usize {
        SpeechModel::mel_bins(self)
    }

    fn window_frames(&self) -> usize {
        self.config.window_frames()
    }

    fn languages(
        &self,
        windows: Vec<Mel>,
        control: &Control,
    ) -> Result<Vec<Vec<(String, f32)>>, models::Error> {
        detect_language(self, &encode_windows(self, windows, control)?, control)
    }
}
