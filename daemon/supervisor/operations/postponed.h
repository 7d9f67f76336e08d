/* For operations.c: requests that wait until what their uid has used is paid for. */
#pragma once

#include "daemon/supervisor/operations/operations.h"

/* ret_until: until when, if it is. */
bool operations_is_postponed(const Operations *o, const Operation *p, nsec_t now, nsec_t *ret_until);
/* Before main waits: if all are postponed, the loop is to wake it, and are_postponed says that it does. Negative: fatal. */
int operations_postpone(Operations *o);
