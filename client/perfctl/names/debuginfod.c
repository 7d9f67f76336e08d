/*
 * A signal that was caught stays where it is for the verb's own loop: that it is there ends the download, and all that would follow.
 */
#include "client/perfctl/names/debuginfod.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/perfctl/base/signals.h"
#include "client/perfctl/print/progress.h"

#define N_HEX 8 /* bytes of a build id that are enough to tell it from others */
#define MIB (UINT64_C(1) << 20)

static void show(Progress *line, const perfd_download *d) {
        char hex[2 * N_HEX + 1] = "";

        for (size_t i = 0; i < d->build_id.length && i < N_HEX; i++)
                (void)sprintf(hex + 2 * i, "%02x", (unsigned char)d->build_id.bytes[i]);
        if (d->length > 0)
                progress_show_text(line, "debuginfod: %s: %" PRIu64 " of %" PRIu64 " MiB", hex, d->n / MIB, d->length / MIB);
        else
                progress_show_text(line, "debuginfod: %s: waiting for a server", hex);
}

static bool on_wait(void *userdata, const perfd_download *download) {
        static Progress line;
        struct pollfd end = { .fd = signals_fd(), .events = POLLIN }; /* -1: signals end the program at once */

        if (!download) {
                progress_end(&line);
                return true;
        }
        if (!line.is_shown)
                progress_begin_text(&line);
        show(&line, download);
        return poll(&end, 1, 0) <= 0;
}

static void on_note(void *userdata, const char *text) {
        (void)perfctl_fail(userdata, PERFCTL_OK, "%s", text);
}

/* Verbs that cannot wait for a server do not have the option. */
static bool is_given(const Perfctl *p) {
        for (size_t i = 0; i < VERB_OPTIONS_MAX && p->verb->options[i].name; i++)
                if (strcmp(p->verb->options[i].name, "debuginfod") == 0)
                        return p->options[i];
        return false;
}

void debuginfod_set_options(const Perfctl *p, perfd_symbolizer_options *options) {
        if (!is_given(p))
                return;
        options->has_debuginfod = true;
        options->userdata = (void *)p;
        options->wait = on_wait;
        options->note = on_note;
}
