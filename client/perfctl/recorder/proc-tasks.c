/* Both looks are in the order of pids nearly always; where they are not, sorting makes them so. */
#include "client/perfctl/recorder/proc-tasks.h"

#include <stdlib.h>
#include <string.h>

static ProcTask *add(ProcTasks *e, uint32_t pid, uint32_t tid, perfd_text text) {
        ProcTask *t;

        if (e->n == e->room) {
                e->room = e->room ? 2 * e->room : 1024;
                e->list = must_have(reallocarray(e->list, e->room, sizeof(*e->list)));
        }
        t = &e->list[e->n++];
        *t = (ProcTask){ .pid = pid, .tid = tid, .text = must_have(strndup(text.bytes, text.length)) };
        return t;
}

static int take_comm(void *userdata, uint32_t pid, uint32_t tid, perfd_text comm) {
        (void)add(userdata, pid, tid, comm);
        return 0;
}

static int take_mapping(void *userdata, const RunningMapping *mapping) {
        ProcTask *t = add(userdata, mapping->mapping.pid, mapping->mapping.pid, mapping->mapping.path);

        t->is_mapping = true;
        t->mapping = *mapping;
        return 0;
}

void proc_tasks_read(ProcTasks *e, bool has_files) {
        const RunningTasks tasks = { .userdata = e, .has_files = has_files, .comm = take_comm, .mapping = take_mapping };

        (void)running_tasks_read(&tasks); /* the callbacks give 0 */
}

void proc_tasks_deinit(ProcTasks *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->list[i].text);
        free(e->list);
        free(e->written);
        *e = (ProcTasks){ .list = NULL };
}

void proc_tasks_set_written(ProcTasks *e, uint32_t pid) {
        if (e->n_written > 0 && e->written[e->n_written - 1] == pid)
                return;
        if (e->n_written == e->written_room) {
                e->written_room = e->written_room ? 2 * e->written_room : 256;
                e->written = must_have(reallocarray(e->written, e->written_room, sizeof(*e->written)));
        }
        e->written[e->n_written++] = pid;
}

static int compare(const void *a, const void *b) {
        const uint32_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int proc_tasks_put(ProcTasks *e, const RunningTasks *to) {
        const size_t n = e->n_written; /* those that are put are written, too */
        int code = 0;

        if (n > 0)
                qsort(e->written, n, sizeof(*e->written), compare);
        for (size_t i = 0; i < e->n && code == 0; i++) {
                ProcTask *t = &e->list[i];
                const perfd_text text = { .bytes = t->text, .length = strlen(t->text) };

                if (n > 0 && bsearch(&t->pid, e->written, n, sizeof(*e->written), compare))
                        continue;
                t->mapping.mapping.path = text;
                code = t->is_mapping ? to->mapping(to->userdata, &t->mapping) : to->comm(to->userdata, t->pid, t->tid, text);
        }
        return code;
}
