/* Samples, in the order that perf_event_open(2) gives their parts. */
#include <errno.h>
#include <linux/perf_event.h>

#include "client/recording-writer/writer.h"

#define UNWRITTEN (PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX)

static void put_u64_of(Buffer *b, uint64_t type, uint64_t bit, uint64_t v) {
        if ((type & bit) != 0)
                buffer_put_u64(b, v);
}

static void put_id(Buffer *b, uint64_t type, const perfd_recorded_sample *s) {
        const perfd_recorded_id *i = &s->id;

        put_u64_of(b, type, PERF_SAMPLE_IDENTIFIER, i->id);
        put_u64_of(b, type, PERF_SAMPLE_IP, s->ip);
        put_u64_of(b, type, PERF_SAMPLE_TID, (uint64_t)i->tid << 32 | i->pid);
        put_u64_of(b, type, PERF_SAMPLE_TIME, i->time);
        put_u64_of(b, type, PERF_SAMPLE_ADDR, s->addr);
        put_u64_of(b, type, PERF_SAMPLE_ID, i->id);
        put_u64_of(b, type, PERF_SAMPLE_STREAM_ID, i->stream_id);
        put_u64_of(b, type, PERF_SAMPLE_CPU, i->cpu);
        put_u64_of(b, type, PERF_SAMPLE_PERIOD, s->period);
}

/* u32 size, bytes, zeros up to a multiple of 8, which the size counts. */
static void put_raw(Buffer *b, const perfd_text *raw) {
        const size_t whole = ((raw->length + sizeof(uint32_t) + 7) & ~(size_t)7) - sizeof(uint32_t);

        buffer_put_u32(b, (uint32_t)whole);
        buffer_put(b, raw->bytes, raw->length);
        buffer_put_zeros(b, whole - raw->length);
}

/* Its size, which is 0 or a multiple of 8, bytes, and how many of them are of the stack. */
static void put_stack(Buffer *b, const perfd_text *stack) {
        const size_t whole = (stack->length + 7) & ~(size_t)7;

        buffer_put_u64(b, whole);
        buffer_put(b, stack->bytes, stack->length);
        buffer_put_zeros(b, whole - stack->length);
        if (whole > 0)
                buffer_put_u64(b, stack->length);
}

static void put_registers(Buffer *b, const perfd_recorded_registers *registers) {
        buffer_put_u64(b, registers->abi);
        if (registers->abi != 0)
                buffer_put(b, registers->values, registers->n * sizeof(*registers->values));
}

static void put_parts(Buffer *b, uint64_t type, const perfd_recorded_sample *s) {
        if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
                buffer_put_u64(b, s->n_callchain);
                buffer_put(b, s->callchain, s->n_callchain * sizeof(*s->callchain));
        }
        if ((type & PERF_SAMPLE_RAW) != 0)
                put_raw(b, &s->raw);
        if ((type & PERF_SAMPLE_REGS_USER) != 0)
                put_registers(b, &s->registers_user);
        if ((type & PERF_SAMPLE_STACK_USER) != 0)
                put_stack(b, &s->stack_user);
        put_u64_of(b, type, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, s->weight);
        put_u64_of(b, type, PERF_SAMPLE_DATA_SRC, s->data_src);
        put_u64_of(b, type, PERF_SAMPLE_TRANSACTION, s->transaction);
        put_u64_of(b, type, PERF_SAMPLE_PHYS_ADDR, s->phys_addr);
        put_u64_of(b, type, PERF_SAMPLE_CGROUP, s->cgroup);
        put_u64_of(b, type, PERF_SAMPLE_DATA_PAGE_SIZE, s->data_page_size);
        put_u64_of(b, type, PERF_SAMPLE_CODE_PAGE_SIZE, s->code_page_size);
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
        Buffer b = { .n = 0 };
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
        put_id(&b, e->sample_type, s);
        put_parts(&b, e->sample_type, s);
        code = b.failed ? writer_fail(w, -ENOMEM, "no memory") : perfd_recording_writer_put(w, PERF_RECORD_SAMPLE, misc, b.bytes, b.n);
        if (code == 0 && (e->sample_type & PERF_SAMPLE_TIME) != 0)
                take_time(w, s->id.time);
        buffer_deinit(&b);
        return code;
}
