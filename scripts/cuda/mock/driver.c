// A stand-in for libcuda.so.1 that computes nothing. "Device memory" is host
// memory, up to MOCK_CUDA_BYTES; allocations go through a pool that behaves
// like the driver's: what is freed stays reserved until a synchronise above
// the release threshold, or a trim. Every call is named on standard error
// where MOCK_CUDA_LOG is set. MOCK_CUDA_FAIL_AT is the number, from 1, of the
// one allocation that fails, MOCK_CUDA_FAIL_FROM that of the first of all that do. What is not written here answers
// CUDA_ERROR_NOT_SUPPORTED (build.sh generates it).

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101 };

// CUdevice_attribute
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, MEMORY_POOLS_SUPPORTED = 115 };

// CUmemPool_attribute
enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5, RESERVED_HIGH = 6, USED_NOW = 7, USED_HIGH = 8 };

static struct {
    uint64_t used, used_high, reserved, reserved_high, threshold;
} pool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t total(void) {
    const char *bytes = getenv("MOCK_CUDA_BYTES");
    return bytes ? strtoull(bytes, NULL, 0) : 1ull << 30;
}

static void note(const char *format, ...) {
    if (!getenv("MOCK_CUDA_LOG")) return;
    va_list values;
    va_start(values, format);
    fputs("mock cuda: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

// Whether the allocation that comes now is one of those that fail.
static int fails(void) {
    static uint64_t asked;
    const char *at = getenv("MOCK_CUDA_FAIL_AT"), *from = getenv("MOCK_CUDA_FAIL_FROM");
    asked++;
    return (at && strtoull(at, NULL, 0) == asked) || (from && strtoull(from, NULL, 0) <= asked);
}

// Handles that are never looked into.
static void *const context = (void *)0x1000, *const stream = (void *)0x2000, *const event = (void *)0x3000,
                  *const the_pool = (void *)0x4000, *const module = (void *)0x5000, *const function = (void *)0x6000;

int cuInit(unsigned flags) { return OK; }
int cuDriverGetVersion(int *version) { *version = 13000; return OK; }
int cuDeviceGetCount(int *count) { *count = 1; return OK; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal ? INVALID_DEVICE : OK; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Mock device"); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = total(); return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == CAPABILITY_MAJOR ? 9 : attribute == CAPABILITY_MINOR ? 0 : attribute == MEMORY_POOLS_SUPPORTED;
    return OK;
}

static __thread void *current;
int cuDevicePrimaryCtxRetain(void **out, int device) { *out = context; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return OK; }
int cuCtxGetCurrent(void **out) { *out = current; return OK; }
int cuCtxSetCurrent(void *to) { current = to; return OK; }

int cuStreamCreate(void **out, unsigned flags) { *out = stream; return OK; }
int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) { *out = stream; return OK; }
int cuStreamDestroy_v2(void *which) { return OK; }
int cuStreamWaitEvent(void *which, void *what, unsigned flags) { return OK; }
int cuStreamIsCapturing(void *which, int *status) { *status = 0; return OK; }
int cuStreamGetCaptureInfo_v2(void *which, int *status) { *status = 0; return OK; }
int cuEventCreate(void **out, unsigned flags) { *out = event; return OK; }
int cuEventRecord(void *what, void *which) { return OK; }
int cuEventSynchronize(void *what) { return OK; }
int cuEventDestroy_v2(void *what) { return OK; }

// Every block carries its size before it.
static const size_t HEADER = 64;

static int allocate(uint64_t *out, size_t bytes, const char *name) {
    int status = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    uint64_t *block = !fails() && pool.used + bytes <= total() ? aligned_alloc(HEADER, (bytes + 2 * HEADER - 1) / HEADER * HEADER) : NULL;
    if (block) {
        block[0] = bytes;
        *out = (uint64_t)block + HEADER;
        pool.used += bytes;
        if (pool.used > pool.used_high) pool.used_high = pool.used;
        if (pool.used > pool.reserved) pool.reserved = pool.used;
        if (pool.reserved > pool.reserved_high) pool.reserved_high = pool.reserved;
        status = OK;
    }
    note("%s(%zu) = %d, used %llu, reserved %llu", name, bytes, status, (unsigned long long)pool.used, (unsigned long long)pool.reserved);
    pthread_mutex_unlock(&lock);
    return status;
}

static int release(uint64_t pointer, const char *name) {
    if (!pointer) return OK;
    uint64_t *block = (uint64_t *)(pointer - HEADER);
    pthread_mutex_lock(&lock);
    pool.used -= block[0];
    note("%s(%llu), used %llu", name, (unsigned long long)block[0], (unsigned long long)pool.used);
    pthread_mutex_unlock(&lock);
    free(block);
    return OK;
}

static int synchronize(const char *name) {
    pthread_mutex_lock(&lock);
    if (pool.reserved - pool.used > pool.threshold) pool.reserved = pool.used;
    note("%s, reserved %llu", name, (unsigned long long)pool.reserved);
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes) { return allocate(out, bytes, __func__); }
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *which) { return allocate(out, bytes, __func__); }
int cuMemFree_v2(uint64_t pointer) { return release(pointer, __func__); }
int cuMemFreeAsync(uint64_t pointer, void *which) { return release(pointer, __func__); }
int cuStreamSynchronize(void *which) { return synchronize(__func__); }
int cuCtxSynchronize(void) { return synchronize(__func__); }

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = total();
    *free_bytes = total() > pool.reserved ? total() - pool.reserved : 0;
    return OK;
}

int cuDeviceGetMemPool(void **out, int device) { *out = the_pool; return OK; }
int cuDeviceGetDefaultMemPool(void **out, int device) { *out = the_pool; return OK; }
int cuMemPoolTrimTo(void *which, size_t keep) {
    uint64_t floor = pool.used > keep ? pool.used : keep;
    if (pool.reserved > floor) pool.reserved = floor;
    note("%s(%zu), reserved %llu", __func__, keep, (unsigned long long)pool.reserved);
    return OK;
}
int cuMemPoolGetAttribute(void *which, int attribute, uint64_t *value) {
    switch (attribute) {
    case RELEASE_THRESHOLD: *value = pool.threshold; break;
    case RESERVED_NOW: *value = pool.reserved; break;
    case RESERVED_HIGH: *value = pool.reserved_high; break;
    case USED_NOW: *value = pool.used; break;
    case USED_HIGH: *value = pool.used_high; break;
    default: *value = 0;
    }
    return OK;
}
int cuMemPoolSetAttribute(void *which, int attribute, uint64_t *value) {
    // The high marks can only be reset, to what is now.
    if (attribute == RELEASE_THRESHOLD) pool.threshold = *value;
    if (attribute == RESERVED_HIGH) pool.reserved_high = pool.reserved;
    if (attribute == USED_HIGH) pool.used_high = pool.used;
    return OK;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *which) { memset((void *)to, value, bytes); return OK; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *which) { memcpy((void *)to, from, bytes); return OK; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *which) { memcpy(to, (void *)from, bytes); return OK; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *which) { memmove((void *)to, (void *)from, bytes); return OK; }
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) { *out = malloc(bytes); return *out ? OK : OUT_OF_MEMORY; }
int cuMemFreeHost(void *pointer) { free(pointer); return OK; }

int cuModuleLoadData(void **out, const void *image) { *out = module; return OK; }
int cuModuleUnload(void *which) { return OK; }
int cuModuleGetFunction(void **out, void *which, const char *name) { note("%s(%s)", __func__, name); *out = function; return OK; }
int cuLaunchKernel(void *what, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *which, void **arguments, void **extra) { return OK; }

int cuGetErrorName(int error, const char **name) { *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_MOCK"; return OK; }
int cuGetErrorString(int error, const char **text) { *text = error == OUT_OF_MEMORY ? "out of memory" : "an error of the mock driver"; return OK; }
