/* The daemon reads its configuration again; the whole of it comes to hold, or nothing does. */
#include "client/perfctl/json.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/reload.h"

void reload_print(Perfctl *p, const perfd_result *result) {
        const perfd_reload_row *row = perfd_result_reload(result);
        Json j = json_of(&p->out);
        char size[QUANTITY_SIZE];

        if (!p->json) {
                output_print(&p->out, "added %u, removed %u, changed %u, kept %u", row->added, row->removed, row->changed,
                             row->kept);
                if (row->pending > 0)
                        output_print(&p->out, ", pending %u", row->pending);
                if (row->ring_size > 0)
                        output_print(&p->out, ", rings of %s now", quantity_show_size(row->ring_size, size));
                output_print(&p->out, "\n");
                if (row->pending > 0)
                        (void)perfctl_fail(p, PERFCTL_OK, "%u events cannot be opened now: `perfctl list` says why", row->pending);
                return;
        }
        json_begin(&j, '{');
        JSON_NUMBER(&j, "added", row->added);
        JSON_NUMBER(&j, "removed", row->removed);
        JSON_NUMBER(&j, "changed", row->changed);
        JSON_NUMBER(&j, "kept", row->kept);
        JSON_NUMBER(&j, "pending", row->pending);
        if (row->ring_size > 0)
                JSON_NUMBER(&j, "ring_size", row->ring_size);
        json_end(&j, '}');
        json_end_line(&j);
}

static int reload_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_reload(p->client, &result) != 0)
                return perfctl_fail_client(p, NULL);
        reload_print(p, result);
        return PERFCTL_OK;
}

const Verb verb_reload = {
        .name = "reload",
        .arguments = "",
        .help = "reload the configuration of the daemon",
        .run = reload_run,
};
