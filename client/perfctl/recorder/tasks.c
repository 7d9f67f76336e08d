/*
 * /proc as records: without them a reader names no address of a program that ran before. A task that ends while it is read is left out: what it
 * does afterwards the stream says.
 */
#include "client/perfctl/recorder/tasks.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/perfctl/names/running-modules.h"
#include "client/perfctl/names/running-tasks.h"

#define LINE ((size_t)4352) /* bytes: more than those of /proc/kallsyms have */

static RecorderId id_of(const Recorder *r, uint32_t pid, uint32_t tid) {
        return (RecorderId){ .pid = pid, .tid = tid, .id = r->events[0]->id };
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------------- */

static int put_comm(void *userdata, uint32_t pid, uint32_t tid, perfd_text comm) {
        Recorder *r = userdata;
        const uint32_t tasks[2] = { pid, tid };
        const RecorderId id = id_of(r, pid, tid);

        proc_tasks_set_written(&r->early, pid);
        pid_set_add(r->named, tid);
        if (r->others)
                (void)others_add_recorded(r->others, pid);
        return recorder_put_record(r, PERF_RECORD_COMM, 0, tasks, sizeof(tasks), comm, &id);
}

static int put_mmap2(void *userdata, const RunningMapping *running) {
        Recorder *r = userdata;
        const perfd_mapping *of = &running->mapping;
        const RecorderId id = id_of(r, of->pid, of->pid);
        const RecorderMmap2 m = { .pid = of->pid, .tid = of->pid, .addr = of->start, .len = of->length, .pgoff = of->offset,
                                  .file = { .maj = of->maj, .min = of->min, .ino = of->ino }, .prot = running->prot, .flags = running->flags };

        const uint32_t of_data = running->prot & PROT_EXEC ? 0 : PERF_RECORD_MISC_MMAP_DATA;

        const int code = of_data == 0 ? build_ids_add(&r->build_ids, r->writer, of->pid, of->ino, of->path) : 0;

        if (code != 0)
                return code;
        return recorder_put_record(r, PERF_RECORD_MMAP2, (uint16_t)(PERF_RECORD_MISC_USER | of_data), &m, sizeof(m), of->path, &id);
}

static int put_processes(Recorder *r) {
        const RunningTasks tasks = { .userdata = r, .pids = r->pids, .n_pids = r->n_pids, .has_files = recorder_unwinds(r), .comm = put_comm, .mapping = put_mmap2 };

        int code = r->n_pids > 0 ? running_tasks_read(&tasks) : proc_tasks_put(&r->here, &tasks);

        return code == 0 ? proc_tasks_put(&r->early, &tasks) : code;
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------------- */

/* MMAP of what all processes have: pid -1. */
static int put_kernel_mmap(Recorder *r, uint64_t addr, uint64_t len, uint64_t pgoff, const char *name) {
        const struct {
                uint32_t pid, tid;
                uint64_t addr, len, pgoff;
        } m = { .pid = UINT32_MAX, .addr = addr, .len = len, .pgoff = pgoff };
        const RecorderId id = id_of(r, 0, 0);

        return recorder_put_record(r, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &m, sizeof(m),
                                   (perfd_text){ .bytes = name, .length = strlen(name) }, &id);
}

/*
 * As many bytes as the kernel's text has, of x86-64, where the resource is exactly that: /proc/kallsyms makes most of its lines before _etext,
 * which takes 0.1 s. 0: it is not said, or not to this user.
 */
static uint64_t text_size(void) {
        uint64_t first = 0, last = 0;
#if defined(__x86_64__)
        static char line[LINE];
        FILE *f = fopen("/proc/iomem", "re");

        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, " : Kernel code") && sscanf(line, " %" SCNx64 "-%" SCNx64, &first, &last) == 2)
                        break;
        if (f)
                (void)fclose(f);
#endif
        return first > 0 && last > first ? last + 1 - first : 0;
}

/* "ffffffff81000000 T _text" */
static bool is_symbol(const char *line, const char *name, uint64_t *ret) {
        const size_t n = strlen(name);
        const char *at = strchr(line, ' ');

        if (!at || strncmp(at + 3, name, n) != 0 || (at[3 + n] != '\n' && at[3 + n] != '\0'))
                return false;
        *ret = strtoull(line, NULL, 16);
        return true;
}

/* Addresses are 0 for who may not read them: kernel.kptr_restrict. */
static int put_kernel(Recorder *r) {
        static char line[LINE];
        const uint64_t size = text_size();
        uint64_t text = 0, end = 0;
        FILE *f = fopen("/proc/kallsyms", "re");

        while (f && end == 0 && fgets(line, sizeof(line), f))
                if (is_symbol(line, "_text", &text))
                        end = size > 0 ? text + size : 0;
                else if (is_symbol(line, "_etext", &end))
                        break;
        if (f)
                (void)fclose(f);
        return text > 0 && end > text ? put_kernel_mmap(r, text, end - text, text, "[kernel.kallsyms]_text") : 0;
}

static int put_module(void *userdata, const RunningModule *m) {
        return put_kernel_mmap(userdata, m->start, m->length, 0, m->path);
}

/* Processes first: they may end. */
int recorder_put_tasks(Recorder *r) {
        int code = put_processes(r);

        if (code == 0)
                code = put_kernel(r);
        return code == 0 ? running_modules_read(put_module, r) : code;
}
