/* As recordings have it in client/symbols/feed.c, from items instead of records. */
#include "client/perfctl/frame-stream.h"

#include <linux/perf_event.h>
#include <string.h>

#define OF_KERNEL UINT32_MAX

FrameNames *frame_stream_new(const Perfctl *p, const perfd_start *start) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;

        options.is_remote = p->host != NULL;
        options.is_monotonic = strcmp(start->clock, "monotonic") == 0;
        return frame_names_new(&options);
}

static void take_mmap2(FrameNames *f, const perfd_item *item) {
        const perfd_mmap2_record *r = perfd_item_mmap2_record(item);
        perfd_mapping m = PERFD_MAPPING_INIT;

        m.pid = r->pid;
        m.time = perfd_item_time(item);
        m.start = r->addr;
        m.length = r->len;
        m.offset = r->pgoff;
        m.path = r->filename;
        m.build_id = r->build_id;
        m.maj = r->maj;
        m.min = r->min;
        m.ino = r->ino;
        m.ino_generation = r->ino_generation;
        if (perfd_symbolizer_map(frame_names_symbolizer(f), &m) == PERFD_E_INVALID)
                return; /* no address is in it */
        frame_names_changed(f, r->pid, m.time);
}

/* A thread has the memory of its process, which ends with its first one. */
static void take_task(FrameNames *f, const perfd_item *item) {
        const perfd_task_record *r = perfd_item_task_record(item);
        perfd_symbolizer *s = frame_names_symbolizer(f);

        if (perfd_item_record(item) == PERFD_FORK && r->pid != r->ppid) {
                must_be_done(perfd_symbolizer_fork(s, r->pid, r->ppid, perfd_item_time(item)));
                frame_names_changed(f, r->pid, perfd_item_time(item));
        } else if (perfd_item_record(item) == PERFD_EXIT && r->pid == r->tid)
                must_be_done(perfd_symbolizer_exit(s, r->pid));
}

static void take_ksymbol(FrameNames *f, const perfd_item *item) {
        const perfd_ksymbol_record *r = perfd_item_ksymbol_record(item);

        if (perfd_symbolizer_ksymbol(frame_names_symbolizer(f), perfd_item_time(item), r->addr, r->len, r->name,
                                     (r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0) == PERFD_E_INVALID)
                return;
        frame_names_changed(f, OF_KERNEL, perfd_item_time(item));
}

void frame_stream_take(FrameNames *f, const perfd_item *item) {
        const perfd_comm_record *comm;

        switch (perfd_item_record(item)) {
        case PERFD_MMAP2:
                take_mmap2(f, item);
                return;
        case PERFD_COMM:
                comm = perfd_item_comm_record(item);
                if (!comm->exec)
                        return;
                must_be_done(perfd_symbolizer_exec(frame_names_symbolizer(f), comm->pid, perfd_item_time(item)));
                frame_names_changed(f, comm->pid, perfd_item_time(item));
                return;
        case PERFD_FORK:
        case PERFD_EXIT:
                take_task(f, item);
                return;
        case PERFD_KSYMBOL:
                take_ksymbol(f, item);
                return;
        default:
                return;
        }
}
