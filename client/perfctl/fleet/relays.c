/* Foreign words: whose subject, headers and contents do not agree is nobody. */
#include "client/perfctl/fleet/relays.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)256 << 20)
#define SILENT_NSEC UINT64_C(30000000000)
#define TURN_MS 500
#define TURNS 20 /* in which nothing comes, until the server is given up */

static bool is_same_host(const FleetMessage *a, const FleetMessage *b) {
        return strcmp(a->host, b->host) == 0 && strcmp(a->machine, b->machine) == 0;
}

static bool is_same_run(const FleetMessage *a, const FleetMessage *b) {
        return is_same_host(a, b) && strcmp(a->boot, b->boot) == 0 && a->epoch == b->epoch;
}

static bool is_right(const perfd_relay_status *s, const FleetMessage *m) {
        return strcmp(s->host, m->host) == 0 && strcmp(s->machine, m->machine) == 0 && strcmp(s->boot, m->boot) == 0;
}

static FleetRelay *find(FleetRelays *l, const FleetMessage *m) {
        for (size_t i = l->n; i > 0; i--)
                if (is_same_run(&l->list[i - 1].about, m))
                        return &l->list[i - 1];
        if (l->n == FLEET_RELAYS_MAX)
                return NULL;
        l->list = must_have(reallocarray(l->list, l->n + 1, sizeof(*l->list)));
        l->list[l->n] = (FleetRelay){ .about = { .epoch = m->epoch } };
        return &l->list[l->n++];
}

/* An older word of the same run comes only if somebody else has written it. */
static void take(FleetRelays *l, const FleetMessage *m) {
        perfd_result *result = NULL;
        FleetRelay *r;

        if (perfd_relay_status_read(m->bytes, m->length, &result) != 0 || !is_right(perfd_result_relay_status(result), m) ||
            l->n_bytes + m->length > BYTES_MAX || !(r = find(l, m)) || m->sequence < r->about.sequence) {
                perfd_result_free(result);
                l->n_alien++;
                return;
        }
        l->n_bytes += m->length - r->about.length;
        perfd_result_free(r->result);
        r->about = *m;
        r->about.bytes = NULL;
        r->result = result;
        r->status = perfd_result_relay_status(result);
}

static int read_all(FleetRelays *l, FleetSource *source, const char *glob) {
        unsigned n_idle = 0;
        FleetMessage m;
        int r = 0;

        while (r == 0 && !fleet_source_is_through(source)) {
                int k = fleet_source_next(source, TURN_MS, &m);

                n_idle = k == FLEET_E_NONE ? n_idle + 1 : 0;
                if (k == FLEET_E_NONE && n_idle == TURNS)
                        r = perfctl_fail(l->p, PERFCTL_UNREACHABLE, "JetStream gives no message within 10 s");
                else if (k == FLEET_E_NONE)
                        fleet_source_ask(source);
                else if (k == FLEET_E_ALIEN)
                        l->n_alien++;
                else if (k != 0)
                        r = k;
                else if (!glob || fnmatch(glob, m.host, 0) == 0)
                        take(l, &m);
        }
        return r;
}

int fleet_relays_read(FleetConnection *c, const char *stream, const char *glob, FleetRelays *ret) {
        const FleetRead read = { .stream = stream, .is_status = true, .begin = FLEET_FROM_OLDEST };
        FleetSource *source = NULL;
        int r = fleet_source_open(c, &read, &source);

        if (r == FLEET_E_NONE)
                return 0;
        ret->has_stream = r == 0;
        if (r == 0)
                r = read_all(ret, source, glob);
        fleet_source_close(source);
        return r;
}

void fleet_relays_deinit(FleetRelays *l) {
        for (size_t i = 0; i < l->n; i++)
                perfd_result_free(l->list[i].result);
        free(l->list);
}

static bool is_connected(const FleetRelay *r) {
        const perfd_route_status *route;

        for (size_t i = 0; (route = perfd_result_route_status(r->result, i)); i++)
                if (route->connected)
                        return true;
        return false;
}

/* Two hosts with one name and one machine-id, which were copied, both go on: neither begins after the other's last word. */
static bool is_replaced(const FleetRelays *l, const FleetRelay *r) {
        for (size_t i = 0; i < l->n; i++)
                if (&l->list[i] != r && is_same_host(&l->list[i].about, &r->about) && l->list[i].status->start > r->status->wall)
                        return true;
        return false;
}

FleetState fleet_relay_state(const FleetRelays *l, const FleetRelay *r, uint64_t now) {
        if (is_replaced(l, r))
                return FLEET_REPLACED;
        if (strcmp(r->status->reason, "end") == 0)
                return FLEET_ENDED;
        if (now > r->about.stored && now - r->about.stored > SILENT_NSEC)
                return FLEET_SILENT;
        return is_connected(r) ? FLEET_PUBLISHING : FLEET_WAITING;
}

uint64_t fleet_relay_lost(const FleetRelay *r) {
        uint64_t sum = 0;

        for (size_t i = 0; i < r->status->n_lost; i++)
                sum += r->status->lost[i].count;
        return sum;
}
