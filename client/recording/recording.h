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
        uint64_t cut[PERF_DATA_FEATURES / 64]; /* the file has less of them, which is said */
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
        struct RecordedItems *items; /* of recorded/, which frees them; NULL: nobody asked for one */
        void (*free_items)(struct RecordedItems *items);
        bool encodes_items; /* for tests: each sample goes through the bytes of an item */
        char error[ERROR_SIZE];
};

static inline bool recording_has(const perfd_recording *r, unsigned bit) {
        return bit < PERF_DATA_FEATURES && (r->features[bit / 64] >> bit % 64 & 1) != 0;
}

/* damage.c: PERFD_E_INVALID or -errno: that code, with a text. */
int recording_fail(perfd_recording *r, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What is wrong there, which does not end the reading. 0; -ENOMEM */
int recording_damage(perfd_recording *r, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What was wrong in these bytes, if anything was. what: "section HOSTNAME". 0; -ENOMEM */
int recording_damage_of(perfd_recording *r, const Bytes *b, const char *what);

/* The bytes there, at most n: until the next call. 0; -ENOMEM, -errno with a text */
int recording_get(perfd_recording *r, uint64_t offset, size_t n, Bytes *ret);

/* header.c: finds out what it is. As perfd_recording_open(). */
int recording_begin(perfd_recording *r);

/* attr.c: an attr of that many bytes, which may be more or fewer than those of this machine. */
void attr_read(Bytes *b, uint64_t size, perfd_recorded_event *ret);
/* It is called so from now on. 0; -ENOMEM */
int event_set_name(perfd_recording *r, Event *e, const char *name, size_t n);
/* Adds an event with that attr. 0; -ENOMEM */
int events_add(perfd_recording *r, Bytes *attr, uint64_t size);
/* The last one gets the ids that these bytes are. 0; -ENOMEM */
int events_take_ids(perfd_recording *r, Bytes *ids);
/* Events from that index on get the names of the section EVENT_DESC, which the bytes are, and its ids if they have none. 0; -ENOMEM */
int events_name(perfd_recording *r, Bytes *b, size_t from);
/* Tracepoints without a name get that of the table of perf before Linux 3.15, which the bytes are. 0; -ENOMEM */
int events_name_types(perfd_recording *r, Bytes *b);
/* The event with that id gets a name. 0; -ENOMEM */
int events_name_id(perfd_recording *r, uint64_t id, const char *name, size_t n);

/* event-name.c: by its type and config, "page-faults", "L1-dcache-load-misses", "r1c2"; else "type=T,config=0xC" */
#define EVENT_NAME_SIZE 96 /* bytes, with the zero */
void event_name_of(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]);
/* The same as perf script prints it, "cycles" for "cpu-cycles" */
void event_name_in_perf(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]);
/* "ns" or "events": of its count and period */
const char *event_unit(const perfd_recorded_event *e);

/* tracing.c: the format of a tracepoint. */
typedef struct RecordedFormat {
        const char *group;
        perfd_text name, text; /* text: all of it, as tracefs has it */
        uint64_t id;           /* config of its events */
        uint64_t offset;       /* of text */
} RecordedFormat;

/* 0, or what ends the visit. */
typedef int TracingVisitor(void *userdata, const RecordedFormat *format);

/* Each format of the tracing data that has an id; what is damaged is said. 0; PERFD_E_INVALID: there is none; -ENOMEM, -errno; the visitor's */
int tracing_visit(perfd_recording *r, TracingVisitor *visit, void *userdata);
/* Tracepoints without a name get that of their format. 0; -ENOMEM, -errno */
int tracing_name_events(perfd_recording *r);

/* ids.c: before a record whose event may be looked for: what is the same in all of them, if events have come since. 0; -ENOMEM with a text */
int ids_build(perfd_recording *r);
/* NULL: no event has that id. */
const Event *ids_find(const perfd_recording *r, uint64_t id);

/* sample.c: of what event a record is. NULL: it has none that is known. */
const Event *recording_event_of(const perfd_recording *r, const perfd_recorded *record);
/* Memory for RECORD_MAX bytes of a sample. 0; -ENOMEM with a text */
int recording_make_scratch(perfd_recording *r);
/* Bytes of the sample id of a record that is no sample; and whether one that ends there names this event. */
size_t record_id_size(uint64_t sample_type);
bool record_is_of(const perfd_recording *r, const perfd_recorded *record, size_t end, const Event *e);
/* surplus.c: what the kernel has not written at the end of a side record. */
void recording_drop_surplus(const perfd_recording *r, perfd_recorded *record);

/* features.c: the bytes of one. 0; PERFD_E_INVALID: it has none; -ENOMEM, -errno */
int feature_get(perfd_recording *r, unsigned bit, Bytes *ret);

/* pipe-records.c: names for events that have come behind what names them. 0; -ENOMEM, -errno */
int pipe_name_events(perfd_recording *r);
/* EVENT_UPDATE of a file, too. 0; -ENOMEM */
int event_update_take(perfd_recording *r, const Bytes *b);
/* Takes from a pipe's record what a file has in its header. b: behind the header of the record. 0; -ENOMEM */
int pipe_record_take(perfd_recording *r, uint32_t type, const Bytes *b);
/* Bytes behind the record HEADER_TRACING_DATA, which are kept. 0; -ENOMEM */
int pipe_tracing_take(perfd_recording *r, const Bytes *b);

/* next.c: as perfd_recording_next() in the order of the recording. */
int recording_read(perfd_recording *r, const perfd_recorded **ret);
/* sample.c: ns; 0: the record has none, or it is not known where. Says nothing of what is wrong: whoever decodes the record does. */
uint64_t recording_time(const perfd_recording *r, const perfd_recorded *record);

/* order.c: the next record in the order that was chosen, which is not the recording's. */
int order_next(perfd_recording *r, const perfd_recorded **ret);
/* order-fill.c: takes NULL. */
void order_free(Order *o);

/* memory.c: it says of processes and memory what they are. */
bool record_is_state(uint32_t type);

/* rounds.c: what a second reading of the same bytes tells: whether no order has to change anything, and whether the records
 * behind each FINISHED_ROUND keep what it promises. 0; -ENOMEM, -errno */
int rounds_check(const perfd_recording *r, bool *ret_is_sorted, bool *ret_keep);

/* decompress.c: the most bytes that came out of one compressed record; 0: nothing was compressed */
uint64_t decompress_max(const perfd_recording *r);
/* The records in a compressed one become those that follow. 0; -ENOMEM */
int decompress_feed(perfd_recording *r, uint32_t type, const Bytes *b, uint64_t offset);
/* The next record that is whole. 0; PERFD_E_ENDED: the next one is that of the recording itself; -ENOMEM */
int decompress_next(perfd_recording *r, perfd_recorded **ret);
/* Behind all: what is left of a record is a damage. 0; -ENOMEM */
int decompress_end(perfd_recording *r);
/* Takes NULL. */
void decompress_free(Decompress *d);
