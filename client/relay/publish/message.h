/* What is published: bytes under a subject, with headers. One owner at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_BYTES_MAX ((size_t)512 << 10) /* of `bytes` */
#define MESSAGE_HEADERS_MAX 14

typedef struct MessageHeader {
        char name[24], value[72];
} MessageHeader;

typedef struct Message {
        struct Message *next;
        uint64_t number;   /* the publisher's */
        bool is_status;    /* what the relay says of itself: no part of a route */
        bool is_refused;   /* it comes back without being stored: it is longer than the server takes */
        uint8_t *prefix;   /* n_all bytes that can be sent before its own, the publisher's: refused.h. The first n_gaps are gaps */
        size_t n_all, n_gaps, n_prefix; /* n_prefix: of these, what is sent */
        uint64_t spooled;  /* its number in the spool; 0: it is only in memory */
        struct Message *older, *newer; /* of those in the spool that the publisher has */
        char subject[192], id[256]; /* id: under which it is stored once */
        MessageHeader headers[MESSAGE_HEADERS_MAX];
        unsigned n_headers;
        size_t length;
        uint8_t bytes[];
} Message;

/* With a copy of the bytes; the rest is the caller's to fill. NULL: no memory. */
Message *message_new(const uint8_t *bytes, size_t length);
void message_free(Message *m);
__attribute__((format(printf, 3, 4))) void message_add_header(Message *m, const char *name, const char *format, ...);
/* NULL: it has no such header. */
const char *message_header(const Message *m, const char *name);
/* What it takes in memory. */
static inline size_t message_size(const Message *m) {
        return sizeof(*m) + m->length;
}
