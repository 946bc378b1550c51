//! Loops compiled for the vector instructions of several generations of
//! processors, chosen when they run. The programs themselves are compiled for
//! the oldest, whose vectors are a quarter as wide.

/// What is to be vectorised: `run`, and whatever it calls, is marked
/// `#[inline(always)]`, so that it is compiled once for each generation.
pub(crate) trait Work {
    /// `FMA`: products are added without being rounded, which costs nothing.
    fn run<const FMA: bool>(self);
}

/// `a b + c`; without the instruction for it, rounded twice.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn vectorised(work: impl Work) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn avx512(work: impl Work) {
        work.run::<true>();
    }
    #[target_feature(enable = "avx2,fma,f16c")]
    fn avx2(work: impl Work) {
        work.run::<true>();
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
        unsafe { avx512(work) }
    } else if has_avx2 {
        // SAFETY: as above.
        unsafe { avx2(work) }
    } else {
        work.run::<false>();
    }
}

/// Other processors have one generation that all of them share.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn vectorised(work: impl Work) {
    work.run::<{ cfg!(target_arch = "aarch64") }>();
}
