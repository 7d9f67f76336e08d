/* The thread that connects and sends, because both can block; and what libnats tells on threads of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/relay/publish/nats-connect.h"
#include "client/relay/publish/nats.h"
#include "daemon/base/cleanup.h"

#define WINDOW_BYTES ((size_t)1 << 20) /* that are not acknowledged; less than sockets hold, as a rule */
#define ANSWERS_MAX (4 * WINDOW_MESSAGES) /* that wait; more, or more bytes of them, are an error of the connection */
#define ANSWERS_BYTES (1 << 20)
#define ACKNOWLEDGED_WITHIN (10 * NSEC_PER_SEC)
#define BACK_OFF_LEAST (100 * NSEC_PER_MSEC)
#define BACK_OFF_MOST (5 * NSEC_PER_SEC)

/* ---- what is said; with the lock ---------------------------------------------------------------------------------- */

/* Once, until the relay looks. */
static void ring(Nats *n) {
        uint64_t one = 1;

        if (n->has_rung)
                return;
        n->has_rung = true;
        (void)!write(n->bell, &one, sizeof(one)); /* it is full: it is readable */
}

static void say(Nats *n, bool is_connected, const char *what) {
        n->is_connected = is_connected;
        n->has_notice = true;
        (void)snprintf(n->notice, sizeof(n->notice), "%s", what);
        ring(n);
}

static void say_connected(Nats *n) {
        n->is_doubtful = false;
        say(n, true, n->server);
}

/* The first reason is the one. */
static void lose(Nats *n, const char *what) {
        if (!n->is_lost)
                say(n, false, what);
        n->is_lost = n->is_doubtful = true;
        pthread_cond_signal(&n->changed);
}

static void begin_anew(Nats *n, natsConnection *connection) {
        n->connection = connection;
        message_queue_rewind(&n->queue);
        n->progress = clock_now(CLOCK_MONOTONIC);
        n->is_lost = false;
}

/* ---- threads of libnats ------------------------------------------------------------------------------------------- */

static void take_stored(Nats *n, uint64_t number) {
        if (!message_queue_store(&n->queue, number)) /* 0: of no message */
                return;
        refused_forget(&n->refused, number);
        n->progress = clock_now(CLOCK_MONOTONIC);
        if (n->is_doubtful && !n->is_lost)
                say_connected(n);
        ring(n);
        if (n->queue.unsent) /* the window may have been full; else the thread waits for the next message */
                pthread_cond_signal(&n->changed);
}

/* The message is given back before the relay is told, because the relay may close libnats then, which forgets what is given back later. */
static void on_acknowledgement(natsConnection *connection, natsSubscription *subscription, natsMsg *m, void *userdata) {
        const char *dot = strrchr(natsMsg_GetSubject(m), '.');
        uint64_t number = dot ? strtoull(dot + 1, NULL, 10) : 0;
        bool is_unheard = natsMsg_IsNoResponders(m), is_stored;
        char text[NATS_TEXT_SIZE];
        Nats *n = userdata;

        is_stored = !is_unheard && nats_answer_read(natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m), n->config.stream, text);
        natsMsg_Destroy(m);
        pthread_mutex_lock(&n->lock);
        if (is_stored)
                take_stored(n, number);
        else if (connection == n->connection)
                lose(n, is_unheard ? "no stream of JetStream takes perfd.*.* or perfd-descriptors.>: add them to the subjects of the stream "
                                     "that publish.stream names, and of the one with -descriptors"
                                   : text);
        pthread_mutex_unlock(&n->lock);
}

static void on_closed(natsConnection *connection, void *userdata) {
        const char *error = NULL;
        char text[NATS_TEXT_SIZE];
        Nats *n = userdata;

        (void)natsConnection_GetLastError(connection, &error);
        (void)snprintf(text, sizeof(text), "the connection has ended%s%s", error && *error ? ": " : "", error ? error : "");
        pthread_mutex_lock(&n->lock);
        if (connection == n->connection)
                lose(n, text);
        pthread_mutex_unlock(&n->lock);
}

/* Errors that end a connection are on_closed()'s; of others the answer to a message does not come. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus s, void *userdata) {
        const char *error = NULL;
        char text[NATS_TEXT_SIZE];
        Nats *n = userdata;

        (void)natsConnection_GetLastError(connection, &error);
        (void)snprintf(text, sizeof(text), "%s%s%.120s%s", natsStatus_GetText(s), error && *error ? ", " : "", error ? error : "",
                       s == NATS_NOT_PERMITTED ? ": give the user of the relay what perfd-relay(8) lists under PUBLISHING"
                       : s == NATS_SLOW_CONSUMER ? ": its answers are longer, or more, than those of JetStream" : "");
        pthread_mutex_lock(&n->lock);
        if (connection == n->connection)
                lose(n, text);
        pthread_mutex_unlock(&n->lock);
}

/* ---- the thread: connecting -------------------------------------------------------------------------------------- */

static natsStatus subscribe(Nats *n, natsConnection *connection) {
        char subject[sizeof(n->inbox) + 2];
        natsInbox *inbox = NULL;
        natsStatus s = natsInbox_Create(&inbox);

        if (s != NATS_OK)
                return s;
        (void)snprintf(n->inbox, sizeof(n->inbox), "%s", inbox);
        (void)snprintf(subject, sizeof(subject), "%s.*", inbox);
        natsInbox_Destroy(inbox);
        s = natsConnection_Subscribe(&n->acknowledgements, connection, subject, on_acknowledgement, n);
        return s == NATS_OK ? natsSubscription_SetPendingLimits(n->acknowledgements, ANSWERS_MAX, ANSWERS_BYTES) : s;
}

static void disconnect(Nats *n) {
        natsConnection *connection;

        pthread_mutex_lock(&n->lock);
        connection = n->connection;
        n->connection = NULL;
        pthread_mutex_unlock(&n->lock);
        if (n->acknowledgements) /* as in client/perfctl/fleet/nats.c; an error says that the connection is closed */
                (void)natsSubscription_Unsubscribe(n->acknowledgements);
        natsSubscription_Destroy(n->acknowledgements);
        n->acknowledgements = NULL;
        natsConnection_Destroy(connection);
}

/* With the lock: from now on dispatch() ends what takes too long; 0: no more. */
static void set_busy(Nats *n, unsigned port) {
        n->busy_since = port > 0 ? clock_now(CLOCK_MONOTONIC) : 0;
        if (port > 0)
                n->port = port;
}

static bool prepare(Nats *n, natsConnection *connection, char text[static NATS_TEXT_SIZE]) {
        bool is_fine = nats_streams_prepare(connection, &n->config, &n->limits, text);
        natsStatus s = is_fine ? subscribe(n, connection) : NATS_OK;

        if (s != NATS_OK)
                nats_explain(s, "acknowledgements", text);
        n->window = n->limits.discards_new ? 1 : WINDOW_MESSAGES; /* what is refused must not be overtaken */
        return is_fine && s == NATS_OK;
}

static bool is_stopping(Nats *n) {
        bool is;

        pthread_mutex_lock(&n->lock);
        is = n->is_stopping;
        pthread_mutex_unlock(&n->lock);
        return is;
}

static bool connect_to(Nats *n, const PublishAccess *access, const ServerUrl *url, char text[static NATS_TEXT_SIZE]) {
        const NatsCallbacks callbacks = { .closed = on_closed, .error = on_error, .userdata = n };
        natsConnection *connection = NULL;
        bool is_connected;

        pthread_mutex_lock(&n->lock);
        set_busy(n, url->port);
        pthread_mutex_unlock(&n->lock);
        is_connected = nats_connect(access, url, &callbacks, &connection, text);
        pthread_mutex_lock(&n->lock);
        set_busy(n, 0);
        if (is_connected)
                begin_anew(n, connection);
        memcpy(n->server, url->address, sizeof(n->server));
        pthread_mutex_unlock(&n->lock);
        if (!is_connected)
                return false;
        (void)snprintf(text, NATS_TEXT_SIZE, "the relay stops");
        if (!is_stopping(n) && prepare(n, connection, text))
                return true;
        disconnect(n);
        return false;
}

/* The first one that answers. `text`: why none did. */
static bool connect_to_any(Nats *n, const PublishAccess *access, char text[static NATS_TEXT_SIZE]) {
        bool is_connected = false;
        size_t length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < access->servers.n && !is_connected && !is_stopping(n); i++) {
                char why[NATS_TEXT_SIZE];
                ServerUrl url;

                (void)server_url_parse(access->servers.items[i], &url); /* --check has */
                is_connected = connect_to(n, access, &url, why);
                server_url_forget(&url);
                if (!is_connected && length < NATS_TEXT_SIZE)
                        length += (size_t)snprintf(text + length, NATS_TEXT_SIZE - length, "%s%s", i > 0 ? "; " : "", why);
        }
        return is_connected;
}

static bool connect_once(Nats *n) {
        PublishAccess access = { .servers = STRINGS_NULL };
        char text[NATS_TEXT_SIZE] = "no memory";
        bool is_connected;
        int r;

        pthread_mutex_lock(&n->lock);
        r = publish_access_copy(&n->access, &access);
        n->is_other = n->is_lost = false;
        pthread_mutex_unlock(&n->lock);
        is_connected = r == 0 && connect_to_any(n, &access, text);
        publish_access_deinit(&access);
        pthread_mutex_lock(&n->lock);
        if (!is_connected && !n->is_lost)
                say(n, false, text);
        else if (is_connected && !n->is_lost && !(n->is_doubtful && n->queue.first))
                say_connected(n);
        pthread_mutex_unlock(&n->lock);
        return is_connected;
}

/* ---- the thread: sending ----------------------------------------------------------------------------------------- */

static void wait_for(Nats *n, nsec_t most) {
        struct timespec until = nsec_timespec(clock_now(CLOCK_MONOTONIC) + most);

        (void)pthread_cond_timedwait(&n->changed, &n->lock, &until);
}

/* A copy, because the message can be another's as soon as the lock is open. */
static natsStatus copy(const Nats *n, const Message *m, natsMsg **ret) {
        _cleanup_free_ char *both = m->n_prefix > 0 ? malloc(m->n_prefix + m->length) : NULL;
        char reply[sizeof(n->inbox) + 24];
        natsStatus s;

        (void)snprintf(reply, sizeof(reply), "%s.%llu", n->inbox, (unsigned long long)m->number);
        if (m->n_prefix > 0 && !both)
                return NATS_NO_MEMORY;
        if (both) {
                memcpy(both, m->prefix, m->n_prefix);
                memcpy(both + m->n_prefix, m->bytes, m->length);
        }
        s = natsMsg_Create(ret, m->subject, reply, both ? both : (const char *)m->bytes, (int)(m->n_prefix + m->length));
        if (s == NATS_OK)
                s = natsMsgHeader_Set(*ret, "Nats-Msg-Id", m->id);
        for (unsigned i = 0; i < m->n_headers && s == NATS_OK; i++)
                s = natsMsgHeader_Set(*ret, m->headers[i].name, m->headers[i].value);
        return s;
}

static size_t header_size(const char *name, const char *value) {
        return strlen(name) + strlen(": ") + strlen(value) + strlen("\r\n");
}

/* As the limits count it: with its headers. */
static size_t sent_size(const Message *m) {
        size_t size = strlen("NATS/1.0\r\n") + header_size("Nats-Msg-Id", m->id) + strlen("\r\n") + m->n_prefix + m->length;

        for (unsigned i = 0; i < m->n_headers; i++)
                size += header_size(m->headers[i].name, m->headers[i].value);
        return size;
}

/* Bytes; 0: there is none. */
static uint64_t limit_of(const Nats *n, const Message *m) {
        const NatsLimits *l = &n->limits;
        int64_t limit = m->is_status ? l->statuses : strncmp(m->subject, "perfd.", strlen("perfd.")) == 0 ? l->messages : l->descriptors;

        return limit > 0 ? (uint64_t)limit : 0;
}

static bool is_too_long(const Nats *n, const Message *m) {
        return limit_of(n, m) > 0 && sent_size(m) > limit_of(n, m);
}

/*
 * A packet that is too long with the gap of those before it is refused too, and becomes a part of that gap: without it the gap would be in
 * no packet. But where gaps take half of what there is room for, packets go without.
 */
static bool has_room_for_gaps(const Nats *n, const Message *m) {
        const uint64_t limit = limit_of(n, m), gaps = refused_gaps_size(&n->refused, m);

        return limit == 0 || gaps > limit / 2 || sent_size(m) + gaps <= limit;
}

/* With the lock. Known before it is sent, so that nothing overtakes its gap. False: it is refused. */
static bool is_sendable(Nats *n, Message *m) {
        m->n_prefix = 0; /* the server may be another one now */
        if (!is_too_long(n, m) && !refused_is_rest(&n->refused, m) && has_room_for_gaps(n, m)) {
                if (!m->prefix)
                        (void)refused_attach(&n->refused, m); /* no memory: the next one takes it */
                m->n_prefix = m->n_all;
                if (is_too_long(n, m))
                        m->n_prefix = m->n_gaps;
                if (is_too_long(n, m)) /* Perfd-Matched alone tells of what is missing */
                        m->n_prefix = 0;
                return true;
        }
        (void)refused_add(&n->refused, m); /* no memory: the same */
        message_queue_refuse(&n->queue);
        n->progress = clock_now(CLOCK_MONOTONIC);
        ring(n);
        return false;
}

/* With the lock, which is open meanwhile. */
static void send_next(Nats *n) {
        natsMsg *sent = NULL;
        char text[NATS_TEXT_SIZE];
        natsStatus s;

        if (!is_sendable(n, n->queue.unsent))
                return;
        s = copy(n, message_queue_send(&n->queue), &sent);
        set_busy(n, n->port);
        pthread_mutex_unlock(&n->lock);
        if (s == NATS_OK)
                s = natsConnection_PublishMsg(n->connection, sent);
        natsMsg_Destroy(sent);
        if (s == NATS_MAX_PAYLOAD)
                (void)snprintf(text, sizeof(text), "the server takes no messages of 512 KiB: raise max_payload in its configuration to 1MB");
        else if (s != NATS_OK)
                nats_explain(s, "a message cannot be sent", text);
        pthread_mutex_lock(&n->lock);
        set_busy(n, 0);
        if (s != NATS_OK)
                lose(n, text);
}

static bool may_send(const Nats *n) {
        const MessageQueue *q = &n->queue;

        return q->unsent && (q->n_sent == 0 || (q->n_sent < n->window && q->sent < WINDOW_BYTES));
}

/* Of one connection, with the lock. */
static void send_all(Nats *n) {
        while (!n->is_stopping && !n->is_lost && !n->is_other) {
                if (may_send(n)) {
                        if (n->queue.n_sent == 0)
                                n->progress = clock_now(CLOCK_MONOTONIC);
                        send_next(n);
                } else {
                        wait_for(n, NSEC_PER_SEC);
                        if (n->queue.n_sent > 0 && clock_now(CLOCK_MONOTONIC) > n->progress + ACKNOWLEDGED_WITHIN)
                                lose(n, "JetStream does not acknowledge messages: does the server stand still, or has it no room?");
                }
        }
}

/* With the lock. Messages that come meanwhile are no reason to try again. */
static void wait_before_next(Nats *n, nsec_t time) {
        nsec_t now, end = clock_now(CLOCK_MONOTONIC) + time;

        while (!n->is_stopping && !n->is_other && (now = clock_now(CLOCK_MONOTONIC)) < end)
                wait_for(n, end - now);
}

int nats_run(void *userdata) {
        nsec_t back_off = BACK_OFF_LEAST;
        Nats *n = userdata;

        for (;;) {
                bool is_connected = connect_once(n);
                nsec_t began = clock_now(CLOCK_MONOTONIC);

                pthread_mutex_lock(&n->lock);
                if (is_connected)
                        send_all(n);
                if (n->is_other || (is_connected && clock_now(CLOCK_MONOTONIC) > began + BACK_OFF_MOST))
                        back_off = BACK_OFF_LEAST;
                wait_before_next(n, back_off / 2 + clock_now(CLOCK_MONOTONIC) % (back_off / 2));
                back_off = back_off * 2 < BACK_OFF_MOST ? back_off * 2 : BACK_OFF_MOST;
                if (n->is_stopping)
                        break;
                pthread_mutex_unlock(&n->lock);
                disconnect(n);
        }
        pthread_mutex_unlock(&n->lock);
        disconnect(n);
        return 0;
}
