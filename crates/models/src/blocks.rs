//! Conversion of GGML's formats to 32-bit floats, and of those to Q8_0. `docs/gguf.md` and
//! `ggml-common.h` of the GGML project describe the formats. A block holds 32
//! weights (256 in the formats with a K) and their scale; a row of a matrix is a
//! whole number of blocks.
//!
//! The conversions are plain loops that the compiler vectorises for several
//! generations of processors ([`crate::vectorised`]). candle's own conversions
//! are compiled for the oldest generation only, and its products of quantised
//! matrices keep a second, repacked copy of every matrix.

use candle_core::quantized::GgmlDType;
use half::f16;
use memory::Precision;

use crate::products::BLOCK_WEIGHTS;
use crate::vectorised::{Kernel, vectorised};

/// candle's type for a precision.
pub fn ggml(format: Precision) -> GgmlDType {
    match format {
        Precision::F32 => GgmlDType::F32,
        Precision::F16 => GgmlDType::F16,
        Precision::Bf16 => GgmlDType::BF16,
        Precision::Q8_0 => GgmlDType::Q8_0,
        Precision::Q6K => GgmlDType::Q6K,
        Precision::Q5K => GgmlDType::Q5K,
        Precision::Q5_1 => GgmlDType::Q5_1,
        Precision::Q5_0 => GgmlDType::Q5_0,
        Precision::Q4K => GgmlDType::Q4K,
        Precision::Q4_1 => GgmlDType::Q4_1,
        Precision::Q4_0 => GgmlDType::Q4_0,
    }
}

/// The bytes of `weights` weights, rounded up to whole blocks.
pub fn bytes_of(format: Precision, weights: usize) -> usize {
    format.bytes(weights as u64) as usize
}

/// Converts weights from `bytes` in `format` to `values`, as many as both hold.
/// An incomplete last block is ignored.
pub fn to_f32(format: Precision, bytes: &[u8], values: &mut [f32]) {
    struct ToF32<'a>(Precision, &'a [u8], &'a mut [f32]);
    impl Kernel for ToF32<'_> {
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            to_f32_inline::<FMA>(self.0, self.1, self.2);
        }
    }
    vectorised(ToF32(format, bytes, values));
}

/// As [`to_f32`], to be called from a [`Kernel`].
#[inline(always)]
pub fn to_f32_inline<const FMA: bool>(format: Precision, bytes: &[u8], values: &mut [f32]) {
    match format {
        Precision::F32 => each::<4, 1>(bytes, values, |b, v| v[0] = f32::from_le_bytes(*b)),
        Precision::F16 => {
            let whole = values.len().min(bytes.len() / 2) / BLOCK_WEIGHTS * BLOCK_WEIGHTS;
            let (first, last) = values.split_at_mut(whole);
            each::<{ 2 * BLOCK_WEIGHTS }, BLOCK_WEIGHTS>(bytes, first, |b, v| *v = f16_weights::<FMA>(b));
            each::<2, 1>(&bytes[2 * whole..], last, |b, v| v[0] = f16_value(*b));
        }
        // Without branches, which the compiler makes vectors of.
        Precision::Bf16 => each::<2, 1>(bytes, values, |b, v| v[0] = bf16_value(*b)),
        Precision::Q8_0 => each::<34, 32>(bytes, values, q8_0),
        Precision::Q6K => each::<210, 256>(bytes, values, q6_k),
        Precision::Q5K => each::<176, 256>(bytes, values, q5_k),
        Precision::Q5_1 => each::<24, 32>(bytes, values, q5_1),
        Precision::Q5_0 => each::<22, 32>(bytes, values, q5_0),
        Precision::Q4K => each::<144, 256>(bytes, values, q4_k),
        Precision::Q4_1 => each::<20, 32>(bytes, values, q4_1),
        Precision::Q4_0 => each::<18, 32>(bytes, values, q4_0),
    }
}

/// Rounds weights to Q8_0, to the bytes of candle's `BlockQ8_0::from_float`, which is compiled for the oldest
/// generation only. Blocks with a subnormal scale become zeros; candle's differ, but are read as zeros too. `values`
/// must be finite and a whole number of blocks, and `bytes` must have room for them.
pub fn to_q8_0(values: &[f32], bytes: &mut [u8]) {
    struct ToQ8_0<'a>(&'a [f32], &'a mut [u8]);
    impl Kernel for ToQ8_0<'_> {
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            let (values, _) = self.0.as_chunks::<32>();
            let (blocks, _) = self.1.as_chunks_mut::<34>();
            debug_assert_eq!(values.len(), blocks.len());
            for (block, values) in blocks.iter_mut().zip(values) {
                round_to_q8_0(values, block);
            }
        }
    }
    vectorised(ToQ8_0(values, bytes));
}

#[inline(always)]
fn round_to_q8_0(values: &[f32; 32], block: &mut [u8; 34]) {
    // 1.5 times 2 to the 23: the lowest byte of its sum with a small integer is that integer. Unlike a conversion,
    // which saturates, the sum is vectorised well; so is the largest of integers, unlike that of floats.
    const INTEGERS: f32 = 12_582_912.0;
    let largest = values.iter().fold(0, |largest, value| value.abs().to_bits().max(largest));
    let scale = f32::from_bits(largest) / 127.0;
    // The inverse of a subnormal scale may be infinite; in 16 bits such a scale is 0.
    let inverse = if scale < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    let (head, rounded) = block.split_at_mut(2);
    head.copy_from_slice(&f16::from_f32(scale).to_le_bytes());
    for (rounded, value) in rounded.iter_mut().zip(values) {
        *rounded = ((value * inverse).round() + INTEGERS).to_bits() as u8;
    }
}

/// Converts block after block.
#[inline(always)]
fn each<const BYTES: usize, const WEIGHTS: usize>(
    bytes: &[u8],
    values: &mut [f32],
    block: impl Fn(&[u8; BYTES], &mut [f32; WEIGHTS]),
) {
    let (blocks, _) = bytes.as_chunks::<BYTES>();
    let (values, _) = values.as_chunks_mut::<WEIGHTS>();
    for (bytes, values) in blocks.iter().zip(values) {
        block(bytes, values);
    }
}

/// Converts a half-precision number. Its exponent and mantissa are moved to the
/// positions of a 32-bit float's, and a multiplication corrects the difference
/// of the exponents' biases, 127 - 15 = 112. This also converts subnormal numbers.
#[inline(always)]
pub fn f16_value(bytes: [u8; 2]) -> f32 {
    const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
    let bits = u32::from(u16::from_le_bytes(bytes));
    let magnitude = (bits & 0x7fff) << 13;
    let not_finite = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
    let sign = (bits & 0x8000) << 16;
    f32::from_bits((f32::from_bits(magnitude) * TWO_TO_112).to_bits() | not_finite | sign)
}

/// The number whose upper half these bytes are.
#[inline(always)]
fn bf16_value(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// Converts 32 numbers in BF16.
#[inline(always)]
pub fn bf16_weights(bytes: &[u8; 2 * BLOCK_WEIGHTS]) -> [f32; BLOCK_WEIGHTS] {
    let mut weights = [0.0; BLOCK_WEIGHTS];
    for (weight, bytes) in weights.iter_mut().zip(bytes.as_chunks().0) {
        *weight = bf16_value(*bytes);
    }
    weights
}

/// Converts 32 half-precision numbers, with F16C instructions if `FMA` is true.
#[inline(always)]
pub fn f16_weights<const FMA: bool>(bytes: &[u8; 2 * BLOCK_WEIGHTS]) -> [f32; BLOCK_WEIGHTS] {
    #[cfg(target_arch = "x86_64")]
    if FMA {
        // SAFETY: `vectorised` sets `FMA` only where the processor has AVX2 and F16C too.
        return unsafe { f16_weights_by_instruction(bytes) };
    }
    let mut weights = [0.0; BLOCK_WEIGHTS];
    for (weight, bytes) in weights.iter_mut().zip(bytes.as_chunks().0) {
        *weight = f16_value(*bytes);
    }
    weights
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn f16_weights_by_instruction(bytes: &[u8; 2 * BLOCK_WEIGHTS]) -> [f32; BLOCK_WEIGHTS] {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
    let mut weights = [0.0; BLOCK_WEIGHTS];
    for (weights, halves) in weights.as_chunks_mut::<8>().0.iter_mut().zip(bytes.as_chunks::<16>().0) {
        // SAFETY: both arrays have exactly the length that is read or written.
        unsafe {
            let halves = _mm_loadu_si128(halves.as_ptr().cast());
            _mm256_storeu_ps(weights.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
    weights
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn f16_value_by_instruction(bytes: [u8; 2]) -> f32 {
    use std::arch::x86_64::{_mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32};
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(u16::from_le_bytes(bytes)))))
}

/// The scale of a block and its weights before scaling.
#[inline(always)]
pub fn q8_0_weights<const FMA: bool>(block: &[u8; 34]) -> (f32, [f32; BLOCK_WEIGHTS]) {
    let mut weights = [0.0; BLOCK_WEIGHTS];
    for (weight, q) in weights.iter_mut().zip(&block[2..]) {
        *weight = f32::from(*q as i8);
    }
    let scale = [block[0], block[1]];
    #[cfg(target_arch = "x86_64")]
    if FMA {
        // SAFETY: `vectorised` sets `FMA` only where the processor has AVX2 and F16C too.
        return (unsafe { f16_value_by_instruction(scale) }, weights);
    }
    (f16_value(scale), weights)
}

/// The half-precision number at byte `at`.
#[inline(always)]
fn half(bytes: &[u8], at: usize) -> f32 {
    f16_value([bytes[at], bytes[at + 1]])
}

/// A scale and 32 signed bytes.
#[inline(always)]
fn q8_0(block: &[u8; 34], values: &mut [f32; 32]) {
    let scale = half(block, 0);
    for (value, q) in values.iter_mut().zip(&block[2..]) {
        *value = f32::from(*q as i8) * scale;
    }
}

/// A scale and 32 x 4 bits: first the low halves of all bytes, then the high ones.
#[inline(always)]
fn q4_0(block: &[u8; 18], values: &mut [f32; 32]) {
    let scale = half(block, 0);
    let (low, high) = values.split_at_mut(16);
    for ((low, high), q) in low.iter_mut().zip(high).zip(&block[2..]) {
        *low = f32::from((q & 15) as i8 - 8) * scale;
        *high = f32::from((q >> 4) as i8 - 8) * scale;
    }
}

/// As Q4_0, with a minimum per block instead of an offset of 8.
#[inline(always)]
fn q4_1(block: &[u8; 20], values: &mut [f32; 32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    let (low, high) = values.split_at_mut(16);
    for ((low, high), q) in low.iter_mut().zip(high).zip(&block[4..]) {
        *low = f32::from(q & 15) * scale + minimum;
        *high = f32::from(q >> 4) * scale + minimum;
    }
}

/// The 32 five-bit weights of Q5_0 and Q5_1. Their low four bits are in `qs`,
/// arranged as in Q4_0, their fifth bits in `fifth`.
#[inline(always)]
fn five_bits(fifth: [u8; 4], qs: &[u8; 16], values: &mut [f32; 32], value: impl Fn(i32) -> f32) {
    let fifth = u32::from_le_bytes(fifth);
    for j in 0..16 {
        values[j] = value((u32::from(qs[j] & 15) | (fifth >> j & 1) << 4) as i32);
    }
    for j in 0..16 {
        values[j + 16] = value((u32::from(qs[j] >> 4) | (fifth >> (j + 16) & 1) << 4) as i32);
    }
}

/// A scale, the 32 fifth bits, and 32 x 4 bits.
#[inline(always)]
fn q5_0(block: &[u8; 22], values: &mut [f32; 32]) {
    let scale = half(block, 0);
    let Some(qs) = block.last_chunk() else { return };
    five_bits([block[2], block[3], block[4], block[5]], qs, values, |q| (q - 16) as f32 * scale);
}

/// As Q5_0, with a minimum per block instead of an offset of 16.
#[inline(always)]
fn q5_1(block: &[u8; 24], values: &mut [f32; 32]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    let Some(qs) = block.last_chunk() else { return };
    five_bits([block[4], block[5], block[6], block[7]], qs, values, |q| q as f32 * scale + minimum);
}

/// The scale and the minimum of sub-block `j` of a superblock, six bits each.
/// Twelve bytes hold those of all eight sub-blocks.
#[inline(always)]
fn sub_block(j: usize, packed: &[u8]) -> (f32, f32) {
    let (scale, minimum) = if j < 4 {
        (packed[j] & 63, packed[j + 4] & 63)
    } else {
        ((packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4, (packed[j + 4] >> 4) | (packed[j] >> 6) << 4)
    };
    (f32::from(scale), f32::from(minimum))
}

/// Eight sub-blocks of 32 weights of 4 bits, with a scale and a minimum each.
#[inline(always)]
fn q4_k(block: &[u8; 144], values: &mut [f32; 256]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    let packed = &block[4..16];
    for (pair, (values, qs)) in values.chunks_exact_mut(64).zip(block[16..].chunks_exact(32)).enumerate() {
        let (a, b) = (sub_block(2 * pair, packed), sub_block(2 * pair + 1, packed));
        let (scales, minima) = ([scale * a.0, scale * b.0], [minimum * a.1, minimum * b.1]);
        let (low, high) = values.split_at_mut(32);
        for ((low, high), q) in low.iter_mut().zip(high).zip(qs) {
            *low = scales[0] * f32::from(q & 15) - minima[0];
            *high = scales[1] * f32::from(q >> 4) - minima[1];
        }
    }
}

/// As Q4_K, with the fifth bits of all eight sub-blocks in 32 bytes.
#[inline(always)]
fn q5_k(block: &[u8; 176], values: &mut [f32; 256]) {
    let (scale, minimum) = (half(block, 0), half(block, 2));
    let (packed, fifth) = (&block[4..16], &block[16..48]);
    for (pair, (values, qs)) in values.chunks_exact_mut(64).zip(block[48..].chunks_exact(32)).enumerate() {
        let (a, b) = (sub_block(2 * pair, packed), sub_block(2 * pair + 1, packed));
        let (scales, minima) = ([scale * a.0, scale * b.0], [minimum * a.1, minimum * b.1]);
        let (low, high) = values.split_at_mut(32);
        for (((low, high), q), fifth) in low.iter_mut().zip(high).zip(qs).zip(fifth) {
            *low = scales[0] * f32::from((q & 15) | (fifth >> (2 * pair) & 1) << 4) - minima[0];
            *high = scales[1] * f32::from((q >> 4) | (fifth >> (2 * pair + 1) & 1) << 4) - minima[1];
        }
    }
}

/// Sixteen sub-blocks of 16 weights of 6 bits with a scale of 8 bits each, stored
/// as the low four bits, the high two bits, the scales, and a scale of the scales.
#[inline(always)]
fn q6_k(block: &[u8; 210], values: &mut [f32; 256]) {
    let scale = half(block, 208);
    for (n, values) in values.chunks_exact_mut(128).enumerate() {
        let low = &block[64 * n..64 * n + 64];
        let high = &block[128 + 32 * n..128 + 32 * n + 32];
        let scales = &block[192 + 8 * n..192 + 8 * n + 8];
        for (quarter, values) in values.chunks_exact_mut(32).enumerate() {
            let low = &low[32 * (quarter % 2)..][..32];
            for (half, values) in values.chunks_exact_mut(16).enumerate() {
                let scale = scale * f32::from(scales[2 * quarter + half] as i8);
                let bits = low[16 * half..][..16].iter().zip(&high[16 * half..][..16]);
                for (value, (low, high)) in values.iter_mut().zip(bits) {
                    let q = (low >> (4 * (quarter / 2)) & 15) | (high >> (2 * quarter) & 3) << 4;
                    *value = scale * f32::from(q as i8 - 32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    /// All bit patterns, including subnormal numbers, infinities and NaN.
    #[test]
    fn every_half_precision_number_is_converted_exactly() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut values = vec![0.0; 1 << 16];
        to_f32(Precision::F16, &bytes, &mut values);
        let plain = bytes.as_chunks().0.iter().flat_map(f16_weights::<false>);
        for ((bits, value), plain) in (0..=u16::MAX).zip(values).zip(plain) {
            let expected = f16::from_bits(bits).to_f32();
            for value in [value, plain] {
                assert!(
                    value.to_bits() == expected.to_bits() || (value.is_nan() && expected.is_nan()),
                    "{bits:#x}: {value}"
                );
            }
        }
    }
}
