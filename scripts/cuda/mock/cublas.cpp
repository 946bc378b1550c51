// cuBLAS, as far as candle calls it: one product, computed plainly.
#include "cuda_on_cpu.h"
#include <vector>
#include <algorithm>
#include <dlfcn.h>
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, COMPUTE_16F = 64, INVALID = 7, UNSUPPORTED = 15 };
typedef float v8 __attribute__((vector_size(32)));

static float read(const void *p, int type, size_t i) {
    switch (type) {
    case R_16F: return mock_half_to_float(((const uint16_t *)p)[i]);
    case R_16BF: return mock_bf16_to_float(((const uint16_t *)p)[i]);
    default: return ((const float *)p)[i];
    }
}
static void write(void *p, int type, size_t i, float v) {
    switch (type) {
    case R_16F: ((uint16_t *)p)[i] = mock_float_to_half(v); break;
    case R_16BF: ((uint16_t *)p)[i] = mock_float_to_bf16(v); break;
    default: ((float *)p)[i] = v;
    }
}
/** Eight values that lie beside one another. */
static v8 read8(const void *p, int type, size_t i) {
    if (type == R_16F) return (v8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const uint16_t *)p + i)));
    if (type == R_16BF) return (v8)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)((const uint16_t *)p + i))), 16);
    return (v8)_mm256_loadu_ps((const float *)p + i);
}
/** Writes `rows` x `columns` values, rows `stride` apart, as columns that are `wide` apart: in blocks, for the cache. */
static void transpose(const void *p, int type, size_t stride, int rows, int columns, float *out, size_t wide) {
    for (int i = 0; i < rows; i += 8) for (int l = 0; l < columns; l += 8) {
        if (i + 8 > rows || l + 8 > columns) {
            for (int r = i; r < std::min(i + 8, rows); r++) for (int c = l; c < std::min(l + 8, columns); c++) out[c * wide + r] = read(p, type, r * stride + c);
            continue;
        }
        float block[8][8];
        for (int r = 0; r < 8; r++) _mm256_storeu_ps(block[r], (__m256)read8(p, type, (i + r) * stride + l));
        for (int c = 0; c < 8; c++) for (int r = 0; r < 8; r++) out[(l + c) * wide + i + r] = block[r][c];
    }
}
static void copy(const void *p, int type, size_t from, int count, float *out) {
    int i = 0;
    for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, (__m256)read8(p, type, from + i));
    for (; i < count; i++) out[i] = read(p, type, from + i);
}
extern "C" {
typedef void product_counter(void);
int cublasCreate_v2(void **out) { *out = (void *)0x7000; return getenv("MOCK_CUBLAS_FULL") ? 3 : 0; }
int cublasGemmStridedBatchedEx(void *, int transa, int transb, int m, int n, int k, const void *alpha, const void *A, int at, int lda, long long sa,
                               const void *B, int bt, int ldb, long long sb, const void *beta, void *C, int ct, int ldc, long long sc, int batch, int compute, int) {
    static auto &counted = *(product_counter *)dlsym(RTLD_DEFAULT, "mock_count_product");
    counted();
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < std::max(1, transa ? k : m) || ldb < std::max(1, transb ? n : k) || ldc < std::max(1, m)) return INVALID;
    if (at != bt || at != ct || (at != R_32F && at != R_16F && at != R_16BF) || compute == COMPUTE_16F || *(const float *)beta != 0) return UNSUPPORTED;
    float scale = *(const float *)alpha;
    size_t wide = (m + 31) / 32 * 32, deep = (n + 3) / 4 * 4;
    static thread_local std::vector<float> a, b;
    a.assign(wide * k + 32, 0); b.assign(deep * k + 4, 0);
    const char *last_a = nullptr;
    size_t size = at == R_32F ? 4 : 2;
    for (long long z = 0; z < batch; z++) {
        const char *pa = (const char *)A + z * sa * size, *pb = (const char *)B + z * sb * size;
        char *pc = (char *)C + z * sc * size;
        if (pa != last_a) {
            if (transa) transpose(pa, at, lda, m, k, a.data(), wide);
            else for (int l = 0; l < k; l++) copy(pa, at, (size_t)l * lda, m, &a[l * wide]);
            last_a = pa;
        }
        for (int j = 0; j < n; j++) {
            if (transb) for (int l = 0; l < k; l++) b[(size_t)j * k + l] = read(pb, at, (size_t)l * ldb + j);
            else copy(pb, at, (size_t)j * ldb, k, &b[(size_t)j * k]);
        }
        for (int i = 0; i < m; i += 32) for (int j = 0; j < n; j += 4) {
            v8 sum[4][4] = {};
            const float *row[4];
            for (int c = 0; c < 4; c++) row[c] = &b[(size_t)std::min(j + c, n - 1) * k];
            for (int l = 0; l < k; l++) {
                const float *x = &a[l * wide + i];
                v8 x0 = _mm256_loadu_ps(x), x1 = _mm256_loadu_ps(x + 8), x2 = _mm256_loadu_ps(x + 16), x3 = _mm256_loadu_ps(x + 24);
                for (int c = 0; c < 4; c++) {
                    v8 y = _mm256_set1_ps(row[c][l]);
                    sum[c][0] += x0 * y; sum[c][1] += x1 * y; sum[c][2] += x2 * y; sum[c][3] += x3 * y;
                }
            }
            for (int c = 0; c < 4 && j + c < n; c++) for (int r = 0; r < 32 && i + r < m; r++)
                write(pc, ct, (size_t)(j + c) * ldc + i + r, scale * ((float *)&sum[c])[r]);
        }
    }
    return 0;
}
}
