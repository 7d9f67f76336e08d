/* CPU lists in the format of Linux, "0-3,8". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define CPU_LIST_MAX_CPU 8191 /* NR_CPUS of the largest configurations */

/*
 * *ret_cpus: sorted, without duplicates, malloc'ed. A trailing newline is accepted. REFUSED_INVALID "bad-target", with the
 * position, if text is empty or not a CPU list; -ENOMEM.
 */
int cpu_list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
