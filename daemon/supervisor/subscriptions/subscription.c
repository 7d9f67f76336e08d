/*
 * What subscribers want, compiled for each event. Equal wishes share one subscription, so one number, one program and one
 * encoding, whatever the number of subscribers; events that come later are added to those whose patterns select them.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/glob.h"
#include "daemon/base/log.h"
#include "daemon/encode/descriptor.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/subscriptions/grants.h"
#include "daemon/supervisor/subscriptions/subscription.h"

#define NAME_COST ((size_t)128) /* of each name that a subscription has, beside its bytes: copy, place in a list, place in an index */
#define DESCRIPTORS_SIZE ((size_t)256 * 1024) /* bytes of descriptors in one packet */

Subscription *subscription_free(Subscription *u) {
        if (!u)
                return NULL;
        for (size_t i = 0; i < u->n_routes; i++)
                subscription_route_deinit(&u->routes[i]);
        free(u->routes);
        name_set_deinit(&u->patterns);
        for (size_t i = 0; i < u->n_globs; i++)
                pattern_free(u->globs[i].glob);
        free(u->globs);
        name_set_deinit(&u->fields);
        subscription_grant_free(u->grant);
        filter_free(u->filter);
        free(u->key);
        free(u);
        return NULL;
}
void subscriptions_free(Subscriptions *s) {
        for (Subscription *u = s->first, *next; u; u = next) {
                next = u->next;
                subscription_free(u);
        }
        s->first = NULL;
}

bool subscription_selects(const Subscription *u, const Event *event) {
        size_t at;
        bool any = u->patterns.list.n == 0 || name_set_find(&u->patterns, event->spec.name, &at);

        for (size_t i = 0; i < u->n_globs && !any; i++)
                any = glob_match(u->globs[i].glob, event->spec.name);
        return any && subscription_grants(u, event);
}

/* A refusal: the expression does not fit this event. */
static int subscription_add_route(Subscription *u, Registration *g, Explanation *e) {
        SubscriptionRoute route = { .registration = g };
        int r = 0;

        if (u->n_routes == u->n_routes_allocated) {
                size_t n = u->n_routes ? 2 * u->n_routes : 4;
                SubscriptionRoute *more = reallocarray(u->routes, n, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                u->routes = more;
                u->n_routes_allocated = n;
        }
        if (subscription_filter(u, g->event))
                r = filter_compile(subscription_filter(u, g->event), g->event->plan, g->event->spec.name, &route.program, e);
        if (r != 0)
                return subscription_blame(u, g->event, r, e);
        r = subscription_route_encode(&route, u);
        if (r < 0) {
                subscription_route_deinit(&route);
                return r;
        }
        u->routes[u->n_routes++] = route;
        return 0;
}

/* Of what is read or sampled with its counts. */
static int describe_counters(const Event *event, Perfd__V1__EventDescriptor *d) {
        int r = 0;

        d->interval = event->spec.interval;
        for (size_t i = 0; i < event->n_members && r == 0; i++)
                r = event_descriptor_add_counter(d, event->members[i].event, event->members[i].unit, event->members[i].scale);
        return r;
}

int subscription_describe(const Subscription *u, size_t *first, uint8_t **ret_bytes, size_t *ret_n) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        size_t size = 0, i;
        int r = 0;

        packet.events = calloc(u->n_routes + 1, sizeof(*packet.events));
        if (!packet.events)
                return error_origin(-ENOMEM);
        for (i = *first; i < u->n_routes && size < DESCRIPTORS_SIZE && r == 0; i++) {
                const Event *event = u->routes[i].registration->event;

                r = event_descriptor_new(u->routes[i].encoding, event->spec.name, event->spec.event, event->period,
                                         event->spec.frequency, event->in_ns ? "ns" : "events",
                                         &packet.events[packet.n_events]);
                if (r < 0)
                        break;
                packet.n_events++;
                r = describe_counters(event, packet.events[packet.n_events - 1]);
                size += perfd__v1__event_descriptor__get_packed_size(packet.events[packet.n_events - 1]);
        }
        size = perfd__v1__packet__get_packed_size(&packet);
        *ret_bytes = r == 0 ? malloc(size ? size : 1) : NULL;
        if (*ret_bytes) {
                *ret_n = perfd__v1__packet__pack(&packet, *ret_bytes);
                *first = i;
        } else
                r = error_origin(-ENOMEM);
        for (i = 0; i < packet.n_events; i++)
                perfd__v1__event_descriptor__free_unpacked(packet.events[i], NULL);
        free(packet.events);
        return r;
}

/* The bytes move. */
static int subscriptions_tell(Subscriptions *s, DispatcherCommand said, uint8_t *bytes, size_t n) {
        DispatcherCommand *command = malloc(sizeof(*command));

        if (!command) {
                free(bytes);
                return error_origin(-ENOMEM);
        }
        *command = said;
        command->bytes = bytes;
        command->n_bytes = n;
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

static int subscriptions_tell_described(Subscriptions *s, const Subscription *u, uint8_t *bytes, size_t n) {
        return subscriptions_tell(
                s, (DispatcherCommand){ .kind = DISPATCHER_DESCRIBE, .number = u->number, .cut = s->readers->n_cuts },
                bytes, n);
}

int subscriptions_route_event(Subscriptions *s, Registration *g) {
        for (Subscription *u = s->first; u; u = u->next) {
                size_t first = u->n_routes, n;
                uint8_t *bytes;
                int r;

                if (!subscription_selects(u, g->event))
                        continue;
                r = subscription_add_route(u, g, NULL);
                if (r > 0)
                        continue; /* without the field, nothing of this event can match */
                if (r == 0 && (r = registration_add_route(u, first)) < 0)
                        subscription_route_deinit(&u->routes[--u->n_routes]);
                if (r == 0)
                        r = subscription_describe(u, &first, &bytes, &n);
                if (r == 0)
                        r = subscriptions_tell_described(s, u, bytes, n);
                if (r < 0)
                        return r;
        }
        return 0;
}

int subscriptions_describe_event(Subscriptions *s, const Registration *g) {
        for (size_t i = 0; i < g->n_routes; i++) {
                const Subscription *u = g->routes[i].subscription;
                const Subscription one = { .routes = &u->routes[g->routes[i].at], .n_routes = 1 };
                size_t first = 0, n;
                uint8_t *bytes;
                int r = subscription_describe(&one, &first, &bytes, &n);

                if (r == 0)
                        r = subscriptions_tell_described(s, u, bytes, n);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* What subscribers are told of an event that is no more: behind everything older than `at`, to those who began by `cut`. */
typedef struct Removal {
        Subscriptions *subscriptions;
        Event *event; /* a reference */
        nsec_t at;
        uint64_t cut;
} Removal;

static void tell_removal(Subscriptions *s, const Removal *removal) {
        const Event *event = removal->event;
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;

        ref.id = event->id;
        ref.name = event->spec.name;
        packet.removed = refs;
        packet.n_removed = 1;
        for (const Subscription *u = s->first; u; u = u->next) {
                const DispatcherCommand said = {
                        .kind = DISPATCHER_REMOVED, .number = u->number, .at = removal->at, .cut = removal->cut
                };
                size_t n = perfd__v1__packet__get_packed_size(&packet);
                uint8_t *bytes;

                if (!subscription_selects(u, event))
                        continue;
                bytes = malloc(n);
                if (bytes)
                        perfd__v1__packet__pack(&packet, bytes);
                if (!bytes || subscriptions_tell(s, said, bytes, n) < 0)
                        log_print_with(LOG_WARNING, MESSAGE_NO_MEMORY, LOG_FIELDS({ "EVENT", ref.name }),
                                       "no memory to notify subscribers that %s is removed", ref.name);
        }
}

static void release_removal(Readers *s, void *object) {
        Removal *removal = object;

        if (!s->answering.is_abandoned)
                tell_removal(removal->subscriptions, removal);
        event_unref(removal->event);
        free(removal);
}

/* Behind its last sample: a reader that does not answer now still has some in its ring, and knows nothing of this. */
void subscriptions_tell_removed(Subscriptions *s, const Registration *g) {
        nsec_t now = clock_now(s->readers->attr.clock);
        Removal *removal = malloc(sizeof(*removal));

        if (!removal) {
                log_print_with(LOG_WARNING, MESSAGE_NO_MEMORY, LOG_FIELDS({ "EVENT", g->event->spec.name }),
                               "no memory to notify subscribers that %s is removed", g->event->spec.name);
                return;
        }
        *removal = (Removal){ .subscriptions = s, .event = event_ref(g->event), .at = g->latest > now ? g->latest : now, .cut = s->readers->n_cuts };
        readers_defer(s->readers, release_removal, removal);
}

static int take_globs(Subscription *u, Explanation *e) {
        const Strings *names = &u->patterns.list;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < names->n; i++)
                n += text_is_glob(names->items[i]);
        if (n > GLOBS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-names",
                              "a subscription has at most %d different globs, and this one has %zu: name the events, or use "
                              "wider globs", GLOBS_MAX, n);
        u->globs = calloc(n + 1, sizeof(*u->globs));
        if (!u->globs)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < names->n && r == 0; i++) {
                if (!text_is_glob(names->items[i]))
                        continue;
                r = glob_compile(names->items[i], &u->globs[u->n_globs].glob, e);
                if (r == 0)
                        u->globs[u->n_globs++].text = names->items[i];
        }
        return r;
}

/* Each name once: what follows is made for each of them, and for each event. */
static int subscription_take_names(Subscription *u, const Perfd__V1__SubscribeRequest *q, Explanation *e) {
        bool more;
        int r = name_set_fill(&u->patterns, q->events, q->n_events, PATTERNS_MAX, &more, e);

        if (r == 0 && more)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-names",
                              "a subscription names at most %d different events or globs, the limit of events: name fewer, or "
                              "none for all events", PATTERNS_MAX);
        if (r == 0)
                r = take_globs(u, e);
        if (r == 0)
                r = name_set_fill(&u->fields, q->fields, q->n_fields, FIELDS_MAX, &more, e);
        if (r == 0 && more)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-names",
                              "a subscription names at most %d different fields: name fewer, or none for all fields", FIELDS_MAX);
        return r;
}

static int subscription_make_key(Subscription *u, StreamOrder order) {
        _cleanup_free_ char *filter = u->filter ? filter_canonical(u->filter) : NULL;
        const Strings *patterns = &u->patterns.list, *fields = &u->fields.list;
        size_t size = 0;
        FILE *f = open_memstream(&u->key, &size);

        if (!f)
                return error_origin(-ENOMEM);
        if (u->filter && !filter) {
                fclose(f);
                return error_origin(-ENOMEM);
        }
        if (u->asks_process) /* what streams of the two orders know of a process differs */
                fprintf(f, "o%d ", (int)order);
        fprintf(f, "%d %u %llu %s", (int)u->payload, u->records, (unsigned long long)u->latency, filter ? filter : "");
        for (size_t i = 0; i < patterns->n; i++)
                fprintf(f, "\x1f" "e%s", patterns->items[i]);
        for (size_t i = 0; i < fields->n; i++)
                fprintf(f, "\x1f" "f%s", fields->items[i]);
        for (size_t i = 0; u->grant && i < u->grant->events.n; i++)
                fprintf(f, "\x1f" "g%s", u->grant->events.items[i]);
        for (size_t i = 0; u->grant && i < u->grant->within.n; i++)
                fprintf(f, "\x1f" "l%s", u->grant->within.items[i]);
        if (u->grant)
                fprintf(f, "\x1f" "w%u %s" "\x1f" "x%s", (unsigned)u->grant->own_uid, u->grant->where ? u->grant->where : "",
                        u->grant->within_where ? u->grant->within_where : "");
        if (fclose(f) != 0)
                return error_origin(-ENOMEM);
        u->key_hash = index_key_of_name(u->key);
        u->n_bytes = 2 * size + NAME_COST * (patterns->n + fields->n);
        for (size_t i = 0; i < u->n_globs; i++)
                u->n_bytes += glob_size(u->globs[i].text);
        return 0;
}

int subscription_parse(const Perfd__V1__SubscribeRequest *q, const Access *access, nsec_t default_latency, Subscription **ret,
                       Explanation *e) {
        _cleanup_(subscription_freep) Subscription *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return error_origin(-ENOMEM);
        if ((unsigned)q->payload >= _PAYLOAD_MAX || (unsigned)q->order >= _STREAM_ORDER_MAX ||
            (unsigned)q->overflow >= _OVERFLOW_MAX || q->records >= 1U << _RECORD_KIND_MAX)
                return refuse(e, REFUSED_INVALID, "bad-request", "payload %d, order %d, overflow %d or records %#x is unknown",
                              (int)q->payload, (int)q->order, (int)q->overflow, q->records);
        if (q->where && *q->where) {
                r = filter_parse(q->where, &u->filter, e);
                if (r != 0)
                        return r;
        }
        u->payload = (Payload)q->payload;
        u->records = q->records;
        u->latency = q->latency ?: default_latency;
        r = subscription_take_names(u, q, e);
        if (r == 0)
                r = subscription_limit(u, access, q, e);
        /* a reader and the dispatcher can know different names of a thread: one of them decides all that is asked of it */
        if (u->filter && ((StreamOrder)q->order == STREAM_BY_TIME || filter_asks_process(u->filter)))
                filter_ask_for_comm(u->filter);
        u->asks_process = u->filter && filter_asks_process(u->filter);
        if (r == 0)
                r = subscription_make_key(u, (StreamOrder)q->order);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(u);
        return 0;
}

/* NULL: it is a name. The text is that of the subscription. */
static const Pattern *find_glob(const Subscription *u, const char *text) {
        for (size_t i = 0; i < u->n_globs; i++)
                if (u->globs[i].text == text)
                        return u->globs[i].glob;
        return NULL;
}

/* A name is looked up; a glob is matched with the names of events until it matches one. */
static int check_pattern(const Subscriptions *s, const Subscription *u, const char *pattern, Explanation *e) {
        const Pattern *glob = find_glob(u, pattern);
        bool any = events_find(s->events, pattern);
        const bool is_limited = u->grant && u->grant->within.n > 0; /* it adds nothing */
        const PendingEvent *pending;
        int r = checkpoint(e);

        for (const Registration *g = s->events->registrations; g && r == 0 && !any && glob; g = g->next) {
                any = glob_match(glob, g->event->spec.name) && subscription_grants(u, g->event);
                r = checkpoint(e);
        }
        if (r != 0 || any)
                return r;
        pending = events_find_pending(s->events, pattern);
        if (pending)
                return refuse(e, REFUSED_NOT_FOUND, "pending", "%s is pending, because it cannot be opened now: %s", pattern,
                              pending->why);
        return refuse(e, REFUSED_NOT_FOUND, "unknown-event",
                      *pattern && is_limited ? "no running event matches %s: `perfctl list` shows the running events"
                      : *pattern ? "no running event matches %s: `perfctl list` shows the running events, `perfctl add %s` adds it"
                                 : "an event's name cannot be empty: `perfctl list` shows what runs", pattern, pattern);
}

/* What samples carry beside the fields of their event, as clients show it: it is in each sample that has it, whatever is chosen. */
static bool is_part_of_sample(const char *name) {
        static const char *const parts[] = { "ip", "address", "period", "weight", "transaction", "abort_code", "physical_address",
                                             "cgroup_id", "data_page_size", "code_page_size", "id", "stream_id", "aux_bytes" };

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (strcmp(name, parts[i]) == 0)
                        return true;
        return false;
}

/* One walk over the fields of all events, until each that is asked for was seen. */
static int check_fields(const Subscriptions *s, const Subscription *u, Explanation *e) {
        const Strings *fields = &u->fields.list;
        _cleanup_free_ bool *seen = calloc(fields->n + 1, sizeof(*seen));
        size_t n_seen = 0, at;

        if (!seen)
                return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g && n_seen < fields->n; g = g->next) {
                const Plan *plan = g->event->plan;
                int r = checkpoint(e);

                if (r != 0)
                        return r;
                if (!plan || !subscription_selects(u, g->event))
                        continue;
                for (size_t i = 0; i < plan->n_fields; i++)
                        if (name_set_find(&u->fields, plan->fields[i].name, &at) && !seen[at]) {
                                seen[at] = true;
                                n_seen++;
                        }
        }
        for (size_t i = 0; i < fields->n && n_seen < fields->n; i++)
                if (!seen[i] && !is_part_of_sample(fields->items[i]))
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-field",
                                      "none of the events has a field %s: `perfctl show EVENT` lists the fields of an event",
                                      fields->items[i]);
        return 0;
}

int subscription_check(const Subscriptions *s, const Subscription *u, Explanation *e) {
        int r = 0;

        for (size_t i = 0; i < u->patterns.list.n && r == 0; i++)
                r = check_pattern(s, u, u->patterns.list.items[i], e);
        return r == 0 ? check_fields(s, u, e) : r;
}

int subscription_compile(const Subscriptions *s, Subscription *u, Explanation *e) {
        Explanation why = EXPLANATION_NULL, first = EXPLANATION_NULL;
        int refused = 0;

        u->tells_zero_tid = s->readers->host->is_in_pid_namespace;
        for (Registration *g = s->events->registrations; g; g = g->next) {
                int r;

                r = checkpoint(e);
                if (r != 0)
                        return r;
                if (!subscription_selects(u, g->event))
                        continue;
                r = subscription_add_route(u, g, &why);
                if (r < 0)
                        return r;
                if (r == 0 && u->routes[u->n_routes - 1].has_all_fields)
                        return refuse(e, REFUSED_EXHAUSTED, "too-many-encodings",
                                      "%s is already encoded in %d ways, which is the limit of an event: request all fields, or "
                                      "the same fields as another subscription", g->event->spec.name, ENCODINGS_MAX);
                if (r > 0 && !refused) {
                        refused = r;
                        first = why;
                }
        }
        if (refused && u->n_routes == 0) { /* it fits none of them */
                *e = first;
                if (u->grant && u->grant->within_where)
                        e->position = 0; /* in a condition that the client has not written */
                return refused;
        }
        return subscription_check_constants(s, u, e);
}
