/* Lengths have a checksum of their own, apart from that of what they are lengths of: damage in one message costs no other one. */
#include "client/relay/publish/spool-record.h"

#include <endian.h>
#include <string.h>

#include "client/relay/publish/checksum.h"
#include "daemon/base/error.h"

#define MAGIC "perfdspl"
#define RECORD_MAGIC UINT32_C(0x67736d70) /* "pmsg" */
#define BODY_HEADER_SIZE 8
#define MACHINE_BYTES 16

enum { AT_VERSION = 8, AT_SALT = 12, AT_NUMBER = 16, AT_FIRST = 24, AT_MACHINE = 32, AT_CHECKSUM = 60 };
enum { AT_LENGTH = 4, AT_RECORD_NUMBER = 8, AT_BODY_CHECKSUM = 16, AT_RECORD_CHECKSUM = 20 };

static void put16(uint8_t *to, size_t n) {
        uint16_t little = htole16((uint16_t)n);

        memcpy(to, &little, sizeof(little));
}

static void put32(uint8_t *to, uint32_t n) {
        n = htole32(n);
        memcpy(to, &n, sizeof(n));
}

static void put64(uint8_t *to, uint64_t n) {
        n = htole64(n);
        memcpy(to, &n, sizeof(n));
}

static size_t get16(const uint8_t *from) {
        uint16_t n;

        memcpy(&n, from, sizeof(n));
        return le16toh(n);
}

static uint32_t get32(const uint8_t *from) {
        uint32_t n;

        memcpy(&n, from, sizeof(n));
        return le32toh(n);
}

static uint64_t get64(const uint8_t *from) {
        uint64_t n;

        memcpy(&n, from, sizeof(n));
        return le64toh(n);
}

static size_t align(size_t n) {
        return (n + SPOOL_ALIGNMENT - 1) & ~(size_t)(SPOOL_ALIGNMENT - 1);
}

/* ---- the header of a file ----------------------------------------------------------------------------------------- */

static uint8_t digit(char c) {
        return (uint8_t)(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0);
}

void spool_header_put(uint8_t to[SPOOL_HEADER_SIZE], const SpoolHeader *h) {
        memset(to, 0, SPOOL_HEADER_SIZE);
        memcpy(to, MAGIC, sizeof(MAGIC) - 1);
        put32(to + AT_VERSION, SPOOL_VERSION);
        put32(to + AT_SALT, h->salt);
        put64(to + AT_NUMBER, h->number);
        put64(to + AT_FIRST, h->first);
        for (size_t i = 0; i < MACHINE_BYTES && h->machine[2 * i]; i++)
                to[AT_MACHINE + i] = (uint8_t)(digit(h->machine[2 * i]) << 4 | digit(h->machine[2 * i + 1]));
        put32(to + AT_CHECKSUM, checksum(0, to, AT_CHECKSUM));
}

int spool_header_get(const uint8_t *bytes, size_t length, SpoolHeader *ret) {
        static const char digits[] = "0123456789abcdef";
        SpoolHeader h = { .number = 0 };

        if (length < SPOOL_HEADER_SIZE || memcmp(bytes, MAGIC, sizeof(MAGIC) - 1) != 0 ||
            get32(bytes + AT_CHECKSUM) != checksum(0, bytes, AT_CHECKSUM))
                return SPOOL_HEADER_E_DAMAGED;
        if (get32(bytes + AT_VERSION) != SPOOL_VERSION)
                return SPOOL_HEADER_E_VERSION;
        h.salt = get32(bytes + AT_SALT);
        h.number = get64(bytes + AT_NUMBER);
        h.first = get64(bytes + AT_FIRST);
        for (size_t i = 0; i < MACHINE_BYTES; i++) {
                h.machine[2 * i] = digits[bytes[AT_MACHINE + i] >> 4];
                h.machine[2 * i + 1] = digits[bytes[AT_MACHINE + i] & 15];
        }
        *ret = h;
        return 0;
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

static size_t body_size(const Message *m) {
        size_t n = BODY_HEADER_SIZE + strlen(m->subject) + strlen(m->id) + m->length;

        for (unsigned i = 0; i < m->n_headers; i++)
                n += 4 + strlen(m->headers[i].name) + strlen(m->headers[i].value);
        return n;
}

size_t spool_record_size(const Message *m) {
        return SPOOL_RECORD_HEADER_SIZE + align(body_size(m));
}

static uint8_t *put_text(uint8_t *to, const char *text) {
        size_t n = strlen(text);

        memcpy(to, text, n);
        return to + n;
}

void spool_record_put(uint8_t *to, const Message *m, uint64_t number, uint32_t salt) {
        uint8_t *body = to + SPOOL_RECORD_HEADER_SIZE, *at = body + BODY_HEADER_SIZE;
        size_t length = body_size(m);

        put16(body, strlen(m->subject));
        put16(body + 2, strlen(m->id));
        put16(body + 4, m->n_headers);
        put16(body + 6, 0);
        at = put_text(put_text(at, m->subject), m->id);
        for (unsigned i = 0; i < m->n_headers; i++) {
                put16(at, strlen(m->headers[i].name));
                put16(at + 2, strlen(m->headers[i].value));
                at = put_text(put_text(at + 4, m->headers[i].name), m->headers[i].value);
        }
        memcpy(at, m->bytes, m->length);
        memset(body + length, 0, align(length) - length);
        put32(to, RECORD_MAGIC);
        put32(to + AT_LENGTH, (uint32_t)length);
        put64(to + AT_RECORD_NUMBER, number);
        put32(to + AT_BODY_CHECKSUM, checksum(salt, body, length));
        put32(to + AT_RECORD_CHECKSUM, checksum(salt, to, AT_RECORD_CHECKSUM));
}

/* 0: there is no header of a record. Else the length of the record, which may be more than is there. */
static size_t find_header(const uint8_t *bytes, uint32_t salt, uint64_t after) {
        size_t length = get32(bytes + AT_LENGTH);

        if (get32(bytes) != RECORD_MAGIC || length < BODY_HEADER_SIZE || length > SPOOL_RECORD_MAX - SPOOL_RECORD_HEADER_SIZE ||
            get64(bytes + AT_RECORD_NUMBER) <= after || get32(bytes + AT_RECORD_CHECKSUM) != checksum(salt, bytes, AT_RECORD_CHECKSUM))
                return 0;
        return SPOOL_RECORD_HEADER_SIZE + align(length);
}

/* Up to what looks like a record, or as far as can be told. */
static size_t skip_damage(const uint8_t *bytes, size_t length, bool is_all, uint32_t salt, uint64_t after) {
        size_t at = SPOOL_ALIGNMENT;

        while (at + SPOOL_RECORD_HEADER_SIZE <= length && find_header(bytes + at, salt, after) == 0)
                at += SPOOL_ALIGNMENT;
        return is_all && at + SPOOL_RECORD_HEADER_SIZE > length ? length : at;
}

SpoolFound spool_find(const uint8_t *bytes, size_t length, bool is_all, uint32_t salt, uint64_t after, SpoolPlace *ret) {
        size_t n;

        *ret = (SpoolPlace){ .length = length };
        if (length < SPOOL_RECORD_HEADER_SIZE)
                return !is_all ? SPOOL_MORE : length > 0 ? SPOOL_DAMAGE : SPOOL_END;
        n = find_header(bytes, salt, after);
        if (n == 0) {
                ret->length = skip_damage(bytes, length, is_all, salt, after);
                return SPOOL_DAMAGE;
        }
        if (n > length)
                return is_all ? SPOOL_DAMAGE : SPOOL_MORE;
        ret->length = n;
        ret->number = get64(bytes + AT_RECORD_NUMBER);
        return get32(bytes + AT_BODY_CHECKSUM) == checksum(salt, bytes + SPOOL_RECORD_HEADER_SIZE, get32(bytes + AT_LENGTH)) ? SPOOL_RECORD
                                                                                                                               : SPOOL_DAMAGE;
}

/* ---- the message of a record -------------------------------------------------------------------------------------- */

typedef struct Reader {
        const uint8_t *at, *end;
} Reader;

static bool take_text(Reader *r, size_t n, char *to, size_t size) {
        if (n >= size || (size_t)(r->end - r->at) < n || memchr(r->at, '\0', n))
                return false;
        memcpy(to, r->at, n);
        to[n] = '\0';
        r->at += n;
        return true;
}

static bool take_header(Reader *r, MessageHeader *h) {
        size_t n_name, n_value;

        if (r->end - r->at < 4)
                return false;
        n_name = get16(r->at);
        n_value = get16(r->at + 2);
        r->at += 4;
        return take_text(r, n_name, h->name, sizeof(h->name)) && take_text(r, n_value, h->value, sizeof(h->value));
}

static bool take_texts(Reader *r, Message *m) {
        size_t n_subject = get16(r->at), n_id = get16(r->at + 2), n_headers = get16(r->at + 4);

        r->at += BODY_HEADER_SIZE;
        if (n_headers > MESSAGE_HEADERS_MAX || !take_text(r, n_subject, m->subject, sizeof(m->subject)) ||
            !take_text(r, n_id, m->id, sizeof(m->id)))
                return false;
        while (m->n_headers < n_headers)
                if (!take_header(r, &m->headers[m->n_headers++]))
                        return false;
        return (size_t)(r->end - r->at) <= MESSAGE_BYTES_MAX;
}

int spool_record_get(const uint8_t *record, const SpoolPlace *place, Message **ret) {
        const uint8_t *body = record + SPOOL_RECORD_HEADER_SIZE;
        Reader r = { .at = body, .end = body + get32(record + AT_LENGTH) };
        Message texts = { .n_headers = 0 }, *m;

        if (!take_texts(&r, &texts))
                return REFUSED_INVALID;
        m = message_new(r.at, (size_t)(r.end - r.at));
        if (!m)
                return error_origin(-ENOMEM);
        texts.length = m->length;
        *m = texts; /* but for the bytes, which are behind it */
        m->spooled = place->number;
        *ret = m;
        return 0;
}
