/*
 * Whose a record is, and what a sample has. The id comes first, because it says by which attr the rest is laid out: at a fixed place with
 * PERF_SAMPLE_IDENTIFIER, else where all attrs of the recording have it. The body is copied once, to where its numbers are aligned and can be
 * turned over in place. Source: perf_event_open(2), PERF_RECORD_SAMPLE; perf_event.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/damage.h"
#include "client/recording/ids.h"
#include "client/recording/left-out.h"
#include "client/recording/sample.h"

#define FORMAT_LOST (1U << 4)                         /* PERF_FORMAT_LOST, Linux 6.0 */
#define BRANCH_HW_INDEX (1U << 17)                    /* PERF_SAMPLE_BRANCH_HW_INDEX */
#define BRANCH_COUNTERS (1U << 19)                    /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */
#define ID_BITS (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define NO_EVENT "its id is that of no event; Linux since 6.3 may write that of another tool, where both trace one software event"
#define KERNEL_RECORDS 64 /* types from there on are perf's own */

/* ---- whose it is ------------------------------------------------------------------------------------------------------------- */

static unsigned count_bits(uint64_t v) {
        return (unsigned)__builtin_popcountll(v);
}

static bool has_id(uint64_t sample_type) {
        return (sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER)) != 0;
}

/* Words from the id on up to the end of another record. */
static size_t words_from_id(uint64_t sample_type) {
        if ((sample_type & PERF_SAMPLE_IDENTIFIER) != 0)
                return 1;
        return count_bits(sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
}

static uint64_t word_at(const perfd_recording *r, const perfd_recorded *record, size_t at) {
        Bytes b = { .at = (const uint8_t *)record->bytes + at, .end = (const uint8_t *)record->bytes + record->size, .swap = r->is_swapped };

        return bytes_u64(&b);
}

const Event *recording_event_of(const perfd_recording *r, const perfd_recorded *record) {
        const bool is_sample = record->type == PERF_RECORD_SAMPLE;
        const size_t n = is_sample ? r->ids.at : r->ids.before_end;
        uint64_t id;

        if (r->n_events <= 1)
                return r->n_events == 1 ? &r->events[0] : NULL;
        if (!is_sample && (r->events[0].shown.flags & PERFD_ATTR_SAMPLE_ID_ALL) == 0)
                return &r->events[0]; /* Linux before 2.6.38: only samples say it */
        if (n == SIZE_MAX || (is_sample ? n + sizeof(uint64_t) : n) > record->size)
                return NULL;
        id = word_at(r, record, is_sample ? n : record->size - n);
        return id == 0 ? &r->events[0] : ids_find(r, id); /* 0: perf has made the record itself */
}

size_t record_id_size(uint64_t sample_type) {
        return sizeof(uint64_t) * count_bits(sample_type & ID_BITS);
}

bool record_is_of(const perfd_recording *r, const perfd_recorded *record, size_t end, const Event *e) {
        const size_t n = sizeof(uint64_t) * words_from_id(e->shown.sample_type);

        return has_id(e->shown.sample_type) && n <= end && ids_find(r, word_at(r, record, end - n)) == e;
}

/* perf's own records, and those that it makes up for the kernel, have no time, or 0 or all ones in its place. */
uint64_t recording_time(const perfd_recording *r, const perfd_recorded *record) {
        const Event *e = record->type < KERNEL_RECORDS ? recording_event_of(r, record) : NULL;
        size_t n = SIZE_MAX;
        uint64_t time;

        if (e && record->type == PERF_RECORD_SAMPLE)
                n = e->time_at;
        else if (e && e->time_before_end <= record->size)
                n = record->size - e->time_before_end;
        if (n > record->size) /* of what is too short, too */
                return 0;
        time = word_at(r, record, n);
        return time == UINT64_MAX ? 0 : time;
}

/* ---- the rest of a record ------------------------------------------------------------------------------------------------------ */

static void read_id_end(Bytes *b, uint64_t type, perfd_recorded_id *id) {
        if ((type & PERF_SAMPLE_TID) != 0) {
                id->pid = bytes_u32(b);
                id->tid = bytes_u32(b);
        }
        if ((type & PERF_SAMPLE_TIME) != 0)
                id->time = bytes_u64(b);
        if ((type & PERF_SAMPLE_ID) != 0)
                id->id = bytes_u64(b);
        if ((type & PERF_SAMPLE_STREAM_ID) != 0)
                id->stream_id = bytes_u64(b);
        if ((type & PERF_SAMPLE_CPU) != 0) {
                id->cpu = bytes_u32(b);
                (void)bytes_u32(b);
        }
        if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
                id->id = bytes_u64(b);
}

static Bytes body_of(const perfd_recording *r, const perfd_recorded *record) {
        return (Bytes){ .at = record->bytes, .end = (const uint8_t *)record->bytes + record->size,
                        .offset = record->is_compressed ? record->offset : record->offset + PERF_DATA_RECORD_HEADER, .swap = r->is_swapped };
}

static int say_record(perfd_recording *r, const perfd_recorded *record, const char *why) {
        const char *name = perfd_recorded_name(record->type);
        int code = recording_damage(r, record->offset, "a record %s: %s", name ? name : "of no known type", why);

        return code != 0 ? code : PERFD_E_INVALID;
}

/* What is wrong is in the record alone. */
static int fail_record(perfd_recording *r, const perfd_recorded *record, const char *why) {
        int code = left_out_add(r, record);

        return code != 0 ? code : say_record(r, record, why);
}

/* ---- samples ------------------------------------------------------------------------------------------------------------------- */

/* n numbers where they lie, turned over if they have to be. NULL: there are not so many. */
static const uint64_t *take_numbers(Bytes *b, uint64_t n) {
        uint64_t *numbers;

        if (n > bytes_left(b) / sizeof(uint64_t)) {
                bytes_fail(b, "has fewer numbers than it says");
                return NULL;
        }
        if ((uintptr_t)b->at % sizeof(uint64_t) != 0) {
                bytes_fail(b, "has numbers that do not begin at a multiple of 8 bytes");
                return NULL;
        }
        numbers = (uint64_t *)(uintptr_t)bytes_take(b, n * sizeof(uint64_t)); /* of the copy */
        for (uint64_t i = 0; b->swap && i < n; i++)
                numbers[i] = bswap_64(numbers[i]);
        return numbers;
}

static perfd_text take_text(Bytes *b, uint64_t n) {
        const uint8_t *at = bytes_take(b, n);

        return at ? (perfd_text){ .bytes = (const char *)at, .length = (size_t)n } : (perfd_text){ .bytes = "" };
}

/* The values take more room than they have in the record, where they lack an id or a loss. */
static int take_read(perfd_recording *r, Bytes *b, uint64_t format, perfd_recorded_sample *s) {
        const bool is_group = (format & PERF_FORMAT_GROUP) != 0;
        const size_t size = sizeof(uint64_t) * (1 + ((format & PERF_FORMAT_ID) != 0) + ((format & FORMAT_LOST) != 0));
        uint64_t n = is_group ? bytes_u64(b) : 1;

        if (!is_group)
                n = 1;
        if (is_group && (format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0)
                s->time_enabled = bytes_u64(b);
        if (is_group && (format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0)
                s->time_running = bytes_u64(b);
        if (n > bytes_left(b) / size) {
                bytes_fail(b, "has fewer counts than it says");
                return 0;
        }
        if (n > r->values_room) {
                perfd_recorded_value *larger = reallocarray(r->values, n, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                r->values = larger;
                r->values_room = n;
        }
        for (uint64_t i = 0; i < n; i++) {
                r->values[i] = (perfd_recorded_value){ .value = bytes_u64(b) };
                if (!is_group && (format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0)
                        s->time_enabled = bytes_u64(b);
                if (!is_group && (format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0)
                        s->time_running = bytes_u64(b);
                if ((format & PERF_FORMAT_ID) != 0)
                        r->values[i].id = bytes_u64(b);
                if ((format & FORMAT_LOST) != 0)
                        r->values[i].lost = bytes_u64(b);
        }
        s->values = r->values;
        s->n_values = n;
        return 0;
}

/*
 * The flags are bitfields of a u64: from its lowest bit on here, from its highest on where a compiler of big-endian machines laid them out.
 * Each keeps its own bits as they are. Source: struct perf_branch_entry.
 */
static uint64_t turn_branch_flags(uint64_t v) {
        static const uint8_t widths[] = { 1, 1, 1, 1, 16, 4, 2, 4, 3, 31 };
        uint64_t turned = 0;
        unsigned at = 0;

        for (size_t i = 0; i < sizeof(widths); i++) {
                turned |= (v >> (64 - at - widths[i]) & ((UINT64_C(1) << widths[i]) - 1)) << at;
                at += widths[i];
        }
        return turned;
}

static void take_branches(Bytes *b, uint64_t branch_type, perfd_recorded_sample *s) {
        const uint64_t n = bytes_u64(b);
        uint64_t *words;

        if ((branch_type & BRANCH_HW_INDEX) != 0)
                s->branch_hw_index = bytes_u64(b);
        if (n > bytes_left(b) / sizeof(perfd_recorded_branch)) {
                bytes_fail(b, "has fewer branches than it says");
                return;
        }
        words = (uint64_t *)(uintptr_t)take_numbers(b, 3 * n);
        for (uint64_t i = 0; words && b->swap && i < n; i++)
                words[3 * i + 2] = turn_branch_flags(words[3 * i + 2]);
        s->branches = (const perfd_recorded_branch *)words;
        s->n_branches = words ? n : 0;
        if ((branch_type & BRANCH_COUNTERS) != 0)
                s->branch_counters = take_numbers(b, n);
}

static void take_registers(Bytes *b, uint64_t mask, perfd_recorded_registers *registers) {
        registers->abi = bytes_u64(b);
        if (registers->abi == PERF_SAMPLE_REGS_ABI_NONE)
                return;
        registers->n = count_bits(mask);
        registers->values = take_numbers(b, registers->n);
}

/* The room for it, and behind that how much the kernel could copy. */
static void take_stack(Bytes *b, perfd_recorded_sample *s) {
        const uint64_t room = bytes_u64(b);
        uint64_t n;

        if (room == 0)
                return;
        s->stack_user = take_text(b, room);
        n = bytes_u64(b);
        if (n < s->stack_user.length)
                s->stack_user.length = n;
}

static void take_raw(Bytes *b, perfd_recorded_sample *s) {
        const uint32_t n = bytes_u32(b);

        s->raw = take_text(b, n); /* padded, so that what follows is aligned again */
}

static void take_first(Bytes *b, uint64_t type, perfd_recorded_sample *s) {
        if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
                s->id.id = bytes_u64(b);
        if ((type & PERF_SAMPLE_IP) != 0)
                s->ip = bytes_u64(b);
        if ((type & PERF_SAMPLE_TID) != 0) {
                s->id.pid = bytes_u32(b);
                s->id.tid = bytes_u32(b);
        }
        if ((type & PERF_SAMPLE_TIME) != 0)
                s->id.time = bytes_u64(b);
        if ((type & PERF_SAMPLE_ADDR) != 0)
                s->addr = bytes_u64(b);
        if ((type & PERF_SAMPLE_ID) != 0)
                s->id.id = bytes_u64(b);
        if ((type & PERF_SAMPLE_STREAM_ID) != 0)
                s->id.stream_id = bytes_u64(b);
        if ((type & PERF_SAMPLE_CPU) != 0) {
                s->id.cpu = bytes_u32(b);
                (void)bytes_u32(b);
        }
        if ((type & PERF_SAMPLE_PERIOD) != 0)
                s->period = bytes_u64(b);
}

static void take_last(Bytes *b, uint64_t type, perfd_recorded_sample *s) {
        const struct {
                uint64_t bit, *to;
        } numbers[] = { { PERF_SAMPLE_PHYS_ADDR, &s->phys_addr },
                        { PERF_SAMPLE_CGROUP, &s->cgroup },
                        { PERF_SAMPLE_DATA_PAGE_SIZE, &s->data_page_size },
                        { PERF_SAMPLE_CODE_PAGE_SIZE, &s->code_page_size } };

        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if ((type & numbers[i].bit) != 0)
                        *numbers[i].to = bytes_u64(b);
        if ((type & PERF_SAMPLE_AUX) != 0) {
                const uint64_t n = bytes_u64(b);

                s->aux = take_text(b, n);
        }
}

static int take_sample(perfd_recording *r, Bytes *b, const perfd_recorded_event *e, perfd_recorded_sample *s) {
        const uint64_t type = e->sample_type;
        int code = 0;

        take_first(b, type, s);
        if ((type & PERF_SAMPLE_READ) != 0)
                code = take_read(r, b, e->read_format, s);
        if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
                s->n_callchain = bytes_u64(b);
                s->callchain = take_numbers(b, s->n_callchain);
        }
        if ((type & PERF_SAMPLE_RAW) != 0)
                take_raw(b, s);
        if ((type & PERF_SAMPLE_BRANCH_STACK) != 0)
                take_branches(b, e->branch_sample_type, s);
        if ((type & PERF_SAMPLE_REGS_USER) != 0)
                take_registers(b, e->sample_regs_user, &s->registers_user);
        if ((type & PERF_SAMPLE_STACK_USER) != 0)
                take_stack(b, s);
        if ((type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) != 0)
                s->weight = bytes_u64(b);
        if ((type & PERF_SAMPLE_DATA_SRC) != 0)
                s->data_src = bytes_u64(b);
        if ((type & PERF_SAMPLE_TRANSACTION) != 0)
                s->transaction = bytes_u64(b);
        if ((type & PERF_SAMPLE_REGS_INTR) != 0)
                take_registers(b, e->sample_regs_intr, &s->registers_intr);
        take_last(b, type, s);
        return code;
}

int recording_make_scratch(perfd_recording *r) {
        if (!r->scratch)
                r->scratch = malloc(RECORD_MAX + sizeof(uint64_t));
        return r->scratch ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

/* A copy that begins where numbers may, with them behind each other as in the record: only what follows raw data may lie elsewhere. */
static int copy_body(perfd_recording *r, Bytes *b) {
        const size_t n = bytes_left(b);

        if (recording_make_scratch(r) != 0)
                return -ENOMEM;
        if (n > 0)
                memcpy(r->scratch, b->at, n);
        b->at = r->scratch;
        b->end = r->scratch + n;
        return 0;
}

static const char *no_event(const perfd_recording *r) {
        return r->n_events == 0 || has_id(r->events[0].shown.sample_type) ? NO_EVENT : "samples of these events have no id, so it is not known of which it is";
}

int perfd_recording_sample(perfd_recording *r, const perfd_recorded *record, perfd_recorded_sample *ret) {
        perfd_recorded_sample s = { .raw = { .bytes = "" }, .stack_user = { .bytes = "" }, .aux = { .bytes = "" } };
        const Event *e;
        Bytes b;
        int code;

        if (record->type != PERF_RECORD_SAMPLE)
                return recording_fail(r, PERFD_E_INVALID, "the record is no sample");
        e = recording_event_of(r, record);
        if (!e)
                return say_record(r, record, no_event(r));
        b = body_of(r, record);
        code = copy_body(r, &b);
        s.id.event = &e->shown;
        s.id.index = (size_t)(e - r->events);
        s.id.has = e->shown.sample_type;
        if (code == 0)
                code = take_sample(r, &b, &e->shown, &s);
        if (code != 0)
                return code;
        if (b.failed)
                return fail_record(r, record, b.failed);
        *ret = s;
        return 0;
}

/* What sample_id_all appends. 0; PERFD_E_INVALID, -ENOMEM */
static int take_id_end(perfd_recording *r, const perfd_recorded *record, perfd_recorded_id *id) {
        const size_t n = sizeof(uint64_t) * count_bits(id->has);
        Bytes b = body_of(r, record);

        if (n > record->size)
                return fail_record(r, record, "it has no room for whose it is");
        (void)bytes_take(&b, record->size - n);
        read_id_end(&b, id->has, id);
        return 0;
}

static int take_id_of_sample(perfd_recording *r, const perfd_recorded *record, perfd_recorded_id *id) {
        perfd_recorded_sample s = { .id = *id };
        Bytes b = body_of(r, record);

        take_first(&b, id->event->sample_type, &s);
        *id = s.id;
        return b.failed ? fail_record(r, record, b.failed) : 0;
}

int perfd_recording_id(perfd_recording *r, const perfd_recorded *record, perfd_recorded_id *ret) {
        const bool is_kernels = record->type < KERNEL_RECORDS;
        const Event *e = is_kernels ? recording_event_of(r, record) : NULL;
        perfd_recorded_id id = { .event = NULL };
        int code = 0;

        if (!e && is_kernels && r->n_events > 1 && (has_id(r->events[0].shown.sample_type) || record->type == PERF_RECORD_SAMPLE))
                return say_record(r, record, no_event(r));
        if (e) {
                id.event = &e->shown;
                id.index = (size_t)(e - r->events);
                id.has = e->shown.sample_type & ID_BITS;
                if (record->type == PERF_RECORD_SAMPLE)
                        code = take_id_of_sample(r, record, &id);
                else if ((e->shown.flags & PERFD_ATTR_SAMPLE_ID_ALL) != 0)
                        code = take_id_end(r, record, &id);
                else
                        id.has = 0;
        }
        if (code == 0)
                *ret = id;
        return code;
}
