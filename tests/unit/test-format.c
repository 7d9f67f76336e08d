/* Formats as the kernel writes them (tests/unit/formats, Linux 6.18) and as it could: the Plans that come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/kernel/tracefs/format-number.h"
#include "daemon/kernel/tracefs/printk-strings.h"
#include "tests/unit/format-file.h"

#define COMMON                                                                                                         \
        "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                \
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static Plan *parse_file(const char *name) {
        Plan *p = format_file_plan(name);

        assert_memory_equal(p->group, name, strlen(p->group));
        assert_string_equal(p->name, name + strlen(p->group) + 1);
        return p;
}

static Plan *parse_text(const char *fields) {
        _cleanup_free_ char *text = NULL;
        Explanation e = EXPLANATION_NULL;
        Plan *p = NULL;
        int length = asprintf(&text, "name: made\nID: 7\n" COMMON "%s", fields);

        assert_int_equal(format_parse("test", text, (size_t)length, &p, &e), 0);
        assert_int_equal(p->common_pid, 4);
        return p;
}

static const PlanField *check(const Plan *p, const char *name, const char *type, FieldKind kind, FieldPlace place,
                              uint32_t offset, uint32_t element_size, uint32_t count) {
        const PlanField *f = plan_find(p, name);

        assert_non_null(f);
        assert_string_equal(f->type, type);
        assert_int_equal(f->kind, kind);
        assert_int_equal(f->place, place);
        assert_int_equal(f->offset, offset);
        assert_int_equal(f->element_size, element_size);
        assert_int_equal(f->count, count);
        return f;
}

static void check_value(const PlanField *f, size_t i, uint64_t value, const char *name) {
        assert_true(i < f->n_values);
        assert_true(f->values[i].value == value);
        assert_string_equal(f->values[i].name, name);
}

/* The kernel's strings, by their addresses: of pointers to one, and of nothing else. */
static void test_printk_strings(void **state) {
        static const char strings[] = "0xffffffff81000010 : \"rcu_preempt\"\n0xffffffff81000010 : \"rcu_preempt\"\n"
                                      "\n0xffffffff81000020\n0x30 : \"\nzz : \"none\"\n"
                                      "0xffffffff81000040 : \"a\\\"b\\tc\\\\\"\n0x50 : \"cut";
        _cleanup_(plan_unrefp) Plan *p = parse_text("\tfield:const char * s;\toffset:8;\tsize:8;\tsigned:0;\n"
                                                    "\tfield:void * other;\toffset:16;\tsize:8;\tsigned:0;\n"
                                                    "\nprint fmt: \"%s %p\", REC->s, REC->other\n");
        _cleanup_(plan_unrefp) Plan *none = parse_text("\tfield:const char ** s;\toffset:8;\tsize:8;\tsigned:0;\n"
                                                       "\nprint fmt: \"%p\", REC->s\n");
        _cleanup_(plan_unrefp) Plan *numbers = parse_text("\tfield:const char * s;\toffset:8;\tsize:8;\tsigned:0;\n"
                                                          "\nprint fmt: \"%s %p\", REC->so, REC->some\n");
        _cleanup_(plan_unrefp) Plan *call = parse_file("syscalls.sys_enter_openat"); /* filename is one of user space */
        const PlanField *f = plan_find(p, "s");

        assert_true(printk_strings_are_wanted(p));
        assert_int_equal(printk_strings_add(p, strings), 0);
        check_value(f, 0, UINT64_C(0xffffffff81000010), "rcu_preempt");
        check_value(f, 1, UINT64_C(0xffffffff81000040), "a\"b\tc\\");
        assert_int_equal(f->n_values, 2);
        assert_int_equal(plan_find(p, "other")->n_values, 0);
        assert_false(printk_strings_are_wanted(none));
        assert_false(printk_strings_are_wanted(numbers));
        assert_false(printk_strings_are_wanted(call));
}

static void test_numbers_and_arrays(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_file("raw_syscalls.sys_enter");
        const PlanField *f;

        assert_int_equal(p->type, 443);
        assert_int_equal(p->n_fields, 2);
        assert_int_equal(p->min_size, 64);
        f = check(p, "id", "long id", FIELD_SIGNED, PLACE_FIXED, 8, 8, 1);
        assert_false(f->hex);
        f = check(p, "args", "unsigned long args[6]", FIELD_UNSIGNED, PLACE_FIXED, 16, 8, 6);
        assert_true(f->hex);
}

static void test_flags_under_a_condition(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_file("sched.sched_switch");
        const PlanField *f;

        assert_int_equal(p->n_fields, 7);
        check(p, "prev_comm", "char prev_comm[16]", FIELD_TEXT, PLACE_FIXED, 8, 1, 16);
        check(p, "next_prio", "int next_prio", FIELD_SIGNED, PLACE_FIXED, 60, 4, 1);
        f = check(p, "prev_state", "long prev_state", FIELD_SIGNED, PLACE_FIXED, 32, 8, 1);
        assert_true(f->flags);
        assert_string_equal(f->delimiter, "|");
        assert_int_equal(f->n_values, 18);
        check_value(f, 0, 1, "S");
        check_value(f, 7, 0x80, "I");
        check_value(f, 8, 0, "R"); /* what the format prints instead of no flags */
        check_value(f, 9, 0x101, "S+"); /* each of them with what it prints behind them */
        check_value(f, 17, 0x100, "R+");
}

static void test_flags_as_expressions(void **state) {
        _cleanup_(plan_unrefp) Plan *ext4 = parse_file("ext4.ext4_ext_map_blocks_exit");
        _cleanup_(plan_unrefp) Plan *page = parse_file("kmem.mm_page_alloc");
        const PlanField *f = plan_find(ext4, "mflags");

        assert_true(f->flags);
        assert_string_equal(f->delimiter, "");
        assert_int_equal(f->n_values, 4);
        check_value(f, 0, 1 << 5, "N");
        check_value(f, 2, 1 << 11, "U");
        assert_int_equal(plan_find(ext4, "dev")->n_values, 0);
        f = check(page, "gfp_flags", "unsigned long gfp_flags", FIELD_UNSIGNED, PLACE_FIXED, 24, 8, 1);
        check_value(f, f->n_values - 1, 0, "none");
        assert_false(plan_find(page, "migratetype")->flags);
}

static void test_symbols(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_file("irq.softirq_entry");
        const PlanField *f = check(p, "vec", "unsigned int vec", FIELD_UNSIGNED, PLACE_FIXED, 8, 4, 1);

        assert_false(f->flags);
        assert_null(f->delimiter);
        assert_int_equal(f->n_values, 10);
        check_value(f, 0, 0, "HI");
        check_value(f, 9, 9, "RCU");
}

static void test_dynamic_places(void **state) {
        _cleanup_(plan_unrefp) Plan *exec = parse_file("sched.sched_process_exec");
        _cleanup_(plan_unrefp) Plan *ipi = parse_file("ipi.ipi_send_cpumask");
        _cleanup_(plan_unrefp) Plan *irq = parse_file("irq.irq_handler_entry");
        _cleanup_(plan_unrefp) Plan *rx = parse_file("net.netif_rx");
        const PlanField *f;

        check(exec, "filename", "__data_loc char[] filename", FIELD_TEXT, PLACE_DATA_LOC, 8, 1, 0);
        assert_int_equal(exec->min_size, 20);
        f = check(ipi, "cpumask", "__data_loc cpumask_t cpumask", FIELD_UNSIGNED, PLACE_DATA_LOC, 8, sizeof(long), 0);
        assert_true(f->hex);
        check(irq, "name", "__data_loc char[] name", FIELD_TEXT, PLACE_DATA_LOC, 12, 1, 0);
        check(rx, "skbaddr", "void * skbaddr", FIELD_POINTER, PLACE_FIXED, 8, 8, 1);
}

/* Statements, "({ int x = ...; })", between the calls that name values. */
static void test_names_beside_statements(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_file("dma.dma_map_sg");
        const PlanField *f;

        check(p, "phys_addrs", "__data_loc u64[] phys_addrs", FIELD_UNSIGNED, PLACE_DATA_LOC, 24, 8, 0);
        check(p, "lengths", "__data_loc unsigned int[] lengths", FIELD_UNSIGNED, PLACE_DATA_LOC, 32, 4, 0);
        check(p, "truncated", "bool truncated", FIELD_BOOL, PLACE_FIXED, 20, 1, 1);
        f = plan_find(p, "dir");
        assert_int_equal(f->n_values, 4);
        check_value(f, 2, 2, "FROM_DEVICE");
        f = plan_find(p, "attrs");
        assert_true(f->flags);
        assert_int_equal(f->n_values, 10);
        check_value(f, 9, 1 << 11, "CACHE_CLEAN");
}

static void test_bytes_are_not_text(void **state) {
        _cleanup_(plan_unrefp) Plan *ras = parse_file("ras.non_standard_event");
        _cleanup_(plan_unrefp) Plan *neigh = parse_file("neigh.neigh_update");
        const PlanField *f;

        f = plan_find(ras, "fru_id"); /* char[16], but printed by %pU */
        assert_int_equal(f->kind, FIELD_BYTES);
        assert_int_equal(f->count, 16);
        f = check(ras, "buf", "__data_loc u8[] buf", FIELD_UNSIGNED, PLACE_DATA_LOC, 52, 1, 0);
        assert_true(f->hex);
        f = check(neigh, "lladdr", "u8 lladdr[32]", FIELD_UNSIGNED, PLACE_FIXED, 16, 1, 32);
        assert_true(f->hex);
        f = check(neigh, "primary_key4", "__u8 primary_key4[4]", FIELD_UNSIGNED, PLACE_FIXED, 60, 1, 4);
        assert_false(f->hex); /* %pI4 */
}

static void test_system_call(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_file("syscalls.sys_enter_openat");

        check(p, "__syscall_nr", "int __syscall_nr", FIELD_SIGNED, PLACE_FIXED, 8, 4, 1);
        check(p, "dfd", "int dfd", FIELD_SIGNED, PLACE_FIXED, 16, 4, 1); /* of 8 bytes, "signed:0" */
        check(p, "flags", "int flags", FIELD_SIGNED, PLACE_FIXED, 32, 4, 1);
        check(p, "mode", "umode_t mode", FIELD_UNSIGNED, PLACE_FIXED, 40, 8, 1);
        check(p, "filename", "const char * filename", FIELD_POINTER, PLACE_FIXED, 24, 8, 1);
        assert_true(check(p, "dfd", "int dfd", FIELD_SIGNED, PLACE_FIXED, 16, 4, 1)->hex);
}

static void test_made_fields(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_text(
                "\tfield:__rel_loc char[] text;\toffset:8;\tsize:4;\tsigned:0;\n"
                "\tfield:__rel_loc s16[] list;\toffset:12;\tsize:4;\tsigned:1;\n"
                "\tfield:__data_loc struct odd[] odds;\toffset:16;\tsize:4;\tsigned:0;\n"
                "\tfield:struct in6_addr to;\toffset:20;\tsize:16;\tsigned:0;\n"
                "\tfield:u8 three;\toffset:36;\tsize:3;\tsigned:0;\n"
                "\tfield:signed char c;\toffset:39;\tsize:1;\tsigned:1;\n"
                "\tfield:s32 code;\toffset:40;\tsize:4;\tsigned:1;\n"
                "\tfield:u16 port;\toffset:44;\tsize:2;\tsigned:0;\n\n"
                "print fmt: \"%s %s %d\", __print_symbolic(REC->code, { -1, \"minus\" }, { 0xfffffffe, \"two\" }), "
                "__print_symbolic(REC->port, { -1, \"all\" }), REC->c >> 1\n");

        assert_int_equal(p->type, 7);
        assert_int_equal(p->min_size, 46);
        check(p, "text", "__rel_loc char[] text", FIELD_TEXT, PLACE_REL_LOC, 8, 1, 0);
        check(p, "list", "__rel_loc s16[] list", FIELD_SIGNED, PLACE_REL_LOC, 12, 2, 0);
        check(p, "odds", "__data_loc struct odd[] odds", FIELD_BYTES, PLACE_DATA_LOC, 16, 1, 0);
        check(p, "to", "struct in6_addr to", FIELD_BYTES, PLACE_FIXED, 20, 1, 16);
        check(p, "three", "u8 three", FIELD_BYTES, PLACE_FIXED, 36, 1, 3);
        check(p, "c", "signed char c", FIELD_SIGNED, PLACE_FIXED, 39, 1, 1);
        check_value(plan_find(p, "code"), 0, UINT64_MAX, "minus"); /* as the numbers of the field come */
        check_value(plan_find(p, "code"), 1, UINT64_MAX - 1, "two");
        check_value(plan_find(p, "port"), 0, 0xffff, "all");
}

/* As older kernels, kernels that Clang built, and ftrace's own events have them. */
static void test_declarations_of_other_kernels(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_text(
                "\tfield:const char __attribute__((btf_type_tag(\"user\"))) * path;\toffset:8;\tsize:8;\tsigned:0;\n"
                "\tfield:__u8 to[sizeof(struct in6_addr)];\toffset:16;\tsize:16;\tsigned:0;\n"
                "\tfield:u16 six[6 * 2];\toffset:32;\tsize:24;\tsigned:0;\n"
                "\tfield:unsigned char[4] four;\toffset:56;\tsize:4;\tsigned:0;\n"
                "\tfield:char comm[TASK_COMM_LEN];\toffset:60;\tsize:16;\tsigned:0;\n"
                "\tfield:char buf[];\toffset:76;\tsize:0;\tsigned:0;\n\n"
                "print fmt: \"%s\", REC->comm\n");

        assert_int_equal(p->n_fields, 5);
        assert_int_equal(p->min_size, 76);
        check(p, "path", "const char * path", FIELD_POINTER, PLACE_FIXED, 8, 8, 1);
        check(p, "to", "__u8 to[sizeof(struct in6_addr)]", FIELD_UNSIGNED, PLACE_FIXED, 16, 1, 16);
        check(p, "six", "u16 six[6 * 2]", FIELD_UNSIGNED, PLACE_FIXED, 32, 2, 12);
        check(p, "four", "unsigned char[4] four", FIELD_UNSIGNED, PLACE_FIXED, 56, 1, 4);
        check(p, "comm", "char comm[TASK_COMM_LEN]", FIELD_TEXT, PLACE_FIXED, 60, 1, 16);
}

/* A part of a field, or a constant that only the kernel knows, names nothing. */
static void test_what_names_nothing(void **state) {
        _cleanup_(plan_unrefp) Plan *p = parse_text(
                "\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u32 b;\toffset:12;\tsize:4;\tsigned:0;\n"
                "\tfield:u32 c;\toffset:16;\tsize:4;\tsigned:0;\n\tfield:u32 d;\toffset:20;\tsize:4;\tsigned:0;\n\n"
                "print fmt: \"%s %s %s %s\", __print_symbolic(REC->a >> 3, { 1, \"one\" }), "
                "__print_symbolic(REC->b, { ENUM_NAME, \"one\" }, { 2, \"two\" }), __print_flags(REC->absent, \"|\", "
                "{ 1, \"one\" }), REC->d ? __print_flags(REC->c & 0xf, \"|\", { 4, \"f\" \"our, \\\"4\\\")\" }, "
                "{ 0, NULL }) : \"none\"\n");

        assert_int_equal(plan_find(p, "a")->n_values, 0);
        assert_int_equal(plan_find(p, "b")->n_values, 1);
        check_value(plan_find(p, "b"), 0, 2, "two");
        assert_int_equal(plan_find(p, "c")->n_values, 1); /* "none" is d's */
        check_value(plan_find(p, "c"), 0, 4, "four, \"4\")");
}

static void test_constants(void **state) {
        static const struct {
                const char *text;
                bool is_number;
                uint64_t value;
        } constants[] = {
                { "0x1fUL", true, 0x1f },
                { "017", true, 15 },
                { " -1 ", true, UINT64_MAX },
                { "~(1ULL << 63)", true, INT64_MAX },
                { "( unsigned long)(( gfp_t)((((1UL))) << (5)))", true, 32 },
                { "1 + 2 * 3 << 1 | 1", true, 15 },
                { "7 - 2 - 1", true, 4 },
                { "'A'", true, 65 },
                { "1 << 64", true, 0 },
                { "(void *)0", true, 0 },
                { "1 / 0", false, 0 },
                { "ENUM", false, 0 },
                { "1 2", false, 0 },
                { "(1", false, 0 },
                { "09", false, 0 },
                { "", false, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(constants); i++) {
                Span s = { constants[i].text, constants[i].text + strlen(constants[i].text) };
                uint64_t value = 0;

                assert_int_equal(format_number(s, &value), constants[i].is_number);
                assert_true(value == constants[i].value);
        }
}

static void check_refused(const char *text, const char *in_explanation) {
        Explanation e = EXPLANATION_NULL;
        Plan *p = NULL;

        assert_int_equal(format_parse("test", text, strlen(text), &p, &e), REFUSED_INVALID);
        assert_null(p);
        assert_string_equal(e.reason, "bad-format");
        assert_non_null(strstr(e.text, in_explanation));
}

static void test_refusals(void **state) {
        check_refused("", "group test");
        check_refused("no format at all\n", "\"no format");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x;\toffset:65533;\tsize:4;\tsigned:1;\n\n"
                      "print fmt: \"\"\n", "field x at offset 65533");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:__data_loc char[] x;\toffset:8;\tsize:8;\tsigned:1;\n\n"
                      "print fmt: \"\"\n", "field x");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n",
                      "\"int\"");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n", "cannot be parsed");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n", "name: a");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int *;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n",
                      "\"int *\"");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x;\toffset:4294967295;\tsize:4;\tsigned:1;\n\n"
                      "print fmt: \"\"\n", "field x at offset -1");
        /* libtraceevent would crash at the first of these and leak at the others */
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x[\x01", "name: a");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int x[\x01\n\nprint fmt: \"\"\n", "name: a");
        check_refused("name: a\nID: 1\n" COMMON "field :int;\n\nprint fmt: \"\"\n", "\"int\"");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int LOCAL_PR_FMT;\toffset:8;\tsize:4;\tsigned:1;\n\n"
                      "print fmt: \"\"\n", "name: a");
        check_refused("name: a\nID: 1\n" COMMON "\tfield:int __attribute__((x y;\toffset:8;\tsize:4;\tsigned:1;\n\n"
                      "print fmt: \"\"\n", "name: a");
}

static void test_cut_texts(void **state) {
        size_t length;
        _cleanup_free_ char *text = format_file_read("sched.sched_switch", &length);

        for (size_t n = 0; n < length; n++) {
                Explanation e = EXPLANATION_NULL;
                Plan *p = NULL;

                assert_int_equal(format_parse("sched", text, n, &p, &e), REFUSED_INVALID);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_and_arrays),
                cmocka_unit_test(test_printk_strings),
                cmocka_unit_test(test_flags_under_a_condition),
                cmocka_unit_test(test_flags_as_expressions),
                cmocka_unit_test(test_symbols),
                cmocka_unit_test(test_dynamic_places),
                cmocka_unit_test(test_names_beside_statements),
                cmocka_unit_test(test_bytes_are_not_text),
                cmocka_unit_test(test_system_call),
                cmocka_unit_test(test_made_fields),
                cmocka_unit_test(test_declarations_of_other_kernels),
                cmocka_unit_test(test_what_names_nothing),
                cmocka_unit_test(test_constants),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_cut_texts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
