/* Sums of samples that a test makes of words, and what report prints of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/report/print.h"

#define TEXT(s) ((perfd_text){ .bytes = (s), .length = sizeof(s) - 1 })

typedef struct Rig {
        TextIds texts;
        FrameIds frames;
        SumsOptions options;
        Sums sums, old;
        Perfctl p;
        ReportForm form;
        Dimension keys[3];
        FrameName names[32];
        size_t n_names;
} Rig;

static inline void rig_init(Rig *r, const char *const *keys) {
        memset(r, 0, sizeof(*r));
        text_ids_init(&r->texts);
        frame_ids_init(&r->frames, &r->texts);
        r->options.keys = r->keys;
        for (size_t i = 0; keys[i]; i++)
                assert_true(dimension_init(&r->keys[r->options.n_keys++], keys[i]));
}

/* Behind the options. */
static inline void rig_begin(Rig *r) {
        sums_init(&r->sums, &r->options, &r->texts, &r->frames);
        sums_init(&r->old, &r->options, &r->texts, &r->frames);
}

static inline void rig_deinit(Rig *r) {
        sums_deinit(&r->sums);
        sums_deinit(&r->old);
        filters_deinit(&r->options.filters);
        for (size_t i = 0; i < r->options.n_keys; i++)
                dimension_deinit(&r->keys[i]);
        for (size_t i = 0; i < r->n_names; i++) {
                free((char *)r->names[i].dso.bytes);
                free((char *)r->names[i].symbol.bytes);
        }
        frame_ids_deinit(&r->frames);
        text_ids_deinit(&r->texts);
}

#define KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* As those of a FrameNames: one for each function. */
static inline const FrameName *name_of(Rig *r, const char *dso, const char *symbol) {
        size_t i = 0;

        for (; i < r->n_names; i++)
                if (strcmp(r->names[i].dso.bytes, dso) == 0 && strcmp(r->names[i].symbol.bytes, symbol) == 0)
                        return &r->names[i];
        assert_true(i < sizeof(r->names) / sizeof(*r->names));
        r->names[r->n_names++] = (FrameName){ .dso = { .bytes = strdup(dso), .length = strlen(dso) },
                                              .symbol = { .bytes = strdup(symbol), .length = strlen(symbol) } };
        return &r->names[i];
}

static inline uint32_t frame(Rig *r, const char *dso, const char *symbol, uint64_t address) {
        return frame_ids_add(&r->frames, &(NamedFrame){ .ip = address, .address = address, .name = name_of(r, dso, symbol) }, NULL);
}

/* A stack from its innermost frame on: "c b a", all in one file; each has an ip of its own. comm: the first key, if it is one. */
static inline void add(Rig *r, Sums *s, const char *comm, uint64_t period, const char *stack) {
        char *copy = strdup(stack), *rest = copy, *word;
        uint32_t frames[16];
        size_t n = 0;

        while ((word = strsep(&rest, " ")))
                if (*word) {
                        frames[n] = frame(r, "/bin/x", word, (uint64_t)word[0] * 16 + n);
                        n++;
                }
        if (r->keys[0].kind == DIMENSION_COMM)
                s->key[0] = text_ids_add(&r->texts, (perfd_text){ .bytes = comm, .length = strlen(comm) }, false);
        assert_true(sums_add(s, sums_group(s, TEXT("cpu-clock"), 0), true, period, frames, n));
        free(copy);
}

static inline const char *print_all(Rig *r, bool has_old, const ShownLimits *limits, bool is_json) {
        static char printed[OUTPUT_SIZE + 1];
        static Output o;
        Shown shown;

        sums_finish(&r->sums);
        sums_finish(&r->old);
        output_init(&o, -1);
        shown_init(&shown, &r->sums, has_old ? &r->old : NULL, limits);
        if (is_json)
                report_print_json(&shown, &o);
        else
                report_print_text(&shown, &o, &r->form);
        shown_deinit(&shown);
        memcpy(printed, o.bytes, o.n);
        printed[o.n] = '\0';
        return printed;
}

/* Its rows, without the lines before them. */
static inline const char *print(Rig *r, bool has_old, const ShownLimits *limits, bool is_json) {
        const char *at = print_all(r, has_old, limits, is_json);

        while (at[0] == '#')
                at = strchr(at, '\n') + 1;
        return at;
}

static const ShownLimits all = { .top = 0 };
