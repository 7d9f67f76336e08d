/* A profile of speedscope has all its samples first and then all their weights: so each thread's stacks are walked twice. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/json-text.h"
#include "client/profile/speedscope.h"
#include "client/profile/file-end.h"

typedef struct TaskStacks {
        uint32_t *order;  /* stacks, those of a task one after the other */
        uint32_t *begins; /* of each task in it, and the end of the last */
} TaskStacks;

static int task_stacks_init(TaskStacks *t, const Profile *p) {
        *t = (TaskStacks){ .order = calloc((size_t)p->n_stacks + 1, sizeof(*t->order)),
                           .begins = calloc((size_t)p->n_tasks + 2, sizeof(*t->begins)) };
        if (!t->order || !t->begins)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_stacks; i++)
                t->begins[p->stacks[i].task + 2]++;
        for (uint32_t i = 2; i < p->n_tasks + 2; i++)
                t->begins[i] += t->begins[i - 1];
        for (uint32_t i = 0; i < p->n_stacks; i++) /* begins[task + 1] moves from its begin to its end */
                t->order[t->begins[p->stacks[i].task + 1]++] = i;
        return 0;
}

static void put_frames(FILE *out, const Profile *p) {
        for (uint32_t i = 0; i < p->n_frames; i++) {
                const Function *f = &p->functions[p->frames[i].function];
                uint32_t file = f->file != ID_NONE ? f->file : f->dso;

                (void)fputs(i > 0 ? ",{\"name\":" : "{\"name\":", out);
                json_text_put(out, p->strings[f->symbol]);
                if (file != ID_NONE) {
                        (void)fputs(",\"file\":", out);
                        json_text_put(out, p->strings[file]);
                }
                if (f->file != ID_NONE && p->frames[i].line > 0)
                        (void)fprintf(out, ",\"line\":%" PRIu32, p->frames[i].line);
                (void)putc('}', out);
        }
}

static void put_stack(FILE *out, const Profile *p, const Stack *s) {
        for (uint32_t k = 0; k < s->n_frames; k++)
                (void)fprintf(out, "%s%" PRIu32, k > 0 ? "," : "", p->stack_frames[s->first + k]);
}

/* A name that is longer is shortened. */
static void put_task_name(FILE *out, const Task *t, const Profile *p) {
        char name[1024];
        bool is_of_container = t->container != ID_NONE;

        (void)snprintf(name, sizeof(name), "%.500s (%" PRIu32 "/%" PRIu32 ")%s%.400s", p->strings[t->comm], t->pid, t->tid,
                       is_of_container ? " in " : "", is_of_container ? p->strings[t->container] : "");
        json_text_put(out, name);
}

static void put_task(FILE *out, const Profile *p, size_t value, const Task *task, const uint32_t *stacks, size_t n, uint64_t total) {
        const char *comma = "";

        (void)fputs("{\"type\":\"sampled\",\"name\":", out);
        put_task_name(out, task, p);
        (void)fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
                      strcmp(p->values[value].unit, "nanoseconds") == 0 ? "nanoseconds" : "none", total);
        for (size_t i = 0; i < n; i++)
                if (p->sums[(size_t)stacks[i] * p->n_values + value] > 0) {
                        (void)fprintf(out, "%s[", comma);
                        put_stack(out, p, &p->stacks[stacks[i]]);
                        (void)putc(']', out);
                        comma = ",";
                }
        (void)fputs("],\"weights\":[", out);
        comma = "";
        for (size_t i = 0; i < n; i++)
                if (p->sums[(size_t)stacks[i] * p->n_values + value] > 0) {
                        (void)fprintf(out, "%s%" PRIu64, comma, p->sums[(size_t)stacks[i] * p->n_values + value]);
                        comma = ",";
                }
        (void)fputs("]}", out);
}

static void put_tasks(FILE *out, const Profile *p, size_t value, const TaskStacks *t) {
        const char *comma = "";

        for (uint32_t i = 0; i < p->n_tasks; i++) {
                uint64_t total = 0;

                for (uint32_t k = t->begins[i]; k < t->begins[i + 1]; k++)
                        total += p->sums[(size_t)t->order[k] * p->n_values + value];
                if (total == 0)
                        continue;
                (void)fputs(comma, out);
                put_task(out, p, value, &p->tasks[i], t->order + t->begins[i], t->begins[i + 1] - t->begins[i], total);
                comma = ",";
        }
}

int speedscope_write(FILE *out, const Profile *p, size_t value, const char *title) {
        TaskStacks t;
        int r = task_stacks_init(&t, p);

        errno = 0;
        if (r == 0) {
                (void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"perfd " PERFD_VERSION
                            "\",\"name\":", out);
                json_text_put(out, title);
                (void)fputs(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[", out);
                put_frames(out, p);
                (void)fputs("]},\"profiles\":[", out);
                put_tasks(out, p, value, &t);
                (void)fputs("]}\n", out);
        }
        free(t.order);
        free(t.begins);
        return r != 0 ? r : file_end(out);
}
