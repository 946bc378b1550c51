// CUDA's C++ on a host compiler: what candle's kernels use of it, and no more.
// A block's threads are run one after the other on one operating-system thread;
// those that wait for others (__syncthreads, shuffles) are fibers (runtime.cpp).
#pragma once
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <limits>
#include <type_traits>
#include <utility>

#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 800
#endif
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDA_VERSION 13000

#define __device__
#define __host__
#ifdef MOCK_NAMES
#define __global__ MOCK_KERNEL
#else
#define __global__
#endif
#define MOCK_TEXT(x) #x
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __ldg(p) (*(p))

// ---- vectors -------------------------------------------------------------
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(4) uchar4 { unsigned char x, y, z, w; };
struct alignas(4) char4 { signed char x, y, z, w; };
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

// ---- where a thread is, and waiting for others (runtime.cpp) --------------
extern "C" {
extern uint3 mock_thread, mock_block;
extern dim3 mock_block_dim, mock_grid_dim;
void mock_sync_block(void);
// Publishes 8 bytes of this lane, waits for its warp and returns those of lane `from`.
uint64_t mock_exchange(uint64_t mine, unsigned from);
unsigned mock_lane(void);
void *mock_dynamic_shared(void);
}
#define threadIdx mock_thread
#define blockIdx mock_block
#define blockDim mock_block_dim
#define gridDim mock_grid_dim
#define warpSize 32
#define __syncthreads mock_sync_block
static inline void __syncwarp(unsigned = ~0u) { mock_exchange(0, mock_lane()); }
#define __trap() abort()

template <class T> static inline T mock_shuffle(T value, unsigned from) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = mock_exchange(bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int mask, int width = 32) {
    unsigned lane = mock_lane(), to = lane ^ mask;
    // A lane of another segment of `width` gives nothing but one's own.
    return mock_shuffle(v, to / width > lane / width ? lane : to);
}
template <class T> static inline T __shfl_sync(unsigned, T v, int from, int width = 32) {
    unsigned lane = mock_lane();
    return mock_shuffle(v, lane / width * width + from % width);
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned by, int width = 32) {
    unsigned lane = mock_lane(), to = lane + by;
    return mock_shuffle(v, to / width != lane / width ? lane : to);
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned by, int width = 32) {
    unsigned lane = mock_lane();
    return mock_shuffle(v, lane % width < by ? lane : lane - by);
}

// ---- 16-bit floats: every operation rounds once ----------------------------
static inline float mock_half_to_float(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t mock_float_to_half(float f) { return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT); }
static inline float mock_bf16_to_float(uint16_t h) { uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static inline uint16_t mock_float_to_bf16(float f) {
    uint32_t u; memcpy(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}
#define MOCK_SIXTEEN(NAME, TO_FLOAT, FROM_FLOAT)                                                      \
    struct NAME {                                                                                      \
        uint16_t bits;                                                                                 \
        NAME() = default;                                                                              \
        template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>                     \
        NAME(T v) : bits(FROM_FLOAT((float)v)) {}                                                      \
        operator float() const { return TO_FLOAT(bits); }                                              \
        NAME &operator+=(NAME o) { return *this = NAME((float)*this + (float)o); }                     \
        NAME &operator-=(NAME o) { return *this = NAME((float)*this - (float)o); }                     \
        NAME &operator*=(NAME o) { return *this = NAME((float)*this * (float)o); }                     \
        NAME &operator/=(NAME o) { return *this = NAME((float)*this / (float)o); }                     \
    };                                                                                                 \
    static inline NAME operator+(NAME a, NAME b) { return NAME((float)a + (float)b); }                 \
    static inline NAME operator-(NAME a, NAME b) { return NAME((float)a - (float)b); }                 \
    static inline NAME operator*(NAME a, NAME b) { return NAME((float)a * (float)b); }                 \
    static inline NAME operator/(NAME a, NAME b) { return NAME((float)a / (float)b); }                 \
    static inline NAME operator-(NAME a) { return NAME(-(float)a); }                                   \
    static inline bool operator<(NAME a, NAME b) { return (float)a < (float)b; }                       \
    static inline bool operator>(NAME a, NAME b) { return (float)a > (float)b; }                       \
    static inline bool operator<=(NAME a, NAME b) { return (float)a <= (float)b; }                     \
    static inline bool operator>=(NAME a, NAME b) { return (float)a >= (float)b; }                     \
    static inline bool operator==(NAME a, NAME b) { return (float)a == (float)b; }                     \
    static inline bool operator!=(NAME a, NAME b) { return (float)a != (float)b; }                     \
    static inline bool __hisnan(NAME a) { return std::isnan((float)a); }                               \
    static inline NAME hsqrt(NAME a) { return NAME(sqrtf(a)); }                                        \
    static inline NAME hcos(NAME a) { return NAME(cosf(a)); }                                          \
    static inline NAME hsin(NAME a) { return NAME(sinf(a)); }                                          \
    static inline NAME hlog(NAME a) { return NAME(logf(a)); }                                          \
    static inline NAME hexp(NAME a) { return NAME(expf(a)); }                                          \
    static inline NAME __habs(NAME a) { return NAME(fabsf(a)); }                                       \
    static inline NAME __hmax(NAME a, NAME b) { return NAME(fmaxf(a, b)); }                            \
    static inline NAME __hmin(NAME a, NAME b) { return NAME(fminf(a, b)); }                            \
    static inline NAME __hmax_nan(NAME a, NAME b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); } \
    static inline NAME __hmin_nan(NAME a, NAME b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); } \
    static inline NAME atomicAdd(NAME *p, NAME v) { NAME old = *p; *p = old + v; return old; }         \
    struct alignas(4) NAME##2_ { NAME x, y; };
MOCK_SIXTEEN(__half, mock_half_to_float, mock_float_to_half)
MOCK_SIXTEEN(__nv_bfloat16, mock_bf16_to_float, mock_float_to_bf16)
typedef __half half;
typedef __half2_ __half2;
typedef __half2_ half2;
typedef __nv_bfloat162_ __nv_bfloat162;
typedef __nv_bfloat16 nv_bfloat16;
static inline float __half2float(__half h) { return h; }
static inline __half __float2half(float f) { return __half(f); }
static inline __half __float2half_rn(float f) { return __half(f); }
static inline __half __double2half(double f) { return __half((float)f); }
static inline unsigned short __half_as_ushort(__half h) { return h.bits; }
static inline __half __ushort_as_half(unsigned short u) { __half h; h.bits = u; return h; }
static inline float __bfloat162float(__nv_bfloat16 h) { return h; }
static inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
#define MOCK_PAIR(PAIR)                                                                               \
    static inline PAIR __hadd2(PAIR a, PAIR b) { return {a.x + b.x, a.y + b.y}; }                      \
    static inline PAIR __hsub2(PAIR a, PAIR b) { return {a.x - b.x, a.y - b.y}; }                      \
    static inline PAIR __hmul2(PAIR a, PAIR b) { return {a.x * b.x, a.y * b.y}; }                      \
    static inline PAIR __hmax2(PAIR a, PAIR b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
MOCK_PAIR(__half2)
MOCK_PAIR(__nv_bfloat162)
static inline float2 __half22float2(__half2 h) { return {h.x, h.y}; }
static inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
static inline __half2 make_half2(__half x, __half y) { return {x, y}; }
static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half __low2half(__half2 h) { return h.x; }
static inline __half __high2half(__half2 h) { return h.y; }
static inline float __low2float(__half2 h) { return h.x; }
static inline float __high2float(__half2 h) { return h.y; }

// 8-bit floats exist so that their kernels compile; Whisper has none.
struct __half_raw { uint16_t x; operator __half() const { __half h; h.bits = x; return h; } };
struct __nv_fp8_e4m3 { uint8_t __x; __nv_fp8_e4m3() = default; template <class T> explicit __nv_fp8_e4m3(T) { abort(); }
    operator float() const { abort(); } };
enum { __NV_E4M3 };
static inline __half_raw __nv_cvt_fp8_to_halfraw(uint8_t, int) { abort(); }

// ---- arithmetic ------------------------------------------------------------
template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b) { std::common_type_t<A, B> x = a, y = b; return y < x ? y : x; }
template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b) { std::common_type_t<A, B> x = a, y = b; return x < y ? y : x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float normcdff(float x) { return 0.5f * erfcf(x * -(float)M_SQRT1_2); }
static inline double normcdf(double x) { return 0.5 * erfc(x * -M_SQRT1_2); }
#define __expf expf
#define __logf logf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
static inline float __int_as_float(int u) { float f; memcpy(&f, &u, 4); return f; }
static inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
static inline int __float_as_int(float f) { int u; memcpy(&u, &f, 4); return u; }
static inline double __longlong_as_double(long long u) { double f; memcpy(&f, &u, 8); return f; }
static inline long long __double_as_longlong(double f) { long long u; memcpy(&u, &f, 8); return u; }
using std::isnan;
using std::signbit;
static inline int __popc(unsigned x) { return __builtin_popcount(x); }

// Only one block runs at a time and its threads one after the other.
#define MOCK_ATOMIC(TYPE)                                                                             \
    static inline TYPE atomicAdd(TYPE *p, TYPE v) { TYPE old = *p; *p = old + v; return old; }         \
    static inline TYPE atomicMax(TYPE *p, TYPE v) { TYPE old = *p; *p = old < v ? v : old; return old; } \
    static inline TYPE atomicMin(TYPE *p, TYPE v) { TYPE old = *p; *p = v < old ? v : old; return old; } \
    static inline TYPE atomicCAS(TYPE *p, TYPE was, TYPE v) { TYPE old = *p; if (old == was) *p = v; return old; }
MOCK_ATOMIC(int) MOCK_ATOMIC(unsigned) MOCK_ATOMIC(long long) MOCK_ATOMIC(unsigned long long)
MOCK_ATOMIC(unsigned short) MOCK_ATOMIC(float) MOCK_ATOMIC(double) MOCK_ATOMIC(long) MOCK_ATOMIC(unsigned long)
MOCK_ATOMIC(unsigned char) MOCK_ATOMIC(short)

// Four bytes at a time.
static inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++) c += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
    return c;
}
#define MOCK_BYTES(NAME, EXPRESSION)                                                                  \
    static inline unsigned NAME(unsigned a, unsigned b) {                                              \
        unsigned out = 0;                                                                              \
        for (int i = 0; i < 4; i++) {                                                                  \
            int x = (int8_t)(a >> 8 * i), y = (int8_t)(b >> 8 * i);                                    \
            out |= ((unsigned)(EXPRESSION)&0xffu) << 8 * i;                                            \
        }                                                                                              \
        return out;                                                                                    \
    }
MOCK_BYTES(__vsubss4, x - y > 127 ? 127 : x - y < -128 ? -128 : x - y)
MOCK_BYTES(__vsub4, x - y)
MOCK_BYTES(__vadd4, x + y)
MOCK_BYTES(__vcmpne4, x != y ? 255 : 0)
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    uint64_t ab = (uint64_t)b << 32 | a; unsigned out = 0;
    for (int i = 0; i < 4; i++) out |= (unsigned)((ab >> 8 * ((s >> 4 * i) & 7)) & 0xff) << 8 * i;
    return out;
}

// ---- kernels by name ---------------------------------------------------------
typedef void mock_invoke(void (*kernel)(void), void **arguments);
template <class... A> struct mock_call {
    template <size_t... I> static void with(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
        kernel(*(std::remove_cv_t<A> *)arguments[I]...);
    }
    static void invoke(void (*kernel)(void), void **arguments) {
        with((void (*)(A...))kernel, arguments, std::index_sequence_for<A...>{});
    }
};
// `least` is the first compute capability, as 80 for 8.0, that has the kernel.
struct mock_kernel { const char *name; void (*kernel)(void); mock_invoke *invoke; int least; };
template <class... A> constexpr mock_kernel mock_entry(const char *name, int least, void (*kernel)(A...)) {
    return {name, (void (*)(void))kernel, mock_call<A...>::invoke, least};
}
extern "C" void mock_run(const mock_kernel *kernel, void **arguments, dim3 grid, dim3 block, unsigned shared);

// kernel<<<grid, block, shared, stream>>>(...) becomes mock_launch("kernel", kernel, ...)(...).
typedef void *cudaStream_t;
template <class... A> struct mock_launcher {
    mock_kernel kernel; dim3 grid, block; unsigned shared;
    void operator()(std::remove_reference_t<A>... a) const {
        void *arguments[] = {(void *)&a...};
        mock_run(&kernel, arguments, grid, block, shared);
    }
};
template <class... A> mock_launcher<A...> mock_launch(const char *name, void (*kernel)(A...), dim3 grid, dim3 block, unsigned shared = 0, void * = nullptr) {
    return {mock_entry(name, 0, kernel), grid, block, shared};
}
