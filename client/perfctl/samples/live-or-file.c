/* perf(1) reads perf.data where no file is named; here that is for `script` alone. */
#include "client/perfctl/samples/live-or-file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/base/quantity.h"

#define MAGIC_SIZE ((size_t)8)

/* Of a file alone: to open a device can be to do something with it. */
static bool is_recording(const char *path) {
        char magic[MAGIC_SIZE];
        struct stat st;
        bool is = false;
        int fd;

        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return false;
        if (read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic)) /* of either byte order, or before Linux 2.6.31 had an order */
                is = memcmp(magic, "PERFILE2", MAGIC_SIZE) == 0 || memcmp(magic, "2ELIFREP", MAGIC_SIZE) == 0 || memcmp(magic, "PERFFILE", MAGIC_SIZE) == 0;
        close(fd);
        return is;
}

int stray_recording_check(const Perfctl *p) {
        const char *input = perfctl_get(p, "input");

        for (size_t i = 0; i < p->n_arguments; i++)
                if (is_recording(p->arguments[i]))
                        return input ? perfctl_fail(p, PERFCTL_USAGE, "'%s' is a recording, and arguments are events: one recording is read, and -i says %s",
                                                    p->arguments[i], input) :
                                       perfctl_fail(p, PERFCTL_USAGE, "'%s' is a recording, and arguments are events: -i %s reads it",
                                                    p->arguments[i], p->arguments[i]);
        return 0;
}

void live_host_tell(const Perfctl *p, uint64_t duration) {
        const bool is_here = is_recording("perf.data");
        char shown[QUANTITY_SIZE];

        if (perfctl_get(p, "input") || perfctl_get(p, "for") || p->command || p->n_events > 0)
                return;
        (void)perfctl_fail(p, PERFCTL_OK, "samples of the live host, for %s: -i %s reads %s", quantity_show_time(duration, shown),
                           is_here ? "perf.data" : "FILE", is_here ? "the recording that is here" : "a recording");
}
