/*
 * Only what decides between two formats is read: a type that is named, and its weight. Everybody gets one of both: a client whose header
 * allows neither can do more with the text than with an error.
 */
#include "client/relay/metrics-accept.h"

#include <string.h>
#include <strings.h>

#define WEIGHT_MAX 1000

static const char *skip_space(const char *at) {
        return at + strspn(at, " \t");
}

/* "0.75" in thousandths; what is no weight is 1. */
static unsigned weight_decode(const char *text) {
        unsigned weight = 0, digit = WEIGHT_MAX / 10;

        if (text[0] != '0' || (text[1] != '.' && text[1] != '\0' && !strchr(", \t;", text[1])))
                return WEIGHT_MAX;
        if (text[1] != '.')
                return 0;
        for (const char *at = text + 2; *at >= '0' && *at <= '9' && digit > 0; at++, digit /= 10)
                weight += (unsigned)(*at - '0') * digit;
        return weight;
}

/* Of the parameters behind a type, up to the next comma. */
static unsigned weight_of(const char *parameters, const char *end) {
        for (const char *at = parameters; at < end && (at = memchr(at, ';', (size_t)(end - at)));) {
                at = skip_space(at + 1);
                if (at + 2 <= end && strncasecmp(at, "q=", 2) == 0)
                        return weight_decode(at + 2);
        }
        return WEIGHT_MAX;
}

/* The largest weight with which `type` is named; 0: it is not. */
static unsigned weight_of_type(const char *accept, const char *type) {
        size_t length = strlen(type);
        unsigned most = 0;

        for (const char *at = accept; *at;) {
                const char *end = at + strcspn(at, ",");
                unsigned weight;

                at = skip_space(at);
                if (strncasecmp(at, type, length) == 0 && strchr("; \t,", at[length])) {
                        weight = weight_of(at + length, end);
                        most = weight > most ? weight : most;
                }
                at = *end ? end + 1 : end;
        }
        return most;
}

MetricsForm metrics_accept(const char *accept) {
        unsigned weight = accept ? weight_of_type(accept, "application/openmetrics-text") : 0;

        return weight > 0 && weight >= weight_of_type(accept, "text/plain") ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
}

const char *metrics_content_type(MetricsForm form) {
        return form == METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8";
}
