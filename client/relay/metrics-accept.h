/* Which of both formats a client of HTTP wants. Pure, any thread. */
#pragma once

#include "client/metrics/metrics.h"

/* By its Accept header, RFC 9110, 12.5.1; NULL: it has none. The text format of Prometheus unless the other one is preferred. */
MetricsForm metrics_accept(const char *accept);
const char *metrics_content_type(MetricsForm form);
