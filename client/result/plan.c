/* A plan has five lists of one kind: for the caller they are one, in this order, and each row says of which it is. */
#include <errno.h>

#include "client/result/result.h"

const perfd_difference *result_differences_new(Arena *arena, Perfd__V1__Difference *const *m, size_t n) {
        perfd_difference *rows = arena_push(arena, n, sizeof(*rows));

        for (size_t i = 0; rows && i < n; i++)
                rows[i] = (perfd_difference){
                        .field = m[i]->field, .before = m[i]->before, .after = m[i]->after, .restart = m[i]->restart
                };
        return rows;
}

static int add_list(perfd_result *result, perfd_planned_row *rows, perfd_change change, Perfd__V1__PlannedEvent *const *m,
                    size_t n) {
        for (size_t i = 0; i < n; i++) {
                const perfd_difference *differences = result_differences_new(&result->arena, m[i]->differences,
                                                                             m[i]->n_differences);

                if (!differences)
                        return -ENOMEM;
                rows[result->n_planned++] = (perfd_planned_row){
                        .change = change,
                        .id = m[i]->id,
                        .name = m[i]->name,
                        .event = m[i]->event,
                        .group = m[i]->group,
                        .replaced = m[i]->replaced,
                        .why = m[i]->why,
                        .reason = m[i]->reason,
                        .differences = differences,
                        .n_differences = m[i]->n_differences,
                };
        }
        return 0;
}

int result_add_plan(perfd_result *result, const Perfd__V1__PlanReply *m) {
        size_t n = m->n_added + m->n_removed + m->n_changed + m->n_kept + m->n_pending;
        perfd_planned_row *rows = arena_push(&result->arena, n, sizeof(*rows));
        int r = rows ? 0 : -ENOMEM;

        result->planned = rows;
        if (r == 0)
                r = add_list(result, rows, PERFD_CHANGE_ADDED, m->added, m->n_added);
        if (r == 0)
                r = add_list(result, rows, PERFD_CHANGE_REMOVED, m->removed, m->n_removed);
        if (r == 0)
                r = add_list(result, rows, PERFD_CHANGE_CHANGED, m->changed, m->n_changed);
        if (r == 0)
                r = add_list(result, rows, PERFD_CHANGE_KEPT, m->kept, m->n_kept);
        if (r == 0)
                r = add_list(result, rows, PERFD_CHANGE_PENDING, m->pending, m->n_pending);
        if (r == 0 && !(result->settings = result_differences_new(&result->arena, m->settings, m->n_settings)))
                r = -ENOMEM;
        result->n_settings = r == 0 ? m->n_settings : 0;
        return r;
}
