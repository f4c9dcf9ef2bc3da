/* A stub of libnvidia-ml.so.1. It reads the scene file at each call, so that
 * a test moves time by writing it. A line is "key value"; a device's keys begin with its number:
 *
 *   count 1              0.uuid GPU-a         0.energy 123456 (mJ)     0.power !15 (an error code)
 *
 * A missing key is NOT_SUPPORTED. "epoch" stands for the driver's life: a library that was opened
 * in another epoch is UNINITIALIZED. "sleep_ms" makes a count take that long. "0.back_after 2":
 * the device is lost until the library was opened twice.
 * Built by stub.rs; SCENE is the path of the scene file, and MINIMAL leaves most functions out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
enum { OK = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, LOST = 15 };

static char opened[64];

static int text(const char *key, char *value, unsigned size) {
    char line[512];
    size_t length = strlen(key);
    int found = NOT_SUPPORTED;
    FILE *scene = fopen(SCENE, "r");
    if (!scene) return 999;
    while (fgets(line, sizeof line, scene)) {
        if (strncmp(line, key, length) || line[length] != ' ') continue;
        line[strcspn(line, "\n")] = 0;
        found = OK;
        if (line[length + 1] == '!') found = atoi(line + length + 2);
        else snprintf(value, size, "%s", line + length + 1);
    }
    fclose(scene);
    return found;
}

static int number(const char *key, u64 *value) {
    char said[64];
    int found = text(key, said, sizeof said);
    if (found == OK) *value = strtoull(said, 0, 10);
    return found;
}

/* How often the library was opened: kept in a file, because closing unloads the library. */
static u64 openings(int one_more) {
    FILE *file = fopen(SCENE ".openings", "a");
    if (!file) return 0;
    if (one_more) fputc('.', file);
    fseek(file, 0, SEEK_END);
    u64 count = (u64)ftell(file);
    fclose(file);
    return count;
}

static int alive(void) {
    char now[64] = "";
    text("epoch", now, sizeof now);
    return strcmp(now, opened) ? UNINITIALIZED : OK;
}

/* Devices are 1, 2, ...; the instances of device 1 are 101, 102, ... */
static const char *key(void *device, const char *name) {
    static __thread char made[128];
    size_t number = (size_t)device;
    if (number > 100) snprintf(made, sizeof made, "%zu.mig.%zu.%s", number / 100 - 1, number % 100 - 1, name);
    else snprintf(made, sizeof made, "%zu.%s", number - 1, name);
    return made;
}

static int of(void *device, const char *name, u64 *value) {
    int now = alive();
    u64 after = 0;
    if (now) return now;
    if (number(key(device, "back_after"), &after) == OK && openings(0) < after) return LOST;
    return number(key(device, name), value);
}

static int small(void *device, const char *name, unsigned *value) {
    u64 wide = 0;
    int found = of(device, name, &wide);
    if (found == OK) *value = (unsigned)wide;
    return found;
}

int nvmlInit_v2(void) {
    u64 failed = 0;
    int found = number("init", &failed);
    if (found != OK && found != NOT_SUPPORTED) return found;
    opened[0] = 0;
    openings(1);
    text("epoch", opened, sizeof opened);
    return OK;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int error) { (void)error; return "as the scene says"; }
int nvmlSystemGetDriverVersion(char *version, unsigned size) { return text("driver", version, size); }
int nvmlDeviceGetCount_v2(unsigned *count) {
    u64 wide = 0, ms = 0;
    int now = alive();
    if (now) return now;
    if (number("sleep_ms", &ms) == OK) usleep((useconds_t)ms * 1000);
    now = number("count", &wide);
    *count = (unsigned)wide;
    return now;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    u64 unused;
    *device = (void *)(size_t)(index + 1);
    int found = number(key(*device, "handle"), &unused);
    return found == NOT_SUPPORTED ? alive() : found;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) { return text(key(device, "uuid"), uuid, size); }
int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *mj) { return of(device, "energy", mj); }
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { return small(device, "power", mw); }
int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]) {
    rates[1] = 0;
    return small(device, "utilization", &rates[0]);
}

#ifndef MINIMAL
struct memory { unsigned version; u64 total, reserved, free, used; };
struct metric { unsigned id; int said; double value; char *names[3]; };
struct metrics { unsigned version, count; void *before, *now; struct metric metrics[210]; };

int nvmlDeviceGetName(void *device, char *name, unsigned size) { return text(key(device, "name"), name, size); }
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory) {
    int found = of(device, "memory_total", &memory->total);
    return found ? found : of(device, "memory_used", &memory->used);
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
    (void)sensor;
    return small(device, "temperature", degrees);
}
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) {
    const char *names[] = {"clock_graphics", "clock_sm", "clock_memory", "clock_video"};
    return small(device, names[clock], mhz);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *bits) { return of(device, "throttle", bits); }
int nvmlDeviceGetEncoderUtilization(void *device, unsigned *percent, unsigned *period) {
    *period = 0;
    return small(device, "encoder", percent);
}
int nvmlDeviceGetDecoderUtilization(void *device, unsigned *percent, unsigned *period) {
    *period = 0;
    return small(device, "decoder", percent);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
    (void)processes;
    int found = small(device, "processes", count);
    return found == OK && *count ? INSUFFICIENT_SIZE : found;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, u64 *count) {
    (void)counter;
    return of(device, kind ? "uncorrected" : "corrected", count);
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw) { return small(device, "power_limit", mw); }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { return small(device, "migs", count); }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
    u64 unused;
    *part = (void *)((size_t)device * 100 + index + 1);
    return of(*part, "memory_total", &unused);
}
int nvmlGpmQueryDeviceSupport(void *device, unsigned support[2]) { return small(device, "gpm", &support[1]); }
int nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(void *)); return OK; }
int nvmlGpmSampleFree(void *sample) { free(sample); return OK; }
int nvmlGpmSampleGet(void *device, void *sample) { *(void **)sample = device; return alive(); }
int nvmlGpmMetricsGet(struct metrics *asked) {
    if (!asked->before || !asked->now || asked->before == asked->now) return 2;
    for (unsigned i = 0; i < asked->count; i++) {
        char name[32];
        u64 percent = 0;
        snprintf(name, sizeof name, "gpm_%u", asked->metrics[i].id);
        asked->metrics[i].said = of(*(void **)asked->now, name, &percent);
        asked->metrics[i].value = (double)percent;
    }
    return OK;
}
#endif
