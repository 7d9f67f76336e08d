/*
 * usage: hotplug-words [CPU]
 *
 * What the real kernel says on the socket of kernel/host/hotplug.c. Without an argument no CPU is touched: a uevent that is
 * made up for /dev/null is let through by the socket's filter, or not, and is no CPU's. With one, for machines that
 * are only there for tests, that CPU is taken offline and back, 20 times, and each time exactly that is to be said.
 * 77, which meson counts as skipped, if uevents cannot be made up.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/host/hotplug.h"
#include "daemon/kernel/task/tasks.h"

#define N_ROUNDS 20
#define PATIENCE_MS 10000

static void check(bool yes, const char *what) {
        if (yes)
                return;
        fprintf(stderr, "hotplug-words: not as it should be: %s\n", what);
        exit(EXIT_FAILURE);
}

static bool write_word(const char *path, const char *word) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, word, strlen(word)) == (ssize_t)strlen(word);
}

static bool is_readable(int fd, int ms) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, ms) == 1;
}

/* The kernel has put it on all sockets when the write returns. */
static int check_made_up(int fd) {
        static const char null[] = "/sys/devices/virtual/mem/null/uevent";
        uint32_t cpu;
        bool online;

        if (!write_word(null, "change")) {
                fprintf(stderr, "skipped: %s cannot be written: %s\n", null, strerror(errno));
                return 77;
        }
        check(!is_readable(fd, 0), "\"change\" does not pass the filter");
        check(write_word(null, "online"), "\"online\" can be made up");
        check(is_readable(fd, 0), "\"online\" passes the filter");
        check(hotplug_next(fd, &cpu, &online) == HOTPLUG_E_NONE, "what is not of a CPU is no event");
        check(!is_readable(fd, 0), "it is read");
        return EXIT_SUCCESS;
}

static bool is_online(uint32_t cpu) {
        _cleanup_free_ uint32_t *cpus = NULL;
        size_t n = 0;

        check(cpus_online(&cpus, &n, NULL) == 0, "the online CPUs are known");
        for (size_t i = 0; i < n; i++)
                if (cpus[i] == cpu)
                        return true;
        return false;
}

static void switch_cpu(int fd, uint32_t cpu, bool on) {
        uint32_t said = UINT32_MAX;
        bool online = !on;
        char path[64];

        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
        check(write_word(path, on ? "1" : "0"), path);
        check(is_readable(fd, PATIENCE_MS), "it is said");
        check(hotplug_next(fd, &said, &online) == 0, "it is said of a CPU");
        check(said == cpu && online == on && is_online(cpu) == on, "it is said of that CPU, and so it is");
        check(hotplug_next(fd, &said, &online) == HOTPLUG_E_NONE, "it is said once");
}

int main(int argc, char **argv) {
        _cleanup_close_ int fd = -1;
        int r = hotplug_open(&fd);

        check(r == 0, strerror(-r));
        r = check_made_up(fd);
        for (int i = 0; i < N_ROUNDS && r == 0 && argc == 2; i++) {
                switch_cpu(fd, (uint32_t)strtoul(argv[1], NULL, 10), false);
                switch_cpu(fd, (uint32_t)strtoul(argv[1], NULL, 10), true);
        }
        return r;
}
