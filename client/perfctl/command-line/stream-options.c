#include "client/perfctl/command-line/stream-options.h"

#include "client/perfctl/base/quantity.h"

int stream_options_parse(const Perfctl *p, perfd_subscription *s, uint64_t *duration) {
        const char *time = perfctl_get(p, "for"), *queue = perfctl_get(p, "queue"), *latency = perfctl_get(p, "latency");

        if (time && (!quantity_parse_time(time, duration) || *duration == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--for: '%s' is not a time such as 500ms, 10s, 2m%s", time, quantity_lack_of_time(time));
        if (queue && (!quantity_parse_size(queue, &s->queue_bytes) || s->queue_bytes == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--queue: '%s' is not a size such as 64KiB, 4MiB", queue);
        if (latency && (!quantity_parse_time(latency, &s->latency) || s->latency == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--latency: '%s' is not a time such as 200us, 1ms%s", latency, quantity_lack_of_time(latency));
        return 0;
}
