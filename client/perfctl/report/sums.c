/*
 * Which rows a sample is in: without children that of its innermost frame; with them that of each frame on its stack, once, from the
 * outermost on. So of a function that calls itself the first call has the calls below it. A stack is taken apart once, at the end, for all
 * samples that have it: until then a sample costs one look into a table, however deep its stack is.
 *
 * No sum of a part is more than that of all samples: it is the only one whose overflow is looked for.
 */
#include "client/perfctl/report/sums.h"

#include <stdlib.h>
#include <string.h>

void sums_init(Sums *s, SumsOptions *options, TextIds *texts, FrameIds *frames) {
        *s = (Sums){ .options = options, .texts = texts, .frames = frames };
        s->key = must_have(calloc(options->n_keys + 1, sizeof(*s->key)));
        stack_ids_init(&s->stacks);
        for (size_t i = 0; i < options->n_keys; i++) {
                s->has_frame_keys |= dimension_is_of_frame(&options->keys[i]);
                s->has_line_key |= dimension_is_of_line(&options->keys[i]);
                s->has_symbol_key |= options->keys[i].kind == DIMENSION_SYMBOL;
        }
}

void sums_deinit(Sums *s) {
        for (size_t i = 0; i < s->n_groups; i++) {
                rows_deinit(&s->groups[i].stacks);
                rows_deinit(&s->groups[i].rows);
                call_tree_deinit(&s->groups[i].calls);
                free(s->groups[i].row_below);
        }
        stack_ids_deinit(&s->stacks);
        free(s->groups);
        free(s->key);
        *s = (Sums){ .groups = NULL };
}

size_t sums_frames_needed(const Sums *s, size_t n_frames) {
        if (s->options->has_children || s->options->has_graph)
                return n_frames;
        return n_frames > 0 && (s->options->filters.has_frames || s->has_frame_keys) ? 1 : 0;
}

SumsGroup *sums_group(Sums *s, perfd_text event, uint32_t number) {
        SumsGroup *g = s->groups + s->last;
        uint32_t id;

        if (s->n_groups > 0 && (g->event == ID_NONE || (g->number == number && text_ids_is(s->texts, g->event, event))))
                return g;
        s->last_event = NULL;
        id = s->options->is_of_all ? ID_NONE : text_ids_add(s->texts, event, false);
        for (s->last = 0; s->last < s->n_groups; s->last++)
                if (s->groups[s->last].event == id && (id == ID_NONE || s->groups[s->last].number == number))
                        return &s->groups[s->last];
        s->groups = must_have(reallocarray(s->groups, s->n_groups + 1, sizeof(*s->groups)));
        g = &s->groups[s->n_groups++];
        *g = (SumsGroup){ .event = id, .number = number };
        rows_init(&g->stacks, s->options->n_keys + 1);
        rows_init(&g->rows, s->options->n_keys);
        return g;
}

/* The row of a frame of this sample; ID_NONE: it is not asked for. */
static uint32_t row_of(Sums *s, SumsGroup *g, const uint32_t *frame) {
        const FrameId *id = frame ? &s->frames->list[*frame] : NULL;

        if (s->options->filters.has_frames && !filters_take_frame(&s->options->filters, s->texts, id))
                return ID_NONE;
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (dimension_is_of_frame(&s->options->keys[i]))
                        s->key[i] = dimension_of_frame(&s->options->keys[i], id);
        return rows_get(&g->rows, s->key);
}

/* From there ways of the row begin, or with ID_NONE of none. */
static void put_row_below(SumsGroup *g, uint32_t row) {
        if (g->n_row_below == g->row_below_room) {
                g->row_below_room = 2 * g->row_below_room + 1024;
                g->row_below = must_have(reallocarray(g->row_below, g->row_below_room, sizeof(*g->row_below)));
        }
        g->row_below[g->n_row_below++] = row;
}

static void add_stack(Sums *s, SumsGroup *g, RowSum samples, const uint32_t *frames, size_t n_frames) {
        const size_t begin = g->n_row_below;

        for (size_t i = 0; s->options->has_graph && i < n_frames; i++)
                put_row_below(g, ID_NONE);
        rows_begin_turn(&g->rows);
        for (size_t i = n_frames; i-- > 0;) {
                const uint32_t row = row_of(s, g, &frames[i]);

                if (row == ID_NONE)
                        continue;
                if (rows_add_total(&g->rows, row, samples) && s->options->has_graph)
                        g->row_below[begin + i] = row;
                if (i == 0)
                        rows_add_self(&g->rows, row, samples);
        }
}

static void add_innermost(Sums *s, SumsGroup *g, RowSum samples, const uint32_t *frames, size_t n_frames) {
        const uint32_t row = row_of(s, g, n_frames > 0 ? frames : NULL);

        for (size_t i = 0; s->options->has_graph && i < n_frames; i++)
                put_row_below(g, i == 0 ? row : ID_NONE);
        if (row == ID_NONE)
                return;
        rows_begin_turn(&g->rows);
        rows_add_self(&g->rows, row, samples);
        (void)rows_add_total(&g->rows, row, samples);
}

bool sums_has_stacks(const Sums *s) {
        return s->options->has_children || s->options->has_graph;
}

uint32_t sums_stack(Sums *s, const uint32_t *frames, size_t n_frames) {
        return stack_ids_add(&s->stacks, frames, n_frames);
}

/* False: it is too much. */
static bool add_to_all(SumsGroup *g, uint64_t period) {
        if (__builtin_add_overflow(g->all.period, period, &g->all.period))
                return false;
        g->all.samples++;
        return true;
}

static void add_to_stack(Sums *s, SumsGroup *g, RowSum sample, uint32_t stack) {
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (dimension_is_of_frame(&s->options->keys[i]))
                        s->key[i] = DIMENSION_ABSENT;
        s->key[s->options->n_keys] = stack;
        rows_add_self(&g->stacks, rows_get(&g->stacks, s->key), sample);
}

bool sums_add(Sums *s, SumsGroup *g, bool is_taken, uint64_t period, const uint32_t *frames, size_t n_frames) {
        const RowSum sample = { .samples = 1, .period = period };

        if (!add_to_all(g, period))
                return false;
        if (is_taken && sums_has_stacks(s))
                add_to_stack(s, g, sample, sums_stack(s, frames, n_frames));
        else if (is_taken)
                add_innermost(s, g, sample, frames, n_frames);
        return true;
}

static void finish_group(Sums *s, SumsGroup *g) {
        for (uint32_t i = 0; i < g->stacks.n; i++) {
                const uint64_t *key = rows_key(&g->stacks, i);
                size_t n_frames;
                const uint32_t *frames = stack_ids_get(&s->stacks, (uint32_t)key[s->options->n_keys], &n_frames);

                memcpy(s->key, key, s->options->n_keys * sizeof(*key));
                if (s->options->has_children && n_frames > 0)
                        add_stack(s, g, g->stacks.list[i].self, frames, n_frames);
                else
                        add_innermost(s, g, g->stacks.list[i].self, frames, n_frames);
        }
        if (!s->options->has_graph)
                rows_deinit(&g->stacks);
}

void sums_finish(Sums *s) {
        for (size_t i = 0; i < s->n_groups; i++)
                finish_group(s, &s->groups[i]);
        if (!s->options->has_graph)
                stack_ids_deinit(&s->stacks);
}

/* A row that does not say which function it is of has its own below it, too. */
void sums_make_calls(Sums *s, SumsGroup *g, double percent, const bool *is_wanted) {
        const CallSource source = { .frames = s->frames, .stack_ids = &s->stacks, .stacks = &g->stacks, .row_below = g->row_below,
                                    .goes_in = s->options->has_children, .is_behind = s->has_symbol_key };
        const CallLimit limit = { .percent = percent, .all = g->all, .is_of_samples = s->options->is_of_all };

        call_tree_make(&g->calls, &source, &limit, is_wanted, g->rows.n);
        rows_deinit(&g->stacks);
        free(g->row_below);
        g->row_below = NULL;
}

/* Fills in the key. False: filters leave it out. */
static bool is_taken(Sums *s, const perfd_item *item, const char *event) {
        if (!filters_take_sample(&s->options->filters, s->texts, item, event))
                return false;
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (!dimension_is_of_frame(&s->options->keys[i]))
                        s->key[i] = dimension_of_sample(&s->options->keys[i], s->texts, item, event);
        return true;
}

/* A recording has one name for a number: where that stands says which of them it is. */
static SumsGroup *group_of(Sums *s, const char *event, uint32_t number) {
        SumsGroup *g;

        if (number > 0 && number == s->last_number && event == s->last_event)
                return s->groups + s->last;
        g = sums_group(s, (perfd_text){ .bytes = event, .length = strlen(event) }, number);
        s->last_event = event;
        s->last_number = number;
        return g;
}

bool sums_take(Sums *s, const perfd_item *item, const char *event, uint32_t number, uint64_t period, const uint32_t *frames, size_t n_frames) {
        SumsGroup *g = group_of(s, event, number);

        return sums_add(s, g, is_taken(s, item, event), period, frames, n_frames);
}

bool sums_take_stack(Sums *s, const perfd_item *item, const char *event, uint32_t number, uint64_t period, uint32_t stack) {
        SumsGroup *g = group_of(s, event, number);

        if (!add_to_all(g, period))
                return false;
        if (is_taken(s, item, event))
                add_to_stack(s, g, (RowSum){ .samples = 1, .period = period }, stack);
        return true;
}
