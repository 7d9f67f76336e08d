/*
 * What JetStream answers to $JS.API.STREAM.INFO.* and to requests for a consumer, as far as perfd-relay and perfctl need it. Whatever a
 * server sends is read, and no more of it than there is; libnats 3.4 takes a name that is missing for one that is there. Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/nats/delivery.h"

#define STREAM_ANSWER_MAX ((size_t)1 << 20) /* bytes of one that is looked at; real ones have some thousand */
#define STREAM_NOT_FOUND 10059              /* err_code of nats-server, server/errors.json there */

typedef struct StreamAnswer {
        bool is_error;
        long code;             /* of an error: err_code, or 0 */
        char description[120]; /* the same, without bytes that a terminal would take for more than letters */
        bool discards_new, is_unacknowledged, is_sealed;
        int64_t longest_message; /* bytes; 0: as long as the server takes */
        uint64_t first, last, messages; /* numbers of messages, and how many there are */
} StreamAnswer;

/* What a server says, as a terminal may see it: in `to`, which it returns. */
const char *stream_answer_text(const char *text, char *to, size_t size);
/* About the stream of this name. NULL; or why it is no answer of JetStream, in words of one line. */
const char *stream_answer_read(const char *bytes, size_t n, const char *stream, StreamAnswer *ret);
/* With a message of a stream. The same; of an error NULL. */
const char *message_answer_check(const char *bytes, size_t n);

typedef struct ConsumerAnswer {
        bool is_error;
        long code;             /* as above */
        char description[120];
        char name[NATS_NAME_SIZE];
        uint64_t pending;      /* messages that it has not delivered */
        uint64_t delivered;    /* that it has, by its own count */
        uint64_t last, floor;  /* numbers in the stream: of the last that it has delivered, and up to which all are acknowledged */
        bool pushes;           /* to a subject of its configuration */
        bool acknowledges_all; /* a message, and all before it, at once */
        char filter[160];      /* the subject that it is of; "": all, as far as the answer says */
} ConsumerAnswer;

/* About a consumer. The same. */
const char *consumer_answer_read(const char *bytes, size_t n, ConsumerAnswer *ret);
