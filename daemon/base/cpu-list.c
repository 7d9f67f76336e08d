/* A bit for each CPU first, then the list: order and doubles take care of themselves. */
#include "daemon/base/cpu-list.h"

#include "daemon/base/cleanup.h"

#include <ctype.h>

static int refuse_at(const char *text, const char *at, Explanation *e) {
        int r = refuse(e, REFUSED_INVALID, "bad-target",
                       "'%s' is not a CPU list: expected numbers up to %d and ranges, as in 0-3,8", text, CPU_LIST_MAX_CPU);

        if (e)
                e->position = 1 + (unsigned)(at - text);
        return r;
}

/* Digits only: strtoul(3) would take a sign and spaces. */
static const char *cpu_parse(const char *p, uint32_t *ret_cpu) {
        uint32_t cpu = 0;

        if (!isdigit((unsigned char)*p))
                return NULL;
        for (; isdigit((unsigned char)*p); p++) {
                cpu = cpu * 10 + (uint32_t)(*p - '0');
                if (cpu > CPU_LIST_MAX_CPU)
                        return NULL;
        }
        *ret_cpu = cpu;
        return p;
}

int cpu_list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        uint8_t set[CPU_LIST_MAX_CPU + 1] = { 0 };
        const char *p = text, *next;
        uint32_t *cpus, first, last;
        size_t n = 0;

        for (;;) {
                next = cpu_parse(p, &first);
                if (!next)
                        return refuse_at(text, p, e);
                last = first;
                if (*next == '-') {
                        p = next + 1;
                        next = cpu_parse(p, &last);
                        if (!next || last < first)
                                return refuse_at(text, p, e);
                }
                for (uint32_t cpu = first; cpu <= last; cpu++)
                        set[cpu] = 1;
                if (*next != ',')
                        break;
                p = next + 1;
        }
        if (*next == '\n')
                next++;
        if (*next != '\0')
                return refuse_at(text, next, e);

        for (uint32_t cpu = 0; cpu <= CPU_LIST_MAX_CPU; cpu++)
                n += set[cpu];
        cpus = malloc(n * sizeof(*cpus));
        if (!cpus)
                return error_origin(-ENOMEM);
        n = 0;
        for (uint32_t cpu = 0; cpu <= CPU_LIST_MAX_CPU; cpu++)
                if (set[cpu])
                        cpus[n++] = cpu;
        *ret_cpus = cpus;
        *ret_n = n;
        return 0;
}
