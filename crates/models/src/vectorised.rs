//! Loops compiled for several generations of vector instructions, one of which
//! is chosen at run time. The rest of the program is compiled for the oldest
//! generation, SSE2 on x86-64, whose vectors are a quarter as wide as AVX-512's.

/// A loop to vectorise. `run` and everything that it calls must be
/// `#[inline(always)]`, so that they are compiled once for each generation.
pub(crate) trait Kernel {
    /// Runs the loop. `FMA` is true where the processor has fused multiply-add.
    fn run<const FMA: bool>(self);
}

/// `a b + c`, rounded once with `FMA` and twice without.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Runs `kernel` compiled for the newest vector instructions of this processor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn vectorised(kernel: impl Kernel) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn avx512(kernel: impl Kernel) {
        kernel.run::<true>();
    }
    #[target_feature(enable = "avx2,fma,f16c")]
    fn avx2(kernel: impl Kernel) {
        kernel.run::<true>();
    }
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let has_avx512 = has_avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if has_avx512 {
        // SAFETY: the processor has every feature that the function enables.
        unsafe { avx512(kernel) }
    } else if has_avx2 {
        // SAFETY: as above.
        unsafe { avx2(kernel) }
    } else {
        kernel.run::<false>();
    }
}

/// Runs `kernel`. On other architectures every processor has the same vector
/// instructions.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn vectorised(kernel: impl Kernel) {
    kernel.run::<{ cfg!(target_arch = "aarch64") }>();
}
