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

// What a row allows, as the host writes it. Above the temperature 0 its token is drawn with a random number from 0 to 1.
// Bonuses are added to the logits of some tokens before one is chosen: those of `starts` where there are any, and `count`
// pairs of a token and its nats, in the order of tokens, from the word `bonuses` of the questions on.
struct Limits {
    uint32_t is_first, text_from, time_from, time_to;
    float temperature, random;
    uint32_t has_starts, bonuses, count;
};

// What a row adds to the logit of a token: the larger of its two bonuses.
static __device__ float bonus_of(uint32_t token, const float *starts, const Limits *limits, const Limits of) {
    float bonus = of.has_starts ? starts[token] : 0.0f;
    const uint32_t *pairs = (const uint32_t *)limits + of.bonuses;
    uint32_t from = 0, to = of.count;
    while (from < to) {
        const uint32_t middle = (from + to) / 2;
        if (pairs[2 * middle] < token)
            from = middle + 1;
        else
            to = middle;
    }
    if (from < of.count && pairs[2 * from] == token)
        bonus = fmaxf(bonus, __uint_as_float(pairs[2 * from + 1]));
    return bonus;
}

// The token at which the shares of those before it and its own exceed `random`, as softmax divides them up at
// a temperature; the last one with a share where rounding left no such, `likeliest` where what is no number did. `weigh`
// gives a token's part of all.
template <class Weigh>
static __device__ uint32_t draw(Weigh weigh, const uint32_t vocabulary, const float random, const uint32_t likeliest) {
    __shared__ float parts[THREADS];
    __shared__ uint32_t drawn;
    // Consecutive tokens, so that sums are in the order of the vocabulary.
    const uint32_t length = (vocabulary + THREADS - 1) / THREADS;
    const uint32_t from = min(threadIdx.x * length, vocabulary), to = min(from + length, vocabulary);
    float part = 0;
    for (uint32_t token = from; token < to; token++)
        part += weigh(token);
    __syncthreads();
    parts[threadIdx.x] = part;
    if (threadIdx.x == 0)
        drawn = likeliest;
    __syncthreads();
    float before = 0, all = 0;
    uint32_t last = 0;
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        if (thread < threadIdx.x)
            before += parts[thread];
        all += parts[thread];
        if (parts[thread] > 0)
            last = thread;
    }
    const float wanted = random * all;
    if (part > 0 && wanted >= before && (wanted < before + part || threadIdx.x == last)) {
        uint32_t found = from;
        for (uint32_t token = from; token < to; token++) {
            const float weight = weigh(token);
            if (weight > 0) {
                found = token;
                before += weight;
                if (before > wanted)
                    break;
            }
        }
        drawn = found;
    }
    __syncthreads();
    return drawn;
}

// One block per row. `out` of a row: the logarithm of the sum of the exponentials of what is allowed, then `count` logits
// and their tokens, the largest sum of logit and bonus first; -infinity and -1 where there are no more; then the token
// with the largest logit or -1. Where a token is drawn it is the only one. What is allowed, and the sum, are those of
// the logits alone.
extern "C" __global__ void choose_f32(const float *logits, const uint8_t *forbidden, const float *starts,
                                      const Limits *limits, float *out, const uint32_t vocabulary,
                                      const uint32_t timestamps, const uint32_t count, const uint32_t is_timed) {
    const uint32_t row = blockIdx.x;
    const float *x = logits + (size_t)row * vocabulary;
    const uint8_t bits = limits[row].is_first ? ALWAYS | AT_FIRST : ALWAYS;
    uint32_t text_from = limits[row].text_from;
    const uint32_t time_from = limits[row].time_from, time_to = limits[row].time_to;
    const float temperature = limits[row].temperature;
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

    const auto is_allowed = [=](uint32_t token) {
        const bool in_range = token < timestamps ? token >= text_from : token >= time_from && token < time_to;
        return in_range && !(forbidden[token] & bits);
    };
    Best best = is_before(text, time) ? text : time;
    float sum = 0;
    if (best.value > -INFINITY)
        for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS)
            if (is_allowed(token))
                sum += expf(x[token] - best.value);
    sum = sum_of_all(sum);
    out += (size_t)row * (2 + 2 * count);
    if (threadIdx.x == 0) {
        out[0] = best.value + logf(sum);
        out[1 + 2 * count] = best.value > -INFINITY ? (float)best.token : -1.0f;
    }

    const Limits of = limits[row];
    const bool has_bonuses = of.has_starts || of.count > 0;
    const auto rating = [=](uint32_t token) {
        return has_bonuses ? x[token] + bonus_of(token, starts, limits, of) : x[token];
    };
    if (has_bonuses && best.value > -INFINITY) {
        Best mine = none;
        for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS) {
            if (!is_allowed(token))
                continue;
            const Best next = {rating(token), token};
            if (is_before(next, mine))
                mine = next;
        }
        best = best_of_all(mine);
    }
    if (temperature > 0 && best.value > -INFINITY) {
        const float largest = best.value;
        best.token = draw(
            [=](uint32_t token) { return is_allowed(token) ? expf((rating(token) - largest) / temperature) : 0.0f; },
            vocabulary, limits[row].random, best.token);
    }
    for (uint32_t number = 0; number < count; number++) {
        if (number > 0) {
            Best next = none;
            if (!(temperature > 0))
                for (uint32_t token = threadIdx.x; token < vocabulary; token += THREADS) {
                    const Best other = {rating(token), token};
                    if (is_allowed(token) && is_before(best, other) && is_before(other, next))
                        next = other;
                }
            best = best_of_all(next);
        }
        if (threadIdx.x == 0) {
            const bool is_one = best.value > -INFINITY;
            out[1 + number] = is_one ? x[best.token] : best.value;
            out[1 + count + number] = is_one ? (float)best.token : -1.0f;
        }
    }
}
