// Attention of the decoder's new tokens to those before them, where sequences that go on from the same past share its
// keys and values: an index says in which row of the caches a position is, so that beams change places without copies.
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include <stdint.h>

#define THREADS 128

// Of all threads; every thread has it afterwards.
template <class Join> static __device__ float of_all(const float mine, Join join) {
    __shared__ float found[THREADS];
    __syncthreads();
    found[threadIdx.x] = mine;
    for (unsigned int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            found[threadIdx.x] = join(found[threadIdx.x], found[threadIdx.x + half]);
    }
    __syncthreads();
    return found[0];
}

// One block per row and head, and per new token: `queries` and `out` are (rows, heads, tokens, head width), `keys` and
// `values` (rows, heads, capacity, head width). `sources` is (rows, before): in which row of its own group of `beams`
// rows each earlier position is. A token sees those positions, the new tokens before it in its own row, and itself.
template <class T>
static __device__ void attend(const T *queries, const T *keys, const T *values, const uint16_t *sources, T *out,
                              const uint32_t heads, const uint32_t beams, const uint32_t capacity,
                              const uint32_t head_width, const uint32_t before) {
    extern __shared__ float scores[];
    const uint32_t row = blockIdx.x / heads, head = blockIdx.x % heads;
    const uint32_t seen = before + blockIdx.y + 1;
    const size_t at = ((size_t)blockIdx.x * gridDim.y + blockIdx.y) * head_width;
    sources += (size_t)row * before;
    const auto place = [=](uint32_t position) {
        const uint32_t held = position < before ? row / beams * beams + sources[position] : row;
        return (((size_t)held * heads + head) * capacity + position) * head_width;
    };

    float largest = -INFINITY;
    for (uint32_t position = threadIdx.x; position < seen; position += THREADS) {
        const T *key = keys + place(position);
        float score = 0;
        for (uint32_t i = 0; i < head_width; i++)
            score += (float)queries[at + i] * (float)key[i];
        scores[position] = score;
        largest = fmaxf(largest, score);
    }
    largest = of_all(largest, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (uint32_t position = threadIdx.x; position < seen; position += THREADS) {
        const float share = expf(scores[position] - largest);
        scores[position] = share;
        sum += share;
    }
    sum = of_all(sum, [](float a, float b) { return a + b; });

    for (uint32_t i = threadIdx.x; i < head_width; i += THREADS) {
        float value = 0;
        for (uint32_t position = 0; position < seen; position++)
            value += scores[position] * (float)values[place(position) + i];
        out[at + i] = (T)(value / sum);
    }
}

#define ATTEND(NAME, TYPE)                                                                                             \
    extern "C" __global__ void NAME(const TYPE *queries, const TYPE *keys, const TYPE *values, const uint16_t *sources, \
                                    TYPE *out, const uint32_t heads, const uint32_t beams, const uint32_t capacity,     \
                                    const uint32_t head_width, const uint32_t before) {                                 \
        attend(queries, keys, values, sources, out, heads, beams, capacity, head_width, before);                        \
    }

ATTEND(attend_f32, float)
ATTEND(attend_f16, __half)
#if __CUDA_ARCH__ >= 800
ATTEND(attend_bf16, __nv_bfloat16)
#endif
