/* Copies of all lengths and between all places within a line: what was to be copied is there, and nothing beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "daemon/base/copy.h"

#define LINE 64
#define MOST (COPY_LONG + 6 * LINE)
#define BEHIND 0xa5 /* what lies before and behind */

typedef struct Places {
        uint8_t from[MOST + LINE], to[MOST + 4 * LINE], expected[MOST + 4 * LINE];
} Places;

static Places *places_new(void) {
        Places *p = aligned_alloc(LINE, (sizeof(*p) + LINE - 1) / LINE * LINE);

        assert_non_null(p);
        for (size_t i = 0; i < sizeof(p->from); i++)
                p->from[i] = (uint8_t)(i * 167 + i / 256 * 13);
        return p;
}

static void check(Places *p, CopyWay *way, size_t to, size_t from, size_t n) {
        memset(p->to, BEHIND, sizeof(p->to));
        memset(p->expected, BEHIND, sizeof(p->expected));
        memcpy(p->expected + to, p->from + from, n);
        way(p->to + to, p->from + from, n);
        assert_memory_equal(p->to, p->expected, sizeof(p->to));
}

static void test_lengths(void **state) {
        Places *p = places_new();

        for (size_t n = 0; n <= MOST; n++) {
                check(p, copy_short, LINE + n % LINE, n % 61, n);
                check(p, copy_long, LINE + n % LINE, n % 61, n);
        }
        free(p);
}

/* Also those that copy_long() does not go here. */
static void test_ways(void **state) {
        Places *p = places_new();
        CopyWay *way;

        for (unsigned i = 0; (way = copy_way(i)); i++)
                for (size_t n = COPY_LONG; n <= MOST; n++)
                        for (size_t to = LINE; to < 2 * LINE; to++)
                                check(p, way, to, (to * 5 + n) % LINE, n);
        assert_null(copy_way(100));
        free(p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_ways),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
