/* Both looks are in the order of pids nearly always; where they are not, sorting makes them so. */
#include "client/perfctl/recorder/early-tasks.h"

#include <stdlib.h>
#include <string.h>

static EarlyTask *add(EarlyTasks *e, uint32_t pid, uint32_t tid, perfd_text text) {
        EarlyTask *t;

        if (e->n == e->room) {
                e->room = e->room ? 2 * e->room : 1024;
                e->list = must_have(reallocarray(e->list, e->room, sizeof(*e->list)));
        }
        t = &e->list[e->n++];
        *t = (EarlyTask){ .pid = pid, .tid = tid, .text = must_have(strndup(text.bytes, text.length)) };
        return t;
}

static int take_comm(void *userdata, uint32_t pid, uint32_t tid, perfd_text comm) {
        (void)add(userdata, pid, tid, comm);
        return 0;
}

static int take_mapping(void *userdata, const RunningMapping *mapping) {
        EarlyTask *t = add(userdata, mapping->mapping.pid, mapping->mapping.pid, mapping->mapping.path);

        t->is_mapping = true;
        t->mapping = *mapping;
        return 0;
}

void early_tasks_read(EarlyTasks *e) {
        const RunningTasks tasks = { .userdata = e, .comm = take_comm, .mapping = take_mapping };

        (void)running_tasks_read(&tasks); /* the callbacks give 0 */
}

void early_tasks_deinit(EarlyTasks *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->list[i].text);
        free(e->list);
        free(e->seen);
        *e = (EarlyTasks){ .list = NULL };
}

void early_tasks_see(EarlyTasks *e, uint32_t pid) {
        if (e->n_seen > 0 && e->seen[e->n_seen - 1] == pid)
                return;
        if (e->n_seen == e->seen_room) {
                e->seen_room = e->seen_room ? 2 * e->seen_room : 256;
                e->seen = must_have(reallocarray(e->seen, e->seen_room, sizeof(*e->seen)));
        }
        e->seen[e->n_seen++] = pid;
}

static int compare(const void *a, const void *b) {
        const uint32_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int early_tasks_put(EarlyTasks *e, const RunningTasks *to) {
        const size_t n = e->n_seen; /* those that are put are seen, too */
        int code = 0;

        if (n > 0)
                qsort(e->seen, n, sizeof(*e->seen), compare);
        for (size_t i = 0; i < e->n && code == 0; i++) {
                EarlyTask *t = &e->list[i];
                const perfd_text text = { .bytes = t->text, .length = strlen(t->text) };

                if (n > 0 && bsearch(&t->pid, e->seen, n, sizeof(*e->seen), compare))
                        continue;
                t->mapping.mapping.path = text;
                code = t->is_mapping ? to->mapping(to->userdata, &t->mapping) : to->comm(to->userdata, t->pid, t->tid, text);
        }
        return code;
}
