#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"

#define SUBJECT "perfd."
#define STATUS ".status"

/* Letters, digits, '-' and '_'. */
bool fleet_word_read(const char *from, size_t n, char to[FLEET_WORD_SIZE]) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)from[i]) && from[i] != '-' && from[i] != '_')
                        return false;
        if (n == 0 || n >= FLEET_WORD_SIZE)
                return false;
        memcpy(to, from, n);
        to[n] = '\0';
        return true;
}

static bool header_word(const perfd_fleet_message *m, const char *name, char to[FLEET_WORD_SIZE]) {
        const char *value = m->header(m->userdata, name);

        return value && fleet_word_read(value, strnlen(value, FLEET_WORD_SIZE), to);
}

/* `end` stands behind it; *ret_behind is what follows that. */
static bool number_read(const char *text, char end, uint64_t *ret, const char **ret_behind) {
        char *behind;

        if (!text || !isdigit((unsigned char)*text))
                return false;
        errno = 0;
        *ret = strtoull(text, &behind, 10);
        if (errno != 0 || *behind != end)
                return false;
        if (ret_behind)
                *ret_behind = behind + 1;
        return true;
}

static bool header_number(const perfd_fleet_message *m, const char *name, uint64_t *ret) {
        return number_read(m->header(m->userdata, name), '\0', ret, NULL);
}

static bool header_difference(const perfd_fleet_message *m, const char *name, int64_t *ret) {
        const char *value = m->header(m->userdata, name);
        char *behind;

        if (!value || !isdigit((unsigned char)value[*value == '-']))
                return false;
        errno = 0;
        *ret = strtoll(value, &behind, 10);
        return errno == 0 && *behind == '\0';
}

bool fleet_part_read(const perfd_fleet_message *m, uint64_t *ret_part, uint64_t *ret_n_parts) {
        const char *behind;

        return number_read(m->header(m->userdata, "Perfd-Part"), '/', ret_part, &behind) && number_read(behind, '\0', ret_n_parts, NULL) &&
               *ret_part >= 1 && *ret_part <= *ret_n_parts && *ret_n_parts <= FLEET_PARTS_MAX;
}

static bool subject_read(const char *subject, FleetHead *ret) {
        const char *host = subject + sizeof(SUBJECT) - 1, *dot;

        if (strncmp(subject, SUBJECT, sizeof(SUBJECT) - 1) != 0)
                return false;
        dot = strchr(host, '.');
        return dot && fleet_word_read(host, (size_t)(dot - host), ret->host) && fleet_word_read(dot + 1, strnlen(dot + 1, FLEET_WORD_SIZE), ret->route);
}

bool fleet_is_status(const char *subject) {
        const char *word = strncmp(subject, SUBJECT, sizeof(SUBJECT) - 1) == 0 ? strchr(subject + sizeof(SUBJECT) - 1, '.') : NULL;

        return word && strncmp(word, STATUS, sizeof(STATUS) - 1) == 0 && (word[sizeof(STATUS) - 1] == '\0' || word[sizeof(STATUS) - 1] == '.');
}

static bool is_digest(const char *word) {
        return strlen(word) == 32 && strspn(word, "0123456789abcdef") == 32;
}

const char *fleet_head_read(const perfd_fleet_message *m, FleetHead *ret) {
        if (!subject_read(m->subject, ret))
                return "its subject is not perfd.HOST.ROUTE";
        if (!header_word(m, "Perfd-Machine", ret->machine) || !header_word(m, "Perfd-Boot", ret->boot))
                return "its headers do not say of which machine and boot it is";
        if (!header_number(m, "Perfd-Epoch", &ret->epoch))
                return "its header Perfd-Epoch is no number";
        if (!header_number(m, "Perfd-Sequence", &ret->sequence) || ret->sequence == 0 || ret->sequence == UINT64_MAX)
                return "its header Perfd-Sequence is no sequence number";
        if (!header_word(m, "Perfd-Descriptors", ret->digest) || !is_digest(ret->digest))
                return "its header Perfd-Descriptors is no digest";
        if (!header_difference(m, "Perfd-Wall-Offset", &ret->wall_offset))
                return "its header Perfd-Wall-Offset is no number";
        if (!fleet_part_read(m, &ret->part, &ret->n_parts))
                return "its header Perfd-Part is no part of a packet";
        if (m->length > FLEET_PACKET_MAX)
                return "it is longer than a packet can be";
        if (!header_number(m, "Perfd-Items", &ret->items))
                return "its header Perfd-Items is no number";
        ret->has_matched = m->header(m->userdata, "Perfd-Matched") != NULL;
        if (ret->has_matched && (!header_number(m, "Perfd-Matched", &ret->matched) || ret->matched < ret->items))
                return "its header Perfd-Matched is no number of items";
        return NULL;
}
