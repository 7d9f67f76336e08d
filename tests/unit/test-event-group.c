/* Modifiers of single events, and groups of them: what each member gets, and where a refused group is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/event-name/event-name.h"
#include "daemon/base/cleanup.h"

static void check_modifiers(const EventModifiers *m, const char *letters) {
        char found[20] = "";
        size_t n = 0;

        for (size_t i = 0; i < m->precise; i++)
                found[n++] = 'p';
        (void)snprintf(found + n, sizeof(found) - n, "%s%s%s%s%s%s%s%s%s%s", m->user ? "u" : "", m->kernel ? "k" : "",
                       m->hypervisor ? "h" : "", m->host ? "H" : "", m->guest ? "G" : "", m->no_idle ? "I" : "",
                       m->pinned ? "D" : "", m->exclusive ? "e" : "", m->group_sample ? "S" : "",
                       m->precise_max ? "P" : "");
        assert_string_equal(found, letters);
}

static void test_modifiers(void **state) {
        static const struct {
                const char *text, *letters;
        } cases[] = {
                { "cycles", "" },          { "cycles:u", "u" },
                { "cycles:ku", "uk" },     { "cycles:pppu", "pppu" },
                { "cycles:ppk", "ppk" },   { "cycles:P", "P" },
                { "cycles:ukhHGIDe", "ukhHGIDe" }, { "L1-dcache-load-misses:u", "u" },
                { "r1a8:D", "D" },         { "cpu/event=1/u", "u" },
                { "cpu/event=1/:uk", "uk" }, { "cpu-clock:u", "u" },
                { "mem:0x10:u", "u" },     { "mem:0x10/8:w:k", "k" },
                { "sched:sched_switch:u", "u" }, { "sched:*:k", "k" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                check_modifiers(&n.modifiers, cases[i].letters);
                event_name_deinit(&n);
        }
}

static void test_groups(void **state) {
        EventNames names = EVENT_NAMES_NULL;

        assert_int_equal(event_names_parse(" {cycles:u, cpu/event=0x3c,umask=1/pp ,\n sched:sched_switch}:kpS ", &names,
                                           NULL), 0);
        assert_true(names.is_group);
        assert_int_equal(names.n_members, 3);
        assert_string_equal(names.texts[0], "cycles:u");
        assert_string_equal(names.texts[1], "cpu/event=0x3c,umask=1/pp");
        assert_string_equal(names.texts[2], "sched:sched_switch");
        assert_int_equal(names.members[1].n_terms, 2);
        check_modifiers(&names.members[0].modifiers, "pukS");
        check_modifiers(&names.members[1].modifiers, "pppkS");
        check_modifiers(&names.members[2].modifiers, "pkS");
        event_names_deinit(&names);

        assert_int_equal(event_names_parse(" cycles:u\n", &names, NULL), 0);
        assert_false(names.is_group);
        assert_int_equal(names.n_members, 1);
        assert_string_equal(names.texts[0], "cycles:u");
        event_names_deinit(&names);

        assert_int_equal(event_names_parse("{cs}", &names, NULL), 0);
        assert_true(names.is_group);
        assert_int_equal(names.n_members, 1);
        event_names_deinit(&names);
}

static void test_group_refusals(void **state) {
        static const struct {
                const char *text;
                int refusal;
                unsigned position;
                const char *explanation;
        } cases[] = {
                { "", REFUSED_INVALID, 1, "event '': the name is empty" },
                { "  ", REFUSED_INVALID, 3, "event '  ': the name is empty" },
                { "{}", REFUSED_INVALID, 2, "event '{}': a member of the group is missing here" },
                { "{cs,}", REFUSED_INVALID, 5, "event '{cs,}': a member of the group is missing here" },
                { "{cs", REFUSED_INVALID, 4, "event '{cs': the closing brace of the group is missing" },
                { "{cs,{cs}}", REFUSED_INVALID, 5, "event '{cs,{cs}}': groups cannot be nested" },
                { "{cs}u", REFUSED_INVALID, 5,
                  "event '{cs}u': expected nothing, or a colon and modifiers, after the group" },
                { "{cs}:", REFUSED_INVALID, 6, "event '{cs}:': the modifiers are missing after the colon" },
                { "{cs}:ux", REFUSED_INVALID, 7,
                  "event '{cs}:ux': unknown modifier, expected some of u k h H G I D e S p P" },
                { "{cycles:pp}:pp", REFUSED_INVALID, 13,
                  "event '{cycles:pp}:pp': with its own, member 'cycles:pp' has more than three p" },
                { "{cs, cycles:S}", REFUSED_INVALID, 13,
                  "event 'cycles:S': modifier S must be after the brace of a group, such as {a,b}:S" },
                { "{cs}:W", REFUSED_UNSUPPORTED, 6, "event '{cs}:W': perfd does not support modifier W of perf" },
                { "{cs, cpu-clok}", REFUSED_NOT_FOUND, 6,
                  "event 'cpu-clok' is unknown; did you mean 'cpu-clock'?" },
                { "{cs,sched:*}", REFUSED_INVALID, 5,
                  "event '{cs,sched:*}': 'sched:*' can match several tracepoints, and a member of a group is a single one" },
                { "{cs,kprobe:f}", REFUSED_INVALID, 5,
                  "event '{cs,kprobe:f}': kprobe events cannot be members of a group of counters" },
                { "{external:f}", REFUSED_INVALID, 2,
                  "event '{external:f}': external events cannot be members of a group of counters" },
        };
        char text[3 + 3 * (EVENT_MEMBERS_MAX + 1)] = "{cs";
        EventNames names = EVENT_NAMES_NULL;
        Explanation e;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                e = EXPLANATION_NULL;
                assert_int_equal(event_names_parse(cases[i].text, &names, &e), cases[i].refusal);
                assert_string_equal(e.text, cases[i].explanation);
                assert_int_equal(e.position, cases[i].position);
                assert_null(names.members);
                assert_int_equal(event_names_parse(cases[i].text, &names, NULL), cases[i].refusal);
        }
        for (size_t i = 1; i < EVENT_MEMBERS_MAX; i++)
                strcat(text, ",cs");
        strcat(text, "}");
        assert_int_equal(event_names_parse(text, &names, NULL), 0);
        assert_int_equal(names.n_members, EVENT_MEMBERS_MAX);
        event_names_deinit(&names);
        strcpy(text + strlen(text) - 1, ",cs}");
        assert_int_equal(event_names_parse(text, &names, &e), REFUSED_INVALID);
        assert_int_equal(e.position, 2 + 3 * EVENT_MEMBERS_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_modifiers),
                cmocka_unit_test(test_groups),
                cmocka_unit_test(test_group_refusals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
