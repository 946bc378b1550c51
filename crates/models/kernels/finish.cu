// What follows a matrix product, each in one pass over its result, where candle's operations take one pass for every
// addition, factor, activation and change of layout.
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include <stdint.h>

#define THREADS 256
// Numbers of a thread: 16 bytes of 16 bits each.
#define LANES 8

// Values of `activation`.
#define GELU 1
#define GELU_TANH 2
#define RELU 3

template <class T> struct alignas(16) Lanes {
    T at[LANES];
};

static __device__ float activated(const float x, const uint32_t activation) {
    switch (activation) {
    case GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case RELU:
        return fmaxf(x, 0.0f);
    default:
        return x;
    }
}

// `y`, rows of `width`: activation((y + bias) * scale), plus `other` where `is_added`. Computed in 32 bits and rounded
// once.
template <class T>
static __device__ void finish(T *y, const T *bias, const T *other, const uint32_t groups, const uint32_t width,
                              const float scale, const uint32_t activation, const uint32_t is_added) {
    const uint32_t group = blockIdx.x * THREADS + threadIdx.x;
    if (group >= groups)
        return;
    Lanes<T> found = ((const Lanes<T> *)y)[group];
    const Lanes<T> bias_here = ((const Lanes<T> *)bias)[group % (width / LANES)];
    Lanes<T> others = found;
    if (is_added)
        others = ((const Lanes<T> *)other)[group];
    for (int i = 0; i < LANES; i++) {
        const float value = activated(((float)found.at[i] + (float)bias_here.at[i]) * scale, activation);
        found.at[i] = (T)(is_added ? value + (float)others.at[i] : value);
    }
    ((Lanes<T> *)y)[group] = found;
}

// (rows, length, heads * head width) to (rows, heads, length, head width): (y + bias) * scale; without `has_bias` the
// numbers as they are.
template <class T>
static __device__ void split_heads(const T *y, const T *bias, T *out, const uint32_t groups, const uint32_t length,
                                   const uint32_t heads, const uint32_t head_width, const float scale,
                                   const uint32_t has_bias) {
    const uint32_t group = blockIdx.x * THREADS + threadIdx.x;
    if (group >= groups)
        return;
    const uint32_t of_head = head_width / LANES;
    const uint32_t within = group % of_head, position = group / of_head % length;
    const uint32_t head = group / of_head / length % heads, row = group / of_head / length / heads;
    const size_t from = (((size_t)row * length + position) * heads + head) * of_head + within;
    Lanes<T> found = ((const Lanes<T> *)y)[from];
    if (has_bias) {
        const Lanes<T> bias_here = ((const Lanes<T> *)bias)[head * of_head + within];
        for (int i = 0; i < LANES; i++)
            found.at[i] = (T)(((float)found.at[i] + (float)bias_here.at[i]) * scale);
    }
    ((Lanes<T> *)out)[group] = found;
}

// The other way: (rows, heads, count, head width) to the positions from `start` on of (rows, length, heads * head width).
template <class T>
static __device__ void join_heads(T *out, const T *y, const uint32_t groups, const uint32_t count, const uint32_t heads,
                                  const uint32_t head_width, const uint32_t length, const uint32_t start) {
    const uint32_t group = blockIdx.x * THREADS + threadIdx.x;
    if (group >= groups)
        return;
    const uint32_t of_head = head_width / LANES;
    const uint32_t within = group % of_head, position = group / of_head % count;
    const uint32_t head = group / of_head / count % heads, row = group / of_head / count / heads;
    const size_t to = (((size_t)row * length + start + position) * heads + head) * of_head + within;
    ((Lanes<T> *)out)[to] = ((const Lanes<T> *)y)[group];
}

#define FINISH(NAME, TYPE)                                                                                             \
    extern "C" __global__ void finish_##NAME(TYPE *y, const TYPE *bias, const TYPE *other, const uint32_t groups,        \
                                             const uint32_t width, const float scale, const uint32_t activation,        \
                                             const uint32_t is_added) {                                                 \
        finish(y, bias, other, groups, width, scale, activation, is_added);                                            \
    }                                                                                                                  \
    extern "C" __global__ void split_heads_##NAME(const TYPE *y, const TYPE *bias, TYPE *out, const uint32_t groups,     \
                                                  const uint32_t length, const uint32_t heads,                          \
                                                  const uint32_t head_width, const float scale,                         \
                                                  const uint32_t has_bias) {                                            \
        split_heads(y, bias, out, groups, length, heads, head_width, scale, has_bias);                                 \
    }                                                                                                                  \
    extern "C" __global__ void join_heads_##NAME(TYPE *out, const TYPE *y, const uint32_t groups, const uint32_t count,  \
                                                 const uint32_t heads, const uint32_t head_width,                       \
                                                 const uint32_t length, const uint32_t start) {                         \
        join_heads(out, y, groups, count, heads, head_width, length, start);                                           \
    }

FINISH(f32, float)
FINISH(f16, __half)
#if __CUDA_ARCH__ >= 800
FINISH(bf16, __nv_bfloat16)
#endif
