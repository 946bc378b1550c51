//! Lessons put into windows as the model hears them: one after the other with pauses, each text
//! between its time stamps.

use audio::{LogMel, SAMPLE_RATE, WINDOW_SAMPLES, at_speed, log_mel_padded_window, samples_at_speed};
use models::training::{Aim, Example};
use models::whisper::Vocabulary;
use wire::{ErrorCode, Failure, Lesson};

use super::sounds::Sounds;
use crate::StageError;

/// Samples of a step of time stamps, 0.02 s.
const STAMP: usize = SAMPLE_RATE as usize / 50;
/// The usual silence between two lessons in a window, in samples.
pub const USUAL_PAUSE: usize = 15 * STAMP;
/// The speed of a lesson as it was recorded, in percent.
pub const AS_IT_IS: u32 = 100;

/// A lesson as it is heard once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hearing {
    /// Its number.
    pub lesson: usize,
    /// Percent of its own speed.
    pub speed: u32,
    /// Samples of silence before it.
    pub pause: usize,
}

impl Hearing {
    /// A lesson at its own speed, after the usual pause.
    pub fn as_it_is(lesson: usize) -> Self {
        Self { lesson, speed: AS_IT_IS, pause: USUAL_PAUSE }
    }
}

/// What can be learnt, as tokens.
#[derive(Debug)]
pub struct Material<'a> {
    vocabulary: &'a Vocabulary,
    lessons: &'a [Lesson],
    sounds: &'a Sounds,
    tokens: Vec<Vec<u32>>,
    /// Most tokens of a window.
    longest: usize,
}

impl<'a> Material<'a> {
    /// Of lessons with their sounds; no window has more than `longest` tokens.
    ///
    /// # Errors
    /// Those of [`Vocabulary::with_encoder`].
    pub fn new(
        vocabulary: &'a Vocabulary,
        lessons: &'a [Lesson],
        sounds: &'a Sounds,
        longest: usize,
    ) -> Result<Self, models::Error> {
        let tokens = vocabulary.with_encoder(|encoder| {
            lessons.iter().map(|lesson| encoder.encode(&format!(" {}", lesson.text.trim()))).collect()
        })?;
        Ok(Self { vocabulary, lessons, sounds, tokens, longest })
    }

    /// A lesson by its number.
    pub fn lesson(&self, number: usize) -> &Lesson {
        &self.lessons[number]
    }

    /// Lessons of this kind in their order. One whose text does not fit a window of its own is left out.
    pub fn lessons(&self, held_back: bool) -> Vec<usize> {
        let fits =
            |number: &usize| self.prompt(*number).len() + self.tokens[*number].len() + 3 <= self.longest;
        let is =
            |number: &usize| self.lessons[*number].held_back == held_back && self.sounds.len(*number) > 0;
        (0..self.lessons.len()).filter(is).filter(fits).collect()
    }

    /// Windows of lessons in this order, each with as many as fit into the samples that `room` gives for it, but one at
    /// least; those of a window share a language.
    pub fn windows(&self, order: &[Hearing], mut room: impl FnMut() -> usize) -> Vec<Vec<Hearing>> {
        let mut windows: Vec<Vec<Hearing>> = Vec::new();
        let mut open: Option<(usize, usize, usize)> = None;
        for &Hearing { lesson, mut speed, pause } in order {
            let samples_at = |speed| padded(samples_at_speed(self.sounds.len(lesson), speed));
            // What fills a window already is not drawn out.
            if samples_at(speed) > WINDOW_SAMPLES {
                speed = AS_IT_IS;
            }
            let (samples, tokens) = (samples_at(speed), self.tokens[lesson].len() + 2);
            // Silence and lesson fit one window together.
            let pause = padded(pause).min(WINDOW_SAMPLES.saturating_sub(samples));
            let hearing = Hearing { lesson, speed, pause };
            if let (Some((end, used, room)), Some(window)) = (open, windows.last_mut()) {
                let same = self.lessons[window[0].lesson].language == self.lessons[lesson].language;
                let starts = end + pause;
                if same && starts + samples <= room && used + tokens <= self.longest {
                    window.push(hearing);
                    open = Some((starts + samples, used + tokens, room));
                    continue;
                }
            }
            windows.push(vec![hearing]);
            let used = self.prompt(lesson).len() + tokens + 1;
            open = Some((pause + samples, used, room().min(WINDOW_SAMPLES)));
        }
        windows
    }

    /// What the network learns of a window.
    pub fn example(&self, window: &[Hearing], mel: &LogMel) -> Result<Example, StageError> {
        let vocabulary = self.vocabulary;
        let mut sound = Vec::with_capacity(WINDOW_SAMPLES);
        let mut tokens = self.prompt(window[0].lesson);
        let mut aims = vec![Aim::Nothing; tokens.len()];
        for &Hearing { lesson, speed, pause } in window {
            sound.resize(sound.len() + pause, 0.0);
            let stamp = |samples: usize| vocabulary.timestamp_begin + (samples / STAMP) as u32;
            tokens.push(stamp(sound.len()));
            aims.push(Aim::AsBefore);
            self.append(&mut sound, lesson, speed)?;
            let text = &self.tokens[lesson];
            tokens.extend(text);
            // What was not corrected is the model's own text, or as good as it.
            let corrected = self.lessons[lesson].corrected;
            let aim = if corrected { Aim::Token } else { Aim::AsBefore };
            aims.extend(std::iter::repeat_n(aim, text.len()));
            tokens.push(stamp(sound.len().min(WINDOW_SAMPLES)));
            // Before, the model may have gone on with words that are not said.
            aims.push(if corrected { Aim::Nothing } else { Aim::AsBefore });
        }
        tokens.push(vocabulary.end_of_text);
        aims.push(Aim::AsBefore);
        let mel = log_mel_padded_window(&sound, mel).data;
        Ok(Example { mel, tokens, aims })
    }

    /// The samples of a window.
    pub fn sound(&self, window: &[Hearing]) -> Result<Vec<f32>, StageError> {
        let mut sound = Vec::with_capacity(WINDOW_SAMPLES);
        for &Hearing { lesson, speed, pause } in window {
            sound.resize(sound.len() + pause, 0.0);
            self.append(&mut sound, lesson, speed)?;
        }
        Ok(sound)
    }

    /// Appends a lesson, filled up to the next time stamp.
    fn append(&self, sound: &mut Vec<f32>, lesson: usize, speed: u32) -> Result<(), StageError> {
        let samples = self.sounds.read(lesson)?;
        match speed {
            AS_IT_IS => sound.extend(samples),
            _ => {
                sound.extend(
                    at_speed(&samples, speed).map_err(|text| Failure::new(ErrorCode::Internal, text))?,
                );
            }
        }
        sound.resize(padded(sound.len()), 0.0);
        Ok(())
    }

    fn prompt(&self, lesson: usize) -> Vec<u32> {
        let vocabulary = self.vocabulary;
        let language = self.lessons[lesson].language.as_deref().unwrap_or("en");
        let language = vocabulary.language_token(language);
        std::iter::once(vocabulary.start_of_transcript)
            .chain(language)
            .chain(vocabulary.transcribe.filter(|_| language.is_some()))
            .collect()
    }
}

/// Up to the next time stamp.
fn padded(samples: usize) -> usize {
    samples.next_multiple_of(STAMP)
}
