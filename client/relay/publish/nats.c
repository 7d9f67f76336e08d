/*
 * NATS JetStream, by libnats. A message is stored when JetStream has answered it on the reply subject, which has its number: libnats
 * 3.4 tells only of errors of what it calls asynchronous publishing, and not which message was stored.
 *
 * Order is that of one TCP connection: libnats may not reconnect by itself, because what it would keep meanwhile would overtake what
 * was sent before and not stored. After each loss all that is not acknowledged is sent again, from the oldest one on; JetStream knows
 * what it has already by Nats-Msg-Id.
 *
 * A thread connects and sends, because both can block. It, the threads of libnats, and the relay meet in the fields behind `lock`;
 * the relay is told by an eventfd, and does the rest in dispatch().
 */
#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/relay/publish/publisher.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/thread.h"

#define WINDOW_MESSAGES 256              /* that are not acknowledged */
#define WINDOW_BYTES ((size_t)1 << 20)   /* the same; less than sockets hold, so that a server that stands still does not block the thread */
#define ACKNOWLEDGED_WITHIN (10 * NSEC_PER_SEC)
#define DUPLICATES_WINDOW (600 * NSEC_PER_SEC)
#define DESCRIPTORS_BYTES ((int64_t)256 << 20)
#define BACK_OFF_LEAST (100 * NSEC_PER_MSEC)
#define BACK_OFF_MOST (5 * NSEC_PER_SEC)

typedef struct Nats {
        Publisher publisher;
        const PublishConfig *config;
        PublisherCallbacks callbacks;
        Thread thread;

        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_stopping;
        uint64_t n;               /* messages so far: the number of the last one */
        Message *first, **end;    /* not acknowledged */
        Message *unsent;          /* of these, the first one that this connection has not seen */
        size_t n_sent, sent;      /* messages and bytes before it */
        nsec_t progress;          /* when something was acknowledged last, or the window was empty */
        Message *stored, **stored_end;
        natsConnection *connection; /* the one that is used; of others nothing is heard any more */
        bool is_lost;
        bool has_notice, is_connected;
        char notice[320];

        natsSubscription *acknowledgements; /* the thread's */
        char inbox[64];
} Nats;

bool nats_is_built(void) {
        return true;
}

/* ---- what is known of messages; with the lock ---------------------------------------------------------------------- */

static void ring(Nats *n) {
        uint64_t one = 1;

        (void)!write(n->publisher.fd, &one, sizeof(one)); /* it is full: it is readable */
}

static void say(Nats *n, bool is_connected, const char *what, const char *detail) {
        n->is_connected = is_connected;
        n->has_notice = true;
        (void)snprintf(n->notice, sizeof(n->notice), "%s%s%s", what, detail && *detail ? ": " : "", detail ? detail : "");
        ring(n);
}

static void lose(Nats *n, const char *what, const char *detail) {
        if (!n->is_lost)
                say(n, false, what, detail);
        n->is_lost = true;
        pthread_cond_signal(&n->changed);
}

/* Nothing of what was sent counts. */
static void begin_anew(Nats *n) {
        n->unsent = n->first;
        n->n_sent = n->sent = 0;
        n->progress = clock_now(CLOCK_MONOTONIC);
        n->is_lost = false;
}

/* An answer to what an earlier connection has sent is as good, so one that is not sent yet can be stored already. */
static void take_stored(Nats *n, uint64_t number) {
        Message **place = &n->first, *m;
        bool was_sent = true;

        while (*place && (*place)->number != number) {
                was_sent = was_sent && *place != n->unsent;
                place = &(*place)->next;
        }
        m = *place;
        if (!m)
                return;
        if (m == n->unsent) {
                n->unsent = m->next;
        } else if (was_sent) {
                n->n_sent--;
                n->sent -= message_size(m);
        }
        *place = m->next;
        if (n->end == &m->next)
                n->end = place;
        m->next = NULL;
        *n->stored_end = m;
        n->stored_end = &m->next;
        n->progress = clock_now(CLOCK_MONOTONIC);
        ring(n);
        pthread_cond_signal(&n->changed);
}

/* ---- threads of libnats ------------------------------------------------------------------------------------------- */

/*
 * {"stream":"perfd","seq":7}, or {"error":{"code":503,"description":"..."}}: names of streams have no quotes. The message is given back
 * before the relay is told, because the relay may close libnats then, which forgets what is given back later.
 */
static void on_acknowledgement(natsConnection *connection, natsSubscription *subscription, natsMsg *m, void *userdata) {
        const char *dot = strrchr(natsMsg_GetSubject(m), '.');
        uint64_t number = dot ? strtoull(dot + 1, NULL, 10) : 0;
        bool is_unheard = natsMsg_IsNoResponders(m);
        char text[256];
        Nats *n = userdata;

        (void)snprintf(text, sizeof(text), "%.*s", natsMsg_GetDataLength(m), natsMsg_GetDataLength(m) > 0 ? natsMsg_GetData(m) : "");
        natsMsg_Destroy(m);
        pthread_mutex_lock(&n->lock);
        if (is_unheard)
                lose(n, "the server has no JetStream, or no stream for these subjects", NULL);
        else if (strstr(text, "\"error\"") || !strstr(text, "\"seq\""))
                lose(n, "JetStream refuses a message", text);
        else
                take_stored(n, number); /* 0: of no message */
        pthread_mutex_unlock(&n->lock);
}

static void on_closed(natsConnection *connection, void *userdata) {
        const char *error = NULL;
        Nats *n = userdata;

        (void)natsConnection_GetLastError(connection, &error);
        pthread_mutex_lock(&n->lock);
        if (connection == n->connection)
                lose(n, "the connection has ended", error);
        pthread_mutex_unlock(&n->lock);
}

/* Errors that end a connection are on_closed()'s; of others the answer to a message does not come. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus s, void *userdata) {
        Nats *n = userdata;

        pthread_mutex_lock(&n->lock);
        if (connection == n->connection)
                lose(n, "an error of the connection", natsStatus_GetText(s));
        pthread_mutex_unlock(&n->lock);
}

/* ---- the thread: connecting -------------------------------------------------------------------------------------- */

static natsStatus make_options(Nats *n, natsOptions **ret) {
        natsOptions *o = NULL;
        natsStatus s = natsOptions_Create(&o);

        *ret = o;
        if (s == NATS_OK)
                s = natsOptions_SetServers(o, (const char **)n->config->servers.items, (int)n->config->servers.n);
        if (s == NATS_OK)
                s = natsOptions_SetNoRandomize(o, true);
        if (s == NATS_OK)
                s = natsOptions_SetName(o, "perfd-relay");
        if (s == NATS_OK)
                s = natsOptions_SetAllowReconnect(o, false);
        if (s == NATS_OK)
                s = natsOptions_SetTimeout(o, 2000);
        if (s == NATS_OK)
                s = natsOptions_SetPingInterval(o, 2000);
        if (s == NATS_OK)
                s = natsOptions_SetMaxPingsOut(o, 2);
        if (s == NATS_OK)
                s = natsOptions_SetClosedCB(o, on_closed, n);
        return s == NATS_OK ? natsOptions_SetErrorHandler(o, on_error, n) : s;
}

/* One that is there is left as it is: its limits are then another one's. */
static natsStatus make_stream(jsCtx *js, jsStreamConfig *config) {
        jsStreamInfo *info = NULL;
        jsErrCode code;
        natsStatus s = js_GetStreamInfo(&info, js, config->Name, NULL, &code);

        if (s == NATS_NOT_FOUND)
                s = js_AddStream(&info, js, config, NULL, &code);
        jsStreamInfo_Destroy(info);
        return s;
}

static natsStatus make_streams(Nats *n, natsConnection *connection) {
        const PublishConfig *p = n->config;
        char name[96];
        jsStreamConfig config;
        jsCtx *js = NULL;
        natsStatus s = natsConnection_JetStream(&js, connection, NULL);

        if (s == NATS_OK)
                s = jsStreamConfig_Init(&config);
        if (s == NATS_OK) {
                config.Name = p->stream;
                config.Subjects = (const char *[]){ "perfd.*.*" };
                config.SubjectsLen = 1;
                config.MaxBytes = (int64_t)p->max_bytes;
                config.MaxAge = (int64_t)p->max_age;
                config.Duplicates = (int64_t)(p->max_age < DUPLICATES_WINDOW ? p->max_age : DUPLICATES_WINDOW);
                s = make_stream(js, &config);
        }
        if (s == NATS_OK)
                s = jsStreamConfig_Init(&config);
        if (s == NATS_OK) {
                (void)snprintf(name, sizeof(name), "%s-descriptors", p->stream);
                config.Name = name;
                config.Subjects = (const char *[]){ "perfd-descriptors.>" };
                config.SubjectsLen = 1;
                config.MaxMsgsPerSubject = 1;
                config.MaxBytes = DESCRIPTORS_BYTES;
                s = make_stream(js, &config);
        }
        jsCtx_Destroy(js);
        return s;
}

static natsStatus subscribe(Nats *n, natsConnection *connection) {
        char subject[sizeof(n->inbox) + 2];
        natsInbox *inbox = NULL;
        natsStatus s = natsInbox_Create(&inbox);

        if (s != NATS_OK)
                return s;
        (void)snprintf(n->inbox, sizeof(n->inbox), "%s", inbox);
        (void)snprintf(subject, sizeof(subject), "%s.*", inbox);
        natsInbox_Destroy(inbox);
        return natsConnection_Subscribe(&n->acknowledgements, connection, subject, on_acknowledgement, n);
}

static void disconnect(Nats *n) {
        natsConnection *connection;

        pthread_mutex_lock(&n->lock);
        connection = n->connection;
        n->connection = NULL;
        pthread_mutex_unlock(&n->lock);
        if (n->acknowledgements) /* as in client/perfctl/fleet-nats.c; an error says that the connection is closed */
                (void)natsSubscription_Unsubscribe(n->acknowledgements);
        natsSubscription_Destroy(n->acknowledgements);
        n->acknowledgements = NULL;
        natsConnection_Destroy(connection);
}

static bool connect_once(Nats *n) {
        natsOptions *options = NULL;
        natsConnection *connection = NULL;
        char url[256] = "", text[256];
        natsStatus s = make_options(n, &options);

        if (s == NATS_OK)
                s = natsConnection_Connect(&connection, options);
        natsOptions_Destroy(options);
        pthread_mutex_lock(&n->lock);
        n->connection = connection;
        begin_anew(n);
        pthread_mutex_unlock(&n->lock);
        if (s == NATS_OK)
                s = make_streams(n, connection);
        if (s == NATS_OK)
                s = subscribe(n, connection);
        if (s == NATS_OK)
                s = natsConnection_GetConnectedUrl(connection, url, sizeof(url));
        if (s != NATS_OK) { /* what libnats keeps of the error is this thread's */
                const char *detail = nats_GetLastError(NULL);

                (void)snprintf(text, sizeof(text), "%s%s%s", natsStatus_GetText(s), detail && *detail ? ", " : "", detail ? detail : "");
                disconnect(n);
        }
        pthread_mutex_lock(&n->lock);
        say(n, s == NATS_OK, s == NATS_OK ? url : text, NULL);
        pthread_mutex_unlock(&n->lock);
        return s == NATS_OK;
}

/* ---- the thread: sending ----------------------------------------------------------------------------------------- */

static void wait_for(Nats *n, nsec_t most) {
        struct timespec until = nsec_timespec(clock_now(CLOCK_MONOTONIC) + most);

        (void)pthread_cond_timedwait(&n->changed, &n->lock, &until);
}

/* A copy, because the message can be another's as soon as the lock is open. */
static natsStatus copy(const Nats *n, const Message *m, natsMsg **ret) {
        char reply[sizeof(n->inbox) + 24];
        natsStatus s;

        (void)snprintf(reply, sizeof(reply), "%s.%llu", n->inbox, (unsigned long long)m->number);
        s = natsMsg_Create(ret, m->subject, reply, (const char *)m->bytes, (int)m->length);
        if (s == NATS_OK)
                s = natsMsgHeader_Set(*ret, "Nats-Msg-Id", m->id);
        for (unsigned i = 0; i < m->n_headers && s == NATS_OK; i++)
                s = natsMsgHeader_Set(*ret, m->headers[i].name, m->headers[i].value);
        return s;
}

/* With the lock, which is open meanwhile. */
static void send_next(Nats *n) {
        Message *m = n->unsent;
        natsMsg *sent = NULL;
        natsStatus s = copy(n, m, &sent);

        n->unsent = m->next;
        n->n_sent++;
        n->sent += message_size(m);
        pthread_mutex_unlock(&n->lock);
        if (s == NATS_OK)
                s = natsConnection_PublishMsg(n->connection, sent);
        natsMsg_Destroy(sent);
        pthread_mutex_lock(&n->lock);
        if (s != NATS_OK)
                lose(n, "a message cannot be sent", natsStatus_GetText(s));
}

static bool may_send(const Nats *n) {
        return n->unsent && (n->n_sent == 0 || (n->n_sent < WINDOW_MESSAGES && n->sent < WINDOW_BYTES));
}

/* Of one connection, with the lock. */
static void send_all(Nats *n) {
        while (!n->is_stopping && !n->is_lost) {
                if (may_send(n)) {
                        if (n->n_sent == 0)
                                n->progress = clock_now(CLOCK_MONOTONIC);
                        send_next(n);
                } else {
                        wait_for(n, NSEC_PER_SEC);
                        if (n->n_sent > 0 && clock_now(CLOCK_MONOTONIC) > n->progress + ACKNOWLEDGED_WITHIN)
                                lose(n, "JetStream does not acknowledge messages", NULL);
                }
        }
}

/* With the lock. Messages that come meanwhile are no reason to try again. */
static void wait_before_next(Nats *n, nsec_t time) {
        nsec_t now, end = clock_now(CLOCK_MONOTONIC) + time;

        while (!n->is_stopping && (now = clock_now(CLOCK_MONOTONIC)) < end)
                wait_for(n, end - now);
}

static int run(void *userdata) {
        nsec_t back_off = BACK_OFF_LEAST;
        Nats *n = userdata;

        for (;;) {
                bool is_connected = connect_once(n);
                nsec_t began = clock_now(CLOCK_MONOTONIC);

                pthread_mutex_lock(&n->lock);
                if (is_connected)
                        send_all(n);
                if (is_connected && clock_now(CLOCK_MONOTONIC) > began + BACK_OFF_MOST)
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

/* ---- the relay ----------------------------------------------------------------------------------------------------- */

static void nats_publish(Publisher *p, Message *m) {
        Nats *n = (Nats *)p;

        pthread_mutex_lock(&n->lock);
        m->number = ++n->n;
        m->next = NULL;
        *n->end = m;
        n->end = &m->next;
        if (!n->unsent)
                n->unsent = m;
        pthread_cond_signal(&n->changed);
        pthread_mutex_unlock(&n->lock);
}

static void nats_dispatch(Publisher *p) {
        Nats *n = (Nats *)p;
        bool has_notice, is_connected;
        char notice[sizeof(n->notice)];
        Message *stored;
        uint64_t rings;

        (void)!read(p->fd, &rings, sizeof(rings)); /* EAGAIN: nothing new, which is seen below */
        pthread_mutex_lock(&n->lock);
        stored = n->stored;
        n->stored = NULL;
        n->stored_end = &n->stored;
        has_notice = n->has_notice;
        is_connected = n->is_connected;
        n->has_notice = false;
        memcpy(notice, n->notice, sizeof(notice));
        pthread_mutex_unlock(&n->lock);
        if (has_notice)
                n->callbacks.changed(n->callbacks.userdata, is_connected, notice);
        for (Message *m = stored, *next; m; m = next) {
                next = m->next;
                n->callbacks.stored(n->callbacks.userdata, m);
        }
}

static void messages_free(Message *m) {
        for (Message *next; m; m = next) {
                next = m->next;
                message_free(m);
        }
}

/* If the thread is blocked by a server that stands still, it and all it uses is left to the end of the process, which is near. */
static void nats_close(Publisher *p) {
        Nats *n = (Nats *)p;

        pthread_mutex_lock(&n->lock);
        n->is_stopping = true;
        pthread_cond_signal(&n->changed);
        pthread_mutex_unlock(&n->lock);
        if (!thread_join_within(&n->thread, 3 * NSEC_PER_SEC))
                return;
        (void)thread_join(&n->thread);
        if (nats_CloseAndWait(1000) != NATS_OK)
                return;
        messages_free(n->first);
        messages_free(n->stored);
        pthread_mutex_destroy(&n->lock);
        pthread_cond_destroy(&n->changed);
        close_fd(p->fd);
        free(n);
}

int nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret) {
        Nats *n = calloc(1, sizeof(*n));
        pthread_condattr_t monotonic;
        int r;

        if (!n)
                return error_origin(-ENOMEM);
        n->publisher = (Publisher){ .publish = nats_publish, .dispatch = nats_dispatch, .close = nats_close };
        n->config = config;
        n->callbacks = *callbacks;
        n->end = &n->first;
        n->stored_end = &n->stored;
        n->publisher.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (n->publisher.fd < 0) {
                r = error_origin(-errno);
                free(n);
                return r;
        }
        pthread_mutex_init(&n->lock, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&n->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
        r = thread_start(&n->thread, THREAD_ANY, "publish", -1, run, n);
        if (r < 0) {
                close_fd(n->publisher.fd);
                free(n);
                return r;
        }
        *ret = &n->publisher;
        return 0;
}
