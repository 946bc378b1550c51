//! The kernels for several generations of vector instructions.

#[cfg(target_arch = "x86_64")]
use half::f16;
#[cfg(target_arch = "x86_64")]
use memory::processor;

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::{RoundedRows, WeightBlock};
use crate::panels::{BLOCK, PANEL};

/// Ways to compute the same numbers, but for the last digits of those from activations of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// AVX-512 VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// Without VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Number by number, for tests.
    Plain,
}

impl Kernel {
    #[cfg(target_arch = "x86_64")]
    const FASTEST_FIRST: [Self; 3] = [Self::Avx512, Self::AvxVnni, Self::Avx2];

    #[cfg(target_arch = "x86_64")]
    pub fn of_this_processor() -> Self {
        Self::FASTEST_FIRST.into_iter().find(|kernel| kernel.runs_here()).unwrap_or(Self::Plain)
    }

    #[cfg(target_arch = "x86_64")]
    fn runs_here(self) -> bool {
        match self {
            Self::Avx512 => processor::has_vnni_512(),
            Self::AvxVnni => processor::has_vnni_256(),
            Self::Avx2 => processor::has_avx2(),
            Self::Plain => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_this_processor() -> Self {
        Self::Plain
    }

    /// All that this processor can run.
    #[cfg(test)]
    pub fn of_this_machine() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        return Self::FASTEST_FIRST.into_iter().filter(|kernel| kernel.runs_here()).collect();
        #[cfg(not(target_arch = "x86_64"))]
        return Vec::new();
    }

    /// Whether it reads [`RoundedRows::pairs`].
    pub fn multiplies_pairs(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self == Self::Avx2;
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// The rows that it computes of a row of activations of 16 bits.
    pub fn fine_rows(self) -> usize {
        if self.multiplies_pairs() { 1 } else { 2 }
    }

    /// Writes to `out`, in rows of `width`, the products of rows of activations with a panel.
    pub fn rows_times_panel(self, out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
        match self {
            // SAFETY: a kernel is chosen where the processor has what its functions enable.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512::rows_times_panel(out, width, x, panel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => unsafe { avx_vnni::rows_times_panel(out, width, x, panel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::rows_times_panel(out, width, x, panel) },
            Self::Plain => plain(out, width, x, panel),
        }
    }
}

/// Weights of [`PANEL`] columns of the result from `first` on.
pub(super) struct Panel<'a> {
    pub blocks: &'a [WeightBlock],
    pub first: usize,
}

/// What the kernels compute, number by number.
fn plain(out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
    let depth = panel.blocks.len();
    let rows = x.values.chunks_exact(depth * BLOCK).zip(x.blocks.chunks_exact(depth));
    for (out, (values, of_blocks)) in out.chunks_exact_mut(width).zip(rows) {
        for (column, out) in out[panel.first..].iter_mut().take(PANEL).enumerate() {
            let mut sum = 0.0f32;
            let blocks = values.as_chunks::<BLOCK>().0.iter().zip(of_blocks);
            for ((values, (scale, offset)), weights) in blocks.zip(panel.blocks) {
                let mut whole = -offset;
                for (at, value) in values.iter().enumerate() {
                    let weight = weights.steps[at / 4][4 * column + at % 4];
                    whole += i32::from(weight) * i32::from(*value);
                }
                sum = (whole as f32).mul_add(scale * weights.scales[column].to_f32(), sum);
            }
            *out = sum;
        }
    }
}

/// A kernel for vectors of one width.
#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($name:ident, $features:literal, lanes: $lanes:literal, vectors: $vectors:literal, rows: $rows:literal,
     $floats:ident, $zero:ident, $set:ident, $set_whole:ident, $load_halves:ident, $halves:ident,
     $load_whole:ident as $whole:ident, $store:ident, $dot:ident, $convert:ident, $multiply:ident, $fused:ident) => {
        mod $name {
            use std::arch::x86_64::{
                $convert, $dot, $floats, $fused, $halves, $load_halves, $load_whole, $multiply, $set,
                $set_whole, $store, $whole, $zero,
            };

            use super::{BLOCK, PANEL, Panel, RoundedRows, f16};

            /// Columns of a vector.
            const LANES: usize = $lanes;
            /// Vectors and rows that are computed together: as many as there are registers for.
            const VECTORS: usize = $vectors;
            const ROWS: usize = $rows;
            /// Columns that are computed together.
            const PART: usize = LANES * VECTORS;

            #[target_feature(enable = $features)]
            pub(super) fn rows_times_panel(out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
                let depth = panel.blocks.len();
                let tiles = out
                    .chunks_mut(ROWS * width)
                    .zip(x.values.chunks(ROWS * depth * BLOCK))
                    .zip(x.blocks.chunks(ROWS * depth));
                for ((out, values), blocks) in tiles {
                    for part in 0..PANEL / PART {
                        if out.len() == ROWS * width {
                            tile::<ROWS>(out, (part, width), values, blocks, panel);
                            continue;
                        }
                        // In tiles of four the compiler runs out of registers.
                        let pairs = out
                            .chunks_mut(2 * width)
                            .zip(values.chunks(2 * depth * BLOCK))
                            .zip(blocks.chunks(2 * depth));
                        for ((out, values), blocks) in pairs {
                            if out.len() == 2 * width {
                                tile::<2>(out, (part, width), values, blocks, panel);
                            } else {
                                tile::<1>(out, (part, width), values, blocks, panel);
                            }
                        }
                    }
                }
            }

            /// `N` rows times a part of a panel. Compiled by itself: where it is inlined, other tiles take its registers.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn tile<const N: usize>(
                out: &mut [f32],
                (part, width): (usize, usize),
                values: &[i8],
                blocks: &[(f32, i32)],
                &Panel { blocks: weights, first }: &Panel,
            ) {
                let depth = weights.len();
                let rows: [(&[[i8; 4]], &[(f32, i32)]); N] = std::array::from_fn(|row| {
                    let values = &values[row * depth * BLOCK..][..depth * BLOCK];
                    (values.as_chunks().0, &blocks[row * depth..][..depth])
                });
                let mut sums = [[$zero(); VECTORS]; N];
                for (number, weights) in weights.iter().enumerate() {
                    let mut whole: [[$whole; VECTORS]; N] =
                        std::array::from_fn(|row| [$set_whole(-rows[row].1[number].1); VECTORS]);
                    for (step, weights) in weights.steps.iter().enumerate() {
                        let weights: [$whole; VECTORS] = std::array::from_fn(|vector| {
                            let start = 4 * (part * PART + vector * LANES);
                            load_weights(&weights[start..start + 4 * LANES])
                        });
                        for ((values, _), whole) in rows.iter().zip(&mut whole) {
                            let four = values[number * (BLOCK / 4) + step];
                            let four = $set_whole(i32::from_ne_bytes(four.map(i8::cast_unsigned)));
                            for (whole, weights) in whole.iter_mut().zip(weights) {
                                *whole = $dot(*whole, weights, four);
                            }
                        }
                    }
                    let scales: [$floats; VECTORS] = std::array::from_fn(|vector| {
                        let start = part * PART + vector * LANES;
                        load_scales(&weights.scales[start..start + LANES])
                    });
                    for ((_, blocks), (sums, whole)) in rows.iter().zip(sums.iter_mut().zip(whole)) {
                        let scale = $set(blocks[number].0);
                        for ((sum, whole), scales) in sums.iter_mut().zip(whole).zip(scales) {
                            *sum = $fused($convert(whole), $multiply(scale, scales), *sum);
                        }
                    }
                }
                for (row, sums) in sums.into_iter().enumerate() {
                    for (vector, sum) in sums.into_iter().enumerate() {
                        // The last panel has columns that the result has not.
                        let start = (first + part * PART + vector * LANES).min(width);
                        let out = &mut out[row * width + start..(row + 1) * width];
                        if let Some(out) = out.first_chunk_mut::<LANES>() {
                            // SAFETY: there is room for all of them.
                            unsafe { $store(out.as_mut_ptr(), sum) };
                        } else {
                            let mut lanes = [0.0; LANES];
                            // SAFETY: as above.
                            unsafe { $store(lanes.as_mut_ptr(), sum) };
                            out.copy_from_slice(&lanes[..out.len()]);
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            fn load_weights(bytes: &[u8]) -> $whole {
                assert!(bytes.len() == 4 * LANES);
                // SAFETY: all of them are there.
                unsafe { $load_whole(bytes.as_ptr().cast()) }
            }

            #[target_feature(enable = $features)]
            fn load_scales(halves: &[f16]) -> $floats {
                assert!(halves.len() == LANES);
                // SAFETY: all of them are there.
                $halves(unsafe { $load_halves(halves.as_ptr().cast()) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(
    avx512, "avx512f,avx512vnni", lanes: 16, vectors: 2, rows: 6, __m512, _mm512_setzero_ps, _mm512_set1_ps,
    _mm512_set1_epi32, _mm256_loadu_si256, _mm512_cvtph_ps, _mm512_loadu_si512 as __m512i, _mm512_storeu_ps, _mm512_dpbusd_epi32,
    _mm512_cvtepi32_ps, _mm512_mul_ps, _mm512_fmadd_ps
);
#[cfg(target_arch = "x86_64")]
kernel!(
    avx_vnni, "avx2,fma,f16c,avxvnni", lanes: 8, vectors: 2, rows: 3, __m256, _mm256_setzero_ps, _mm256_set1_ps,
    _mm256_set1_epi32, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_loadu_si256 as __m256i, _mm256_storeu_ps, _mm256_dpbusd_avx_epi32,
    _mm256_cvtepi32_ps, _mm256_mul_ps, _mm256_fmadd_ps
);
