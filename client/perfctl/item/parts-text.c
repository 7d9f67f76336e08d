/*
 * Text of what is not in every item, in the shape of perf-script(1) where it has one: brstack, data_src, registers.
 * What would make a line too long to read stands below it.
 */
#include "client/perfctl/item/parts.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>

#include "client/perfctl/item/line.h"
#include "client/perfctl/print/sample-words.h"
#include "client/perfctl/base/text.h"

#define STACK_COLUMNS ((size_t)32)

static void put_bytes(Output *o, const char *name, perfd_text bytes) {
        output_print(o, " %s=", name);
        output_put_hex_bytes(o, bytes.bytes, bytes.length);
}

static void put_mmap2(Output *o, const perfd_mmap2_record *m) {
        output_print(o, " pid=%" PRIu32 " tid=%" PRIu32 " addr=0x%" PRIx64 " len=0x%" PRIx64 " pgoff=0x%" PRIx64
                     " prot=%" PRIu32 " filename=", m->pid, m->tid, m->addr, m->len, m->pgoff, m->prot);
        text_put_value(o, m->filename);
}

static void put_comm(Output *o, const perfd_comm_record *r) {
        output_print(o, " pid=%" PRIu32 " tid=%" PRIu32 " comm=", r->pid, r->tid);
        text_put_value(o, r->comm);
        output_print(o, " exec=%d", r->exec);
}

static void put_switch(Output *o, const perfd_switch_record *r) {
        output_put_string(o, r->out ? " out" : " in");
        if (r->preempted)
                output_put_string(o, " preempted");
        if (r->cpu_wide)
                output_print(o, " %s_pid=%" PRIu32 " %s_tid=%" PRIu32, r->out ? "next" : "prev", r->next_prev_pid,
                             r->out ? "next" : "prev", r->next_prev_tid);
}

static void put_namespaces(Output *o, const perfd_namespaces_record *r) {
        static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };

        output_print(o, " pid=%" PRIu32 " tid=%" PRIu32, r->pid, r->tid);
        for (size_t i = 0; i < r->n_namespaces; i++)
                output_print(o, " %s=%" PRIu64 "/0x%" PRIx64, i < sizeof(names) / sizeof(names[0]) ? names[i] : "other",
                             r->namespaces[i].dev, r->namespaces[i].inode);
}

static void put_ksymbol(Output *o, const perfd_ksymbol_record *r) {
        output_print(o, " addr=0x%" PRIx64 " len=0x%" PRIx32 " type=%" PRIu32 " flags=0x%" PRIx32 " name=", r->addr,
                     r->len, r->type, r->flags);
        text_put_value(o, r->name);
}

static void put_bpf_event(Output *o, const perfd_bpf_event_record *r) {
        output_print(o, " type=%" PRIu32 " flags=%" PRIu32 " id=%" PRIu32, r->type, r->flags, r->id);
        put_bytes(o, "tag", r->tag);
}

/* Counters, and of how much of the time each is, if not of all. */
static void put_read(ItemText *t, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        const perfd_read_value *v;
        size_t n = perfd_item_read(item, &v);
        char counter[32];
        Output *o = t->out;

        for (size_t i = 0; i < n; i++) {
                (void)snprintf(counter, sizeof(counter), "counter%zu", i);
                pair_begin(t, event && i < event->n_counters ? event->counters[i].event : counter);
                if (v[i].running == 0 && v[i].enabled > 0)
                        output_put_string(o, "not-counted");
                else
                        output_put_number(o, v[i].value);
                if (v[i].running > 0 && v[i].running < v[i].enabled)
                        output_print(o, "(%.1f%%)", 100 * (double)v[i].running / (double)v[i].enabled);
        }
}

/* A table in the shape of a switch. */
void record_put_text(ItemText *t, const perfd_item *item) {
        const perfd_task_record *task = perfd_item_task_record(item);
        Output *o = t->out;

        switch (perfd_item_record(item)) {
        case PERFD_SAMPLE:
                return;
        case PERFD_COMM:
                put_comm(o, perfd_item_comm_record(item));
                return;
        case PERFD_FORK:
        case PERFD_EXIT:
                output_print(o, " pid=%" PRIu32 " ppid=%" PRIu32 " tid=%" PRIu32 " ptid=%" PRIu32, task->pid,
                             task->ppid, task->tid, task->ptid);
                return;
        case PERFD_MMAP2:
                put_mmap2(o, perfd_item_mmap2_record(item));
                return;
        case PERFD_LOST:
        case PERFD_LOST_SAMPLES:
                output_print(o, " lost=%" PRIu64, perfd_item_lost(item));
                return;
        case PERFD_THROTTLE:
        case PERFD_UNTHROTTLE:
                output_print(o, " stream=%" PRIu64, perfd_item_stream_id(item));
                return;
        case PERFD_SWITCH:
                put_switch(o, perfd_item_switch_record(item));
                return;
        case PERFD_NAMESPACES:
                put_namespaces(o, perfd_item_namespaces_record(item));
                return;
        case PERFD_KSYMBOL:
                put_ksymbol(o, perfd_item_ksymbol_record(item));
                return;
        case PERFD_BPF_EVENT:
                put_bpf_event(o, perfd_item_bpf_event_record(item));
                return;
        case PERFD_CGROUP:
                output_print(o, " id=%" PRIu64 " path=", perfd_item_cgroup_record(item)->id);
                text_put_value(o, perfd_item_cgroup_record(item)->path);
                return;
        case PERFD_TEXT_POKE:
                output_print(o, " addr=0x%" PRIx64, perfd_item_text_poke_record(item)->addr);
                put_bytes(o, "old", perfd_item_text_poke_record(item)->old_bytes);
                put_bytes(o, "new", perfd_item_text_poke_record(item)->new_bytes);
                return;
        case PERFD_AUX:
                output_print(o, " offset=0x%" PRIx64 " size=0x%" PRIx64 " flags=0x%" PRIx64,
                             perfd_item_aux_record(item)->offset, perfd_item_aux_record(item)->size,
                             perfd_item_aux_record(item)->flags);
                return;
        case PERFD_ITRACE_START:
                output_print(o, " pid=%" PRIu32 " tid=%" PRIu32, task->pid, task->tid);
                return;
        case PERFD_AUX_OUTPUT_HW_ID:
                output_print(o, " hw_id=0x%" PRIx64, perfd_item_hw_id(item));
                return;
        case PERFD_READ:
                put_read(t, item);
                return;
        case PERFD_UNKNOWN:
                output_print(o, " type=%" PRIu32 " misc=0x%" PRIx32, perfd_item_unknown_record(item)->type,
                             perfd_item_unknown_record(item)->misc);
                put_bytes(o, "bytes", perfd_item_unknown_record(item)->bytes);
                return;
        }
}

static void put_weight(ItemText *t, const perfd_weight *w) {
        pair_begin(t, "weight");
        if (w->var1 || w->var2 || w->var3)
                output_print(t->out, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, w->var1, w->var2, w->var3);
        else
                output_put_number(t->out, w->full);
}

static void put_transaction(ItemText *t, const perfd_transaction *transaction) {
        char words[WORDS_MAX];

        transaction_words(transaction, words);
        pair_begin(t, "transaction");
        output_put_string(t->out, *words ? words : "none");
        if (transaction->abort_code) {
                pair_begin(t, "abort_code");
                output_print(t->out, "0x%" PRIx32, transaction->abort_code);
        }
}

static void put_number(ItemText *t, const char *name, uint64_t number) {
        if (number == 0)
                return;
        pair_begin(t, name);
        output_put_number(t->out, number);
}

void parts_put_text(ItemText *t, const perfd_item *item) {
        if (perfd_item_record(item) != PERFD_SAMPLE)
                return;
        put_read(t, item);
        if (perfd_item_weight(item))
                put_weight(t, perfd_item_weight(item));
        if (perfd_item_transaction(item))
                put_transaction(t, perfd_item_transaction(item));
        if (perfd_item_physical_address(item) > 0) {
                pair_begin(t, "physical_address");
                output_print(t->out, "0x%" PRIx64, perfd_item_physical_address(item));
        }
        put_number(t, "cgroup_id", perfd_item_cgroup_id(item));
        put_number(t, "data_page_size", perfd_item_data_page_size(item));
        put_number(t, "code_page_size", perfd_item_code_page_size(item));
        put_number(t, "id", perfd_item_sample_id(item));
        put_number(t, "stream_id", perfd_item_stream_id(item));
        if (perfd_item_aux_bytes(item).length > 0) {
                pair_begin(t, "aux_bytes");
                output_put_hex_bytes(t->out, perfd_item_aux_bytes(item).bytes, perfd_item_aux_bytes(item).length);
        }
}

static void put_branches(ItemText *t, const perfd_item *item) {
        const perfd_branch *branches;
        size_t n = perfd_item_branches(item, &branches);
        Output *o = t->out;

        for (size_t i = 0; i < n; i++) {
                const perfd_branch *b = &branches[i];
                const char *type = branch_type_word(b), *spec = branch_spec_word(b);

                line_begin(t, i == 0 ? "branches" : "");
                output_print(o, "0x%" PRIx64 "/0x%" PRIx64 "/%c/%c/%c/%" PRIu32 "/%s", b->from, b->to,
                             branch_prediction(b), b->in_transaction ? 'X' : '-', b->abort ? 'A' : '-', b->cycles,
                             type ? type : "-");
                if (spec)
                        output_print(o, "/%s", spec);
                output_put_char(o, '\n');
        }
}

static void put_registers(ItemText *t, const char *name, const perfd_registers *r) {
        Output *o = t->out;
        size_t i = 0;

        if (!r)
                return;
        line_begin(t, name);
        output_print(o, "ABI:%" PRIu32, r->abi);
        for (uint64_t left = r->mask; left != 0 && i < r->n_values; left &= left - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(left);
                const char *known = perfd_register_name(r->machine, bit);

                if (known)
                        output_print(o, " %s:0x%" PRIx64, known, r->values[i++]);
                else
                        output_print(o, " %u:0x%" PRIx64, bit, r->values[i++]);
        }
        output_put_char(o, '\n');
}

static void put_stack(ItemText *t, perfd_text stack) {
        for (size_t i = 0; i < stack.length; i += STACK_COLUMNS) {
                size_t n = stack.length - i < STACK_COLUMNS ? stack.length - i : STACK_COLUMNS;

                line_begin(t, i == 0 ? "user stack" : "");
                output_print(t->out, "+%04zx ", i);
                output_put_hex_bytes(t->out, stack.bytes + i, n);
                output_put_char(t->out, '\n');
        }
}

static bool is_unwound(const ItemText *t, const perfd_item *item) {
        const uint64_t *addresses;
        size_t n = 0;

        for (size_t i = 0; t->frames && i < t->n_frames; i++)
                n += !t->frames[i].is_inlined;
        return n > perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &addresses) + perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &addresses);
}

void parts_put_lines(ItemText *t, const perfd_item *item) {
        const perfd_data_source *d = perfd_item_data_source(item);
        const bool unwound = t->is_cut || is_unwound(t, item); /* then the callchain says it */
        char words[WORDS_MAX];

        if (d)
                data_source_words(d, words);
        if (d && data_source_says(words)) {
                line_begin(t, "data source");
                output_print(t->out, "0x%" PRIx64 " |", d->raw);
                output_put_string(t->out, words);
                output_put_char(t->out, '\n');
        }
        put_branches(t, item);
        if (!unwound)
                put_registers(t, "user regs", perfd_item_user_registers(item));
        put_registers(t, "interrupt regs", perfd_item_interrupt_registers(item));
        if (!unwound)
                put_stack(t, perfd_item_user_stack(item));
}
