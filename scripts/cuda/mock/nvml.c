/* A stand-in for libnvidia-ml.so.1 that answers the calls Steno makes, so that
 * the code that reads a card's memory runs on machines without one.
 *
 *   cc -shared -fPIC -o libnvidia-ml.so.1 nvml.c -ldl
 *
 * What it answers is read, at every call, from the file of the library's own
 * path with ".conf" behind it:
 *
 *   init CODE                                    return code of nvmlInit (default 0)
 *   gpu UUID DOMAIN:BUS:DEVICE.0 TOTAL FREE NAME  one per card, bytes
 *   capability UUID MAJOR.MINOR                  of that card (default: the driver does not say)
 *   memory UUID CODE                             return code of that card's memory query
 *   process UUID compute|graphics PID BYTES|-    "-": the driver does not say
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { MAX_GPUS = 16, MAX_PROCESSES = 64 };

typedef unsigned long long bytes_t;
typedef struct { unsigned version; bytes_t total, reserved, free, used; } memory_t;
typedef struct { unsigned pid; bytes_t used; unsigned gpu_instance, compute_instance; } process_t;
typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} pci_t;

struct gpu {
    char uuid[96], name[96];
    unsigned domain, bus, device;
    bytes_t total, free;
    int memory_code, major, minor;
};
struct entry { char uuid[96]; int graphics; process_t process; };
struct conf {
    int init_code, gpus, processes;
    struct gpu gpu[MAX_GPUS];
    struct entry entry[MAX_PROCESSES];
};

int nvmlInit_v2(void);

static struct conf read_conf(void) {
    struct conf c;
    memset(&c, 0, sizeof c);
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)nvmlInit_v2, &self)) return c;
    snprintf(path, sizeof path, "%s.conf", self.dli_fname);
    FILE *f = fopen(path, "r");
    if (!f) return c;
    char line[512];
    while (fgets(line, sizeof line, f)) {
        char uuid[96], kind[16], amount[32];
        int code, major, minor;
        unsigned pid;
        struct gpu g;
        memset(&g, 0, sizeof g);
        if (sscanf(line, "init %d", &code) == 1) {
            c.init_code = code;
        } else if (sscanf(line, "gpu %95s %x:%x:%x.%*d %llu %llu %95[^\n]", g.uuid, &g.domain, &g.bus, &g.device,
                          &g.total, &g.free, g.name) == 7) {
            if (c.gpus < MAX_GPUS) c.gpu[c.gpus++] = g;
        } else if (sscanf(line, "capability %95s %d.%d", uuid, &major, &minor) == 3) {
            for (int i = 0; i < c.gpus; i++)
                if (!strcmp(c.gpu[i].uuid, uuid)) { c.gpu[i].major = major; c.gpu[i].minor = minor; }
        } else if (sscanf(line, "memory %95s %d", uuid, &code) == 2) {
            for (int i = 0; i < c.gpus; i++)
                if (!strcmp(c.gpu[i].uuid, uuid)) c.gpu[i].memory_code = code;
        } else if (sscanf(line, "process %95s %15s %u %31s", uuid, kind, &pid, amount) == 4) {
            if (c.processes < MAX_PROCESSES) {
                struct entry *e = &c.entry[c.processes++];
                strcpy(e->uuid, uuid);
                e->graphics = !strcmp(kind, "graphics");
                e->process.pid = pid;
                e->process.used = strcmp(amount, "-") ? strtoull(amount, 0, 10) : ~0ull;
                e->process.gpu_instance = e->process.compute_instance = ~0u;
            }
        }
    }
    fclose(f);
    return c;
}

/* A handle is the card's number plus one: never null, never dereferenced. */
static int find(void *handle, struct gpu *g, struct conf *c) {
    size_t index = (size_t)handle - 1;
    *c = read_conf();
    if (index >= (size_t)c->gpus) return INVALID_ARGUMENT;
    *g = c->gpu[index];
    return SUCCESS;
}

int nvmlInit_v2(void) { return read_conf().init_code; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return read_conf().init_code; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "580.65.06");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)read_conf().gpus;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= (unsigned)read_conf().gpus) return INVALID_ARGUMENT;
    *device = (void *)(size_t)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    struct conf c = read_conf();
    for (int i = 0; i < c.gpus; i++)
        if (!strcmp(c.gpu[i].uuid, uuid)) { *device = (void *)(size_t)(i + 1); return SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
    struct conf c = read_conf();
    unsigned domain, bus, slot;
    if (sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3) return INVALID_ARGUMENT;
    for (int i = 0; i < c.gpus; i++)
        if (c.gpu[i].domain == domain && c.gpu[i].bus == bus && c.gpu[i].device == slot) {
            *device = (void *)(size_t)(i + 1);
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (!code) snprintf(uuid, length, "%s", g.uuid);
    return code;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (!code) snprintf(name, length, "%s", g.name);
    return code;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (code) return code;
    *major = g.major;
    *minor = g.minor;
    return g.major ? SUCCESS : 3; /* not supported */
}

int nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (code) return code;
    memset(pci, 0, sizeof *pci);
    pci->domain = g.domain; pci->bus = g.bus; pci->device = g.device;
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", g.domain, g.bus, g.device);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", g.domain & 0xffff, g.bus & 0xff, g.device & 0xff);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_t *memory) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (code) return code;
    if (g.memory_code) return g.memory_code;
    /* A real driver keeps a part for itself, which is neither free nor used. */
    memory->total = g.total;
    memory->free = g.free;
    memory->reserved = (g.total - g.free) / 16;
    memory->used = g.total - g.free - memory->reserved;
    return SUCCESS;
}

static int processes(void *device, int graphics, unsigned *count, process_t *out) {
    struct conf c; struct gpu g;
    int code = find(device, &g, &c);
    if (code) return code;
    unsigned room = out ? *count : 0, found = 0;
    for (int i = 0; i < c.processes; i++) {
        if (strcmp(c.entry[i].uuid, g.uuid) || c.entry[i].graphics != graphics) continue;
        if (found < room) out[found] = c.entry[i].process;
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *out) {
    return processes(device, 0, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process_t *out) {
    return processes(device, 1, count, out);
}
