//! When the tokens of a decoder are spoken, from what its heads attend to as it writes them (`find_alignment` of
//! openai/whisper's `timing.py`).

use std::ops::Range;

use rayon::prelude::*;

/// Width of the median filter over time, in positions (openai/whisper).
const MEDIAN_WIDTH: usize = 7;

/// Where heads attend to.
#[derive(Debug)]
pub struct Attended {
    /// (heads, rows, positions): each row a softmax over the positions. A row's attention is where the token is spoken
    /// that is written next.
    pub shares: Vec<f32>,
    pub rows: usize,
    pub positions: usize,
}

impl Attended {
    /// The position at which what each row stands for begins.
    pub fn starts(self) -> Vec<usize> {
        let rows = 0..self.rows;
        self.starts_of(rows)
    }

    /// The same of these rows alone, of which the others are no text.
    pub fn starts_of(self, rows: Range<usize>) -> Vec<usize> {
        let Self { shares, rows: all, positions } = self;
        let matrix = attention_matrix(shares, all, positions);
        first_positions(&matrix[rows.start * positions..rows.end * positions], positions)
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

/// The first position of each row on the cheapest monotonic path through the negated matrix.
fn first_positions(matrix: &[f32], width: usize) -> Vec<usize> {
    let rows = matrix.len() / width;
    let mut positions = vec![0; rows];
    let mut previous = usize::MAX;
    for (row, column) in warp(matrix, rows, width) {
        if row != previous {
            positions[row] = column;
            previous = row;
        }
    }
    positions
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
        assert_eq!(first_positions(&matrix, 5), [0, 2, 3]);
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
