use models::whisper::Vocabulary;

use super::FRAMES_PER_SECOND;
use super::logits_filter::TIMESTAMP_STEP;
use super::word_times::Passage;

/// A window's tokens as passages with times.
#[derive(Debug)]
pub struct Cut {
    pub passages: Vec<Passage>,
    /// How far the next window begins after this one, in frames.
    pub advance: usize,
    /// False where the last passage ended in a time and nothing after it:
    /// the rest of the window is silent.
    pub open_end: bool,
}

pub fn cut(vocabulary: &Vocabulary, tokens: &[u32], seek: usize, frames: usize) -> Cut {
    let offset = seek as f64 / FRAMES_PER_SECOND;
    let is_time = |token: &u32| vocabulary.is_timestamp(*token);
    let seconds = |token: u32| f64::from(token - vocabulary.timestamp_begin) * TIMESTAMP_STEP;
    let single_end = matches!(tokens, [.., before, last] if !is_time(before) && is_time(last));
    let mut ends: Vec<usize> =
        (1..tokens.len()).filter(|i| is_time(&tokens[i - 1]) && is_time(&tokens[*i])).collect();
    if ends.is_empty() {
        let last = tokens.iter().rev().find(|token| is_time(token));
        let length = match last {
            Some(token) if *token != vocabulary.timestamp_begin => seconds(*token),
            _ => frames as f64 / FRAMES_PER_SECOND,
        };
        let passage = Passage::new(tokens.to_vec(), offset, offset + length);
        return Cut { passages: vec![passage], advance: frames, open_end: !single_end };
    }
    if single_end {
        ends.push(tokens.len());
    }
    let mut passages = Vec::with_capacity(ends.len());
    let mut first = 0;
    for end in ends {
        let slice = &tokens[first..end];
        if let [start, .., stop] = slice
            && is_time(start)
            && is_time(stop)
        {
            passages.push(Passage::new(slice.to_vec(), offset + seconds(*start), offset + seconds(*stop)));
        }
        first = end;
    }
    let advance = if single_end {
        frames
    } else {
        // The unfinished rest is decoded again from the last time on.
        (seconds(tokens[first - 1]) * FRAMES_PER_SECOND).round() as usize
    };
    Cut { passages, advance, open_end: !single_end }
}
