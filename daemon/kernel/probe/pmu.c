/*
 * Probes that are no more than an attr of the kprobe or the uprobe PMU: what these can be asked. Where a probe is one is
 * decided in probe.c.
 */
#include "daemon/kernel/probe/pmu.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/pmu/pmu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Its sysfs says where the terms go. */
int probe_pmu_take(Probe *p) {
        p->configs = calloc(p->places.n_sites, sizeof(*p->configs));
        if (!p->configs)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < p->places.n_sites; i++) {
                EventTerm terms[2] = { { .name = (char *)"retprobe" } };
                EventName name = { .kind = EVENT_NAME_PMU, .group = (char *)(p->is_kernel ? "kprobe" : "uprobe"),
                                   .terms = terms, .n_terms = p->is_return };
                uint64_t semaphore = p->places.sites[i].semaphore;
                PmuEvent *events;
                char text[24];
                size_t n;
                int r;

                (void)snprintf(text, sizeof(text), "%" PRIu64, semaphore);
                if (semaphore != 0)
                        terms[name.n_terms++] = (EventTerm){ .name = (char *)"ref_ctr_offset", .text = text,
                                                             .is_number = true, .value = semaphore };
                r = pmu_resolve(PMU_ROOT, &name, &events, &n, NULL);
                if (r != 0)
                        return r;
                p->type = events->type;
                p->configs[i] = events->config;
                pmu_events_free(events, n);
        }
        return 0;
}

ProbeAttr probe_pmu_attr(const Probe *p, size_t i) {
        return (ProbeAttr){ .type = p->type, .config = p->configs[i], .config1 = (uintptr_t)p->target,
                            .config2 = p->places.sites[i].offset };
}

/* An event of our own, which is never enabled. */
int probe_pmu_try_symbol(const Probe *p, Explanation *e) {
        ProbeAttr a = probe_pmu_attr(p, 0);
        struct perf_event_attr attr = { .type = a.type, .size = sizeof(attr), .config = a.config,
                                        .config1 = a.config1, .config2 = a.config2, .disabled = 1 };
        int fd = open_perf_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0 && errno == ENOENT)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "this kernel has no function '%s'",
                              p->places.label);
        if (fd < 0 && errno == EADDRNOTAVAIL)
                return refuse(e, REFUSED_INVALID, "ambiguous-symbol", "several functions of this kernel are called '%s': give "
                        "the address of one of them", p->places.label);
        (void)open_close(fd);
        return 0; /* whatever else is wrong is said when it is opened to be used */
}

int probe_pmu_set_target(Probe *p, const char *symbol) {
        free(p->target);
        p->target = NULL;
        if (p->is_kernel && !symbol)
                return 0;
        if (p->is_kernel)
                p->target = strdup(symbol);
        else if (asprintf(&p->target, "/proc/self/fd/%d", p->places.fd) < 0)
                p->target = NULL;
        return p->target ? 0 : error_origin(-ENOMEM);
}

/* The kernel asks for privileges before it looks at the path, which there is none of. */
bool probe_pmu_is_denied(const Probe *p) {
        struct perf_event_attr attr = { .type = p->type, .size = sizeof(attr), .config = p->configs[0],
                                        .config1 = (uintptr_t)"", .disabled = 1 };
        _cleanup_close_ int fd = open_perf_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 && (errno == EACCES || errno == EPERM);
}
