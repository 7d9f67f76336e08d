/* Texts are ids, and few: each is compared with the globs once. */
#include "client/perfctl/samples/filter.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/print/list-text.h"
#include "client/perfctl/base/quantity.h"

enum { VERDICT_TAKEN = 1, VERDICT_REFUSED };

static bool parse_range(const char *word, NumberRange *ret) {
        const char *dash = strchr(word, '-');
        char *first = must_have(strndup(word, dash ? (size_t)(dash - word) : strlen(word)));
        bool fits = quantity_parse_number(first, &ret->first);

        ret->last = ret->first;
        if (fits && dash)
                fits = quantity_parse_number(dash + 1, &ret->last) && ret->first <= ret->last;
        free(first);
        return fits;
}

/* One, or both ends of a range, are numbers, and larger than records have room for. */
static bool is_too_large(const char *word) {
        const size_t n = strlen(word);
        const char *dash = memchr(word, '-', n);
        bool is = false;

        for (const char *at = word; at; at = at == word && dash ? dash + 1 : NULL) {
                char *text = must_have(strndup(at, at == word && dash ? (size_t)(dash - word) : n));
                uint64_t number;

                is |= quantity_is_too_large(text) || (quantity_parse_number(text, &number) && number > UINT32_MAX);
                free(text);
        }
        return is;
}

static int parse_ranges(const Perfctl *p, Filter *f, const char *option) {
        f->ranges = must_have(calloc(f->n_words, sizeof(*f->ranges)));
        for (size_t i = 0; i < f->n_words; i++)
                if (is_too_large(f->words[i]))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is too large: the largest %s is %" PRIu32, option, f->words[i],
                                            f->dimension.text, UINT32_MAX);
                else if (!parse_range(f->words[i], &f->ranges[i]))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: %s is a number: '%s' is neither one nor a range, as in 0-3,8", option,
                                            f->dimension.text, f->words[i]);
        return 0;
}

int filters_add(const Perfctl *p, Filters *f, const char *option, const char *name, const char *words) {
        Filter *added;

        f->list = must_have(reallocarray(f->list, f->n + 1, sizeof(*f->list)));
        added = &f->list[f->n++];
        *added = (Filter){ .name = must_have(strdup(name)) };
        added->words = list_split(words, &added->n_words);
        if (!dimension_init(&added->dimension, added->name))
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a field, nor an element of one, as args[2], nor any of " DIMENSION_NAMES,
                                    option, name);
        for (size_t i = 0; i < added->n_words; i++)
                if (!*added->words[i])
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' has an empty word", option, words);
        f->has_frames |= dimension_is_of_frame(&added->dimension);
        f->has_lines |= dimension_is_of_line(&added->dimension);
        return dimension_is_number(&added->dimension) ? parse_ranges(p, added, option) : 0;
}

int filters_add_pair(const Perfctl *p, Filters *f, const char *option, const char *pair) {
        const char *equals = strchr(pair, '=');
        char *name;
        int r;

        if (!equals || equals == pair)
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not KEY=VALUE,..., as in next_comm=bash", option, pair);
        name = must_have(strndup(pair, (size_t)(equals - pair)));
        r = filters_add(p, f, option, name, equals + 1);
        free(name);
        return r;
}

int filters_add_options(const Perfctl *p, Filters *f, const char *const *names, size_t n) {
        size_t n_only;
        const char *const *only = perfctl_get_all(p, "only", &n_only);
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                if (perfctl_get(p, names[i]))
                        r = filters_add(p, f, names[i], names[i], perfctl_get(p, names[i]));
        for (size_t i = 0; i < n_only && r == 0; i++)
                r = filters_add_pair(p, f, "only", only[i]);
        return r;
}

void filters_deinit(Filters *f) {
        for (size_t i = 0; i < f->n; i++) {
                dimension_deinit(&f->list[i].dimension);
                free(f->list[i].name);
                free(f->list[i].words);
                free(f->list[i].ranges);
                free(f->list[i].verdicts);
        }
        free(f->list);
        *f = (Filters){ .list = NULL };
}

static bool takes_number(const Filter *f, uint64_t number) {
        for (size_t i = 0; i < f->n_words; i++)
                if (number >= f->ranges[i].first && number <= f->ranges[i].last)
                        return true;
        return false;
}

/* A file is meant by its path, or by its name alone, as perf-report(1) has it. */
static bool takes_text(const Filter *f, perfd_text text) {
        char *copy = must_have(strndup(text.bytes, text.length));
        const char *slash = f->dimension.kind == DIMENSION_DSO || dimension_is_of_line(&f->dimension) ? strrchr(copy, '/') : NULL;
        bool takes = false;

        for (size_t i = 0; i < f->n_words && !takes; i++)
                takes = fnmatch(f->words[i], copy, 0) == 0 || (slash && fnmatch(f->words[i], slash + 1, 0) == 0) ||
                        strcmp(f->words[i], copy) == 0; /* "[kernel.kallsyms]" is a glob of something else */
        free(copy);
        return takes;
}

static bool takes_id(Filter *f, const TextIds *texts, uint32_t id) {
        if (id >= f->n_verdicts) {
                const uint32_t n = texts->n + 64;

                f->verdicts = must_have(realloc(f->verdicts, n));
                memset(f->verdicts + f->n_verdicts, 0, n - f->n_verdicts);
                f->n_verdicts = n;
        }
        if (f->verdicts[id] == 0)
                f->verdicts[id] = takes_text(f, text_ids_get(texts, id)) ? VERDICT_TAKEN : VERDICT_REFUSED;
        return f->verdicts[id] == VERDICT_TAKEN;
}

static bool takes(Filter *f, const TextIds *texts, uint64_t value) {
        if (value == DIMENSION_ABSENT)
                return false;
        return dimension_is_number(&f->dimension) ? takes_number(f, value) : takes_id(f, texts, (uint32_t)value);
}

bool filters_take_sample(Filters *f, TextIds *texts, const perfd_item *item, const char *event) {
        for (size_t i = 0; i < f->n; i++)
                if (!dimension_is_of_frame(&f->list[i].dimension) &&
                    !takes(&f->list[i], texts, dimension_of_sample(&f->list[i].dimension, texts, item, event)))
                        return false;
        return true;
}

bool filters_take_frame(Filters *f, const TextIds *texts, const FrameId *frame) {
        for (size_t i = 0; i < f->n; i++)
                if (dimension_is_of_frame(&f->list[i].dimension) &&
                    !takes(&f->list[i], texts, dimension_of_frame(&f->list[i].dimension, frame)))
                        return false;
        return true;
}
