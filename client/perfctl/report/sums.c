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
        id = s->options->is_of_all ? ID_NONE : text_ids_add(s->texts, event, false);
        for (s->last = 0; s->last < s->n_groups; s->last++)
                if (s->groups[s->last].event == id && (id == ID_NONE || s->groups[s->last].number == number))
                        return &s->groups[s->last];
        s->groups = must_have(reallocarray(s->groups, s->n_groups + 1, sizeof(*s->groups)));
        g = &s->groups[s->n_groups++];
        *g = (SumsGroup){ .event = id, .number = number };
        rows_init(&g->stacks, s->options->n_keys + 1);
        rows_init(&g->rows, s->options->n_keys);
        call_tree_init(&g->calls);
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

/* Those that the function of frame 0 was called by, behind it itself if the row does not say which it is. */
static void add_callers(const Sums *s, SumsGroup *g, uint32_t row, RowSum samples, const uint32_t *frames, size_t n_frames) {
        uint32_t node = ID_NONE;

        for (size_t i = s->has_symbol_key ? 1 : 0; i < n_frames; i++)
                node = call_tree_add(&g->calls, row, node, frame_ids_function(s->frames, frames[i]), samples);
}

/* Those that the function of frame `at` called, the same. */
static void add_callees(const Sums *s, SumsGroup *g, uint32_t row, RowSum samples, const uint32_t *frames, size_t at) {
        uint32_t node = ID_NONE;

        for (size_t i = s->has_symbol_key ? at : at + 1; i-- > 0;)
                node = call_tree_add(&g->calls, row, node, frame_ids_function(s->frames, frames[i]), samples);
}

static void add_stack(Sums *s, SumsGroup *g, RowSum samples, const uint32_t *frames, size_t n_frames) {
        rows_begin_turn(&g->rows);
        for (size_t i = n_frames; i-- > 0;) {
                const uint32_t row = row_of(s, g, &frames[i]);

                if (row == ID_NONE)
                        continue;
                if (rows_add_total(&g->rows, row, samples) && s->options->has_graph)
                        add_callees(s, g, row, samples, frames, i);
                if (i == 0)
                        rows_add_self(&g->rows, row, samples);
        }
}

static void add_innermost(Sums *s, SumsGroup *g, RowSum samples, const uint32_t *frames, size_t n_frames) {
        const uint32_t row = row_of(s, g, n_frames > 0 ? frames : NULL);

        if (row == ID_NONE)
                return;
        rows_begin_turn(&g->rows);
        rows_add_self(&g->rows, row, samples);
        (void)rows_add_total(&g->rows, row, samples);
        if (s->options->has_graph)
                add_callers(s, g, row, samples, frames, n_frames);
}

bool sums_add(Sums *s, SumsGroup *g, bool is_taken, uint64_t period, const uint32_t *frames, size_t n_frames) {
        const RowSum sample = { .samples = 1, .period = period };

        if (__builtin_add_overflow(g->all.period, period, &g->all.period))
                return false;
        g->all.samples++;
        if (!is_taken)
                return true;
        if (!s->options->has_children && !s->options->has_graph) {
                add_innermost(s, g, sample, frames, n_frames);
                return true;
        }
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (dimension_is_of_frame(&s->options->keys[i]))
                        s->key[i] = DIMENSION_ABSENT;
        s->key[s->options->n_keys] = stack_ids_add(&s->stacks, frames, n_frames);
        rows_add_self(&g->stacks, rows_get(&g->stacks, s->key), sample);
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
        rows_deinit(&g->stacks);
}

void sums_finish(Sums *s) {
        for (size_t i = 0; i < s->n_groups; i++)
                finish_group(s, &s->groups[i]);
        stack_ids_deinit(&s->stacks);
}

bool sums_take(Sums *s, const perfd_item *item, const char *event, uint32_t number, uint64_t period, const uint32_t *frames, size_t n_frames) {
        SumsGroup *g = sums_group(s, (perfd_text){ .bytes = event, .length = strlen(event) }, number);
        const bool is_taken = filters_take_sample(&s->options->filters, s->texts, item, event);

        for (size_t i = 0; is_taken && i < s->options->n_keys; i++)
                if (!dimension_is_of_frame(&s->options->keys[i]))
                        s->key[i] = dimension_of_sample(&s->options->keys[i], s->texts, item, event);
        return sums_add(s, g, is_taken, period, frames, n_frames);
}
