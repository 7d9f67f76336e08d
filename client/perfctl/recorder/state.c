#include "client/perfctl/recorder/state.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"

#ifndef PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
#define PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER 1
#endif

#define N_BUCKETS ((size_t)1 << 12) /* a power of two */
#define MAPPINGS_MAX ((size_t)4096) /* of a process: the oldest give way, as of one that maps code anew all the time */
#define KERNEL UINT32_MAX           /* the pid of its mappings */

typedef struct Kept Kept;
struct Kept {
        Kept *next;
        uint32_t type, tid; /* tid: of a COMM */
        uint64_t start, end; /* of a mapping */
        uint16_t misc;
        size_t n;
        uint8_t bytes[];
};

typedef struct Process Process;
struct Process {
        Process *next;
        uint32_t pid;
        size_t n_mappings, n_names; /* names: one for each thread */
        Kept *first, **last;
};

struct RecorderState {
        Process *buckets[N_BUCKETS];
};

RecorderState *recorder_state_new(void) {
        return must_have(calloc(1, sizeof(RecorderState)));
}

/* ---- processes ------------------------------------------------------------------------------------------------------------------ */

static Process **place_of(RecorderState *s, uint32_t pid) {
        Process **at = &s->buckets[pid & (N_BUCKETS - 1)];

        while (*at && (*at)->pid != pid)
                at = &(*at)->next;
        return at;
}

static Process *get(RecorderState *s, uint32_t pid) {
        Process **at = place_of(s, pid);

        if (!*at) {
                *at = must_have(calloc(1, sizeof(**at)));
                (*at)->pid = pid;
                (*at)->last = &(*at)->first;
        }
        return *at;
}

static void drop(Process *p, Kept **at) {
        Kept *k = *at;

        *at = k->next;
        if (!k->next)
                p->last = at;
        p->n_names -= k->type == PERF_RECORD_COMM;
        p->n_mappings -= k->type != PERF_RECORD_COMM;
        free(k);
}

static void drop_all(Process *p) {
        while (p->first)
                drop(p, &p->first);
}

static void forget(RecorderState *s, uint32_t pid) {
        Process **at = place_of(s, pid), *p = *at;

        if (!p)
                return;
        *at = p->next;
        drop_all(p);
        free(p);
}

RecorderState *recorder_state_free(RecorderState *s) {
        for (size_t i = 0; s && i < N_BUCKETS; i++)
                while (s->buckets[i])
                        forget(s, s->buckets[i]->pid);
        free(s);
        return NULL;
}

static Kept *add(Process *p, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        Kept *k = must_have(malloc(sizeof(*k) + n));

        *k = (Kept){ .type = type, .misc = misc, .n = n };
        memcpy(k->bytes, bytes, n);
        *p->last = k;
        p->last = &k->next;
        p->n_names += type == PERF_RECORD_COMM;
        p->n_mappings += type != PERF_RECORD_COMM;
        return k;
}

/* ---- records -------------------------------------------------------------------------------------------------------------------- */

static uint32_t u32_at(const void *bytes, size_t at) {
        uint32_t n;

        memcpy(&n, (const uint8_t *)bytes + at, sizeof(n));
        return n;
}

static uint64_t u64_at(const void *bytes, size_t at) {
        uint64_t n;

        memcpy(&n, (const uint8_t *)bytes + at, sizeof(n));
        return n;
}

static void drop_name(Process *p, uint32_t tid) {
        for (Kept **at = &p->first; *at; at = &(*at)->next)
                if ((*at)->type == PERF_RECORD_COMM && (*at)->tid == tid) {
                        drop(p, at);
                        return;
                }
}

static void take_name(RecorderState *s, uint16_t misc, const void *bytes, size_t n) {
        Process *p = get(s, u32_at(bytes, 0));
        const uint32_t tid = u32_at(bytes, 4);

        if (misc & PERF_RECORD_MISC_COMM_EXEC) /* the other threads are gone, and the memory is a new one */
                drop_all(p);
        drop_name(p, tid);
        add(p, PERF_RECORD_COMM, misc, bytes, n)->tid = tid;
}

/* Place and length stand there in MMAP, MMAP2 and KSYMBOL; the kernel says nothing of what is unmapped. */
static void take_mapping(RecorderState *s, uint32_t pid, uint32_t type, uint16_t misc, uint64_t start, uint64_t length, const void *bytes,
                         size_t n, bool is_gone) {
        Process *p = get(s, pid);
        Kept **at = &p->first, *k;

        while (*at)
                if ((*at)->type != PERF_RECORD_COMM && (*at)->start >= start && (*at)->end <= start + length)
                        drop(p, at);
                else
                        at = &(*at)->next;
        if (is_gone)
                return;
        for (at = &p->first; p->n_mappings >= MAPPINGS_MAX;)
                if ((*at)->type != PERF_RECORD_COMM)
                        drop(p, at);
                else
                        at = &(*at)->next;
        k = add(p, type, misc, bytes, n);
        k->start = start;
        k->end = start + length;
}

/* pid, ppid, tid, ptid; a copy is of the new one, in its first two numbers. */
static void take_fork(RecorderState *s, const void *bytes) {
        const uint32_t pid = u32_at(bytes, 0), ppid = u32_at(bytes, 4), task[2] = { pid, u32_at(bytes, 8) }, ptid = u32_at(bytes, 12);
        Process *child;
        const Process *parent;

        if (pid != ppid)
                forget(s, pid); /* its end was lost */
        child = get(s, pid);
        parent = *place_of(s, ppid);
        for (const Kept *k = parent ? parent->first : NULL; k; k = k->next) {
                Kept *copy;

                if (k->type == PERF_RECORD_COMM ? k->tid != ptid : pid == ppid)
                        continue;
                copy = add(child, k->type, k->misc, k->bytes, k->n);
                memcpy(copy->bytes, task, sizeof(task));
                copy->tid = task[1];
                copy->start = k->start;
                copy->end = k->end;
                if (pid == ppid)
                        break; /* a thread has a name alone, and the list is that which grows */
        }
}

static void take_exit(RecorderState *s, const void *bytes) {
        Process *p = *place_of(s, u32_at(bytes, 0));

        if (!p)
                return;
        drop_name(p, u32_at(bytes, 8));
        if (p->n_names == 0)
                forget(s, p->pid);
}

void recorder_state_take(RecorderState *s, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        switch (type) {
        case PERF_RECORD_COMM:
                take_name(s, misc, bytes, n);
                return;
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
                take_mapping(s, u32_at(bytes, 0), type, misc, u64_at(bytes, 8), u64_at(bytes, 16), bytes, n, false);
                return;
        case PERF_RECORD_KSYMBOL:
                take_mapping(s, KERNEL, type, misc, u64_at(bytes, 0), u32_at(bytes, 8), bytes, n,
                             u32_at(bytes, 12) >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
                return;
        case PERF_RECORD_FORK:
                take_fork(s, bytes);
                return;
        case PERF_RECORD_EXIT:
                take_exit(s, bytes);
                return;
        default:
                return;
        }
}

static int put_process(const Process *p, RecorderStatePut *put, void *userdata) {
        int code = 0;

        for (const Kept *k = p->first; k && code == 0; k = k->next) {
                const uint16_t exec = k->type == PERF_RECORD_COMM ? PERF_RECORD_MISC_COMM_EXEC : 0; /* it was before */

                code = put(userdata, k->type, k->misc & (uint16_t)~exec, k->bytes, k->n);
        }
        return code;
}

int recorder_state_put(const RecorderState *s, RecorderStatePut *put, void *userdata) {
        int code = 0;

        for (size_t i = 0; i < N_BUCKETS; i++)
                for (const Process *p = s->buckets[i]; p && code == 0; p = p->next)
                        code = put_process(p, put, userdata);
        return code;
}

int recorder_state_give(RecorderState *s, uint32_t pid, RecorderStatePut *put, void *userdata) {
        const Process *p = *place_of(s, pid);
        const int code = p ? put_process(p, put, userdata) : 0;

        forget(s, pid);
        return code;
}
