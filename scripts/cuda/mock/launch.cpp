// Modules and kernels: the names that a program finds in a module, and their launches.
#include "cuda_on_cpu.h"
#include "mock.h"
#include <atomic>

// `kernels` ends with one without a name.
struct mock_module { const char *name; const mock_kernel *kernels; };
#define MODULES(X) X(affine) X(attend) X(binary) X(cast) X(choose) X(conv) X(fill) X(finish) X(indexing) X(quantized) X(reduce) X(sort) X(ternary) X(unary)
extern "C" {
#define DECLARE(NAME) extern const mock_kernel mock_table_##NAME[];
MODULES(DECLARE)
extern int mock_lost;
int mock_capability(void);
void mock_note(const char *format, ...);
}

namespace {
enum { OK = 0, INVALID_VALUE = 1, INVALID_PTX = 218, NOT_FOUND = 500, LAUNCH_FAILED = 719 };
#define ENTRY(NAME) {#NAME, mock_table_##NAME},
const mock_module modules[] = {MODULES(ENTRY)};
// What fake-nvcc writes in place of PTX; the module's name follows.
const char MARK[] = "not PTX: made by scripts/cuda/fake-nvcc of ";
} // namespace

extern "C" {
void mock_count_product(void) { mock_counted.products++; }

int cuModuleLoadData(void **out, const char *image) {
    mock_counted.calls++;
    if (mock_lost) return LAUNCH_FAILED;
    if (const char *code = getenv("MOCK_CUDA_MODULE_ERROR")) return atoi(code);
    if (strncmp(image, MARK, sizeof MARK - 1)) return INVALID_PTX;
    image += sizeof MARK - 1;
    for (const mock_module &module : modules)
        if (size_t length = strlen(module.name); !strncmp(image, module.name, length) && image[length] == '\n') {
            *out = (void *)&module;
            return OK;
        }
    return INVALID_PTX;
}
int cuModuleUnload(void *) { mock_counted.calls++; return OK; }

int cuModuleGetFunction(void **out, const mock_module *module, const char *name) {
    mock_counted.calls++;
    if (mock_lost) return LAUNCH_FAILED;
    mock_note("%s(%s)", __func__, name);
    if (mock_named("MOCK_CUDA_LACKS", name)) return NOT_FOUND;
    for (const mock_kernel *kernel = module->kernels; kernel->name; kernel++)
        if (!strcmp(kernel->name, name) && mock_capability() >= kernel->least) {
            *out = (void *)kernel;
            return OK;
        }
    return NOT_FOUND;
}

int cuLaunchKernel(const mock_kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *, void **arguments, void **) {
    mock_counted.calls++;
    static std::atomic<uint64_t> launched;
    if (const char *at = getenv("MOCK_CUDA_LOST_AT"); at && ++launched >= strtoull(at, nullptr, 0)) mock_lost = 1;
    if (mock_lost) return LAUNCH_FAILED;
    // As the driver refuses them.
    if (!gx || !gy || !gz || !bx || !by || !bz || gy > 65535 || gz > 65535 || gx > 0x7fffffffu || bx * by * bz > 1024 || bz > 64 || shared > 48 << 10) return INVALID_VALUE;
    mock_run(kernel, arguments, dim3(gx, gy, gz), dim3(bx, by, bz), shared);
    return OK;
}
}
