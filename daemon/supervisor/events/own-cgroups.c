/*
 * Cgroups that a client owns, as targets of events that a rule lets it add on processes of its own.
 *
 * The decision to doubt is that such an event is not opened on the cgroup, but on the processes in it, whose children it follows. An
 * event on a cgroup never ends: it would go on in each setuid program that its owner starts there. On tasks Linux ends it. What
 * is moved into the cgroup later is not seen therefore, unless somebody has made it who is observed; so who names all of
 * user@UID.service, where his systemd is too, sees all that it starts from then on.
 */
#include "daemon/supervisor/events/own.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/printable.h"
#include "daemon/kernel/cgroup/own-cgroup.h"

static int refuse_cgroup(const Access *a, const Cgroup *c, Explanation *e) {
        char what[256];

        (void)snprintf(what, sizeof(what), "the processes of cgroup %.160s, which is not your own,", c->path);
        printable_make(what, sizeof(what)); /* it may be cut in a character */
        return access_refuse(a, what, e);
}

/* One name, which may mean several; each of these is to be the client's. */
static int find_named(Events *s, const Access *a, gid_t gid, CgroupNaming naming, const char *name, OwnPids *to, Explanation *e) {
        Cgroup *found = NULL;
        size_t n = 0;
        int r = cgroup_resolve(&s->host->cgroups, naming, name, &found, &n, e);

        for (size_t i = 0; i < n && r == 0; i++) {
                r = own_cgroup_find(&found[i], a->uid, gid, OWN_TASKS_MAX, to, e);
                if (r == OWN_CGROUP_E_FOREIGN)
                        r = refuse_cgroup(a, &found[i], e);
        }
        cgroups_free(found, n);
        return r;
}

static int compare_pids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* The processes become the target, each once. */
static void set_pids(EventSpec *spec, OwnPids *pids) {
        size_t n = 0;

        qsort(pids->list, pids->n, sizeof(*pids->list), compare_pids);
        for (size_t i = 0; i < pids->n; i++)
                if (n == 0 || pids->list[n - 1] != pids->list[i])
                        pids->list[n++] = pids->list[i];
        free(spec->pids);
        spec->pids = TAKE_PTR(pids->list);
        spec->n_pids = n;
        strings_deinit(&spec->cgroups);
        strings_deinit(&spec->containers);
        strings_deinit(&spec->units);
}

int own_take_cgroups(Events *s, const Access *a, gid_t gid, EventSpec *spec, Explanation *e) {
        const struct {
                CgroupNaming naming;
                const Strings *names;
        } lists[] = { { CGROUP_BY_PATH, &spec->cgroups },
                      { CGROUP_BY_CONTAINER, &spec->containers },
                      { CGROUP_BY_UNIT, &spec->units } };
        _cleanup_(own_pids_deinit) OwnPids pids = OWN_PIDS_NULL;
        int r;

        if (!a->rule || !a->rule->own_processes || (a->rule->stat && own_is_only_counted(spec)) ||
            spec->cgroups.n + spec->containers.n + spec->units.n == 0)
                return 0;
        r = s->host->cgroups.path ? 0 : cgroup_find_hierarchy("", &s->host->cgroups, e);
        for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
                for (size_t i = 0; i < lists[k].names->n && r == 0; i++)
                        r = find_named(s, a, gid, lists[k].naming, lists[k].names->items[i], &pids, e);
        if (r == 0 && pids.n == 0)
                r = refuse(e, REFUSED_NOT_FOUND, "gone", "%s: none of your own processes runs in the named cgroups", spec->event);
        if (r == 0)
                set_pids(spec, &pids);
        return r;
}
