/* Who threads are: perf writes a COMM for each that there was when it began, the kernel one for each new name; a new thread has its parent's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/item/task.h"
#include "client/recorded/recorded.h"
#include "client/recording/damage.h"
#include "client/recording/left-out.h"

#define COMM 3 /* PERF_RECORD_COMM */
#define FORK 7
#define COMM_MAX ((size_t)255) /* bytes: the kernel has 16, perf takes more from the name of a process */

static int add(perfd_recording *r, Tasks *tasks, uint32_t pid, uint32_t tid, perfd_text comm) {
        Perfd__V1__Task *m = malloc(sizeof(*m));
        int code;

        if (!m)
                return recording_fail(r, -ENOMEM, "no memory");
        perfd__v1__task__init(m);
        m->pid = pid;
        m->tid = tid;
        if (comm.length > 0) {
                m->comm.data = malloc(comm.length);
                if (!m->comm.data) {
                        perfd__v1__task__free_unpacked(m, NULL);
                        return recording_fail(r, -ENOMEM, "no memory");
                }
                memcpy(m->comm.data, comm.bytes, comm.length);
                m->comm.len = comm.length;
        }
        code = tasks_add(tasks, m);
        if (code == -ENOMEM)
                return recording_fail(r, -ENOMEM, "no memory");
        return code == 0 ? 0 : recording_damage(r, r->shown.offset, "thread %u: found more than %zu threads, expected fewer: it has no name", tid,
                                                TASKS_LIMIT);
}

/* Of the record that was read last. */
static int damage(perfd_recording *r, const Bytes *b, const char *what) {
        int code = recording_damage_of(r, b, what);

        return code == 0 ? left_out_add(r, &r->shown) : code;
}

static int take_comm(perfd_recording *r, Bytes *b, Tasks *tasks) {
        const uint32_t pid = bytes_u32(b), tid = bytes_u32(b);
        const size_t left = bytes_left(b);
        perfd_text comm = { .bytes = (const char *)b->at, .length = strnlen((const char *)b->at, left < COMM_MAX ? left : COMM_MAX) };

        if (b->failed)
                return damage(r, b, "a record COMM");
        return tid == 0 ? 0 : add(r, tasks, pid, tid, comm); /* each CPU has an idle thread of its own */
}

static int take_fork(perfd_recording *r, Bytes *b, Tasks *tasks) {
        const uint32_t pid = bytes_u32(b), parent_pid = bytes_u32(b), tid = bytes_u32(b), parent = bytes_u32(b);
        const perfd_task *known = tasks_find(tasks, parent);
        char comm[COMM_MAX];
        size_t n = known && known->comm.length < sizeof(comm) ? known->comm.length : 0;

        (void)parent_pid;
        if (b->failed)
                return damage(r, b, "a record FORK");
        if (n > 0)
                memcpy(comm, known->comm.bytes, n);
        return tid == 0 || n == 0 ? 0 : add(r, tasks, pid, tid, (perfd_text){ .bytes = comm, .length = n });
}

int recorded_tasks_take(perfd_recording *r, const perfd_recorded *record, Tasks *tasks) {
        Bytes b = { .at = record->bytes, .end = (const uint8_t *)record->bytes + record->size, .offset = record->offset, .swap = r->is_swapped };

        if (record->type == COMM)
                return take_comm(r, &b, tasks);
        return record->type == FORK ? take_fork(r, &b, tasks) : 0;
}
