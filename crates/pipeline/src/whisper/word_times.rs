use std::ops::Range;

use models::whisper::Vocabulary;

use super::missed::voice_in;
use super::timing::AlignedWord;

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

    /// The same by the time tokens alone, in seconds.
    pub fn written(&self) -> (f64, f64) {
        self.written
    }

    /// Takes the times of the time tokens, which the words share by their lengths.
    pub fn take_written(&mut self) {
        let (start, end) = self.written;
        (self.start, self.end) = (start, end);
        let length = |word: &AlignedWord| word.text.chars().count().max(1) as f64;
        let all: f64 = self.words.iter().map(length).sum();
        let mut before = 0.0;
        for word in &mut self.words {
            let at = |part: f64| round(start + (end - start) * part / all);
            word.start = at(before);
            before += length(word);
            word.end = at(before);
        }
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

    /// Gives the passages of a window from frame `seek` on the words that [`align`](super::timing::align) found in
    /// what [`said`] says of them.
    pub fn add(
        &mut self,
        vocabulary: &Vocabulary,
        mut words: Vec<AlignedWord>,
        passages: &mut [Passage],
        seek: usize,
    ) {
        let typical = typical_duration(&words);
        shorten_at_sentence_ends(&mut words, typical * 2.0);
        merge_punctuation(&mut words);

        let offset = seek as f64 / 100.0;
        let mut words = words.into_iter();
        for passage in passages.iter_mut() {
            let count = said(vocabulary, std::slice::from_ref(passage)).len();
            let mut taken = 0;
            while taken < count {
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
    }

    /// Where the words of a passage were found at one instant although there is voice where it was written, its time
    /// tokens are right: it would be left out as taking no time. So are those of the passages before it whose words were
    /// found in its time. `voiced` is in frames.
    pub fn repair(&mut self, passages: &mut [Passage], voiced: &[Range<usize>]) {
        /// In frames; over silence the model invents texts.
        const LEAST_VOICE: usize = 50;
        let mut behind: Option<f64> = None;
        for passage in passages.iter_mut().rev() {
            let (start, end) = passage.written;
            let frames = (start * 100.0) as usize..(end * 100.0) as usize;
            let is_instant = passage.start >= passage.end && voice_in(voiced, &frames) >= LEAST_VOICE;
            if start < end && (is_instant || behind.is_some_and(|behind| passage.end > behind)) {
                passage.take_written();
                behind = Some(passage.start);
            } else {
                behind = None;
            }
        }
        if let Some(end) = passages.iter().rev().find_map(Passage::last_word_end) {
            self.last_speech = end;
        }
    }
}

/// The text tokens of passages.
pub fn said(vocabulary: &Vocabulary, passages: &[Passage]) -> Vec<u32> {
    let tokens = passages.iter().flat_map(|passage| &passage.tokens);
    tokens.copied().filter(|token| vocabulary.is_text(*token)).collect()
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

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges that happen to have one")]
mod tests {
    use super::*;

    #[test]
    fn a_passage_whose_words_take_no_time_has_its_written_time() {
        let word = |text: &str, start, end| AlignedWord {
            text: text.into(),
            tokens: vec![1],
            start,
            end,
            probability: 0.5,
            state: Vec::new(),
            recalled: None,
        };
        // Two passages of two seconds each; where the words of both are found.
        let times = |first: (f64, f64), second: (f64, f64), voiced: &[Range<usize>]| {
            let mut passages = [Passage::new(Vec::new(), 20.0, 22.0), Passage::new(Vec::new(), 22.0, 24.0)];
            for (passage, (start, end)) in passages.iter_mut().zip([first, second]) {
                passage.words = vec![word(" one", start, start), word(" three", start, end)];
                (passage.start, passage.end) = (start, end);
            }
            let mut word_times = WordTimes::default();
            word_times.repair(&mut passages, voiced);
            let times = |passage: &Passage| (passage.start, passage.end, passage.words[0].end);
            (passages.each_ref().map(times), word_times.last_speech())
        };
        let voice = [2000..2400];
        let both = [(20.0, 22.0, 20.8), (22.0, 24.0, 22.8)];
        assert_eq!(
            times((20.5, 21.0), (22.5, 23.0), &voice),
            ([(20.5, 21.0, 20.5), (22.5, 23.0, 22.5)], 23.0)
        );
        assert_eq!(times((20.5, 23.9), (23.9, 23.9), &voice), (both, 24.0));
        assert_eq!(times((20.5, 21.9), (23.9, 23.9), &voice).0, [(20.5, 21.9, 20.5), both[1]]);
        // Text over silence.
        let silent = [(20.5, 21.9, 20.5), (23.9, 23.9, 23.9)];
        assert_eq!(times((20.5, 21.9), (23.9, 23.9), &[2000..2200]).0, silent);
    }
}
