/* Samples, in the order that perf_event_open(2) gives their parts. */
#include <linux/perf_event.h>

#include "client/recording-writer/writer.h"

#define UNWRITTEN (PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX)

#define NUMBERS_BOUND ((size_t)256) /* bytes: more than all parts of a sample that are one number each, and the sizes of the others */

static inline uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t n) {
        if (n > 0)
                memcpy(to, bytes, n);
        return to + n;
}

static inline uint8_t *put_zeros(uint8_t *to, size_t n) {
        memset(to, 0, n);
        return to + n;
}

static inline uint8_t *put_u64(uint8_t *to, uint64_t v) {
        return put_bytes(to, &v, sizeof(v));
}

static inline uint8_t *put_u64_of(uint8_t *to, uint64_t type, uint64_t bit, uint64_t v) {
        return (type & bit) != 0 ? put_u64(to, v) : to;
}

static uint8_t *put_id(uint8_t *to, uint64_t type, const perfd_recorded_sample *s) {
        const perfd_recorded_id *i = &s->id;

        to = put_u64_of(to, type, PERF_SAMPLE_IDENTIFIER, i->id);
        to = put_u64_of(to, type, PERF_SAMPLE_IP, s->ip);
        to = put_u64_of(to, type, PERF_SAMPLE_TID, (uint64_t)i->tid << 32 | i->pid);
        to = put_u64_of(to, type, PERF_SAMPLE_TIME, i->time);
        to = put_u64_of(to, type, PERF_SAMPLE_ADDR, s->addr);
        to = put_u64_of(to, type, PERF_SAMPLE_ID, i->id);
        to = put_u64_of(to, type, PERF_SAMPLE_STREAM_ID, i->stream_id);
        to = put_u64_of(to, type, PERF_SAMPLE_CPU, i->cpu);
        return put_u64_of(to, type, PERF_SAMPLE_PERIOD, s->period);
}

/* u32 size, bytes, zeros up to a multiple of 8, which the size counts. */
static uint8_t *put_raw(uint8_t *to, const perfd_text *raw) {
        const size_t whole = ((raw->length + sizeof(uint32_t) + 7) & ~(size_t)7) - sizeof(uint32_t);

        to = put_bytes(to, &(uint32_t){ (uint32_t)whole }, sizeof(uint32_t));
        to = put_bytes(to, raw->bytes, raw->length);
        return put_zeros(to, whole - raw->length);
}

/* Its size, which is 0 or a multiple of 8, bytes, and how many of them are of the stack. */
static uint8_t *put_stack(uint8_t *to, const perfd_text *stack) {
        const size_t whole = (stack->length + 7) & ~(size_t)7;

        to = put_u64(to, whole);
        to = put_bytes(to, stack->bytes, stack->length);
        to = put_zeros(to, whole - stack->length);
        return whole > 0 ? put_u64(to, stack->length) : to;
}

static uint8_t *put_registers(uint8_t *to, const perfd_recorded_registers *registers) {
        to = put_u64(to, registers->abi);
        return registers->abi != 0 ? put_bytes(to, registers->values, registers->n * sizeof(*registers->values)) : to;
}

static uint8_t *put_parts(uint8_t *to, uint64_t type, const perfd_recorded_sample *s) {
        if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
                to = put_u64(to, s->n_callchain);
                to = put_bytes(to, s->callchain, s->n_callchain * sizeof(*s->callchain));
        }
        if ((type & PERF_SAMPLE_RAW) != 0)
                to = put_raw(to, &s->raw);
        if ((type & ~(PERF_SAMPLE_RAW * 2 - 1)) == PERF_SAMPLE_IDENTIFIER)
                return to; /* as most are */
        if ((type & PERF_SAMPLE_REGS_USER) != 0)
                to = put_registers(to, &s->registers_user);
        if ((type & PERF_SAMPLE_STACK_USER) != 0)
                to = put_stack(to, &s->stack_user);
        to = put_u64_of(to, type, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, s->weight);
        to = put_u64_of(to, type, PERF_SAMPLE_DATA_SRC, s->data_src);
        to = put_u64_of(to, type, PERF_SAMPLE_TRANSACTION, s->transaction);
        to = put_u64_of(to, type, PERF_SAMPLE_PHYS_ADDR, s->phys_addr);
        to = put_u64_of(to, type, PERF_SAMPLE_CGROUP, s->cgroup);
        to = put_u64_of(to, type, PERF_SAMPLE_DATA_PAGE_SIZE, s->data_page_size);
        return put_u64_of(to, type, PERF_SAMPLE_CODE_PAGE_SIZE, s->code_page_size);
}

static void take_time(perfd_recording_writer *w, uint64_t time) {
        if (!w->has_time || time < w->first)
                w->first = time;
        if (!w->has_time || time > w->last)
                w->last = time;
        w->has_time = true;
}

int perfd_recording_writer_put_sample(perfd_recording_writer *w, uint16_t misc, const perfd_recorded_sample *s) {
        const perfd_recorded_event *e = s->id.event;
        uint8_t *begin, *end;
        int code;

        if (!e || (e->sample_type & UNWRITTEN) != 0)
                return writer_fail(w, PERFD_E_INVALID, e ? "%s: its sample_type 0x%llx has parts that are not written" :
                                   "a sample of no event", e ? e->name : "", (unsigned long long)(e ? e->sample_type : 0));
        if ((e->sample_type & PERF_SAMPLE_REGS_USER) != 0 && s->registers_user.abi != 0 &&
            s->registers_user.n != (size_t)__builtin_popcountll(e->sample_regs_user))
                return writer_fail(w, PERFD_E_INVALID, "%s: a sample has %zu registers, and its event %d", e->name, s->registers_user.n,
                                   __builtin_popcountll(e->sample_regs_user));
        if (s->raw.length > UINT16_MAX || s->n_callchain > UINT16_MAX / sizeof(uint64_t) || s->stack_user.length > UINT16_MAX)
                return writer_fail(w, PERFD_E_INVALID, "%s: a sample that is larger than a record", e->name);
        code = writer_reserve(w, NUMBERS_BOUND + s->n_callchain * sizeof(*s->callchain) + s->raw.length +
                              s->registers_user.n * sizeof(*s->registers_user.values) + s->stack_user.length, &begin);
        if (code != 0) {
                w->n_unwritten += code != PERFD_E_INVALID;
                return code;
        }
        end = put_parts(put_id(begin, e->sample_type, s), e->sample_type, s);
        code = writer_take(w, PERF_RECORD_SAMPLE, misc, (size_t)(end - begin));
        w->n_in_batch += code == 0;
        if (code == 0 && (e->sample_type & PERF_SAMPLE_TIME) != 0)
                take_time(w, s->id.time);
        return code;
}
