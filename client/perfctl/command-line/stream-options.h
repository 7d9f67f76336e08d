/* For verbs that read a stream: what --for, --queue and --latency say. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* Sets what was given; the duration is in ns. 0, or PERFCTL_USAGE after a message. */
int stream_options_parse(const Perfctl *p, perfd_subscription *s, uint64_t *duration);
