// What the parts of the emulated card (driver.c, launch.cpp, runtime.cpp, cublas.cpp) share.
#pragma once
#include <stdint.h>

// What one thread of the program asked for. A test reads its own thread's with mock_counters.
struct mock_counters {
    uint64_t calls;                          // of the driver, launches and copies included
    uint64_t launches;                       // of kernels, cuBLAS's apart
    uint64_t products;                       // by cuBLAS
    uint64_t uploads, uploaded_bytes;        // host to device
    uint64_t downloads, downloaded_bytes;    // device to host
};

#ifdef __cplusplus
extern "C" {
#endif
extern __thread struct mock_counters mock_counted;
// Copies the calling thread's counters and sets them to 0.
void mock_counters(struct mock_counters *out);
// The name of a kernel is among the names, separated by commas, of an environment variable.
int mock_named(const char *variable, const char *name);
#ifdef __cplusplus
}
#endif
