//! Where the subject changes.
//!
//! As TextTiling (Hearst 1997) does with words, what is said shortly before a place is compared with what is
//! said shortly after it, here by vectors of meaning (Solbiati et al. 2021). The difference is measured in
//! what sentences of one subject differ by, so that neither the model nor the kind of talk matters much.

use std::collections::BTreeSet;

use super::Block;
use crate::Time;

/// How much of each side is compared, and how far lower scores are looked for.
const WINDOW: Time = Time::from_millis(120_000);
/// No chapter is shorter.
const LEAST: Time = Time::from_millis(120_000);
/// On average chapters are at least so long.
const AVERAGE: Time = Time::from_millis(180_000);
/// Depth from which on a change of subject is one: docs/measurements.md has what others find.
pub const THRESHOLD: f64 = 0.11;
/// Sentences of one subject differ at least by this: the same sentence twice would differ by nothing.
const LEAST_DIFFERENCE: f64 = 0.02;

/// The blocks that begin with another subject, in order; the first block is not among them. Each block has a
/// vector, of unit length; without vectors there are none.
pub fn boundaries(blocks: &[Block], vectors: &[Vec<f32>], threshold: f64) -> Vec<usize> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Vec::new() };
    if vectors.len() != blocks.len() {
        return Vec::new();
    }
    let (begin, end) = (first.span.start, last.span.end);
    let depths = depths(blocks, &scores(blocks, vectors));
    let mut candidates: Vec<usize> = (1..blocks.len()).filter(|at| depths[*at] >= threshold).collect();
    candidates.sort_by(|a, b| depths[*b].total_cmp(&depths[*a]));
    let most = end.saturating_sub(begin).millis().div_ceil(AVERAGE.millis()).saturating_sub(1) as usize;
    let mut starts = BTreeSet::from([begin, end]);
    let mut chosen = BTreeSet::new();
    for at in candidates {
        let start = blocks[at].span.start;
        let is_near = |other: &Time| other.saturating_sub(start).max(start.saturating_sub(*other)) < LEAST;
        if chosen.len() < most && !starts.iter().any(is_near) {
            starts.insert(start);
            chosen.insert(at);
        }
    }
    chosen.into_iter().collect()
}

/// The sum of the vectors of some blocks.
struct Sum {
    vector: Vec<f64>,
    count: f64,
}

impl Sum {
    fn add(&mut self, vector: &[f32], sign: f64) {
        self.vector.iter_mut().zip(vector).for_each(|(sum, x)| *sum += sign * f64::from(*x));
        self.count += sign;
    }

    /// Mean similarity of two blocks among these.
    fn within(&self) -> Option<f64> {
        let pairs = self.count * (self.count - 1.0);
        (pairs > 0.5).then(|| (dot(&self.vector, &self.vector) - self.count) / pairs)
    }

    /// Mean similarity of a block among these and one among others.
    fn across(&self, other: &Sum) -> f64 {
        dot(&self.vector, &other.vector) / (self.count * other.count).max(1.0)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How much what is said before each block differs from what is said from it on: 0 where it does as any
/// two sentences of either side do, 1 where it does twice as much.
fn scores(blocks: &[Block], vectors: &[Vec<f32>]) -> Vec<f64> {
    let empty = || Sum { vector: vec![0.0; vectors.first().map_or(0, Vec::len)], count: 0.0 };
    let (mut before, mut after) = (empty(), empty());
    let (mut from, mut to) = (0, 0);
    let mut scores = vec![0.0; blocks.len()];
    for (at, block) in blocks.iter().enumerate() {
        let start = block.span.start;
        while blocks.get(to).is_some_and(|other| other.span.start < start + WINDOW) {
            after.add(&vectors[to], 1.0);
            to += 1;
        }
        while from < at && blocks[from].span.start + WINDOW < start {
            before.add(&vectors[from], -1.0);
            from += 1;
        }
        let sides: Vec<f64> = [before.within(), after.within()].into_iter().flatten().collect();
        if from < at && !sides.is_empty() {
            let within = sides.iter().sum::<f64>() / sides.len() as f64;
            scores[at] = (within - before.across(&after)) / (1.0 - within).max(LEAST_DIFFERENCE);
        }
        before.add(&vectors[at], 1.0);
        after.add(&vectors[at], -1.0);
    }
    scores
}

/// How far the score of each block stands above the lowest shortly before and shortly after it, on average.
fn depths(blocks: &[Block], scores: &[f64]) -> Vec<f64> {
    let mut depths = vec![0.0; blocks.len()];
    for at in 1..blocks.len() {
        let start = blocks[at].span.start;
        let is_near = |other: &usize| {
            let other = blocks[*other].span.start;
            other.saturating_sub(start).max(start.saturating_sub(other)) <= WINDOW
        };
        let lowest =
            |near: &mut dyn Iterator<Item = usize>| near.map(|at| scores[at]).fold(scores[at], f64::min);
        let before = lowest(&mut (1..at).rev().take_while(is_near));
        let after = lowest(&mut (at + 1..blocks.len()).take_while(is_near));
        depths[at] = scores[at] - before.midpoint(after);
    }
    depths
}
