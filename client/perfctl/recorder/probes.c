/*
 * The daemon defines user probes, and kernel probes with arguments, as tracepoints of tracefs, in a group of its own, and others by the PMU of
 * such probes (daemon/kernel/probe/names.h):
 *
 *     events/perfd_00012f5c3a7d91e0/p12_malloc
 *                  \__its owner___/  \_ its event: p or r, its id, and where a name has several sites, of which each has the same fields, more
 *
 * The pid is in the 22 low bits of the owner. What a PMU's probe was given as arguments has no place in a recording, and the PMU takes none.
 */
#include "client/perfctl/recorder/probes.h"

#include <ctype.h>
#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS "/sys/kernel/tracing/events/"
#define GROUP "perfd_"
#define GROUP_DIGITS ((size_t)16)
#define PID_MASK ((UINT64_C(1) << 22) - 1)

typedef struct ProbeKind {
        const char *prefix;
        const char *pmu; /* NULL: the PMU has none of these */
        char letter;
        uint64_t config; /* of the PMU */
} ProbeKind;

static const ProbeKind kinds[] = {
        { "kprobe:", "kprobe", 'p', 0 },   { "kretprobe:", "kprobe", 'r', 1 }, { "uprobe:", "uprobe", 'p', 0 },
        { "uretprobe:", "uprobe", 'r', 1 }, { "usdt:", "uprobe", 'p', 0 },
};

static const ProbeKind *kind_of(const char *event) {
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strncmp(event, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
                        return &kinds[i];
        return NULL;
}

bool probe_event_is(const char *event) {
        return kind_of(event);
}

/* ---- tracepoints ------------------------------------------------------------------------------------------------------------------ */

/* Its pid; 0: it is no group of a perfd. */
static uint32_t owner_of(const char *group) {
        const char *digits = group + strlen(GROUP);
        uint64_t owner;
        char *end;

        if (strncmp(group, GROUP, strlen(GROUP)) != 0 || strlen(digits) != GROUP_DIGITS || strspn(digits, "0123456789abcdef") != GROUP_DIGITS)
                return 0;
        owner = strtoull(digits, &end, 16);
        return (uint32_t)(owner & PID_MASK);
}

/* "p12_malloc", "p12v1_malloc", "p12_3_malloc" */
static bool is_of(const char *name, char letter, uint32_t id) {
        char *end;

        if (name[0] != letter || !isdigit((unsigned char)name[1]))
                return false;
        return strtoul(name + 1, &end, 10) == id && (*end == '_' || *end == 'v');
}

/* malloc'ed; NULL: the group has none. */
static char *find_in(const char *group, char letter, uint32_t id) {
        char *path, *found = NULL;
        const struct dirent *e;
        DIR *d;

        if (asprintf(&path, EVENTS "%s", group) < 0)
                path = must_have(NULL);
        d = opendir(path);
        free(path);
        if (!d)
                return NULL;
        while (!found && (e = readdir(d)))
                if (is_of(e->d_name, letter, id) && asprintf(&found, "%s:%s", group, e->d_name) < 0)
                        found = must_have(NULL);
        (void)closedir(d);
        return found;
}

/* Of the daemon with that pid; of the only one that has such an event, if no group is of this pid: it may be told otherwise in a container. */
static char *find_defined(DIR *d, char letter, uint32_t id, uint32_t pid) {
        char *own = NULL, *other = NULL;
        size_t n_others = 0;
        const struct dirent *e;

        while (!own && (e = readdir(d))) {
                const uint32_t owner = owner_of(e->d_name);
                char *found = owner > 0 ? find_in(e->d_name, letter, id) : NULL;

                if (!found)
                        continue;
                if (owner == (pid & PID_MASK)) {
                        own = found;
                        continue;
                }
                free(other);
                other = found;
                n_others++;
        }
        if (!own && n_others == 1)
                return other;
        free(other);
        return own;
}

static char *path_of(const char *tracepoint, const char *file) {
        const char *colon = strchr(tracepoint, ':');
        char *path;

        return asprintf(&path, EVENTS "%.*s/%s/%s", (int)(colon - tracepoint), tracepoint, colon + 1, file) < 0 ? must_have(NULL) : path;
}

bool probe_event_is_defined(const char *tracepoint) {
        char *path = path_of(tracepoint, "format");
        const bool is = access(path, R_OK) == 0;

        free(path);
        return is;
}

/* 0: it cannot be read. */
static uint64_t read_number(const char *path) {
        unsigned long long number = 0;
        FILE *f = fopen(path, "re");

        if (!f)
                return 0;
        if (fscanf(f, "%llu", &number) != 1)
                number = 0;
        (void)fclose(f);
        return number;
}

/* ---- either ----------------------------------------------------------------------------------------------------------------------- */

static bool take_tracepoint(const char *tracepoint, perfd_recorded_event *ret) {
        char *path = path_of(tracepoint, "id");

        ret->type = PERF_TYPE_TRACEPOINT;
        ret->config = read_number(path);
        ret->sample_type = PERF_SAMPLE_RAW;
        free(path);
        return ret->config > 0;
}

static bool take_pmu(const ProbeKind *kind, perfd_recorded_event *ret) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", kind->pmu);
        ret->type = (uint32_t)read_number(path);
        ret->config = kind->config;
        return ret->type > 0;
}

bool probe_event_find(const char *event, uint32_t id, uint32_t pid, perfd_recorded_event *ret, char **ret_tracepoint) {
        const ProbeKind *kind = kind_of(event);
        perfd_recorded_event found = *ret;
        char *tracepoint;
        bool is_found;
        DIR *d = opendir(EVENTS);

        *ret_tracepoint = NULL;
        if (!d || !kind) {
                if (d)
                        (void)closedir(d);
                return false; /* it is perhaps a tracepoint that this user cannot see */
        }
        tracepoint = find_defined(d, kind->letter, id, pid);
        (void)closedir(d);
        is_found = tracepoint ? take_tracepoint(tracepoint, &found) : take_pmu(kind, &found);
        if (is_found) {
                *ret = found;
                *ret_tracepoint = tracepoint;
        } else
                free(tracepoint);
        return is_found;
}
