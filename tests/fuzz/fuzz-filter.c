/*
 * An expression, and behind its zero byte raw bytes to run it on (those that are missing come from a good sample). What
 * is refused must say where and why; what is not must be the same after being spelled in the normal way.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/route/match-program.h"
#include "daemon/route/process-condition.h"
#include "tests/unit/filter-plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static int parse(const char *text, Filter **ret) {
        Explanation e = EXPLANATION_NULL;
        int k = filter_parse(text, ret, &e);

        MUST(k >= 0); /* the inputs are small: there is memory */
        if (k != 0)
                MUST(k == REFUSED_INVALID && strcmp(e.reason, "bad-expression") == 0 && e.text[0] && e.position >= 1 &&
                     e.position <= strnlen(text, FILTER_MAX_TEXT) + 1);
        return k;
}

/* What only the dispatcher can decide: what it gives to a stream, a reader has given to it. */
static bool decide(const Filter *f, const MatchProgram *p, const Record *r) {
        Process process = { .uid = 33, .has_uid = true };
        const Task task = { .process = &process, .comm = "nginx" };
        const ConditionWord word = match_run_parts(p, r, 0);
        _cleanup_(process_condition_freep) ProcessCondition *c = NULL;
        bool holds;

        MUST(process_condition_new(f, &c, NULL) == 0);
        holds = process_condition_holds(c, &word, &task);
        MUST(match_run(p, r) || (!holds && !process_condition_holds(c, &word, NULL)));
        return holds;
}

/* 0, 1, or 2: refused; which of several mistakes is found first depends on the spelling */
static int run(const char *text, const Filter *f, const Plan *plan, const Record *r) {
        _cleanup_(match_program_unrefp) MatchProgram *p = NULL;
        Explanation e = EXPLANATION_NULL;
        int k = filter_compile(f, plan, NULL, &p, &e);

        MUST(k >= 0);
        if (k == 0) {
                MUST(match_ask(p, r) == match_run(p, r));
                MUST(match_is_partial(p) == filter_asks_process(f));
                if (match_is_partial(p))
                        return decide(f, p, r);
                return match_run(p, r);
        }
        MUST(e.text[0] && e.position >= 1 && e.position <= strlen(text));
        MUST(strcmp(e.reason, k == REFUSED_INVALID ? "bad-expression" : "unknown-field") == 0);
        return 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static Plan *plan;
        size_t n_text = strnlen((const char *)bytes, length), n_raw = length - n_text - (n_text < length);
        size_t raw_size = n_raw > offsetof(SampleBytes, rest) ? n_raw : offsetof(SampleBytes, rest);
        _cleanup_free_ char *text = NULL, *canonical = NULL, *again = NULL;
        _cleanup_(filter_freep) Filter *f = NULL, *same = NULL;
        _cleanup_free_ uint8_t *raw = NULL;
        SampleBytes sample;
        Record r;

        if (n_raw == 0)
                raw_size = sizeof(sample);
        if (!plan)
                plan = filter_plan_new();
        MUST(text = strndup((const char *)bytes, n_text));
        if (parse(text, &f) != 0)
                return 0;
        if (length % 2)
                filter_ask_for_comm(f); /* a stream in the order of time */

        MUST(raw = calloc(1, raw_size));
        sample_init(&sample);
        memcpy(raw, &sample, raw_size < sizeof(sample) ? raw_size : sizeof(sample));
        if (n_raw > 0)
                memcpy(raw, bytes + n_text + 1, n_raw);
        r = sample_record(&sample);
        r.raw = raw;
        r.raw_size = (uint32_t)raw_size;

        MUST(canonical = filter_canonical(f));
        if (strlen(canonical) <= FILTER_MAX_TEXT) {
                MUST(parse(canonical, &same) == 0);
                if (length % 2)
                        filter_ask_for_comm(same);
                MUST(again = filter_canonical(same));
                MUST(strcmp(canonical, again) == 0);
                MUST(run(text, f, plan, &r) == run(canonical, same, plan, &r));
                MUST(run(text, f, NULL, &r) == run(canonical, same, NULL, &r));
        } else
                (void)run(text, f, plan, &r);
        return 0;
}
