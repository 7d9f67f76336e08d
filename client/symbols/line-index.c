/*
 * Ranges of inlined functions lie within those of the functions that they were inlined into. They are cut into disjoint pieces once, by one
 * walk over their ends with those that are open on a stack; what a hostile file lets overlap is cut off where the outer one ends.
 */
#include "client/symbols/line-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/symbols/demangle.h"
#include "client/symbols/run-sort.h"

#define DEPTH_MAX 512

void line_index_init(LineIndex *x, size_t bytes_max, bool has_parameters) {
        *x = (LineIndex){ .bytes_max = bytes_max, .n_scopes = 1, .n_texts = 1 };
        symbol_table_init(&x->kept, bytes_max, has_parameters);
}

void line_index_deinit(LineIndex *x) {
        free(x->rows);
        free(x->scopes);
        free(x->ranges);
        free(x->texts);
        free(x->buckets);
        symbol_table_deinit(&x->kept);
        *x = (LineIndex){ .rows = NULL };
}

/* One more of a list. 1: there is no room within bytes_max; -ENOMEM */
static int make_room(LineIndex *x, void **list, size_t n, size_t *room, size_t size) {
        const size_t wanted = *room ? *room * 2 : 64;
        void *more;

        if (n < *room)
                return 0;
        if (wanted > UINT32_MAX || x->bytes + x->kept.bytes + (wanted - *room) * size > x->bytes_max) {
                x->is_full = true;
                return 1;
        }
        more = reallocarray(*list, wanted, size);
        if (!more)
                return -ENOMEM;
        memset((char *)more + *room * size, 0, (wanted - *room) * size);
        x->bytes += (wanted - *room) * size;
        *list = more;
        *room = wanted;
        return 0;
}

#define MAKE_ROOM(x, list) make_room((x), (void **)&(x)->list, (x)->n_##list, &(x)->list##_room, sizeof(*(x)->list))

static uint32_t hash(const char *text) {
        uint32_t h = 2166136261U;

        for (; *text; text++)
                h = (h ^ (uint8_t)*text) * 16777619U;
        return h;
}

static uint32_t *bucket_of(const LineIndex *x, const char *text) {
        size_t at = hash(text) & (x->n_buckets - 1);

        while (x->buckets[at] != 0 && strcmp(x->texts[x->buckets[at]].text, text) != 0)
                at = (at + 1) & (x->n_buckets - 1);
        return x->buckets + at;
}

/* At most half of them are in use. */
static int make_buckets(LineIndex *x) {
        const size_t n = x->n_buckets ? x->n_buckets * 2 : 256;
        uint32_t *buckets;

        if (x->n_texts * 2 < x->n_buckets)
                return 0;
        buckets = calloc(n, sizeof(uint32_t));
        if (!buckets)
                return -ENOMEM;
        free(x->buckets);
        x->buckets = buckets;
        x->n_buckets = n;
        for (size_t i = 1; i < x->n_texts; i++)
                *bucket_of(x, x->texts[i].text) = (uint32_t)i;
        return 0;
}

int line_index_add_text(LineIndex *x, const char *text, uint32_t *ret_number) {
        uint32_t *bucket;
        const char *kept;
        int r = make_buckets(x);

        *ret_number = 0;
        if (r != 0 || !text || !text[0])
                return r;
        bucket = bucket_of(x, text);
        if (*bucket == 0) {
                const size_t n = strnlen(text, SYMBOL_NAME_MAX);

                r = MAKE_ROOM(x, texts);
                if (r != 0)
                        return r < 0 ? r : 0;
                if (x->bytes + x->kept.bytes + n > x->bytes_max) {
                        x->is_full = true;
                        return 0;
                }
                kept = symbol_table_keep(&x->kept, text, n);
                if (!kept)
                        return -ENOMEM;
                x->texts[x->n_texts] = (LineText){ .text = kept };
                *bucket = (uint32_t)x->n_texts++;
        }
        *ret_number = *bucket;
        return 0;
}

int line_index_add_row(LineIndex *x, uint64_t start, uint32_t file, uint32_t line) {
        const int r = MAKE_ROOM(x, rows);

        if (r == 0)
                x->rows[x->n_rows++] = (LineRow){ .start = start, .file = file, .line = line };
        return r < 0 ? r : 0;
}

int line_index_add_scope(LineIndex *x, const InlineScope *scope, uint32_t *ret_number) {
        const int r = MAKE_ROOM(x, scopes);

        *ret_number = 0;
        if (r == 0) {
                *ret_number = (uint32_t)x->n_scopes;
                x->scopes[x->n_scopes++] = *scope;
        }
        return r < 0 ? r : 0;
}

int line_index_add_range(LineIndex *x, uint64_t start, uint64_t end, uint32_t scope) {
        uint32_t depth = 0;
        int r;

        if (start >= end || scope == 0)
                return 0;
        for (uint32_t i = scope; i != 0 && depth < DEPTH_MAX; i = x->scopes[i].parent) /* a parent was there before: it ends */
                depth++;
        if (depth == DEPTH_MAX)
                return 0;
        r = MAKE_ROOM(x, ranges);
        if (r == 0)
                x->ranges[x->n_ranges++] = (InlineRange){ .start = start, .end = end, .scope = scope, .depth = depth };
        return r < 0 ? r : 0;
}

/* By address; one that ends what was before comes first, as another may begin there; else as they were added. */
static int compare_rows(const void *a, const void *b) {
        const LineRow *one = a, *other = b;

        if (one->start != other->start)
                return one->start < other->start ? -1 : 1;
        return (one->file != 0) - (other->file != 0);
}

static int compare_ranges(const void *a, const void *b) {
        const InlineRange *one = a, *other = b;

        if (one->start != other->start)
                return one->start < other->start ? -1 : 1;
        if (one->depth != other->depth)
                return one->depth < other->depth ? -1 : 1;
        return (one->scope > other->scope) - (one->scope < other->scope);
}

/* Of those at one address the last; and none that says what the one before it does. */
static void thin_rows(LineIndex *x) {
        size_t n = 0;

        for (size_t i = 0; i < x->n_rows; i++) {
                if (i + 1 < x->n_rows && x->rows[i + 1].start == x->rows[i].start)
                        continue;
                if (n > 0 && x->rows[n - 1].file == x->rows[i].file && x->rows[n - 1].line == x->rows[i].line)
                        continue;
                x->rows[n++] = x->rows[i];
        }
        x->n_rows = n;
}

typedef struct Cutting {
        InlineRange *pieces;
        size_t n;
        struct {
                uint64_t end;
                uint32_t scope;
        } open[DEPTH_MAX + 1];
        size_t n_open;
} Cutting;

static void begin_piece(Cutting *c, uint64_t start, uint32_t scope) {
        if (c->n > 0 && c->pieces[c->n - 1].start == start)
                c->n--;
        if (c->n == 0 || c->pieces[c->n - 1].scope != scope)
                c->pieces[c->n++] = (InlineRange){ .start = start, .scope = scope };
}

static void close_until(Cutting *c, uint64_t address) {
        while (c->n_open > 0 && c->open[c->n_open - 1].end <= address) {
                const uint64_t end = c->open[--c->n_open].end;

                while (c->n_open > 0 && c->open[c->n_open - 1].end <= end) /* no piece is left of those */
                        c->n_open--;
                begin_piece(c, end, c->n_open > 0 ? c->open[c->n_open - 1].scope : 0);
        }
}

/* A range begins one piece and ends one, so there are at most twice as many pieces. */
static int cut_ranges(LineIndex *x) {
        Cutting *c = calloc(1, sizeof(Cutting));

        if (c)
                c->pieces = calloc(2 * x->n_ranges, sizeof(InlineRange));
        if (!c || !c->pieces) {
                free(c);
                return -ENOMEM;
        }
        for (size_t i = 0; i < x->n_ranges; i++) {
                const InlineRange *one = x->ranges + i;
                uint64_t end = one->end;

                close_until(c, one->start);
                if (c->n_open > DEPTH_MAX)
                        continue;
                if (c->n_open > 0 && c->open[c->n_open - 1].end < end)
                        end = c->open[c->n_open - 1].end;
                c->open[c->n_open].end = end;
                c->open[c->n_open++].scope = one->scope;
                begin_piece(c, one->start, one->scope);
        }
        close_until(c, UINT64_MAX);
        free(x->ranges);
        x->bytes += (2 * x->n_ranges - x->ranges_room) * sizeof(InlineRange);
        x->ranges_room = 2 * x->n_ranges;
        x->ranges = c->pieces;
        x->n_ranges = c->n;
        free(c);
        return 0;
}

/* What is not needed any more is given back. */
static void shrink(LineIndex *x, void **list, size_t n, size_t *room, size_t size) {
        void *less = n > 0 && n < *room ? realloc(*list, n * size) : NULL;

        if (less) {
                x->bytes -= (*room - n) * size;
                *list = less;
                *room = n;
        }
}

int line_index_finish(LineIndex *x) {
        int r = run_sort(x->rows, x->n_rows, sizeof(LineRow), compare_rows);

        if (r == 0)
                r = run_sort(x->ranges, x->n_ranges, sizeof(InlineRange), compare_ranges);
        if (r == 0 && x->n_ranges > 0)
                r = cut_ranges(x);
        if (r != 0)
                return r;
        thin_rows(x);
        free(x->buckets);
        x->buckets = NULL;
        x->n_buckets = 0;
        shrink(x, (void **)&x->rows, x->n_rows, &x->rows_room, sizeof(*x->rows));
        shrink(x, (void **)&x->ranges, x->n_ranges, &x->ranges_room, sizeof(*x->ranges));
        return 0;
}

const LineRow *line_index_find_row(const LineIndex *x, uint64_t address) {
        size_t low = 0, high = x->n_rows;

        while (low < high) {
                const size_t middle = low + (high - low) / 2;

                if (x->rows[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 && x->rows[low - 1].file != 0 ? x->rows + low - 1 : NULL;
}

uint32_t line_index_find_scope(const LineIndex *x, uint64_t address) {
        size_t low = 0, high = x->n_ranges;

        while (low < high) {
                const size_t middle = low + (high - low) / 2;

                if (x->ranges[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 ? x->ranges[low - 1].scope : 0;
}

perfd_text line_index_text(const LineIndex *x, uint32_t number) {
        const char *text = number > 0 ? x->texts[number].text : "";

        return (perfd_text){ .bytes = text, .length = strlen(text) };
}

perfd_text line_index_name(LineIndex *x, uint32_t number) {
        LineText *one = number > 0 ? x->texts + number : NULL;

        if (one && !one->is_demangled) {
                char *plain = demangle(one->text, x->kept.has_parameters);
                const char *kept = plain ? symbol_table_keep(&x->kept, plain, strlen(plain)) : NULL;

                one->text = kept ? kept : one->text;
                one->is_demangled = true;
                free(plain);
        }
        return line_index_text(x, number);
}
