use models::boost::Boost;
use models::whisper::{Vocabulary, Whisper};
use wire::DecodingOptions;

use super::word_times::Passage;

/// The words that the settings say to expect, as they act in a search; `None` where there are none.
///
/// # Errors
/// Those of [`Vocabulary::with_encoder`].
pub fn words_to_expect(model: &Whisper, settings: &DecodingOptions) -> Result<Option<Boost>, models::Error> {
    let vocabulary = &model.vocabulary;
    vocabulary.with_encoder(|encoder| {
        let encode = |text: &str| encoder.encode(text);
        Boost::new(&settings.vocabulary, settings.bounded_strength(), vocabulary.texts(), &encode)
    })
}

/// What the model is told was said before.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Words to expect that do not act in the search; kept at the front of every window's prompt.
    vocabulary: Vec<u32>,
    tokens: Vec<u32>,
}

impl Prompt {
    /// # Errors
    /// Those of [`Vocabulary::with_encoder`].
    pub fn new(vocabulary: &Vocabulary, settings: &DecodingOptions) -> Result<Self, models::Error> {
        // Told so they are heard where they were not said (docs/measurements.md), so that those act in the search.
        let is_told = settings.bounded_strength() == 0.0;
        let words = if is_told { settings.vocabulary.join(", ") } else { String::new() };
        let texts = [&words, settings.initial_prompt.as_deref().unwrap_or_default()].map(str::trim);
        let [vocabulary, initial] = vocabulary.with_encoder(|encoder| {
            texts.map(|text| match text {
                "" => Vec::new(),
                text => encoder.encode(&format!(" {text}")),
            })
        })?;
        let tokens = [vocabulary.as_slice(), &initial].concat();
        Ok(Self { vocabulary, tokens })
    }

    /// Goes on with what [`Self::tokens`] gave.
    pub fn resume(&mut self, tokens: &[u32]) {
        self.tokens = tokens.to_vec();
    }

    /// Forgets what was said, and the text that the user began with.
    pub fn reset(&mut self) {
        self.tokens.clone_from(&self.vocabulary);
    }

    /// Whether a window gets more than the words that every window gets.
    pub fn is_reset(&self) -> bool {
        self.tokens == self.vocabulary
    }

    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub fn add(&mut self, passages: &[Passage], temperature: f32, settings: &DecodingOptions) {
        /// Half of the decoder's positions; more would be cut from the front,
        /// the user's words first.
        const LONGEST: usize = 223;
        if !settings.condition_on_previous_text || temperature > settings.prompt_reset_temperature {
            self.reset();
            return;
        }
        self.tokens.extend(passages.iter().flat_map(|passage| passage.tokens.iter().copied()));
        let fixed = self.vocabulary.len().min(LONGEST / 2);
        let excess = self.tokens.len().saturating_sub(LONGEST);
        if excess > 0 {
            let to = (fixed + excess).min(self.tokens.len());
            self.tokens.drain(fixed..to);
        }
    }
}
