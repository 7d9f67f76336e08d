/*
 * A track is where events are drawn: of a thread, of a CPU for what has no thread, and of a counter. Its uuid follows from what it is, so
 * that it is the same after names were forgotten, and it is described again then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/perfetto-packets.h"

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT_UUID = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT_NAME = 6 };
enum { OF_PROCESS = 1, OF_THREAD, OF_CPU, OF_COUNTER_OF_CPU, OF_COUNTER_OF_THREAD };

/* FNV-1a of 64 bits; 0 is the track that Perfetto has for all. */
static uint64_t uuid_of(uint32_t kind, uint32_t a, uint32_t b, PerfettoText name) {
        const uint32_t parts[] = { kind, a, b };
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < sizeof(parts); i++)
                hash = (hash ^ (uint8_t)(parts[i / 4] >> (i % 4 * 8))) * UINT64_C(0x100000001b3);
        for (size_t i = 0; i < name.n; i++)
                hash = (hash ^ (uint8_t)name.bytes[i]) * UINT64_C(0x100000001b3);
        return hash > 0 ? hash : 1;
}

/* Whether it was described by that name already. */
static bool is_known(PerfettoWriter *w, uint64_t uuid, PerfettoText name) {
        char content[sizeof(uuid) + 256];
        size_t n = name.n < 256 ? name.n : 256;
        uint64_t number;

        memcpy(content, &uuid, sizeof(uuid));
        if (n > 0)
                memcpy(content + sizeof(uuid), name.bytes, n);
        return !perfetto_number(w, 0, NAME_TRACK, content, sizeof(uuid) + n, &number);
}

static size_t begin(PerfettoWriter *w, uint64_t uuid) {
        size_t at;

        perfetto_begin(w, 0);
        at = message_open(&w->packet, PACKET_TRACK_DESCRIPTOR);
        message_put_number(&w->packet, TRACK_UUID, uuid);
        return at;
}

static int end(PerfettoWriter *w, size_t at) {
        message_close(&w->packet, at);
        return perfetto_end(w);
}

/* It is called what its first thread is called. */
static int put_process(PerfettoWriter *w, const PerfettoTask *task) {
        size_t at = begin(w, uuid_of(OF_PROCESS, task->pid, 0, (PerfettoText){ .n = 0 })), process;

        process = message_open(&w->packet, TRACK_PROCESS);
        message_put_number(&w->packet, PROCESS_PID, task->pid);
        if (task->comm.n > 0)
                message_put_string(&w->packet, PROCESS_NAME, task->comm.bytes, task->comm.n);
        message_close(&w->packet, process);
        return end(w, at);
}

int perfetto_task_track(PerfettoWriter *w, const PerfettoTask *task, uint64_t *ret_uuid) {
        const uint64_t uuid = uuid_of(OF_THREAD, task->pid, task->tid, (PerfettoText){ .n = 0 });
        size_t at, thread;
        int r;

        *ret_uuid = uuid;
        if (is_known(w, uuid, task->comm))
                return w->error;
        r = task->tid == task->pid ? put_process(w, task) : 0;
        if (r < 0)
                return r;
        at = begin(w, uuid);
        thread = message_open(&w->packet, TRACK_THREAD);
        message_put_number(&w->packet, THREAD_PID, task->pid);
        message_put_number(&w->packet, THREAD_TID, task->tid);
        if (task->comm.n > 0)
                message_put_string(&w->packet, THREAD_NAME, task->comm.bytes, task->comm.n);
        message_close(&w->packet, thread);
        return end(w, at);
}

int perfetto_put_task(PerfettoWriter *w, const PerfettoTask *task) {
        uint64_t uuid;

        perfetto_limit(w);
        return task->tid != 0 ? perfetto_task_track(w, task, &uuid) : 0;
}

static int cpu_track(PerfettoWriter *w, uint32_t cpu, uint64_t *ret_uuid) {
        char name[32];
        int n = cpu == PERFETTO_NO_CPU ? snprintf(name, sizeof(name), "No CPU") : snprintf(name, sizeof(name), "CPU %" PRIu32, cpu);
        const PerfettoText text = { .bytes = name, .n = (size_t)n };
        size_t at;

        *ret_uuid = uuid_of(OF_CPU, cpu, 0, text);
        if (is_known(w, *ret_uuid, text))
                return w->error;
        at = begin(w, *ret_uuid);
        message_put_string(&w->packet, TRACK_NAME, text.bytes, text.n);
        return end(w, at);
}

int perfetto_moment_track(PerfettoWriter *w, const PerfettoMoment *m, uint64_t *ret_uuid) {
        return m->task.tid != 0 ? perfetto_task_track(w, &m->task, ret_uuid) : cpu_track(w, m->cpu, ret_uuid);
}

int perfetto_counter_track(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoCounter *c, uint64_t *ret_uuid) {
        const bool is_of_cpu = c->is_of_cpu || m->task.tid == 0;
        const uint64_t uuid = is_of_cpu ? uuid_of(OF_COUNTER_OF_CPU, m->cpu, 0, c->name) :
                                          uuid_of(OF_COUNTER_OF_THREAD, m->task.pid, m->task.tid, c->name);
        uint64_t parent;
        size_t at, counter;
        int r = perfetto_moment_track(w, &(PerfettoMoment){ .cpu = m->cpu, .task = is_of_cpu ? (PerfettoTask){ .pid = 0 } : m->task }, &parent);

        *ret_uuid = uuid;
        if (r < 0 || is_known(w, uuid, c->name))
                return r < 0 ? r : w->error;
        at = begin(w, uuid);
        message_put_string(&w->packet, TRACK_NAME, c->name.bytes, c->name.n);
        message_put_number(&w->packet, TRACK_PARENT_UUID, parent);
        counter = message_open(&w->packet, TRACK_COUNTER);
        if (c->unit.n > 0)
                message_put_string(&w->packet, COUNTER_UNIT_NAME, c->unit.bytes, c->unit.n);
        message_close(&w->packet, counter);
        return end(w, at);
}
