// Runs a kernel: blocks one after the other, the threads of a block as fibers.
// A thread that never waits costs a function call: fibers are switched only at
// __syncthreads and at the shuffles of a warp.
#include "cuda_on_cpu.h"
#include "mock.h"
#include <pthread.h>
#include <sys/mman.h>
#include <vector>

extern "C" {
uint3 mock_thread, mock_block;
dim3 mock_block_dim, mock_grid_dim;
}

namespace {
constexpr size_t STACK = 64 << 10;
enum State : uint8_t { NEW, READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber { void *sp; };
struct Lane { uint3 at; State state; uint8_t parity; Fiber *fiber; };

// switch_to(&save, load): keeps the callee-saved registers.
extern "C" void mock_switch(void **save, void *load);
asm(R"(
.text
.globl mock_switch
.hidden mock_switch
.type mock_switch,@function
mock_switch:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
.size mock_switch,.-mock_switch
)");

pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
std::vector<Lane> lanes;
std::vector<Fiber *> idle;
std::vector<uint64_t> slots[2];
std::vector<char> dynamic_shared;
Fiber *running;
void *scheduler_sp;
size_t current, cursor, count;
const mock_kernel *the_kernel;
void **the_arguments;

void to_scheduler() { mock_switch(&running->sp, scheduler_sp); }

void work() {
    for (;;) {
        // Threads that have not begun, one after the other, until one waits.
        while (cursor < count) {
            current = cursor++;
            Lane &lane = lanes[current];
            lane.state = READY;
            lane.fiber = running;
            mock_thread = lane.at;
            the_kernel->invoke(the_kernel->kernel, the_arguments);
            lanes[current].state = DONE;
        }
        idle.push_back(running);
        to_scheduler();
    }
}

Fiber *new_fiber() {
    if (!idle.empty()) { Fiber *f = idle.back(); idle.pop_back(); return f; }
    char *stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
    // Not all stacks on the same lines of the cache.
    static unsigned number;
    void **sp = (void **)(stack + STACK - (number++ % 64) * 448);
    *--sp = nullptr;         // work() never returns; keeps the stack aligned as after a call
    *--sp = (void *)work;
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    return new Fiber{sp};
}

void resume(Fiber *fiber) { running = fiber; mock_switch(&scheduler_sp, fiber->sp); }

void run_block() {
    for (Lane &lane : lanes) lane.state = NEW, lane.parity = 0;
    cursor = 0;
    while (cursor < count) resume(new_fiber());
    for (;;) {
        bool any = false, at_block = false;
        for (size_t warp = 0; warp < count; warp += 32) {
            size_t end = warp + 32 < count ? warp + 32 : count;
            for (;;) {
                bool waits = false;
                for (size_t i = warp; i < end; i++) waits |= lanes[i].state == AT_WARP;
                if (!waits) break;
                // All that are left of the warp are here: they go on to their next place.
                for (size_t i = warp; i < end; i++) if (lanes[i].state == AT_WARP) lanes[i].state = READY;
                for (size_t i = warp; i < end; i++) if (lanes[i].state == READY) {
                    current = i; mock_thread = lanes[i].at; resume(lanes[i].fiber); any = true;
                }
            }
            for (size_t i = warp; i < end; i++) at_block |= lanes[i].state == AT_BLOCK;
        }
        if (!at_block) break;
        for (size_t i = 0; i < count; i++) if (lanes[i].state == AT_BLOCK) {
            lanes[i].state = READY; current = i; mock_thread = lanes[i].at; resume(lanes[i].fiber);
        }
    }
}
} // namespace

extern "C" {
void mock_sync_block(void) { size_t me = current; lanes[me].state = AT_BLOCK; to_scheduler(); }
unsigned mock_lane(void) { return current & 31; }
uint64_t mock_exchange(uint64_t mine, unsigned from) {
    size_t me = current;
    Lane &lane = lanes[me];
    auto &slot = slots[lane.parity];
    lane.parity ^= 1;
    slot[me] = mine;
    lane.state = AT_WARP;
    to_scheduler();
    size_t source = (me & ~size_t(31)) + (from & 31);
    return source < count ? slot[source] : mine;
}
void *mock_dynamic_shared(void) { return dynamic_shared.data(); }

void mock_run(const mock_kernel *kernel, void **arguments, dim3 grid, dim3 block, unsigned shared) {
    mock_counted.launches++;
    if (mock_named("MOCK_CUDA_WRONG", kernel->name)) return;
    pthread_mutex_lock(&one_at_a_time);
    the_kernel = kernel; the_arguments = arguments;
    mock_grid_dim = grid; mock_block_dim = block;
    count = (size_t)block.x * block.y * block.z;
    lanes.resize(count);
    slots[0].resize(count); slots[1].resize(count);
    if (dynamic_shared.size() < shared + 64u) dynamic_shared.resize(shared + 64u);
    size_t i = 0;
    for (unsigned z = 0; z < block.z; z++) for (unsigned y = 0; y < block.y; y++) for (unsigned x = 0; x < block.x; x++) lanes[i++].at = {x, y, z};
    for (unsigned z = 0; z < grid.z; z++) for (unsigned y = 0; y < grid.y; y++) for (unsigned x = 0; x < grid.x; x++) {
        mock_block = {x, y, z};
        run_block();
    }
    pthread_mutex_unlock(&one_at_a_time);
}
}
