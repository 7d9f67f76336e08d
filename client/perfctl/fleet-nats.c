/*
 * NATS JetStream, by an ordered consumer of libnats: it begins again by itself where messages got lost on the way. What is in messages is
 * a foreign program's word: nothing of it is longer than its place, and what is not as it should be is no message of a relay.
 */
#include <ctype.h>
#include <errno.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fleet-source.h"

#define PARTS_MAX 64 /* of descriptors: 32 MiB */

struct FleetSource {
        const Perfctl *p;
        natsConnection *connection;
        jsCtx *js;
        natsSubscription *subscription;
        natsMsg *message; /* the last one that was given */
        char *descriptors; /* name of their stream */
        uint64_t last, sequence; /* of JetStream: of what was stored when it was opened, and of the last one that was given */
};

bool fleet_is_built(void) {
        return true;
}

static int fail(const FleetSource *s, const char *what, natsStatus status) {
        const char *detail = nats_GetLastError(NULL);

        return perfctl_fail(s->p, PERFCTL_UNREACHABLE, "%s: %s%s%s", what, natsStatus_GetText(status), detail && *detail ? ", " : "",
                            detail ? detail : "");
}

static int subscribe(FleetSource *s, const char *stream, const char *route, bool is_from_oldest) {
        jsStreamInfo *info = NULL;
        jsSubOptions options;
        char subject[128];
        natsStatus status = js_GetStreamInfo(&info, s->js, stream, NULL, NULL);

        if (status == NATS_NOT_FOUND)
                return perfctl_fail(s->p, PERFCTL_FAILED, "this server has no stream '%s': has a relay published to it? --stream names "
                                    "another one", stream);
        if (status != NATS_OK)
                return fail(s, "JetStream", status);
        s->last = info->State.LastSeq;
        s->sequence = !is_from_oldest || info->State.Msgs == 0 ? s->last : 0;
        jsStreamInfo_Destroy(info);
        (void)snprintf(subject, sizeof(subject), "perfd.*.%s", route ? route : "*");
        status = jsSubOptions_Init(&options);
        options.Ordered = true;
        options.Stream = stream;
        options.Config.DeliverPolicy = is_from_oldest ? js_DeliverAll : js_DeliverNew;
        if (status == NATS_OK)
                status = js_SubscribeSync(&s->subscription, s->js, subject, NULL, &options, NULL);
        return status == NATS_OK ? 0 : fail(s, subject, status);
}

int fleet_source_open(const Perfctl *p, const char *url, const char *stream, const char *route, bool is_from_oldest, FleetSource **ret) {
        FleetSource *s = must_have(calloc(1, sizeof(*s)));
        natsStatus status;
        int r;

        s->p = p;
        if (asprintf(&s->descriptors, "%s-descriptors", stream) < 0)
                s->descriptors = NULL;
        must_have(s->descriptors);
        status = natsConnection_ConnectTo(&s->connection, url);
        if (status == NATS_OK)
                status = natsConnection_JetStream(&s->js, s->connection, NULL);
        r = status == NATS_OK ? subscribe(s, stream, route, is_from_oldest) : fail(s, url, status);
        if (r == 0)
                *ret = s;
        else
                fleet_source_close(s);
        return r;
}

/* Letters, digits, '-' and '_': what relays call things. */
static bool take_word(const char *from, size_t n, char to[FLEET_WORD_SIZE]) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)from[i]) && from[i] != '-' && from[i] != '_')
                        return false;
        if (n == 0 || n >= FLEET_WORD_SIZE)
                return false;
        memcpy(to, from, n);
        to[n] = '\0';
        return true;
}

static bool header_word(natsMsg *m, const char *name, char to[FLEET_WORD_SIZE]) {
        const char *value;

        return natsMsgHeader_Get(m, name, &value) == NATS_OK && take_word(value, strlen(value), to);
}

/* `end`: of the number, '\0' or what follows it. */
static bool header_number(natsMsg *m, const char *name, char end, uint64_t *ret, const char **ret_end) {
        const char *value;
        char *behind;

        if (natsMsgHeader_Get(m, name, &value) != NATS_OK || !isdigit((unsigned char)*value))
                return false;
        errno = 0;
        *ret = strtoull(value, &behind, 10);
        if (errno != 0 || *behind != end)
                return false;
        if (ret_end)
                *ret_end = behind + 1;
        return true;
}

static bool header_parts(natsMsg *m, FleetMessage *ret) {
        const char *rest;
        char *end;

        if (!header_number(m, "Perfd-Part", '/', &ret->part, &rest) || !isdigit((unsigned char)*rest))
                return false;
        ret->n_parts = strtoull(rest, &end, 10);
        return *end == '\0' && ret->part >= 1 && ret->part <= ret->n_parts && ret->n_parts <= PARTS_MAX;
}

static bool read_message(natsMsg *m, FleetMessage *ret) {
        const char *host = strchr(natsMsg_GetSubject(m), '.'), *route = host ? strchr(host + 1, '.') : NULL, *offset;

        if (!route || !take_word(host + 1, (size_t)(route - host - 1), ret->host) || !take_word(route + 1, strlen(route + 1), ret->route) ||
            !header_word(m, "Perfd-Machine", ret->machine) || !header_word(m, "Perfd-Boot", ret->boot) ||
            !header_word(m, "Perfd-Descriptors", ret->descriptors) || !header_number(m, "Perfd-Epoch", '\0', &ret->epoch, NULL) ||
            !header_number(m, "Perfd-Sequence", '\0', &ret->sequence, NULL) || !header_parts(m, ret) ||
            natsMsgHeader_Get(m, "Perfd-Wall-Offset", &offset) != NATS_OK)
                return false;
        ret->wall_offset = strtoll(offset, NULL, 10);
        ret->bytes = (const uint8_t *)natsMsg_GetData(m);
        ret->length = (size_t)natsMsg_GetDataLength(m);
        return true;
}

int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret) {
        jsMsgMetaData *about = NULL;
        natsStatus status;

        natsMsg_Destroy(s->message);
        s->message = NULL;
        status = natsSubscription_NextMsg(&s->message, s->subscription, timeout);
        if (status == NATS_TIMEOUT)
                return FLEET_E_NONE;
        if (status == NATS_OK)
                status = natsMsg_GetMetaData(&about, s->message);
        if (status != NATS_OK)
                return fail(s, "the next message", status);
        s->sequence = about->Sequence.Stream;
        ret->stored = (uint64_t)about->Timestamp;
        jsMsgMetaData_Destroy(about);
        return read_message(s->message, ret) ? 0 : FLEET_E_ALIEN;
}

bool fleet_source_is_through(const FleetSource *s) {
        return s->sequence >= s->last;
}

bool fleet_source_find_descriptors(FleetSource *s, const char *digest, uint8_t **ret_bytes, size_t *ret_length) {
        uint8_t *bytes = NULL;
        size_t n = 0;
        FleetMessage part = { .n_parts = 1 };

        for (uint64_t i = 1; i <= part.n_parts; i++) {
                natsMsg *m = NULL;
                char subject[128];
                bool is_found;

                (void)snprintf(subject, sizeof(subject), "perfd-descriptors.%s.%llu", digest, (unsigned long long)i);
                is_found = js_GetLastMsg(&m, s->js, s->descriptors, subject, NULL, NULL) == NATS_OK && header_parts(m, &part) && part.part == i;
                if (!is_found) {
                        natsMsg_Destroy(m);
                        free(bytes);
                        return false;
                }
                bytes = must_have(realloc(bytes, n + (size_t)natsMsg_GetDataLength(m) + 1));
                memcpy(bytes + n, natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m));
                n += (size_t)natsMsg_GetDataLength(m);
                natsMsg_Destroy(m);
        }
        *ret_bytes = bytes;
        *ret_length = n;
        return true;
}

void fleet_source_close(FleetSource *s) {
        if (!s)
                return;
        natsMsg_Destroy(s->message);
        if (s->subscription) /* natsSubscription_Destroy() alone can crash while messages come (libnats 3.4) */
                (void)natsSubscription_Unsubscribe(s->subscription);
        natsSubscription_Destroy(s->subscription);
        jsCtx_Destroy(s->js);
        natsConnection_Destroy(s->connection);
        nats_Close();
        free(s->descriptors);
        free(s);
}
