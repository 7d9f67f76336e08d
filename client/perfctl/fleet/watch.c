/* What a durable consumer has given is acknowledged when it is written, so that what was not is given again. */
#include "client/perfctl/fleet/watch.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/fleet/ledger.h"
#include "client/perfctl/fleet/streams.h"
#include "client/perfctl/item/print.h"
#include "client/perfctl/base/signals.h"
#include "client/perfctl/base/text.h"

#define WAIT_MS 200  /* for a message, until signals are looked at */
#define LATENCY_NSEC UINT64_C(50000000) /* for which lines wait for others, so that many are written at once */
#define HELD_MOST 32  /* messages that are not acknowledged: a reader that is killed is given them again */
#define HELD_WITH_PARTS 1000 /* the same, if a packet has not come as a whole */

typedef struct FleetWatch {
        FleetStreams streams; /* the first member: its callbacks know only this */
        Perfctl *p;
        ItemText text;
        Output item; /* the JSON of one, which has to begin with its host */
        uint64_t due; /* CLOCK_MONOTONIC: when what is printed has to be written; 0: nothing is */
} FleetWatch;

/* An item longer than its block has been written to the fd meanwhile. */
static void put_json_of_item(FleetWatch *f, const perfd_fleet_stream *s) {
        Output *to = &f->p->out;

        output_put_string(to, "{\"host\":");
        json_quote(to, s->host, strlen(s->host));
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

static void begin_line(FleetWatch *f, const perfd_fleet_stream *s) {
        f->text.time.wall_offset = s->wall_offset;
        if (f->p->json)
                return;
        text_put_string(&f->p->out, s->host);
        output_put_char(&f->p->out, '\t');
}

static void take_item(FleetStreams *l, const perfd_fleet_stream *s, const perfd_item *item) {
        FleetWatch *f = (FleetWatch *)l;

        begin_line(f, s);
        if (!f->p->json) {
                item_print_text(&f->text, item);
                return;
        }
        item_print_json(&f->item, NULL, item, perfd_item_time(item) + (uint64_t)s->wall_offset, false);
        put_json_of_item(f, s);
}

static void take_gap(FleetStreams *l, const perfd_fleet_stream *s, const perfd_gap *gap) {
        FleetWatch *f = (FleetWatch *)l;

        begin_line(f, s);
        if (!f->p->json) {
                gap_print_text(&f->text, gap);
                return;
        }
        gap_print_json(&f->item, gap);
        put_json_of_item(f, s);
}

static int prepare(FleetWatch *f) {
        f->streams.item = take_item;
        f->streams.gap = take_gap;
        f->text = (ItemText){ .out = &f->p->out, .time = { .form = TIME_WALL }, .has_heading = true };
        output_init(&f->item, memfd_create("item", MFD_CLOEXEC));
        if (f->item.fd < 0)
                return perfctl_fail(f->p, PERFCTL_FAILED, "memfd_create(2) fails");
        return signals_catch(f->p, false);
}

static bool is_meant(const FleetMessage *m, const char *host, const char *route) {
        return (!host || fnmatch(host, m->host, 0) == 0) && (!route || fnmatch(route, m->route, 0) == 0);
}

/* Messages that are not meant are done with too. */
static void acknowledge(FleetWatch *f) {
        size_t n = fleet_source_held(f->streams.source);

        if (n == 0 || (fleet_streams_wait_for_part(&f->streams) && n < HELD_WITH_PARTS))
                return;
        output_flush(&f->p->out);
        if (!f->p->out.error)
                fleet_source_acknowledge(f->streams.source);
}

/* Writes what has waited long enough, also while messages come without a pause. For how many ms the next one may be waited for. */
static int write_due(FleetWatch *f) {
        uint64_t now = clock_read(CLOCK_MONOTONIC);

        if (f->due > 0 && now >= f->due)
                output_flush(&f->p->out);
        if (f->p->out.n == 0)
                f->due = 0;
        else if (f->due == 0)
                f->due = now + LATENCY_NSEC;
        return f->due > 0 ? (int)((f->due - now) / 1000000) + 1 : WAIT_MS;
}

static int run(FleetWatch *f, const char *host, const char *route) {
        FleetSource *source = f->streams.source;
        bool is_ending = false;
        FleetMessage m;
        int r = 0;

        while (r == 0 && !f->p->out.error) {
                int k;

                is_ending = is_ending || signals_take().end;
                if (is_ending && fleet_source_fetched(source) == 0)
                        break;
                k = fleet_source_next(source, write_due(f), &m);
                if (k == FLEET_E_NONE) {
                        output_flush(&f->p->out);
                        acknowledge(f);
                        fleet_source_ask(source);
                } else if (k == FLEET_E_ALIEN) {
                        f->streams.n_alien++;
                } else if (k != 0) {
                        r = k;
                } else if (is_meant(&m, host, route)) {
                        r = fleet_streams_take(&f->streams, &m);
                }
                if (fleet_source_held(source) >= HELD_MOST)
                        acknowledge(f);
        }
        output_flush(&f->p->out);
        acknowledge(f);
        return r;
}

static int judge(FleetWatch *f) {
        uint64_t n = fleet_source_dropped(f->streams.source);
        uint64_t n_taken = fleet_source_taken(f->streams.source);
        int r = fleet_judge(f->p, &f->streams);

        if (n_taken > 0)
                (void)perfctl_fail(f->p, 0, "another reader of this consumer has got %llu messages", (unsigned long long)n_taken);
        if (n == 0)
                return r == PERFCTL_OK && n_taken > 0 ? PERFCTL_LOST : r;
        (void)perfctl_fail(f->p, 0, "JetStream has dropped %llu messages by its limits, of these and other routes, since this consumer has "
                           "read them last", (unsigned long long)n);
        return r == PERFCTL_OK ? PERFCTL_LOST : r;
}

int fleet_watch(Perfctl *p, FleetConnection *c, const FleetRead *read, const char *host, const char *route) {
        FleetWatch *f = must_have(calloc(1, sizeof(*f)));
        int r;

        f->p = f->streams.p = p;
        f->streams.may_forget = true;
        f->item.fd = -1;
        r = prepare(f);
        if (r == 0)
                r = fleet_source_open(c, read, &f->streams.source);
        if (r == 0) {
                fleet_streams_init(&f->streams, read->begin == FLEET_FROM_OLDEST && !fleet_source_is_resumed(f->streams.source));
                r = run(f, host, route);
        }
        fleet_streams_say(&f->streams);
        if (r == 0)
                r = judge(f);
        fleet_streams_deinit(&f->streams);
        fleet_source_close(f->streams.source);
        if (f->item.fd >= 0)
                close(f->item.fd);
        free(f);
        return r;
}
