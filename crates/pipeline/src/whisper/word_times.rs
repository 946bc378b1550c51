use candle_core::Tensor;

use super::timing::{AlignedWord, align};
use super::transcriber::Transcriber;

/// What a window's tokens say between two times, in seconds of the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    pub tokens: Vec<u32>,
    pub start: f64,
    pub end: f64,
    /// The same by the time tokens alone; word times move the former, and
    /// tend to end early.
    written: (f64, f64),
    /// Times in seconds of the recording.
    pub words: Vec<AlignedWord>,
}

impl Passage {
    pub fn new(tokens: Vec<u32>, start: f64, end: f64) -> Self {
        Self { tokens, start, end, written: (start, end), words: Vec::new() }
    }

    /// All that the text may cover, in seconds.
    pub fn reach(&self) -> (f64, f64) {
        (self.start.min(self.written.0), self.end.max(self.written.1))
    }

    pub fn last_word_end(&self) -> Option<f64> {
        self.words.last().map(|word| word.end)
    }
}

const PREPENDED: [&str; 7] = ["\"", "'", "“", "¿", "(", "[", "{"];
const PREPENDED_DASH: &str = "-";
const APPENDED: [&str; 18] =
    ["\"", "'", ".", "。", ",", "，", "!", "！", "?", "？", ":", "：", "”", ")", "]", "}", "、", ""];
const SENTENCE_ENDS: [&str; 7] = ["", ".", "。", "!", "！", "?", "？"];
/// The typical word is taken to last no longer than this, in seconds.
const LONGEST_TYPICAL_WORD: f64 = 0.7;

/// Word times of one window after the other: `add_word_timestamps` of
/// openai/whisper's `timing.py`, its corrections at pauses included.
#[derive(Debug, Clone, Default)]
pub struct WordTimes {
    /// Where the last segment ended, in seconds.
    last_speech: f64,
}

impl WordTimes {
    /// Goes on from what [`Self::last_speech`] was.
    pub fn resume(last_speech: f64) -> Self {
        Self { last_speech }
    }

    pub fn last_speech(&self) -> f64 {
        self.last_speech
    }

    pub fn add(
        &mut self,
        transcriber: &Transcriber,
        audio: &Tensor,
        passages: &mut [Passage],
        seek: usize,
        frames: usize,
    ) -> Result<(), models::Error> {
        let vocabulary = &transcriber.model.vocabulary;
        let text_tokens: Vec<Vec<u32>> = passages
            .iter()
            .map(|passage| {
                passage.tokens.iter().copied().filter(|token| vocabulary.is_text(*token)).collect()
            })
            .collect();
        let mut words = align(
            transcriber.model,
            audio,
            transcriber.language,
            transcriber.task,
            &text_tokens.concat(),
            frames,
            transcriber.control,
        )?;
        let typical = typical_duration(&words);
        shorten_at_sentence_ends(&mut words, typical * 2.0);
        merge_punctuation(&mut words);

        let offset = seek as f64 / 100.0;
        let mut words = words.into_iter();
        for (passage, tokens) in passages.iter_mut().zip(&text_tokens) {
            let mut taken = 0;
            while taken < tokens.len() {
                let Some(word) = words.next() else { break };
                taken += word.tokens.len();
                if !word.text.is_empty() {
                    let (start, end) = (round(offset + word.start), round(offset + word.end));
                    passage.words.push(AlignedWord { start, end, ..word });
                }
            }
            fit(passage, typical, self.last_speech);
            if !passage.words.is_empty() {
                self.last_speech = passage.end;
            }
        }
        if let Some(end) = passages.iter().rev().find_map(Passage::last_word_end) {
            self.last_speech = end;
        }
        Ok(())
    }
}

/// Hundredths of a second, as the reference reports.
fn round(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

fn typical_duration(words: &[AlignedWord]) -> f64 {
    let mut durations: Vec<f64> =
        words.iter().map(|word| word.end - word.start).filter(|duration| *duration != 0.0).collect();
    if durations.is_empty() {
        return 0.0;
    }
    durations.sort_by(f64::total_cmp);
    let middle = durations.len() / 2;
    let median = if durations.len() % 2 == 1 {
        durations[middle]
    } else {
        (durations[middle - 1] + durations[middle]) / 2.0
    };
    median.min(LONGEST_TYPICAL_WORD)
}

/// A word that seems to last through the pause after a sentence does not.
fn shorten_at_sentence_ends(words: &mut [AlignedWord], longest: f64) {
    for i in 1..words.len() {
        if words[i].end - words[i].start > longest {
            if SENTENCE_ENDS.contains(&words[i].text.as_str()) {
                words[i].end = words[i].start + longest;
            } else if SENTENCE_ENDS.contains(&words[i - 1].text.as_str()) {
                words[i].start = words[i].end - longest;
            }
        }
    }
}

/// Joins quotation marks and brackets to the word after, stops and commas to
/// the word before; what was joined is left behind empty.
fn merge_punctuation(words: &mut [AlignedWord]) {
    let Some(mut following) = words.len().checked_sub(1) else { return };
    for previous in (0..following).rev() {
        let text = words[previous].text.trim();
        if words[previous].text.starts_with(' ') && (PREPENDED.contains(&text) || text == PREPENDED_DASH) {
            let text = std::mem::take(&mut words[previous].text);
            let mut tokens = std::mem::take(&mut words[previous].tokens);
            words[following].text.insert_str(0, &text);
            tokens.append(&mut words[following].tokens);
            words[following].tokens = tokens;
        } else {
            following = previous;
        }
    }
    let mut previous = 0;
    for following in 1..words.len() {
        if !words[previous].text.ends_with(' ') && APPENDED.contains(&words[following].text.as_str()) {
            let text = std::mem::take(&mut words[following].text);
            let mut tokens = std::mem::take(&mut words[following].tokens);
            words[previous].text.push_str(&text);
            words[previous].tokens.append(&mut tokens);
        } else {
            previous = following;
        }
    }
}

/// Reconciles a passage's times with those of its words.
fn fit(passage: &mut Passage, typical: f64, last_speech: f64) {
    let longest = typical * 2.0;
    let words = &mut passage.words;
    let Some(count) = words.len().checked_sub(1) else { return };
    // The first words after a pause tend to reach back into it.
    let first_too_long = words[0].end - words[0].start > longest;
    let second_too_long = count > 0 && words[1].end - words[0].start > longest * 2.0;
    if words[0].end - last_speech > typical * 4.0 && (first_too_long || second_too_long) {
        if count > 0 && words[1].end - words[1].start > longest {
            let boundary = (words[1].end / 2.0).max(words[1].end - longest);
            words[0].end = boundary;
            words[1].start = boundary;
        }
        words[0].start = (words[0].end - longest).max(0.0);
    }
    // The passage's own start, where the first word is much too early.
    if passage.start < words[0].end && passage.start - 0.5 > words[0].start {
        words[0].start = (words[0].end - typical).min(passage.start).max(0.0);
    } else {
        passage.start = words[0].start;
    }
    if passage.end > words[count].start && passage.end + 0.5 < words[count].end {
        words[count].end = (words[count].start + typical).max(passage.end);
    } else {
        passage.end = words[count].end;
    }
}
