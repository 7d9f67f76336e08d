/* A configuration that is tried, or made by a program: it holds until the daemon reads its own again. */
#include <stdlib.h>

#include "client/perfctl/events/drop-ins.h"
#include "client/perfctl/verbs/reload.h"

static int apply_files(Perfctl *p, const ConfigFiles *files) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        perfd_config_text *texts;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        config_files_tell_skipped(p, files);
        texts = config_files_texts(files);
        r = perfd_apply_all(p->client, texts, files->n, perfctl_get(p, "allow-pending") != NULL, &result);
        if (r == 0)
                reload_print(p, result);
        else
                r = reload_fail(p, texts, files->n,
                                "nothing is changed; with --allow-pending all else is, and this event is opened when it can be");
        free(texts);
        return r;
}

static int apply_run(Perfctl *p) {
        ConfigFiles files;
        int r = config_files_read(p, p->arguments[0], !perfctl_get(p, "no-drop-ins"), &files);

        if (r == 0)
                r = apply_files(p, &files);
        config_files_deinit(&files);
        return r;
}

/* A plan is for whoever may ask for the status; of several hosts nothing may be found out only when others are changed. */
static int try_run(Perfctl *p) {
        int r = plan_run(p);

        if (r == PERFCTL_OK && !perfd_client_may_change(p->client))
                return perfctl_fail(p, PERFCTL_FAILED, "apply is not granted on this connection, which may read only");
        return r;
}

const Verb verb_apply = {
        .name = "apply",
        .arguments = "FILE",
        .help = "apply a configuration until the next reload",
        .options = {
                { .name = "allow-pending", .help = "events that cannot be opened now stay pending" },
                { .name = "no-drop-ins", .help = "FILE alone" },
        },
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .hosts = HOSTS_EACH,
        .tries_first = try_run,
        .run = apply_run,
};
