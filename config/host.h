/*
 * For main, which knows the host, and for values that name something of it: so that what can never be there is refused where
 * it is written. Nothing is known by default, and then only the format itself limits values: a file for another host is
 * checked in this way (perfd --check --any-host). Main thread; set before a configuration is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPUs that can be there, sorted, and which of them are online. The list is copied. 0 or -ENOMEM. */
int config_set_host_cpus(const uint32_t *possible, const bool *online, size_t n);
/* One came or went. */
void config_set_host_cpu_online(uint32_t cpu, bool is_online);
/* Back to what holds without a host. */
void config_forget_host(void);

typedef enum HostCpu {
        HOST_CPU_UNKNOWN, /* no host was set */
        HOST_CPU_IMPOSSIBLE,
        HOST_CPU_OFFLINE,
        HOST_CPU_ONLINE,
} HostCpu;

/* One was set. */
bool config_has_host(void);
/* The state of a CPU on the host that was set. */
HostCpu config_host_cpu(uint32_t cpu);
#define HOST_CPUS_SIZE 64
/* "0-3,8", as far as it fits. */
char *config_host_cpus_text(char buffer[static HOST_CPUS_SIZE]);
