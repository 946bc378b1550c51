use candle_core::{D, DType, IndexOp, Tensor};
use models::whisper::{CrossScores, Whisper};
use rayon::prelude::*;
use transcript::Task;

use super::decode::task_tokens;
use super::logits_filter::TIMESTAMP_STEP;
use super::rating::probabilities;
use super::words::split_words;
use crate::{Control, timings};

/// A word with its times in seconds from the window's start.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedWord {
    /// The word, with the white space before it.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// When it begins, in seconds from the beginning of the window.
    pub start: f64,
    /// When it ends, in seconds.
    pub end: f64,
    /// The mean probability of its tokens, 0 to 1.
    pub probability: f32,
}

/// Width of the median filter over time, in positions (openai/whisper).
const MEDIAN_WIDTH: usize = 7;

/// Tokens whose logits are there at once: the vocabulary is the widest thing
/// in the model, and a full window has a hundred tokens and more.
const LOGIT_BLOCK: usize = 16;

/// What was said in one window.
#[derive(Debug, Clone)]
pub struct Said<'a> {
    /// ISO code; ignored by an English-only model.
    pub language: &'a str,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// Text tokens alone.
    pub tokens: Vec<u32>,
    /// The window's real length in frames of 10 ms.
    pub frames: usize,
}

/// Where each word of what was said in some windows is spoken: dynamic time warping over the cross-attention of the
/// alignment heads, in a second, teacher-forced pass (`find_alignment` of openai/whisper's `timing.py`).
///
/// `audio` is the encoder's output, (windows, source positions, width), `said` one per window. A card takes all windows
/// at once; on the host one is work enough.
///
/// # Errors
/// Where computing fails, or the job was cancelled.
pub fn align(
    model: &Whisper,
    audio: &Tensor,
    said: &[Said],
    control: &Control,
) -> Result<Vec<Vec<AlignedWord>>, models::Error> {
    let together = if model.device.is_cpu() { 1 } else { said.len().max(1) };
    let mut aligned = Vec::with_capacity(said.len());
    for (number, said) in said.chunks(together).enumerate() {
        let audio = audio.narrow(0, number * together, said.len())?;
        let aligning = || align_together(model, &audio, said, control);
        aligned.extend(control.timings().of(timings::WORD_TIMES, aligning)?);
    }
    Ok(aligned)
}

fn align_together(
    model: &Whisper,
    audio: &Tensor,
    said: &[Said],
    control: &Control,
) -> Result<Vec<Vec<AlignedWord>>, models::Error> {
    let windows: Vec<Forced> = said.iter().map(|said| Forced::new(model, said)).collect();
    let spoken: Vec<usize> = (0..said.len()).filter(|window| windows[*window].is_spoken()).collect();
    if spoken.is_empty() {
        return Ok(vec![Vec::new(); said.len()]);
    }
    let count = spoken.iter().map(|window| windows[*window].tokens.len()).max().unwrap_or_default();
    // A shorter text is filled up: no token sees what follows it.
    let fill = |window: &usize| {
        let tokens = &windows[*window].tokens;
        tokens.iter().copied().chain(std::iter::repeat(model.vocabulary.end_of_text)).take(count)
    };
    let tokens: Vec<u32> = spoken.iter().flat_map(fill).collect();
    let audio = match spoken.len() == said.len() {
        true => audio.clone(),
        false => {
            let each: Vec<_> =
                spoken.iter().map(|window| audio.narrow(0, *window, 1)).collect::<Result<_, _>>()?;
            Tensor::cat(&each, 0)?
        }
    };
    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let mut scores = CrossScores { heads: model.alignment_heads.clone(), found: Vec::new() };
    let mut state = model.decoder.start(&audio, 1, count)?;
    let hidden = model.decoder.forward(&tokens, &mut state, Some(&mut scores), &tick)?;
    drop(state);

    // The hidden states that predict the text tokens, and these.
    let texts: Vec<&[u32]> = spoken.iter().map(|window| windows[*window].text()).collect();
    let before = |(row, window): (usize, &usize)| {
        let Forced { start, text_tokens, .. } = &windows[*window];
        hidden.i((row, *start..start + text_tokens))
    };
    let before: Vec<Tensor> = spoken.iter().enumerate().map(before).collect::<Result<_, _>>()?;
    let before = Tensor::cat(&before, 0)?;
    drop(hidden);
    let mut probable = Vec::with_capacity(before.dim(0)?);
    let block = LOGIT_BLOCK * spoken.len();
    for (number, tokens) in texts.concat().chunks(block).enumerate() {
        let logits = model.decoder.logits(&before.narrow(0, number * block, tokens.len())?)?;
        let text = logits.i((.., ..model.vocabulary.end_of_text as usize))?;
        probable.extend(probabilities(&text, tokens)?);
    }
    drop(before);
    if scores.found.is_empty() {
        return Ok(vec![Vec::new(); said.len()]);
    }

    let mut aligned = vec![Vec::new(); said.len()];
    // The filters of one window run beside what the card has yet to do for the next ones.
    rayon::in_place_scope(|scope| {
        let places = aligned.iter_mut().zip(said.iter().zip(&windows));
        let places = places.filter(|(_, (_, forced))| forced.is_spoken());
        let mut probable = &probable[..];
        for (row, (aligned, (said, forced))) in places.enumerate() {
            let (own, rest) = probable.split_at(forced.text_tokens);
            probable = rest;
            let shares = forced.shares(&scores.found, row)?;
            scope.spawn(move |_| *aligned = forced.words(model, said.language, own, shares));
        }
        Ok::<_, models::Error>(())
    })?;
    Ok(aligned)
}

/// The tokens of a window that the decoder is made to write.
struct Forced {
    tokens: Vec<u32>,
    /// Where among them the token before the text is.
    start: usize,
    /// How many tokens of text follow it.
    text_tokens: usize,
    /// Positions of the encoder that the window has.
    positions: usize,
}

impl Forced {
    fn new(model: &Whisper, said: &Said) -> Self {
        let vocabulary = &model.vocabulary;
        let mut tokens = vec![vocabulary.start_of_transcript];
        tokens.extend(task_tokens(model, said.language, said.task));
        let start = tokens.len();
        tokens.push(vocabulary.no_timestamps);
        // Longer than the model can hold: align what fits, the rest gets the end.
        let room = model.config.dimensions.text_context as usize - tokens.len() - 1;
        let text_tokens = said.tokens.len().min(room);
        tokens.extend_from_slice(&said.tokens[..text_tokens]);
        tokens.push(vocabulary.end_of_text);
        Self { tokens, start, text_tokens, positions: said.frames / 2 }
    }

    fn text(&self) -> &[u32] {
        &self.tokens[self.start + 1..][..self.text_tokens]
    }

    fn is_spoken(&self) -> bool {
        self.text_tokens > 0 && self.positions > 0
    }

    /// The softmax over time of all heads' scores in one row: (heads, tokens, positions), row-major.
    fn shares(&self, heads: &[Tensor], row: usize) -> Result<Vec<f32>, models::Error> {
        // A card waits for each answer that is sent; the host has less in memory at once.
        let together = if heads.iter().all(|head| head.device().is_cpu()) { 1 } else { heads.len().max(1) };
        let mut shares = Vec::with_capacity(heads.len() * self.tokens.len() * self.positions);
        for heads in heads.chunks(together) {
            let scores = |head: &Tensor| head.i((row..=row, ..self.tokens.len(), ..self.positions));
            let scores: Vec<_> = heads.iter().map(scores).collect::<Result<_, _>>()?;
            let scores = Tensor::cat(&scores, 0)?.to_dtype(DType::F32)?.contiguous()?;
            let softmax = candle_nn::ops::softmax(&scores, D::Minus1)?;
            shares.extend(softmax.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(shares)
    }

    /// The words of the text with their times.
    fn words(
        &self,
        model: &Whisper,
        language: &str,
        probabilities: &[f32],
        shares: Vec<f32>,
    ) -> Vec<AlignedWord> {
        let words = split_words(&model.vocabulary, language, &self.tokens[self.start + 1..]);
        if words.len() <= 1 {
            return Vec::new();
        }
        // Rows of the no-timestamps token to the last text token: each row's
        // attention is where the *next* token is spoken.
        let matrix = attention_matrix(shares, self.tokens.len(), self.positions);
        let rows = &matrix[self.start * self.positions..(self.tokens.len() - 1) * self.positions];
        let jumps = token_times(rows, self.positions);
        // The last word is the end of text (and what is torn off before it).
        let count = words.len() - 1;
        let mut aligned = Vec::with_capacity(count);
        let mut first = 0;
        for (text, tokens) in words.into_iter().take(count) {
            let end = first + tokens.len();
            let probability = probabilities[first..end].iter().sum::<f32>() / tokens.len() as f32;
            aligned.push(AlignedWord { text, tokens, start: jumps[first], end: jumps[end], probability });
            first = end;
        }
        aligned
    }
}

/// Z-norm over tokens, median over time, mean over heads, of shares of (heads, tokens, positions):
/// (tokens, positions), row-major.
fn attention_matrix(mut shares: Vec<f32>, tokens: usize, positions: usize) -> Vec<f32> {
    let filtered: Vec<Vec<f32>> = shares
        .par_chunks_mut(tokens * positions)
        .map(|weights| {
            normalise_columns(weights, positions);
            median_filter(weights, positions)
        })
        .collect();
    let count = filtered.len() as f32;
    let mut sum = vec![0.0; tokens * positions];
    for weights in &filtered {
        sum.iter_mut().zip(weights).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|value| *value /= count);
    sum
}

/// Subtracts each column's mean and divides by its (population) deviation.
fn normalise_columns(weights: &mut [f32], width: usize) {
    let rows = (weights.len() / width) as f64;
    let mut means = vec![0.0; width];
    for row in weights.chunks_exact(width) {
        means.iter_mut().zip(row).for_each(|(mean, value)| *mean += f64::from(*value));
    }
    means.iter_mut().for_each(|mean| *mean /= rows);
    let mut deviations = vec![0.0; width];
    for row in weights.chunks_exact(width) {
        for ((deviation, mean), value) in deviations.iter_mut().zip(&means).zip(row) {
            *deviation += (f64::from(*value) - mean).powi(2);
        }
    }
    deviations.iter_mut().for_each(|deviation| *deviation = (*deviation / rows).sqrt());
    for row in weights.chunks_exact_mut(width) {
        for ((value, mean), deviation) in row.iter_mut().zip(&means).zip(&deviations) {
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        }
    }
}

/// Median over [`MEDIAN_WIDTH`] neighbours in each row, reflected at the edges.
fn median_filter(weights: &[f32], width: usize) -> Vec<f32> {
    let half = MEDIAN_WIDTH / 2;
    if width <= half {
        return weights.to_vec();
    }
    let mut filtered = Vec::with_capacity(weights.len());
    let mut padded = Vec::with_capacity(width + 2 * half);
    for row in weights.chunks_exact(width) {
        padded.clear();
        let reflected =
            row[1..=half].iter().rev().chain(row).chain(row[width - 1 - half..width - 1].iter().rev());
        padded.extend(reflected.map(|value| ordered(*value)));
        let near = padded.windows(MEDIAN_WIDTH).filter_map(|near| near.first_chunk());
        filtered.extend(near.map(|near| from_ordered(median(*near))));
    }
    filtered
}

/// Integers in the order of [`f32::total_cmp`]: what is no number has a place too.
fn ordered(value: f32) -> i32 {
    let bits = value.to_bits().cast_signed();
    bits ^ (((bits >> 31).cast_unsigned() >> 1).cast_signed())
}

fn from_ordered(bits: i32) -> f32 {
    f32::from_bits((bits ^ (((bits >> 31).cast_unsigned() >> 1).cast_signed())).cast_unsigned())
}

/// The middle one, found by exchanges without branches: the network of Paeth (Graphics Gems, 1990) for seven numbers.
fn median(mut near: [i32; MEDIAN_WIDTH]) -> i32 {
    const EXCHANGES: [(usize, usize); 13] = [
        (0, 5),
        (0, 3),
        (1, 6),
        (2, 4),
        (0, 1),
        (3, 5),
        (2, 6),
        (2, 3),
        (3, 6),
        (4, 5),
        (1, 4),
        (1, 3),
        (3, 4),
    ];
    for (a, b) in EXCHANGES {
        (near[a], near[b]) = (near[a].min(near[b]), near[a].max(near[b]));
    }
    near[MEDIAN_WIDTH / 2]
}

/// When each token begins, in seconds: the first position of its row on the
/// cheapest monotonic path through the negated matrix.
fn token_times(matrix: &[f32], width: usize) -> Vec<f64> {
    let rows = matrix.len() / width;
    let mut times = vec![0.0; rows];
    let mut previous = usize::MAX;
    for (row, column) in warp(matrix, rows, width) {
        if row != previous {
            times[row] = column as f64 * TIMESTAMP_STEP;
            previous = row;
        }
    }
    times
}

/// Dynamic time warping that maximises the sum of `matrix` along the path;
/// (row, column) from first to last. Ties are broken as in openai/whisper.
fn warp(matrix: &[f32], rows: usize, width: usize) -> Vec<(usize, usize)> {
    const DIAGONAL: u8 = 0;
    const UP: u8 = 1;
    const LEFT: u8 = 2;
    let stride = width + 1;
    let mut cost = vec![f32::INFINITY; (rows + 1) * stride];
    let mut trace = vec![DIAGONAL; (rows + 1) * stride];
    cost[0] = 0.0;
    for i in 1..=rows {
        for j in 1..=width {
            let diagonal = cost[(i - 1) * stride + j - 1];
            let up = cost[(i - 1) * stride + j];
            let left = cost[i * stride + j - 1];
            let (best, step) = if diagonal < up && diagonal < left {
                (diagonal, DIAGONAL)
            } else if up < diagonal && up < left {
                (up, UP)
            } else {
                (left, LEFT)
            };
            cost[i * stride + j] = best - matrix[(i - 1) * width + j - 1];
            trace[i * stride + j] = step;
        }
    }
    let mut path = Vec::with_capacity(rows + width);
    let (mut i, mut j) = (rows, width);
    while i > 0 || j > 0 {
        let step = match (i, j) {
            (0, _) => LEFT,
            (_, 0) => UP,
            _ => trace[i * stride + j],
        };
        path.push((i.saturating_sub(1), j.saturating_sub(1)));
        if step != LEFT {
            i -= 1;
        }
        if step != UP {
            j -= 1;
        }
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warp_follows_the_ridge() {
        #[rustfmt::skip]
        let matrix = [
            9.0, 9.0, -1.0, -1.0, -1.0,
            -1.0, -1.0, 9.0, -1.0, -1.0,
            -1.0, -1.0, -1.0, 9.0, 9.0,
        ];
        assert_eq!(warp(&matrix, 3, 5), [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4)]);
        assert_eq!(token_times(&matrix, 5), [0.0, 0.04, 0.06]);
    }

    /// Where a network sorts all sequences of zeros and ones, it sorts all sequences (Knuth).
    #[test]
    fn the_median_is_the_middle_of_all_orders() {
        for bits in 0..1u32 << MEDIAN_WIDTH {
            let near: [i32; MEDIAN_WIDTH] = std::array::from_fn(|i| (bits >> i & 1).cast_signed());
            let expected = i32::from(near.iter().sum::<i32>() as usize > MEDIAN_WIDTH / 2);
            assert_eq!(median(near), expected, "{near:?}");
        }
        let numbers = [f32::NEG_INFINITY, -2.0, -0.0, 0.0, 1e-9, 3.0, f32::INFINITY, f32::NAN];
        assert!(numbers.iter().zip(&numbers[1..]).all(|(a, b)| ordered(*a) < ordered(*b)));
        assert!(numbers.iter().all(|value| from_ordered(ordered(*value)).to_bits() == value.to_bits()));
    }

    #[test]
    fn median_reflects_at_the_edges() {
        let row = [5.0, 1.0, 2.0, 3.0, 100.0, 4.0, 6.0, 7.0];
        // Around position 0: 3 2 1 [5] 1 2 3.
        assert_eq!(median_filter(&row, 8)[0], 2.0);
        // Around the last: 100 4 6 [7] 6 4 100.
        assert_eq!(median_filter(&row, 8)[7], 6.0);
    }
}
