/* Tables of symbols: what overlaps, what has several names, names of C++ and Rust, and lists of JIT compilers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/symbols/demangle.h"
#include "client/symbols/perf-map.h"
#include "client/symbols/run-sort.h"

static const char *at(SymbolTable *t, uint64_t address, uint64_t *offset) {
        Symbol *s = symbol_table_find(t, address);

        if (!s)
                return "";
        *offset = address - s->start + s->into;
        return symbol_table_name(t, s).bytes;
}

static void assert_at(SymbolTable *t, uint64_t address, const char *name, uint64_t offset) {
        uint64_t is = 0;

        assert_string_equal(at(t, address, &is), name);
        assert_int_equal(is, offset);
}

static void add(SymbolTable *t, uint64_t start, uint64_t length, const char *name, unsigned rank) {
        assert_int_equal(symbol_table_add(t, start, length, name, strlen(name), rank), 0);
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */

static void test_nested(void **state) {
        SymbolTable t;

        symbol_table_init(&t, 1 << 20, true);
        add(&t, 100, 100, "outer", SYMBOL_STRONG);
        add(&t, 120, 20, "inner", SYMBOL_STRONG);
        add(&t, 130, 100, "crosses", SYMBOL_STRONG);
        add(&t, 300, 0, "label", SYMBOL_STRONG);
        add(&t, 500, 100, "around", 0);
        add(&t, 520, 20, "within", 0);
        add(&t, 320, 16, "after", SYMBOL_STRONG);
        assert_int_equal(symbol_table_finish(&t, false), 0);
        assert_at(&t, 99, "", 0);
        assert_at(&t, 100, "outer", 0);
        assert_at(&t, 120, "inner", 0);
        assert_at(&t, 129, "inner", 9);
        assert_at(&t, 130, "crosses", 0);
        assert_at(&t, 229, "crosses", 99);
        assert_at(&t, 230, "", 0);
        assert_at(&t, 319, "label", 19);
        assert_at(&t, 335, "after", 15);
        assert_at(&t, 336, "", 0);
        assert_at(&t, 539, "within", 19);
        assert_at(&t, 540, "around", 40);
        assert_at(&t, 599, "around", 99);
        symbol_table_deinit(&t);
}

static void test_aliases(void **state) {
        static const struct {
                const char *loser, *winner;
                unsigned loser_rank, winner_rank;
                uint64_t loser_length;
        } cases[] = {
                { "weak_and_long", "strong", SYMBOL_GLOBAL, SYMBOL_STRONG, 8 },
                { "local_and_long", "global", SYMBOL_STRONG, SYMBOL_STRONG | SYMBOL_GLOBAL, 8 },
                { "__one_and_long", "_one", SYMBOL_STRONG, SYMBOL_STRONG, 8 },
                { "short", "longer", SYMBOL_STRONG, SYMBOL_STRONG, 8 },
                { "global_without_a_length", "local", SYMBOL_STRONG | SYMBOL_GLOBAL, 0, 0 },
                { "one", "two", SYMBOL_STRONG | 1, SYMBOL_STRONG | 2, 8 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                for (int turn = 0; turn < 2; turn++) {
                        SymbolTable t;

                        symbol_table_init(&t, 1 << 20, true);
                        if (turn == 0)
                                add(&t, 64, cases[i].loser_length, cases[i].loser, cases[i].loser_rank);
                        add(&t, 64, 8, cases[i].winner, cases[i].winner_rank);
                        if (turn == 1)
                                add(&t, 64, cases[i].loser_length, cases[i].loser, cases[i].loser_rank);
                        assert_int_equal(symbol_table_finish(&t, false), 0);
                        assert_at(&t, 71, cases[i].winner, 7);
                        symbol_table_deinit(&t);
                }
}

/* What is found is what a look at each of them finds. */
static void test_random(void **state) {
        enum { N = 300, ADDRESSES = 2000 };
        uint64_t starts[N], lengths[N];
        uint32_t random = 1;
        SymbolTable t;

        symbol_table_init(&t, 1 << 20, true);
        for (int i = 0; i < N; i++) {
                char name[16];

                random = random * 1664525 + 1013904223;
                starts[i] = random >> 16 & 1023;
                random = random * 1664525 + 1013904223;
                lengths[i] = 1 + (random >> 16) % 200;
                snprintf(name, sizeof(name), "%d", i);
                add(&t, starts[i], lengths[i], name, (unsigned)i);
        }
        assert_int_equal(symbol_table_finish(&t, true), 0);
        for (uint64_t a = 0; a < ADDRESSES; a++) {
                char name[16] = "";
                uint64_t offset = 0;

                for (int i = 0; i < N; i++)
                        if (a >= starts[i] && a - starts[i] < lengths[i]) {
                                snprintf(name, sizeof(name), "%d", i);
                                offset = a - starts[i];
                        }
                assert_at(&t, a, name, offset);
        }
        symbol_table_deinit(&t);
}

static void test_table_limit(void **state) {
        SymbolTable t;

        symbol_table_init(&t, 200000, true);
        for (uint64_t i = 0; i < 100000 && !t.is_full; i++)
                add(&t, i * 16, 16, "name", 0);
        assert_true(t.is_full && t.bytes <= 200000 + 65536 + 64);
        symbol_table_deinit(&t);
}

static void assert_demangled(const char *name, const char *plain) {
        char *is = demangle(name, true);

        if (plain)
                assert_string_equal(is, plain);
        else
                assert_null(is);
        free(is);
}

static void test_demangle(void **state) {
        char *bomb = malloc(8192), *is;
        size_t n = 0;

        assert_demangled("_ZN3foo3barEi", "foo::bar(int)");
        assert_demangled("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]");
        assert_demangled("_Znwm@plt", "operator new(unsigned long)@plt");
        assert_demangled("_ZSt4cout@@GLIBCXX_3.4", "std::cout@@GLIBCXX_3.4");
        assert_demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
        assert_demangled("_RNvC6_123foo3bar", "123foo::bar");
        assert_demangled("main", NULL);
        is = demangle("_ZN3foo3barEi", false);
        assert_string_equal(is, "foo::bar");
        free(is);
        assert_demangled("_Zzz", NULL);
        /* f(pair<A,A>, pair<that,that>, ...): a few bytes more double the text */
        n += (size_t)sprintf(bomb, "_Z1f1pI1aS0_E");
        for (int i = 0; i < 30; i++)
                n += (size_t)sprintf(bomb + n, "1pIS%c_S%c_E", i + 1 < 10 ? '0' + i + 1 : 'A' + i - 9, i + 1 < 10 ? '0' + i + 1 : 'A' + i - 9);
        is = demangle(bomb, true);
        assert_true(!is || strlen(is) < 32768);
        free(is);
        free(bomb);
}

/* ---- lists of JIT compilers -------------------------------------------------------------------------------------------------- */

static void test_perf_map(void **state) {
        char text[] = "1000 100 old\nno line\n1000 0 empty\n0x2000 0x10 with a space\n1080 10 new\n-1 10 negative\n3000 10 \n3000 10 last";
        SymbolTable t;

        symbol_table_init(&t, 1 << 20, true);
        assert_int_equal(symbol_table_parse_perf_map(&t, text), 0);
        assert_at(&t, 0x107f, "old", 0x7f);
        assert_at(&t, 0x1080, "new", 0);
        assert_at(&t, 0x1090, "old", 0x90);
        assert_at(&t, 0x2001, "with a space", 1);
        assert_at(&t, 0x300f, "last", 15);
        assert_int_equal(t.n, 5);
        symbol_table_deinit(&t);
}

/* A function that a later line has in the place of a larger one, and the other way round. */
static void test_perf_map_replaced(void **state) {
        char text[] = "1010 8 small\n1000 100 large\n";
        SymbolTable t;

        symbol_table_init(&t, 1 << 20, true);
        assert_int_equal(symbol_table_parse_perf_map(&t, text), 0);
        assert_at(&t, 0x1010, "large", 0x10);
        symbol_table_deinit(&t);
}

typedef struct Sorted {
        uint32_t key, place;
        char rest; /* the size is no power of two */
} Sorted;

static int compare_keys(const void *a, const void *b) {
        const Sorted *one = a, *other = b;

        return (one->key > other->key) - (one->key < other->key);
}

/* Against the simplest sort that keeps what is equal in its order: each goes behind all that are not above it. */
static void assert_sorts(const uint32_t *keys, size_t n) {
        Sorted list[64], expected[64];

        assert_true(n <= 64);
        for (size_t i = 0; i < n; i++) {
                size_t to = i;

                list[i] = (Sorted){ .key = keys[i], .place = (uint32_t)i, .rest = (char)i };
                for (; to > 0 && expected[to - 1].key > keys[i]; to--)
                        expected[to] = expected[to - 1];
                expected[to] = list[i];
        }
        assert_int_equal(run_sort(list, n, sizeof(*list), compare_keys), 0);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(list[i].key, expected[i].key);
                assert_int_equal(list[i].place, expected[i].place);
                assert_int_equal(list[i].rest, expected[i].rest);
        }
}

static void test_sorts_and_keeps_what_is_equal(void **state) {
        uint32_t keys[64];

        srand(5);
        assert_sorts(NULL, 0);
        for (size_t n = 1; n <= 64; n++)
                for (unsigned kind = 0; kind < 20; kind++) {
                        for (size_t i = 0; i < n; i++) /* ascending, descending, all the same; runs and single ones of few keys and of many */
                                keys[i] = kind == 0 ? (uint32_t)i : kind == 1 ? (uint32_t)(n - i) : kind == 2 ? 7 :
                                          kind < 8 ? (uint32_t)(i * 7 % (3 * kind)) : (uint32_t)rand() % (kind * kind);
                        assert_sorts(keys, n);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nested),
                cmocka_unit_test(test_aliases),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_table_limit),
                cmocka_unit_test(test_demangle),
                cmocka_unit_test(test_perf_map),
                cmocka_unit_test(test_perf_map_replaced),
                cmocka_unit_test(test_sorts_and_keeps_what_is_equal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
