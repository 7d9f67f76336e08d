#include "client/perfctl/fleet/streams.h"

static void on_item(void *userdata, const perfd_fleet_stream *s, const perfd_item *item) {
        FleetStreams *l = userdata;

        l->item(l, s, item);
}

static void on_gap(void *userdata, const perfd_fleet_stream *s, const perfd_gap *gap) {
        FleetStreams *l = userdata;

        l->gap(l, s, gap);
}

/* Of a stream the first one; how many there were is said at the end. */
static void on_refused(void *userdata, const perfd_fleet_stream *s, const char *why) {
        FleetStreams *l = userdata;

        if (s && s->damaged + s->undescribed == 1)
                (void)perfctl_fail(l->p, 0, "route %s of %s: a packet cannot be read: %s", s->route, s->host, why);
        else if (!s && perfd_fleet_get_counts(l->fleet)->refused == 1 && perfd_fleet_get_counts(l->fleet)->foreign == 0)
                (void)perfctl_fail(l->p, 0, "%s: name a route, or hosts by --host", why);
}

void fleet_streams_init(FleetStreams *l, bool is_from_oldest) {
        perfd_fleet_options options = PERFD_FLEET_OPTIONS_INIT;
        perfd_fleet_callbacks callbacks = PERFD_FLEET_CALLBACKS_INIT;

        options.from_oldest = is_from_oldest;
        options.missing = "expired"; /* the consumers here get all that JetStream has */
        options.max_streams = FLEET_STREAMS_MAX;
        callbacks.item = l->item ? on_item : NULL;
        callbacks.gap = l->gap ? on_gap : NULL;
        callbacks.refused = on_refused;
        (void)perfd_fleet_new(&options, &callbacks, l, &l->fleet);
        must_have(l->fleet);
}

static int describe(FleetStreams *l) {
        perfd_fleet_message m;
        int r;

        do {
                r = fleet_source_find(l->source, perfd_fleet_needed(l->fleet), &m);
                if (r > 0)
                        return r;
                r = perfd_fleet_describe(l->fleet, r == 0 ? &m : NULL);
        } while (r == PERFD_E_NEEDED);
        must_have(r == 0 ? l : NULL);
        return 0;
}

bool fleet_stream_may_lack(const perfd_fleet_stream *s) {
        return s->state == PERFD_FLEET_CUT || s->n_lost > 0 || s->missing > 0 || s->damaged + s->undescribed > 0;
}

static void forget_one(FleetStreams *l) {
        const perfd_fleet_stream *s, *oldest = perfd_fleet_get_stream(l->fleet, 0);

        for (size_t i = 1; (s = perfd_fleet_get_stream(l->fleet, i)); i++)
                if (s->last_stored < oldest->last_stored)
                        oldest = s;
        l->has_lost = l->has_lost || fleet_stream_may_lack(oldest);
        l->n_cut += oldest->state == PERFD_FLEET_CUT;
        (void)perfd_fleet_forget(l->fleet, oldest);
}

int fleet_streams_take(FleetStreams *l, const FleetMessage *m) {
        int r = 0, k;

        if (l->may_forget && perfd_fleet_get_stream(l->fleet, FLEET_STREAMS_MAX - 1)) /* so there is room for another one */
                forget_one(l);
        while (r == 0 && (k = perfd_fleet_take(l->fleet, &m->raw)) != 0) {
                must_have(k == PERFD_E_NEEDED ? l : NULL);
                r = describe(l);
        }
        return r;
}

bool fleet_streams_wait_for_part(const FleetStreams *l) {
        return perfd_fleet_get_counts(l->fleet)->waiting > 0;
}

/* It is believed as far as its sums are right: they say what should be there. */
int fleet_streams_reckon(FleetStreams *l, const FleetMessage *about, const perfd_route_status *status) {
        perfd_fleet_reckoning known = PERFD_FLEET_RECKONING_INIT;
        bool is_all = status->stored == status->sequence;
        int r;

        if (status->stored == 0 || !status->balanced || status->stored_matched > status->matched || status->stored > status->sequence)
                return 0;
        known.host = about->host;
        known.route = status->name;
        known.machine = about->machine;
        known.boot = about->boot;
        known.epoch = status->epoch;
        known.sequence = status->stored;
        known.matched = status->stored_matched;
        known.lost = is_all ? status->lost : NULL;
        known.n_lost = is_all ? status->n_lost : 0;
        known.ended = is_all && status->ended;
        r = perfd_fleet_reckon(l->fleet, &known);
        must_have(r >= 0 ? l : NULL);
        return r == 0 ? 0 : perfctl_fail(l->p, PERFCTL_FAILED, "route %s of %s does not balance: more has come than its relay says has matched",
                                         status->name, about->host);
}

/* The number of items is nobody's: perfd or the relay had them, and is gone. */
static void say_cut(const FleetStreams *l, unsigned long long n) {
        if (n > 0)
                (void)perfctl_fail(l->p, 0, "%llu stream%s without an end: what was not published of %s is lost, in no count", n,
                                   n == 1 ? " was cut off" : "s were cut off", n == 1 ? "it" : "them");
}

void fleet_streams_say(const FleetStreams *l) {
        const perfd_fleet_counts *counts = l->fleet ? perfd_fleet_get_counts(l->fleet) : NULL;
        unsigned long long n_alien = l->n_alien + (counts ? counts->foreign : 0);
        unsigned long long n_cut = l->n_cut;
        const perfd_fleet_stream *s;

        if (n_alien > 0)
                (void)perfctl_fail(l->p, 0, "%llu messages are not of a relay, and were skipped", n_alien);
        if (counts && counts->refused > 0)
                (void)perfctl_fail(l->p, 0, "%llu messages are of too many streams, and were skipped", (unsigned long long)counts->refused);
        for (size_t i = 0; counts && (s = perfd_fleet_get_stream(l->fleet, i)); i++) {
                n_cut += s->state == PERFD_FLEET_CUT;
                if (s->damaged + s->undescribed > 1)
                        (void)perfctl_fail(l->p, 0, "route %s of %s: %llu packets cannot be read", s->route, s->host,
                                           (unsigned long long)(s->damaged + s->undescribed));
        }
        say_cut(l, n_cut);
}

void fleet_streams_deinit(FleetStreams *l) {
        perfd_fleet_free(l->fleet);
}
