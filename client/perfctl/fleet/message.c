/*
 * What is in messages is a foreign program's word: nothing of it is longer than its place, and what is not as it should be is no message
 * of a relay.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fleet/nats.h"

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

static bool header_number(natsMsg *m, const char *name, uint64_t *ret) {
        const char *value;
        char *behind;

        if (natsMsgHeader_Get(m, name, &value) != NATS_OK || !isdigit((unsigned char)*value))
                return false;
        errno = 0;
        *ret = strtoull(value, &behind, 10);
        return errno == 0 && *behind == '\0';
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

static const char *get_header(void *message, const char *name) {
        return fleet_header(message, name);
}

perfd_fleet_message fleet_message_of(natsMsg *from) {
        perfd_fleet_message m = PERFD_FLEET_MESSAGE_INIT;

        m.subject = natsMsg_GetSubject(from);
        m.header = get_header;
        m.userdata = from;
        m.bytes = natsMsg_GetData(from);
        m.length = (size_t)natsMsg_GetDataLength(from);
        return m;
}

bool fleet_message_read(natsMsg *m, FleetMessage *ret) {
        char (*words[])[FLEET_WORD_SIZE] = { &ret->host, &ret->route };

        ret->raw = fleet_message_of(m);
        ret->raw.stored = ret->stored;
        return take_subject(m, words, 2);
}

static bool take_all(natsMsg *m, FleetMessage *ret) {
        const char *part;

        ret->bytes = (const uint8_t *)natsMsg_GetData(m);
        ret->length = (size_t)natsMsg_GetDataLength(m);
        return header_word(m, "Perfd-Machine", ret->machine) && header_word(m, "Perfd-Boot", ret->boot) &&
               header_number(m, "Perfd-Epoch", &ret->epoch) && header_number(m, "Perfd-Sequence", &ret->sequence) && ret->sequence > 0 &&
               natsMsgHeader_Get(m, "Perfd-Part", &part) == NATS_OK && strcmp(part, "1/1") == 0;
}

/* The subject has to say the same as the headers. */
bool fleet_message_read_status(natsMsg *m, FleetMessage *ret) {
        char machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE], (*words[])[FLEET_WORD_SIZE] = { &ret->host, &ret->route, &machine, &boot };

        return take_subject(m, words, 4) && take_all(m, ret) && strcmp(ret->route, "status") == 0 && strcmp(ret->machine, machine) == 0 &&
               strcmp(ret->boot, boot) == 0;
}
