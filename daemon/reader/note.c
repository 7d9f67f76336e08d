/*
 * Notes: what the dispatcher has to know of tasks, taken from side records and appended to batches between the items, ordered by
 * time like these.
 *
 * Design: notes are entries like items. The merge orders them by time across CPUs, so the dispatcher knows the state of each task
 * at any moment without keeping a history.
 *
 * Moves between cgroups have no side record. A tracepoint reports them; main opens it only for this (supervisor/readers/tasks.c),
 * and its samples are identified by their stream id.
 */
#include "daemon/reader/cycle.h"

#include <stdio.h>
#include <string.h>

#include "daemon/decode/fields.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/model/task-note.h"
#include "daemon/model/zero-tid.h"

/* False: the thread is outside of perfd's pid namespace (tid 0), or already dead (tid -1). */
static bool is_task(uint32_t tid) {
        return tid != 0 && tid != UINT32_MAX;
}

static int reader_append_note(Reader *r, nsec_t time, const TaskNote *n) {
        size_t room, length;
        uint8_t *to;

        if (!batch_has_entry_room(r->batch))
                return READER_E_NO_ROOM;
        to = batch_room(r->batch, &room);
        length = task_note_put(n, to, room);
        if (length == 0)
                return READER_E_NO_ROOM;
        batch_append(r->batch, time, 0, BATCH_MARKER, n->tid, length);
        return 0;
}

static void note_set_text(TaskNote *n, const char *text) {
        n->text = text;
        n->n_text = (uint32_t)strnlen(text, TASK_TEXT_MAX);
}

/*
 * The program of an exec is the first file that is mapped. Anonymous memory (vdso, stacks, memory of just-in-time compilers) does
 * not count. A file whose path perf_event_mmap_event() could not determine has a name such as "//toolong", and counts.
 */
static bool note_of_map(TaskNote *n, const char *filename) {
        if (filename[0] != '/' || strncmp(filename, "//anon", 6) == 0)
                return false;
        note_set_text(n, filename[1] == '/' ? "" : filename);
        return true;
}

static bool note_of(const Record *record, TaskNote *n) {
        switch (record->type) {
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
                n->kind = record->type == PERF_RECORD_FORK ? TASK_NOTE_FORK : TASK_NOTE_EXIT;
                n->pid = record->task.pid;
                n->tid = record->task.tid;
                n->parent_pid = record->task.ppid;
                n->parent_tid = record->task.ptid;
                return is_task(n->tid);
        case PERF_RECORD_COMM:
                n->kind = record->misc & PERF_RECORD_MISC_COMM_EXEC ? TASK_NOTE_EXEC : TASK_NOTE_COMM;
                n->pid = record->comm_record.pid;
                n->tid = record->comm_record.tid;
                note_set_text(n, record->comm_record.comm);
                return is_task(n->tid);
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
                n->kind = TASK_NOTE_MAP;
                n->pid = record->mmap2.pid;
                n->tid = record->mmap2.tid;
                return is_task(n->tid) && note_of_map(n, record->mmap2.filename);
        default:
                return false;
        }
}

int reader_note(Reader *r, const Record *record) {
        TaskNote n = { .n_text = 0 };

        return note_of(record, &n) ? reader_append_note(r, record->time, &n) : 0;
}

int reader_note_move(Reader *r, const Record *record) {
        const MoveFields *f = &r->moves;
        uint64_t hierarchy, cgroup, tid;
        const uint8_t *path;
        size_t n_path;
        TaskNote n;

        if (plan_check(f->plan, record->raw, record->raw_size) != 0 ||
            field_number(f->hierarchy, record->raw, record->raw_size, 0, &hierarchy) != 0 ||
            field_number(f->cgroup, record->raw, record->raw_size, 0, &cgroup) != 0 ||
            field_number(f->tid, record->raw, record->raw_size, 0, &tid) != 0 ||
            field_text(f->path, record->raw, record->raw_size, &path, &n_path) != 0)
                return READER_E_UNDECODABLE;
        if (hierarchy != f->wanted || !is_task((uint32_t)tid))
                return 0;
        n = (TaskNote){ .kind = TASK_NOTE_CGROUP, .tid = (uint32_t)tid, .cgroup = cgroup, .text = (const char *)path,
                        .n_text = (uint32_t)(n_path < TASK_TEXT_MAX ? n_path : TASK_TEXT_MAX) };
        return reader_append_note(r, record->time, &n);
}

/* ---- names, for conditions --------------------------------------------------------------------------------------- */

const char *reader_comm(Reader *r, const Plan *plan, const Record *record) {
        const ZeroTid zero = record->tid == 0 && r->has_no_pids ? zero_tid_of_sample(plan, record) : ZERO_TID_NONE;
        const uint64_t version = comm_table_version(r->comms);
        const uint32_t tid = record->tid;

        if (zero == ZERO_TID_OUTSIDE || zero == ZERO_TID_UNKNOWN)
                return zero == ZERO_TID_OUTSIDE ? COMM_OF_OUTSIDE : COMM_OF_NO_PID;

        if (tid == r->comm_tid && version == r->comm_version)
                return r->comm;
        r->comm_version = version;
        r->comm_tid = tid;
        if (tid == 0)
                (void)snprintf(r->comm, sizeof(r->comm), "swapper/%u", r->cpu);
        else if (!comm_table_get(r->comms, tid, r->comm)) {
                if (!task_comm(tid, r->comm))
                        r->comm[0] = '\0'; /* forgotten before it was used */
                comm_table_set(r->comms, tid, record->time, r->comm);
        }
        return r->comm;
}

static void reader_learn_kin(Reader *r, const Record *record) {
        if (!r->process_tree || !atomic_load_explicit(&r->process_tree->is_used, memory_order_acquire) ||
            !is_task(record->task.tid))
                return;
        if (record->type == PERF_RECORD_FORK)
                process_tree_add(r->process_tree, record->task.tid, record->task.ptid, record->time);
        else
                process_tree_end(r->process_tree, record->task.tid, record->time);
}

void reader_learn_comm(Reader *r, const Record *record) {
        char comm[COMM_SIZE];

        if (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT)
                reader_learn_kin(r, record);

        if (record->type == PERF_RECORD_COMM)
                comm_table_set(r->comms, record->comm_record.tid, record->time, record->comm_record.comm);
        else if (record->type == PERF_RECORD_FORK && comm_table_get(r->comms, record->task.ptid, comm))
                comm_table_set(r->comms, record->task.tid, record->time, comm);
}
