/*
 * How streams begin and end. The order of a beginning keeps "delivered" true: the dispatcher gets the subscriber first,
 * the readers the new programs afterwards, so that no item is matched for somebody whom the dispatcher does not know.
 */
#include "daemon/supervisor/streams/subscribe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "config/value.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/duration.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/ledger/base.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/streams/close.h"
#include "daemon/supervisor/streams/pool.h"
#include "daemon/supervisor/subscriptions/grants.h"
#include "daemon/supervisor/subscriptions/subscription.h"

#define QUEUE_MIN ((size_t)64 * 1024)
#define PAGES_OF_RING 2 /* beside its bytes: the words of each side */
#define ROUTE_COST ((size_t)1 << 10) /* at least; measured: 820 bytes, of an event with one field and a short condition */
#define ROUTE_COST_WITHOUT_PROGRAM ((size_t)128)
#define NAMES_FREE ((size_t)(4 << 10)) /* of the names: SUBSCRIBER_COST has so much for them */
#define SUBSCRIBER_COST (OUTBOX_FLOOR + (size_t)(8 << 10)) /* what each has beside a ring: a queue that is never refused, itself */

static size_t cost_of_routes(const Subscription *u) {
        size_t bytes = 0;

        for (size_t i = 0; i < u->n_routes; i++) {
                const MatchProgram *program = u->routes[i].program;
                size_t least = u->filter ? ROUTE_COST : ROUTE_COST_WITHOUT_PROGRAM;
                size_t own = ROUTE_COST_WITHOUT_PROGRAM + (program ? match_program_size(program) : 0);

                bytes += own > least ? own : least;
        }
        return bytes;
}

/* What the dispatcher has of a condition that asks for the process. */
static int cost_of_condition(const Subscription *u, size_t *ret, Explanation *e) {
        ProcessCondition *c = NULL;
        int r = u->asks_process ? process_condition_new(u->filter, &c, e) : 0;

        *ret = c ? process_condition_size(c) : 0;
        process_condition_free(c);
        return r;
}

/* For a program, and a place in the tables, of each event that is selected now; and for its names, if they are many. */
static int streams_charge_routes(Streams *s, uid_t uid, Subscription *u, Explanation *e) {
        size_t bytes = cost_of_routes(u) + (u->n_bytes > NAMES_FREE ? u->n_bytes - NAMES_FREE : 0), more;
        int r = cost_of_condition(u, &more, e);

        bytes += more;
        if (r == 0)
                r = subscriptions_reserve_memory(s->subscriptions, uid, bytes, &u->payer, e);
        u->charged = r == 0 ? bytes : 0;
        return r == 0 && u->filter
                       ? subscriptions_charge_condition(s->subscriptions, u->payer, u->filter, &u->cost, e)
                       : r;
}

static int streams_discharge_routes(Streams *s, Subscription *u) {
        struct UidMemory *payer = TAKE_PTR(u->payer);

        if (!payer)
                return 0;
        subscriptions_discharge_condition(s->subscriptions, payer, u->cost);
        return subscriptions_release_memory(s->subscriptions, payer, u->charged);
}

static int check_latency(const Streams *s, const Perfd__V1__SubscribeRequest *q, Explanation *e) {
        char found[DURATION_SIZE], least[DURATION_SIZE], most[DURATION_SIZE];
        const nsec_t longest = key_find("subscribers", "latency")->max;

        if (q->latency > 0 && (q->latency < s->settings->config->subscriber_latency || q->latency > longest))
                return refuse(e, REFUSED_INVALID, "bad-latency",
                              "latency: found %s, expected from %s, subscribers.latency of perfd's configuration, to %s",
                              duration_text(q->latency, found), duration_text(s->settings->config->subscriber_latency, least),
                              duration_text(longest, most));
        return 0;
}

/* One that is there already, or, *ret_new, one of the caller's, which nobody knows yet. */
static int find_subscription(const Streams *s, const Access *access, const Perfd__V1__SubscribeRequest *q, Subscription **ret,
                             Subscription **ret_new, Explanation *e) {
        _cleanup_(subscription_freep) Subscription *u = NULL;
        int r = check_latency(s, q, e);

        if (r == 0)
                r = subscription_parse(q, access, s->settings->config->subscriber_default_latency, &u, e);
        if (r != 0)
                return r;
        for (Subscription *known = s->subscriptions->first; known; known = known->next)
                if (known->key_hash == u->key_hash && strcmp(known->key, u->key) == 0) {
                        *ret = known;
                        return 0;
                }
        r = subscription_check(s->subscriptions, u, e);
        if (r == 0)
                r = subscription_compile(s->subscriptions, u, e);
        if (r == 0)
                *ret = *ret_new = TAKE_PTR(u);
        return r;
}

/* A new one has its place among the others; it is not published yet, and still the caller's if this fails. */
static int add_subscription(Streams *s, uid_t uid, Subscription *u, Explanation *e) {
        int r = subscriptions_take_number(s->subscriptions, u, uid, e);

        if (r == 0)
                r = streams_charge_routes(s, uid, u, e);
        if (r == 0)
                r = readers_learn_tasks(s->readers);
        if (r == 0)
                r = subscription_link(u);
        if (r != 0) {
                int given = streams_discharge_routes(s, u);

                if (given >= 0 && !s->subscriptions->first)
                        given = readers_forget_tasks(s->readers);
                return given < 0 ? given : r;
        }
        u->since = s->readers->generation + 1;
        u->next = s->subscriptions->first;
        if (u->next)
                u->next->before = u;
        s->subscriptions->first = s->subscriptions->by_number[u->number] = u;
        s->readers->n_subscriptions++;
        return 0;
}

static int streams_end_subscription(Streams *s, Subscription *u) {
        int r = streams_discharge_routes(s, u);

        subscription_unlink(u);
        if (u->before)
                u->before->next = u->next;
        else
                s->subscriptions->first = u->next;
        if (u->next)
                u->next->before = u->before;
        s->subscriptions->by_number[u->number] = NULL;
        s->readers->n_subscriptions--;
        subscription_free(u);
        if (s->subscriptions->first)
                return r;
        return r < 0 ? r : readers_forget_tasks(s->readers);
}

static int start_packet(const Streams *s, const Subscriber *sub, const Perfd__V1__SubscribeRequest *q, Packet **ret) {
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        struct utsname uts;
        uint8_t bytes[1024];

        uname(&uts);
        start.clock = (char *)config_clock_name(s->settings->started_with);
        start.wall_offset = (int64_t)(clock_now(CLOCK_REALTIME) - clock_now(s->readers->attr.clock));
        start.host = uts.nodename;
        start.kernel = uts.release;
        start.n_cpus = (uint32_t)s->readers->n_cpus;
        start.order = q->order;
        start.payload = q->payload;
        start.overflow = q->overflow;
        start.queue_bytes = sub->queue_bytes;
        packet.start = &start;
        return packet_of_fields(bytes, perfd__v1__packet__pack(&packet, bytes), ret); /* uts strings are 64 bytes each */
}

/*
 * The descriptors of its events, behind a place for what begins the stream. Others are served between two packets, so this is done
 * before anybody knows the subscription: what is emitted meanwhile is matched for those whom the dispatcher knows.
 */
static int describe_events(const Subscription *u, Subscriber *sub, Explanation *e) {
        size_t first = 0;
        int r = 0;

        sub->packets = calloc(u->n_routes + 2, sizeof(*sub->packets));
        if (!sub->packets)
                return error_origin(-ENOMEM);
        sub->n_packets = 1;
        while (first < u->n_routes && r == 0) {
                uint8_t *bytes;
                size_t n;

                r = subscription_describe(u, &first, &bytes, &n);
                if (r < 0)
                        return r;
                r = packet_of_fields(bytes, n, &sub->packets[sub->n_packets]);
                free(bytes);
                if (r < 0)
                        return r;
                sub->n_packets++;
                r = checkpoint(e);
        }
        return r;
}

/* What begins the stream waits for it in memory, with the descriptors of all its events. */
static int subscriber_check_packets(const Streams *s, const Subscriber *sub, Explanation *e) {
        size_t bytes = 0;

        for (size_t i = 0; i < sub->n_packets; i++)
                bytes += sub->packets[i]->length + OUTBOX_PACKET_COST;
        if (bytes <= OUTBOX_FLOOR || (!queue_account_is_short(sub->account, bytes - OUTBOX_FLOOR) &&
                                      bytes - OUTBOX_FLOOR <= queue_account_limit(&s->readers->dispatcher.queues)))
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "queue-memory",
                      "the descriptors of its events take %zu bytes, which exceed subscribers.memory or "
                      "subscribers.memory-per-uid: name fewer events, or read your other streams", bytes);
}

/* Of a subscription that has its place. */
static int subscriber_fill(Streams *s, const Subscription *u, const Perfd__V1__SubscribeRequest *q, const SubscriberEntry *a,
                           Subscriber *sub, Explanation *e) {
        int r;

        sub->id = ++s->subscriptions->last_subscriber_id;
        sub->number = u->number;
        sub->since = u->since;
        sub->from = s->readers->n_cuts + 1; /* the next one */
        sub->order = (StreamOrder)q->order;
        sub->overflow = (Overflow)q->overflow;
        sub->queue_bytes = a->queue_bytes;
        sub->latency = u->latency;
        sub->account = &a->memory->queues;
        r = start_packet(s, sub, q, &sub->packets[0]);
        if (r == 0 && u->asks_process)
                r = process_condition_new(u->filter, &sub->condition, e);
        return r == 0 ? subscriber_check_packets(s, sub, e) : r;
}

/* The response leaves before the first packet; then the socket is the dispatcher's. */
static int streams_hand_over(Streams *s, Connection *c, const Perfd__V1__Request *request, Subscriber **sub, Explanation *e) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StreamRing ring = PERFD__V1__STREAM_RING__INIT;
        DispatcherCommand *command;
        int r;

        response.id = request->id;
        if ((*sub)->ring) {
                ring.bytes = (*sub)->ring->size;
                ring.offset = (*sub)->ring->offset;
                ring.pool_bytes = (*sub)->ring->pool ? POOL_BYTES : 0;
                response.body_case = PERFD__V1__RESPONSE__BODY_RING;
                response.ring = &ring;
        }
        r = connection_respond(c, &response);
        if (r < 0)
                return r;
        command = calloc(1, sizeof(*command));
        if (!command)
                return error_origin(-ENOMEM);
        (void)snprintf((*sub)->peer, sizeof((*sub)->peer), "%s", connection_peer(c)->text);
        (*sub)->cause = connection_cause(c);
        (*sub)->is_relayed = connection_limit(c) && *connection_limit(c)->name;
        if (!connection_give(c, &(*sub)->fd, &(*sub)->handshake, &(*sub)->n_handshake)) {
                free(command);
                return -EPROTO;
        }
        log_subscribed((*sub)->id, (*sub)->peer, request->subscribe);
        command->kind = DISPATCHER_SUBSCRIBE;
        command->subscriber = TAKE_PTR(*sub);
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

/* The readers know it: whatever happens after the peer has read our response is in its stream. */
static int streams_begin(Streams *s, uint64_t id) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = DISPATCHER_BEGIN, .id = id };
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

/* Of a connection that has limited itself. */
static int check_limit(const Perfd__V1__Limit *limit, const Perfd__V1__SubscribeRequest *q, Explanation *e) {
        if (q->ring_bytes)
                return refuse(e, REFUSED_DENIED, "not-granted", "a limited connection has no shared memory: its client may be on "
                              "another host");
        if (limit->queue_bytes && q->queue_bytes > limit->queue_bytes)
                return refuse(e, REFUSED_DENIED, "not-granted", "a queue of %llu bytes: this connection is limited to %llu; request less",
                              (unsigned long long)q->queue_bytes, (unsigned long long)limit->queue_bytes);
        return 0;
}

static size_t queue_bytes_of(const Perfd__V1__Limit *limit, const Perfd__V1__SubscribeRequest *q, size_t by_default) {
        size_t bytes = q->queue_bytes ? q->queue_bytes : by_default;

        if (limit && limit->queue_bytes && bytes > limit->queue_bytes)
                bytes = limit->queue_bytes;
        return bytes < QUEUE_MIN ? QUEUE_MIN : bytes;
}

/* What the peer may have, reserved for it, or why not. */
static int streams_reserve(Streams *s, const Connection *c, const Perfd__V1__SubscribeRequest *q, SubscriberEntry **ret,
                           Explanation *e) {
        const size_t most = subscriptions_queue_max(s->subscriptions), by_default = s->settings->config->subscriber_queue;
        const Perfd__V1__Limit *limit = connection_limit(c);
        const uid_t uid = connection_peer(c)->uid;
        _cleanup_free_ SubscriberEntry *a = NULL;
        int r = subscriptions_check_places(s->subscriptions, uid, e);

        if (r == 0 && limit)
                r = check_limit(limit, q, e);
        if (r != 0)
                return r;
        if (q->queue_bytes > most)
                return refuse(e, REFUSED_EXHAUSTED, "queue-memory",
                              "a queue of %llu bytes: subscribers.memory and subscribers.memory-per-uid allow %zu, for all "
                              "subscribers of uid %u; request less", (unsigned long long)q->queue_bytes, most, (unsigned)uid);
        r = q->ring_bytes ? shared_ring_check(q->ring_bytes, e) : 0;
        if (r != 0)
                return r;
        a = calloc(1, sizeof(*a));
        if (!a)
                return error_origin(-ENOMEM);
        a->queue_bytes = queue_bytes_of(limit, q, by_default < most ? by_default : most);
        a->ring_bytes = q->ring_bytes;
        a->reserved = SUBSCRIBER_COST + (a->ring_bytes ? a->ring_bytes + PAGES_OF_RING * (size_t)sysconf(_SC_PAGESIZE) : 0);
        r = subscriptions_reserve_memory(s->subscriptions, uid, a->reserved, &a->memory, e);
        if (r == 0)
                *ret = TAKE_PTR(a);
        return r;
}

static int streams_discharge(Streams *s, uint64_t id) {
        for (SubscriberEntry **p = &s->subscriptions->subscribers; *p; p = &(*p)->next)
                if ((*p)->id == id) {
                        SubscriberEntry *gone = *p;
                        int left = streams_leave_pool(s, gone);
                        int r = subscriptions_release_memory(s->subscriptions, gone->memory, gone->reserved);

                        *p = gone->next;
                        (void)ledger_base_free(s->ledger, gone->base);
                        credentials_deinit(&gone->peer);
                        free(gone);
                        return left < 0 ? left : r;
                }
        return 0;
}

/* Fds that streams hold, for the share of them that clients may have: sockets, and pools. */
void streams_count_given(Streams *s) {
        s->events->control->n_given = (unsigned)(s->readers->n_subscribers + s->readers->n_pools);
}

/* Its closing ledger says what has happened since. */
static int new_base(Streams *s, const Subscription *u, SubscriberEntry *a) {
        const LedgerWants wants = subscription_wants(u);

        return ledger_base_new(s->ledger, &wants, &a->base);
}

/* Its subscriber is the dispatcher's: from this cut on it gets all that it wants. */
static int begin_at_cut(Streams *s, Subscription *u, SubscriberEntry *a, bool is_new) {
        _cleanup_(cut_scope_unrefp) CutScope *scope = NULL;
        int r = subscription_cut_scope(u, &scope);

        if (r == 0)
                r = is_new ? readers_publish_at_cut(s->readers, scope) : readers_cut(s->readers, scope);
        if (r == 0)
                r = new_base(s, u, a);
        if (r == 0)
                r = streams_begin(s, s->subscriptions->last_subscriber_id);
        return r;
}

/* What is reserved for it is the caller's to give back, if this fails. */
static int streams_subscribe_reserved(Streams *s, Connection *c, const Perfd__V1__Request *request, SubscriberEntry *a,
                                      Explanation *e) {
        Access access;
        _cleanup_(subscriber_freep) Subscriber *sub = calloc(1, sizeof(*sub));
        _cleanup_(subscription_freep) Subscription *added = NULL;
        _cleanup_(shared_ring_freep) SharedRing *ring = NULL;
        Subscription *u = NULL;
        bool is_new;
        int r = access_of(s->settings->access, c, &access, e);

        if (!sub)
                return error_origin(-ENOMEM);
        sub->fd = -1;
        if (r == 0 && a->ring_bytes)
                r = shared_ring_new(a->ring_bytes, &ring, e);
        if (r == 0)
                r = find_subscription(s, &access, request->subscribe, &u, &added, e);
        is_new = added;
        if (r == 0)
                r = describe_events(u, sub, e);
        if (r == 0 && is_new)
                r = add_subscription(s, a->memory->uid, u, e);
        if (r != 0)
                return r;
        added = NULL; /* it is one of all */
        r = subscriptions_charge_wakeups(s->subscriptions, a, request->subscribe->latency, e);
        if (r == 0)
                r = subscriber_fill(s, u, request->subscribe, a, sub, e);
        if (r == 0) {
                if (ring && request->subscribe->pool)
                        streams_share_pool(s, u, a, ring);
                sub->ring = TAKE_PTR(ring);
                r = streams_hand_over(s, c, request, &sub, e);
        }
        if (r == 0)
                r = begin_at_cut(s, u, a, is_new);
        if (r == 0) {
                a->number = u->number;
                u->n_subscribers++;
                s->readers->n_subscribers++;
                streams_count_given(s);
        } else if (is_new && (r > 0 || sub)) { /* it is not the dispatcher's */
                int ended = streams_end_subscription(s, u);

                r = ended < 0 ? ended : r;
        }
        return r;
}

int streams_subscribe(Streams *s, Connection *c, const Perfd__V1__Request *request, Explanation *e) {
        SubscriberEntry *a = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        if (!connection_may_give(c))
                return refuse(e, REFUSED_INVALID, "bad-request", "a request followed subscribe before its response: wait for the "
                        "response");
        r = readers_refuse_unanswered(s->readers, "a subscription", e);
        if (r != 0)
                return r;
        r = streams_reserve(s, c, request->subscribe, &a, e);
        if (r != 0)
                return r;
        a->next = s->subscriptions->subscribers;
        s->subscriptions->subscribers = a;
        r = subscriber_entry_remember_peer(a, c, e) ?: streams_subscribe_reserved(s, c, request, a, e);
        a->id = r == 0 ? s->subscriptions->last_subscriber_id : 0; /* 0: nobody's */
        if (r != 0) {
                int given = streams_discharge(s, 0);

                r = given < 0 ? given : r;
        }
        return r;
}

/* Readers hear of subscriptions that end when all words are heard: many may end at once. */
int streams_on_gone(Streams *s, uint64_t id, uint32_t number) {
        Subscription *u = s->subscriptions->by_number[number];
        int r;

        assert(u && u->n_subscribers > 0);
        s->readers->n_subscribers--;
        r = streams_discharge(s, id);
        if (--u->n_subscribers > 0 || r < 0)
                return r;
        r = streams_end_subscription(s, u);
        s->subscriptions->owes_snapshot = true;
        return r;
}
