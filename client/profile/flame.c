/*
 * The page (page/) is in the binary as it is; between its two halves stands the profile, as JSON: lists of numbers, which a browser
 * parses quickest, and each name once. The tree is in it as it is drawn first; what the page draws otherwise (callers, one thread)
 * it makes from the ends of stacks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/flame.h"
#include "client/profile/file-end.h"
#include "client/profile/json-text.h"
#include "client/profile/page.h"
#include "client/profile/stack-tree.h"

/* Ids of strings that are not known are -1 there. */
static void put_id(FILE *out, const char *comma, uint32_t id) {
        (void)fprintf(out, "%s%" PRId64, comma, id == ID_NONE ? -1 : (int64_t)id);
}

static void put_values(FILE *out, const Profile *p, size_t n) {
        for (size_t i = 0; i < n; i++) {
                (void)fputs(i > 0 ? ",{\"name\":" : "{\"name\":", out);
                json_text_put(out, p->values[i].name);
                (void)fputs(",\"unit\":", out);
                json_text_put(out, p->values[i].unit);
                (void)putc('}', out);
        }
}

static void put_names(FILE *out, const Profile *p) {
        (void)fputs(",\"strings\":[", out);
        for (uint32_t i = 0; i < p->n_strings; i++) {
                if (i > 0)
                        (void)putc(',', out);
                json_text_put(out, p->strings[i]);
        }
        (void)fputs("],\"functions\":[", out); /* four numbers for each: symbol, dso, file, kind */
        for (uint32_t i = 0; i < p->n_functions; i++) {
                put_id(out, i > 0 ? "," : "", p->functions[i].symbol);
                put_id(out, ",", p->functions[i].dso);
                put_id(out, ",", p->functions[i].file);
                put_id(out, ",", p->functions[i].kind);
        }
        (void)fputs("],\"tasks\":[", out); /* four numbers for each: comm, container, pid, tid */
        for (uint32_t i = 0; i < p->n_tasks; i++) {
                put_id(out, i > 0 ? "," : "", p->tasks[i].comm);
                put_id(out, ",", p->tasks[i].container);
                (void)fprintf(out, ",%" PRIu32 ",%" PRIu32, p->tasks[i].pid, p->tasks[i].tid);
        }
}

static void put_tree(FILE *out, const Profile *p, const StackTree *t) {
        (void)fputs("],\"parents\":[", out);
        for (uint32_t i = 0; i < t->n_nodes; i++)
                put_id(out, i > 0 ? "," : "", t->nodes[i].parent);
        (void)fputs("],\"names\":[", out); /* a function, or -1 - the comm; of the root: 0, which means nothing */
        for (uint32_t i = 0; i < t->n_nodes; i++)
                (void)fprintf(out, "%s%" PRId64, i > 0 ? "," : "",
                              i == 0 ? 0 : t->nodes[i].comm != ID_NONE ? -1 - (int64_t)t->nodes[i].comm : (int64_t)t->nodes[i].function);
        (void)fputs("],\"ends\":[", out);
        for (uint32_t i = 0; i < p->n_stacks; i++)
                put_id(out, i > 0 ? "," : "", t->ends[i]);
        (void)fputs("],\"stackTasks\":[", out);
        for (uint32_t i = 0; i < p->n_stacks; i++)
                put_id(out, i > 0 ? "," : "", p->stacks[i].task);
        (void)fputs("],\"sums\":[", out); /* n_values for each stack, and those of the older profile behind them */
        for (size_t i = 0; i < p->n_stacks * p->n_values; i++)
                (void)fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", p->sums[i]);
        (void)fputs("]}", out);
}

static int write_page(FILE *out, const Profile *p, bool is_difference, const char *title) {
        StackTree t;
        int r = stack_tree_init(&t, p);

        errno = 0;
        if (r == 0) {
                (void)fwrite(page_before, 1, sizeof(page_before), out);
                (void)fputs("{\"title\":", out);
                json_text_put(out, title);
                (void)fprintf(out, ",\"isDifference\":%s,\"values\":[", is_difference ? "true" : "false");
                put_values(out, p, is_difference ? p->n_values / 2 : p->n_values);
                (void)putc(']', out);
                put_names(out, p);
                put_tree(out, p, &t);
                (void)fwrite(page_behind, 1, sizeof(page_behind), out);
                r = file_end(out);
        }
        stack_tree_deinit(&t);
        return r;
}

static bool is_alike(const Profile *p, const Profile *older) {
        bool is = p->n_values == older->n_values && 2 * p->n_values <= PROFILE_VALUES_MAX;

        for (size_t i = 0; is && i < p->n_values; i++)
                is = strcmp(p->values[i].name, older->values[i].name) == 0 && strcmp(p->values[i].unit, older->values[i].unit) == 0;
        return is;
}

int flame_write(FILE *out, const Profile *p, const Profile *older, const char *title) {
        ProfileValue values[PROFILE_VALUES_MAX];
        Profile *both;
        int r;

        if (!older)
                return write_page(out, p, false, title);
        if (!is_alike(p, older))
                return PROFILE_E_UNLIKE;
        for (size_t i = 0; i < 2 * p->n_values; i++)
                values[i] = p->values[i % p->n_values];
        both = profile_new(values, 2 * p->n_values);
        r = both ? profile_append(both, p, 0) : -ENOMEM;
        if (r == 0)
                r = profile_append(both, older, p->n_values);
        if (r == 0)
                r = write_page(out, both, true, title);
        profile_free(both);
        return r;
}
