/* For kernel/ and config/: CPU lists as Linux writes them, "0-3,8". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define CPU_LIST_MAX_CPU 8191 /* NR_CPUS of the largest configurations */

/*
 * Sorted, without doubles, in malloc'ed memory. REFUSED_INVALID "bad-target" with the position if it is no CPU list
 * or empty; a newline at the end is accepted. -ENOMEM.
 */
int cpu_list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
