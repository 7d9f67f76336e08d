/* Which format of metrics a client of HTTP gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/relay/metrics-accept.h"
#include "daemon/base/cleanup.h"

#define OPEN "application/openmetrics-text"

static void test_preferred(void **state) {
        static const struct {
                const char *accept;
                MetricsForm form;
        } rows[] = {
                { NULL, METRICS_PROMETHEUS },
                { "", METRICS_PROMETHEUS },
                { "*/*", METRICS_PROMETHEUS },
                { OPEN, METRICS_OPENMETRICS },
                { "Application/OpenMetrics-Text", METRICS_OPENMETRICS },
                { " " OPEN " ;version=1.0.0 , */*", METRICS_OPENMETRICS },
                { OPEN "ual", METRICS_PROMETHEUS },
                { "x" OPEN, METRICS_PROMETHEUS },
                { OPEN ";q=0", METRICS_PROMETHEUS },
                { OPEN ";q=0.000", METRICS_PROMETHEUS },
                { OPEN ";q=0.001", METRICS_OPENMETRICS },
                { OPEN ";q=0.0001", METRICS_PROMETHEUS }, /* RFC 9110, 12.4.2: three digits at most */
                { OPEN ";version=0.0.1; Q=0.5,text/plain;q=0.6", METRICS_PROMETHEUS },
                { OPEN ";q=0.5,text/plain;q=0.4," OPEN ";q=0.1", METRICS_OPENMETRICS },
                { "text/plain," OPEN, METRICS_OPENMETRICS },
                { "text/plain," OPEN ";q=0.999", METRICS_PROMETHEUS },
                { OPEN ";q=1,text/plain;q=0.9", METRICS_OPENMETRICS },
                { OPEN ";q=", METRICS_OPENMETRICS },
                { ",,;q=0," OPEN ",", METRICS_OPENMETRICS },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (metrics_accept(rows[i].accept) != rows[i].form)
                        fail_msg("%s", rows[i].accept ? rows[i].accept : "none");
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_preferred) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
