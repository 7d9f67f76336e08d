/*
 * For readers: a Record to the wire bytes of field `items` of perfd.v1.Packet, complete with tag and length, so that a
 * packet is these bytes one after the other. Canonical proto3: zero scalars are left out, varints are shortest. What is
 * written how is compiled once into an EncodePlan, which is immutable and shared by reference count.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/model/plan.h"
#include "daemon/model/record.h"

enum {
        ITEM_E_NO_ROOM = 1, /* might not fit; nothing was written */
        ITEM_E_UNDECODABLE, /* the raw bytes contradict the plan, or a sample where a side record should be */
};

/* The same values as perfd.v1.Payload. */
typedef enum Payload {
        PAYLOAD_FIELDS,
        PAYLOAD_RAW,
        PAYLOAD_BOTH,
        _PAYLOAD_MAX,
} Payload;

/* Numbers that lie behind one another in the raw bytes, all of one kind; or a dynamic array, whose place the record says. */
typedef struct NumberRun {
        uint32_t offset, n;
        uint8_t element_size; /* bytes: 1, 2, 4 or 8 */
        bool is_signed;
        uint16_t dynamic; /* 1 + index into EncodePlan.fields; 0: fixed */
} NumberRun;

/*
 * How an item begins, with its tag, its length and all that is the same in each of them; what is not is stored over it.
 * Zeros are left out of the wire, so that there is one for each combination of what may be zero.
 */
typedef struct ItemHead {
        _Alignas(64) uint8_t bytes[48];
        uint8_t time, cpu, pid, tid; /* where their values go */
        uint8_t content;             /* where what the length is of begins */
        uint8_t size;
        bool tells_zero_tid;         /* of tid 0, in a pid namespace: who that is */
        uint32_t length; /* that stands in it: of texts half as long as they can be */
} ItemHead;

enum { /* index into EncodePlan.heads */
        HEAD_WITHOUT_CPU = 1,
        HEAD_WITHOUT_TASK = 2, /* neither pid nor tid: the idle threads */
        _HEADS = 4,
};

#define ITEM_COMMS 4 /* names of threads that a fixed item can have */

/*
 * Of its lines of 64 bytes a common sample needs two: the head that is its own, and the last one, with its first
 * ENCODE_RUNS_NEAR runs. With many events that is what comes from far each time.
 */
typedef struct EncodePlan {
        _Alignas(64) _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel: the last one sees all that was done */
        Plan *plan; /* a reference, or NULL for an event without a format */

        /* the fields that are sent, in the order of the format; point into plan */
        const PlanField **fields;
        size_t n_fields;
        const PlanField **texts; /* of these */
        size_t numbers_size;  /* bytes of the fixed numbers, and of the counts of dynamic arrays, in an item */
        size_t fixed_size;    /* bytes of an item's content without what is dynamic, texts being half as long as they can be */

        ItemHead heads[_HEADS];

        uint32_t event_id;
        uint32_t min_size;   /* raw bytes needed by the fixed places of these fields */
        uint32_t room;       /* bytes that an item without what is dynamic can need */
        uint16_t n_runs, n_texts;
        uint16_t comms[ITEM_COMMS]; /* offsets of the texts, unless it is variable */
        uint8_t payload;     /* Payload */
        bool dynamic;        /* some place is */
        bool has_faults;     /* some text may be one that a probe could not read */
        uint8_t encoding;    /* ItemEncoding: VARIABLE, FIXED or ONE_COPY, of any raw size */
        NumberRun runs[];    /* the others */
} EncodePlan;

#define ENCODE_RUNS_NEAR 3

_Static_assert(sizeof(ItemHead) == 64, "a head is one line");
_Static_assert(offsetof(EncodePlan, event_id) % 64 == 0, "what all samples need begins a line");
_Static_assert(offsetof(EncodePlan, runs[ENCODE_RUNS_NEAR]) - offsetof(EncodePlan, event_id) <= 64, "and is in one");

/*
 * plan: NULL for an event without a format. fields: only these, in the order of the format whatever their order here;
 * n_fields 0 means all, names that the plan does not have are ignored. With PAYLOAD_RAW no field is sent. NULL: no
 * memory.
 */
EncodePlan *encode_plan_new(Plan *plan, uint32_t event_id, Payload payload, char *const *fields, size_t n_fields);
/* Of one that nobody else has yet: perfd is in a pid namespace, and items with tid 0 say who that is. */
void encode_plan_tell_zero_tid(EncodePlan *p);
/* Whether both write the same fields of the same plan in the same way. */
bool encode_plan_equals(const EncodePlan *a, const EncodePlan *b);
EncodePlan *encode_plan_ref(EncodePlan *p);
EncodePlan *encode_plan_unref(EncodePlan *p);
DEFINE_CLEANUP(EncodePlan *, encode_plan_unref)

/*
 * A sample. The room asked for is the worst case of this very record, so that nothing is checked byte by byte: an item
 * is refused for room if it could not fit, which in an empty batch means that it is longer than a batch. Callchain
 * addresses are split by their context markers, which are not sent; addresses of other contexts than kernel and user
 * are dropped. 0, ITEM_E_NO_ROOM or ITEM_E_UNDECODABLE. No allocation; any thread.
 */
int item_encode(const EncodePlan *p, const Record *r, uint8_t *to, size_t room, size_t *ret_length);

/*
 * A side record, also one of a type that is not known. event_id: of the event that it belongs to (losses, throttles,
 * reads), 0 for records of the host. 0, ITEM_E_NO_ROOM or ITEM_E_UNDECODABLE.
 */
int side_item_encode(const Record *r, uint32_t event_id, uint8_t *to, size_t room, size_t *ret_length);

/* An item of any kind, with the tag and the length that it has in a packet, happened at another time, which is not 0. */
void item_set_time(uint8_t *item, size_t length, nsec_t time);

/*
 * What the reader of a CPU read from an event's fds at an interval: an item with a READ record of n counters, in the
 * order of the event's descriptor. 0 or ITEM_E_NO_ROOM.
 */
int read_item_encode(uint32_t event_id, uint32_t cpu, nsec_t time, const ReadCount *values, size_t n, uint8_t *to,
                     size_t room, size_t *ret_length);
