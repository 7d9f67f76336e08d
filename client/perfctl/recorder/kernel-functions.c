#include "client/perfctl/recorder/kernel-functions.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/recorder/recorder.h"

#define LOT ((size_t)256)
#define NAME_MAX_BYTES ((size_t)1024) /* the kernel's names have 512 at most, and those of modules 64 */
#define KERNEL_DSO "[kernel.kallsyms]"
#define FIRST_ADDRESS (UINT64_C(1) << 63) /* below are no functions of the kernel, but marks of callchains above the last of them */
#define FIRST_MARK ((uint64_t)PERF_CONTEXT_MAX)

static uint64_t *place_of(const KernelFunctions *k, uint64_t address) {
        return k->seen + ((address * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
}

_Static_assert(KERNEL_FUNCTIONS_SEEN == (size_t)1 << (64 - 51), "place_of() has as many places");

/* How many begin at the address or before it. */
static size_t count_before(const KernelFunctions *k, uint64_t start) {
        size_t low = 0, high = k->n;

        while (low < high) {
                const size_t middle = low + (high - low) / 2;

                if (k->list[middle].start <= start)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Whether the file does not have that much of it yet; from now on it has. */
static bool take(KernelFunctions *k, uint64_t start, uint64_t end) {
        const size_t at = count_before(k, start);

        if (at > 0 && k->list[at - 1].start == start) {
                if (k->list[at - 1].end >= end)
                        return false;
                k->list[at - 1].end = end;
                return true;
        }
        if (k->n == k->room) {
                k->room = k->room ? 2 * k->room : 256;
                k->list = must_have(reallocarray(k->list, k->room, sizeof(*k->list)));
        }
        memmove(k->list + at + 1, k->list + at, (k->n++ - at) * sizeof(*k->list));
        k->list[at] = (WrittenFunction){ .start = start, .end = end };
        return true;
}

/* "vfs_read", "ext4_readdir [ext4]". It is of no file's beginning, but of its own samples: recorder_put_record() would keep it for all. */
static int put(Recorder *r, const KernelFunction *f, uint32_t event, uint64_t time) {
        struct {
                uint64_t addr;
                uint32_t len;
                uint16_t type, flags;
                char rest[NAME_MAX_BYTES + sizeof(RecorderId)];
        } record = { .addr = f->start, .len = f->end - f->start <= UINT32_MAX ? (uint32_t)(f->end - f->start) : UINT32_MAX,
                     .type = PERF_RECORD_KSYMBOL_TYPE_UNKNOWN };
        const RecorderId id = { .time = time, .id = event };
        int length = strcmp(f->dso, KERNEL_DSO) == 0 ? snprintf(record.rest, NAME_MAX_BYTES, "%s", f->symbol) :
                                                       snprintf(record.rest, NAME_MAX_BYTES, "%s %s", f->symbol, f->dso);
        size_t n;

        if (length < 0 || (size_t)length >= NAME_MAX_BYTES)
                return 0;
        n = ((size_t)length + 8) & ~(size_t)7;
        memcpy(record.rest + n, &id, sizeof(id));
        return perfd_recording_writer_put(r->writer, PERF_RECORD_KSYMBOL, 0, &record, 16 + n + sizeof(id));
}

static int put_new(Recorder *r, const uint64_t *addresses, size_t n, uint32_t event, uint64_t time) {
        KernelFunctions *k = &r->functions;
        int code = 0;

        kernel_names_want(k->names, addresses, n);
        for (size_t i = 0; i < n && code == 0; i++) {
                KernelFunction f;

                *place_of(k, addresses[i]) = addresses[i];
                if (kernel_names_function(k->names, addresses[i], &f) && take(k, f.start, f.end))
                        code = put(r, &f, event, time);
        }
        return code;
}

int kernel_functions_put(Recorder *r, const uint64_t *addresses, size_t n, uint32_t event, uint64_t time) {
        KernelFunctions *k = &r->functions;
        uint64_t new[LOT];
        size_t n_new = 0;
        int code = 0;

        if (!k->seen)
                k->seen = must_have(calloc(KERNEL_FUNCTIONS_SEEN, sizeof(*k->seen)));
        for (size_t i = 0; i < n && code == 0; i++) {
                if (addresses[i] < FIRST_ADDRESS || addresses[i] >= FIRST_MARK || *place_of(k, addresses[i]) == addresses[i])
                        continue;
                if (!k->names)
                        k->names = kernel_names_new(r->p);
                new[n_new++] = addresses[i];
                if (n_new == LOT) {
                        code = put_new(r, new, n_new, event, time);
                        n_new = 0;
                }
        }
        return code == 0 && n_new > 0 ? put_new(r, new, n_new, event, time) : code;
}

void kernel_functions_renew(KernelFunctions *k) {
        k->n = 0;
        if (k->seen)
                memset(k->seen, 0, KERNEL_FUNCTIONS_SEEN * sizeof(*k->seen));
}

void kernel_functions_deinit(KernelFunctions *k) {
        k->names = kernel_names_free(k->names);
        free(k->list);
        free(k->seen);
        *k = (KernelFunctions){ .n = 0 };
}
