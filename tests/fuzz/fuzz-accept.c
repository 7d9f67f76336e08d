/* Any bytes as an Accept header: one of both formats, and a type for it; what is added in front as the only wish decides. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/relay/metrics-accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static const char wish[] = "application/openmetrics-text, ";
        char *accept = malloc(sizeof(wish) + length);
        MetricsForm form;

        assert(accept);
        memcpy(accept, wish, sizeof(wish) - 1);
        memcpy(accept + sizeof(wish) - 1, bytes, length);
        accept[sizeof(wish) - 1 + length] = '\0';
        assert(metrics_accept(accept) == METRICS_OPENMETRICS); /* of weight 1, and nothing is heavier */
        form = metrics_accept(accept + sizeof(wish) - 1);
        assert(form == METRICS_OPENMETRICS || form == METRICS_PROMETHEUS);
        assert(strstr(metrics_content_type(form), form == METRICS_OPENMETRICS ? "openmetrics" : "text/plain"));
        free(accept);
        return 0;
}
