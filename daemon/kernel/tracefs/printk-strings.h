/*
 * For tracing.c: fields that are pointers to a string of the kernel, as s of rcu:rcu_utilization. The record has the address
 * alone, and the kernel says in printk_formats what stands there: 0xffffffff8281a269 : "rcu_preempt-GPS"
 */
#pragma once

#include <stdbool.h>

#include "daemon/model/plan.h"

/* There is such a field. */
bool printk_strings_are_wanted(const Plan *p);
/* Strings of the file become names of these fields' values. What is not understood adds nothing. -ENOMEM. */
int printk_strings_add(Plan *p, const char *text);
