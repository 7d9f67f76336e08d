/* What the hardware says of a sample, in words: to the letter of perf-script(1) where it has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/print/sample-words.h"

static void test_data_sources(void **state) {
        static const struct {
                perfd_data_source source;
                const char *words;
        } cases[] = {
                { { 0 }, "OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK N/A" },
                { { .op = PERF_MEM_OP_LOAD, .level = PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT, .snoop = PERF_MEM_SNOOP_NONE,
                    .dtlb = PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2 | PERF_MEM_TLB_HIT, .lock = PERF_MEM_LOCK_LOCKED },
                  "OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK Yes|BLK N/A" },
                { { .op = PERF_MEM_OP_STORE, .level = PERF_MEM_LVL_MISS, .remote = 1, .hops = PERF_MEM_HOPS_1,
                    .level_number = PERF_MEM_LVLNUM_RAM, .snoop_extra = PERF_MEM_SNOOPX_PEER,
                    .lock = PERF_MEM_LOCK_NA, .blocked = PERF_MEM_BLK_DATA | PERF_MEM_BLK_ADDR },
                  "OP STORE|LVL Remote node, same socket RAM miss|SNP Peer|TLB N/A|LCK N/A|BLK Data Addr" },
                { { .op = PERF_MEM_OP_NA, .level = PERF_MEM_LVL_NA, .level_number = PERF_MEM_LVLNUM_NA, .snoop = PERF_MEM_SNOOP_NA, .dtlb = PERF_MEM_TLB_NA,
                    .lock = PERF_MEM_LOCK_NA, .blocked = PERF_MEM_BLK_NA }, "OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK N/A" },
                { { .hops = 7, .level_number = 4 }, "OP No|LVL 7 hops L4|SNP N/A|TLB N/A|LCK No|BLK N/A" },
        };
        const perfd_data_source everything = { UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                               UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
        char words[WORDS_MAX];

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                data_source_words(&cases[i].source, words);
                assert_string_equal(words, cases[i].words);
                assert_int_equal(data_source_says(words), cases[i].source.op != PERF_MEM_OP_NA); /* that of samples of software events */
        }
        data_source_words(&everything, words);
        assert_true(strlen(words) < WORDS_MAX);
}

static void test_transactions(void **state) {
        perfd_transaction t = { .flags = PERF_TXN_TRANSACTION | PERF_TXN_SYNC | PERF_TXN_CAPACITY_READ };
        char words[WORDS_MAX];

        transaction_words(&t, words);
        assert_string_equal(words, "TX|SYNC|CAP-READ");
        t.flags = 0;
        transaction_words(&t, words);
        assert_string_equal(words, "");
        t.flags = 1U << 31 | PERF_TXN_ELISION;
        transaction_words(&t, words);
        assert_string_equal(words, "EL|2147483648");
}

static void test_branches(void **state) {
        perfd_branch b = { .type = PERF_BR_COND_CALL, .predicted = true, .privilege = PERF_BR_PRIV_KERNEL };

        assert_string_equal(branch_type_word(&b), "COND_CALL");
        assert_string_equal(branch_privilege_word(&b), "kernel");
        assert_null(branch_spec_word(&b));
        assert_int_equal(branch_prediction(&b), 'P');
        b = (perfd_branch){ .type = PERF_BR_EXTEND_ABI, .new_type = PERF_BR_NEW_FAULT_DATA, .mispredicted = true };
        assert_string_equal(branch_type_word(&b), "FAULT_DATA");
        assert_int_equal(branch_prediction(&b), 'M');
        b = (perfd_branch){ .type = 99, .spec = 99, .privilege = 99 };
        assert_true(!branch_type_word(&b) && !branch_spec_word(&b) && !branch_privilege_word(&b));
}

static void test_registers(void **state) {
        assert_string_equal(perfd_register_name(EM_X86_64, 8), "IP");
        assert_string_equal(perfd_register_name(EM_X86_64, 23), "R15");
        assert_string_equal(perfd_register_name(EM_X86_64, 63), "XMM15H");
        assert_null(perfd_register_name(EM_X86_64, 24));
        assert_string_equal(perfd_register_name(EM_AARCH64, 30), "lr");
        assert_string_equal(perfd_register_name(EM_AARCH64, 32), "pc");
        assert_null(perfd_register_name(EM_AARCH64, 64));
        assert_null(perfd_register_name(EM_NONE, 0));
        assert_string_equal(perfd_register_name(EM_386, 8), "IP");
        assert_string_equal(perfd_register_name(EM_ARM, 15), "pc");
        assert_null(perfd_register_name(EM_ARM, 16));
        assert_string_equal(perfd_register_name(EM_PPC64, 31), "r31");
        assert_string_equal(perfd_register_name(EM_PPC64, 32), "nip");
        assert_string_equal(perfd_register_name(EM_PPC64, 58), "siar");
        assert_string_equal(perfd_register_name(EM_S390, 15), "R15");
        assert_string_equal(perfd_register_name(EM_S390, 31), "FP15");
        assert_string_equal(perfd_register_name(EM_S390, 33), "PC");
        assert_string_equal(perfd_register_name(EM_RISCV, 31), "t6");
        assert_string_equal(perfd_register_name(EM_MIPS, 8), "$8");
        assert_string_equal(perfd_register_name(EM_MIPS, 31), "$31");
        assert_string_equal(perfd_register_name(EM_LOONGARCH, 27), "%r27");
        assert_null(perfd_register_name(EM_LOONGARCH, 32));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_data_sources),
                cmocka_unit_test(test_transactions),
                cmocka_unit_test(test_branches),
                cmocka_unit_test(test_registers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
