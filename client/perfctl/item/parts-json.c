/*
 * JSON of what is not in every item. Addresses, masks and register values are hexadecimal strings, like those of
 * callchains; numbers that have a name stay numbers, and the name stands beside them.
 */
#include "client/perfctl/item/parts.h"

#include <linux/perf_event.h>
#include <stdio.h>

#include "client/perfctl/print/sample-words.h"

static void put_hex(Json *j, const char *name, uint64_t number) {
        json_put_name(j, name);
        json_put_hex(j, number);
}

static void put_hex_bytes(Json *j, const char *name, perfd_text bytes) {
        json_put_name(j, name);
        json_put_hex_bytes(j, bytes);
}

static void put_word(Json *j, const char *name, const char *word) {
        json_put_name(j, name);
        if (word)
                json_put_string(j, word);
        else
                json_put_null(j);
}

static void put_comm(Json *j, const perfd_comm_record *r) {
        JSON_NUMBER(j, "pid", r->pid);
        JSON_NUMBER(j, "tid", r->tid);
        JSON_TEXT(j, "comm", r->comm);
        JSON_BOOL(j, "exec", r->exec);
}

static void put_task(Json *j, const perfd_task_record *r, bool with_parents) {
        JSON_NUMBER(j, "pid", r->pid);
        if (with_parents)
                JSON_NUMBER(j, "ppid", r->ppid);
        JSON_NUMBER(j, "tid", r->tid);
        if (with_parents)
                JSON_NUMBER(j, "ptid", r->ptid);
}

static void put_mmap2(Json *j, const perfd_mmap2_record *m) {
        JSON_NUMBER(j, "pid", m->pid);
        JSON_NUMBER(j, "tid", m->tid);
        JSON_NUMBER(j, "addr", m->addr);
        JSON_NUMBER(j, "len", m->len);
        JSON_NUMBER(j, "pgoff", m->pgoff);
        JSON_NUMBER(j, "maj", m->maj);
        JSON_NUMBER(j, "min", m->min);
        JSON_NUMBER(j, "ino", m->ino);
        JSON_NUMBER(j, "ino_generation", m->ino_generation);
        if (m->build_id.length > 0)
                put_hex_bytes(j, "build_id", m->build_id);
        JSON_NUMBER(j, "prot", m->prot);
        JSON_NUMBER(j, "flags", m->flags);
        JSON_TEXT(j, "filename", m->filename);
}

static void put_switch(Json *j, const perfd_switch_record *r) {
        JSON_BOOL(j, "out", r->out);
        JSON_BOOL(j, "preempted", r->preempted);
        if (!r->cpu_wide)
                return;
        JSON_NUMBER(j, "next_prev_pid", r->next_prev_pid);
        JSON_NUMBER(j, "next_prev_tid", r->next_prev_tid);
}

static void put_namespaces(Json *j, const perfd_namespaces_record *r) {
        static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };

        JSON_NUMBER(j, "pid", r->pid);
        JSON_NUMBER(j, "tid", r->tid);
        json_put_name(j, "namespaces");
        json_begin(j, '[');
        for (size_t i = 0; i < r->n_namespaces; i++) {
                json_begin(j, '{');
                put_word(j, "name", i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL);
                JSON_NUMBER(j, "dev", r->namespaces[i].dev);
                JSON_NUMBER(j, "inode", r->namespaces[i].inode);
                json_end(j, '}');
        }
        json_end(j, ']');
}

static void put_ksymbol(Json *j, const perfd_ksymbol_record *r) {
        put_hex(j, "addr", r->addr);
        JSON_NUMBER(j, "len", r->len);
        JSON_NUMBER(j, "type", r->type);
        JSON_BOOL(j, "unregister", r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
        JSON_NUMBER(j, "flags", r->flags);
        JSON_TEXT(j, "name", r->name);
}

static void put_bpf_event(Json *j, const perfd_bpf_event_record *r) {
        JSON_NUMBER(j, "type", r->type);
        JSON_NUMBER(j, "flags", r->flags);
        JSON_NUMBER(j, "id", r->id);
        put_hex_bytes(j, "tag", r->tag);
}

static void put_text_poke(Json *j, const perfd_text_poke_record *r) {
        put_hex(j, "addr", r->addr);
        put_hex_bytes(j, "old_bytes", r->old_bytes);
        put_hex_bytes(j, "new_bytes", r->new_bytes);
}

static void put_aux(Json *j, const perfd_aux_record *r) {
        JSON_NUMBER(j, "offset", r->offset);
        JSON_NUMBER(j, "size", r->size);
        JSON_NUMBER(j, "flags", r->flags);
}

static void put_unknown(Json *j, const perfd_unknown_record *r) {
        JSON_NUMBER(j, "type", r->type);
        JSON_NUMBER(j, "misc", r->misc);
        put_hex_bytes(j, "bytes", r->bytes);
}

void read_put_json(Json *j, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        const perfd_read_value *v;
        size_t n = perfd_item_read(item, &v);

        json_put_name(j, "counters");
        json_begin(j, '[');
        for (size_t i = 0; i < n; i++) {
                json_begin(j, '{');
                put_word(j, "event", event && i < event->n_counters ? event->counters[i].event : NULL);
                JSON_NUMBER(j, "value", v[i].value);
                JSON_NUMBER(j, "enabled", v[i].enabled);
                JSON_NUMBER(j, "running", v[i].running);
                JSON_NUMBER(j, "lost", v[i].lost);
                json_end(j, '}');
        }
        json_end(j, ']');
}

/* A table in the shape of a switch. */
void record_put_json(Json *j, const perfd_item *item) {
        switch (perfd_item_record(item)) {
        case PERFD_SAMPLE:
                return;
        case PERFD_COMM:
                put_comm(j, perfd_item_comm_record(item));
                return;
        case PERFD_FORK:
        case PERFD_EXIT:
                put_task(j, perfd_item_task_record(item), true);
                return;
        case PERFD_MMAP2:
                put_mmap2(j, perfd_item_mmap2_record(item));
                return;
        case PERFD_LOST:
        case PERFD_LOST_SAMPLES:
                JSON_NUMBER(j, "lost", perfd_item_lost(item));
                return;
        case PERFD_THROTTLE:
        case PERFD_UNTHROTTLE:
                JSON_NUMBER(j, "stream_id", perfd_item_stream_id(item));
                return;
        case PERFD_SWITCH:
                put_switch(j, perfd_item_switch_record(item));
                return;
        case PERFD_NAMESPACES:
                put_namespaces(j, perfd_item_namespaces_record(item));
                return;
        case PERFD_KSYMBOL:
                put_ksymbol(j, perfd_item_ksymbol_record(item));
                return;
        case PERFD_BPF_EVENT:
                put_bpf_event(j, perfd_item_bpf_event_record(item));
                return;
        case PERFD_CGROUP:
                JSON_NUMBER(j, "id", perfd_item_cgroup_record(item)->id);
                JSON_TEXT(j, "path", perfd_item_cgroup_record(item)->path);
                return;
        case PERFD_TEXT_POKE:
                put_text_poke(j, perfd_item_text_poke_record(item));
                return;
        case PERFD_AUX:
                put_aux(j, perfd_item_aux_record(item));
                return;
        case PERFD_ITRACE_START:
                put_task(j, perfd_item_task_record(item), false);
                return;
        case PERFD_AUX_OUTPUT_HW_ID:
                put_hex(j, "hw_id", perfd_item_hw_id(item));
                return;
        case PERFD_READ:
                put_task(j, perfd_item_task_record(item), false);
                read_put_json(j, item);
                return;
        case PERFD_UNKNOWN:
                put_unknown(j, perfd_item_unknown_record(item));
                return;
        }
}

static void put_branch(Json *j, const perfd_branch *b) {
        json_begin(j, '{');
        put_hex(j, "from", b->from);
        put_hex(j, "to", b->to);
        JSON_BOOL(j, "mispredicted", b->mispredicted);
        JSON_BOOL(j, "predicted", b->predicted);
        JSON_BOOL(j, "in_transaction", b->in_transaction);
        JSON_BOOL(j, "abort", b->abort);
        JSON_NUMBER(j, "cycles", b->cycles);
        JSON_NUMBER(j, "type", b->type);
        JSON_NUMBER(j, "new_type", b->new_type);
        put_word(j, "type_name", branch_type_word(b));
        JSON_NUMBER(j, "spec", b->spec);
        put_word(j, "spec_name", branch_spec_word(b));
        JSON_NUMBER(j, "privilege", b->privilege);
        put_word(j, "privilege_name", branch_privilege_word(b));
        if (b->counters > 0)
                put_hex(j, "counters", b->counters);
        json_end(j, '}');
}

static void put_branches(Json *j, const perfd_item *item) {
        const perfd_branch *branches;
        size_t n = perfd_item_branches(item, &branches);
        uint64_t index;

        if (n > 0) {
                json_put_name(j, "branches");
                json_begin(j, '[');
                for (size_t i = 0; i < n; i++)
                        put_branch(j, &branches[i]);
                json_end(j, ']');
        }
        if (perfd_item_branch_hw_index(item, &index))
                JSON_NUMBER(j, "branch_hw_index", index);
}

static void put_registers(Json *j, const char *name, const perfd_registers *r) {
        size_t i = 0;

        if (!r)
                return;
        json_put_name(j, name);
        json_begin(j, '{');
        JSON_NUMBER(j, "abi", r->abi);
        json_put_name(j, "values");
        json_begin(j, '{');
        for (uint64_t left = r->mask; left != 0 && i < r->n_values; left &= left - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(left);
                const char *known = perfd_register_name(r->machine, bit);
                char number[16];

                (void)snprintf(number, sizeof(number), "%u", bit);
                put_hex(j, known ? known : number, r->values[i++]);
        }
        json_end(j, '}');
        json_end(j, '}');
}

static void put_data_source(Json *j, const perfd_data_source *d) {
        char words[WORDS_MAX];

        data_source_words(d, words);
        json_put_name(j, "data_source");
        json_begin(j, '{');
        put_hex(j, "raw", d->raw);
        JSON_NUMBER(j, "op", d->op);
        JSON_NUMBER(j, "level", d->level);
        JSON_NUMBER(j, "snoop", d->snoop);
        JSON_NUMBER(j, "lock", d->lock);
        JSON_NUMBER(j, "dtlb", d->dtlb);
        JSON_NUMBER(j, "level_number", d->level_number);
        JSON_NUMBER(j, "remote", d->remote);
        JSON_NUMBER(j, "snoop_extra", d->snoop_extra);
        JSON_NUMBER(j, "blocked", d->blocked);
        JSON_NUMBER(j, "hops", d->hops);
        JSON_STRING(j, "text", words);
        json_end(j, '}');
}

static void put_transaction(Json *j, const perfd_transaction *t) {
        char words[WORDS_MAX];

        transaction_words(t, words);
        json_put_name(j, "transaction");
        json_begin(j, '{');
        JSON_NUMBER(j, "flags", t->flags);
        JSON_STRING(j, "text", words);
        JSON_NUMBER(j, "abort_code", t->abort_code);
        json_end(j, '}');
}

static void put_weight(Json *j, const perfd_weight *w) {
        json_put_name(j, "weight");
        json_begin(j, '{');
        JSON_NUMBER(j, "full", w->full);
        JSON_NUMBER(j, "var1", w->var1);
        JSON_NUMBER(j, "var2", w->var2);
        JSON_NUMBER(j, "var3", w->var3);
        json_end(j, '}');
}

static void put_number_above_0(Json *j, const char *name, uint64_t number) {
        if (number > 0)
                (json_put_name(j, name), json_put_number(j, number));
}

void parts_put_json(Json *j, const perfd_item *item) {
        const perfd_read_value *values;

        if (perfd_item_record(item) != PERFD_SAMPLE)
                return;
        if (perfd_item_read(item, &values) > 0)
                read_put_json(j, item);
        put_branches(j, item);
        put_registers(j, "user_registers", perfd_item_user_registers(item));
        put_registers(j, "interrupt_registers", perfd_item_interrupt_registers(item));
        if (perfd_item_user_stack(item).length > 0)
                put_hex_bytes(j, "user_stack", perfd_item_user_stack(item));
        if (perfd_item_weight(item))
                put_weight(j, perfd_item_weight(item));
        if (perfd_item_data_source(item))
                put_data_source(j, perfd_item_data_source(item));
        if (perfd_item_transaction(item))
                put_transaction(j, perfd_item_transaction(item));
        if (perfd_item_physical_address(item) > 0)
                put_hex(j, "physical_address", perfd_item_physical_address(item));
        put_number_above_0(j, "cgroup_id", perfd_item_cgroup_id(item));
        put_number_above_0(j, "data_page_size", perfd_item_data_page_size(item));
        put_number_above_0(j, "code_page_size", perfd_item_code_page_size(item));
        if (perfd_item_aux_bytes(item).length > 0)
                put_hex_bytes(j, "aux_bytes", perfd_item_aux_bytes(item));
        put_number_above_0(j, "id", perfd_item_sample_id(item));
        put_number_above_0(j, "stream_id", perfd_item_stream_id(item));
}
