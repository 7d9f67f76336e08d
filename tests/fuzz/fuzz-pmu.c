/*
 * The texts of a PMU: lines "NAME FORMAT" as in format/, an empty line, a line as in events/, and what a user says, in
 * the same form. Whatever they are, only bits of formats that were asked for, or whole words, come out.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/pmu/terms.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static void check_refusal(int r, const Explanation *e) {
        MUST(r == REFUSED_INVALID || r == REFUSED_NOT_FOUND || r == REFUSED_UNSUPPORTED);
        MUST(e->reason && e->text[0]);
}

static bool is_word(const char *name) {
        for (size_t i = 0; pmu_terms_word(i); i++)
                if (strcmp(pmu_terms_word(i), name) == 0)
                        return true;
        return false;
}

/* All bits that these terms may set; everything if one of them is a whole word. */
static uint64_t allowed(const PmuTerms *t, const EventTerm *terms, size_t n, unsigned word) {
        uint64_t mask = 0;

        for (size_t i = 0; i < n; i++) {
                const PmuFormat *f = pmu_formats_find(t->formats, terms[i].name);

                if (is_word(terms[i].name))
                        return UINT64_MAX;
                if (f && f->word == word)
                        mask |= f->mask;
        }
        return mask;
}

/* A field that the user gave alone reads back as the value that he gave. */
static void check_value(const PmuFormat *f, const EventTerm *term, const uint64_t *words) {
        uint64_t value = 0, at = 1;

        for (unsigned bit = 0; bit < 64; bit++)
                if (f->mask >> bit & 1) {
                        value |= words[f->word] >> bit & 1 ? at : 0;
                        at <<= 1;
                }
        MUST(value == (term->text ? term->value : 1));
}

static void apply(const PmuTerms *t) {
        PmuEvent event = { .scale = 1 };
        Explanation e = EXPLANATION_NULL;
        int r = pmu_terms_apply(t, &event, &e);
        const uint64_t words[] = { event.config, event.config1, event.config2, event.config3 };

        if (r != 0)
                check_refusal(r, &e);
        for (unsigned i = 0; i < 4; i++)
                MUST((words[i] & ~(allowed(t, t->alias, t->n_alias, i) | allowed(t, t->terms, t->n_terms, i))) == 0);
        if (r == 0 && t->n_terms == 1 && !is_word(t->terms[0].name))
                check_value(pmu_formats_find(t->formats, t->terms[0].name), &t->terms[0], words);
        pmu_event_deinit(&event);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_free_ char *copy = strndup((const char *)bytes, length);
        _cleanup_(pmu_formats_deinit) PmuFormats formats = PMU_FORMATS_NULL;
        PmuTerms t = { .pmu = "fuzzed", .formats = &formats };
        EventTerm *alias = NULL, *terms = NULL;
        char *rest = copy, *line;
        Explanation e = EXPLANATION_NULL;
        int r = 0;

        MUST(copy);
        while ((line = strsep(&rest, "\n")) && *line) {
                char *name = strsep(&line, " ");
                PmuFormat f;

                if (!line || pmu_formats_find(&formats, name) || formats.n > 64)
                        continue;
                MUST(pmu_format_parse(line, &f) == false || (f.mask != 0 && f.word < 4));
                MUST(pmu_formats_add(&formats, name, line) == 0);
        }
        line = strsep(&rest, "\n");
        if (line) {
                r = pmu_terms_parse(line, "alias", &alias, &t.n_alias, &e);
                MUST(r >= 0);
        }
        line = r == 0 ? strsep(&rest, "\n") : NULL;
        if (line)
                r = pmu_terms_parse(line, "user", &terms, &t.n_terms, &e);
        t.alias = alias;
        t.terms = terms;
        if (r == 0)
                apply(&t);
        else
                check_refusal(r, &e);
        pmu_terms_free(alias, t.n_alias);
        pmu_terms_free(terms, t.n_terms);
        return 0;
}
