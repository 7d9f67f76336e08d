/*
 * The direct writer against two independent readers: random samples are encoded, unpacked by protobuf-c and by Python's
 * protobuf, and every value is compared with what was put in. That both, packing the same message, make the same bytes
 * shows that these are canonical.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/decode/record.h"
#include "daemon/encode/descriptor.h"
#include "tests/unit/kernel-records.h"
#include "tests/unit/made-sample.h"

#define N_SAMPLES 600
#define ROOM 16384

static void packet_free(Perfd__V1__Packet *p) {
        perfd__v1__packet__free_unpacked(p, NULL);
}
DEFINE_CLEANUP(Perfd__V1__Packet *, packet_free)

/* The one item of a packet, after showing that protobuf-c would write the same bytes. */
static Perfd__V1__Packet *unpack(const uint8_t *bytes, size_t length) {
        Perfd__V1__Packet *packet = perfd__v1__packet__unpack(NULL, length, bytes);
        _cleanup_free_ uint8_t *again = malloc(length + 1);

        assert_non_null(packet);
        assert_int_equal(packet->n_items, 1);
        assert_int_equal(perfd__v1__packet__get_packed_size(packet), length);
        assert_int_equal(perfd__v1__packet__pack(packet, again), length);
        assert_memory_equal(bytes, again, length);
        return packet;
}

static void check_bytes(ProtobufCBinaryData found, const void *expected, size_t length) {
        assert_int_equal(found.len, length);
        if (length > 0)
                assert_memory_equal(found.data, expected, length);
}

static void check_words(const uint64_t *found, size_t n_found, const uint64_t *expected, size_t n) {
        assert_int_equal(n_found, n);
        if (n > 0)
                assert_memory_equal(found, expected, n * sizeof(*expected));
}

/* In memory of exactly `room` bytes, so that a sanitizer sees one byte more. */
static size_t encode(const MadeSample *m, size_t room, uint8_t *to) {
        _cleanup_free_ uint8_t *memory = malloc(room);
        size_t length = 0;

        assert_int_equal(item_encode(m->encode, &m->record, memory, room, &length), 0);
        assert_true(length <= room);
        memcpy(to, memory, length);
        return length;
}

static void check_sample(const MadeSample *m, const uint8_t *bytes, size_t length) {
        _cleanup_(packet_freep) Perfd__V1__Packet *packet = unpack(bytes, length);
        const Perfd__V1__Item *i = packet->items[0];

        assert_true(i->time == m->record.time);
        assert_int_equal(i->event, m->encode->event_id);
        assert_int_equal(i->cpu, m->record.cpu);
        assert_int_equal(i->pid, m->record.pid);
        assert_int_equal(i->tid, m->record.tid);
        assert_true(i->ip == m->record.ip && i->address == m->record.addr && i->period == m->record.period);
        check_words(i->numbers, i->n_numbers, m->numbers, m->n_numbers);
        assert_int_equal(i->n_texts, m->n_texts);
        for (size_t k = 0; k < m->n_texts; k++)
                check_bytes(i->texts[k], m->raw + m->texts[k].offset, m->texts[k].length);
        check_words(i->faults, i->n_faults, m->faults, m->n_faults);
        check_bytes(i->raw, m->raw, m->encode->payload == PAYLOAD_FIELDS ? 0 : m->raw_size);
        check_words(i->kernel_callchain, i->n_kernel_callchain, m->kernel, m->n_kernel);
        check_words(i->user_callchain, i->n_user_callchain, m->user, m->n_user);
        assert_int_equal(i->record_case, PERFD__V1__ITEM__RECORD__NOT_SET);
}

static void test_samples(void **state) {
        static uint8_t bytes[ROOM];
        static MadeSample m;

        for (uint64_t seed = 0; seed < N_SAMPLES; seed++) {
                made_sample_init(&m, seed, (Payload)(seed % _PAYLOAD_MAX));
                check_sample(&m, bytes, encode(&m, ROOM, bytes));
                made_sample_deinit(&m);
        }
}

/* Whatever the room, an item is whole or refused, and more room never turns success into refusal. */
static void test_room(void **state) {
        static uint8_t bytes[ROOM], whole[ROOM];
        static MadeSample m;

        for (uint64_t seed = 0; seed < 40; seed++) {
                size_t length, room = 0, n = 0;

                made_sample_init(&m, seed, PAYLOAD_BOTH);
                length = encode(&m, ROOM, whole);
                for (;; room++) {
                        _cleanup_free_ uint8_t *memory = malloc(room ? room : 1);

                        if (item_encode(m.encode, &m.record, memory, room, &n) == 0)
                                break;
                        assert_int_equal(n, 0);
                }
                assert_true(room >= length);
                assert_int_equal(encode(&m, room, bytes), length);
                assert_memory_equal(bytes, whole, length);
                made_sample_deinit(&m);
        }
}

static void test_undecodable(void **state) {
        static MadeSample m;
        static uint8_t bytes[ROOM];
        size_t length = 7;

        for (uint64_t seed = 0; seed < 200; seed++) {
                made_sample_init(&m, seed, PAYLOAD_FIELDS);
                for (m.record.raw_size = 0; m.record.raw_size < m.encode->min_size; m.record.raw_size++)
                        assert_int_equal(item_encode(m.encode, &m.record, bytes, ROOM, &length), ITEM_E_UNDECODABLE);
                m.record.raw_size = m.raw_size;
                for (size_t i = 0; i < m.encode->n_fields; i++) {
                        const PlanField *f = m.encode->fields[i];

                        if (f->place == PLACE_FIXED)
                                continue;
                        memcpy(m.raw + f->offset, &(uint32_t){ 0xff00ff00 }, sizeof(uint32_t));
                        assert_int_equal(item_encode(m.encode, &m.record, bytes, ROOM, &length), ITEM_E_UNDECODABLE);
                        break;
                }
                made_sample_deinit(&m);
        }
        assert_int_equal(length, 7);
}

static void print_expected(FILE *f, const MadeSample *m) {
        const Record *r = &m->record;

        fprintf(f, "%lu %u %u %u %u ", r->time, m->encode->event_id, r->cpu, r->pid, r->tid);
        fprintf(f, "%lu %lu %lu numbers", r->ip, r->addr, r->period);
        for (size_t i = 0; i < m->n_numbers; i++)
                fprintf(f, " %lu", m->numbers[i]);
        fprintf(f, " texts");
        for (size_t i = 0; i < m->n_texts; i++) {
                fprintf(f, " '");
                for (uint32_t k = 0; k < m->texts[i].length; k++)
                        fprintf(f, "%02x", m->raw[m->texts[i].offset + k]);
                fprintf(f, "'");
        }
        fprintf(f, " raw ");
        for (uint32_t i = 0; m->encode->payload != PAYLOAD_FIELDS && i < m->raw_size; i++)
                fprintf(f, "%02x", m->raw[i]);
        fprintf(f, " kernel");
        for (size_t i = 0; i < m->n_kernel; i++)
                fprintf(f, " %lu", m->kernel[i]);
        fprintf(f, " user");
        for (size_t i = 0; i < m->n_user; i++)
                fprintf(f, " %lu", m->user[i]);
        fprintf(f, " faults");
        for (size_t i = 0; i < m->n_faults; i++)
                fprintf(f, " %lu", m->faults[i]);
        fprintf(f, "\n");
}

static void test_samples_by_python(void **state) {
        char path[] = "/tmp/perfd-items-XXXXXX", command[4096];
        _cleanup_free_ char *expected = NULL, *line = NULL;
        static uint8_t bytes[ROOM];
        static MadeSample m;
        size_t expected_size, line_size = 0;
        FILE *out = open_memstream(&expected, &expected_size), *packets = fdopen(mkstemp(path), "w"), *python;
        const char *at;

        assert_non_null(out);
        assert_non_null(packets);
        for (uint64_t seed = 0; seed < N_SAMPLES; seed++) {
                uint32_t length;

                made_sample_init(&m, 1000 + seed, (Payload)(seed % _PAYLOAD_MAX));
                length = (uint32_t)encode(&m, ROOM, bytes);
                fwrite(&length, sizeof(length), 1, packets);
                fwrite(bytes, length, 1, packets);
                print_expected(out, &m);
                made_sample_deinit(&m);
        }
        fclose(out);
        assert_int_equal(fclose(packets), 0);

        (void)snprintf(command, sizeof(command), "/usr/bin/python3 -B '%s' '%s' '%s'", ITEM_DECODER, PERFD_PB2, path);
        python = popen(command, "r");
        assert_non_null(python);
        for (at = expected; getline(&line, &line_size, python) > 0; at += strlen(line)) {
                assert_true(strlen(line) <= strlen(at));
                assert_memory_equal(line, at, strlen(line));
        }
        assert_int_equal(pclose(python), 0);
        assert_string_equal(at, "");
        unlink(path);
}

static Perfd__V1__Packet *side(uint64_t sample_type, const void *words, size_t size, uint32_t event) {
        static uint8_t bytes[ROOM];
        size_t length, room;
        SampleLayout l;
        Record r;

        assert_int_equal(sample_layout_init_type(&l, sample_type), 0);
        assert_int_equal(record_decode(&l, words, size, &r), 0);
        assert_int_equal(side_item_encode(&r, event, bytes, ROOM, &length), 0);
        for (room = 0; side_item_encode(&r, event, bytes, room, &length) != 0;)
                room++;
        assert_true(room >= length);
        return unpack(bytes, length);
}

#define SIDE(words, event) side(SAMPLE_TYPE_BASE, words, sizeof(words), event)

static void test_side_records_of_tasks(void **state) {
        Perfd__V1__Packet *p;
        Perfd__V1__Item *i;

        p = SIDE(RECORD_COMM_EXEC, 0);
        i = p->items[0];
        assert_int_equal(i->event, 0);
        assert_true(i->time == 0x270d4009c11);
        assert_int_equal(i->tid, 0x5bec);
        assert_int_equal(i->record_case, PERFD__V1__ITEM__RECORD_COMM_RECORD);
        assert_int_equal(i->comm_record->pid, 0x5bec);
        check_bytes(i->comm_record->comm, "true", 4);
        assert_true(i->comm_record->exec);
        packet_free(p);

        p = SIDE(RECORD_FORK, 0);
        i = p->items[0];
        assert_int_equal(i->record_case, PERFD__V1__ITEM__RECORD_FORK);
        assert_true(i->fork->pid == 0x5bec && i->fork->ppid == 0x5bd6);
        assert_true(i->fork->tid == 0x5bec && i->fork->ptid == 0x5bd6);
        packet_free(p);

        p = SIDE(RECORD_EXIT, 0);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_EXIT);
        assert_int_equal(p->items[0]->exit->ptid, 0x5bd6);
        packet_free(p);
}

static void test_side_records_of_mappings(void **state) {
        static const char file[] = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
        Perfd__V1__Packet *p = SIDE(RECORD_MMAP2, 0);
        Perfd__V1__Mmap2Record *m = p->items[0]->mmap2;

        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_MMAP2);
        assert_true(m->addr == 0x7fa9a6a4f000 && m->len == 0x26000 && m->pgoff == 0x1000);
        assert_true(m->maj == 0xfe && m->min == 0 && m->ino == 0x5125f && m->prot == 5 && m->flags == 2);
        check_bytes(m->filename, file, strlen(file));
        check_bytes(m->build_id, NULL, 0);
        packet_free(p);

        p = side(SAMPLE_TYPE_BASE | PERF_SAMPLE_CPU, RECORD_MMAP2_BUILD_ID, sizeof(RECORD_MMAP2_BUILD_ID), 0);
        m = p->items[0]->mmap2;
        check_bytes(m->build_id, (const uint8_t *)RECORD_MMAP2_BUILD_ID + 44, 20);
        assert_true(m->ino == 0 && m->prot == 5);
        packet_free(p);

        p = SIDE(RECORD_MMAP, 0);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_MMAP2);
        check_bytes(p->items[0]->mmap2->filename, file, strlen(file));
        packet_free(p);
}

static void test_side_records_of_events(void **state) {
        static const uint64_t lost_samples[] = { 0x002800000000000d, 17, 0x0000000800000007, 99, 0x21 };
        static const uint64_t nothing_lost[] = { 0x002800000000000d, 0, 0x0000000800000007, 99, 0x21 };
        static const uint64_t throttle[] = { 0x0038000000000005, 98, 0x22, 0x23, 0x0000000800000007, 99, 0x21 };
        Perfd__V1__Packet *p = SIDE(RECORD_LOST, 12);

        assert_int_equal(p->items[0]->event, 12);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_LOST);
        assert_int_equal(p->items[0]->lost->lost, 461);
        packet_free(p);

        p = SIDE(lost_samples, 12);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_LOST_SAMPLES);
        assert_int_equal(p->items[0]->lost_samples->lost, 17);
        packet_free(p);

        p = SIDE(nothing_lost, 12); /* an empty message is still there */
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_LOST_SAMPLES);
        packet_free(p);

        p = SIDE(throttle, 12);
        assert_int_equal(p->items[0]->record_case, PERFD__V1__ITEM__RECORD_THROTTLE);
        assert_int_equal(p->items[0]->throttle->stream_id, 0x23);
        packet_free(p);

        Record sample = { .type = PERF_RECORD_SAMPLE, .comm = "" };
        uint8_t bytes[512];
        size_t length;
        assert_int_equal(side_item_encode(&sample, 1, bytes, sizeof(bytes), &length), ITEM_E_UNDECODABLE);
}

/* An event without a format has what the record has, whatever the payload. */
static void test_event_without_plan(void **state) {
        _cleanup_(encode_plan_unrefp) EncodePlan *e = encode_plan_new(NULL, 3, PAYLOAD_BOTH, NULL, 0);
        _cleanup_(packet_freep) Perfd__V1__Packet *p = NULL;
        Record r = { .time = 5, .ip = 0xffffffff81000000, .period = 1000000, .comm = "" };
        uint8_t bytes[512];
        size_t length;

        assert_int_equal(item_encode(e, &r, bytes, sizeof(bytes), &length), 0);
        p = unpack(bytes, length);
        assert_int_equal(p->items[0]->event, 3);
        assert_true(p->items[0]->ip == 0xffffffff81000000 && p->items[0]->period == 1000000);
        assert_int_equal(p->items[0]->n_numbers + p->items[0]->n_texts + p->items[0]->raw.len, 0);
}

static void test_descriptors(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = plan_new(9, "group", "name");
        _cleanup_(encode_plan_unrefp) EncodePlan *e = NULL;
        Perfd__V1__EventDescriptor *d = NULL;
        Perfd__V1__FieldDescriptor **fields = NULL;
        size_t n = 0;
        PlanField *f = plan_add_field(plan, "flags", "u32 flags[3]");

        *f = (PlanField){ .name = f->name, .type = f->type, .kind = FIELD_UNSIGNED, .element_size = 4, .count = 3,
                          .hex = true, .flags = true, .delimiter = strdup("|") };
        assert_int_equal(plan_field_add_value(f, 1, "ONE"), 0);
        f = plan_add_field(plan, "comm", "__data_loc char[] comm");
        *f = (PlanField){ .name = f->name, .type = f->type, .kind = FIELD_TEXT, .place = PLACE_DATA_LOC, .offset = 12,
                          .element_size = 1 };
        e = encode_plan_new(plan, 4, PAYLOAD_FIELDS, (char *[]){ (char[]){ "comm" } }, 1);

        assert_int_equal(event_descriptor_new(e, "mine", "group:name", 1, 0, "events", &d), 0);
        assert_int_equal(d->id, 4);
        assert_string_equal(d->name, "mine");
        assert_string_equal(d->event, "group:name");
        assert_string_equal(d->unit, "events");
        assert_int_equal(d->period, 1);
        assert_int_equal(d->n_fields, 1);
        assert_string_equal(d->fields[0]->name, "comm");
        assert_int_equal(d->fields[0]->kind, PERFD__V1__FIELD_KIND__FIELD_KIND_TEXT);
        assert_int_equal(d->fields[0]->count, 0);
        perfd__v1__event_descriptor__free_unpacked(d, NULL);

        assert_int_equal(field_descriptors_new(plan, &fields, &n), 0);
        assert_int_equal(n, 2);
        assert_string_equal(fields[0]->type, "u32 flags[3]");
        assert_true(fields[0]->size == 4 && fields[0]->count == 3 && fields[0]->hex && fields[0]->flags);
        assert_string_equal(fields[0]->delimiter, "|");
        assert_int_equal(fields[0]->n_values, 1);
        assert_string_equal(fields[0]->values[0]->name, "ONE");
        for (size_t i = 0; i < n; i++)
                perfd__v1__field_descriptor__free_unpacked(fields[i], NULL);
        free(fields);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples),
                cmocka_unit_test(test_room),
                cmocka_unit_test(test_undecodable),
                cmocka_unit_test(test_samples_by_python),
                cmocka_unit_test(test_side_records_of_tasks),
                cmocka_unit_test(test_side_records_of_mappings),
                cmocka_unit_test(test_side_records_of_events),
                cmocka_unit_test(test_event_without_plan),
                cmocka_unit_test(test_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
