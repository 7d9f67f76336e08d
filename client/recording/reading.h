/* For this folder and recorded/: what is known of a recording while it is read. */
#pragma once

#include "client/perfd/error.h"
#include "client/perfd/recorded-sample.h"
#include "client/perfd/recording.h"
#include "client/recording/bytes.h"
#include "client/recording/source.h"
#include "proto/recording-format.h"

#define DAMAGES_MAX 1000
#define ERROR_SIZE 512
#define RECORD_MAX ((size_t)UINT16_MAX) /* bytes, with its header */

typedef struct Section {
        uint64_t offset, size; /* bytes */
} Section;

typedef struct Event {
        perfd_recorded_event shown;
        char *name;
        uint64_t *ids;
        /* ids.c, where the time of its records is; SIZE_MAX: they have none */
        size_t time_at, time_before_end; /* bytes from the beginning of a sample, from the end of another record */
} Event;

/* A section of the header that came as a record. */
typedef struct Piece {
        uint64_t offset;
        uint8_t *bytes;
        size_t n;
} Piece;

typedef struct Damages {
        perfd_damage *list;
        size_t n, room;
        uint64_t n_all;
} Damages;

/* left-out.c */
typedef struct LeftOut {
        Section *list; /* in the order of the recording, with room between them */
        size_t n, room;
        uint64_t n_samples;
} LeftOut;

typedef struct IdSlot {
        uint64_t id;
        size_t event; /* 1 + its index; 0: the slot is empty */
} IdSlot;

typedef struct Ids {
        IdSlot *slots;
        size_t n_slots, n_events; /* a power of two; events that it was built of */
        size_t at, before_end;    /* where records have them: bytes from the beginning of a sample, from the end of another; SIZE_MAX: nowhere */
} Ids;

typedef struct Decompress Decompress; /* decompress.c */
typedef struct Order Order;           /* order.h */

struct perfd_recording {
        Source source;
        bool is_pipe, is_swapped, is_big_endian;
        uint64_t at, end;            /* of the next record, and of all: bytes from the beginning */
        bool has_ended;
        bool is_unclosed;            /* a file whose header does not say how many bytes of records it has */
        uint64_t data;               /* where the records of a file begin */
        uint64_t whole;              /* bytes up to the end of the last record that is whole, with what lies behind it */
        perfd_recorded shown;
        Section sections[PERF_DATA_FEATURES]; /* of a file; size 0 too */
        Piece pieces[PERF_DATA_FEATURES]; /* of a pipe */
        uint64_t features[PERF_DATA_FEATURES / 64];
        uint64_t cut[PERF_DATA_FEATURES / 64]; /* the file has less of them, or they are damaged, which is said */
        Piece event_types;           /* of a pipe */
        Event *events;
        size_t n_events, events_room;
        size_t n_named, n_late_names; /* of a pipe: events of which no name is looked for any more, and how often it was looked for */
        Ids ids;
        uint8_t *scratch;            /* RECORD_MAX bytes: of a sample */
        perfd_recorded_value *values;
        size_t values_room;
        Decompress *decompress;      /* NULL: nothing was compressed so far */
        perfd_recording_order order_kind;
        size_t order_memory;         /* bytes; 0: the default */
        char *order_directory;          /* NULL: the default */
        Order *order;                /* NULL: the order of the recording, or no record was asked for */
        bool has_begun;              /* a record was asked for */
        Damages damages;
        LeftOut left_out;
        struct RecordedItems *items; /* of recorded/, which frees them; NULL: nobody asked for one */
        void (*free_items)(struct RecordedItems *items);
        bool encodes_items; /* for tests: each sample goes through the bytes of an item */
        char error[ERROR_SIZE];
};

static inline bool recording_has(const perfd_recording *r, unsigned bit) {
        return bit < PERF_DATA_FEATURES && (r->features[bit / 64] >> bit % 64 & 1) != 0;
}
