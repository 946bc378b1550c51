//! The kernel for processors with AVX2 that have no VNNI. Both factors are widened to 16 bits; an instruction multiplies
//! sixteen pairs of them and adds two products each, where one in 32 bits multiplies eight. The sums are exact: those of a
//! block stay below 2^28 with weights up to 255 and activations of 16 bits, and what is subtracted for the weights' 128
//! below 2^27.

use std::arch::x86_64::{
    __m256, __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_add_epi32, _mm256_and_si256,
    _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_fmadd_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_mul_ps, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_srli_epi16, _mm256_storeu_ps,
};
use std::hint::black_box;

use half::f16;

use super::kernels::Panel;
use super::{Pairs, RoundedRows, STEP, WeightBlock};
use crate::panels::{BLOCK, PANEL};

/// Columns of a vector.
const LANES: usize = 8;
/// Rows that are computed together.
const ROWS: usize = 4;
/// Steps of a block, each of which multiplies four values of a row.
const STEPS: usize = BLOCK / 4;

/// Up to so many rows, as in a step of a decoder, weights come from memory. Of more rows, all but the first find a panel in
/// the cache.
const FROM_MEMORY: usize = 8;
/// Blocks that are fetched ahead from memory.
const AHEAD: usize = 8;

/// The values of a row and what belongs to them in [`RoundedRows::blocks`], block after block.
type Row<'a> = (&'a [[Pairs; STEPS]], &'a [(f32, i32)]);

/// As [`Kernel::rows_times_panel`](super::kernels::Kernel::rows_times_panel).
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rows_times_panel(out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
    let depth = panel.blocks.len();
    let ahead = if out.len() / width <= FROM_MEMORY { AHEAD } else { 0 };
    let tiles = out
        .chunks_mut(ROWS * width)
        .zip(x.pairs.chunks(ROWS * depth * STEPS))
        .zip(x.blocks.chunks(ROWS * depth));
    for ((out, pairs), blocks) in tiles {
        // So many vectors of columns as there are registers for.
        match out.len() / width {
            4 => parts::<4, 2>(out, (width, ahead), pairs, blocks, panel),
            3 => parts::<3, 2>(out, (width, ahead), pairs, blocks, panel),
            2 => parts::<2, 4>(out, (width, ahead), pairs, blocks, panel),
            _ => parts::<1, 4>(out, (width, ahead), pairs, blocks, panel),
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn parts<const N: usize, const VECTORS: usize>(
    out: &mut [f32],
    (width, ahead): (usize, usize),
    pairs: &[Pairs],
    blocks: &[(f32, i32)],
    panel: &Panel,
) {
    for column in (0..PANEL).step_by(VECTORS * LANES) {
        tile::<N, VECTORS>(out, (column, width, ahead), pairs, blocks, panel);
    }
}

/// `N` rows times some columns of a panel, from `column` on. Compiled by itself: where it is inlined, other tiles take its
/// registers.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<const N: usize, const VECTORS: usize>(
    out: &mut [f32],
    (column, width, ahead): (usize, usize, usize),
    pairs: &[Pairs],
    blocks: &[(f32, i32)],
    &Panel { blocks: weights, first }: &Panel,
) {
    let depth = weights.len();
    let rows: [Row; N] = std::array::from_fn(|row| {
        let pairs = &pairs[row * depth * STEPS..][..depth * STEPS];
        (pairs.as_chunks().0, &blocks[row * depth..][..depth])
    });
    let lower = _mm256_set1_epi16(0xff);
    // All steps at once the compiler would bring into an order for which there are too few registers.
    let steps = black_box(STEPS);
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; N];
    for (number, weights) in weights.iter().enumerate() {
        let pairs = rows.map(|(pairs, _)| &pairs[number]);
        let mut whole = rows.map(|(_, blocks)| [_mm256_set1_epi32(-blocks[number].1); VECTORS]);
        for (step, weights) in weights.steps.iter().enumerate().take(steps) {
            if column == 0 {
                // Both lines of a step, though a tile may read the first alone: the processor foresees that every line is
                // read, and not that every second one is. An address behind the weights does no harm.
                let next = weights.as_ptr().wrapping_add(ahead * size_of::<WeightBlock>());
                _mm_prefetch::<_MM_HINT_T0>(next.cast());
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(STEP / 2).cast());
            }
            let weights: [__m256i; VECTORS] =
                std::array::from_fn(|vector| load_weights(weights, column + vector * LANES));
            // Of each four weights the first and the third, then the second and the fourth.
            let halves = [
                weights.map(|weights| _mm256_and_si256(weights, lower)),
                weights.map(|weights| _mm256_srli_epi16::<8>(weights)),
            ];
            for (pairs, whole) in pairs.iter().zip(&mut whole) {
                for (pair, weights) in pairs[step].iter().zip(&halves) {
                    let [low, high] = *pair;
                    let pair = i32::from(low.cast_unsigned()) | i32::from(high) << 16;
                    let pair = _mm256_set1_epi32(pair);
                    for (whole, weights) in whole.iter_mut().zip(weights) {
                        *whole = _mm256_add_epi32(*whole, _mm256_madd_epi16(*weights, pair));
                    }
                }
            }
        }
        let scales: [__m256; VECTORS] =
            std::array::from_fn(|vector| load_scales(&weights.scales, column + vector * LANES));
        for ((_, blocks), (sums, whole)) in rows.iter().zip(sums.iter_mut().zip(whole)) {
            let scale = _mm256_set1_ps(blocks[number].0);
            for ((sum, whole), scales) in sums.iter_mut().zip(whole).zip(scales) {
                *sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), _mm256_mul_ps(scale, scales), *sum);
            }
        }
    }
    for (row, sums) in sums.into_iter().enumerate() {
        for (vector, sum) in sums.into_iter().enumerate() {
            // The last panel has columns that the result has not.
            let start = (first + column + vector * LANES).min(width);
            let out = &mut out[row * width + start..(row + 1) * width];
            if let Some(out) = out.first_chunk_mut::<LANES>() {
                // SAFETY: there is room for all of them.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sum) };
            } else {
                let mut lanes = [0.0; LANES];
                // SAFETY: as above.
                unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
                out.copy_from_slice(&lanes[..out.len()]);
            }
        }
    }
}

/// Four weights of each of the columns from `column` on.
#[target_feature(enable = "avx2,fma,f16c")]
fn load_weights(step: &[u8; STEP], column: usize) -> __m256i {
    let bytes = &step[4 * column..4 * (column + LANES)];
    // SAFETY: all of them are there.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn load_scales(scales: &[f16; PANEL], column: usize) -> __m256 {
    let halves = &scales[column..column + LANES];
    // SAFETY: all of them are there.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(halves.as_ptr().cast()) })
}
