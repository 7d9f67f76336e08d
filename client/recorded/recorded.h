/* For this folder alone: what samples of a recording are decoded with. */
#pragma once

#include <linux/perf_event.h>

#include "client/recording/reading.h"
#include "proto/perfd.pb-c.h"

/* Of what the first addresses of a callchain are that begins without a marker, as none of Linux does: of the mode in which the sample came. */
static inline uint64_t recorded_first_context(uint16_t misc) {
        return (uint64_t)((misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
}

struct Plan;
struct EncodePlan;
struct Tasks;
struct perfd_item;

/* By the index of the event. */
typedef struct RecordedEvent {
        struct Plan *plan;         /* of its format; NULL: it has none */
        struct EncodePlan *encode; /* NULL: no sample of it came */
        bool is_direct;            /* its samples need not be encoded */
        size_t n_first;            /* of one that is direct: bytes before its callchain */
} RecordedEvent;

/* plan.c: the event of its first sample gets its plans, and the caller its descriptor. 0; -ENOMEM, -errno */
int recorded_event_init(perfd_recording *r, const perfd_recorded_sample *s, RecordedEvent *e, Perfd__V1__EventDescriptor **ret);
void recorded_event_deinit(RecordedEvent *e);

/*
 * encode.c: a sample as the bytes of an item. Its raw bytes are turned over where they lie. 0; PERFD_E_INVALID, which has become a damage;
 * -ENOMEM
 */
#define ITEM_ROOM ((size_t)1 << 20) /* bytes: the largest record has 64 KiB, of which each may become a number */
int recorded_sample_encode(perfd_recording *r, const perfd_recorded *record, const RecordedEvent *e, perfd_recorded_sample *s,
                           uint8_t *to, const uint8_t **ret, const uint8_t **ret_end);

/*
 * direct.c: whether samples of an event can be placed; and the sample as an item, whose texts are in the recording's copy of the raw bytes.
 * RECORDED_NOT_DIRECT: this one has to be encoded, and says what is wrong; -ENOMEM
 */
#define RECORDED_NOT_DIRECT 1
bool recorded_event_is_direct(const perfd_recording *r, const perfd_recorded_event *shown, const struct EncodePlan *p, size_t *ret_n_first);
int recorded_sample_place(perfd_recording *r, const perfd_recorded *record, const Event *of, const RecordedEvent *e, struct perfd_item *item);

/* machine.c: EM_* of elf.h; EM_NONE: one of which nobody knows the registers; HERE: it does not say it. 0; -ENOMEM, -errno */
#define RECORDED_MACHINE_HERE UINT32_MAX
int recorded_machine_of(perfd_recording *r, uint32_t *ret);

/* task.c: what a record says of threads. 0; -ENOMEM */
int recorded_tasks_take(perfd_recording *r, const perfd_recorded *record, struct Tasks *tasks);
