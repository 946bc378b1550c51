// A stand-in for libcuda.so.1 whose "device memory" is host memory. Kernels run on the processor (launch.cpp). It has
// two devices, of compute capability 8.0 and 7.5, with the same memory each.
//
// Allocations go through a pool that behaves like the driver's: what is freed stays reserved until a synchronise above
// the release threshold, or a trim. Fresh and freed memory is filled with ones, which are no number in any
// floating-point type. What is not written here answers CUDA_ERROR_NOT_SUPPORTED (build.sh generates it).
//
//   MOCK_CUDA_BYTES=N            what a device holds (default 1 GiB); it is real memory
//   MOCK_CUDA_CAPABILITIES=A,B   of the two devices (default 80,75)
//   MOCK_CUDA_FAIL_AT=N          the number, from 1, of the one allocation that fails
//   MOCK_CUDA_FAIL_FROM=N        the number of the first of all that fail
//   MOCK_CUDA_MODULE_ERROR=CODE  what loading any module answers
//   MOCK_CUDA_LACKS=NAME,...     kernels that can't be found
//   MOCK_CUDA_WRONG=NAME,...     kernels that do nothing
//   MOCK_CUDA_LOST_AT=N          from this launch on every call fails, as after an error in a kernel
//   MOCK_CUDA_LOG=1              names the calls about memory and kernels on standard error

#include "mock.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, LAUNCH_FAILED = 719 };

// CUdevice_attribute
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, MEMORY_POOLS_SUPPORTED = 115 };

// CUmemPool_attribute
enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5, RESERVED_HIGH = 6, USED_NOW = 7, USED_HIGH = 8 };

enum { DEVICES = 2 };

// The handles of a device's context, stream and pool are all its address.
static struct device {
    uint64_t used, used_high, reserved, reserved_high, threshold;
} devices[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *const event = (void *)0x3000;

__thread struct mock_counters mock_counted;
// Whether a launch failed: nothing succeeds in this process any more.
int mock_lost;
#define CALLED                                  \
    do {                                        \
        mock_counted.calls++;                   \
        if (mock_lost) return LAUNCH_FAILED;    \
    } while (0)

void mock_counters(struct mock_counters *out) {
    *out = mock_counted;
    memset(&mock_counted, 0, sizeof mock_counted);
}

int mock_named(const char *variable, const char *name) {
    const char *list = getenv(variable);
    size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return 1;
    return 0;
}

static uint64_t total(void) {
    const char *bytes = getenv("MOCK_CUDA_BYTES");
    return bytes ? strtoull(bytes, NULL, 0) : 1ull << 30;
}

static int capability(int number) {
    const char *given = getenv("MOCK_CUDA_CAPABILITIES"), *second = given ? strchr(given, ',') : NULL;
    if (!given) return number ? 75 : 80;
    return atoi(number && second ? second + 1 : given);
}

void mock_note(const char *format, ...) {
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

static __thread struct device *current;
// The capability of the calling thread's device, for launch.cpp; 0 where there is none.
int mock_capability(void) { return current ? capability((int)(current - devices)) : 0; }

int cuInit(unsigned flags) { CALLED; return OK; }
int cuDriverGetVersion(int *version) { CALLED; *version = 13000; return OK; }
int cuDeviceGetCount(int *count) { CALLED; *count = DEVICES; return OK; }
int cuDeviceGet(int *device, int ordinal) { CALLED; *device = ordinal; return ordinal < DEVICES ? OK : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int size, int device) { CALLED; snprintf(name, size, "Mock device %d", device); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { CALLED; *bytes = total(); return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALLED;
    switch (attribute) {
    case CAPABILITY_MAJOR: *value = capability(device) / 10; break;
    case CAPABILITY_MINOR: *value = capability(device) % 10; break;
    default: *value = attribute == MEMORY_POOLS_SUPPORTED;
    }
    return OK;
}

int cuDevicePrimaryCtxRetain(void **out, int device) { CALLED; mock_note("%s(%d)", __func__, device); *out = &devices[device]; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { CALLED; return OK; }
int cuCtxGetCurrent(void **out) { CALLED; *out = current; return OK; }
int cuCtxSetCurrent(void *to) { CALLED; current = to; return OK; }

int cuStreamCreate(void **out, unsigned flags) { CALLED; *out = current; return OK; }
int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) { CALLED; *out = current; return OK; }
int cuStreamDestroy_v2(void *which) { CALLED; return OK; }
int cuStreamWaitEvent(void *which, void *what, unsigned flags) { CALLED; return OK; }
int cuStreamIsCapturing(void *which, int *status) { CALLED; *status = 0; return OK; }
int cuStreamGetCaptureInfo_v2(void *which, int *status) { CALLED; *status = 0; return OK; }
int cuEventCreate(void **out, unsigned flags) { CALLED; *out = event; return OK; }
int cuEventRecord(void *what, void *which) { CALLED; return OK; }
int cuEventSynchronize(void *what) { CALLED; return OK; }
int cuEventDestroy_v2(void *what) { CALLED; return OK; }

// Every block has its size and its device before it.
static const size_t HEADER = 64;

static int allocate(uint64_t *out, size_t bytes, const char *name) {
    struct device *device = current;
    if (!device) return INVALID_CONTEXT;
    int status = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    // The header is whole rows of memory; so is the end, where vectors may be read past what was asked for.
    uint64_t *block = !fails() && device->used + bytes <= total() ? aligned_alloc(HEADER, (bytes + 3 * HEADER - 1) / HEADER * HEADER) : NULL;
    if (block) {
        block[0] = bytes;
        block[1] = (uint64_t)device;
        memset((char *)block + HEADER, 0xff, bytes);
        *out = (uint64_t)block + HEADER;
        device->used += bytes;
        if (device->used > device->used_high) device->used_high = device->used;
        if (device->used > device->reserved) device->reserved = device->used;
        if (device->reserved > device->reserved_high) device->reserved_high = device->reserved;
        status = OK;
    }
    mock_note("%s(%zu) = %d, used %llu, reserved %llu", name, bytes, status, (unsigned long long)device->used, (unsigned long long)device->reserved);
    pthread_mutex_unlock(&lock);
    return status;
}

static int release(uint64_t pointer, const char *name) {
    if (!pointer) return OK;
    uint64_t *block = (uint64_t *)(pointer - HEADER);
    struct device *device = (struct device *)block[1];
    pthread_mutex_lock(&lock);
    device->used -= block[0];
    mock_note("%s(%llu), used %llu", name, (unsigned long long)block[0], (unsigned long long)device->used);
    pthread_mutex_unlock(&lock);
    memset((char *)block + HEADER, 0xff, block[0]);
    // Else the compiler leaves out what is written to memory that is freed next.
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
    return OK;
}

static int synchronize(struct device *device, const char *name) {
    if (!device) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    if (device->reserved - device->used > device->threshold) device->reserved = device->used;
    mock_note("%s, reserved %llu", name, (unsigned long long)device->reserved);
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes) { CALLED; return allocate(out, bytes, __func__); }
int cuMemAllocAsync(uint64_t *out, size_t bytes, void *which) { CALLED; return allocate(out, bytes, __func__); }
int cuMemFree_v2(uint64_t pointer) { CALLED; return release(pointer, __func__); }
int cuMemFreeAsync(uint64_t pointer, void *which) { CALLED; return release(pointer, __func__); }
int cuStreamSynchronize(void *which) { CALLED; return synchronize(which, __func__); }
int cuCtxSynchronize(void) { CALLED; return synchronize(current, __func__); }

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    CALLED;
    if (!current) return INVALID_CONTEXT;
    *total_bytes = total();
    *free_bytes = total() > current->reserved ? total() - current->reserved : 0;
    return OK;
}

int cuDeviceGetMemPool(void **out, int device) { CALLED; *out = &devices[device]; return OK; }
int cuDeviceGetDefaultMemPool(void **out, int device) { CALLED; *out = &devices[device]; return OK; }
int cuMemPoolTrimTo(struct device *pool, size_t keep) {
    CALLED;
    uint64_t floor = pool->used > keep ? pool->used : keep;
    if (pool->reserved > floor) pool->reserved = floor;
    mock_note("%s(%zu), reserved %llu", __func__, keep, (unsigned long long)pool->reserved);
    return OK;
}
int cuMemPoolGetAttribute(struct device *pool, int attribute, uint64_t *value) {
    CALLED;
    switch (attribute) {
    case RELEASE_THRESHOLD: *value = pool->threshold; break;
    case RESERVED_NOW: *value = pool->reserved; break;
    case RESERVED_HIGH: *value = pool->reserved_high; break;
    case USED_NOW: *value = pool->used; break;
    case USED_HIGH: *value = pool->used_high; break;
    default: *value = 0;
    }
    return OK;
}
int cuMemPoolSetAttribute(struct device *pool, int attribute, uint64_t *value) {
    CALLED;
    // The high marks can only be reset, to what is now.
    if (attribute == RELEASE_THRESHOLD) pool->threshold = *value;
    if (attribute == RESERVED_HIGH) pool->reserved_high = pool->reserved;
    if (attribute == USED_HIGH) pool->used_high = pool->used;
    return OK;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *which) { CALLED; memset((void *)to, value, bytes); return OK; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *which) {
    CALLED;
    mock_counted.uploads++;
    mock_counted.uploaded_bytes += bytes;
    memcpy((void *)to, from, bytes);
    return OK;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *which) {
    CALLED;
    mock_counted.downloads++;
    mock_counted.downloaded_bytes += bytes;
    memcpy(to, (void *)from, bytes);
    return OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *which) { CALLED; memmove((void *)to, (void *)from, bytes); return OK; }
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) { CALLED; *out = malloc(bytes); return *out ? OK : OUT_OF_MEMORY; }
int cuMemFreeHost(void *pointer) { CALLED; free(pointer); return OK; }

static const struct { int code; const char *name, *text; } errors[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};
static int find_error(int code) {
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return (int)i;
    return -1;
}
int cuGetErrorName(int error, const char **name) { int i = find_error(error); *name = i < 0 ? "CUDA_ERROR_MOCK" : errors[i].name; return OK; }
int cuGetErrorString(int error, const char **text) { int i = find_error(error); *text = i < 0 ? "an error of the mock driver" : errors[i].text; return OK; }
