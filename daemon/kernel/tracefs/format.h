/*
 * For the supervisor: a tracepoint's format, the text that tracefs has in events/GROUP/NAME/format, to a Plan.
 *
 *     declared                              kind, shape
 *     (unsigned) char, short, int, long,    UNSIGNED or SIGNED by the format's own `signed:`, of the given size;
 *     u64, and every typedef of them        whatever the type is called
 *     any pointer                           POINTER
 *     bool                                  BOOL
 *     T name[n], n numbers                  the same kind, count n
 *     char name[n]                          TEXT, fixed
 *     unsigned char, u8, __u8 name[n]       UNSIGNED, count n: addresses, identifiers; they are not text
 *     __data_loc, __rel_loc char[]          TEXT, dynamic
 *     __data_loc, __rel_loc T[]             the same kind as T, count 0: a dynamic array
 *     __data_loc, __rel_loc cpumask_t       UNSIGNED, count 0: the mask's longs
 *     struct, union, sizes like 3 or 16,    BYTES
 *     and char arrays shown by __print_hex, %pU
 *
 * Names of values come from __print_symbolic and __print_flags in the print format, hex from its conversions. Values
 * are named as the field's numbers come: cut to its size, widened by its sign.
 */
#pragma once

#include "daemon/base/error.h"
#include "daemon/model/plan.h"

#define FORMAT_MAX_SIZE ((size_t)64 * 1024) /* bytes of a record: perf_event_header.size is 16 bits */

/*
 * The event's name and id are those in the text. The common_ fields are left out. REFUSED_INVALID with the reason
 * "bad-format" if the text cannot be parsed or places a field where no record has bytes. -ENOMEM.
 */
int format_parse(const char *group, const char *text, size_t length, Plan **ret, Explanation *e);
