/*
 * Who a tid of 0 is, where perfd is in a pid namespace: what the kernel's records show of it and what they leave open, and what
 * becomes of it in items, which on the host say nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "daemon/encode/item.h"
#include "daemon/model/zero-tid.h"
#include "proto/perfd.pb-c.h"

#define RAW 12 /* common (8) and a number of the event's own */

static void packet_free(Perfd__V1__Packet *p) {
        perfd__v1__packet__free_unpacked(p, NULL);
}
DEFINE_CLEANUP(Perfd__V1__Packet *, packet_free)

static Plan *tracepoint(void) {
        Plan *p = plan_new(7, "group", "name");
        PlanField *f = plan_add_field(p, "value", "u32 value");

        f->kind = FIELD_UNSIGNED;
        f->offset = 8;
        f->element_size = 4;
        f->count = 1;
        p->common_pid = 4;
        p->min_size = RAW;
        return p;
}

static ZeroTid of_mode(uint16_t misc) {
        return zero_tid_of_sample(NULL, &(Record){ .misc = misc, .comm = "" });
}

static void test_raw_bytes(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = tracepoint();
        uint32_t raw[] = { 7, 0, 1 };
        Record r = { .misc = PERF_RECORD_MISC_USER, .comm = "", .raw = (uint8_t *)raw, .raw_size = RAW };

        assert_int_equal(zero_tid_of_sample(plan, &r), ZERO_TID_IDLE); /* whatever else there is */
        raw[1] = 4711;
        r.misc = PERF_RECORD_MISC_KERNEL;
        assert_int_equal(zero_tid_of_sample(plan, &r), ZERO_TID_OUTSIDE);
        r.raw_size = 7; /* it is not whole */
        assert_int_equal(zero_tid_of_sample(plan, &r), ZERO_TID_UNKNOWN);
        r.raw_size = RAW;
        plan->common_pid = 0; /* the format does not have it */
        assert_int_equal(zero_tid_of_sample(plan, &r), ZERO_TID_UNKNOWN);
}

static void test_modes(void **state) {
        assert_int_equal(of_mode(PERF_RECORD_MISC_USER), ZERO_TID_OUTSIDE);
        assert_int_equal(of_mode(PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP), ZERO_TID_OUTSIDE);
        assert_int_equal(of_mode(PERF_RECORD_MISC_GUEST_USER), ZERO_TID_OUTSIDE);
        assert_int_equal(of_mode(PERF_RECORD_MISC_GUEST_KERNEL), ZERO_TID_OUTSIDE);
        assert_int_equal(of_mode(PERF_RECORD_MISC_KERNEL), ZERO_TID_UNKNOWN);
        assert_int_equal(of_mode(PERF_RECORD_MISC_HYPERVISOR), ZERO_TID_UNKNOWN);
        assert_int_equal(of_mode(PERF_RECORD_MISC_CPUMODE_UNKNOWN), ZERO_TID_UNKNOWN);
}

static void test_callchains(void **state) {
        uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000000, (uint64_t)PERF_CONTEXT_USER, 0x401000 };
        Record r = { .misc = PERF_RECORD_MISC_KERNEL, .comm = "", .callchain = (uint8_t *)chain, .n_callchain = 2 };

        assert_int_equal(zero_tid_of_sample(NULL, &r), ZERO_TID_UNKNOWN);
        r.n_callchain = 4;
        assert_int_equal(zero_tid_of_sample(NULL, &r), ZERO_TID_OUTSIDE);
}

static void test_side_records(void **state) {
        static const struct {
                uint32_t type;
                uint16_t misc;
                ZeroTid expected;
        } cases[] = {
                { PERF_RECORD_FORK, 0, ZERO_TID_OUTSIDE },       { PERF_RECORD_EXIT, 0, ZERO_TID_OUTSIDE },
                { PERF_RECORD_COMM, 0, ZERO_TID_OUTSIDE },       { PERF_RECORD_MMAP, 0, ZERO_TID_OUTSIDE },
                { PERF_RECORD_MMAP2, 0, ZERO_TID_OUTSIDE },      { PERF_RECORD_NAMESPACES, 0, ZERO_TID_OUTSIDE },
                { PERF_RECORD_CGROUP, 0, ZERO_TID_OUTSIDE },     { PERF_RECORD_READ, 0, ZERO_TID_NONE },
                { PERF_RECORD_LOST, 0, ZERO_TID_UNKNOWN },       { PERF_RECORD_THROTTLE, 0, ZERO_TID_UNKNOWN },
                { PERF_RECORD_SWITCH_CPU_WIDE, 0, ZERO_TID_UNKNOWN }, /* in */
                { PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, ZERO_TID_OUTSIDE },
                { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, ZERO_TID_OUTSIDE },
                { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, ZERO_TID_UNKNOWN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(zero_tid_of_side(&(Record){ .type = cases[i].type, .misc = cases[i].misc, .comm = "" }),
                                 cases[i].expected);
}

/* In the least room that is enough, so that a sanitizer sees one byte more. What the item says. */
static int zero_tid_in_item(const EncodePlan *p, const Record *r) {
        _cleanup_(packet_freep) Perfd__V1__Packet *packet = NULL;
        size_t room = 0, length = 0;
        int code;

        do {
                _cleanup_free_ uint8_t *bytes = malloc(++room);

                code = item_encode(p, r, bytes, room, &length);
                packet = code == 0 ? perfd__v1__packet__unpack(NULL, length, bytes) : NULL;
        } while (code == ITEM_E_NO_ROOM && room < 1024);
        assert_int_equal(code, 0);
        assert_true(packet && packet->n_items == 1);
        assert_true(packet->items[0]->time == r->time && packet->items[0]->cpu == r->cpu && packet->items[0]->event == 3);
        assert_true(packet->items[0]->pid == r->pid && packet->items[0]->tid == r->tid);
        if (p->plan && p->payload != PAYLOAD_RAW)
                assert_true(packet->items[0]->n_numbers == 1 && packet->items[0]->numbers[0] == 5);
        if (p->plan && p->payload != PAYLOAD_FIELDS)
                assert_true(packet->items[0]->raw.len == RAW && memcmp(packet->items[0]->raw.data, r->raw, RAW) == 0);
        return (int)packet->items[0]->zero_tid;
}

/* Of all payloads, on the fast way and on the other one. */
static void test_items(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = tracepoint();
        uint32_t raw[] = { 7, 0, 5 };

        for (unsigned i = 0; i < 4 * _PAYLOAD_MAX; i++) {
                _cleanup_(encode_plan_unrefp) EncodePlan *p = encode_plan_new(plan, 3, (Payload)(i / 4), NULL, 0);
                Record r = { .type = PERF_RECORD_SAMPLE, .comm = "", .cpu = i & 1, .time = 9, .raw = (uint8_t *)raw, .raw_size = RAW,
                             .layout = i & 2 ? RECORD_LAYOUT_BASE : RECORD_LAYOUT_ANY };

                raw[1] = 0;
                assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_NONE); /* on the host */
                encode_plan_tell_zero_tid(p);
                assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_IDLE);
                raw[1] = 4711;
                assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_OUTSIDE);
                r.time = 0;
                assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_OUTSIDE);
                r.pid = r.tid = 4711;
                assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_NONE);
        }
}

static void test_items_without_plan(void **state) {
        _cleanup_(encode_plan_unrefp) EncodePlan *p = encode_plan_new(NULL, 3, PAYLOAD_FIELDS, NULL, 0);
        Record r = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_KERNEL, .comm = "", .time = 9, .period = 1000 };

        encode_plan_tell_zero_tid(p);
        assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_UNKNOWN);
        r.parts = PERF_SAMPLE_PHYS_ADDR; /* what few events ask for comes behind it */
        r.extra = (RecordExtra){ .physical_address = 1 };
        r.misc = PERF_RECORD_MISC_USER;
        assert_int_equal(zero_tid_in_item(p, &r), PERFD__V1__ZERO_TID__ZERO_TID_OUTSIDE);
}

static void test_side_items(void **state) {
        Record r = { .type = PERF_RECORD_FORK, .comm = "", .time = 9, .task = { .pid = 12, .tid = 12 } };
        uint8_t bytes[512];
        size_t length;

        for (unsigned zero_tid = ZERO_TID_NONE; zero_tid <= ZERO_TID_UNKNOWN; zero_tid++) {
                _cleanup_(packet_freep) Perfd__V1__Packet *packet = NULL;

                r.zero_tid = (uint8_t)zero_tid;
                assert_int_equal(side_item_encode(&r, 0, bytes, sizeof(bytes), &length), 0);
                packet = perfd__v1__packet__unpack(NULL, length, bytes);
                assert_true(packet && packet->n_items == 1 && packet->items[0]->fork->tid == 12);
                assert_int_equal(packet->items[0]->zero_tid, zero_tid);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_raw_bytes),    cmocka_unit_test(test_modes),
                cmocka_unit_test(test_callchains),   cmocka_unit_test(test_side_records),
                cmocka_unit_test(test_items),        cmocka_unit_test(test_items_without_plan),
                cmocka_unit_test(test_side_items),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
