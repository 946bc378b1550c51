use candle_core::{D, DType, IndexOp, Tensor};
use models::whisper::{CrossScores, Whisper};
use transcript::Task;

use super::decode::task_tokens;
use super::logits_filter::TIMESTAMP_STEP;
use super::rating::probabilities;
use super::words::split_words;
use crate::Control;

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

/// Where each word of `text_tokens` is spoken: dynamic time warping over the
/// cross-attention of the alignment heads, in a second, teacher-forced pass
/// (`find_alignment` of openai/whisper's `timing.py`).
///
/// `audio` is one window's encoder output, `frames` its real length in frames
/// of 10 ms.
///
/// # Errors
/// Where computing fails, or the job was cancelled.
pub fn align(
    model: &Whisper,
    audio: &Tensor,
    language: &str,
    task: Task,
    text_tokens: &[u32],
    frames: usize,
    control: &Control,
) -> Result<Vec<AlignedWord>, models::Error> {
    let vocabulary = &model.vocabulary;
    let positions = frames / 2;
    if text_tokens.is_empty() || positions == 0 {
        return Ok(Vec::new());
    }
    let mut tokens = vec![vocabulary.start_of_transcript];
    tokens.extend(task_tokens(model, language, task));
    let start = tokens.len();
    tokens.push(vocabulary.no_timestamps);
    // Longer than the model can hold: align what fits, the rest gets the end.
    let room = model.config.dimensions.text_context as usize - tokens.len() - 1;
    let text_tokens = &text_tokens[..text_tokens.len().min(room)];
    tokens.extend_from_slice(text_tokens);
    tokens.push(vocabulary.end_of_text);

    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let mut scores = CrossScores { heads: model.alignment_heads.clone(), found: Vec::new() };
    let mut state = model.decoder.start(audio, 1, tokens.len())?;
    let hidden = model.decoder.forward(&tokens, &mut state, Some(&mut scores), &tick)?;
    drop(state);
    let mut found = Vec::with_capacity(text_tokens.len());
    for (number, tokens) in text_tokens.chunks(LOGIT_BLOCK).enumerate() {
        let first = start + number * LOGIT_BLOCK;
        let logits = model.decoder.logits(&hidden.i((0, first..first + tokens.len()))?)?;
        found.extend(probabilities(&logits.i((.., ..vocabulary.end_of_text as usize))?, tokens)?);
    }
    drop(hidden);

    let mut spoken = text_tokens.to_vec();
    spoken.push(vocabulary.end_of_text);
    let words = split_words(vocabulary, language, &spoken);
    if words.len() <= 1 || scores.found.is_empty() {
        return Ok(Vec::new());
    }
    // Rows of the no-timestamps token to the last text token: each row's
    // attention is where the *next* token is spoken.
    let matrix = attention_matrix(&scores.found, positions)?;
    let rows = &matrix[start * positions..(tokens.len() - 1) * positions];
    let jumps = token_times(rows, positions);

    // The last word is the end of text (and what is torn off before it).
    let count = words.len() - 1;
    let mut aligned = Vec::with_capacity(count);
    let mut first = 0;
    for (text, tokens) in words.into_iter().take(count) {
        let end = first + tokens.len();
        let probability = found[first..end].iter().sum::<f32>() / tokens.len() as f32;
        aligned.push(AlignedWord { text, tokens, start: jumps[first], end: jumps[end], probability });
        first = end;
    }
    Ok(aligned)
}

/// Softmax over time, z-norm over tokens, median over time, mean over heads:
/// (tokens, positions), row-major.
fn attention_matrix(heads: &[Tensor], positions: usize) -> Result<Vec<f32>, models::Error> {
    let mut sum: Vec<f32> = Vec::new();
    for head in heads {
        let scores = head.i((0, .., ..positions))?.to_dtype(DType::F32)?.contiguous()?;
        let shares = candle_nn::ops::softmax(&scores, D::Minus1)?;
        let mut weights: Vec<f32> = shares.flatten_all()?.to_vec1()?;
        normalise_columns(&mut weights, positions);
        let filtered = median_filter(&weights, positions);
        if sum.is_empty() {
            sum = filtered;
        } else {
            sum.iter_mut().zip(&filtered).for_each(|(sum, value)| *sum += value);
        }
    }
    let count = heads.len() as f32;
    sum.iter_mut().for_each(|value| *value /= count);
    Ok(sum)
}

/// Subtracts each column's mean and divides by its (population) deviation.
fn normalise_columns(weights: &mut [f32], width: usize) {
    let rows = (weights.len() / width) as f64;
    for column in 0..width {
        let values = || weights.iter().skip(column).step_by(width).map(|value| f64::from(*value));
        let mean = values().sum::<f64>() / rows;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / rows).sqrt();
        for value in weights.iter_mut().skip(column).step_by(width) {
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
    for row in weights.chunks(width) {
        for position in 0..width {
            let mut near = [0f32; MEDIAN_WIDTH];
            for (offset, value) in near.iter_mut().enumerate() {
                let at = (position + offset).abs_diff(half);
                let at = if at >= width { 2 * (width - 1) - at } else { at };
                *value = row[at];
            }
            near.sort_by(f32::total_cmp);
            filtered.push(near[half]);
        }
    }
    filtered
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

    #[test]
    fn median_reflects_at_the_edges() {
        let row = [5.0, 1.0, 2.0, 3.0, 100.0, 4.0, 6.0, 7.0];
        // Around position 0: 3 2 1 [5] 1 2 3.
        assert_eq!(median_filter(&row, 8)[0], 2.0);
        // Around the last: 100 4 6 [7] 6 4 100.
        assert_eq!(median_filter(&row, 8)[7], 6.0);
    }
}
