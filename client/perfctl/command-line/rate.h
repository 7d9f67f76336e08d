/* For verbs that set a period: what it counts. Most events happen; cpu-clock and task-clock are time, in nanoseconds. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* Of an event whose period is time. */
bool rate_is_clock(const char *event);
/* What is sampled so many times a second where nobody says how often: clocks, and what a CPU counts, by any of its names. */
bool rate_is_of_cpu(const char *event);
/*
 * "10", and "99Hz", which is a frequency; of a clock also a time, as "1ms". A number alone that would be more than 10,000 samples
 * a second of a clock is refused: somebody means Hz. label and text as number_parse() has them; event: NULL is not known yet,
 * and anything is taken. One of the two numbers is set. 0, or PERFCTL_USAGE after a message.
 */
int rate_parse(const Perfctl *p, const char *label, const char *text, const char *event, uint64_t *ret_period,
               uint64_t *ret_frequency);
