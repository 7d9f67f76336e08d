/* What the relays of many hosts have published to NATS: who does, what was lost on the way, and the items. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/perfctl/fleet-ledger.h"
#include "client/perfctl/item-print.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/signals.h"
#include "client/perfctl/text.h"

#define WAIT_MS 200 /* for a message, until signals are looked at */

typedef struct Fleet {
        FleetStreams streams; /* the first member: an item knows only this */
        Perfctl *p;
        ItemText text;
        Output item; /* the JSON of one, which has to begin with its host */
} Fleet;

static const char *host_glob(const Perfctl *p) {
        return p->hosts.n > 0 ? p->hosts.items[0] : NULL;
}

/* ---- watch -------------------------------------------------------------------------------------------------------- */

/* An item longer than its block has been written to the fd meanwhile. */
static void put_json_of_item(Fleet *f, const FleetStream *s) {
        Output *to = &f->p->out;

        output_put_string(to, "{\"host\":");
        json_quote(to, s->about.host, strlen(s->about.host));
        output_put_char(to, ',');
        if (f->item.n_flushed > 0) {
                char bytes[4096];
                ssize_t n;
                off_t at = 1;

                output_flush(&f->item);
                for (; (n = pread(f->item.fd, bytes, sizeof(bytes), at)) > 0; at += n)
                        output_put(to, bytes, (size_t)n);
                (void)!ftruncate(f->item.fd, 0);
                (void)lseek(f->item.fd, 0, SEEK_SET);
        } else {
                output_put(to, f->item.bytes + 1, f->item.n - 1);
        }
        f->item.n = f->item.n_flushed = 0;
}

static void begin_line(Fleet *f, const FleetStream *s) {
        f->text.time.wall_offset = s->wall_offset;
        if (f->p->json)
                return;
        text_put_string(&f->p->out, s->about.host);
        output_put_char(&f->p->out, '\t');
}

static void watch_item(FleetStream *s, const perfd_item *item) {
        Fleet *f = (Fleet *)s->streams;

        begin_line(f, s);
        if (!f->p->json) {
                item_print_text(&f->text, item);
                return;
        }
        item_print_json(&f->item, NULL, item, perfd_item_time(item) + (uint64_t)s->wall_offset, false);
        put_json_of_item(f, s);
}

static void watch_gap(FleetStream *s, const perfd_gap *gap) {
        Fleet *f = (Fleet *)s->streams;

        begin_line(f, s);
        if (!f->p->json) {
                gap_print_text(&f->text, gap);
                return;
        }
        gap_print_json(&f->item, gap);
        put_json_of_item(f, s);
}

static int watch_begin(Fleet *f) {
        f->streams.calls = (FleetCalls){ .item = watch_item, .gap = watch_gap };
        f->text = (ItemText){ .out = &f->p->out, .time = { .form = TIME_WALL }, .has_heading = true };
        output_init(&f->item, memfd_create("item", MFD_CLOEXEC));
        if (f->item.fd < 0)
                return perfctl_fail(f->p, PERFCTL_FAILED, "memfd_create(2) fails");
        return signals_catch(f->p, false);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

/* Until the end that was there at the beginning; `is_endless`: until a signal, or nobody reads what is printed. */
static int read_all(Fleet *f, bool is_endless) {
        const char *glob = host_glob(f->p);
        FleetMessage m;
        int r = 0;

        while (r == 0 && (is_endless ? !f->p->out.error && !signals_take().end : !fleet_source_is_through(f->streams.source))) {
                int k = fleet_source_next(f->streams.source, is_endless ? WAIT_MS : 10000, &m);

                if (k == FLEET_E_NONE && is_endless)
                        output_flush(&f->p->out);
                else if (k == FLEET_E_NONE)
                        r = perfctl_fail(f->p, PERFCTL_UNREACHABLE, "JetStream gives no message within 10 s");
                else if (k == FLEET_E_ALIEN)
                        f->streams.n_alien++;
                else if (k != 0)
                        r = k;
                else if (!glob || fnmatch(glob, m.host, 0) == 0)
                        r = fleet_streams_take(&f->streams, &m);
        }
        if (f->streams.n_alien > 0)
                (void)perfctl_fail(f->p, 0, "%zu messages are not of a relay, and were skipped", f->streams.n_alien);
        return r;
}

static int check_arguments(const Perfctl *p, bool is_watch) {
        if (!is_watch && strcmp(p->arguments[0], "ledger") != 0 && strcmp(p->arguments[0], "hosts") != 0)
                return perfctl_fail(p, PERFCTL_USAGE, "'%s': expected hosts, ledger or watch", p->arguments[0]);
        if (is_watch != (p->n_arguments == 2))
                return perfctl_fail(p, PERFCTL_USAGE, is_watch ? "watch needs the name of a route" : "only watch has an argument");
        if (is_watch && strspn(p->arguments[1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != strlen(p->arguments[1]))
                return perfctl_fail(p, PERFCTL_USAGE, "'%s' cannot be the name of a route, which has letters, digits, '-' and '_'",
                                    p->arguments[1]);
        if (!perfctl_get(p, "nats"))
                return perfctl_fail(p, PERFCTL_USAGE, "--nats is missing: the address of a server, such as nats://127.0.0.1:4222");
        return 0;
}

static int fleet_run(Perfctl *p) {
        bool is_watch = strcmp(p->arguments[0], "watch") == 0, is_from_oldest = !is_watch || perfctl_get(p, "all");
        const char *stream = perfctl_get(p, "stream");
        Fleet *f = must_have(calloc(1, sizeof(*f)));
        int r = check_arguments(p, is_watch);

        f->p = f->streams.p = p;
        f->streams.is_from_oldest = is_from_oldest;
        f->item.fd = -1;
        if (r == 0 && is_watch)
                r = watch_begin(f);
        if (r == 0)
                r = fleet_source_open(p, perfctl_get(p, "nats"), stream ? stream : "perfd", is_watch ? p->arguments[1] : NULL,
                                      is_from_oldest, &f->streams.source);
        if (r == 0)
                r = read_all(f, is_watch);
        if (r == 0 && strcmp(p->arguments[0], "ledger") == 0)
                fleet_ledger_print(&f->streams);
        else if (r == 0 && !is_watch)
                fleet_hosts_print(&f->streams);
        output_flush(&p->out);
        if (r == 0)
                r = fleet_judge(&f->streams);
        fleet_streams_deinit(&f->streams);
        fleet_source_close(f->streams.source);
        if (f->item.fd >= 0)
                close(f->item.fd);
        free(f);
        return r;
}

const Verb verb_fleet = {
        .name = "fleet",
        .arguments = "WHAT [ROUTE]",
        .help = "read what relays have published to NATS: hosts, ledger, or watch ROUTE",
        .options = {
                { .name = "nats", .argument = "URL", .help = "the server: nats://HOST:PORT" },
                { .name = "stream", .argument = "NAME", .help = "of JetStream; default: perfd" },
                { .name = "all", .help = "watch from the oldest message on, not from now" },
        },
        .min_arguments = 1,
        .max_arguments = 2,
        .run = fleet_run,
};
