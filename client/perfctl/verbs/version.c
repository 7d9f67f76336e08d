/* Ours, and that of the daemon, which connecting has told. */
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/text.h"

static int version_run(Perfctl *p) {
        Json j = json_of(&p->out);
        int r = perfctl_connect(p);
        const char *daemon = r == 0 ? perfd_client_version(p->client) : NULL;

        if (!p->json) {
                output_print(&p->out, "perfctl %s\n", PERFD_VERSION);
                if (daemon) {
                        output_put_string(&p->out, "perfd ");
                        text_put_string(&p->out, daemon);
                        output_put_char(&p->out, '\n');
                }
                return r;
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "perfctl", PERFD_VERSION);
        if (daemon)
                JSON_STRING(&j, "perfd", daemon);
        json_end(&j, '}');
        json_end_line(&j);
        return r;
}

const Verb verb_version = {
        .name = "version",
        .arguments = "",
        .help = "show the versions of perfctl and of the daemon",
        .hosts = HOSTS_EACH,
        .run = version_run,
};
