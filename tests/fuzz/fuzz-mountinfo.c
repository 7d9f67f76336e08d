/*
 * Any text as /proc/self/mountinfo, /proc/cgroups and the name of a cgroup: refused with a reason, or mounts with absolute
 * paths, and a path that says the same when it is read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/cgroup/mounts.h"
#include "daemon/kernel/cgroup/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

static void check_mounts(const char *text) {
        Explanation e = EXPLANATION_NULL;
        CgroupMount *list = NULL;
        size_t n = 0;
        int r = cgroup_mounts_parse(text, &list, &n, &e);

        must_be(r == 0 || (r == REFUSED_UNSUPPORTED && !list && e.reason && e.text[0]));
        for (size_t i = 0; i < n; i++)
                must_be(list[i].path[0] == '/' && list[i].root[0] == '/' && !(list[i].is_v2 && list[i].has_perf_event));
        cgroup_mounts_free(list, n);
        must_be(cgroup_controllers_parse(text) <= CGROUP_USE_NOTHING);
}

/* A path without globs matches itself, and nothing lies below it. */
static void check_pattern(const char *name, const char *path) {
        Explanation e = EXPLANATION_NULL;
        CgroupPattern p = CGROUP_PATTERN_NULL;

        for (CgroupNaming naming = CGROUP_BY_PATH; naming <= CGROUP_BY_UNIT; naming++) {
                int r = cgroup_pattern_init(&p, naming, name, &e);

                must_be(r == 0 || (r == REFUSED_INVALID && e.reason && e.text[0]));
                if (r != 0)
                        continue;
                if (path && naming == CGROUP_BY_PATH && !cgroup_is_glob(name)) {
                        uint64_t states = cgroup_pattern_walk(&p, path);

                        must_be(cgroup_pattern_matches(&p, states) && !cgroup_pattern_goes_on(&p, states));
                        must_be(cgroup_pattern_step(&p, states, "x") == 0);
                }
                cgroup_pattern_deinit(&p);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_free_ char *text = malloc(length + 1), *path = NULL, *again = NULL;
        Explanation e = EXPLANATION_NULL;
        int r;

        must_be(text != NULL);
        memcpy(text, bytes, length);
        text[length] = '\0';
        check_mounts(text);

        r = cgroup_normalise(text, &path, &e);
        must_be(r == 0 || (r == REFUSED_INVALID && !path && e.reason && e.position >= 1 && e.position <= length + 1));
        if (r == 0) {
                must_be(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
                must_be(cgroup_normalise(path, &again, &e) == 0 && strcmp(path, again) == 0);
        }
        check_pattern(text, path);
        return 0;
}
