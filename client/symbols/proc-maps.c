/* What a process has that began before the records did: lines of /proc/PID/maps, proc_pid_maps(5). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/symbols/open-file.h"
#include "client/symbols/symbolizer.h"

#define MAPS_MAX ((size_t)32 << 20) /* bytes */

/* start-end perms offset major:minor inode path. False: it is not executable */
static bool parse(char *line, perfd_mapping *m) {
        unsigned long long start, end, offset, ino;
        unsigned maj, min;
        char permissions[5];
        int n = 0;

        if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, permissions, &offset, &maj, &min, &ino, &n) != 7 || n == 0 ||
            end <= start || !strchr(permissions, 'x'))
                return false;
        m->start = start;
        m->length = end - start;
        m->offset = offset;
        m->maj = maj;
        m->min = min;
        m->ino = ino;
        m->path = symbols_text(line[n] ? line + n : "//anon");
        return true;
}

int proc_maps_read(perfd_symbolizer *s, Process *p) {
        char path[64], *text = NULL, *rest, *line;
        size_t n;
        int r = 0, fd;

        p->was_looked_at = true;
        snprintf(path, sizeof(path), "/proc/%u/maps", p->pid);
        fd = open_file(NULL, path, NULL);
        if (fd < 0)
                return 0; /* it is gone, or not ours to look at */
        text = read_file(fd, MAPS_MAX, &n);
        close(fd);
        rest = text;
        while (r == 0 && rest && (line = strsep(&rest, "\n"))) {
                perfd_mapping m = PERFD_MAPPING_INIT;

                m.pid = p->pid;
                if (parse(line, &m))
                        r = perfd_symbolizer_map(s, &m);
        }
        free(text);
        return r;
}
