/* /proc(5) has them as lines. */
#include "client/perfctl/names/running-tasks.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE ((size_t)4352) /* bytes: a path and what stands before it in /proc/PID/maps */
#define COMM 16
#define DEPTH_MAX 4096U /* of ancestors: they change while they are read, and never go round for ever */

static int read_comm(const RunningTasks *t, uint32_t pid, uint32_t tid) {
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
        return n == 0 ? 0 : t->comm(t->userdata, pid, tid, (perfd_text){ .bytes = comm, .length = n });
}

/* "7f00-7f80 r-xp 00001000 fd:01 1234   /usr/lib/libc.so.6": what can be executed, or is of a file. */
static int read_mapping(const RunningTasks *t, uint32_t pid, char *line) {
        RunningMapping m = { .mapping = PERFD_MAPPING_INIT };
        uint64_t end;
        char rights[5];
        int at = 0;
        char *name, anonymous[] = "//anon"; /* as perf has it */

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 "%n", &m.mapping.start, &end, rights,
                   &m.mapping.offset, &m.mapping.maj, &m.mapping.min, &m.mapping.ino, &at) < 7 || end < m.mapping.start)
                return 0;
        if (rights[2] != 'x' && !(t->has_files && m.mapping.ino > 0))
                return 0;
        m.mapping.pid = pid;
        m.mapping.length = end - m.mapping.start;
        m.prot = (rights[2] == 'x' ? PROT_EXEC : 0) | (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0);
        m.flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
        name = line + at + strspn(line + at, " ");
        name[strcspn(name, "\n")] = '\0';
        if (!*name)
                name = anonymous;
        m.mapping.path = (perfd_text){ .bytes = name, .length = strlen(name) };
        return t->mapping(t->userdata, &m);
}

static int read_maps(const RunningTasks *t, uint32_t pid) {
        static char line[LINE]; /* there is one thread */
        char path[64];
        FILE *f;
        int code = 0;

        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
        f = fopen(path, "re");
        while (f && code == 0 && fgets(line, sizeof(line), f))
                code = read_mapping(t, pid, line);
        if (f)
                (void)fclose(f);
        return code;
}

static int read_threads(const RunningTasks *t, uint32_t pid) {
        const struct dirent *e;
        char path[64];
        int code = 0;
        DIR *d;

        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
        d = opendir(path);
        while (d && code == 0 && (e = readdir(d))) {
                const unsigned long tid = strtoul(e->d_name, NULL, 10);

                if (tid > 0 && tid != pid)
                        code = read_comm(t, pid, (uint32_t)tid);
        }
        if (d)
                (void)closedir(d);
        return code;
}

static int read_process(const RunningTasks *t, uint32_t pid) {
        int code = t->comm ? read_comm(t, pid, pid) : 0;

        if (code == 0 && t->comm)
                code = read_threads(t, pid);
        return code == 0 ? read_maps(t, pid) : code;
}

/* "4711 (a name) S 1 ...": a name may have parentheses too. 0: none, or it has ended. */
static uint32_t parent_of(uint32_t pid) {
        char path[64], line[128]; /* all up to there: names have 15 bytes, those of the kernel's workers 63 */
        uint32_t parent = 0;
        const char *behind;
        size_t n;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
        f = fopen(path, "re");
        if (!f)
                return 0;
        n = fread(line, 1, sizeof(line) - 1, f);
        (void)fclose(f);
        line[n] = '\0';
        behind = strrchr(line, ')');
        return behind && sscanf(behind, ") %*c %" SCNu32, &parent) == 1 ? parent : 0;
}

static bool is_asked_for(const RunningTasks *t, uint32_t pid) {
        if (t->n_pids == 0)
                return true;
        for (unsigned depth = 0; pid > 0 && depth < DEPTH_MAX; depth++) {
                for (size_t i = 0; i < t->n_pids; i++)
                        if (t->pids[i] == pid)
                                return true;
                pid = parent_of(pid);
        }
        return false;
}

int running_tasks_read(const RunningTasks *t) {
        const struct dirent *e;
        DIR *d = opendir("/proc");
        int code = 0;

        while (d && code == 0 && (e = readdir(d)))
                if (isdigit((unsigned char)e->d_name[0])) {
                        const uint32_t pid = (uint32_t)strtoul(e->d_name, NULL, 10);

                        code = is_asked_for(t, pid) ? read_process(t, pid) : 0;
                }
        if (d)
                (void)closedir(d);
        return code;
}
