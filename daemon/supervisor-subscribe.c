/*
 * Subscriptions: what subscribers want, compiled for each event. Equal wishes share one subscription, so one bit, one
 * program and one encoding, whatever the number of subscribers.
 *
 * The order of a beginning keeps "delivered" true: the dispatcher gets the subscriber first, the readers the new
 * programs afterwards, so that no item is matched for somebody whom the dispatcher does not know.
 */
#include "daemon/supervisor.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "daemon/base/log.h"

#include "daemon/encode/descriptor.h"

#define DESCRIPTORS_SIZE ((size_t)256 * 1024) /* bytes of descriptors in one packet */
#define QUEUE_MIN ((size_t)64 * 1024)
#define QUEUE_MAX ((size_t)1 << 30)

static void strings_free(char **strings, size_t n) {
        for (size_t i = 0; strings && i < n; i++)
                free(strings[i]);
        free(strings);
}

static int strings_copy(char *const *from, size_t n, char ***ret) {
        char **copy = calloc(n + 1, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!(copy[i] = strdup(from[i]))) {
                        strings_free(copy, n);
                        return -ENOMEM;
                }
        *ret = copy;
        return 0;
}

static void route_deinit(SubscriptionRoute *r) {
        event_unref(r->event);
        match_program_unref(r->program);
        encode_plan_unref(r->encoding);
}

static Subscription *subscription_free(Subscription *u) {
        if (!u)
                return NULL;
        for (size_t i = 0; i < u->n_routes; i++)
                route_deinit(&u->routes[i]);
        free(u->routes);
        strings_free(u->patterns, u->n_patterns);
        strings_free(u->fields, u->n_fields);
        filter_free(u->filter);
        free(u->key);
        free(u);
        return NULL;
}
DEFINE_CLEANUP(Subscription *, subscription_free)

void supervisor_free_subscriptions(Supervisor *s) {
        for (Subscription *u = s->subscriptions, *next; u; u = next) {
                next = u->next;
                subscription_free(u);
        }
        s->subscriptions = NULL;
}

static bool subscription_selects(const Subscription *u, const Event *event) {
        bool any = u->n_patterns == 0;

        for (size_t i = 0; i < u->n_patterns && !any; i++)
                any = strcmp(u->patterns[i], event->spec.name) == 0 || fnmatch(u->patterns[i], event->spec.name, 0) == 0;
        return any;
}

/* An encoding that another subscription has for this event already. */
static EncodePlan *find_encoding(const Supervisor *s, const Subscription *like, const Event *event) {
        for (const Subscription *u = s->subscriptions; u; u = u->next) {
                bool same = u->payload == like->payload && u->n_fields == like->n_fields;

                for (size_t i = 0; same && i < u->n_fields; i++)
                        same = strcmp(u->fields[i], like->fields[i]) == 0;
                for (size_t i = 0; same && i < u->n_routes; i++)
                        if (u->routes[i].event == event)
                                return encode_plan_ref(u->routes[i].encoding);
        }
        return NULL;
}

/* A refusal: the expression does not fit this event. */
static int subscription_add_route(const Supervisor *s, Subscription *u, const Registration *g, Explanation *e) {
        SubscriptionRoute route = { .event = NULL }, *more;
        int r = 0;

        if (u->filter)
                r = filter_compile(u->filter, g->event->plan, &route.program, e);
        if (r != 0)
                return r;
        more = reallocarray(u->routes, u->n_routes + 1, sizeof(*more));
        if (more)
                u->routes = more;
        route.encoding = find_encoding(s, u, g->event);
        if (!route.encoding)
                route.encoding = encode_plan_new(g->event->plan, g->event->id, u->payload, u->fields, u->n_fields);
        route.event = event_ref(g->event);
        if (!more || !route.encoding) {
                route_deinit(&route);
                return -ENOMEM;
        }
        u->routes[u->n_routes++] = route;
        return 0;
}

/* The descriptors of routes from `first` on, as fields of a packet; as many as fit, at least one. */
static int pack_descriptors(const Subscription *u, size_t *first, uint8_t **ret_bytes, size_t *ret_n) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        size_t size = 0, i;
        int r = 0;

        packet.events = calloc(u->n_routes + 1, sizeof(*packet.events));
        if (!packet.events)
                return -ENOMEM;
        for (i = *first; i < u->n_routes && size < DESCRIPTORS_SIZE && r == 0; i++) {
                const Event *event = u->routes[i].event;

                r = event_descriptor_new(u->routes[i].encoding, event->spec.name, event->spec.event, event->period,
                                         event->spec.frequency, event->in_ns ? "ns" : "events",
                                         &packet.events[packet.n_events]);
                if (r == 0)
                        size += perfd__v1__event_descriptor__get_packed_size(packet.events[packet.n_events++]);
        }
        size = perfd__v1__packet__get_packed_size(&packet);
        *ret_bytes = r == 0 ? malloc(size ? size : 1) : NULL;
        if (*ret_bytes) {
                *ret_n = perfd__v1__packet__pack(&packet, *ret_bytes);
                *first = i;
        } else
                r = -ENOMEM;
        for (i = 0; i < packet.n_events; i++)
                perfd__v1__event_descriptor__free_unpacked(packet.events[i], NULL);
        free(packet.events);
        return r;
}

static int supervisor_tell(Supervisor *s, unsigned bit, uint8_t *bytes, size_t n) {
        DispatcherMail *mail = calloc(1, sizeof(*mail));

        if (!mail) {
                free(bytes);
                return -ENOMEM;
        }
        *mail = (DispatcherMail){ .order = DISPATCHER_TELL, .bit = bit, .bytes = bytes, .n_bytes = n };
        dispatcher_post(&s->dispatcher, mail);
        return 0;
}

int supervisor_route_event(Supervisor *s, const Registration *g) {
        for (Subscription *u = s->subscriptions; u; u = u->next) {
                size_t first = u->n_routes, n;
                uint8_t *bytes;
                int r;

                if (!subscription_selects(u, g->event))
                        continue;
                r = subscription_add_route(s, u, g, NULL);
                if (r > 0)
                        continue; /* without the field, nothing of this event can match */
                if (r == 0)
                        r = pack_descriptors(u, &first, &bytes, &n);
                if (r == 0)
                        r = supervisor_tell(s, u->bit, bytes, n);
                if (r < 0)
                        return r;
        }
        return 0;
}

void supervisor_unroute_event(Supervisor *s, const Event *event) {
        for (Subscription *u = s->subscriptions; u; u = u->next)
                for (size_t i = 0; i < u->n_routes; i++)
                        if (u->routes[i].event == event) {
                                route_deinit(&u->routes[i]);
                                u->routes[i] = u->routes[--u->n_routes];
                                break;
                        }
}

void supervisor_tell_removed(Supervisor *s, const Event *event) {
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;

        ref.id = event->id;
        ref.name = event->spec.name;
        packet.removed = refs;
        packet.n_removed = 1;
        for (const Subscription *u = s->subscriptions; u; u = u->next) {
                size_t n = perfd__v1__packet__get_packed_size(&packet);
                uint8_t *bytes;

                if (!subscription_selects(u, event))
                        continue;
                bytes = malloc(n);
                if (bytes)
                        perfd__v1__packet__pack(&packet, bytes);
                if (!bytes || supervisor_tell(s, u->bit, bytes, n) < 0)
                        log_print(LOG_WARNING, "no memory to tell subscribers that %s is removed", ref.name);
        }
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static int subscription_parse(const Perfd__V1__SubscribeRequest *q, Subscription **ret, Explanation *e) {
        _cleanup_(subscription_freep) Subscription *u = calloc(1, sizeof(*u));
        _cleanup_free_ char *canonical = NULL;
        size_t size = 0;
        FILE *f;
        int r;

        if (!u)
                return -ENOMEM;
        if ((unsigned)q->payload >= _PAYLOAD_MAX || (unsigned)q->order >= _STREAM_ORDER_MAX ||
            (unsigned)q->overflow >= _OVERFLOW_MAX || q->records >= 1U << 4)
                return refuse(e, REFUSED_INVALID, "bad-request", "payload %d, order %d, overflow %d or records %#x is not known",
                              (int)q->payload, (int)q->order, (int)q->overflow, q->records);
        if (q->where && *q->where) {
                r = filter_parse(q->where, &u->filter, e);
                if (r != 0)
                        return r;
                if (!(canonical = filter_canonical(u->filter)))
                        return -ENOMEM;
        }
        u->payload = (Payload)q->payload;
        u->records = q->records;
        if ((r = strings_copy(q->events, q->n_events, &u->patterns)) < 0)
                return r;
        u->n_patterns = q->n_events;
        if ((r = strings_copy(q->fields, q->n_fields, &u->fields)) < 0)
                return r;
        u->n_fields = q->n_fields;

        f = open_memstream(&u->key, &size);
        if (!f)
                return -ENOMEM;
        fprintf(f, "%d %u %s", (int)u->payload, u->records, canonical ? canonical : "");
        for (size_t i = 0; i < u->n_patterns; i++)
                fprintf(f, "\x1f" "e%s", u->patterns[i]);
        for (size_t i = 0; i < u->n_fields; i++)
                fprintf(f, "\x1f" "f%s", u->fields[i]);
        if (fclose(f) != 0)
                return -ENOMEM;
        *ret = TAKE_PTR(u);
        return 0;
}

/* Each pattern and each field has to mean something now, or it is a mistake; later events may add to it. */
static int subscription_check(const Supervisor *s, const Subscription *u, Explanation *e) {
        for (size_t i = 0; i < u->n_patterns; i++) {
                bool any = false;

                for (const Registration *g = s->registrations; g && !any; g = g->next)
                        any = strcmp(u->patterns[i], g->event->spec.name) == 0 ||
                              fnmatch(u->patterns[i], g->event->spec.name, 0) == 0;
                if (!any)
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-event",
                                      "no running event matches %s: `perfctl list` shows what runs, `perfctl add %s` adds "
                                      "it", u->patterns[i], u->patterns[i]);
        }
        for (size_t i = 0; i < u->n_fields; i++) {
                bool any = false;

                for (const Registration *g = s->registrations; g && !any; g = g->next)
                        any = subscription_selects(u, g->event) && g->event->plan &&
                              plan_find(g->event->plan, u->fields[i]);
                if (!any)
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-field",
                                      "none of the events has a field %s: `perfctl show EVENT` shows what they have",
                                      u->fields[i]);
        }
        return 0;
}

static int subscription_compile(const Supervisor *s, Subscription *u, Explanation *e) {
        Explanation why = EXPLANATION_NULL, first = EXPLANATION_NULL;
        int refused = 0;

        for (const Registration *g = s->registrations; g; g = g->next) {
                int r;

                if (!subscription_selects(u, g->event))
                        continue;
                r = subscription_add_route(s, u, g, &why);
                if (r < 0)
                        return r;
                if (r > 0 && !refused) {
                        refused = r;
                        first = why;
                }
        }
        if (refused && u->n_routes == 0) { /* it fits none of them */
                *e = first;
                return refused;
        }
        return 0;
}

static int supervisor_take_bit(Supervisor *s, unsigned *ret_bit, Explanation *e) {
        if (s->used_bits == UINT64_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "%d different subscriptions are all that can be told apart; equal ones share", BATCH_BITS);
        *ret_bit = (unsigned)__builtin_ctzll(~s->used_bits);
        s->used_bits |= 1ULL << *ret_bit;
        return 0;
}

/* One that is there already, or a new one, which is not published yet. */
static int supervisor_subscription(Supervisor *s, const Perfd__V1__SubscribeRequest *q, Subscription **ret, bool *ret_new,
                                   Explanation *e) {
        _cleanup_(subscription_freep) Subscription *u = NULL;
        int r = subscription_parse(q, &u, e);

        if (r != 0)
                return r;
        for (Subscription *known = s->subscriptions; known; known = known->next)
                if (strcmp(known->key, u->key) == 0) {
                        *ret = known;
                        *ret_new = false;
                        return 0;
                }
        r = subscription_check(s, u, e);
        if (r == 0)
                r = subscription_compile(s, u, e);
        if (r == 0)
                r = supervisor_take_bit(s, &u->bit, e);
        if (r != 0)
                return r;
        u->since = s->generation + 1;
        u->next = s->subscriptions;
        s->subscriptions = u;
        *ret = TAKE_PTR(u);
        *ret_new = true;
        return 0;
}

static void supervisor_end_subscription(Supervisor *s, Subscription *u) {
        for (Subscription **p = &s->subscriptions; *p; p = &(*p)->next)
                if (*p == u) {
                        *p = u->next;
                        break;
                }
        s->used_bits &= ~(1ULL << u->bit);
        subscription_free(u);
}

static int packet_of(const uint8_t *bytes, size_t n, Packet **ret) {
        Packet *p = packet_new(n);

        if (!p)
                return -ENOMEM;
        packet_append_field(p, bytes, n);
        packet_seal(p);
        *ret = p;
        return 0;
}

static int start_packet(const Supervisor *s, const Subscriber *sub, const Perfd__V1__SubscribeRequest *q, Packet **ret) {
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        struct utsname uts;
        uint8_t bytes[1024];

        uname(&uts);
        start.clock = (char *)config_clock_name(s->config);
        start.wall_offset = (int64_t)(clock_now(CLOCK_REALTIME) - clock_now(s->attr.clock));
        start.host = uts.nodename;
        start.kernel = uts.release;
        start.n_cpus = (uint32_t)s->n_cpus;
        start.order = q->order;
        start.payload = q->payload;
        start.overflow = q->overflow;
        start.queue_bytes = sub->queue_bytes;
        packet.start = &start;
        return packet_of(bytes, perfd__v1__packet__pack(&packet, bytes), ret); /* uts strings are 64 bytes each */
}

static int subscriber_add_packets(const Supervisor *s, Subscriber *sub, const Subscription *u,
                                  const Perfd__V1__SubscribeRequest *q) {
        size_t first = 0;
        int r;

        sub->packets = calloc(u->n_routes + 2, sizeof(*sub->packets));
        if (!sub->packets)
                return -ENOMEM;
        r = start_packet(s, sub, q, &sub->packets[0]);
        if (r < 0)
                return r;
        sub->n_packets = 1;
        while (first < u->n_routes) {
                uint8_t *bytes;
                size_t n;

                r = pack_descriptors(u, &first, &bytes, &n);
                if (r < 0)
                        return r;
                r = packet_of(bytes, n, &sub->packets[sub->n_packets]);
                free(bytes);
                if (r < 0)
                        return r;
                sub->n_packets++;
        }
        return 0;
}

static int subscriber_new(Supervisor *s, const Subscription *u, const Perfd__V1__SubscribeRequest *q, Subscriber **ret) {
        _cleanup_(subscriber_freep) Subscriber *sub = calloc(1, sizeof(*sub));
        size_t queue = q->queue_bytes ? q->queue_bytes : s->config->subscriber_queue;
        int r;

        if (!sub)
                return -ENOMEM;
        sub->fd = -1;
        sub->id = ++s->last_subscriber_id;
        sub->bit = u->bit;
        sub->since = u->since;
        sub->order = (StreamOrder)q->order;
        sub->overflow = (Overflow)q->overflow;
        sub->queue_bytes = queue < QUEUE_MIN ? QUEUE_MIN : queue > QUEUE_MAX ? QUEUE_MAX : queue;
        r = subscriber_add_packets(s, sub, u, q);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sub);
        return 0;
}

/* The response leaves before the first packet; then the socket is the dispatcher's. */
static int supervisor_hand_over(Supervisor *s, Connection *c, uint64_t request_id, Subscriber **sub, Explanation *e) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        DispatcherMail *mail;
        int r;

        response.id = request_id;
        r = connection_respond(c, &response);
        if (r < 0)
                return r;
        mail = calloc(1, sizeof(*mail));
        if (!mail)
                return -ENOMEM;
        (void)snprintf((*sub)->peer, sizeof((*sub)->peer), "%s", connection_peer(c)->text);
        if (!connection_give(c, &(*sub)->fd, &(*sub)->prelude, &(*sub)->n_prelude)) {
                free(mail);
                return -EPROTO;
        }
        log_print(LOG_INFO, "subscriber %llu: %s", (unsigned long long)(*sub)->id, (*sub)->peer);
        mail->order = DISPATCHER_SUBSCRIBE;
        mail->subscriber = TAKE_PTR(*sub);
        dispatcher_post(&s->dispatcher, mail);
        return 0;
}

int supervisor_subscribe(Supervisor *s, Connection *c, const Perfd__V1__Request *request, Explanation *e) {
        _cleanup_(subscriber_freep) Subscriber *sub = NULL;
        Subscription *u = NULL;
        bool is_new = false;
        int r;

        thread_assert(THREAD_MAIN);
        if (s->n_subscribers >= s->config->subscribers_max)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers", "%zu subscribers are all that subscribers.max "
                              "allows", s->n_subscribers);
        if (!connection_may_give(c))
                return refuse(e, REFUSED_INVALID, "bad-request", "nothing may follow subscribe before its response");
        r = supervisor_subscription(s, request->subscribe, &u, &is_new, e);
        if (r != 0)
                return r;
        r = subscriber_new(s, u, request->subscribe, &sub);
        if (r == 0)
                r = supervisor_hand_over(s, c, request->id, &sub, e);
        if (r == 0 && is_new)
                r = supervisor_publish(s);
        if (r != 0) {
                if (is_new && sub)
                        supervisor_end_subscription(s, u);
                return r;
        }
        u->n_subscribers++;
        s->n_subscribers++;
        return 0;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static int supervisor_on_gone(Supervisor *s, unsigned bit) {
        Subscription *u = s->subscriptions;

        while (u && u->bit != bit)
                u = u->next;
        assert(u && u->n_subscribers > 0);
        s->n_subscribers--;
        if (--u->n_subscribers > 0)
                return 0;
        supervisor_end_subscription(s, u);
        return supervisor_publish(s);
}

int supervisor_on_word(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Supervisor *s = userdata;
        DispatcherWord *word;
        int r = 0;

        mailbox_quiet(&s->dispatcher.words);
        while (r >= 0 && (word = mailbox_pop(&s->dispatcher.words))) {
                switch (word->kind) {
                case DISPATCHER_WANTS_CLOSE:
                        r = supervisor_close_stream(s, word->id, "stopped");
                        break;
                case DISPATCHER_GONE:
                        r = supervisor_on_gone(s, word->bit);
                        break;
                }
                free(word);
        }
        if (r >= 0 && s->stopping && s->n_subscribers == 0)
                r = sd_event_exit(s->event, s->exit_code);
        return r;
}
