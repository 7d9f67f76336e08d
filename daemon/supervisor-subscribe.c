/*
 * How streams begin and end. The order of a beginning keeps "delivered" true: the dispatcher gets the subscriber first,
 * the readers the new programs afterwards, so that no item is matched for somebody whom the dispatcher does not know.
 */
#include "daemon/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/base/log.h"
#include "daemon/supervisor-ledger.h"
#include "daemon/supervisor-removed.h"

#define QUEUE_MIN ((size_t)64 * 1024)
#define QUEUES_OF_UID ((size_t)512 << 20) /* bytes, of all outboxes and rings of one uid */

/* The least one: as long as there are few subscriptions, all are of group 0. */
static int supervisor_take_number(const Supervisor *s, uint32_t *ret_number, Explanation *e) {
        uint32_t number = 0;

        while (number < SUBSCRIPTIONS_MAX && s->by_number[number])
                number++;
        if (number == SUBSCRIPTIONS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "%d different subscriptions are all that can be told apart; equal ones share", SUBSCRIPTIONS_MAX);
        *ret_number = number;
        return 0;
}

/* One that is there already, or a new one, which is not published yet. */
static int supervisor_subscription(Supervisor *s, const Perfd__V1__SubscribeRequest *q, Subscription **ret, bool *ret_new,
                                   Explanation *e) {
        _cleanup_(subscription_freep) Subscription *u = NULL;
        int r;

        if (q->latency > 0 && q->latency < s->config->subscriber_latency)
                return refuse(e, REFUSED_INVALID, "bad-latency",
                              "a latency of %llu ns is less than the %llu ns of subscribers.latency in perfd's configuration",
                              (unsigned long long)q->latency, (unsigned long long)s->config->subscriber_latency);
        r = subscription_parse(q, &u, e);
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
                r = supervisor_take_number(s, &u->number, e);
        if (r == 0)
                r = supervisor_learn_tasks(s);
        if (r == 0)
                r = subscription_link(u);
        if (r != 0)
                return r;
        u->since = s->generation + 1;
        u->next = s->subscriptions;
        if (u->next)
                u->next->before = u;
        s->subscriptions = s->by_number[u->number] = u;
        s->n_subscriptions++;
        *ret = TAKE_PTR(u);
        *ret_new = true;
        return 0;
}

static void supervisor_end_subscription(Supervisor *s, Subscription *u) {
        subscription_unlink(u);
        if (u->before)
                u->before->next = u->next;
        else
                s->subscriptions = u->next;
        if (u->next)
                u->next->before = u->before;
        s->by_number[u->number] = NULL;
        s->n_subscriptions--;
        subscription_free(u);
        if (!s->subscriptions)
                s->wants_tasks = s->knows_tasks = false;
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

                r = subscription_describe(u, &first, &bytes, &n);
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

static int subscriber_new(Supervisor *s, const Subscription *u, const Perfd__V1__SubscribeRequest *q, size_t queue_bytes,
                          Subscriber **ret) {
        _cleanup_(subscriber_freep) Subscriber *sub = calloc(1, sizeof(*sub));
        int r;

        if (!sub)
                return -ENOMEM;
        sub->fd = -1;
        sub->id = ++s->last_subscriber_id;
        sub->number = u->number;
        sub->since = u->since;
        sub->order = (StreamOrder)q->order;
        sub->overflow = (Overflow)q->overflow;
        sub->queue_bytes = queue_bytes;
        r = subscriber_add_packets(s, sub, u, q);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sub);
        return 0;
}

/* The response leaves before the first packet; then the socket is the dispatcher's. */
static int supervisor_hand_over(Supervisor *s, Connection *c, uint64_t request_id, Subscriber **sub, Explanation *e) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StreamRing ring = PERFD__V1__STREAM_RING__INIT;
        DispatcherMail *mail;
        int r;

        response.id = request_id;
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

/* The readers know it: whatever happens after the peer has read our response is in its stream. */
static int supervisor_begin(Supervisor *s, uint64_t id) {
        DispatcherMail *mail = calloc(1, sizeof(*mail));

        if (!mail)
                return -ENOMEM;
        *mail = (DispatcherMail){ .order = DISPATCHER_BEGIN, .id = id };
        dispatcher_post(&s->dispatcher, mail);
        return 0;
}

/* What the peer may have, or why not. */
static int supervisor_admit(const Supervisor *s, uid_t uid, const Perfd__V1__SubscribeRequest *q, Admission **ret,
                            Explanation *e) {
        size_t queue = q->queue_bytes ? q->queue_bytes : s->config->subscriber_queue, charged = 0;
        Admission *a;
        int r;

        if (s->n_subscribers >= s->subscribers_max)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "%zu subscribers are all that subscribers.max allows", s->n_subscribers);
        if (queue < QUEUE_MIN)
                queue = QUEUE_MIN;
        r = q->ring_bytes ? shared_ring_check(q->ring_bytes, e) : 0;
        if (r != 0)
                return r;
        for (a = s->admissions; a; a = a->next)
                charged += a->uid == uid ? a->queue_bytes + a->ring_bytes : 0;
        if (queue > QUEUES_OF_UID - charged || q->ring_bytes > QUEUES_OF_UID - charged - queue)
                return refuse(e, REFUSED_EXHAUSTED, "queue-memory",
                              "a queue of %zu bytes and a ring of %zu: the subscribers of uid %u may have %zu in all, and have "
                              "%zu; ask for less", queue, (size_t)q->ring_bytes, (unsigned)uid, QUEUES_OF_UID, charged);
        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        *a = (Admission){ .uid = uid, .queue_bytes = queue, .ring_bytes = q->ring_bytes };
        *ret = a;
        return 0;
}

static void supervisor_discharge(Supervisor *s, uint64_t id) {
        for (Admission **p = &s->admissions; *p; p = &(*p)->next)
                if ((*p)->id == id) {
                        Admission *gone = *p;

                        *p = gone->next;
                        free(gone);
                        return;
                }
}

/* Fds that streams hold, for the share of them that clients may have: sockets, and pools. */
static void supervisor_count_given(Supervisor *s) {
        s->control.n_given = (unsigned)s->n_subscribers;
        for (const Subscription *u = s->subscriptions; u; u = u->next)
                s->control.n_given += u->pool != NULL;
}

/* Without one everybody has a copy of what all get, which only costs more. */
static void supervisor_share_pool(const Supervisor *s, Subscription *u, const Perfd__V1__SubscribeRequest *q, SharedRing *ring) {
        const Control *c = &s->control;
        int r;

        if (!ring || !q->pool || (!u->pool && c->n_given + c->n_connections >= c->limits.sockets))
                return;
        r = u->pool ? buffer_pool_fill(u->pool) : buffer_pool_new(&u->pool);
        if (r == 0 && !shared_ring_share(ring, u->pool))
                r = -errno;
        if (r < 0)
                log_print(LOG_NOTICE, "a subscriber has no packets in common with others, and gets copies: %s", strerror(-r));
}

int supervisor_subscribe(Supervisor *s, Connection *c, const Perfd__V1__Request *request, Explanation *e) {
        _cleanup_free_ Admission *admission = NULL;
        _cleanup_(subscriber_freep) Subscriber *sub = NULL;
        _cleanup_(shared_ring_freep) SharedRing *ring = NULL;
        Subscription *u = NULL;
        bool is_new = false;
        int r;

        thread_assert(THREAD_MAIN);
        if (!connection_may_give(c))
                return refuse(e, REFUSED_INVALID, "bad-request", "nothing may follow subscribe before its response");
        r = supervisor_admit(s, connection_peer(c)->uid, request->subscribe, &admission, e);
        if (r == 0 && admission->ring_bytes)
                r = shared_ring_new(admission->ring_bytes, &ring, e);
        if (r != 0)
                return r;
        r = supervisor_subscription(s, request->subscribe, &u, &is_new, e);
        if (r != 0)
                return r;
        r = subscriber_new(s, u, request->subscribe, admission->queue_bytes, &sub);
        if (r == 0) {
                supervisor_share_pool(s, u, request->subscribe, ring);
                sub->ring = TAKE_PTR(ring);
                r = supervisor_hand_over(s, c, request->id, &sub, e);
        }
        if (r == 0 && is_new)
                r = supervisor_publish(s);
        if (r == 0)
                r = supervisor_begin(s, s->last_subscriber_id);
        if (r != 0) {
                if (is_new && sub)
                        supervisor_end_subscription(s, u);
                return r;
        }
        u->n_subscribers++;
        s->n_subscribers++;
        supervisor_count_given(s);
        admission->id = s->last_subscriber_id;
        admission->next = s->admissions;
        s->admissions = TAKE_PTR(admission);
        return 0;
}

/* Readers hear of subscriptions that end when all words are heard: many may end at once. */
static void supervisor_on_gone(Supervisor *s, uint64_t id, uint32_t number) {
        Subscription *u = s->by_number[number];

        assert(u && u->n_subscribers > 0);
        s->n_subscribers--;
        supervisor_count_given(s);
        supervisor_discharge(s, id);
        supervisor_forget_removed(s);
        if (--u->n_subscribers > 0)
                return;
        supervisor_end_subscription(s, u);
        s->owes_snapshot = true;
}

int supervisor_on_word(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Supervisor *s = userdata;
        DispatcherWord *word;
        int r = 0;

        mailbox_quiet(&s->dispatcher.words);
        while (r >= 0 && (word = mailbox_pop(&s->dispatcher.words))) {
                switch (word->kind) {
                case DISPATCHER_WANTS_CLOSE:
                        r = supervisor_close_stream(s, word->id, word->reason);
                        break;
                case DISPATCHER_GONE:
                        supervisor_on_gone(s, word->id, word->number);
                        break;
                }
                free(word);
        }
        if (r >= 0 && s->owes_snapshot)
                r = supervisor_publish(s);
        if (r >= 0 && s->stopping && s->n_subscribers == 0)
                r = sd_event_exit(s->event, s->exit_code);
        return r;
}
