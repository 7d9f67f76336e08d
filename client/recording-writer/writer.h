/* For this folder alone: a recording while it is written. */
#pragma once

#include <zstd.h>

#include "client/perfd/error.h"
#include "client/perfd/recording-writer.h"
#include "client/recording-writer/buffer.h"
#include "proto/recording-format.h"

#define WRITER_BATCH ((size_t)60000) /* bytes of records: compressed they fit into one record in any case */
#define WRITER_LARGE_FILE ((uint64_t)4 << 20) /* bytes: who looks at the size of a smaller one wants to see it grow */
#define WRITER_LARGE_BATCH ((size_t)256 << 10) /* of larger ones, not compressed: the kernel takes two thirds of the time for it */
#define ATTR_WRITTEN ((size_t)128)   /* bytes, as perf of Linux 5.12 to 6.2 has them: newer ones take it too */
#define WRITER_ERROR 512

typedef struct WrittenEvent {
        perfd_recorded_event event; /* its name and ids are the next two */
        char *name;
        uint64_t *ids;
} WrittenEvent;

typedef struct Place {
        uint64_t offset, size; /* bytes */
} Place;

struct perfd_recording_writer {
        int fd;                   /* -1: none */
        bool is_pipe, is_open, has_begun, has_failed;
        int level;
        char *path, *part;        /* of a file: its name, and the temporary one */
        uint64_t at;              /* bytes written that are whole */
        uint64_t data;            /* where the records of a file begin */
        WrittenEvent *events;
        size_t n_events, n_late, room;
        Place ids;                /* of a file: the room for them */
        Buffer features[PERF_DATA_FEATURES];
        bool has[PERF_DATA_FEATURES];
        Place places[PERF_DATA_FEATURES];
        uint64_t first, last;     /* times of samples, ns */
        bool has_time;
        Buffer batch, scratch;
        uint64_t n_in_batch, n_unwritten; /* samples: in it, and that failed to get into the file */
        ZSTD_CStream *zstd;
        char error[WRITER_ERROR];
};

/* writer.c: that code, with a text. */
int writer_fail(perfd_recording_writer *w, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* write.c: all of the bytes behind what is written, or none of them. 0; -errno with a text */
int writer_write(perfd_recording_writer *w, const void *bytes, size_t n);
/* The same at a place of a file that is written already. */
int writer_write_at(perfd_recording_writer *w, uint64_t at, const void *bytes, size_t n);
/*
 * Room in the batch for a record of at most n bytes behind its header, where *ret is then; and the record that was put there. Between both the
 * batch is left alone. 0; as perfd_recording_writer_put()
 */
int writer_reserve(perfd_recording_writer *w, size_t n, uint8_t **ret);
int writer_take(perfd_recording_writer *w, uint32_t type, uint16_t misc, size_t n);
/* What is in the batch. */
int writer_flush(perfd_recording_writer *w);
/* A record behind the batch, not compressed. */
int writer_write_record(perfd_recording_writer *w, uint32_t type, uint16_t misc, const void *bytes, size_t n);

/* head.c: what stands before the records. 0; -ENOMEM, -errno */
int head_begin(perfd_recording_writer *w);
/* An event that was added behind the first record. */
int head_add_event(perfd_recording_writer *w, size_t index);
/* TRACING_DATA instead of what there was, with formats of tracepoints that were added behind the first record. */
int head_renew_tracing(perfd_recording_writer *w, const void *bytes, size_t n);
/* What stands behind the records, and where it is. */
int head_end(perfd_recording_writer *w);

/* attr.c */
void attr_put(Buffer *b, const perfd_recorded_event *e);
/* The section EVENT_DESC. */
void attrs_put_desc(Buffer *b, const perfd_recording_writer *w);
