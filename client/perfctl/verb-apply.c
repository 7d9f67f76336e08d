/* A configuration that is tried, or made by a program: it holds until the daemon reads its own again. */
#include <stdlib.h>

#include "client/perfctl/input-file.h"
#include "client/perfctl/reload.h"

static int apply_bytes(Perfctl *p, const char *bytes, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_apply(p->client, bytes, n, p->arguments[0], perfctl_get(p, "allow-pending") != NULL, &result) != 0)
                return reload_fail(
                        p,
                        "nothing is changed; with --allow-pending all else is, and this event is opened when it can be");
        reload_print(p, result);
        return PERFCTL_OK;
}

static int apply_run(Perfctl *p) {
        char *bytes = NULL;
        size_t n = 0;
        int r = input_file_read(p, p->arguments[0], &bytes, &n);

        if (r != 0)
                return r;
        r = apply_bytes(p, bytes, n);
        free(bytes);
        return r;
}

const Verb verb_apply = {
        .name = "apply",
        .arguments = "FILE",
        .help = "apply a configuration until the next reload",
        .options = {
                { .name = "allow-pending", .help = "events that cannot be opened now stay pending" },
        },
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .run = apply_run,
};
