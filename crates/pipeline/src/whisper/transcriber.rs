//! What the two strategies share: fallback, repair and times of one window.
//!
//! The sequential strategy takes window after window, each beginning where the last
//! one's text ended, as the reference does. The batched one packs the speech into windows
//! that end in pauses and decodes several together. Packing depends on the recording
//! alone, and windows of a batch are not told of each other's text, so the text is the
//! same however many are decoded together, and a batch may be halved between two batches.
//! Only the first decoding is made together; a window that fails is decoded alone.
//!
//! An `Observer` is asked for the size of each batch and told when a window begins and
//! ends. With a finished window comes a `wire::Point`, which is all that the next window
//! depends on. An error of the observer ends the run, and nothing of the window stays.
//!
//! On the host the windows of a batch are encoded one after the other, since one is work
//! enough for all cores. A GPU encodes them at once.

use std::ops::Range;

use audio::Recording;
use candle_core::Tensor;
use formats::Abilities;
use models::boost::Boost;
use models::whisper::Whisper;
use transcript::{Segment, Span, Task, Time, Word};
use wire::{DecodingOptions, Point, Strategy};

use super::cut::{Cut, cut};
use super::decode::{Decoded, WindowOptions, decode};
use super::fallback::{decode_with_fallback, is_bad, is_silence, mix};
use super::language::detect_language;
use super::missed::{first_missed, gaps, sparse};
use super::recall::{recall, with_recalled};
use super::source::{Source, Window};
use super::steps::State;
use super::timing::{AlignedWord, Said, align};
use super::word_times::{Passage, WordTimes, said};
use super::{FRAMES_PER_SECOND, batched, sequential};
use crate::judge::judge;
use crate::steps::{Found, Observer, Speech};
use crate::{Control, StageError};

/// A window whose language is less probable than this has the recording's.
const SURE: f32 = 0.5;

/// Finds the text of a recording, window by window.
#[derive(Debug, Clone, Copy)]
pub struct Transcriber<'a> {
    /// The model.
    pub model: &'a Whisper,
    /// How to decode.
    pub settings: &'a DecodingOptions,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// The recording's, ISO code.
    pub main_language: &'a str,
    /// The window's, which is the recording's unless each is asked.
    pub language: &'a str,
    /// Nothing but this part of the recording; `None`: all of it.
    pub span: Option<Span>,
    /// Same recording, same seed.
    pub seed: u64,
    /// The settings' words to expect, as [`words_to_expect`](super::words_to_expect) finds them.
    pub boost: Option<&'a Boost>,
    /// Says when to stop.
    pub control: &'a Control,
}

impl Transcriber<'_> {
    /// Transcribes `recording` from the point `from` on, `Point::default()`
    /// being its beginning (channel and language are handed on as they are).
    /// From any point that was handed out, the text goes on as it would have
    /// without the interruption.
    ///
    /// `speech` is in frames, `None` where it is not known. A window that
    /// begins at a sample in `skip` is left without text.
    ///
    /// # Errors
    /// The error of the observer, a failure to compute or to read the sound, or that the job was cancelled.
    pub fn run(
        &self,
        strategy: Strategy,
        recording: &Recording,
        speech: Speech,
        from: &Point,
        skip: &[u64],
        observer: &mut dyn Observer,
    ) -> Result<(), StageError> {
        let source = Source::new(recording, speech, self.span, self.model);
        let state = State::at(from, &self.model.vocabulary, self.settings)?;
        match strategy {
            Strategy::Auto | Strategy::Sequential => sequential::run(self, source, state, skip, observer),
            Strategy::Batched => batched::run(self, source, state, skip, observer),
        }
    }

    /// The text of a window whose first decoding is `decoded`, checked,
    /// repaired and with its times. Moves `state` to where the next window
    /// begins.
    pub(super) fn write(
        &self,
        source: &Source,
        state: &mut State,
        window: Window,
        decoded: Decoded,
    ) -> Result<Found, StageError> {
        let words = self.align(&window, &decoded)?;
        self.write_with(source, state, window, decoded, words)
    }

    /// As [`Self::write`], with the words that were aligned together with those of other windows.
    pub(super) fn write_with(
        &self,
        source: &Source,
        state: &mut State,
        window: Window,
        decoded: Decoded,
        words: Vec<AlignedWord>,
    ) -> Result<Found, StageError> {
        let Window { seek, frames, .. } = window;
        if is_silence(&decoded, self.settings) {
            state.seek = seek + frames;
            return Ok(Found { point: state.point(source.content), windows: 1, ..Found::default() });
        }
        let mut reading = self.read(&window, decoded, words, &state.word_times, &source.voiced);
        let mut next = reading.next;
        let mut fillings = Vec::new();
        if let Some(speech) = source.speech.filter(|_| self.settings.repair) {
            reading = self.read_again(reading, &window, source, state, speech)?;
            next = first_missed(speech, reading.text_end, seek, reading.next).unwrap_or(reading.next);
            // Gaps are encoded on their own: two windows at once need not be.
            drop(window);
            for gap in gaps(speech, &reading.passages, seek) {
                let window = source.listen(gap, self.model, self.control)?;
                fillings.extend(self.fill_gap(&window, &state.word_times, &source.voiced)?);
            }
            fillings.extend(self.fill_sparse(source, &mut reading, seek..seek + frames)?);
        }
        // A window must move on, whatever its times say.
        state.seek = next.max(seek + 1);
        state.prompt.add(&reading.passages, reading.decoded.temperature, self.settings);
        state.word_times = reading.word_times.clone();
        let mut found = Found { windows: 1, ..Found::default() };
        let mut passages: Vec<(&Passage, &Decoded)> = std::iter::once(&reading)
            .chain(&fillings)
            .flat_map(|reading| reading.passages.iter().map(|passage| (passage, &reading.decoded)))
            .collect();
        // In the order in which they were written: words may be found in a sentence beside theirs.
        passages.sort_by(|(a, _), (b, _)| a.written().0.total_cmp(&b.written().0));
        for (passage, decoded) in passages {
            let Some(segment) = self.segment(passage, decoded, state.written_to) else { continue };
            judge(segment, source.speech, self.settings, &mut found);
            if let Some(last) = found.segments.last() {
                state.written_to = last.end;
            }
        }
        found.point = state.point(source.content);
        Ok(found)
    }

    /// Decodes a window on its own, at higher temperatures where need be.
    pub(super) fn decode(&self, window: &Window, prompt: &[u32]) -> Result<Decoded, models::Error> {
        let options = self.window_options(prompt, window.seek);
        decode_with_fallback(self.model, &window.audio, &options, self.settings, self.control)
    }

    /// As [`Self::decode`], with its text shown while it is written.
    pub(super) fn decode_live(&self, window: &Window, prompt: &[u32]) -> Result<Decoded, models::Error> {
        let options = WindowOptions { is_live: true, ..self.window_options(prompt, window.seek) };
        decode_with_fallback(self.model, &window.audio, &options, self.settings, self.control)
    }

    pub(super) fn window_options<'a>(&'a self, prompt: &'a [u32], seek: usize) -> WindowOptions<'a> {
        let settings = self.settings;
        WindowOptions {
            language: self.language,
            task: self.task,
            timestamps: settings.timestamps,
            prompt,
            beam_size: settings.beams(Abilities::WHISPER.usual_beams),
            best_of: settings.best_of.max(1),
            patience: settings.patience.unwrap_or(1.0),
            length_penalty: settings.length_penalty,
            max_tokens: settings.max_tokens,
            max_initial_timestamp: settings.max_initial_timestamp,
            suppress: &settings.suppress_tokens,
            temperature: 0.0,
            seed: mix(mix(self.seed, settings.seed), seek as u64),
            boost: self.boost,
            is_live: false,
        }
    }

    /// What a window of so many frames says, for its words to be aligned: nothing where none are wanted.
    pub(super) fn said(&self, decoded: &Decoded, frames: usize) -> Said<'_> {
        let vocabulary = &self.model.vocabulary;
        let recalls = self.recalls();
        let wanted = (self.settings.word_times || recalls) && !is_silence(decoded, self.settings);
        let tokens = match wanted {
            true => said(vocabulary, &cut(vocabulary, &decoded.tokens, 0, frames).passages),
            false => Vec::new(),
        };
        Said { language: self.language, task: self.task, tokens, frames, states: recalls }
    }

    /// Whether words may be recalled: what is translated is not what was corrected.
    fn recalls(&self) -> bool {
        self.task == Task::Transcribe && !self.model.remembered.is_empty()
    }

    fn align(&self, window: &Window, decoded: &Decoded) -> Result<Vec<AlignedWord>, models::Error> {
        let said = self.said(decoded, window.frames);
        let mut words = align(self.model, &window.audio, std::slice::from_ref(&said), self.control)?;
        Ok(words.pop().unwrap_or_default())
    }

    /// Cuts a window's text into passages with the times of its words.
    fn read(
        &self,
        window: &Window,
        decoded: Decoded,
        words: Vec<AlignedWord>,
        word_times: &WordTimes,
        voiced: &[Range<usize>],
    ) -> Reading {
        let Window { seek, frames, .. } = *window;
        let mut word_times = word_times.clone();
        let Cut { mut passages, advance, open_end } =
            cut(&self.model.vocabulary, &decoded.tokens, seek, frames);
        let mut next = seek + advance;
        // Before word times move the ends: they tend to end early.
        let text_end = passages.iter().map(|passage| passage.end).fold(0.0, f64::max);
        if !self.settings.word_times && self.recalls() {
            // Words are needed for recalling alone: the times stay those of the time tokens.
            word_times.clone().add(&self.model.vocabulary, words, &mut passages, seek);
            passages.iter_mut().for_each(Passage::take_written);
        } else if self.settings.word_times {
            word_times.add(&self.model.vocabulary, words, &mut passages, seek);
            if self.settings.repair {
                word_times.repair(&mut passages, voiced);
            }
            let end = passages.iter().rev().find_map(Passage::last_word_end);
            let end = end.or(passages.last().map(|passage| passage.end));
            if open_end && let Some(end) = end.filter(|end| *end > seek as f64 / FRAMES_PER_SECOND) {
                next = (end * FRAMES_PER_SECOND).round() as usize;
            }
        }
        if self.recalls() {
            for passage in &mut passages {
                recall(&self.model.remembered, self.language, &mut passage.words);
            }
        }
        Reading { decoded, passages, text_end, next, word_times }
    }

    /// Beams like short texts: one that skips a sentence may win over the one
    /// that has it. Where a beam left speech without text between its
    /// passages, the greedy text is taken if it has more of it.
    fn read_again(
        &self,
        reading: Reading,
        window: &Window,
        source: &Source,
        state: &State,
        speech: &[Range<usize>],
    ) -> Result<Reading, StageError> {
        let missed = |reading: &Reading| -> usize {
            gaps(speech, &reading.passages, window.seek).iter().map(Range::len).sum()
        };
        let before = missed(&reading);
        let beams =
            self.settings.beams(Abilities::WHISPER.usual_beams) > 1 && reading.decoded.temperature == 0.0;
        if !beams || before == 0 {
            return Ok(reading);
        }
        let greedy =
            WindowOptions { beam_size: 1, ..self.window_options(state.prompt.tokens(), window.seek) };
        let decoded = decode(self.model, &window.audio, &greedy, self.control)?;
        if is_bad(&decoded, self.settings) || is_silence(&decoded, self.settings) {
            return Ok(reading);
        }
        let words = self.align(window, &decoded)?;
        let other = self.read(window, decoded, words, &state.word_times, &source.voiced);
        Ok(if missed(&other) < before { other } else { reading })
    }

    /// What a stretch of speech that was passed over says on its own.
    fn fill_gap(
        &self,
        window: &Window,
        word_times: &WordTimes,
        voiced: &[Range<usize>],
    ) -> Result<Option<Reading>, StageError> {
        let decoded = self.decode(window, &[])?;
        if is_bad(&decoded, self.settings) || is_silence(&decoded, self.settings) {
            return Ok(None);
        }
        let words = self.align(window, &decoded)?;
        Ok(Some(self.read(window, decoded, words, word_times, voiced)))
    }

    /// What is said where a passage has too little text for its voice: a part of the window that is listened to again takes
    /// the place of its passages where it has more text and the model is as sure of it.
    fn fill_sparse(
        &self,
        source: &Source,
        reading: &mut Reading,
        window: Range<usize>,
    ) -> Result<Vec<Reading>, StageError> {
        let length = |passages: &[Passage]| -> usize {
            let text =
                |passage: &Passage| self.model.vocabulary.decode(&passage.tokens).trim().chars().count();
            passages.iter().map(text).sum()
        };
        let lengths: Vec<usize> =
            reading.passages.iter().map(|passage| length(std::slice::from_ref(passage))).collect();
        let mut fillings = Vec::new();
        // From the last to the first, so that numbers stay true.
        for parts in sparse(&source.voiced, &reading.passages, &lengths, window).into_iter().rev() {
            for (numbers, frames) in parts {
                let window = source.listen(frames, self.model, self.control)?;
                let other = self.fill_gap(&window, &reading.word_times, &source.voiced)?;
                // The model must be as sure of it as of all of the window's text.
                let least = reading.decoded.sureness;
                let before: usize = lengths[numbers.clone()].iter().sum();
                let is_better =
                    |other: &Reading| length(&other.passages) > before && other.decoded.sureness >= least;
                if let Some(other) = other.filter(is_better) {
                    reading.passages.drain(numbers);
                    fillings.push(other);
                    break;
                }
            }
        }
        Ok(fillings)
    }

    /// The passage as a segment that begins at `not_before` at the earliest;
    /// `None` where nothing is said or it takes no time.
    fn segment(&self, passage: &Passage, decoded: &Decoded, not_before: Time) -> Option<Segment> {
        let written = self.model.vocabulary.decode(&passage.tokens);
        let text = with_recalled(&written, &passage.words).trim().to_owned();
        if text.is_empty() || passage.start >= passage.end {
            return None;
        }
        let start = Time::from_seconds(passage.start).max(not_before);
        let end = Time::from_seconds(passage.end).max(start);
        let clamp = |seconds: f64| Time::from_seconds(seconds).clamp(start, end);
        let words = passage.words.iter().filter(|_| self.settings.word_times).map(|word| Word {
            text: word.text.clone(),
            start: clamp(word.start),
            end: clamp(word.end),
            probability: word.probability,
        });
        Some(Segment {
            start,
            end,
            text,
            words: words.collect(),
            temperature: decoded.temperature,
            mean_log_probability: decoded.mean_log_probability,
            no_speech_probability: decoded.no_speech_probability,
            compression_ratio: decoded.compression_ratio,
            language: (self.language != self.main_language).then(|| self.language.to_owned()),
            ..Segment::default()
        })
    }

    /// The language of each window, from the encoder's output (windows, source
    /// positions, width).
    pub(super) fn languages(&self, audio: &Tensor) -> Result<Vec<String>, models::Error> {
        let windows = audio.dim(0)?;
        if !self.settings.language_per_region {
            return Ok(vec![self.main_language.to_owned(); windows]);
        }
        let likeliest = |probabilities: Vec<(String, f32)>| {
            let first = probabilities.into_iter().next().filter(|(_, probability)| *probability >= SURE);
            first.map_or_else(|| self.main_language.to_owned(), |(language, _)| language)
        };
        Ok(detect_language(self.model, audio, self.control)?.into_iter().map(likeliest).collect())
    }
}

/// A window's text with its times, and where it leads.
struct Reading {
    decoded: Decoded,
    passages: Vec<Passage>,
    /// End of the last passage by its time token, in seconds.
    text_end: f64,
    /// First frame of the next window.
    next: usize,
    word_times: WordTimes,
}
