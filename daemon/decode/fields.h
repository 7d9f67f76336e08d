/* For readers: whether a tracepoint's raw bytes are what its Plan says; model/field.h then reads them. Pure. */
#pragma once

#include "daemon/model/field.h"

/*
 * All fields of the plan lie inside: the fixed ones (min_size) and what the dynamic places point at. So a sample that
 * cannot be decoded is known before it is matched or encoded. 0 or FIELD_E_OUTSIDE. raw may be NULL if raw_size is 0.
 */
int plan_check(const Plan *p, const uint8_t *raw, size_t raw_size);
