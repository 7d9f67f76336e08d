/* Numbers are one list with commas, as in other tools; names are an option each, because a path may have a comma. */
#include "client/perfctl/events/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/quantity.h"

#define TASK_ID_MAX 4194304 /* PID_MAX_LIMIT of a 64-bit Linux */

/* "12,13" into malloc'ed memory. */
static int parse_ids(const Perfctl *p, const char *option, const uint32_t **ret_ids, size_t *ret_n) {
        const char *text = perfctl_get(p, option);
        uint32_t *ids;
        size_t n = 0;
        char *copy, *rest, *word;
        int r = 0;

        if (!text)
                return 0;
        copy = rest = must_have(strdup(text));
        ids = must_have(calloc(strlen(text) + 1, sizeof(*ids)));
        while (r == 0 && (word = strsep(&rest, ","))) {
                uint64_t id;

                if (quantity_parse_number(word, &id) && id == 0)
                        r = perfctl_fail(p, PERFCTL_USAGE, "--%s: %s is no process and no thread: pids and tids are from 1 to %d", option,
                                         word, TASK_ID_MAX);
                else if (quantity_parse_number(word, &id) && id <= INT32_MAX)
                        ids[n++] = (uint32_t)id;
                else if (quantity_parse_number(word, &id) || quantity_is_too_large(word))
                        r = perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is too large: pids and tids are from 1 to %d", option, word,
                                         TASK_ID_MAX);
                else
                        r = perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a list of numbers such as 12,13", option,
                                         text);
        }
        free(copy);
        *ret_ids = ids; /* the caller frees it in any case */
        *ret_n = n;
        return r;
}

/* What is empty on the wire is not set, and would be all. */
static int refuse_empty(const Perfctl *p, const char *option, const char *text) {
        return text && !*text ? perfctl_fail(p, PERFCTL_USAGE, "--%s: the value is empty", option) : 0;
}

int target_parse(const Perfctl *p, perfd_event_spec *s) {
        int r;

        s->target = perfctl_get(p, "target");
        s->cpus = perfctl_get(p, "cpu");
        s->no_inherit = perfctl_get(p, "no-inherit");
        s->cgroups = perfctl_get_all(p, "cgroup", &s->n_cgroups);
        s->containers = perfctl_get_all(p, "container", &s->n_containers);
        s->units = perfctl_get_all(p, "unit", &s->n_units);
        if ((r = refuse_empty(p, "cpu", s->cpus)) != 0 || (r = refuse_empty(p, "target", s->target)) != 0)
                return r;
        if (perfctl_get(p, "all-cpus") && (perfctl_get(p, "pid") || perfctl_get(p, "tid")))
                return perfctl_fail(p, PERFCTL_USAGE, "--all-cpus and --%s exclude each other",
                                    perfctl_get(p, "pid") ? "pid" : "tid");
        r = parse_ids(p, "pid", &s->pids, &s->n_pids);
        return r == 0 ? parse_ids(p, "tid", &s->tids, &s->n_tids) : r;
}

void target_deinit(perfd_event_spec *s) {
        free((void *)s->pids);
        free((void *)s->tids);
        s->pids = s->tids = NULL;
        s->n_pids = s->n_tids = 0;
}

bool target_is_host(const perfd_event_spec *s) {
        return !s->target && s->n_pids == 0 && s->n_tids == 0 && s->n_cgroups == 0 && s->n_containers == 0 &&
               s->n_units == 0;
}

bool target_is_unknown(const Perfctl *p) {
        static const char *const reasons[] = { "unknown-unit", "unknown-container", "unknown-cgroup" };

        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
                if (strcmp(perfd_client_error(p->client)->reason, reasons[i]) == 0)
                        return true;
        return false;
}

/* A glob is followed, also one that only this unit matches. Of a template the daemon has said what to do. */
static void advise_on_unit(const Perfctl *p, const char *unit) {
        if (isalnum((unsigned char)*unit) && !strstr(unit, "@."))
                (void)perfctl_fail(
                        p, PERFCTL_OK,
                        "a unit that is to start later is observed from then on by a glob, as --unit '[%c]%s', or "
                        "by an event of the configuration",
                        *unit, unit + 1);
}

int target_fail(const Perfctl *p, const char *expression) {
        bool is_unit = strcmp(perfd_client_error(p->client)->reason, "unknown-unit") == 0;
        size_t n;
        const char *const *units = perfctl_get_all(p, "unit", &n);
        int r = perfctl_fail_client(p, expression);

        if (is_unit && n == 1)
                advise_on_unit(p, units[0]);
        return r;
}
