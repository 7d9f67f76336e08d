/*
 * Rare parts of samples, side records and reads as items: what was put in comes out of protobuf-c, and both protobuf-c
 * and Python's protobuf, packing the same message, make the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/decode/record.h"
#include "daemon/encode/descriptor.h"
#include "tests/unit/built-sample.h"
#include "tests/unit/side-records.h"

#define ROOM 16384
#define N_SAMPLES 1500

static void packet_free(Perfd__V1__Packet *p) {
        perfd__v1__packet__free_unpacked(p, NULL);
}
DEFINE_CLEANUP(Perfd__V1__Packet *, packet_free)

static FILE *for_python; /* every item that was unpacked, or NULL */

/* The one item of a packet, after showing that protobuf-c would write the same bytes. */
static Perfd__V1__Packet *unpack(const uint8_t *bytes, size_t length) {
        Perfd__V1__Packet *packet = perfd__v1__packet__unpack(NULL, length, bytes);
        _cleanup_free_ uint8_t *again = malloc(length + 1);
        uint32_t n = (uint32_t)length;

        assert_non_null(packet);
        assert_int_equal(packet->n_items, 1);
        assert_int_equal(perfd__v1__packet__get_packed_size(packet), length);
        assert_int_equal(perfd__v1__packet__pack(packet, again), length);
        assert_memory_equal(bytes, again, length);
        fwrite(&n, sizeof(n), 1, for_python);
        fwrite(bytes, length, 1, for_python);
        return packet;
}

static void check_bytes(ProtobufCBinaryData found, const void *expected, size_t length) {
        assert_int_equal(found.len, length);
        if (length > 0)
                assert_memory_equal(found.data, expected, length);
}

static void check_reads(const Perfd__V1__ReadValues *found, const BuiltSample *b) {
        assert_int_equal(found->n_values, b->n_counters);
        for (uint64_t i = 0; i < b->n_counters; i++) {
                assert_true(found->values[i]->value == b->value[i] && found->values[i]->lost == b->lost[i]);
                assert_true(found->values[i]->enabled == b->enabled && found->values[i]->running == b->running);
        }
}

static void check_branches(const Perfd__V1__Item *i, const BuiltSample *b) {
        assert_int_equal(i->n_branches, b->n_branches);
        assert_true(i->branch_hw_index == b->hw_index + 1);
        for (uint64_t k = 0; k < b->n_branches; k++) {
                const Perfd__V1__Branch *f = i->branches[k];
                const struct perf_branch_entry *e = &b->branches[k];

                assert_true(f->from == e->from && f->to == e->to && f->counters == b->branch_counters[k]);
                assert_true(f->mispredicted == e->mispred && f->predicted == e->predicted);
                assert_true(f->in_transaction == e->in_tx && f->abort == e->abort && f->cycles == e->cycles);
                assert_true(f->type == e->type && f->spec == e->spec);
                assert_true(f->new_type == e->new_type && f->privilege == e->priv);
        }
}

static void check_registers(const Perfd__V1__Registers *found, const BuiltRegisters *b) {
        assert_non_null(found);
        assert_true(found->abi == b->abi && found->mask == b->mask);
        assert_int_equal(found->n_values, b->n);
        if (b->n > 0)
                assert_memory_equal(found->values, b->values, b->n * sizeof(uint64_t));
#ifdef __x86_64__
        assert_int_equal(found->machine, 62);
#endif
}

static void check_memory(const Perfd__V1__Item *i, const BuiltSample *b) {
        assert_int_equal(i->weight != NULL, built_has(b, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT));
        if (built_has(b, PERF_SAMPLE_WEIGHT))
                assert_true(i->weight->full == b->weight.full && i->weight->var1 == 0);
        if (built_has(b, PERF_SAMPLE_WEIGHT_STRUCT))
                assert_true(i->weight->var1 == b->weight.var1_dw && i->weight->var2 == b->weight.var2_w &&
                            i->weight->var3 == b->weight.var3_w && i->weight->full == 0);
        if (built_has(b, PERF_SAMPLE_DATA_SRC)) {
                const Perfd__V1__DataSource *d = i->data_source;

                assert_true(d->raw == b->data_source.val && d->op == b->data_source.mem_op);
                assert_true(d->level == b->data_source.mem_lvl && d->snoop == b->data_source.mem_snoop);
                assert_true(d->lock == b->data_source.mem_lock && d->dtlb == b->data_source.mem_dtlb);
                assert_true(d->level_number == b->data_source.mem_lvl_num && d->remote == b->data_source.mem_remote);
                assert_true(d->snoop_extra == b->data_source.mem_snoopx && d->blocked == b->data_source.mem_blk);
                assert_true(d->hops == b->data_source.mem_hops);
        }
        if (built_has(b, PERF_SAMPLE_TRANSACTION)) {
                assert_int_equal(i->transaction->flags, (uint32_t)b->transaction);
                assert_int_equal(i->transaction->abort_code, (uint32_t)(b->transaction >> 32));
        }
}

static void check_sample(const Perfd__V1__Item *i, const BuiltSample *b) {
        assert_int_equal(i->event, 3);
        assert_true(i->time == b->time && i->period == b->period && i->ip == b->ip);
        check_bytes(i->raw, b->raw, b->raw_size);
        assert_int_equal(i->read_values != NULL, built_has(b, PERF_SAMPLE_READ));
        if (i->read_values)
                check_reads(i->read_values, b);
        if (built_has(b, PERF_SAMPLE_BRANCH_STACK))
                check_branches(i, b);
        if (built_has(b, PERF_SAMPLE_REGS_USER))
                check_registers(i->user_registers, &b->user);
        if (built_has(b, PERF_SAMPLE_REGS_INTR))
                check_registers(i->interrupt_registers, &b->interrupt);
        check_bytes(i->user_stack, b->stack, b->stack_filled);
        check_memory(i, b);
        assert_true(i->physical_address == b->physical_address && i->cgroup_id == b->cgroup_id);
        assert_true(i->data_page_size == b->data_page_size && i->code_page_size == b->code_page_size);
        check_bytes(i->aux_bytes, b->aux, b->aux_size);
        assert_true(i->id == b->id && i->stream_id == b->stream_id);
}

static void decode(const struct perf_event_attr *attr, const uint64_t *words, size_t size, Record *ret) {
        SampleLayout l;

        assert_int_equal(sample_layout_init(&l, attr), 0);
        assert_int_equal(record_decode(&l, (const uint8_t *)words, size, ret), 0);
}

/* In memory of exactly the room that it takes to succeed, so that a sanitizer sees one byte more. */
static Perfd__V1__Packet *encode(const EncodePlan *plan, const Record *r) {
        size_t length = 0;

        for (size_t room = 0;; room++) {
                _cleanup_free_ uint8_t *memory = malloc(room ? room : 1);
                int code = r->type == PERF_RECORD_SAMPLE ? item_encode(plan, r, memory, room, &length)
                                                         : side_item_encode(r, 3, memory, room, &length);

                if (code == 0) {
                        assert_true(length <= room && room < ROOM);
                        return unpack(memory, length);
                }
                assert_int_equal(code, ITEM_E_NO_ROOM);
                assert_int_equal(length, 0);
        }
}

static void test_samples(void **state) {
        _cleanup_(encode_plan_unrefp) EncodePlan *plan = encode_plan_new(NULL, 3, PAYLOAD_RAW, NULL, 0);
        static BuiltSample b;

        for (uint64_t seed = 0; seed < N_SAMPLES; seed++) {
                _cleanup_(packet_freep) Perfd__V1__Packet *packet = NULL;
                Record r;

                built_sample_init(&b, seed);
                decode(&b.attr, b.words, built_size(&b), &r);
                packet = encode(plan, &r);
                check_sample(packet->items[0], &b);
        }
}

static Perfd__V1__Item *side(const uint64_t *words, size_t size, Perfd__V1__Packet **ret_packet) {
        static const struct perf_event_attr attr = { .sample_type = SAMPLE_TYPE_BASE, .sample_id_all = 1 };
        Record r;

        decode(&attr, words, size, &r);
        *ret_packet = encode(NULL, &r);
        assert_int_equal((*ret_packet)->items[0]->tid, 8);
        assert_true((*ret_packet)->items[0]->time == 99);
        return (*ret_packet)->items[0];
}

#define SIDE(words, kind)                                                                                              \
        _cleanup_(packet_freep) Perfd__V1__Packet *packet = NULL;                                                      \
        const Perfd__V1__Item *i = side(words, sizeof(words), &packet);                                                \
        assert_int_equal(i->record_case, PERFD__V1__ITEM__RECORD_##kind)

#define RECORD_ITEM(code, number, member, name)                                                                 \
        _Static_assert(PERFD__V1__ITEM__RECORD_##member == number,                                              \
                       "the row " #code " of proto/record.def and the oneof of Item in perfd.proto have two numbers: make them one");
#define RECORD_KIND(code, word)                                                                                 \
        _Static_assert((int)PERFD__V1__RECORD_KIND__##RECORD_KIND_##code == (int)RECORD_KIND_##code,              \
                       "give the row " #code " of proto/record.def the place that it has in RecordKind of perfd.proto");
#include "proto/record.def"

/* Each message of the oneof of Item has a row of proto/record.def, and each value of RecordKind. */
static void test_record_table(void **state) {
        static const unsigned numbers[] = {
#define RECORD_ITEM(code, number, member, name) number,
#include "proto/record.def"
        };
        const ProtobufCMessageDescriptor *d = &perfd__v1__item__descriptor;
        size_t n = 0;

        for (unsigned i = 0; i < d->n_fields; i++) {
                if (!(d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
                        continue;
                assert_true(n < sizeof(numbers) / sizeof(*numbers));
                assert_int_equal(d->fields[i].id, numbers[n]);
                n++;
        }
        assert_int_equal(n, sizeof(numbers) / sizeof(*numbers));
        assert_int_equal(perfd__v1__record_kind__descriptor.n_values, _RECORD_KIND_MAX);
}

static void test_records_of_tasks(void **state) {
        {
                SIDE(RECORD_SWITCH_IN, SWITCH);
                assert_false(i->switch_->out || i->switch_->preempted || i->switch_->cpu_wide);
        }
        {
                SIDE(RECORD_SWITCH_OUT, SWITCH);
                assert_true(i->switch_->out && !i->switch_->preempted && i->switch_->cpu_wide);
                assert_true(i->switch_->next_prev_pid == 5 && i->switch_->next_prev_tid == 6);
        }
        {
                SIDE(RECORD_NAMESPACES, NAMESPACES);
                assert_true(i->namespaces->pid == 7 && i->namespaces->n_namespaces == 2);
                assert_int_equal(i->namespaces->namespaces[0]->dev, 4);
                assert_int_equal(i->namespaces->namespaces[1]->inode, 0xf0000076);
        }
        {
                SIDE(RECORD_CGROUP, CGROUP);
                assert_int_equal(i->cgroup->id, 0x1234);
                check_bytes(i->cgroup->path, "/b/see", 6);
        }
        {
                SIDE(RECORD_ITRACE_START, ITRACE_START);
                assert_true(i->itrace_start->pid == 10 && i->itrace_start->tid == 11);
        }
}

static void test_records_of_code(void **state) {
        {
                SIDE(RECORD_KSYMBOL, KSYMBOL);
                assert_true(i->ksymbol->addr == 0xffffffffc0000000 && i->ksymbol->len == 0x40);
                assert_true(i->ksymbol->type == 1 && i->ksymbol->flags == 1);
                check_bytes(i->ksymbol->name, "bf_prog", 7);
        }
        {
                SIDE(RECORD_BPF_EVENT, BPF_EVENT);
                assert_true(i->bpf_event->type == 1 && i->bpf_event->flags == 0 && i->bpf_event->id == 42);
                check_bytes(i->bpf_event->tag, RECORD_BPF_EVENT + 2, 8);
        }
        {
                SIDE(RECORD_TEXT_POKE, TEXT_POKE);
                assert_true(i->text_poke->addr == 0xffffffff81000000);
                check_bytes(i->text_poke->old_bytes, "\xbb\xee", 2);
                check_bytes(i->text_poke->new_bytes, "\xcc\xdd\x11", 3);
        }
        {
                SIDE(RECORD_AUX, AUX);
                assert_true(i->aux->offset == 4096 && i->aux->size == 512 && i->aux->flags == 1);
        }
        {
                SIDE(RECORD_HW_ID, AUX_OUTPUT_HW_ID);
                assert_int_equal(i->aux_output_hw_id->hw_id, 0x77);
        }
        {
                SIDE(RECORD_NEWER, UNKNOWN);
                assert_true(i->unknown->type == 77 && i->unknown->misc == 3);
                check_bytes(i->unknown->bytes, RECORD_NEWER + 1, 16);
        }
}

static void test_reads(void **state) {
        const ReadCount counts[] = { { 1, 2, 3, 4 }, { 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX } };
        _cleanup_(packet_freep) Perfd__V1__Packet *p = NULL;
        uint8_t bytes[512];
        size_t length = 0;

        {
                SIDE(RECORD_READ, READ);
                assert_true(i->read->pid == 5 && i->read->tid == 6);
                assert_int_equal(i->read->values->n_values, 1);
                assert_int_equal(i->read->values->values[0]->value, 1000);
        }
        for (size_t room = 0; length == 0; room++)
                if (read_item_encode(9, 2, 77, counts, 3, bytes, room, &length) == 0)
                        assert_true(length <= room);
        p = unpack(bytes, length);
        assert_true(p->items[0]->event == 9 && p->items[0]->cpu == 2 && p->items[0]->time == 77);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_READ);
        assert_int_equal(p->items[0]->read->values->n_values, 3);
        assert_true(p->items[0]->read->values->values[0]->running == 3);
        assert_true(p->items[0]->read->values->values[2]->lost == UINT64_MAX);
}

static void test_counters(void **state) {
        _cleanup_(encode_plan_unrefp) EncodePlan *e = encode_plan_new(NULL, 4, PAYLOAD_FIELDS, NULL, 0);
        Perfd__V1__EventDescriptor *d = NULL;

        assert_int_equal(event_descriptor_new(e, "g", "{cycles,energy}", 0, 0, "events", &d), 0);
        assert_int_equal(event_descriptor_add_counter(d, "cycles", "events", 1), 0);
        assert_int_equal(event_descriptor_add_counter(d, "energy", "Joules", 0.5), 0);
        assert_int_equal(d->n_counters, 2);
        assert_string_equal(d->counters[0]->event, "cycles");
        assert_true(d->counters[0]->scale == 0 && d->counters[1]->scale == 0.5);
        assert_string_equal(d->counters[1]->unit, "Joules");
        perfd__v1__event_descriptor__free_unpacked(d, NULL);
}

/* The last test: all that the ones before it encoded. */
static void test_by_python(void **state) {
        const char *path = *state;
        char command[4096], line[256];
        FILE *python;

        assert_int_equal(fflush(for_python), 0);
        (void)snprintf(command, sizeof(command), "/usr/bin/python3 -B '%s' '%s' '%s' --canonical", ITEM_DECODER,
                       PERFD_PB2, path);
        python = popen(command, "r");
        assert_non_null(python);
        assert_non_null(fgets(line, sizeof(line), python));
        assert_string_equal(line, "canonical\n");
        assert_int_equal(pclose(python), 0);
}

int main(void) {
        char path[] = "/tmp/perfd-items-XXXXXX";
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples),
                cmocka_unit_test(test_record_table),
                cmocka_unit_test(test_records_of_tasks),
                cmocka_unit_test(test_records_of_code),
                cmocka_unit_test(test_reads),
                cmocka_unit_test(test_counters),
                cmocka_unit_test_prestate(test_by_python, path),
        };
        int failed;

        for_python = fdopen(mkstemp(path), "w");
        failed = for_python ? cmocka_run_group_tests(tests, NULL, NULL) : -1;
        if (for_python)
                fclose(for_python);
        unlink(path);
        return failed;
}
