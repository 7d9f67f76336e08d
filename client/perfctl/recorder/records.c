/* Side records of a stream as perf_event.h has them, with what sample_id_all appends. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "client/perfctl/recorder/recorder.h"

#define RECORD_ROOM ((size_t)65528)
#define MISC_MMAP_BUILD_ID (1U << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID, since Linux 5.12 */

void recorder_check(Recorder *r, int code) {
        if (code == 0 || r->has_failed)
                return;
        if (code == -EPIPE && strcmp(r->files.path, "-") == 0) { /* it wants no more, as of any output */
                r->is_closed = r->has_failed = true;
                return;
        }
        (void)perfctl_fail(r->p, PERFCTL_FAILED, "%s", perfd_recording_writer_error(r->writer));
        r->has_failed = true;
}

int recorder_put_record(Recorder *r, uint32_t type, uint16_t misc, const void *bytes, size_t n, perfd_text text, const RecorderId *id) {
        static uint8_t record[RECORD_ROOM]; /* there is one thread */
        const size_t whole = text.length > 0 ? (n + text.length + 8) & ~(size_t)7 : (n + 7) & ~(size_t)7;

        if (whole + sizeof(*id) > RECORD_ROOM - 8) { /* no name of a file is so long */
                r->n_left_out++;
                return 0;
        }
        memset(record, 0, whole);
        memcpy(record, bytes, n);
        memcpy(record + n, text.bytes, text.length);
        memcpy(record + whole, id, sizeof(*id));
        if (r->hides) {
                others_take(r->others, type, misc, record, whole + sizeof(*id));
                return 0;
        }
        if (r->state)
                recorder_state_take(r->state, type, misc, record, whole + sizeof(*id));
        return perfd_recording_writer_put(r->writer, type, misc, record, whole + sizeof(*id));
}

static int put_comm(Recorder *r, const perfd_comm_record *c, const RecorderId *id) {
        const uint32_t tasks[2] = { c->pid, c->tid };

        if (r->p->host)
                (void)task_names_take(&r->remote.tasks, c->tid, c->comm);
        pid_set_add(r->named, c->tid);
        return recorder_put_record(r, PERF_RECORD_COMM, c->exec ? PERF_RECORD_MISC_COMM_EXEC : 0, tasks, sizeof(tasks), c->comm, id);
}

/* Whoever sampled it knows the thread; that it began before the stream, no record says. */
int recorder_put_name(Recorder *r, const perfd_item *item) {
        const perfd_task *task = perfd_item_task(item);
        const RecorderId id = { .pid = perfd_item_pid(item), .tid = perfd_item_tid(item), .time = perfd_item_time(item), .cpu = perfd_item_cpu(item),
                                .id = perfd_item_event(item)->id };

        if (!task || task->comm.length == 0 || (r->p->host && !task_names_take(&r->remote.tasks, id.tid, task->comm)))
                return 0;
        pid_set_add(r->named, id.tid);
        return recorder_put_record(r, PERF_RECORD_COMM, 0, (const uint32_t[]){ id.pid, id.tid }, 2 * sizeof(uint32_t), task->comm, &id);
}

/* It is called as who began it. */
static void note_child(Recorder *r, const perfd_task_record *t) {
        if (pid_set_has(r->named, t->ptid))
                pid_set_add(r->named, t->tid);
        else
                pid_set_remove(r->named, t->tid);
}

static int put_task(Recorder *r, uint32_t type, const perfd_task_record *t, const RecorderId *id) {
        const struct {
                uint32_t pid, ppid, tid, ptid;
                uint64_t time;
        } record = { .pid = t->pid, .ppid = t->ppid, .tid = t->tid, .ptid = t->ptid, .time = id->time };

        return recorder_put_record(r, type, 0, &record, sizeof(record), RECORDER_NO_TEXT, id);
}

static int put_mmap2(Recorder *r, const perfd_mmap2_record *m, const RecorderId *id) {
        RecorderMmap2 record = { .pid = m->pid, .tid = m->tid, .addr = m->addr, .len = m->len, .pgoff = m->pgoff, .prot = m->prot,
                                 .flags = m->flags };
        uint16_t misc = PERF_RECORD_MISC_USER;
        int code = 0;

        if (m->build_id.length > 0 && m->build_id.length <= sizeof(record.build_id.bytes)) {
                misc |= MISC_MMAP_BUILD_ID;
                record.build_id.size = (uint8_t)m->build_id.length;
                memcpy(record.build_id.bytes, m->build_id.bytes, m->build_id.length);
        } else {
                record.file.maj = m->maj;
                record.file.min = m->min;
                record.file.ino = m->ino;
                record.file.ino_generation = m->ino_generation;
        }
        if ((m->prot & PROT_EXEC) == 0)
                misc |= PERF_RECORD_MISC_MMAP_DATA;
        else if ((misc & MISC_MMAP_BUILD_ID) == 0 && !r->hides && !r->p->host) /* what has that path here is another file */
                code = build_ids_add(&r->build_ids, r->writer, m->pid, m->ino, m->filename);
        if (code != 0)
                return code;
        return recorder_put_record(r, PERF_RECORD_MMAP2, misc, &record, sizeof(record), m->filename, id);
}

static int put_ksymbol(Recorder *r, const perfd_ksymbol_record *k, const RecorderId *id) {
        const struct {
                uint64_t addr;
                uint32_t len;
                uint16_t type, flags;
        } record = { .addr = k->addr, .len = k->len, .type = (uint16_t)k->type, .flags = (uint16_t)k->flags };

        return recorder_put_record(r, PERF_RECORD_KSYMBOL, 0, &record, sizeof(record), k->name, id);
}

static int put_bpf_event(Recorder *r, const perfd_bpf_event_record *b, const RecorderId *id) {
        struct {
                uint16_t type, flags;
                uint32_t id;
                uint8_t tag[8];
        } record = { .type = (uint16_t)b->type, .flags = (uint16_t)b->flags, .id = b->id };

        memcpy(record.tag, b->tag.bytes, b->tag.length < sizeof(record.tag) ? b->tag.length : sizeof(record.tag));
        return recorder_put_record(r, PERF_RECORD_BPF_EVENT, 0, &record, sizeof(record), RECORDER_NO_TEXT, id);
}

/* One that waited. */
static int put_waiting(void *userdata, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        Recorder *r = userdata;
        RecorderMmap2 m;
        int code = 0;

        if (type == PERF_RECORD_MMAP2 && (misc & (PERF_RECORD_MISC_MMAP_DATA | MISC_MMAP_BUILD_ID)) == 0) {
                const char *path = (const char *)bytes + sizeof(m); /* ends with a zero */

                memcpy(&m, bytes, sizeof(m));
                code = build_ids_add(&r->build_ids, r->writer, m.pid, m.file.ino, (perfd_text){ .bytes = path, .length = strlen(path) });
        }
        if (r->state)
                recorder_state_take(r->state, type, misc, bytes, n);
        return code == 0 ? perfd_recording_writer_put(r->writer, type, misc, bytes, n) : code;
}

int recorder_put_sampled(Recorder *r, uint32_t pid) {
        return r->others ? others_give(r->others, pid, put_waiting, r) : 0;
}

static int put_side_record(Recorder *r, const perfd_item *item) {
        const perfd_event *e = perfd_item_event(item);
        const RecorderId id = { .pid = perfd_item_pid(item), .tid = perfd_item_tid(item), .time = perfd_item_time(item),
                                .cpu = perfd_item_cpu(item), .id = e ? e->id : r->events[0]->id };
        const uint64_t lost[2] = { id.id, perfd_item_lost(item) };

        switch (perfd_item_record(item)) {
        case PERFD_COMM:
                return put_comm(r, perfd_item_comm_record(item), &id);
        case PERFD_FORK:
                note_child(r, perfd_item_task_record(item));
                return put_task(r, PERF_RECORD_FORK, perfd_item_task_record(item), &id);
        case PERFD_EXIT:
                task_names_forget(&r->remote.tasks, perfd_item_task_record(item)->tid);
                pid_set_remove(r->named, perfd_item_task_record(item)->tid);
                return put_task(r, PERF_RECORD_EXIT, perfd_item_task_record(item), &id);
        case PERFD_MMAP2:
                return put_mmap2(r, perfd_item_mmap2_record(item), &id);
        case PERFD_KSYMBOL:
                return put_ksymbol(r, perfd_item_ksymbol_record(item), &id);
        case PERFD_BPF_EVENT:
                return put_bpf_event(r, perfd_item_bpf_event_record(item), &id);
        case PERFD_LOST:
                r->n_lost += lost[1];
                return recorder_put_record(r, PERF_RECORD_LOST, 0, lost, sizeof(lost), RECORDER_NO_TEXT, &id);
        case PERFD_LOST_SAMPLES:
                r->n_lost += lost[1];
                return recorder_put_record(r, PERF_RECORD_LOST_SAMPLES, 0, &lost[1], sizeof(lost[1]), RECORDER_NO_TEXT, &id);
        default:
                return 0; /* nobody has asked for it */
        }
}

static bool is_of_others(Others *o, const perfd_item *item) {
        switch (perfd_item_record(item)) {
        case PERFD_COMM:
                return others_has(o, perfd_item_comm_record(item)->pid);
        case PERFD_FORK:
                return others_has_child(o, perfd_item_task_record(item)->pid, perfd_item_task_record(item)->ppid);
        case PERFD_EXIT:
                return others_has(o, perfd_item_task_record(item)->pid);
        case PERFD_MMAP2:
                return others_has(o, perfd_item_mmap2_record(item)->pid);
        default:
                return false;
        }
}

int recorder_put_side_record(Recorder *r, const perfd_item *item) {
        int code;

        r->hides = r->others && is_of_others(r->others, item);
        code = put_side_record(r, item);
        r->hides = false;
        return code;
}
