/*
 * /proc as records: without them a reader names no address of a program that ran before. A task that ends while it is read is left out: what it
 * does afterwards the stream says.
 */
#include "client/perfctl/recorder-tasks.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE ((size_t)4352) /* bytes: a path and what stands before it in /proc/PID/maps */
#define COMM 16

static RecorderId id_of(const Recorder *r, uint32_t pid, uint32_t tid) {
        return (RecorderId){ .pid = pid, .tid = tid, .id = r->events[0]->id };
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------------- */

static int put_comm(Recorder *r, uint32_t pid, uint32_t tid) {
        const uint32_t tasks[2] = { pid, tid };
        const RecorderId id = id_of(r, pid, tid);
        char path[64], comm[COMM + 1];
        FILE *f;
        size_t n;

        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", pid, tid);
        f = fopen(path, "re");
        if (!f)
                return 0;
        n = fread(comm, 1, sizeof(comm), f);
        (void)fclose(f);
        if (n > 0 && comm[n - 1] == '\n')
                n--;
        return n == 0 ? 0 : recorder_put_record(r, PERF_RECORD_COMM, 0, tasks, sizeof(tasks), (perfd_text){ .bytes = comm, .length = n }, &id);
}

/* "7f00-7f80 r-xp 00001000 fd:01 1234   /usr/lib/libc.so.6": what can be executed. */
static int put_mmap2(Recorder *r, uint32_t pid, char *line) {
        const RecorderId id = id_of(r, pid, pid);
        RecorderMmap2 m = { .pid = pid, .tid = pid };
        uint64_t end;
        char rights[5];
        int at = 0;
        char *name, anonymous[] = "//anon"; /* as perf has it */

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 "%n", &m.addr, &end, rights, &m.pgoff,
                   &m.file.maj, &m.file.min, &m.file.ino, &at) < 7 || rights[2] != 'x' || end < m.addr)
                return 0;
        m.len = end - m.addr;
        m.prot = PROT_EXEC | (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0);
        m.flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
        name = line + at + strspn(line + at, " ");
        name[strcspn(name, "\n")] = '\0';
        if (!*name)
                name = anonymous;
        return recorder_put_record(r, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &m, sizeof(m),
                                   (perfd_text){ .bytes = name, .length = strlen(name) }, &id);
}

static int put_maps(Recorder *r, uint32_t pid) {
        static char line[LINE];
        char path[64];
        FILE *f;
        int code = 0;

        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
        f = fopen(path, "re");
        while (f && code == 0 && fgets(line, sizeof(line), f))
                code = put_mmap2(r, pid, line);
        if (f)
                (void)fclose(f);
        return code;
}

static int put_process(Recorder *r, uint32_t pid) {
        const struct dirent *e;
        char path[64];
        DIR *d;
        int code = put_comm(r, pid, pid);

        if (code == 0)
                code = put_maps(r, pid);
        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
        d = opendir(path);
        while (d && code == 0 && (e = readdir(d))) {
                const unsigned long tid = strtoul(e->d_name, NULL, 10);

                if (tid > 0 && tid != pid)
                        code = put_comm(r, pid, (uint32_t)tid);
        }
        if (d)
                (void)closedir(d);
        return code;
}

static int put_processes(Recorder *r) {
        const struct dirent *e;
        DIR *d = opendir("/proc");
        int code = 0;

        while (d && code == 0 && (e = readdir(d)))
                if (isdigit((unsigned char)e->d_name[0]))
                        code = put_process(r, (uint32_t)strtoul(e->d_name, NULL, 10));
        if (d)
                (void)closedir(d);
        return code;
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

/* Addresses are 0 for who may not read them: kernel.kptr_restrict. */
static int put_kernel(Recorder *r) {
        static char line[LINE];
        uint64_t text = 0, end = 0;
        FILE *f = fopen("/proc/kallsyms", "re");

        while (f && (text == 0 || end == 0) && fgets(line, sizeof(line), f)) {
                uint64_t address;
                char name[64];

                if (sscanf(line, "%" SCNx64 " %*c %63s", &address, name) != 2)
                        continue;
                if (strcmp(name, "_text") == 0)
                        text = address;
                else if (strcmp(name, "_etext") == 0)
                        end = address;
        }
        if (f)
                (void)fclose(f);
        return text > 0 && end > text ? put_kernel_mmap(r, text, end - text, text, "[kernel.kallsyms]_text") : 0;
}

/* "ext4 1036288 1 - Live 0xffffffffc0400000" */
static int put_modules(Recorder *r) {
        static char line[LINE];
        FILE *f = fopen("/proc/modules", "re");
        int code = 0;

        while (f && code == 0 && fgets(line, sizeof(line), f)) {
                uint64_t size, address;
                char name[64], shown[sizeof(name) + 2];

                if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &size, &address) != 3 || address == 0)
                        continue;
                (void)snprintf(shown, sizeof(shown), "[%s]", name);
                code = put_kernel_mmap(r, address, size, 0, shown);
        }
        if (f)
                (void)fclose(f);
        return code;
}

int recorder_put_tasks(Recorder *r) {
        int code = put_kernel(r);

        if (code == 0)
                code = put_modules(r);
        return code == 0 ? put_processes(r) : code;
}
