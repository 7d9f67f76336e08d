/* Print formats: what each construct shows of a field, and what is shown without them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/print-rig.h"

#define MAJOR_MINOR "((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) & ((1U << 20) - 1)))"

typedef struct Case {
        const char *print, *field, *shown;
} Case;

static bool find_symbol(void *userdata, uint64_t address, perfd_symbol *ret) {
        (void)userdata;
        if (address < 0x1000 || address >= 0x1100)
                return false;
        *ret = (perfd_symbol){ .name = "do_it", .module = address < 0x1080 ? "" : "mod", .address = 0x1000, .size = 0x100 };
        return true;
}

static void fill(Rig *rig) {
        static const uint8_t address[28] = { 10, 0, 0, 80, 0, 0, 0, 0, 0x20, 1, 0xd, 0xb8, [23] = 1 };

        rig->numbers[0] = 8u << 20 | 1;
        rig->numbers[1] = (uint64_t)-5;
        rig->numbers[2] = 0x105;
        rig->numbers[3] = 0x1010;
        for (size_t i = 0; i < 16; i++)
                rig->numbers[4 + i] = 0x10 + i;
        for (size_t i = 0; i < 28; i++)
                rig->numbers[20 + i] = address[i];
        for (size_t i = 0; i < 3; i++)
                rig->numbers[48 + i] = i + 1;
        rig->texts[0] = (perfd_text){ .bytes = "hello", .length = 5 };
        rig->texts[1] = (perfd_text){ .bytes = "\1\2\3\xff", .length = 4 };
}

static size_t field_index(const char *name) {
        size_t i = 0;

        while (strcmp(rig_fields[i].name, name) != 0)
                i++;
        return i;
}

static void check_cases(const Case *cases, size_t n) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = find_symbol };

        for (size_t i = 0; i < n; i++) {
                char text[128];
                Rig rig;
                size_t length;

                fill(&rig);
                assert_true(rig_init(&rig, cases[i].print));
                length = perfd_item_render(&rig.item, field_index(cases[i].field), &symbols, text, sizeof(text));
                if (strcmp(text, cases[i].shown) != 0)
                        fail_msg("%s of %s: %s instead of %s", cases[i].field, cases[i].print, text, cases[i].shown);
                assert_int_equal(length, strlen(text));
                assert_int_equal(perfd_item_render(&rig.item, field_index(cases[i].field), &symbols, text, 2), length);
                assert_true(strlen(text) <= 1);
                rig_deinit(&rig);
        }
}

#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

static void test_numbers(void **state) {
        static const Case cases[] = {
                { "\"dev %d,%d n %d\", " MAJOR_MINOR ", REC->n", "dev", "8,1" },
                { "\"at %d, %d\", " MAJOR_MINOR, "dev", "8388609" },      /* parts that do not stand together */
                { "\"start=%d\", REC->dev << 9", "dev", "8388609" },        /* calculated, and called otherwise */
                { "\"dev=%u\", REC->dev >> 20", "dev", "8" },
                { "\"n=%08d\", REC->n", "n", "-0000005" },
                { "\"n=%u\", REC->n", "n", "4294967291" },
                { "\"n=%hhx\", REC->n", "n", "0xfb" },
                { "\"n=0x%04hx\", REC->n", "n", "0xfffb" },
                { "\"n %#llx\", (u64)REC->n", "n", "0xfffffffffffffffb" },
                { "\"n %lu\", (unsigned long)(unsigned int)REC->n", "n", "4294967291" },
                { "\"n %ld\", (long)(u16)REC->n", "n", "65531" },
                { "\"n=%d\", REC->n / 2", "n", "-2" },
                { "\"n=%d\", REC->n % 3 * sizeof(u64)", "n", "-16" },
                { "\"n=%d\", REC->n >> 1", "n", "-3" },
                { "\"n=%d\", REC->n < 0u", "n", "0" },
                { "\"n=%d\", -REC->n == 5 && !(REC->n > 0) || 0", "n", "1" },
                { "\"n=%d\", ~REC->n ^ 1 | 0x10", "n", "21" },
                { "\"mode=0%o\", REC->flags", "flags", "0405" },
                { "\"flags=%5llu|%%\", REC->flags", "flags", "261" },
                { "\"flags=%c\", (int)(REC->flags & 0xff) + 'A' - 5", "flags", "A" },
                { "\"bytes=%d\", REC->bytes[1] + 1", "bytes", "18" },
                { "\"fn=%p\", REC->fn", "fn", "0x1010" },
        };

        (void)state;
        CHECK(cases);
}

static void test_names(void **state) {
        static const Case cases[] = {
                { "\"%s\", __print_flags(REC->flags, \"|\", { 1, \"A\" }, { 1UL << 2, \"B\" })", "flags", "A|B|0x100" },
                { "\"%s\", __print_flags(REC->flags, \"\", { 4, \"B\" }, { 0x101, \"C\" })", "flags", "BC" },
                { "\"0x%llx %s\", REC->flags, __print_flags(REC->flags & 4, \"|\", { 4, \"B\" })", "flags", "B" },
                { "\"%s\", __print_flags(REC->flags, \"|\", { WHAT, \"A\" }, { 4, \"B\" })", "flags", "261" }, /* its enum is not told */
                { "\"%s\", __print_symbolic(REC->n, { -5, \"five\" \" less\" }, { 0, ((void *)0) })", "n", "five less" },
                { "\"%s\", __print_symbolic(REC->n, { 5, \"x\" })", "n", "0xfffffffffffffffb" },
                { "\"%s\", __print_symbolic(REC->n, { WHAT, \"x\" }, { -5, \"y\" })", "n", "y" },
                { "\"%s%s\", REC->flags & 3 ? __print_flags(REC->flags & 3, \"|\", { 1, \"D\" }) : \"R\", REC->flags & 0x100 ? \"+\" : \"\"",
                  "flags", "D+" },
                { "\"%s\", REC->n ? \"yes\" : \"no\"", "n", "yes" },
                { "\"%s\", REC->n & 1 ? \"yes\" : \"no\"", "n", "-5" }, /* only a bit of it */
                { "\"%s\", __print_hex(REC->bytes, 3)", "bytes", "10 11 12" },
                { "\"%s\", __print_hex_str(REC->bytes, REC->n + 7)", "bytes", "1011" },
                { "\"%s\", __print_hex(REC->bytes, 17)", "bytes", "{16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31}" },
                { "\"%s\", __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 4, 4)", "list", "{0x1,0x2,0x3}" },
                { "\"%s\", __print_dynamic_array(__get_dynamic_array(list), 4)", "list", "{0x1,0x2,0x3}" },
                { "\"%s\", __get_cpumask(list)", "list", "00000003,00000002,00000001" },
                { "\"%s\", __print_ns_to_secs(REC->flags)", "flags", "0.000000261" },
                { "\"%.*s\", 3, __get_str(name)", "name", "hel" },
                { "\"%s\", REC->n ? __get_str(name) : ((void *)0)", "name", "hello" },
                { "\"%.4s\", __get_str(name)", "name", "hell" },
        };

        (void)state;
        CHECK(cases);
}

static void test_pointers(void **state) {
        static const Case cases[] = {
                { "\"%pS\", (void *)REC->fn", "fn", "do_it+0x10/0x100" },
                { "\"%ps\", REC->fn", "fn", "do_it" },
                { "\"%ps\", (void *)REC->flags", "flags", "0x105" },
                { "\"%pI4\", REC->bytes", "bytes", "16.17.18.19" },
                { "\"%pI6\", REC->bytes", "bytes", "1011:1213:1415:1617:1819:1a1b:1c1d:1e1f" },
                { "\"%pISpc\", REC->addr", "addr", "[2001:db8::1]:80" },
                { "\"%pISc\", (struct sockaddr *)&REC->addr", "addr", "2001:db8::1" },
                { "\"%pM\", REC->bytes", "bytes", "10:11:12:13:14:15" },
                { "\"%pm\", REC->bytes", "bytes", "101112131415" },
                { "\"%pU\", REC->bytes", "bytes", "10111213-1415-1617-1819-1a1b1c1d1e1f" },
                { "\"%pUl\", REC->bytes", "bytes", "13121110-1514-1716-1819-1a1b1c1d1e1f" },
                { "\"%*pbl\", 35, __get_dynamic_array(list)", "list", "0,33" },
                { "\"%*pb\", 35, __get_dynamic_array(list)", "list", "2,00000001" },
                { "\"%*phC\", 4, REC->bytes", "bytes", "10:11:12:13" },
                { "\"%pI4\", REC->fn", "fn", "0x1010" }, /* what it points to is elsewhere */
        };

        (void)state;
        CHECK(cases);
}

/* A compressed IPv6 address is that of ip6_compressed_string(). */
static void test_addresses(void **state) {
        static const struct {
                uint8_t bytes[16];
                const char *shown;
        } cases[] = {
                { { [15] = 1 }, "::1" },
                { { 0 }, "::" },
                { { [0] = 0x20, [1] = 1 }, "2001::" },
                { { [1] = 1, [5] = 1, [9] = 1, [13] = 1 }, "1:0:1:0:1:0:1:0" },
                { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 }, "::ffff:127.0.0.1" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char text[64];
                Rig rig;

                fill(&rig);
                for (size_t k = 0; k < 16; k++)
                        rig.numbers[4 + k] = cases[i].bytes[k];
                assert_true(rig_init(&rig, "\"%pI6c\", REC->bytes"));
                (void)perfd_item_render(&rig.item, 4, NULL, text, sizeof(text));
                assert_string_equal(text, cases[i].shown);
                rig_deinit(&rig);
        }
}

/* What cannot be right, or not be known, is shown as without a format. */
static void test_fallback(void **state) {
        static const Case cases[] = {
                { "", "dev", "8388609" },
                { "no string", "dev", "8388609" },
                { "\"dev=%d\"", "dev", "8388609" },
                { "\"dev=%d\", REC->absent", "dev", "8388609" },
                { "\"dev=%d\", REC->dev / 0", "dev", "8388609" },
                { "\"dev=%d\", REC->dev << 77", "dev", "8388609" },
                { "\"dev=%d\", jiffies_to_msecs(REC->dev)", "dev", "8388609" },
                { "\"dev=%d\", ({ int x = REC->dev; x; })", "dev", "8388609" },
                { "\"dev=%99999999d\", REC->dev", "dev", "8388609" },
                { "\"dev=%*d\", 999999, REC->dev", "dev", "8388609" },
                { "\"dev=%", "dev", "8388609" },
                { "\"dev=%s\", (char *)REC->dev", "dev", "8388609" },
                { "\"bytes=%d\", REC->bytes[16]", "bytes", "{16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31}" },
                { "\"bytes=%d %s\", REC->bytes, __print_flags(REC->absent, \"\", { 1, \"A\" })", "bytes",
                  "{16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31}" },
                { "\"raw=%d\", REC->raw", "raw", "010203ff" },
                { "\"name=%s\", REC->absent", "name", "hello" },
        };

        (void)state;
        CHECK(cases);
}

/* Brackets and operators without end cost a bounded tree. */
static void test_bounds(void **state) {
        static const char *const parts[] = { "(", "-", "REC->dev + ", "REC->dev ? REC->dev : ", "__print_flags(" };

        (void)state;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                char *print = malloc(70000), text[32];
                Rig rig;

                assert_non_null(print);
                strcpy(print, "\"dev=%d\", ");
                for (size_t n = strlen(print); n < 60000; n += strlen(parts[i]))
                        strcpy(print + n, parts[i]);
                strcat(print, "REC->dev");
                fill(&rig);
                assert_true(rig_init(&rig, print));
                (void)perfd_item_render(&rig.item, 0, NULL, text, sizeof(text));
                assert_string_equal(text, "8388609");
                rig_deinit(&rig);
                free(print);
        }
}

/* What was shown of a number is kept: each number has its own, whatever came between, and with another field in it none is kept. */
static void test_again(void **state) {
        static const char *const prints[] = {
                "\"flags=%s\", __print_flags(REC->flags & ((1 | 2) << 1 << 1 | (8 >> 1) - 1), \"|\", { 1, \"A\" }, { 2, \"B\" }, { 4, \"C\" })",
                "\"flags=%s\", REC->n > 0 ? __print_flags(REC->flags & 7, \"|\", { 1, \"A\" }, { 2, \"B\" }, { 4, \"C\" }) : \"none\"",
        };

        for (size_t which = 0; which < 2; which++) {
                Rig rig;

                fill(&rig);
                assert_true(rig_init(&rig, prints[which]));
                for (uint64_t round = 0; round < 200; round++) {
                        const uint64_t number = round * 7 % 40, shown = number & (which == 0 ? 0xf : 7);
                        const char *separator = "";
                        char text[32], expected[32] = "";

                        rig.numbers[1] = round % 3;
                        rig.numbers[2] = number;
                        for (int bit = 0; bit < 3; bit++)
                                if (shown & 1u << bit) {
                                        (void)snprintf(expected + strlen(expected), 4, "%s%c", separator, 'A' + bit);
                                        separator = "|";
                                }
                        if (shown & 8)
                                (void)snprintf(expected + strlen(expected), 8, "%s0x8", separator);
                        if (which == 1 && round % 3 == 0)
                                strcpy(expected, "none");
                        if (!*expected) /* nothing is shown as a number */
                                (void)snprintf(expected, sizeof(expected), number == 1 ? "ONE" : "%u", (unsigned)number);
                        (void)perfd_item_render(&rig.item, 2, NULL, text, sizeof(text));
                        assert_string_equal(text, expected);
                }
                rig_deinit(&rig);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers), cmocka_unit_test(test_names), cmocka_unit_test(test_pointers),
                cmocka_unit_test(test_addresses), cmocka_unit_test(test_fallback), cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
