/* Records that are longer than what the kernel wrote into them, because other events have them too: record_body_end(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/record.h"
#include "tests/unit/side-records.h"

/* From memory that is exactly as long, so that a sanitizer sees a read outside. */
static int decode(const void *bytes, size_t length, Record *ret, uint8_t **ret_memory) {
        SampleLayout l;

        assert_int_equal(sample_layout_init_type(&l, SAMPLE_TYPE_BASE), 0);
        *ret_memory = malloc(length);
        assert_non_null(*ret_memory);
        memcpy(*ret_memory, bytes, length);
        return record_decode(&l, *ret_memory, length, ret);
}

/* By one trailer for each event that had the record before. */
static void check_surplus(const void *record, size_t length) {
        static const uint64_t before[] = { HEADER(PERF_RECORD_SAMPLE, 2, 11), 0x22, 0x1234 }; /* what was in the ring */

        for (unsigned n = 0; n <= 3; n++) {
                uint8_t bytes[256];
                uint16_t size = (uint16_t)(length + n * sizeof(before));
                _cleanup_free_ uint8_t *memory = NULL;
                Record r;

                memcpy(bytes, record, length);
                memcpy(bytes + offsetof(struct perf_event_header, size), &size, sizeof(size));
                for (unsigned i = 0; i < n; i++)
                        memcpy(bytes + length + i * sizeof(before), before, sizeof(before));
                assert_int_equal(record_body_end(bytes, size), length - 24);
                assert_int_equal(decode(bytes, size, &r, &memory), 0);
                assert_true(r.pid == 7 && r.tid == 8 && r.time == 99 && r.stream_id == 0x21);
        }
}

static void test_surplus(void **state) {
        static const uint64_t endless[] = { HEADER(PERF_RECORD_KSYMBOL, 0, 7), 1, 2, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
        static const uint64_t longer[] = { HEADER(PERF_RECORD_TEXT_POKE, 0, 7), 1, 0xffffffff, 0, TRAILER };
        uint8_t *memory = NULL;
        Record r;

        check_surplus(RECORD_KSYMBOL, sizeof(RECORD_KSYMBOL));
        check_surplus(RECORD_BPF_EVENT, sizeof(RECORD_BPF_EVENT));
        check_surplus(RECORD_TEXT_POKE, sizeof(RECORD_TEXT_POKE));
        assert_int_equal(record_body_end((const uint8_t *)RECORD_CGROUP, sizeof(RECORD_CGROUP)), 0);
        assert_int_equal(record_body_end((const uint8_t *)endless, sizeof(endless)), sizeof(endless));
        assert_int_equal(decode(endless, sizeof(endless), &r, &memory), DECODE_E_TRUNCATED);
        free(memory);
        assert_int_equal(decode(longer, sizeof(longer), &r, &memory), DECODE_E_TRUNCATED);
        free(memory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_surplus),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
