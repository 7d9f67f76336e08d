/*
 * For writers of messages that are known by their field numbers alone: a message of protobuf in memory that grows, with messages in it.
 * Memory that cannot be had is remembered, and what is put then is left out: whoever writes the message asks once, before it goes out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MessageWriter {
        uint8_t *bytes;
        size_t n, room;
        bool has_failed; /* no memory */
} MessageWriter;

#define MESSAGE_WRITER_NULL ((MessageWriter){ .bytes = NULL })

void message_writer_deinit(MessageWriter *m);

/* A number that is not negative; of a negative one as int32 or int64, its 64 bits. */
void message_put_number(MessageWriter *m, uint32_t field, uint64_t number);
void message_put_double(MessageWriter *m, uint32_t field, double number);
void message_put_bytes(MessageWriter *m, uint32_t field, const void *bytes, size_t n);
/* A string: as utf8_export() has its characters, and so always UTF-8. A NUL ends it. */
void message_put_string(MessageWriter *m, uint32_t field, const char *bytes, size_t n);
/* Fields that were put into another one. */
void message_put_fields(MessageWriter *m, const MessageWriter *fields);

/* A message in it, from open, which gives where it is, to close. */
size_t message_open(MessageWriter *m, uint32_t field);
void message_close(MessageWriter *m, size_t at);
