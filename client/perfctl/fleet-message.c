/*
 * What is in messages is a foreign program's word: nothing of it is longer than its place, and what is not as it should be is no message
 * of a relay.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fleet-nats.h"

#define PARTS_MAX 64 /* 32 MiB */

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

static bool header_signed(natsMsg *m, const char *name, int64_t *ret) {
        const char *value;
        char *behind;

        if (natsMsgHeader_Get(m, name, &value) != NATS_OK || !isdigit((unsigned char)value[*value == '-']))
                return false;
        errno = 0;
        *ret = strtoll(value, &behind, 10);
        return errno == 0 && *behind == '\0';
}

bool fleet_message_read_parts(natsMsg *m, FleetMessage *ret) {
        const char *rest;
        char *end;

        if (!header_number(m, "Perfd-Part", '/', &ret->part, &rest) || !isdigit((unsigned char)*rest))
                return false;
        ret->n_parts = strtoull(rest, &end, 10);
        return *end == '\0' && ret->part >= 1 && ret->part <= ret->n_parts && ret->n_parts <= PARTS_MAX;
}

/* The parts of a subject between dots: "perfd", and these. */
static bool take_subject(natsMsg *m, char (*words[])[FLEET_WORD_SIZE], size_t n) {
        const char *at = strchr(natsMsg_GetSubject(m), '.');

        for (size_t i = 0; i < n; i++) {
                size_t length;

                if (!at)
                        return false;
                length = strcspn(at + 1, ".");
                if (!take_word(at + 1, length, *words[i]))
                        return false;
                at = at[1 + length] ? at + 1 + length : NULL;
        }
        return !at;
}

static bool take_all(natsMsg *m, FleetMessage *ret) {
        ret->bytes = (const uint8_t *)natsMsg_GetData(m);
        ret->length = (size_t)natsMsg_GetDataLength(m);
        return header_word(m, "Perfd-Machine", ret->machine) && header_word(m, "Perfd-Boot", ret->boot) &&
               header_number(m, "Perfd-Epoch", '\0', &ret->epoch, NULL) &&
               header_number(m, "Perfd-Sequence", '\0', &ret->sequence, NULL) && ret->sequence > 0 &&
               header_number(m, "Perfd-Items", '\0', &ret->items, NULL) && fleet_message_read_parts(m, ret);
}

bool fleet_message_read(natsMsg *m, FleetMessage *ret) {
        char (*words[])[FLEET_WORD_SIZE] = { &ret->host, &ret->route };
        const char *value;

        if (!take_subject(m, words, 2) || !take_all(m, ret) || !header_word(m, "Perfd-Descriptors", ret->descriptors) ||
            !header_signed(m, "Perfd-Wall-Offset", &ret->wall_offset))
                return false;
        ret->matched = 0;
        ret->has_matched = natsMsgHeader_Get(m, "Perfd-Matched", &value) == NATS_OK;
        return !ret->has_matched || (header_number(m, "Perfd-Matched", '\0', &ret->matched, NULL) && ret->matched >= ret->items);
}

/* The subject has to say the same as the headers. */
bool fleet_message_read_status(natsMsg *m, FleetMessage *ret) {
        char machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE], (*words[])[FLEET_WORD_SIZE] = { &ret->host, &ret->route, &machine, &boot };

        return take_subject(m, words, 4) && take_all(m, ret) && ret->n_parts == 1 && strcmp(ret->route, "status") == 0 &&
               strcmp(ret->machine, machine) == 0 && strcmp(ret->boot, boot) == 0;
}
