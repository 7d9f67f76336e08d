/* What is missing of a host that was away (Perfctl.gap), in words, and as a line of verbs that print no items. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* "--- nothing came since ..., 2.5s: WHY", without an end of line. */
void host_gap_put_words(Output *o, const HostGap *gap);
void host_gap_put_json(Output *o, const HostGap *gap);

/* A line of Perfctl.gap, which ends at `to`, ns since 1970. Once: then there is no gap any more. Nothing where there is none. */
void host_gap_put_line(Perfctl *p, uint64_t to);
