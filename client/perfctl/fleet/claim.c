/*
 * One reader at a time has a durable consumer. JetStream shares the messages of a pull consumer among all who ask, and knows no owner, so
 * readers ask each other, by a subject without a stream: who has the consumer answers for as long as its connection is there, also while
 * its output is not read, because a thread of libnats answers. Two that begin at the same moment refuse each other.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/fleet/nats.h"

#define ANSWER_MS 1000
#define NAME_MAX_SHOWN 80
#define ANSWER "process " /* how one begins: a stream of JetStream that has the subject answers, too */

/* On a thread of libnats. */
static void answer(natsConnection *connection, natsSubscription *subscription, natsMsg *m, void *closure) {
        const char *to = natsMsg_GetReply(m);
        char host[NAME_MAX_SHOWN] = "", text[NAME_MAX_SHOWN + 32];

        (void)subscription;
        (void)closure;
        (void)gethostname(host, sizeof(host) - 1);
        (void)snprintf(text, sizeof(text), ANSWER "%d of %s", (int)getpid(), host);
        if (to)
                (void)natsConnection_PublishString(connection, to, text); /* without an answer the other one reads, too, and says so */
        natsMsg_Destroy(m);
}

static bool is_answer(const natsMsg *m) {
        return natsMsg_GetDataLength(m) > (int)strlen(ANSWER) && memcmp(natsMsg_GetData(m), ANSWER, strlen(ANSWER)) == 0;
}

static int refuse(const FleetConnection *c, const char *durable, const natsMsg *m) {
        char who[NAME_MAX_SHOWN + 32];
        const char *data = natsMsg_GetData(m);

        (void)snprintf(who, sizeof(who), "%.*s", natsMsg_GetDataLength(m), data);
        for (char *at = who; *at; at++)
                if (!isprint((unsigned char)*at))
                        *at = '?';
        return perfctl_fail(c->p, PERFCTL_FAILED, "--durable %s is being read by %s: one reader at a time has its messages, and another one "
                            "needs a name of its own", durable, who);
}

/* Twice, because the server may not know yet that the connection of one that was killed has ended. */
static natsStatus ask(const FleetConnection *c, const char *subject, natsMsg **ret) {
        natsStatus status = natsConnection_RequestString(ret, c->connection, subject, "", ANSWER_MS);

        return status == NATS_TIMEOUT ? natsConnection_RequestString(ret, c->connection, subject, "", ANSWER_MS) : status;
}

int fleet_claim_check(const FleetConnection *c, const char *stream, const char *durable) {
        char subject[FLEET_CLAIM_SIZE];
        natsMsg *m = NULL;
        natsStatus status;
        int r = 0;

        (void)snprintf(subject, sizeof(subject), FLEET_CLAIM, stream, durable);
        status = ask(c, subject, &m);
        if (status == NATS_OK && is_answer(m))
                r = refuse(c, durable, m);
        else if (status == NATS_TIMEOUT || status == NATS_OK)
                (void)perfctl_fail(c->p, 0, "--durable %s: whether another reader has it is not known, as nobody answers on %s: it is "
                                   "stopped, or the server does not let this user publish there", durable, subject);
        else if (status != NATS_NO_RESPONDERS && status != NATS_CONNECTION_DISCONNECTED)
                r = fleet_fail(c, subject, status);
        natsMsg_Destroy(m);
        return r;
}

int fleet_claim(FleetConnection *c, const char *stream, const char *durable) {
        char subject[FLEET_CLAIM_SIZE];
        natsStatus status;

        (void)snprintf(subject, sizeof(subject), FLEET_CLAIM, stream, durable);
        status = natsConnection_Subscribe(&c->claim, c->connection, subject, answer, NULL);
        if (status == NATS_OK)
                status = natsConnection_Flush(c->connection);
        return status == NATS_OK ? fleet_claim_check(c, stream, durable) : fleet_fail(c, subject, status);
}
