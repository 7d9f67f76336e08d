/* Fields of captured samples, by Plans made of the kernel's own formats, and dynamic places that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/decode/fields.h"
#include "daemon/decode/record.h"
#include "tests/unit/format-file.h"
#include "tests/unit/kernel-records.h"

#define RAW_AT 36 /* | header 8 | identifier 8 | pid tid 8 | time 8 | size 4 | raw */

typedef struct Sample {
        Plan *plan;
        const uint8_t *raw;
        size_t raw_size;
} Sample;

#define SAMPLE(format, words)                                                                                          \
        { format_file_plan(format), (const uint8_t *)(words) + RAW_AT, sizeof(words) - RAW_AT }

static uint64_t number(const Sample *s, const char *name, uint32_t i) {
        uint64_t value = 0;

        assert_non_null(plan_find(s->plan, name));
        assert_int_equal(field_number(plan_find(s->plan, name), s->raw, s->raw_size, i, &value), 0);
        return value;
}

static void check_text(const Sample *s, const char *name, const char *expected) {
        const uint8_t *text;
        size_t length;

        assert_int_equal(field_text(plan_find(s->plan, name), s->raw, s->raw_size, &text, &length), 0);
        assert_int_equal(length, strlen(expected));
        assert_memory_equal(text, expected, length);
}

static void test_system_call(void **state) {
        Sample s = SAMPLE("raw_syscalls.sys_enter", RECORD_SYS_ENTER);
        const PlanField *args = plan_find(s.plan, "args");
        uint32_t count;
        uint64_t value;

        assert_int_equal(plan_check(s.plan, s.raw, s.raw_size), 0);
        assert_int_equal(number(&s, "id", 0), 110);
        assert_int_equal(field_count(args, s.raw, s.raw_size, &count), 0);
        assert_int_equal(count, 6);
        assert_true(number(&s, "args", 0) == 0x7fb5343cca10);
        assert_int_equal(number(&s, "args", 2), 1);
        assert_true(number(&s, "args", 3) == 0x7fff135fb8c6);
        assert_int_equal(field_number(args, s.raw, s.raw_size, 6, &value), FIELD_E_OUTSIDE);
        plan_unref(s.plan);
}

static void test_switch(void **state) {
        Sample s = SAMPLE("sched.sched_switch", RECORD_SWITCH);

        assert_int_equal(plan_check(s.plan, s.raw, s.raw_size), 0);
        check_text(&s, "prev_comm", "true");
        assert_int_equal(number(&s, "prev_pid", 0), 0x5be6);
        assert_int_equal(number(&s, "prev_prio", 0), 120);
        assert_int_equal(number(&s, "prev_state", 0), 0x20);
        check_text(&s, "next_comm", "cap");
        assert_int_equal(number(&s, "next_pid", 0), 0x5bd6);
        plan_unref(s.plan);
}

static void test_exec(void **state) {
        Sample s = SAMPLE("sched.sched_process_exec", RECORD_EXEC);

        assert_int_equal(plan_check(s.plan, s.raw, s.raw_size), 0);
        check_text(&s, "filename", "/bin/true");
        assert_int_equal(number(&s, "pid", 0), 0x5bde);
        /* the string lies at 20 and has ten bytes with its zero */
        for (size_t n = 0; n <= s.raw_size; n++)
                assert_int_equal(plan_check(s.plan, s.raw, n), n < 30 ? FIELD_E_OUTSIDE : 0);
        plan_unref(s.plan);
}

static void test_widths_and_signs(void **state) {
        static const uint8_t raw[] = { 0xff,                                             /* 1 byte */
                                       0xfe, 0xff,                                       /* 2 */
                                       0xfd, 0xff, 0xff, 0xff,                           /* 4 */
                                       0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }; /* 8 */
        static const struct {
                uint32_t offset, size;
                uint64_t as_unsigned, as_signed;
        } numbers[] = {
                { 0, 1, 0xff, UINT64_MAX },
                { 1, 2, 0xfffe, UINT64_MAX - 1 },
                { 3, 4, 0xfffffffd, UINT64_MAX - 2 },
                { 7, 8, UINT64_MAX - 3, UINT64_MAX - 3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                uint32_t offset = numbers[i].offset, size = numbers[i].size;
                PlanField f = { .kind = FIELD_UNSIGNED, .offset = offset, .element_size = size, .count = 1 };
                uint64_t value;

                assert_int_equal(field_number(&f, raw, sizeof(raw), 0, &value), 0);
                assert_true(value == numbers[i].as_unsigned);
                f.kind = FIELD_SIGNED;
                assert_int_equal(field_number(&f, raw, sizeof(raw), 0, &value), 0);
                assert_true(value == numbers[i].as_signed);
                assert_int_equal(field_number(&f, raw, offset + size - 1, 0, &value), FIELD_E_OUTSIDE);
        }
}

static void test_dynamic_places(void **state) {
        /* | length 4, offset 4 from the end of this | "ab" | length 6, offset 10 | u16 1, 2, 3 | */
        static const uint8_t raw[] = { 2, 0, 4, 0, 10, 0, 6, 0, 'a', 'b', 1, 0, 2, 0, 3, 0 };
        PlanField text = { .kind = FIELD_TEXT, .place = PLACE_REL_LOC, .offset = 0, .element_size = 1 };
        PlanField list = { .kind = FIELD_UNSIGNED, .place = PLACE_DATA_LOC, .offset = 4, .element_size = 2 };
        Plan plan = { .fields = (PlanField[]){ text, list }, .n_fields = 2, .min_size = 8 };
        const uint8_t *bytes;
        uint64_t value;
        uint32_t count;
        size_t length;

        /* the text's place says offset 2 behind itself: byte 6, four bytes, of which "\6\0" end at the zero */
        assert_int_equal(field_text(&text, raw, sizeof(raw), &bytes, &length), 0);
        assert_ptr_equal(bytes, raw + 6);
        assert_int_equal(length, 1);
        text.kind = FIELD_BYTES;
        assert_int_equal(field_text(&text, raw, sizeof(raw), &bytes, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(field_count(&list, raw, sizeof(raw), &count), 0);
        assert_int_equal(count, 3);
        assert_int_equal(field_number(&list, raw, sizeof(raw), 2, &value), 0);
        assert_int_equal(value, 3);
        assert_int_equal(field_number(&list, raw, sizeof(raw), 3, &value), FIELD_E_OUTSIDE);
        assert_int_equal(plan_check(&plan, raw, sizeof(raw)), 0);
        assert_int_equal(plan_check(&plan, raw, sizeof(raw) - 1), FIELD_E_OUTSIDE);
        list.element_size = 4; /* six bytes are no array of u32 */
        assert_int_equal(field_count(&list, raw, sizeof(raw), &count), FIELD_E_OUTSIDE);
}

static void test_lying_places(void **state) {
        static const uint32_t places[] = { 0xffffffff, 0x0001ffff, 0x00010008, 0x00090000, 0xffff0000, 0x00000009 };
        PlanField f = { .kind = FIELD_TEXT, .place = PLACE_DATA_LOC, .offset = 0, .element_size = 1 };
        uint8_t raw[8] = { 0 };
        const uint8_t *text;
        size_t length;

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                memcpy(raw, &places[i], sizeof(places[i]));
                f.place = PLACE_DATA_LOC;
                assert_int_equal(field_text(&f, raw, sizeof(raw), &text, &length), FIELD_E_OUTSIDE);
                f.place = PLACE_REL_LOC;
                assert_int_equal(field_text(&f, raw, sizeof(raw), &text, &length), FIELD_E_OUTSIDE);
        }
        memcpy(raw, &(uint32_t){ 0x00000008 }, sizeof(uint32_t)); /* nothing, at the very end */
        f.place = PLACE_DATA_LOC;
        assert_int_equal(field_text(&f, raw, sizeof(raw), &text, &length), 0);
        assert_int_equal(length, 0);
        assert_int_equal(field_text(&f, raw, 3, &text, &length), FIELD_E_OUTSIDE);
        assert_int_equal(field_text(&f, NULL, 0, &text, &length), FIELD_E_OUTSIDE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_system_call),
                cmocka_unit_test(test_switch),
                cmocka_unit_test(test_exec),
                cmocka_unit_test(test_widths_and_signs),
                cmocka_unit_test(test_dynamic_places),
                cmocka_unit_test(test_lying_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
