/*
 * Fields of struct perf_event_attr by name: each sets the C field of that name and nothing else, values come back as
 * they would be written, and each contradiction is refused with the names of both sides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <linux/hw_breakpoint.h>
#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

#include "config/attr/attr-setting.h"
#include "daemon/base/cleanup.h"

/* "NAME=VALUE NAME=VALUE": as perfctl takes them. */
static void apply(const char *settings, struct perf_event_attr *attr) {
        char copy[300], *rest = NULL;

        (void)snprintf(copy, sizeof(copy), "%s", settings);
        for (char *s = strtok_r(copy, " ", &rest); s; s = strtok_r(NULL, " ", &rest)) {
                char *value = strchr(s, '=');
                AttrSetting setting;
                Explanation e = EXPLANATION_NULL;

                *value++ = '\0';
                assert_int_equal(attr_setting_parse(s, value, &setting, &e), 0);
                assert_string_equal(e.text, "");
                assert_string_equal(attr_field_name(setting.field), s);
                attr_settings_apply(&setting, 1, attr);
        }
}

static size_t n_fields_set;

/* The setting alone makes `...` of a zero attr, and is written as `text`. */
#define CHECK(name, value, text, ...)                                                                                  \
        do {                                                                                                           \
                struct perf_event_attr attr, expected;                                                                 \
                _cleanup_free_ char *written = NULL;                                                                   \
                AttrSetting s;                                                                                         \
                                                                                                                       \
                memset(&attr, 0, sizeof(attr));                                                                        \
                memset(&expected, 0, sizeof(expected));                                                                \
                { struct perf_event_attr *a = &expected; __VA_ARGS__; }                                                \
                assert_int_equal(attr_setting_parse(name, value, &s, NULL), 0);                                        \
                attr_settings_apply(&s, 1, &attr);                                                                     \
                assert_memory_equal(&attr, &expected, sizeof(attr));                                                   \
                written = attr_setting_text(&s);                                                                       \
                assert_string_equal(written, text);                                                                    \
                assert_int_equal(attr_setting_parse(name, written, &s, NULL), 0);                                      \
                n_fields_set++;                                                                                        \
        } while (0)
#define CHECK_FLAG(name, field) CHECK(name, "true", "true", a->field = 1)
#define CHECK_NUMBER(name, field) CHECK(name, "0x123", "291", a->field = 0x123)
#define CHECK_LONG(name, field) CHECK(name, "18446744073709551615", "0xffffffffffffffff", a->field = UINT64_MAX)

static void test_fields(void **state) {
        size_t n = 0;

        n_fields_set = 0;
        CHECK("sample-type", "weight|data-src", "weight|data-src",
              a->sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC);
        CHECK_FLAG("pinned", pinned);
        CHECK_FLAG("exclusive", exclusive);
        CHECK_FLAG("exclude-user", exclude_user);
        CHECK_FLAG("exclude-kernel", exclude_kernel);
        CHECK_FLAG("exclude-hv", exclude_hv);
        CHECK_FLAG("exclude-idle", exclude_idle);
        CHECK_FLAG("mmap", mmap);
        CHECK_FLAG("comm", comm);
        CHECK_FLAG("inherit-stat", inherit_stat);
        CHECK_FLAG("enable-on-exec", enable_on_exec);
        CHECK_FLAG("task", task);
        CHECK("precise-ip", "3", "3", a->precise_ip = 3);
        CHECK_FLAG("mmap-data", mmap_data);
        CHECK_FLAG("exclude-host", exclude_host);
        CHECK_FLAG("exclude-guest", exclude_guest);
        CHECK_FLAG("exclude-callchain-kernel", exclude_callchain_kernel);
        CHECK_FLAG("exclude-callchain-user", exclude_callchain_user);
        CHECK_FLAG("mmap2", mmap2);
        CHECK_FLAG("comm-exec", comm_exec);
        CHECK_FLAG("context-switch", context_switch);
        CHECK_FLAG("namespaces", namespaces);
        CHECK_FLAG("ksymbol", ksymbol);
        CHECK_FLAG("bpf-event", bpf_event);
        CHECK_FLAG("aux-output", aux_output);
        CHECK_FLAG("cgroup", cgroup);
        CHECK_FLAG("text-poke", text_poke);
        CHECK_FLAG("build-id", build_id);
        CHECK_FLAG("inherit-thread", inherit_thread);
        CHECK_FLAG("remove-on-exec", remove_on_exec);
        CHECK_FLAG("sigtrap", sigtrap);
        CHECK_NUMBER("wakeup-events", wakeup_events);
        CHECK("wakeup-watermark", "4294967295", "4294967295", a->wakeup_watermark = UINT32_MAX; a->watermark = 1);
        CHECK("bp-type", "w|r", "r|w", a->bp_type = HW_BREAKPOINT_RW);
        CHECK_LONG("bp-addr", bp_addr);
        CHECK_LONG("bp-len", bp_len);
        CHECK_LONG("config1", config1);
        CHECK_LONG("config2", config2);
        CHECK("branch-sample-type", "any_call|u", "user|any-call",
              a->branch_sample_type = PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER);
        CHECK("sample-regs-user", "sp", "sp", a->sample_regs_user = a->sample_regs_user |
#if defined(__x86_64__)
              1 << PERF_REG_X86_SP
#else
              (uint64_t)1 << 31
#endif
        );
        CHECK_NUMBER("sample-stack-user", sample_stack_user);
        CHECK("sample-regs-intr", "0", "0", a->sample_regs_intr = 0);
        CHECK_NUMBER("aux-watermark", aux_watermark);
        CHECK_NUMBER("sample-max-stack", sample_max_stack);
        CHECK_NUMBER("aux-sample-size", aux_sample_size);
        CHECK("aux-start-paused", "true", "true", ((uint32_t *)a)[29] = 1); /* Linux 6.13, not in every header */
        CHECK("aux-pause", "true", "true", ((uint32_t *)a)[29] = 2);
        CHECK("aux-resume", "true", "true", ((uint32_t *)a)[29] = 4);
        CHECK_LONG("sig-data", sig_data);
        if (sizeof(struct perf_event_attr) >= PERF_ATTR_SIZE_VER8)
                CHECK("config3", "1", "0x1", ((uint64_t *)a)[16] = 1);
        else
                n_fields_set++;
        for (; attr_field_at(n); n++) {
                assert_non_null(attr_field_help(attr_field_at(n)));
                assert_non_null(attr_field_values(attr_field_at(n)));
        }
        assert_int_equal(n_fields_set, n); /* none was forgotten */
}

/* What is not named stays; sample-type only grows. */
static void test_on_top(void **state) {
        struct perf_event_attr attr = { .sample_type = PERF_SAMPLE_TIME, .exclude_hv = 1, .precise_ip = 2,
                                        .comm = 1, .watermark = 1, .wakeup_watermark = 4096, .clockid = -1,
                                        .sample_stack_user = 8 };

        apply("sample-type=read,callchain exclude-hv=false precise-ip=1 wakeup-events=1 sample-stack-user=65528", &attr);
        assert_int_equal(attr.sample_type, PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN);
        assert_int_equal(attr.exclude_hv, 0);
        assert_int_equal(attr.precise_ip, 1);
        assert_int_equal(attr.comm, 1);
        assert_int_equal(attr.watermark, 0);
        assert_int_equal(attr.wakeup_events, 1);
        assert_int_equal(attr.sample_stack_user, 65528);
        assert_int_equal(attr.clockid, -1);
}

static uint64_t value_of(const char *name, const char *text) {
        AttrSetting s;

        assert_int_equal(attr_setting_parse(name, text, &s, NULL), 0);
        return s.value;
}

static void test_words(void **state) {
        /* every word of a list means something, and none the same */
        static const char *const sets[] = { "sample-type", "branch-sample-type", "bp-type" };

        for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
                AttrSetting s;
                char list[400], *rest = NULL;
                uint64_t seen = 0;

                assert_int_equal(attr_setting_parse(sets[i], "0", &s, NULL), 0);
                (void)snprintf(list, sizeof(list), "%s", attr_field_values(s.field));
                for (char *w = strtok_r(list, ", ", &rest); w; w = strtok_r(NULL, ", ", &rest)) {
                        assert_int_equal(seen & value_of(sets[i], w), 0);
                        seen |= value_of(sets[i], w);
                }
                assert_int_equal(seen, i == 0 ? PERF_SAMPLE_MAX - 1 : i == 1 ? (1 << 20) - 1 : 7);
        }
        assert_int_equal(value_of("sample-type", "0x4000 | data_src"),
                         PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC);
        assert_int_equal(value_of("branch-sample-type", "k,ind_jmp,save_type,stack,priv,any_ret"),
                         PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_IND_JUMP | PERF_SAMPLE_BRANCH_TYPE_SAVE |
                         PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_PRIV_SAVE | PERF_SAMPLE_BRANCH_ANY_RETURN);
#if defined(__x86_64__)
        assert_int_equal(value_of("sample-regs-user", "ip|sp|ax"),
                         1 << PERF_REG_X86_IP | 1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_AX);
        assert_int_equal(value_of("sample-regs-user", "ax,bx,cx,dx,si,di,bp,sp,ip,flags,cs,ss,r8,r9,r10,r11,r12,r13,"
                                  "r14,r15"), 0xff0fff); /* what perf asks for: all but ds, es, fs, gs */
        assert_int_equal(value_of("sample-regs-intr", "xmm0|xmm15"), UINT64_C(3) << 32 | UINT64_C(3) << 62);
#elif defined(__aarch64__)
        assert_int_equal(value_of("sample-regs-user", "x0|x29|lr|sp|pc"),
                         UINT64_C(1) | UINT64_C(1) << 29 | UINT64_C(7) << 30);
#endif
}

static void test_refusals(void **state) {
        static const struct {
                const char *name, *value;
                unsigned position;
                const char *text;
        } cases[] = {
                { "exclude-usr", "true", 0,
                  "attr: 'exclude-usr' is not a field of struct perf_event_attr; did you mean 'exclude-user'?" },
                { "zebra", "1", 0, "attr: 'zebra' is not a field of struct perf_event_attr" },
                { "a-name-that-is-longer-than-any-field-of-the-struct", "1", 0,
                  "attr: 'a-name-that-is-longer-than-any-field-of-the-struct' is not a field of struct perf_event_attr" },
                { "freq", "true", 0, "attr freq cannot be set here: the key 'frequency' sets it" },
                { "sample_period", "1", 0, "attr sample-period cannot be set here: the key 'period' sets it" },
                { "type", "1", 0, "attr type cannot be set here: the event's name says it" },
                { "disabled", "true", 0, "attr disabled cannot be set here: the key 'enabled' sets it" },
                { "inherit", "true", 0, "attr inherit cannot be set here: the key 'inherit' of the target sets it" },
                { "clockid", "1", 0, "attr clockid cannot be set here: the key 'clock' sets it" },
                { "sample-id-all", "true", 0,
                  "attr sample-id-all cannot be set here: perfd needs it to tell events apart" },
                { "exclude-user", "1", 1, "attr exclude-user: found '1', expected true or false" },
                { "precise-ip", "4", 1, "attr precise-ip: found '4', expected a number from 0 to 3" },
                { "sample-max-stack", "65536", 1,
                  "attr sample-max-stack: found '65536', expected a number from 0 to 65535" },
                { "wakeup-events", "-1", 1,
                  "attr wakeup-events: found '-1', expected a number from 0 to 4294967295" },
                { "config1", "0x10000000000000000", 1, "attr config1: found '0x10000000000000000', expected a number "
                                                       "of 64 bits, decimal or 0x" },
                { "config1", "", 1, "attr config1: found '', expected a number of 64 bits, decimal or 0x" },
                { "bp-type", "r|q", 3,
                  "attr bp-type: found 'r|q', expected a number, or words joined by | or ',' of r, w, x" },
                { "bp-type", "8", 1, "attr bp-type: found '8', which has bits unknown to perfd, expected a "
                                     "number, or words joined by | or ',' of r, w, x" },
                { "bp-type", "r|", 3,
                  "attr bp-type: found 'r|', expected a number, or words joined by | or ',' of r, w, x" },
                { "branch-sample-type", "any,  usr", 7,
                  "attr branch-sample-type: found 'any,  usr'; did you mean 'user'? expected a number, or words joined "
                  "by | or ',' of user, kernel, hv, any, any-call, any-return, ind-call, abort-tx, in-tx, no-tx, cond, "
                  "call-stack, ind-jump, call, no-flags, no-cycles, type-save, hw-index, priv-save, counters" },
        };
        AttrSetting s = { .value = 7 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(attr_setting_parse(cases[i].name, cases[i].value, &s, &e), REFUSED_INVALID);
                assert_string_equal(e.text, cases[i].text);
                assert_string_equal(e.reason, "bad-attr");
                assert_int_equal(e.position, cases[i].position);
                assert_int_equal(attr_setting_parse(cases[i].name, cases[i].value, &s, NULL), REFUSED_INVALID);
        }
        assert_int_equal(s.value, 7);
        if (sizeof(struct perf_event_attr) < PERF_ATTR_SIZE_VER8)
                assert_int_equal(attr_setting_parse("config3", "1", &s, NULL), REFUSED_INVALID);
}

static void test_contradictions(void **state) {
        static const struct {
                const char *settings;
                uint32_t type;
                const char *text; /* behind "x: attr " */
        } cases[] = {
                { "sample-regs-user=sp", PERF_TYPE_HARDWARE, "sample-regs-user is set, but sample-type has no regs-user" },
                { "sample-type=regs-intr", PERF_TYPE_HARDWARE,
                  "sample-type has regs-intr, but sample-regs-intr is not set" },
                { "sample-type=stack-user", PERF_TYPE_HARDWARE,
                  "sample-type has stack-user, but sample-stack-user is not set" },
                { "sample-type=stack-user sample-stack-user=12", PERF_TYPE_HARDWARE,
                  "sample-stack-user is 12, expected a multiple of 8 up to 65528" },
                { "sample-type=stack-user sample-stack-user=65536", PERF_TYPE_HARDWARE,
                  "sample-stack-user is 65536, expected a multiple of 8 up to 65528" },
                { "branch-sample-type=any", PERF_TYPE_HARDWARE,
                  "branch-sample-type is set, but sample-type has no branch-stack" },
                { "sample-type=branch-stack branch-sample-type=user", PERF_TYPE_HARDWARE,
                  "branch-sample-type selects user, kernel or hv, but no branches, such as any" },
                { "aux-sample-size=4096", PERF_TYPE_HARDWARE, "aux-sample-size is set, but sample-type has no aux" },
                { "sample-max-stack=16", PERF_TYPE_HARDWARE, "sample-max-stack is set, but there is no callchain" },
                { "sample-type=weight,weight-struct", PERF_TYPE_HARDWARE,
                  "sample-type has weight and weight-struct, which exclude each other" },
                { "exclude-user=true exclude-kernel=true exclude-hv=true", PERF_TYPE_HARDWARE,
                  "exclude-user, exclude-kernel and exclude-hv leave nothing to count" },
                { "exclude-host=true exclude-guest=true", PERF_TYPE_HARDWARE,
                  "exclude-host and exclude-guest leave nothing to count" },
                { "bp-type=w", PERF_TYPE_HARDWARE, "bp-type is set, but the event is not a breakpoint (mem:ADDRESS)" },
                { "bp-type=0", PERF_TYPE_BREAKPOINT, "bp-type is 0: expected r, w, or x" },
                { "bp-type=x|r", PERF_TYPE_BREAKPOINT, "bp-type combines x with r or w, which exclude each other" },
                { "config2=1", PERF_TYPE_SOFTWARE, "config2 is set, but the event is not one of a PMU" },
                { "enable-on-exec=true remove-on-exec=true", PERF_TYPE_HARDWARE,
                  "enable-on-exec and remove-on-exec exclude each other" },
                { "sigtrap=true", PERF_TYPE_HARDWARE,
                  "sigtrap needs remove-on-exec, because the signal is meant for one program" },
                { "sig-data=1", PERF_TYPE_HARDWARE, "sig-data is set, but sigtrap is not" },
        };
        static const char *const fine[] = {
                "sample-type=regs-user,stack-user sample-regs-user=sp sample-stack-user=65528",
                "sample-type=branch-stack branch-sample-type=any|user",
                "sample-type=callchain sample-max-stack=16",
                "config1=1 config2=2",
                "sigtrap=true remove-on-exec=true sig-data=7",
                "exclude-user=true exclude-kernel=true",
        };
        Explanation e;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct perf_event_attr attr = { .type = cases[i].type };

                apply(cases[i].settings, &attr);
                e = EXPLANATION_NULL;
                assert_int_equal(attr_check(&attr, "x", &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-attr");
                assert_memory_equal(e.text, "x: attr ", 8);
                assert_string_equal(e.text + 8, cases[i].text);
        }
        for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
                struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE };

                apply(fine[i], &attr);
                assert_int_equal(attr_check(&attr, "x", &e), 0);
        }
}

static void test_shared_bytes(void **state) {
        static const struct {
                const char *one, *other, *text;
        } cases[] = {
                { "pinned", "pinned", "x: attr pinned is set twice" },
                { "wakeup-watermark", "wakeup-events",
                  "x: attr wakeup-events and wakeup-watermark exclude each other: the reader is woken after a number of samples "
                  "or of bytes" },
                { "bp-addr", "config1",
                  "x: attr bp-addr and config1 exclude each other: an event is a breakpoint or of a PMU" },
                { "config2", "bp-len",
                  "x: attr bp-len and config2 exclude each other: an event is a breakpoint or of a PMU" },
                { "config1", "config2", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *value = strcmp(cases[i].one, "pinned") == 0 ? "true" : "1";
                Explanation e = EXPLANATION_NULL;
                AttrSetting s[2];

                assert_int_equal(attr_setting_parse(cases[i].one, value, &s[0], NULL), 0);
                assert_int_equal(attr_setting_parse(cases[i].other, value, &s[1], NULL), 0);
                assert_int_equal(attr_settings_check(s, 2, "x", &e), *cases[i].text ? REFUSED_INVALID : 0);
                assert_string_equal(e.text, cases[i].text);
        }
}

static void test_least_size(void **state) {
        static const struct {
                const char *settings;
                uint32_t size;
        } cases[] = {
                { "sample-type=ip bp-addr=1 sigtrap=true", 64 },
                { "bp-len=1", 72 },
                { "branch-sample-type=any", 80 },
                { "sample-regs-user=sp", 96 },
                { "sample-stack-user=8", 96 },
                { "sample-regs-intr=1", 104 },
                { "aux-watermark=1", 112 },
                { "sample-max-stack=1", 112 },
                { "aux-sample-size=1", 120 },
                { "aux-pause=true", 120 },
                { "sig-data=1", 128 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct perf_event_attr attr = { .size = sizeof(attr) };

                apply(cases[i].settings, &attr);
                assert_int_equal(attr_least_size(&attr), cases[i].size);
        }
        assert_int_equal(attr_least_size(&(struct perf_event_attr){ .use_clockid = 1, .clockid = 1 }), 96);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),        cmocka_unit_test(test_on_top),
                cmocka_unit_test(test_words),         cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_contradictions), cmocka_unit_test(test_shared_bytes),
                cmocka_unit_test(test_least_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
