/*
 * For pmu.c: from the texts of a PMU's format/ and events/ files, and a user's terms, to the words of an attr. Pure:
 * texts in, so that it can be tested and fuzzed without a PMU. Any thread.
 */
#pragma once

#include "daemon/kernel/pmu/pmu.h"

/* Which bits of config, config1, config2 or config3 a term fills, the least bit first. */
typedef struct PmuFormat {
        char *name;
        unsigned word; /* 0 to 3 */
        uint64_t mask;
} PmuFormat;

typedef struct PmuFormats {
        PmuFormat *items;
        size_t n;
} PmuFormats;

#define PMU_FORMATS_NULL ((PmuFormats){ .items = NULL })

void pmu_formats_deinit(PmuFormats *f);
/* "config:0-7,32-35", "config1:0-63", "config:23", perhaps a newline. False: it is something else. */
bool pmu_format_parse(const char *text, PmuFormat *ret);
/* `text` of the file format/NAME; of a form that is not known: mask is 0. -ENOMEM. */
int pmu_formats_add(PmuFormats *f, const char *name, const char *text);
const PmuFormat *pmu_formats_find(const PmuFormats *f, const char *name);

/* "event=0x3c,umask=0x01,inv", as a file of events/ says it; positions are 0. REFUSED_UNSUPPORTED "bad-pmu". */
int pmu_terms_parse(const char *text, const char *where, EventTerm **ret, size_t *ret_n, Explanation *e);
void pmu_terms_free(EventTerm *terms, size_t n);

/* What is known of the PMU while its terms are applied. */
typedef struct PmuTerms {
        const char *pmu;
        const PmuFormats *formats;
        char *const *events; /* names of its events/ files, for "did you mean" */
        size_t n_events;
        const EventTerm *alias; /* of the events/ file that was named, below what the user says */
        size_t n_alias;
        const EventTerm *terms;   /* the user's */
        size_t n_terms;
        const char *alias_name; /* the user's term that names the events/ file and is not applied; NULL: none */
} PmuTerms;

/* Into config to config3, period, frequency and name of a zeroed PmuEvent. Refusals as of pmu_resolve(). */
int pmu_terms_apply(const PmuTerms *t, PmuEvent *event, Explanation *e);
/* "period", "config1", ...: i from 0; NULL behind the last. */
const char *pmu_terms_word(size_t i);
