// The likeliest tokens of each row of logits under the rules of Whisper's timestamps (openai/whisper, decoding.py), so
// that a step of the decoder sends a few numbers to the host and not a row of the vocabulary's width.
#include <stdint.h>

#define THREADS 256
#define NONE 0xffffffffu

// Bits of `forbidden`.
#define ALWAYS 1
#define AT_FIRST 2

struct Best {
    float value;
    uint32_t token;
};

// Larger first; of equals the earlier one.
static __device__ bool is_before(Best a, Best b) {
    return a.value > b.value || (a.value == b.value && a.token < b.token);
}

// Of all threads; every thread has it afterwards.
static __device__ Best best_of_all(Best mine) {
    __shared__ Best found[THREADS];
    __syncthreads();
    found[threadIdx.x] = mine;
    for (unsigned int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && is_before(found[threadIdx.x + half], found[threadIdx.x]))
            found[threadIdx.x] = found[threadIdx.x + half];
    }
    __syncthreads();
    return found[0];
}

static __device__ float sum_of_all(float mine) {
    __shared__ float sums[THREADS];
    __syncthreads();
    sums[threadIdx.x] = mine;
    for (unsigned int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    return sums[0];
}

// One block per row. `limits` of a row: whether it is the first token, the first text token that is allowed, the first
// timestamp that is, and the one behind the last. `out` of a row: the logarithm of the sum of the exponentials of what
// is allowed, then `count` logits and their tokens, the largest first; -infinity and -1 where there are no more.
extern "C" __global__ void choose_f32(const float *logits, const uint8_t *forbidden, const uint32_t *limits, float *out,
                                      const uint32_t vocabulary, const uint32_t timestamps, const uint32_t count,
                                      const uint32_t is_timed) {
    const uint32_t row = blockIdx.x;
    const float *x = logits + (size_t)row * vocabulary;
    const uint8_t bits = limits[row * 4] ? ALWAYS | AT_FIRST : ALWAYS;
    uint32_t text_from = limits[row * 4 + 1];
    const uint32_t time_from = limits[row * 4 + 2], time_to = limits[row * 4 + 3];
    const Best none = {-INFINITY, NONE};

    Best text = none, time = none;
    for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS) {
        if (forbidden[token] & bits)
            continue;
        const Best next = {x[token], token};
        if (token < timestamps) {
            if (token >= text_from && is_before(next, text))
                text = next;
        } else if (token >= time_from && token < time_to && is_before(next, time)) {
            time = next;
        }
    }
    text = best_of_all(text);
    time = best_of_all(time);

    // All timestamps together likelier than any one text token: a timestamp it is.
    if (is_timed && time.value > -INFINITY) {
        float sum = 0;
        for (uint32_t token = time_from + threadIdx.x; token < time_to; token += THREADS)
            if (!(forbidden[token] & bits))
                sum += expf(x[token] - time.value);
        if (time.value + logf(sum_of_all(sum)) > text.value) {
            text_from = timestamps;
            text = none;
        }
    }

    Best best = is_before(text, time) ? text : time;
    float sum = 0;
    if (best.value > -INFINITY)
        for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS) {
            const bool allowed = token < timestamps ? token >= text_from : token >= time_from && token < time_to;
            if (allowed && !(forbidden[token] & bits))
                sum += expf(x[token] - best.value);
        }
    sum = sum_of_all(sum);
    out += (size_t)row * (1 + 2 * count);
    if (threadIdx.x == 0)
        out[0] = best.value + logf(sum);

    for (uint32_t number = 0; number < count; number++) {
        if (number > 0) {
            Best next = none;
            for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS) {
                const bool allowed = token < timestamps ? token >= text_from : token >= time_from && token < time_to;
                const Best other = {x[token], token};
                if (allowed && !(forbidden[token] & bits) && is_before(best, other) && is_before(other, next))
                    next = other;
            }
            best = best_of_all(next);
        }
        if (threadIdx.x == 0) {
            const bool is_one = best.value > -INFINITY;
            out[1 + number] = best.value;
            out[1 + count + number] = is_one ? (float)best.token : -1.0f;
        }
    }
}
