//! How text is found piece by piece, with Parakeet and Canary: pieces that end in pauses, tokens with frames and durations,
//! words and sentences made of them.

mod words;

use std::ops::Range;

use audio::{HOP, NemoMel, SAMPLE_RATE};
use candle_core::Tensor;
use models::Token;
use models::fast_conformer::Encoder;
use rayon::prelude::*;
use transcript::{Segment, Span, Task, Time};
use wire::{LastWord, Point};

use words::{TimedWord, begun_within, segments, without_repeats, words};

use crate::judge::judge;
use crate::packing::{Lengths, cut_in_longest_pauses, heard, voiced};
use crate::speech_model::Request;
use crate::steps::{Found, Observer, Step, frame, sample, time};
use crate::{Control, StageError, timings};

/// Frames of the spectrogram that become one of the encoder.
const FRAMES_PER_TOKEN_FRAME: usize = 8;

/// The most that is encoded at once, in frames of 10 ms: attention to all of it is quadratic, and
/// in minutes at a time whole sentences are lost.
const LONGEST: usize = 3000;
/// The most of the first piece: a processor reads it before any other, and its text is what one waits for.
const LONGEST_FIRST: usize = 1000;
/// Silence behind each piece, in samples: without it the last word may be cut.
const SILENCE: usize = SAMPLE_RATE as usize / 2;
/// Of the silence around the voice in a piece, in frames, so much is heard with it.
const MARGIN: usize = 30;

/// Where speech had to be cut without a pause, so many frames beyond the cut are heard on either side:
/// a word is written by the piece that it begins in, and heard whole there.
const CONTEXT: usize = 400;
/// The same of what is listened to once more: of 2,099 words 21 are wrong with as much as with twice as much, 26 with half of
/// it.
const CONTEXT_OF_GAPS: usize = 200;

/// So much voice between two words is listened to once more, in frames. Where words have exact ends, little means that words
/// are missing; else it may be the end of the word before.
const UNHEARD: usize = 50;
const UNHEARD_BEHIND_ROUGH_ENDS: usize = 100;
/// And so much of it is a sound that is not much fainter than the speech around it: by the network that finds voice, a voice
/// ends late.
const LOUD: usize = 35;
/// Of the power of the speech around it, the least of a frame that counts as loud: 20 decibels less.
const LOUD_SHARE: f32 = 0.01;
/// A word whose end is known as the beginning of the next one is taken to last no longer.
const LONGEST_WORD: Time = Time::from_millis(1500);

/// A model that reads each piece on its own.
pub trait PieceReader: Sync {
    /// The text of each token, `▁` standing for a space; empty for tokens that are no text.
    fn spelling(&self) -> &[String];

    /// Its encoder.
    fn encoder(&self) -> &Encoder;

    /// Bands of its spectrogram.
    fn mel_bins(&self) -> usize;

    /// Whether a token's frames are those in which it is heard; else they go on until the next one begins.
    fn has_exact_ends(&self) -> bool;

    /// Tokens of windows, each as if it were alone. `windows` are the encoder's output, (frames, width) each.
    ///
    /// # Errors
    /// Where computing fails, or the job was cancelled.
    fn read(&self, windows: &[Tensor], control: &Control) -> Result<Vec<Vec<Token>>, models::Error>;
}

/// The speech of a recording in pieces of at most 30 s that end in pauses where there are any, several
/// read together. What a piece says depends on nothing that is read before it.
pub fn run(
    reader: &dyn PieceReader,
    request: &Request,
    from: &Point,
    observer: &mut dyn Observer,
) -> Result<(), StageError> {
    let Request { recording, speech, span, skip, .. } = *request;
    let within = heard(recording, span);
    let settings = request.settings;
    let ear = Ear {
        reader,
        request,
        voiced: voiced(recording, &within),
        content: within.end,
        mel: NemoMel::new(reader.mel_bins()),
    };
    let longest = Lengths { first: LONGEST_FIRST, others: LONGEST };
    let mut pieces = cut_in_longest_pauses(recording, speech, &ear.voiced, &within, longest)?;
    // A point of another model may lie within a piece.
    let seek = (from.position / HOP as u64) as usize;
    pieces.retain(|piece| piece.end > seek);
    if let Some(first) = pieces.first_mut() {
        first.start = first.start.max(seek);
    }
    let mut written_to = from.written_to;
    let mut last = from.last_word.clone();
    let mut rest = &pieces[..];
    while let Some(first) = rest.first() {
        let point = |piece: &Range<usize>, written_to, last_word: &Option<LastWord>| Point {
            position: sample(piece.end.min(within.end)),
            written_to,
            last_word: last_word.clone(),
            ..Point::default()
        };
        if skip.contains(&sample(first.start)) {
            rest = &rest[1..];
            let point = point(first, written_to, &last);
            observer.step(Step::Found(Found { point, ..Found::default() }))?;
            continue;
        }
        let most = observer.batch_size().max(1);
        let skipped = |piece: &Range<usize>| skip.contains(&sample(piece.start));
        let count = rest.iter().take(most).take_while(|piece| !skipped(piece)).count();
        let (batch, later) = rest.split_at(count);
        rest = later;
        observer.step(Step::Began { position: sample(first.start), windows: batch.len() })?;
        let sounding: Vec<Sounding> = batch.iter().map(|piece| ear.sounding(piece, CONTEXT)).collect();
        let read = ear.read(&sounding, batch.len())?;
        for (piece, words) in batch.iter().zip(read) {
            if batch.len() > 1 {
                observer.step(Step::Began { position: sample(piece.start), windows: 1 })?;
            }
            let words = ear.fill_gaps(piece, words, last.as_ref())?;
            let mut found = Found { windows: 1, ..Found::default() };
            for segment in segments(&words, settings.word_times) {
                let Some(segment) = not_before(segment, written_to) else { continue };
                judge(segment, speech, settings, &mut found);
                if let Some(last) = found.segments.last() {
                    written_to = last.end;
                }
            }
            last = words.last().map(TimedWord::as_last).or(last);
            found.point = point(piece, written_to, &last);
            observer.step(Step::Found(found))?;
        }
    }
    Ok(())
}

/// What is heard of a piece, in frames of the recording, and the part of it whose words are the piece's own.
struct Sounding {
    heard: Range<usize>,
    own: Range<usize>,
}

/// What listens to a recording.
struct Ear<'a> {
    reader: &'a dyn PieceReader,
    request: &'a Request<'a>,
    voiced: Vec<Range<usize>>,
    /// The frame behind what is listened to.
    content: usize,
    mel: NemoMel,
}

impl Ear<'_> {
    /// What is said in several parts, each as if it were alone. A card has room to encode so many of the longest ones at once.
    fn read(&self, sounding: &[Sounding], at_once: usize) -> Result<Vec<Vec<TimedWord>>, StageError> {
        let control = self.request.control;
        let mut encoded = Vec::with_capacity(sounding.len());
        let mut rest = sounding;
        while !rest.is_empty() {
            let (group, later) = rest.split_at(self.encoded_together(rest, at_once));
            rest = later;
            let spectrograms =
                group.iter().map(|it| self.spectrogram(&it.heard)).collect::<Result<Vec<_>, _>>()?;
            encoded.extend(control.timings().of(timings::ENCODE, || self.encode(&spectrograms))?);
        }
        let read = control.timings().of(timings::DECODE, || self.reader.read(&encoded, control))?;
        let texts = sounding.iter().zip(&read);
        Ok(texts.map(|(sounding, tokens)| self.words(sounding, tokens)).collect())
    }

    /// How many windows are encoded at once. A card has padding behind those that are shorter than the longest. On a
    /// processor a long one keeps all cores busy, and short ones do together, as long as they take no more memory than it;
    /// where matrices are converted as they are used they would.
    fn encoded_together(&self, windows: &[Sounding], at_once: usize) -> usize {
        let encoder = self.reader.encoder();
        let is_on_host = encoder.is_on_host();
        let room = match (is_on_host, encoder.is_compressed()) {
            (true, true) => 0,
            (true, false) => LONGEST + SILENCE / HOP,
            (false, _) => at_once * (LONGEST + SILENCE / HOP),
        };
        let (mut count, mut sum, mut longest) = (0, 0, 0);
        let fits = |window: &&Sounding| {
            let length = window.heard.len() + SILENCE / HOP;
            count += 1;
            sum += length;
            longest = longest.max(length);
            room >= if is_on_host { sum } else { count * longest }
        };
        windows.iter().take_while(fits).count().max(1)
    }

    fn encode(&self, spectrograms: &[Vec<f32>]) -> Result<Vec<Tensor>, models::Error> {
        let (encoder, control) = (self.reader.encoder(), self.request.control);
        if !encoder.is_on_host() {
            return encoder.forward_all(spectrograms, &tick(control));
        }
        let encode = |spectrogram: &Vec<f32>| encoder.forward(spectrogram, &tick(control));
        match spectrograms {
            [one] => Ok(vec![encode(one)?]),
            several => several.par_iter().map(encode).collect(),
        }
    }

    /// The part of a piece with a voice in it, and what lies beyond a cut through a voice: so many frames of `context` on
    /// either side.
    fn sounding(&self, piece: &Range<usize>, context: usize) -> Sounding {
        let mut runs = self.voiced.iter().filter(|run| run.end > piece.start && run.start < piece.end);
        let Some(first) = runs.next() else { return Sounding { heard: piece.clone(), own: piece.clone() } };
        let last = runs.next_back().unwrap_or(first);
        let start = first.start.saturating_sub(MARGIN).max(piece.start);
        let own = start..(last.end + MARGIN).min(piece.end);
        let mut heard = own.clone();
        let room = LONGEST.saturating_sub(own.len());
        if last.end > piece.end {
            heard.end = (own.end + context.min(room / 2)).min(last.end);
        }
        if first.start < piece.start {
            let room = LONGEST.saturating_sub(heard.len());
            heard.start = own.start.saturating_sub(context.min(room)).max(first.start);
        }
        Sounding { heard, own }
    }

    fn spectrogram(&self, frames: &Range<usize>) -> Result<Vec<f32>, StageError> {
        let mut samples = vec![0.0; frames.len() * HOP];
        self.request.recording.pcm.read(sample(frames.start) as i64, &mut samples)?;
        samples.resize(samples.len() + SILENCE, 0.0);
        Ok(self.request.control.timings().of(timings::LOG_MEL, || self.mel.normalised(&samples)))
    }

    fn words(&self, sounding: &Sounding, tokens: &[Token]) -> Vec<TimedWord> {
        let Sounding { heard, own } = sounding;
        // The silence behind it may be the end of a word.
        let end = (heard.end + SILENCE / HOP).min(self.content);
        let span = Span::new(time(heard.start), time(end));
        let from = own.start - heard.start;
        let to = if own.end < heard.end { own.end - heard.start } else { usize::MAX };
        let spelling = self.reader.spelling();
        let tokens = begun_within(spelling, tokens, from..to);
        let mut words = words(spelling, &tokens, span);
        if !self.reader.has_exact_ends() {
            words.iter_mut().for_each(|word| self.end_with_voice(word));
        }
        words
    }

    /// Ends a word that is said to go on until the next one where the voice that it is in ends.
    fn end_with_voice(&self, word: &mut TimedWord) {
        let latest = word.end.min(word.start + LONGEST_WORD);
        let frames = frame(word.start)..frame(latest);
        let first = self.voiced.partition_point(|run| run.end <= frames.start);
        word.end = match self.voiced.get(first) {
            Some(run) if run.start < frames.end => time(run.end).min(latest),
            _ => latest,
        };
    }

    /// Voice in which no word begins is listened to once more, on its own: silent loss is worse than a second look.
    /// `last` is the last word of what was heard before.
    fn fill_gaps(
        &self,
        piece: &Range<usize>,
        words: Vec<TimedWord>,
        last: Option<&LastWord>,
    ) -> Result<Vec<TimedWord>, StageError> {
        // The words of a translation do not follow the sound: a gap says nothing of what is missing.
        let is_translated = self.request.task == Task::Translate;
        if !self.request.settings.repair || self.request.speech.is_none() || is_translated {
            return Ok(words);
        }
        let unheard = if self.reader.has_exact_ends() { UNHEARD } else { UNHEARD_BEHIND_ROUGH_ENDS };
        let own = self.sounding(piece, CONTEXT).own;
        let ends = words.iter().map(|word| frame(word.end)).chain([own.end]);
        // A word may begin in the silence behind the piece, which is of the next one.
        let starts = words.iter().map(|word| frame(word.start).min(own.end)).chain([own.end]);
        // Each with the number of the word behind it.
        let mut gaps: Vec<(usize, Range<usize>)> = Vec::new();
        let mut from = own.start;
        for (number, (start, end)) in starts.zip(ends).enumerate() {
            let gap = from..start.max(from);
            from = end.max(from);
            // All of the piece would say the same again.
            if self.voice(&gap) >= unheard && gap.len() + 2 * MARGIN < own.len() {
                gaps.push((number, gap));
            }
        }
        if gaps.is_empty() {
            return Ok(words);
        }
        let mut samples = vec![0.0; own.len() * HOP];
        self.request.recording.pcm.read(sample(own.start) as i64, &mut samples)?;
        let is_loud = loud_frames(&samples);
        gaps.retain(|(_, gap)| {
            let of_gap = is_loud.iter().take(gap.end - own.start).skip(gap.start - own.start);
            of_gap.filter(|is_loud| **is_loud).count() >= LOUD
        });
        let sounding: Vec<Sounding> =
            gaps.iter().map(|(_, gap)| self.sounding(gap, CONTEXT_OF_GAPS)).collect();
        let mut read = self.read(&sounding, 1)?.into_iter().zip(gaps).peekable();
        let mut filled = Vec::with_capacity(words.len());
        for number in 0..=words.len() {
            if let Some((found, _)) = read.next_if(|(_, (before, _))| *before == number) {
                let before = filled.last().map(TimedWord::as_last).or_else(|| last.cloned());
                filled.extend(without_repeats(found, before, words.get(number)));
            }
            filled.extend(words.get(number).cloned());
        }
        Ok(filled)
    }

    /// How many of these frames have a voice.
    fn voice(&self, frames: &Range<usize>) -> usize {
        let within = |run: &Range<usize>| run.end.min(frames.end).saturating_sub(run.start.max(frames.start));
        let first = self.voiced.partition_point(|run| run.end <= frames.start);
        self.voiced[first..].iter().take_while(|run| run.start < frames.end).map(within).sum()
    }
}

/// Whether each frame of what is heard is about as loud as the speech in it, which is as loud as the loudest fifth.
fn loud_frames(samples: &[f32]) -> Vec<bool> {
    const LOUDEST: usize = 5;
    let power = |frame: &[f32]| frame.iter().map(|sample| sample * sample).sum::<f32>();
    let powers: Vec<f32> = samples.chunks_exact(HOP).map(power).collect();
    let mut sorted = powers.clone();
    sorted.sort_unstable_by(f32::total_cmp);
    let speech = sorted.get(sorted.len() - sorted.len().div_ceil(LOUDEST)).copied().unwrap_or_default();
    powers.into_iter().map(|power| power >= LOUD_SHARE * speech).collect()
}

/// Says when to stop, and that something was done.
pub fn tick(control: &Control) -> impl Fn() -> bool {
    move || {
        control.worked();
        !control.is_cancelled()
    }
}

/// The segment as it begins behind what is written; `None` where nothing of it is left.
fn not_before(mut segment: Segment, written_to: Time) -> Option<Segment> {
    segment.start = segment.start.max(written_to);
    segment.end = segment.end.max(segment.start);
    for word in &mut segment.words {
        word.start = word.start.max(segment.start);
        word.end = word.end.max(word.start);
    }
    (segment.end > segment.start).then_some(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_much_fainter_than_the_speech_around_it_is_not_loud() {
        // Two seconds each, a tone of this amplitude.
        let tone = |amplitude: f32| (0..2 * 16_000).map(move |n| amplitude * (n as f32 * 0.3).sin());
        for (amplitude, expected) in [(0.3, true), (0.04, true), (0.02, false), (0.0, false)] {
            let samples: Vec<f32> = tone(0.3).chain(tone(amplitude)).collect();
            let is_loud = loud_frames(&samples);
            assert_eq!(is_loud.len(), 400);
            assert!(is_loud[..200].iter().all(|is_loud| *is_loud));
            assert!(is_loud[201..].iter().all(|is_loud| *is_loud == expected), "{amplitude}");
        }
        assert!(loud_frames(&[]).is_empty());
    }
}
