/*
 * For everyone who lets a user set a field of struct perf_event_attr by name: one table of names, kinds and limits, used
 * by YAML (attr:), perfctl (--attr NAME=VALUE) and the wire. Pure, any thread. Names are those of perf_event_open(2)
 * with '-' for '_': "exclude-user", "sample-type", "branch-sample-type", "sample-regs-user", "sample-stack-user",
 * "sample-max-stack", "precise-ip", "pinned", "exclusive", "mmap-data", "context-switch", "wakeup-events", ...
 *
 * Values: flags take true or false; numbers are decimal or 0x; bit sets take words joined by '|' or ',' ("weight|data-src",
 * "any-call|user", register names of perf_regs.h for this architecture: "ip|sp|ax") or a number.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#ifndef PERF_ATTR_SIZE_VER7
#define PERF_ATTR_SIZE_VER7 128 /* sig_data */
#endif
#ifndef PERF_ATTR_SIZE_VER8
#define PERF_ATTR_SIZE_VER8 136 /* config3, Linux 6.3 */
#endif

typedef struct AttrField AttrField; /* a row of the table */

typedef struct AttrSetting {
        const AttrField *field; /* static */
        uint64_t value;
} AttrSetting;

/* REFUSED_INVALID "bad-attr" with what is allowed and, for an unknown name, the nearest one; REFUSED_INVALID also for
 * fields that perfd sets itself (disabled, sample-id-all, use-clockid, clockid, inherit, freq, size, type, config), which
 * says by what key a user sets them. e->position is a byte of `text`, 0 if the name is what is wrong. */
int attr_setting_parse(const char *name, const char *text, AttrSetting *ret, Explanation *e);
/* "exclude-user" */
const char *attr_field_name(const AttrField *f);
/* The value as it would be written; NULL: no memory. */
char *attr_setting_text(const AttrSetting *s);
/* Row i: name, what values it takes, help. NULL behind the last. */
const AttrField *attr_field_at(size_t i);
const char *attr_field_values(const AttrField *f);
const char *attr_field_help(const AttrField *f);

/*
 * What can only be seen before they are applied: a field that is set twice, or beside another one that has the same
 * bytes: wakeup-events and wakeup-watermark, bp-* and config1 or config2. REFUSED_INVALID "bad-attr".
 */
int attr_settings_check(const AttrSetting *settings, size_t n, const char *what, Explanation *e);
/* Puts settings on top of what is in `attr`: sample-type adds bits, everything else replaces. */
void attr_settings_apply(const AttrSetting *settings, size_t n, struct perf_event_attr *attr);
/* What callers are unwound of, as of perf record --call-graph dwarf: the registers, and 8192 bytes of the stack. False: not on this machine. */
bool attr_add_user_stack(struct perf_event_attr *attr);
/*
 * What contradicts itself, by the names of the fields: registers, a user's stack, a branch stack or AUX bytes without
 * their sample-type bit and the other way round, a stack of user space whose size is no multiple of 8 or above 65528,
 * sample-max-stack without a callchain, weight beside weight-struct, bp-type on what is no breakpoint, everything
 * excluded, ... `what` begins the message. REFUSED_INVALID "bad-attr".
 */
int attr_check(const struct perf_event_attr *attr, const char *what, Explanation *e);
/* The smallest PERF_ATTR_SIZE_VERn that holds every field that is set: older kernels accept it. Bytes. */
uint32_t attr_least_size(const struct perf_event_attr *attr);
