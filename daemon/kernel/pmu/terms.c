/*
 * Terms of PMU events. What the user says always wins over the events/ file, wherever it stands; of one origin, whole
 * words (config=) come before the fields that lie in them, as in perf. A value that does not fit is refused: cut bits
 * would count something else.
 */
#include "daemon/kernel/pmu/terms.h"

#include "daemon/base/array.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Terms that every PMU has. */
typedef enum Word {
        WORD_CONFIG,
        WORD_CONFIG1,
        WORD_CONFIG2,
        WORD_CONFIG3,
        WORD_PERIOD,
        WORD_FREQ,
        WORD_NAME,
        _WORD_MAX,
} Word;

static const char *const words[_WORD_MAX] = { "config", "config1", "config2", "config3", "period", "freq", "name" };

const char *pmu_terms_word(size_t i) {
        return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static Word find_word(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(words[i], name) == 0)
                        return (Word)i;
        return _WORD_MAX;
}

static uint64_t *word_of(PmuEvent *event, unsigned word) {
        uint64_t *const all[] = { &event->config, &event->config1, &event->config2, &event->config3 };

        return all[word];
}

void pmu_formats_deinit(PmuFormats *f) {
        for (size_t i = 0; i < f->n; i++)
                free(f->items[i].name);
        free(f->items);
        *f = PMU_FORMATS_NULL;
}

/* A number below 64 at *text, which moves behind it. */
static bool take_bit(const char **text, unsigned *ret) {
        unsigned bit = 0;

        if (!isdigit((unsigned char)**text))
                return false;
        while (isdigit((unsigned char)**text) && bit < 64)
                bit = bit * 10 + (unsigned)(*(*text)++ - '0');
        *ret = bit;
        return bit < 64;
}

bool pmu_format_parse(const char *text, PmuFormat *ret) {
        PmuFormat format = { .word = 0 };

        if (strncmp(text, "config", 6) != 0)
                return false;
        text += 6;
        if (*text >= '1' && *text <= '3')
                format.word = (unsigned)(*text++ - '0');
        if (*text != ':')
                return false;
        do {
                unsigned first, last;

                text++;
                if (!take_bit(&text, &first))
                        return false;
                last = first;
                if (*text == '-' && (text++, !take_bit(&text, &last) || last < first))
                        return false;
                format.mask |= (UINT64_MAX >> (63 - (last - first))) << first;
        } while (*text == ',');
        if (text[strspn(text, "\n")])
                return false;
        *ret = format;
        return true;
}

int pmu_formats_add(PmuFormats *f, const char *name, const char *text) {
        PmuFormat format = { .mask = 0 };

        (void)pmu_format_parse(text, &format); /* of another form: refused only if it is asked for */
        if (!ARRAY_ROOM(f->items, f->n))
                return error_origin(-ENOMEM);
        format.name = strdup(name);
        if (!format.name)
                return error_origin(-ENOMEM);
        f->items[f->n++] = format;
        return 0;
}

const PmuFormat *pmu_formats_find(const PmuFormats *f, const char *name) {
        for (size_t i = 0; i < f->n; i++)
                if (strcmp(f->items[i].name, name) == 0)
                        return &f->items[i];
        return NULL;
}

void pmu_terms_free(EventTerm *terms, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(terms[i].name);
                free(terms[i].text);
        }
        free(terms);
}

/* text[0, n): "name", "name=value". False: no memory. */
static bool term_init(const char *text, size_t n, EventTerm *ret) {
        const char *equals = memchr(text, '=', n);
        size_t n_name = equals ? (size_t)(equals - text) : n;
        char *end;

        ret->name = strndup(text, n_name);
        if (!ret->name || !equals)
                return ret->name != NULL;
        ret->text = strndup(equals + 1, n - n_name - 1);
        if (!ret->text)
                return false;
        errno = 0;
        if (isdigit((unsigned char)ret->text[0])) {
                ret->value = strtoull(ret->text, &end, ret->text[0] == '0' && ret->text[1] == 'x' ? 16 : 10);
                ret->is_number = *end == '\0' && errno == 0;
        }
        return true;
}

int pmu_terms_parse(const char *text, const char *where, EventTerm **ret, size_t *ret_n, Explanation *e) {
        size_t n_text = strcspn(text, "\n"), at = 0, n = 0;
        EventTerm *terms = NULL;

        while (at < n_text) {
                size_t n_term = strcspn(text + at, ",\n");

                if (n_term == 0 || text[at] == '=') {
                        pmu_terms_free(terms, n);
                        return refuse(e, REFUSED_UNSUPPORTED, "bad-pmu", "the kernel's events file of %s has %s, which perfd "
                                "does not know", QUOTE(where), QUOTE(text));
                }
                if (!ARRAY_ROOM(terms, n)) {
                        pmu_terms_free(terms, n);
                        return error_origin(-ENOMEM);
                }
                terms[n] = (EventTerm){ .position = 0 };
                if (!term_init(text + at, n_term, &terms[n++])) {
                        pmu_terms_free(terms, n);
                        return error_origin(-ENOMEM);
                }
                at += n_term;
                at += text[at] == ',';
        }
        *ret = terms;
        *ret_n = n;
        return 0;
}

/* `is_user`: the place in the event's text is known. */
static int refuse_term(Explanation *e, Refusal refusal, const EventTerm *term, bool is_user, const char *format, ...)
        __attribute__((format(printf, 5, 6)));

static int refuse_term(Explanation *e, Refusal refusal, const EventTerm *term, bool is_user, const char *format, ...) {
        char what[400];
        va_list ap;
        int r;

        va_start(ap, format);
        (void)vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        r = refuse(e, refusal, refusal == REFUSED_INVALID ? "bad-term" : "unknown-term", "%s", what);
        if (e && is_user)
                e->position = (unsigned)term->position + 1;
        return r;
}

/* "config:0-7,32-35" again, for messages. */
static char *format_text(const PmuFormat *f, char text[static 128]) {
        int at = snprintf(text, 128, f->word ? "config%u:" : "config:", f->word);
        const char *comma = "";

        for (unsigned bit = 0; bit < 64 && at < 120; bit++) {
                unsigned last = bit;

                if (!(f->mask >> bit & 1))
                        continue;
                while (last < 63 && f->mask >> (last + 1) & 1)
                        last++;
                at += snprintf(text + at, 128 - (size_t)at, last > bit ? "%s%u-%u" : "%s%u", comma, bit, last);
                comma = ",";
                bit = last;
        }
        return text;
}

static int apply_format(const PmuTerms *t, const PmuFormat *f, const EventTerm *term, bool is_user, PmuEvent *event,
                        Explanation *e) {
        unsigned n_bits = (unsigned)__builtin_popcountll(f->mask);
        uint64_t value = term->text ? term->value : 1, most, *word;

        if (n_bits == 0)
                return refuse(e, REFUSED_UNSUPPORTED, "bad-pmu", "the format of %s of %s has a form that perfd does"
                              " not know", QUOTE(term->name), QUOTE(t->pmu));
        most = UINT64_MAX >> (64 - n_bits);
        if (term->text && !term->is_number)
                return refuse_term(e, REFUSED_INVALID, term, is_user, "%s of %s is a number, not %s", QUOTE(term->name),
                                   QUOTE(t->pmu), strcmp(term->text, "?") == 0 && !is_user ? "'?': give one"
                                                                                           : QUOTE(term->text));
        if (value > most)
                return refuse_term(e, REFUSED_INVALID, term, is_user, "%s of %s has %u bit%s (%s), so its range is 0 to "
                        "0x%" PRIx64 ", and 0x%" PRIx64 " does not fit", QUOTE(term->name), QUOTE(t->pmu),
                                   n_bits,
                                   n_bits == 1 ? "" : "s", format_text(f, (char[128]){ 0 }), most, value);
        word = word_of(event, f->word);
        *word &= ~f->mask;
        for (uint64_t mask = f->mask; mask; mask &= mask - 1, value >>= 1)
                if (value & 1)
                        *word |= mask & -mask;
        return 0;
}

static int apply_word(const PmuTerms *t, Word word, const EventTerm *term, bool is_user, PmuEvent *event,
                      Explanation *e) {
        if (!term->text)
                return refuse_term(e, REFUSED_INVALID, term, is_user, "%s needs a value: %s=...", QUOTE(term->name),
                                   words[word]);
        if (word == WORD_NAME) {
                char *name = strdup(term->text);

                if (!name)
                        return error_origin(-ENOMEM);
                free(event->name);
                event->name = name;
                return 0;
        }
        if (!term->is_number)
                return refuse_term(e, REFUSED_INVALID, term, is_user, "%s is a number, not %s", QUOTE(term->name),
                                   QUOTE(term->text));
        if (word <= WORD_CONFIG3)
                *word_of(event, word) = term->value;
        else if (term->value == 0)
                return refuse_term(e, REFUSED_INVALID, term, is_user, "%s is at least 1", QUOTE(term->name));
        else if (word == WORD_PERIOD)
                event->period = term->value;
        else
                event->frequency = term->value;
        return 0;
}

static int refuse_unknown(const PmuTerms *t, const EventTerm *term, bool is_user, Explanation *e) {
        Nearest nearest = NEAREST_NULL;

        for (size_t i = 0; i < t->formats->n; i++)
                nearest_add(&nearest, term->name, t->formats->items[i].name);
        for (size_t i = 0; i < t->n_events; i++)
                nearest_add(&nearest, term->name, t->events[i]);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                nearest_add(&nearest, term->name, words[i]);
        return refuse_term(e, REFUSED_NOT_FOUND, term, is_user, "%s has no term %s%s", QUOTE(t->pmu), QUOTE(term->name),
                           HINT(&nearest));
}

/* The user says it himself, so what the events file says does not matter, such as the '?' of a parameter. */
static bool is_overridden(const PmuTerms *t, const char *name) {
        for (size_t i = 0; i < t->n_terms; i++)
                if (strcmp(t->terms[i].name, name) == 0 && name != t->alias_name)
                        return true;
        return false;
}

static int apply(const PmuTerms *t, const EventTerm *terms, size_t n, bool is_user, PmuEvent *event, Explanation *e) {
        for (int fields = 0; fields <= 1; fields++)
                for (size_t i = 0; i < n; i++) {
                        const EventTerm *term = &terms[i];
                        Word word = find_word(term->name);
                        const PmuFormat *f = word == _WORD_MAX ? pmu_formats_find(t->formats, term->name) : NULL;
                        int r = 0;

                        if (is_user ? term->name == t->alias_name : is_overridden(t, term->name))
                                continue;
                        if (!fields && word != _WORD_MAX)
                                r = apply_word(t, word, term, is_user, event, e);
                        else if (fields && f)
                                r = apply_format(t, f, term, is_user, event, e);
                        else if (fields && word == _WORD_MAX)
                                r = refuse_unknown(t, term, is_user, e);
                        for (size_t k = 0; k < i && r == 0 && is_user; k++)
                                if (strcmp(terms[k].name, term->name) == 0)
                                        r = refuse_term(e, REFUSED_INVALID, term, true, "%s is given twice",
                                                        QUOTE(term->name));
                        if (r != 0)
                                return r;
                }
        return 0;
}

int pmu_terms_apply(const PmuTerms *t, PmuEvent *event, Explanation *e) {
        int r = apply(t, t->alias, t->n_alias, false, event, e);

        if (is_overridden(t, words[WORD_PERIOD]) || is_overridden(t, words[WORD_FREQ]))
                event->period = event->frequency = 0;
        if (r == 0)
                r = apply(t, t->terms, t->n_terms, true, event, e);
        if (r == 0 && event->period && event->frequency)
                return refuse(e, REFUSED_INVALID, "bad-term", "a period and a frequency contradict each other");
        return r;
}
