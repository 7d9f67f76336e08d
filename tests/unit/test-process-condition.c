/*
 * Conditions that ask for the process: what a reader and the dispatcher find out together is what the expression says, of
 * generated expressions worked out a second time; comparisons one by one; and the words between the two, in a batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/route/filter-process.h"
#include "daemon/route/match-program.h"
#include "daemon/route/process-condition.h"
#include "tests/unit/filter-plan.h"

#define ID "3dcb1a9f0e4c5a6b7c8d9e0f112233445566778899aabbccddeeff0011223344"

typedef struct Rig {
        TextTable texts;
        Plan *plan;
        SampleBytes bytes;
        Record record;
        Process process;
} Rig;

static Text *take(Rig *r, const char *text) {
        Text *ret;

        assert_int_equal(text_table_take(&r->texts, text, strlen(text), &ret), 0);
        return ret;
}

static int setup(void **state) {
        Rig *r = calloc(1, sizeof(*r));

        assert_non_null(r);
        assert_int_equal(text_table_init(&r->texts), 0);
        r->plan = filter_plan_new();
        sample_init(&r->bytes);
        r->record = sample_record(&r->bytes);
        r->process = (Process){ .pid = 1000, .uid = 33, .has_uid = true, .executable = take(r, "/usr/sbin/nginx"),
                                .cgroup = take(r, "/system.slice/nginx.service/docker-" ID ".scope") };
        *state = r;
        return 0;
}

static int teardown(void **state) {
        Rig *r = *state;

        text_table_give(&r->texts, r->process.executable);
        text_table_give(&r->texts, r->process.cgroup);
        text_table_deinit(&r->texts);
        plan_unref(r->plan);
        free(r);
        return 0;
}

static ProcessCondition *condition_new(const char *expression) {
        _cleanup_(filter_freep) Filter *f = NULL;
        ProcessCondition *ret;
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(filter_parse(expression, &f, &e), 0);
        filter_ask_for_comm(f);
        assert_int_equal(process_condition_new(f, &ret, &e), 0);
        return ret;
}

/* Of one condition that is asked of many samples: what it remembers of a name, and of answers, is not taken for that of others. */
static void test_many_samples(void **state) {
        static const char *const names[] = { "a", "ab", "abcdefgh", "abcdefghi", "abcdefghij", "b", "", "abcdefghijklmno" };
        static const char *const expressions[] = {
                "(comm == \"a*\" && u8 == 200 || comm ~ \"*h?\" && u8 == 7) && uid == 33",
                "comm != \"ab\" && !(comm == \"abcdefghi\") || uid == 44", "comm == \"abcdefghij\"",
        };
        Rig *r = *state;
        ProcessCondition *kept[ARRAY_SIZE(expressions)];
        uint32_t random = 1;

        for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
                kept[i] = condition_new(expressions[i]);
        for (unsigned n = 0; n < 3000; n++) {
                const size_t i = n % ARRAY_SIZE(expressions);
                _cleanup_(process_condition_freep) ProcessCondition *fresh = condition_new(expressions[i]);
                Process process = r->process;
                Task task = { .process = &process };
                ConditionWord word = { .number = 1 };

                random = random * 1664525U + 1013904223U;
                (void)snprintf(task.comm, sizeof(task.comm), "%s", names[random >> 29]);
                process.uid = random >> 28 & 1 ? 33 : 44;
                if (i == 0) /* 1 and 3 are what a reader knows */
                        word = (ConditionWord){ .number = 1, .known = 0x0a, .holds = random >> 20 & 0x0a };
                assert_int_equal(process_condition_holds(kept[i], &word, &task), process_condition_holds(fresh, &word, &task));
        }
        for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
                process_condition_free(kept[i]);
}

/* What comes of it for this process. No event of the plan has a field that is called as what is asked. */
static bool holds_for_task(Rig *r, const char *expression, const Task *task) {
        _cleanup_(process_condition_freep) ProcessCondition *c = NULL;
        _cleanup_(match_program_unrefp) MatchProgram *p = NULL;
        _cleanup_(filter_freep) Filter *f = NULL;
        Explanation e = EXPLANATION_NULL;
        ConditionWord word;
        bool holds;

        if (filter_parse(expression, &f, &e) != 0)
                fail_msg("%s: %s", expression, e.text);
        filter_ask_for_comm(f);
        if (filter_compile(f, r->plan, NULL, &p, &e) != 0 || process_condition_new(f, &c, &e) != 0)
                fail_msg("%s: %s", expression, e.text);
        assert_true(match_is_partial(p) && filter_asks_process(f));
        word = match_run_parts(p, &r->record, 4711);
        assert_int_equal(word.number, 4711);
        holds = process_condition_holds(c, &word, task);
        assert_int_equal(process_condition_holds(c, &word, task), holds); /* from what it remembers */
        if (holds && !match_ask(p, &r->record))
                fail_msg("a reader would not give on what matches: %s", expression);
        return holds;
}

static bool holds_for(Rig *r, const char *expression, const Process *process) {
        const Task task = { .process = (Process *)process, .comm = "nginx" };

        return holds_for_task(r, expression, process ? &task : NULL);
}

static void test_comparisons(void **state) {
        static const struct {
                const char *expression;
                bool holds, of_unknown;
        } rows[] = {
                { "exe == \"/usr/sbin/nginx\"", true, false },
                { "exe != \"/usr/sbin/nginx\"", false, false },
                { "\"/usr/sbin/*\" == sample.exe", true, false },
                { "exe ~ \"*apache*\"", false, false },
                { "exe != \"*apache*\"", true, false },
                { "!(exe == \"/usr/sbin/nginx\")", false, true },
                { "uid == 33", true, false },
                { "33 < uid", false, false },
                { "34 > uid && sample.uid >= 33", true, false },
                { "uid != -1", true, false },
                { "uid < 0xffffffffffffffff", true, false },
                { "uid <= -1", false, false },
                { "cgroup ~ \"/system.slice/*\"", true, false },
                { "unit == \"docker-" ID ".scope\"", true, false },
                { "unit == \"nginx.service\"", false, false }, /* the innermost */
                { "container == \"" ID "\"", true, false },
                { "container == \"3dcb1a9f0e4c\"", true, false }, /* as docker ps has it */
                { "container != \"3dcb1a9f0e4c\"", false, false },
                { "container == \"3dcb1a9f0e4\"", false, false },
                { "container == \"\"", false, false },
                { "u8 == 200 && (uid == 0 || prev_comm == \"postgres\")", true, true },
                { "u8 == 201 || uid == 33", true, false },
                { "!(u8 == 201 || uid == 33)", false, true },
        };
        Rig *r = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const Process unknown = { .pid = 5 };

                if (holds_for(r, rows[i].expression, &r->process) != rows[i].holds ||
                    holds_for(r, rows[i].expression, NULL) != rows[i].of_unknown ||
                    holds_for(r, rows[i].expression, &unknown) != rows[i].of_unknown)
                        fail_msg("wrong: %s", rows[i].expression);
        }
}

static void test_no_container(void **state) {
        Rig *r = *state;
        Process host = { .pid = 7, .cgroup = take(r, "/user.slice") };

        assert_true(holds_for(r, "container == \"\"", &host));
        assert_true(holds_for(r, "container != \"3dcb1a9f0e4c\"", &host));
        assert_false(holds_for(r, "uid == 0 || exe ~ \"*\"", &host)); /* of which nothing is known */
        text_table_give(&r->texts, host.cgroup);
}

typedef struct Written {
        char text[FILTER_MAX_TEXT];
        size_t length;
        unsigned n_leaves, seed;
} Written;

static void put(Written *w, const char *text) {
        w->length += (size_t)snprintf(w->text + w->length, sizeof(w->text) - w->length, "%s", text);
}

/*
 * The thread's name: a reader's own (here "nginx") is not asked, unless it is sure of it; then the dispatcher's is not. One that is
 * not known is empty.
 */
static void test_comm(void **state) {
        static const struct {
                const char *expression;
                bool of_reader, of_dispatcher, of_unknown;
        } rows[] = {
                { "comm == \"nginx\"", true, false, false },
                { "\"ngi*\" != sample.comm", false, true, true },
                { "!(comm == \"sh\")", true, false, true },
                { "u8 == 201 && comm == \"sh\"", false, false, false },
                { "u8 == 200 && comm == \"sh\"", false, true, false },
                { "comm == \"a\" || comm ~ \"s?\" || uid == 34", false, true, false },
                { "comm ~ \"*\" && comm != \"sh\" && !(comm == \"a\" || comm == \"b\")", true, false, true },
                { "comm == \"nginx\" && uid == 33", true, false, false },
                { "comm == \"sh\" || sample.comm == \"sh\"", false, true, false },
                { "comm == \"sh\" && pid", false, true, false },
                { "comm != prev_comm && comm == \"sh\"", false, true, false },
        };
        Rig *r = *state;
        const Task sh = { .process = &r->process, .comm = "sh" };
        const Task unknown = { .process = &r->process };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                r->record.is_comm_sure = true;
                if (holds_for_task(r, rows[i].expression, &sh) != rows[i].of_reader)
                        fail_msg("wrong of a reader that knows: %s", rows[i].expression);
                r->record.is_comm_sure = false;
                if (holds_for_task(r, rows[i].expression, &sh) != rows[i].of_dispatcher)
                        fail_msg("wrong of the dispatcher: %s", rows[i].expression);
                if (holds_for_task(r, rows[i].expression, &unknown) != rows[i].of_unknown)
                        fail_msg("wrong of one without a name: %s", rows[i].expression);
        }
}

/* Which readers still ask for names, and which samples they keep to themselves. */
static void test_who_asks_comm(void **state) {
        static const struct {
                const char *expression;
                bool by_time, needs_comm, goes_on;
        } rows[] = {
                { "comm == \"sh\"", false, true, false },
                { "comm == \"sh\"", true, false, true },
                { "comm == \"sh\" && u8 == 201", true, false, false },
                { "comm == prev_comm", true, true, false },
                { "prev_comm == \"sh\"", true, false, false },
        };
        Rig *r = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(match_program_unrefp) MatchProgram *p = NULL;
                _cleanup_(filter_freep) Filter *f = NULL;

                assert_int_equal(filter_parse(rows[i].expression, &f, NULL), 0);
                if (rows[i].by_time)
                        filter_ask_for_comm(f);
                assert_int_equal(filter_compile(f, r->plan, NULL, &p, NULL), 0);
                if (match_needs_comm(p) != rows[i].needs_comm || match_ask(p, &r->record) != rows[i].goes_on ||
                    filter_asks_process(f) != (rows[i].goes_on || i == 2))
                        fail_msg("wrong: %s", rows[i].expression);
        }
}

/* As many as an expression can have, and as deep: one part, and 128 answers at once. */
static void test_many_names(void **state) {
        const Task last = { .comm = "n127" }, none = { .comm = "n128" };
        Written w = { .length = 0 };
        Rig *r = *state;

        for (int i = 0; i < 128; i++)
                w.length += (size_t)snprintf(w.text + w.length, sizeof(w.text) - w.length,
                                             i == 127 ? "comm == \"n%d\"" : i % 2 ? "comm ~ \"n*\" && (" : "comm == \"n%d\" || ", i);
        for (int i = 0; i < 63; i++)
                put(&w, ")");
        assert_true(holds_for_task(r, w.text, &last));
        assert_false(holds_for_task(r, w.text, &none));
}

/* ---- generated --------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text;
        bool holds, of_unknown;
} leaves[] = {
        { "u8 == 200", true, true },  { "s8 > 0", false, false },         { "prev_comm ~ \"post*\"", true, true },
        { "pid", true, true },        { "list[7] == 1", false, false },   { "uid == 33", true, false },
        { "uid > 33", false, false }, { "exe ~ \"*nginx\"", true, false }, { "exe != \"*nginx\"", false, false },
        { "unit == \"x\"", false, false }, { "comm == \"nginx\"", true, false },  { "comm != \"nginx\"", false, true },
};

/* Bit 0: what it is for the process; bit 1: what it is for one that is not known. */
static unsigned write_node(Written *w, unsigned depth) {
        unsigned kind = (unsigned)rand_r(&w->seed) % 4, a, b;
        size_t i = (unsigned)rand_r(&w->seed) % ARRAY_SIZE(leaves);

        if (depth == 0 || kind == 0) {
                w->n_leaves++;
                put(w, leaves[i].text);
                return leaves[i].holds | (unsigned)leaves[i].of_unknown << 1;
        }
        put(w, kind == 1 ? "!(" : "(");
        a = write_node(w, depth - 1);
        if (kind == 1) {
                put(w, ")");
                return ~a & 3;
        }
        put(w, kind == 2 ? " && " : " || ");
        b = write_node(w, depth - 1);
        put(w, ")");
        return kind == 2 ? a & b : a | b;
}

static void test_generated(void **state) {
        Written w = { .seed = 1 };
        Rig *r = *state;
        unsigned n = 0, n_true = 0;

        while (n < 5000) {
                unsigned expected;
                bool asks;

                w.length = w.n_leaves = 0;
                expected = write_node(&w, 5);
                asks = strstr(w.text, "uid") || strstr(w.text, "exe") || strstr(w.text, "unit") || strstr(w.text, " comm ") ||
                       strstr(w.text, "(comm ");
                if (!asks || w.n_leaves > CONDITION_PARTS)
                        continue;
                if (holds_for(r, w.text, &r->process) != (expected & 1) || holds_for(r, w.text, NULL) != expected >> 1)
                        fail_msg("wrong: %s", w.text);
                n++;
                n_true += expected & 1;
        }
        assert_in_range(n_true, 500, 4500);
}

/* An event has a field of its own that is called so: readers answer it, and `sample.` is the process's all the same. */
static void test_own_field(void **state) {
        _cleanup_(process_condition_freep) ProcessCondition *c = NULL;
        _cleanup_(match_program_unrefp) MatchProgram *p = NULL;
        _cleanup_(filter_freep) Filter *f = NULL;
        _cleanup_(plan_unrefp) Plan *plan = plan_new(8, "test", "own");
        const uint8_t raw[] = { 5, 0, 0, 0 };
        Record record = { .raw = raw, .raw_size = sizeof(raw), .comm = "x" };
        PlanField *own = plan_add_field(plan, "uid", "");
        Rig *r = *state;
        ConditionWord word;

        *own = (PlanField){ .name = own->name, .type = own->type, .kind = FIELD_UNSIGNED, .place = PLACE_FIXED, .element_size = 4,
                            .count = 1 };
        plan->min_size = sizeof(raw);
        assert_int_equal(filter_parse("uid == 5 && sample.uid == 33", &f, NULL), 0);
        assert_int_equal(filter_compile(f, plan, NULL, &p, NULL), 0);
        assert_int_equal(process_condition_new(f, &c, NULL), 0);
        word = match_run_parts(p, &record, 0);
        assert_int_equal(word.known, 1);
        assert_int_equal(word.holds, 1);
        assert_true(process_condition_holds(c, &word, &(Task){ .process = &r->process }));
        word.holds = 0;
        assert_false(process_condition_holds(c, &word, &(Task){ .process = &r->process }));
}

static void test_mistakes(void **state) {
        static const struct {
                const char *expression;
                unsigned position;
                const char *text;
        } rows[] = {
                { "uid", 1, "only be compared with a number" },     { "u8 == 1 && !uid", 13, "only be compared with a number" },
                { "uid == u32", 1, "only be compared with a number" }, { "uid & 1 == 0", 1, "only be compared with a number" },
                { "exe == comm", 1, "only be compared with a text in quotes" }, { "comm == exe", 9, "only be compared with a text in quotes" },
                { "exe == 5", 8, "put a text into quotes" },  { "exe < prev_comm", 5, "not with <" },
                { "uid ~ \"3*\"", 1, "~ compares texts" },       { "uid == \"root\"", 8, "found a text where a number is needed: `id -u NAME` prints that of a user" },
                { "exe[1] == \"a\"", 1, "is not an array" },         { "exe", 1, "is a text: compare it" },
        };
        Rig *r = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(filter_freep) Filter *f = NULL;
                Explanation e = EXPLANATION_NULL;
                MatchProgram *p;

                if (filter_parse(rows[i].expression, &f, &e) != 0)
                        fail_msg("%s: %s", rows[i].expression, e.text);
                assert_int_equal(filter_compile(f, r->plan, NULL, &p, &e), REFUSED_INVALID);
                if (!strstr(e.text, rows[i].text) || e.position != rows[i].position)
                        fail_msg("%s: %u: %s", rows[i].expression, e.position, e.text);
        }
}

static void test_too_many_parts(void **state) {
        _cleanup_(filter_freep) Filter *f = NULL;
        Explanation e = EXPLANATION_NULL;
        ProcessCondition *c;
        Written w = { .length = 0 };
        Rig *r = *state;
        MatchProgram *p;

        for (int i = 0; i <= CONDITION_PARTS; i++)
                put(&w, i == 0 ? "uid == 1" : " || uid == 1");
        assert_int_equal(filter_parse(w.text, &f, NULL), 0);
        assert_int_equal(filter_compile(f, r->plan, NULL, &p, &e), REFUSED_INVALID);
        assert_non_null(strstr(e.text, "at most 32 parts"));
        assert_int_equal(process_condition_new(f, &c, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-expression");
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void append_item(Batch *b, nsec_t time, const SubscriptionSet *set, uint64_t conditional, size_t length) {
        const size_t at = b->n_entries;
        size_t room;

        memset(batch_room(b, &room), 0x5a, length);
        batch_append_set(b, time, set, 1, 7, length);
        batch_mark_conditional(b, at, conditional);
        FOR_EACH_BIT(group, set->groups & conditional)
                FOR_EACH_BIT(bit, set->masks[group]) {
                        const ConditionWord word = { .number = (uint32_t)(group * BATCH_BITS + bit), .known = (uint32_t)time,
                                                     .holds = (uint32_t)(group + bit) };

                        batch_add_word(b, &word);
                }
}

static void check_words(const Batch *b, const BatchEntry *e) {
        size_t at = 0;

        FOR_EACH_BIT(bit, e->mask) {
                ConditionWord word = batch_find_word(b, e, (uint32_t)(entry_group(e) * BATCH_BITS + bit), &at);

                assert_int_equal(word.known, e->time);
                assert_int_equal(word.holds, entry_group(e) + bit);
        }
}

/* An item of a plain group and of two conditional ones, then another; both are moved, and only the second. */
static void test_words(void **state) {
        const uint64_t conditional = 3ULL << (BATCH_GROUPS - 2);
        SubscriptionSet set = { .groups = 0 };

        (void)state;
        subscription_set_add(&set, 0);
        subscription_set_add(&set, SUBSCRIPTIONS_MAX - 1);
        subscription_set_add(&set, SUBSCRIPTIONS_MAX - 3);
        subscription_set_add(&set, SUBSCRIPTIONS_MAX - BATCH_BITS - 5);
        for (size_t n_moved = 3; n_moved <= 6; n_moved += 3) {
                _cleanup_(batch_freep) Batch *b = batch_new(0), *to = batch_new(0);

                batch_reset(b, 1);
                batch_reset(to, 1);
                append_item(b, 10, &set, conditional, 100);
                append_item(b, 20, &set, conditional, 33);
                batch_seal(b);
                batch_move_last(b, n_moved, to);
                assert_int_equal(to->n_entries, n_moved);
                for (size_t i = 0; i < n_moved; i++) {
                        const BatchEntry *e = &to->entries[i];

                        assert_int_equal(entry_is_conditional(e), i % 3 > 0);
                        assert_int_equal(to->arena[entry_offset(e)], 0x5a);
                        if (i % 3 > 0)
                                check_words(to, e);
                }
                for (size_t i = 0; i < b->n_entries; i++)
                        if (i % 3 > 0)
                                check_words(b, &b->entries[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_comparisons, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_samples, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_container, setup, teardown),
                cmocka_unit_test_setup_teardown(test_comm, setup, teardown),
                cmocka_unit_test_setup_teardown(test_who_asks_comm, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_names, setup, teardown),
                cmocka_unit_test_setup_teardown(test_generated, setup, teardown),
                cmocka_unit_test_setup_teardown(test_own_field, setup, teardown),
                cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_many_parts, setup, teardown),
                cmocka_unit_test(test_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
