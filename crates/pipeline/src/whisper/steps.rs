use models::whisper::Vocabulary;
use transcript::Time;
use wire::{DecodingOptions, Point};

use super::prompt::Prompt;
use super::word_times::WordTimes;
use crate::steps::sample;

/// What a window depends on of those before it; a [`Point`] is all of it.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// First frame that is not done.
    pub seek: usize,
    pub written_to: Time,
    pub word_times: WordTimes,
    pub prompt: Prompt,
}

impl State {
    /// # Errors
    /// Those of [`Prompt::new`].
    pub fn at(
        point: &Point,
        vocabulary: &Vocabulary,
        settings: &DecodingOptions,
    ) -> Result<Self, models::Error> {
        let mut prompt = Prompt::new(vocabulary, settings)?;
        // The beginning of a recording is no point that was ever reached.
        if point.position > 0 {
            prompt.resume(&point.prompt);
        }
        Ok(Self {
            seek: (point.position / audio::HOP as u64) as usize,
            written_to: point.written_to,
            word_times: WordTimes::resume(point.last_speech),
            prompt,
        })
    }

    /// The place that is reached in a recording of `content` frames.
    pub fn point(&self, content: usize) -> Point {
        Point {
            position: sample(self.seek.min(content)),
            written_to: self.written_to,
            last_speech: self.word_times.last_speech(),
            prompt: self.prompt.tokens().to_vec(),
            ..Point::default()
        }
    }
}
