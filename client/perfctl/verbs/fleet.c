/* What the relays of many hosts have published to NATS: who does, what was lost on the way, and the items. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/fleet/ledger.h"
#include "client/perfctl/fleet/streams.h"
#include "client/perfctl/fleet/watch.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/quantity.h"

#define TURN_MS 500
#define TURNS 20 /* in which nothing comes, until the server is given up */

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define NAME_LENGTH 64 /* relay.yaml(5) */

static const char *host_glob(const Perfctl *p) {
        return p->hosts.n > 0 ? p->hosts.items[0] : NULL;
}

/* What has no wildcard becomes a part of the subject, so that the server sends nothing else. */
static const char *name_of(const char *glob) {
        size_t length = glob ? strlen(glob) : 0;

        return length > 0 && length <= NAME_LENGTH && strspn(glob, NAME_CHARACTERS) == length ? glob : NULL;
}

static const char *stream_of(const Perfctl *p) {
        const char *stream = perfctl_get(p, "stream");

        return stream ? stream : "perfd";
}

/* ---- where to begin ----------------------------------------------------------------------------------------------- */

/* mktime() takes February 30 for March 2. */
static bool has_date(const struct tm *tm) {
        struct tm copy = *tm;

        (void)timegm(&copy);
        return copy.tm_mday == tm->tm_mday && copy.tm_mon == tm->tm_mon;
}

/* What is before 1970 is before all messages. */
static bool parse_wall(const char *text, time_t now, uint64_t *ret) {
        static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d",
                                             "%H:%M:%S", "%H:%M" };

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                struct tm tm = { .tm_isdst = -1 };
                const char *end;
                time_t seconds;

                if (forms[i][1] == 'H') { /* today */
                        (void)localtime_r(&now, &tm);
                        tm.tm_sec = 0;
                        tm.tm_isdst = -1;
                }
                end = strptime(text, forms[i], &tm);
                if (!end || *end)
                        continue;
                if (!has_date(&tm))
                        return false;
                seconds = mktime(&tm);
                *ret = seconds < 0 ? 0 : (uint64_t)seconds * 1000000000;
                return true;
        }
        return false;
}

static int parse_since(const Perfctl *p, const char *since, FleetRead *read) {
        uint64_t duration, now = (uint64_t)time(NULL) * 1000000000;

        if (quantity_parse_time(since, &duration)) {
                read->since = now > duration ? now - duration : 0;
                return 0;
        }
        if (!parse_wall(since, time(NULL), &read->since))
                return perfctl_fail(p, PERFCTL_USAGE, "--since '%s': expected a duration such as 10m, or a time such as 14:30 or "
                                    "'2026-11-27 14:30:00'%s", since, quantity_lack_of_time(since));
        if (read->since > now)
                return perfctl_fail(p, PERFCTL_USAGE, "--since '%s' is in the future: it is a time of the past; without it, watch begins now",
                                    since);
        return 0;
}

static int parse_begin(const Perfctl *p, FleetRead *read) {
        const char *since = perfctl_get(p, "since");
        int r = 0;

        read->begin = since ? FLEET_FROM_TIME : perfctl_get(p, "all") ? FLEET_FROM_OLDEST : FLEET_FROM_NOW;
        if (since && perfctl_get(p, "all"))
                return perfctl_fail(p, PERFCTL_USAGE, "--all and --since exclude each other");
        if (since)
                r = parse_since(p, since, read);
        if (r == 0 && since && read->since == 0) /* JetStream takes 0 for no time */
                read->begin = FLEET_FROM_OLDEST;
        return r;
}

/* A glob that no host matches is a mistake, or a host that is not there any more. */
static int judge_glob(const Perfctl *p, bool has_any) {
        const char *glob = host_glob(p);

        return !glob || has_any ? PERFCTL_OK
                                : perfctl_fail(p, PERFCTL_FAILED, "no host matches '%s' in the stream '%s': `perfctl fleet hosts` without --host "
                                               "has them all", glob, stream_of(p));
}

/* ---- ledger ------------------------------------------------------------------------------------------------------- */

/* Until the end that was there at the beginning. */
static int read_all(FleetStreams *l, const char *glob) {
        unsigned n_idle = 0;
        FleetMessage m;
        int r = 0;

        while (r == 0 && !fleet_source_is_through(l->source)) {
                int k = fleet_source_next(l->source, TURN_MS, &m);

                n_idle = k == FLEET_E_NONE ? n_idle + 1 : 0;
                if (k == FLEET_E_NONE && n_idle == TURNS)
                        r = perfctl_fail(l->p, PERFCTL_UNREACHABLE, "JetStream gives no message within 10 s");
                else if (k == FLEET_E_NONE)
                        fleet_source_ask(l->source);
                else if (k == FLEET_E_ALIEN)
                        l->n_alien++;
                else if (k != 0)
                        r = k;
                else if (!glob || fnmatch(glob, m.host, 0) == 0)
                        r = fleet_streams_take(l, &m);
        }
        return r;
}

/* What relays had stored when they said so, which is before the messages were read, has to be there, or has expired. */
static int reckon(FleetStreams *l, const FleetRelays *relays) {
        int r = 0;

        for (size_t i = 0; i < relays->n; i++) {
                const FleetRelay *relay = &relays->list[i];
                const perfd_route_status *route;

                for (size_t k = 0; (route = perfd_result_route_status(relay->result, k)); k++) {
                        int this = name_of(route->name) ? fleet_streams_reckon(l, &relay->about, route) : 0;

                        r = r == 0 ? this : r;
                }
        }
        return r;
}

static int ledger(Perfctl *p, FleetConnection *c) {
        const FleetRead read = { .stream = stream_of(p), .host = name_of(host_glob(p)), .begin = FLEET_FROM_OLDEST };
        FleetStreams streams = { .p = p };
        FleetRelays relays = { .p = p };
        int r = fleet_relays_read(c, read.stream, host_glob(p), &relays);

        fleet_streams_init(&streams, true);
        if (r == 0)
                r = fleet_source_open(c, &read, &streams.source);
        if (r == 0)
                r = read_all(&streams, host_glob(p));
        if (r == 0) {
                r = reckon(&streams, &relays);
                fleet_ledger_print(p, streams.fleet);
                output_flush(&p->out);
        }
        streams.n_alien += relays.n_alien;
        fleet_streams_say(&streams);
        if (r == 0)
                r = judge_glob(p, perfd_fleet_get_stream(streams.fleet, 0));
        if (r == 0)
                r = fleet_judge(p, &streams);
        fleet_streams_deinit(&streams);
        fleet_source_close(streams.source);
        fleet_relays_deinit(&relays);
        return r;
}

/* ---- hosts, watch ------------------------------------------------------------------------------------------------- */

static int hosts(Perfctl *p, FleetConnection *c) {
        FleetRelays relays = { .p = p };
        int r = fleet_relays_read(c, stream_of(p), host_glob(p), &relays);

        if (r == 0)
                r = fleet_hosts_print(p, stream_of(p), &relays);
        output_flush(&p->out);
        if (r == 0)
                r = judge_glob(p, relays.n > 0);
        if (relays.n_alien > 0)
                (void)perfctl_fail(p, 0, "%zu messages are not of a relay, and were skipped", relays.n_alien);
        fleet_relays_deinit(&relays);
        return r;
}

static int watch(Perfctl *p, FleetConnection *c) {
        const char *host = host_glob(p), *route = p->arguments[1];
        FleetRead read = { .stream = stream_of(p), .host = name_of(host), .route = name_of(route), .durable = perfctl_get(p, "durable") };
        int r = parse_begin(p, &read);

        return r == 0 ? fleet_watch(p, c, &read, host, route) : r;
}

/* ---- the verb ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *name;
        int (*run)(Perfctl *p, FleetConnection *c);
} words[] = { { "hosts", hosts }, { "ledger", ledger }, { "watch", watch } };

static int check_watch(const Perfctl *p) {
        const char *route = p->arguments[1], *durable = perfctl_get(p, "durable");
        FleetRead read;

        if (!*route || strspn(route, NAME_CHARACTERS "*?[]!") != strlen(route))
                return perfctl_fail(p, PERFCTL_USAGE, "'%s' cannot be the name of a route, which has letters, digits, '-' and '_'; a glob of "
                                    "them is allowed", route);
        if (durable && !name_of(durable))
                return perfctl_fail(p, PERFCTL_USAGE, "--durable '%s': a name has at most %d letters, digits, '-' and '_'", durable, NAME_LENGTH);
        return parse_begin(p, &read);
}

/* libnats speaks plainly with a server of any other scheme. */
static int check_address(const Perfctl *p) {
        const char *url = perfctl_get(p, "nats"), *end = url ? strstr(url, "://") : NULL;
        bool is_nats = end && strncmp(url, "nats://", strlen("nats://")) == 0, is_tls = end && strncmp(url, "tls://", strlen("tls://")) == 0;

        if (!url)
                return perfctl_fail(p, PERFCTL_USAGE, "--nats is missing: the address of a server, such as nats://127.0.0.1:4222");
        if (!end || is_nats || is_tls)
                return 0;
        return perfctl_fail(p, PERFCTL_USAGE, "--nats: an address begins with nats:// or tls://, and not with '%.*s'", (int)(end - url) + 3, url);
}

static int check_arguments(const Perfctl *p, bool is_watch) {
        int r;

        if (is_watch != (p->n_arguments == 2))
                return perfctl_fail(p, PERFCTL_USAGE, is_watch ? "watch needs the name of a route" : "only watch has an argument");
        if (!is_watch && (perfctl_get(p, "durable") || perfctl_get(p, "since") || perfctl_get(p, "all")))
                return perfctl_fail(p, PERFCTL_USAGE, "--all, --since and --durable are for watch");
        r = check_address(p);
        if (r != 0)
                return r;
        if (!name_of(stream_of(p)))
                return perfctl_fail(p, PERFCTL_USAGE, "--stream '%s': a name has at most %d letters, digits, '-' and '_', as publish.stream in "
                                    "relay.yaml(5)", stream_of(p), NAME_LENGTH);
        return is_watch ? check_watch(p) : 0;
}

static int fleet_run(Perfctl *p) {
        FleetConnection *c = NULL;
        size_t i = 0;
        int r;

        while (i < sizeof(words) / sizeof(words[0]) && strcmp(words[i].name, p->arguments[0]) != 0)
                i++;
        if (i == sizeof(words) / sizeof(words[0]))
                return perfctl_fail(p, PERFCTL_USAGE, "'%s': expected hosts, ledger or watch", p->arguments[0]);
        r = check_arguments(p, strcmp(words[i].name, "watch") == 0);
        if (r == 0)
                r = fleet_connect(p, &c);
        if (r == 0)
                r = words[i].run(p, c);
        fleet_disconnect(c);
        return r;
}

const Verb verb_fleet = {
        .name = "fleet",
        .arguments = "WHAT [ROUTE]",
        .help = "read what relays have published to NATS: hosts, ledger, or watch ROUTE",
        .options = {
                { .name = "nats", .argument = "URL", .help = "the server: nats://HOST:PORT, or tls://HOST:PORT" },
                { .name = "credentials", .argument = "FILE", .help = "of the user for the server: JWT and seed", .words = WORDS_FILES },
                { .name = "stream", .argument = "NAME", .help = "of JetStream; default: perfd" },
                { .name = "all", .help = "watch from the oldest message on, not from now" },
                { .name = "since", .argument = "TIME", .help = "watch from then on: 10m ago, or 14:30" },
                { .name = "durable", .argument = "NAME", .help = "watch goes on where the reader of this name stopped" },
        },
        .min_arguments = 1,
        .max_arguments = 2,
        .run = fleet_run,
};
