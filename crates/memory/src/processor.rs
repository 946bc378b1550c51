//! What this processor can do that decides how numbers are held.

/// Whether it multiplies numbers of 8 bits in vectors of 512 bits: AVX-512 F and AVX-512 VNNI. The kernels of `models` are
/// compiled for exactly these, and are unsound where one of them is not looked for.
pub fn has_vnni_512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether it does so in vectors of 256 bits: AVX-VNNI and what [`has_avx2`] looks for, as for [`has_vnni_512`].
pub fn has_vnni_256() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx2() && is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether it has AVX2, FMA and F16C. A kernel of `models` that widens numbers of 8 bits to 16 is compiled for exactly
/// these, and is unsound where one of them is not looked for.
pub fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether it multiplies numbers in BF16: AVX-512 F and AVX-512 BF16, for which kernels of `models` are compiled too.
pub fn multiplies_in_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether it has instructions for products of 8 bits, in vectors of 512 or of 256 bits.
pub fn has_vnni() -> bool {
    has_vnni_512() || has_vnni_256()
}

/// Whether it multiplies numbers of 8 bits faster than those of 32.
pub fn multiplies_in_eight_bits() -> bool {
    has_vnni_512() || has_avx2()
}
