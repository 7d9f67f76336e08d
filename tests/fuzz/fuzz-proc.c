/*
 * What /proc says of a process, whatever it says: stat, status and cgroup as one text each. What is found lies in the text,
 * and is the same whatever stands behind it that is not looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/task/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(bool yes) {
        if (!yes)
                abort();
}

/* A path is never of a line that has not two colons in front of it. */
static void check_cgroup(const char *text) {
        size_t length = SIZE_MAX;
        const char *path = process_cgroup_path(text, &length);

        if (!path)
                return;
        must_be(path >= text + 2 && path[-1] == ':' && length <= strlen(path));
        must_be(!memchr(path, '\n', length) && (path[length] == '\n' || path[length] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_free_ char *text = strndup((const char *)bytes, length), *more = NULL;
        uint32_t parent = 0, uid = 0, again = 0;
        uint64_t ticks = 0, ticks_again = 0;
        const char *line;

        must_be(text != NULL && asprintf(&more, "%s\nNoUid:\t1\n", text) > 0);
        check_cgroup(text);
        if (process_parse_stat(text, &parent, &ticks)) {
                must_be(strrchr(text, ')') != NULL);
                must_be(process_parse_stat(strrchr(text, ')'), &again, &ticks_again) && again == parent && ticks_again == ticks);
        }
        if (process_parse_uid(text, &uid)) {
                line = strstr(text, "\nUid:");
                must_be(line && process_parse_uid(line, &again) && again == uid);
                must_be(process_parse_uid(more, &again) && again == uid);
        }
        return 0;
}
