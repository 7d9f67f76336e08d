/* The length of a message stands before it, in as many bytes as it needs: it is moved by one or two where one byte was not enough. */
#include <stdlib.h>
#include <string.h>

#include "client/profile/message-writer.h"
#include "client/profile/utf8.h"

#define VARINT_MAX 10 /* bytes */
#define KEY(field, type) ((uint64_t)(field) << 3 | (type))

enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2 };

void message_writer_deinit(MessageWriter *m) {
        free(m->bytes);
        *m = MESSAGE_WRITER_NULL;
}

/* Room for n more. */
static bool reserve(MessageWriter *m, size_t n) {
        size_t room = m->room > 0 ? m->room : 256;
        uint8_t *grown;

        if (m->has_failed)
                return false;
        if (m->n + n <= m->room)
                return true;
        while (room < m->n + n)
                room *= 2;
        grown = realloc(m->bytes, room);
        if (!grown) {
                m->has_failed = true;
                return false;
        }
        m->bytes = grown;
        m->room = room;
        return true;
}

static size_t varint(uint8_t to[static VARINT_MAX], uint64_t number) {
        size_t n = 0;

        for (; number >= 0x80; number >>= 7)
                to[n++] = (uint8_t)(number | 0x80);
        to[n++] = (uint8_t)number;
        return n;
}

/* Where there is room. */
static void put_varint(MessageWriter *m, uint64_t number) {
        m->n += varint(m->bytes + m->n, number);
}

void message_put_number(MessageWriter *m, uint32_t field, uint64_t number) {
        if (!reserve(m, 2 * VARINT_MAX))
                return;
        put_varint(m, KEY(field, VARINT));
        put_varint(m, number);
}

void message_put_double(MessageWriter *m, uint32_t field, double number) {
        uint64_t bits;

        if (!reserve(m, VARINT_MAX + sizeof(bits)))
                return;
        put_varint(m, KEY(field, FIXED64));
        memcpy(&bits, &number, sizeof(bits));
        for (size_t i = 0; i < sizeof(bits); i++, bits >>= 8)
                m->bytes[m->n++] = (uint8_t)bits;
}

void message_put_bytes(MessageWriter *m, uint32_t field, const void *bytes, size_t n) {
        if (!reserve(m, 2 * VARINT_MAX + n))
                return;
        put_varint(m, KEY(field, LENGTH_DELIMITED));
        put_varint(m, n);
        if (n > 0)
                memcpy(m->bytes + m->n, bytes, n);
        m->n += n;
}

static bool is_ascii(const char *bytes, size_t n) {
        unsigned char any = 0;

        for (size_t i = 0; i < n; i++)
                any |= (unsigned char)bytes[i];
        return any < 0x80;
}

void message_put_string(MessageWriter *m, uint32_t field, const char *bytes, size_t n) {
        char *name, *text;

        n = strnlen(bytes ? bytes : "", n);
        if (is_ascii(bytes, n)) {
                message_put_bytes(m, field, bytes, n);
                return;
        }
        name = strndup(bytes, n);
        text = name ? utf8_export_string(name) : NULL;
        if (text)
                message_put_bytes(m, field, text, strlen(text));
        else
                m->has_failed = true;
        free(name);
        free(text);
}

void message_put_fields(MessageWriter *m, const MessageWriter *fields) {
        m->has_failed = m->has_failed || fields->has_failed;
        if (fields->n == 0 || !reserve(m, fields->n))
                return;
        memcpy(m->bytes + m->n, fields->bytes, fields->n);
        m->n += fields->n;
}

size_t message_open(MessageWriter *m, uint32_t field) {
        if (!reserve(m, VARINT_MAX + 1))
                return 0;
        put_varint(m, KEY(field, LENGTH_DELIMITED));
        return ++m->n;
}

void message_close(MessageWriter *m, size_t at) {
        uint8_t length[VARINT_MAX];
        size_t n;

        if (m->has_failed)
                return;
        n = varint(length, m->n - at);
        if (!reserve(m, n))
                return;
        if (n > 1)
                memmove(m->bytes + at + n - 1, m->bytes + at, m->n - at);
        memcpy(m->bytes + at - 1, length, n);
        m->n += n - 1;
}
