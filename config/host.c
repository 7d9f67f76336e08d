/* One host for a process: it does not change, but for which CPUs are online. */
#include "config/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

typedef struct Cpu {
        uint32_t cpu;
        bool is_online;
} Cpu;

static Cpu *cpus;
static size_t n_cpus;

int config_set_host_cpus(const uint32_t *possible, const bool *online, size_t n) {
        Cpu *list = calloc(n + 1, sizeof(*list));

        if (!list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                list[i] = (Cpu){ .cpu = possible[i], .is_online = online[i] };
        config_forget_host();
        cpus = list;
        n_cpus = n;
        return 0;
}

void config_forget_host(void) {
        free(cpus);
        cpus = NULL;
        n_cpus = 0;
}

static int cpu_compare(const void *number, const void *item) {
        uint32_t a = *(const uint32_t *)number, b = ((const Cpu *)item)->cpu;

        return (a > b) - (a < b);
}

static Cpu *cpu_find(uint32_t cpu) {
        return n_cpus > 0 ? bsearch(&cpu, cpus, n_cpus, sizeof(*cpus), cpu_compare) : NULL;
}

void config_set_host_cpu_online(uint32_t cpu, bool is_online) {
        Cpu *found = cpu_find(cpu);

        if (found)
                found->is_online = is_online;
}

bool config_has_host(void) {
        return n_cpus > 0;
}

HostCpu config_host_cpu(uint32_t cpu) {
        const Cpu *found = cpu_find(cpu);

        if (n_cpus == 0)
                return HOST_CPU_UNKNOWN;
        return !found ? HOST_CPU_IMPOSSIBLE : found->is_online ? HOST_CPU_ONLINE : HOST_CPU_OFFLINE;
}

char *config_host_cpus_text(char buffer[static HOST_CPUS_SIZE]) {
        size_t used = 0;

        buffer[0] = '\0';
        for (size_t i = 0, last; i < n_cpus; i = last + 1) {
                char range[32];
                int n;

                for (last = i; last + 1 < n_cpus && cpus[last + 1].cpu == cpus[last].cpu + 1;)
                        last++;
                n = last > i ? snprintf(range, sizeof(range), "%u-%u", cpus[i].cpu, cpus[last].cpu)
                             : snprintf(range, sizeof(range), "%u", cpus[i].cpu);
                if (used + (size_t)n + sizeof(",...") > HOST_CPUS_SIZE) {
                        (void)snprintf(buffer + used, HOST_CPUS_SIZE - used, ",...");
                        break;
                }
                used += (size_t)snprintf(buffer + used, HOST_CPUS_SIZE - used, "%s%s", used ? "," : "", range);
        }
        return buffer;
}
