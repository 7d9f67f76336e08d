/* A configuration that is tried, or made by a program: it holds until the daemon reads its own again. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/input-file.h"
#include "client/perfctl/reload.h"

/* Of an event that may come, there is another way than to wait. */
static int fail(const Perfctl *p) {
        perfd_refusal why = perfd_client_error(p->client)->refusal;
        bool may_come = why == PERFD_REFUSED_NOT_FOUND || why == PERFD_REFUSED_DENIED || why == PERFD_REFUSED_EXHAUSTED ||
                        why == PERFD_REFUSED_UNSUPPORTED;
        int r = perfctl_fail_client(p, NULL);

        if (may_come && strcmp(perfd_client_error(p->client)->reason, "read-only") != 0 && !perfctl_get(p, "allow-pending"))
                (void)perfctl_fail(p, r, "nothing is changed; with --allow-pending all else is, and this event is opened when it can be");
        return r;
}

static int apply_bytes(Perfctl *p, const char *bytes, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_apply(p->client, bytes, n, p->arguments[0], perfctl_get(p, "allow-pending") != NULL, &result) != 0)
                return fail(p);
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
