/* For monitoring that reads files or runs commands, such as the textfile collector of Prometheus' node exporter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/metrics/metrics.h"
#include "client/perfctl/base/perfctl.h"

static int print(Perfctl *p, const MetricsSource *source, MetricsForm form) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);

        must_have(f);
        metrics_write(f, source, form, METRICS_SERIES_MAX);
        must_have(fclose(f) == 0 ? text : NULL);
        output_put(&p->out, text, n);
        free(text);
        return PERFCTL_OK;
}

static int metrics_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *status = NULL, *list = NULL, *ledger = NULL;
        bool is_open = perfctl_get(p, "openmetrics") != NULL;
        int r;

        if (p->json)
                return perfctl_fail(p, PERFCTL_USAGE, "metrics are no JSON: `perfctl --json status` and `ledger` are");
        r = perfctl_connect(p);
        if (r != 0)
                return r;
        if (perfd_status(p->client, &status) != 0)
                return perfctl_fail_client(p, NULL);
        if (perfd_result_status(status)->access && !perfd_result_status(status)->access->status)
                return perfctl_fail(p, PERFCTL_FAILED, "`status`, which these numbers are, is not granted to you by %s",
                                    perfd_result_status(status)->access->limit ? "the relay's clients: relay.yaml(5)" :
                                                                                 "access.rules: perfd.yaml(5)");
        if (perfd_list(p->client, NULL, &list) != 0 || perfd_ledger(p->client, &ledger) != 0)
                return perfctl_fail_client(p, NULL);
        return print(p, &(MetricsSource){ .status = status, .list = list, .ledger = ledger },
                     is_open ? METRICS_OPENMETRICS : METRICS_PROMETHEUS);
}

const Verb verb_metrics = {
        .name = "metrics",
        .arguments = "",
        .help = "print perfd's state, ledger and counts as metrics of Prometheus",
        .options = {
                { .name = "openmetrics", .help = "in the format of OpenMetrics 1.0" },
        },
        .run = metrics_run,
};
