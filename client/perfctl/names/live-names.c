/*
 * Processes that began before the stream are those of /proc when it begins; from then on side records say what changes. Of another host, or in
 * another pid namespace, /proc and files here are others', so that only a build id that comes along names anything.
 */
#include "client/perfctl/names/live-names.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/names/running-tasks.h"
#include "client/perfctl/names/symbol-cache.h"

#ifndef PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
#define PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER 1
#endif

static int any_callchain(const Perfctl *p, const char *word, bool *ret) {
        perfd_result *list = NULL;
        const perfd_event_row *row;
        const int r = perfd_list(p->client, word, &list);

        if (r == PERFD_E_REFUSED) { /* whatever it says of it: the subscription says whether it is allowed, or known */
                *ret = true;
                return 0;
        }
        if (r != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; !*ret && (row = perfd_result_event(list, i)); i++)
                *ret = row->spec->callchain != PERFD_CALLCHAIN_NONE;
        perfd_result_free(list);
        return 0;
}

int live_names_any_callchain(const Perfctl *p, const EventWords *words, bool *ret) {
        int r = 0;

        *ret = false;
        if (words->n == 0)
                return any_callchain(p, NULL, ret);
        for (size_t i = 0; i < words->n && r == 0 && !*ret; i++)
                r = any_callchain(p, words->names[i], ret);
        return r;
}

/* ---- what is mapped --------------------------------------------------------------------------------------------------------------- */

static int add_running(void *userdata, const RunningMapping *m) {
        int r = perfd_symbolizer_map(frame_names_symbolizer(userdata), &m->mapping);

        must_be_done(r == PERFD_E_INVALID ? 0 : r); /* behind the last address is [vsyscall] alone */
        return 0;
}

static bool is_here(const Perfctl *p, const perfd_start *start) {
        struct utsname here;

        return !p->host && uname(&here) == 0 && strcmp(here.nodename, start->host) == 0 && strcmp(here.release, start->kernel) == 0;
}

FrameNames *live_names_new(const Perfctl *p, const perfd_start *start, bool has_records, bool has_lines) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        const bool here = is_here(p, start);
        char cache[PATH_MAX];
        FrameNames *f;

        options.is_remote = !here || !has_records;
        options.kallsyms = here ? "/proc/kallsyms" : "";
        options.is_monotonic = strcmp(start->clock, "monotonic") == 0;
        options.has_lines = has_lines;
        debuginfod_set_options(p, &options);
        symbol_cache_set_options(&options, cache);
        f = frame_names_new(&options);
        if (!here || geteuid() != 0) /* who may see where functions of the kernel lie is not known before one is looked for */
                frame_names_set_kernel(f, kernel_names_new(p));
        if (here && has_records)
                (void)running_tasks_read(&(RunningTasks){ .userdata = f, .mapping = add_running }); /* whose code is always 0 */
        return f;
}

static int feed_mapping(perfd_symbolizer *s, const perfd_mmap2_record *m, uint64_t time) {
        perfd_mapping mapping = PERFD_MAPPING_INIT;

        mapping.pid = m->pid;
        mapping.time = time;
        mapping.start = m->addr;
        mapping.length = m->len;
        mapping.offset = m->pgoff;
        mapping.path = m->filename;
        mapping.build_id = m->build_id;
        mapping.maj = m->maj;
        mapping.min = m->min;
        mapping.ino = m->ino;
        mapping.ino_generation = m->ino_generation;
        return perfd_symbolizer_map(s, &mapping);
}

static int feed(perfd_symbolizer *s, const perfd_item *item, uint32_t *ret_whose) {
        const uint64_t time = perfd_item_time(item);
        const perfd_comm_record *comm = perfd_item_comm_record(item);
        const perfd_mmap2_record *mmap = perfd_item_mmap2_record(item);
        const perfd_ksymbol_record *code = perfd_item_ksymbol_record(item);
        const perfd_task_record *task = perfd_item_task_record(item);

        if (mmap) {
                *ret_whose = mmap->pid;
                return feed_mapping(s, mmap, time);
        }
        if (comm && comm->exec) {
                *ret_whose = comm->pid;
                return perfd_symbolizer_exec(s, comm->pid, time);
        }
        if (code) {
                *ret_whose = UINT32_MAX;
                return perfd_symbolizer_ksymbol(s, time, code->addr, code->len, code->name, code->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
        }
        if (perfd_item_record(item) == PERFD_FORK) {
                *ret_whose = task->pid;
                return perfd_symbolizer_fork(s, task->pid, task->ppid, time);
        }
        return perfd_item_record(item) == PERFD_EXIT && task->pid == task->tid ? perfd_symbolizer_exit(s, task->pid) : 0;
}

void live_names_feed(FrameNames *f, const perfd_item *item) {
        uint32_t whose = 0; /* no process of user space */
        const int r = feed(frame_names_symbolizer(f), item, &whose);

        must_be_done(r == PERFD_E_INVALID ? 0 : r); /* what lies behind the last address has no name */
        if (whose > 0)
                frame_names_changed(f, whose, perfd_item_time(item));
}
