/*
 * From the parts of a sample, which are in this machine's byte order but for the raw bytes, to the record that the daemon encodes. Raw bytes
 * of the other byte order are turned over field by field: then they are what the format's plan reads.
 */
#include <byteswap.h>
#include <linux/perf_event.h>

#include "client/perfd/item.h"
#include "client/recorded/recorded.h"
#include "client/recording/damage.h"
#include "client/recording/left-out.h"
#include "daemon/encode/item.h"
#include "daemon/model/field.h"

#define BRANCH_HW_INDEX (1U << 17) /* PERF_SAMPLE_BRANCH_HW_INDEX */
#define MORE (PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define PARTS                                                                                                                           \
        (PERF_SAMPLE_READ | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |                 \
         PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |     \
         PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |                              \
         PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX)

_Static_assert(sizeof(perfd_recorded_branch) == sizeof(struct perf_branch_entry), "branches are encoded where they lie");

/* ---- raw bytes of the other byte order ----------------------------------------------------------------------------------------- */

static void turn(uint8_t *at, uint32_t element_size) {
        for (uint32_t i = 0; i < element_size / 2; i++) {
                const uint8_t byte = at[i];

                at[i] = at[element_size - 1 - i];
                at[element_size - 1 - i] = byte;
        }
}

static void turn_field(const PlanField *f, uint8_t *raw, size_t size) {
        const uint32_t whole = f->is_narrowed ? (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? f->offset - 4 : f->offset) : 0;
        const uint8_t *bytes;
        uint32_t n;

        if (f->is_narrowed) {
                if ((uint64_t)whole + sizeof(uint64_t) <= size)
                        turn(raw + whole, sizeof(uint64_t));
                return;
        }
        if (f->place != PLACE_FIXED && (uint64_t)f->offset + sizeof(uint32_t) <= size)
                turn(raw + f->offset, sizeof(uint32_t));
        if (f->element_size == 1 || field_locate(f, raw, size, &bytes, &n) != 0)
                return;
        for (uint32_t i = 0; i < n; i += f->element_size)
                turn(raw + (bytes - raw) + i, f->element_size);
}

/* ---- the record ------------------------------------------------------------------------------------------------------------------ */

static RecordRegisters registers_of(const perfd_recorded_registers *from, uint64_t mask) {
        return (RecordRegisters){ .abi = from->abi, .mask = mask, .values = (const uint8_t *)from->values };
}

static RecordExtra extra_of(const perfd_recorded_sample *s) {
        const perfd_recorded_event *e = s->id.event;

        return (RecordExtra){
                .read = { .values = (const uint8_t *)s->values,
                          .n = s->n_values,
                          .enabled = s->time_enabled,
                          .running = s->time_running,
                          .size = sizeof(perfd_recorded_value),
                          .id_offset = offsetof(perfd_recorded_value, id),
                          .lost_offset = offsetof(perfd_recorded_value, lost) },
                .branches = (const uint8_t *)s->branches,
                .n_branches = s->n_branches,
                .branch_counters = (const uint8_t *)s->branch_counters,
                .branch_hw_index = (e->branch_sample_type & BRANCH_HW_INDEX) != 0 ? s->branch_hw_index : UINT64_MAX,
                .user_registers = registers_of(&s->registers_user, e->sample_regs_user),
                .interrupt_registers = registers_of(&s->registers_intr, e->sample_regs_intr),
                .user_stack = (const uint8_t *)s->stack_user.bytes,
                .user_stack_size = s->stack_user.length,
                .weight = s->weight,
                .data_source = s->data_src,
                .transaction = s->transaction,
                .physical_address = s->phys_addr,
                .cgroup_id = s->cgroup,
                .data_page_size = s->data_page_size,
                .code_page_size = s->code_page_size,
                .aux = (const uint8_t *)s->aux.bytes,
                .aux_size = s->aux.length,
                .id = s->id.id,
                .stream_id = s->id.stream_id,
        };
}

static int damage(perfd_recording *r, const perfd_recorded *record, const char *name, const char *why) {
        int code = recording_damage(r, record->offset, "a sample of %s: %s", name, why);

        if (code == 0)
                code = left_out_add(r, record);
        return code != 0 ? code : PERFD_E_INVALID;
}

int recorded_sample_encode(perfd_recording *r, const perfd_recorded *record, const RecordedEvent *e, perfd_recorded_sample *s,
                           uint8_t *to, const uint8_t **ret, const uint8_t **ret_end) {
        const uint64_t type = s->id.has;
        Record rec = { .type = PERF_RECORD_SAMPLE,
                       .misc = record->misc,
                       .cpu = (s->id.has & PERF_SAMPLE_CPU) != 0 ? s->id.cpu : PERFD_CPU_NONE,
                       .time = s->id.time,
                       .pid = s->id.pid,
                       .tid = s->id.tid,
                       .ip = s->ip,
                       .addr = s->addr,
                       .period = s->period,
                       .comm = "",
                       .raw = (const uint8_t *)s->raw.bytes,
                       .raw_size = (uint32_t)s->raw.length,
                       .parts = (uint32_t)(type & PARTS),
                       .layout = (type & (MORE | PARTS)) != 0 ? RECORD_LAYOUT_ANY : RECORD_LAYOUT_BASE,
                       .callchain = (const uint8_t *)s->callchain,
                       .n_callchain = s->n_callchain };
        size_t length = 0;
        int code;

        if (rec.n_callchain > 0 && s->callchain[0] < (uint64_t)PERF_CONTEXT_MAX) {
                uint64_t *marker = (uint64_t *)(uintptr_t)s->callchain - 1; /* where their number is, in the recording's copy */

                *marker = recorded_first_context(record->misc);
                rec.callchain = (const uint8_t *)marker;
                rec.n_callchain++;
        }
        if (rec.parts != 0)
                rec.extra = extra_of(s);
        for (size_t i = 0; r->is_swapped && e->plan && i < e->plan->n_fields; i++)
                turn_field(&e->plan->fields[i], (uint8_t *)(uintptr_t)s->raw.bytes, s->raw.length); /* of the recording's copy */
        code = item_encode(e->encode, &rec, to, ITEM_ROOM, &length);
        if (code != 0)
                return damage(r, record, s->id.event->name, code == ITEM_E_NO_ROOM ? "its fields have more bytes than an item can have" :
                                                            "its raw bytes are not what its format says");
        *ret_end = to + length;
        to++; /* the key */
        while ((*to++ & 0x80) != 0) /* and the length, which end in the bytes that were written */
                ;
        *ret = to;
        return 0;
}
