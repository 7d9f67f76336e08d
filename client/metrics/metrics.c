/*
 * A family is written whole before the next one, as both formats want it. Names follow prometheus.io/docs/practices/naming: base
 * units, _total behind counters.
 */
#include "client/metrics/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "client/metrics/pod.h"

#define NSEC_PER_SEC 1e9
#define TEXT_SIZE ((size_t)256) /* of a label that is made of several */

typedef struct Writer {
        FILE *f;
        MetricsForm form;
        size_t n, most, n_omitted;
        const char *name;
        bool is_counter;
} Writer;

static void family(Writer *w, const char *name, bool is_counter, const char *help) {
        const char *suffix = is_counter && w->form == METRICS_PROMETHEUS ? "_total" : "";

        w->name = name;
        w->is_counter = is_counter;
        fprintf(w->f, "# HELP perfd_%s%s %s\n# TYPE perfd_%s%s %s\n", name, suffix, help, name, suffix, is_counter ? "counter" : "gauge");
}

static void gauges(Writer *w, const char *name, const char *help) {
        family(w, name, false, help);
}

static void counters(Writer *w, const char *name, const char *help) {
        family(w, name, true, help);
}

/* Of both formats: backslash, quote and newline are escaped; what is no UTF-8, which neither allows, is a question mark. */
static void put_value(FILE *f, const char *text) {
        for (const unsigned char *at = (const unsigned char *)text; *at; at++)
                if (*at == '\\' || *at == '"')
                        fprintf(f, "\\%c", *at);
                else if (*at == '\n')
                        fputs("\\n", f);
                else
                        fputc(*at < ' ' || *at >= 0x7f ? '?' : *at, f);
}

typedef struct Label {
        const char *name, *value;
} Label;

/* A CPU's number as a label. */
typedef struct CpuText {
        char text[12];
} CpuText;

static CpuText cpu_text(uint32_t cpu) {
        CpuText t;

        (void)snprintf(t.text, sizeof(t.text), "%" PRIu32, cpu);
        return t;
}

static bool begin(Writer *w, const Label *labels, size_t n) {
        if (w->n >= w->most) {
                w->n_omitted++;
                return false;
        }
        w->n++;
        fprintf(w->f, "perfd_%s%s", w->name, w->is_counter ? "_total" : "");
        for (size_t i = 0; i < n; i++) {
                fprintf(w->f, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
                put_value(w->f, labels[i].value);
                fputc('"', w->f);
        }
        fputs(n > 0 ? "} " : " ", w->f);
        return true;
}

#define LABELS(...) (const Label[]){ __VA_ARGS__ }, sizeof((const Label[]){ __VA_ARGS__ }) / sizeof(Label)

static void put(Writer *w, const Label *labels, size_t n, uint64_t value) {
        if (begin(w, labels, n))
                fprintf(w->f, "%" PRIu64 "\n", value);
}

static void put_seconds(Writer *w, const Label *labels, size_t n, uint64_t nsec) {
        if (begin(w, labels, n))
                fprintf(w->f, "%.9f\n", (double)nsec / NSEC_PER_SEC);
}

static void one(Writer *w, const char *name, const char *help, uint64_t value) {
        gauges(w, name, help);
        put(w, NULL, 0, value);
}

static void write_status(Writer *w, const perfd_status_row *s) {
        gauges(w, "info", "What runs: always 1.");
        put(w, LABELS({ "version", s->version }, { "kernel", s->kernel }, { "clock", s->clock }), 1);
        gauges(w, "uptime_seconds", "Since perfd was started.");
        put_seconds(w, NULL, 0, s->uptime);
        one(w, "events", "Events that run, enabled or not.", s->n_events);
        one(w, "enabled_events", "Events that are enabled.", s->n_enabled);
        one(w, "pending_events", "Events that cannot be opened now.", s->n_pending);
        one(w, "fallen_back_events", "Events whose fallback is counted instead.", s->n_fallen_back);
        one(w, "subscribers", "Streams.", s->n_subscribers);
        one(w, "connections", "Connections, with those of streams.", s->n_connections);
        one(w, "ring_bytes", "Size of the ring buffer of each CPU.", s->ring_size);
        one(w, "resident_memory_bytes", "Resident memory of perfd, as VmRSS.", s->rss);
        one(w, "open_fds", "Open file descriptors of perfd.", s->n_fds);
        one(w, "closing_fds", "Disabled file descriptors of events that wait to be closed.", s->n_closing);
        gauges(w, "dispatcher_stalled_seconds", "For how long the dispatcher has not responded; 0: it responds.");
        put_seconds(w, NULL, 0, s->dispatcher_stalled);
        gauges(w, "config_read_timestamp_seconds", "When the configuration in effect was read; 0: it is the defaults.");
        put_seconds(w, NULL, 0, s->config_read);
        one(w, "config_changed", "1 if the files of the configuration have changed since.", s->config_changed);
        one(w, "config_applied", "1 if an applied configuration is in effect instead.", *s->applied != '\0');
        one(w, "loss_exact", "0 if losses in the kernel are a lower bound.", s->loss_exact);
        counters(w, "samples", "Samples of all events.");
        put(w, NULL, 0, s->n_samples);
        counters(w, "lost_samples", "Samples lost before any subscriber, of all events and for any reason.");
        put(w, NULL, 0, s->n_lost);
        counters(w, "lost", "Samples lost before any subscriber, of all events, by reason.");
        for (size_t i = 0; i < s->n_losses; i++)
                put(w, LABELS({ "reason", s->losses[i].reason }), s->losses[i].count);
        counters(w, "forgotten_tasks", "Tasks without a name, for lack of room.");
        put(w, NULL, 0, s->n_tasks_forgotten);
}

static void write_readers(Writer *w, const perfd_result *status) {
        const perfd_cpu_row *row;

#define CPU_COUNTER(metric, help, member)                                                                              \
        counters(w, metric, help);                                                                                     \
        for (size_t i = 0; (row = perfd_result_cpu(status, i)); i++)                                                   \
                put(w, LABELS({ "cpu", cpu_text(row->cpu).text }), row->member)
        CPU_COUNTER("reader_records", "Records that the reader of a CPU has taken from its ring buffer.", n_records);
        CPU_COUNTER("reader_wakeups", "How often it was woken.", n_wakeups);
        CPU_COUNTER("reader_batches", "Batches that it has given to the dispatcher.", n_batches);
        CPU_COUNTER("reader_pool_waits", "How often it stopped because the dispatcher had all batches.", n_pool_waits);
        CPU_COUNTER("reader_failovers", "How often its ring buffer was read from another CPU.", n_failovers);
#undef CPU_COUNTER
        counters(w, "reader_cpu_seconds", "CPU time of the reader.");
        for (size_t i = 0; (row = perfd_result_cpu(status, i)); i++)
                put_seconds(w, LABELS({ "cpu", cpu_text(row->cpu).text }), row->cpu_time);
        gauges(w, "reader_stalled_seconds", "For how long the reader has not responded; 0: it responds.");
        for (size_t i = 0; (row = perfd_result_cpu(status, i)); i++)
                put_seconds(w, LABELS({ "cpu", cpu_text(row->cpu).text }), row->stalled);
}

static void write_rings(Writer *w, const perfd_result *ledger) {
        const perfd_ring_ledger *row;

        counters(w, "ring_side_records", "Records beside samples, by CPU.");
        for (size_t i = 0; (row = perfd_result_ring_ledger(ledger, i)); i++)
                put(w, LABELS({ "cpu", cpu_text(row->cpu).text }), row->side_records);
        counters(w, "ring_lost", "What a full ring buffer has lost of them, and records that could not be read, by reason.");
        for (size_t i = 0; (row = perfd_result_ring_ledger(ledger, i)); i++)
                for (size_t k = 0; k < row->n_lost; k++)
                        put(w, LABELS({ "cpu", cpu_text(row->cpu).text }, { "reason", row->lost[k].reason }), row->lost[k].count);
}

static void write_subscribers(Writer *w, const perfd_result *ledger) {
        const perfd_subscriber_ledger *row;
        char id[24];

#define EACH_SUBSCRIBER                                                                                                \
        for (size_t i = 0; (row = perfd_result_subscriber_ledger(ledger, i)) &&                                        \
                           snprintf(id, sizeof(id), "%" PRIu64, row->id) > 0; i++)
        counters(w, "subscriber_matched", "Items for a subscriber.");
        EACH_SUBSCRIBER
                put(w, LABELS({ "subscriber", id }, { "peer", row->peer }), row->matched);
        counters(w, "subscriber_sent", "Items that were sent to it.");
        EACH_SUBSCRIBER
                put(w, LABELS({ "subscriber", id }, { "peer", row->peer }), row->sent);
        gauges(w, "subscriber_queued", "Items that wait to be sent to it.");
        EACH_SUBSCRIBER
                put(w, LABELS({ "subscriber", id }, { "peer", row->peer }), row->queued);
        counters(w, "subscriber_dropped", "Items that it did not get, by reason.");
        EACH_SUBSCRIBER
                for (size_t k = 0; k < row->n_dropped; k++)
                        put(w, LABELS({ "subscriber", id }, { "peer", row->peer }, { "reason", row->dropped[k].reason }),
                            row->dropped[k].count);
#undef EACH_SUBSCRIBER
}

#define EVENT_LABELS_MAX 7

/* Whose counter it is: the event, its CPU, and what it is restricted to. A label without a value is none, to Prometheus too. */
typedef struct EventLabels {
        Label labels[EVENT_LABELS_MAX];
        size_t n;
        CpuText cpu;
        char units[TEXT_SIZE], containers[TEXT_SIZE], cgroups[TEXT_SIZE], pods[TEXT_SIZE];
} EventLabels;

static void label_add(EventLabels *l, const char *name, const char *value) {
        if (*value)
                l->labels[l->n++] = (Label){ name, value };
}

/* Joined by commas, as far as there is room. */
static const char *join(char to[static TEXT_SIZE], const char *const *items, size_t n) {
        size_t at = 0;

        to[0] = '\0';
        for (size_t i = 0; i < n && at < TEXT_SIZE; i++)
                at += (size_t)snprintf(to + at, TEXT_SIZE - at, "%s%s", i > 0 ? "," : "", items[i]);
        return to;
}

/* Each pod once. */
static const char *join_pods(char to[static TEXT_SIZE], const char *const *cgroups, size_t n) {
        char pod[POD_UID_SIZE];
        size_t at = 0;

        to[0] = '\0';
        for (size_t i = 0; i < n && at < TEXT_SIZE; i++)
                if (pod_of_cgroup(cgroups[i], pod) && !strstr(to, pod))
                        at += (size_t)snprintf(to + at, TEXT_SIZE - at, "%s%s", at > 0 ? "," : "", pod);
        return to;
}

/* Rows of both have the same order mostly: so the search begins where the last one has ended. */
static const perfd_event_row *find_event(const perfd_result *list, uint32_t id, size_t *at) {
        const perfd_event_row *event = perfd_result_event(list, *at);

        if (event && event->id == id)
                return event;
        for (size_t i = 0; (event = perfd_result_event(list, i)); i++)
                if (event->id == id) {
                        *at = i;
                        return event;
                }
        return NULL;
}

static void labels_set(EventLabels *l, const perfd_event_ledger *row, const perfd_result *list, size_t *at) {
        const perfd_event_row *event = find_event(list, row->id, at);

        l->n = 0;
        l->cpu = cpu_text(row->cpu);
        label_add(l, "event", row->name);
        label_add(l, "cpu", row->external ? "" : l->cpu.text);
        if (event) {
                label_add(l, "target", event->spec->target ? event->spec->target : "");
                label_add(l, "unit", join(l->units, event->spec->units, event->spec->n_units));
                label_add(l, "container", join(l->containers, event->spec->containers, event->spec->n_containers));
                label_add(l, "pod", join_pods(l->pods, event->spec->cgroups, event->spec->n_cgroups));
                label_add(l, "cgroup", join(l->cgroups, event->spec->cgroups, event->spec->n_cgroups));
        }
}

static void write_lost(Writer *w, const perfd_event_ledger *row, const EventLabels *of) {
        Label labels[EVENT_LABELS_MAX + 1];

        memcpy(labels, of->labels, of->n * sizeof(*labels));
        for (size_t k = 0; k < row->n_lost; k++) {
                labels[of->n] = (Label){ "reason", row->lost[k].reason };
                put(w, labels, of->n + 1, row->lost[k].count);
        }
}

static void write_events(Writer *w, const perfd_result *list, const perfd_result *ledger) {
        const perfd_event_ledger *row;
        const perfd_event_row *event;
        EventLabels l;
        size_t at = 0;

        gauges(w, "event_enabled", "1 if the event is enabled, by its name and what it is in perf list.");
        for (size_t i = 0; (event = perfd_result_event(list, i)); i++)
                put(w, LABELS({ "event", event->spec->name }, { "kernel_event", event->spec->event }), event->enabled);
        gauges(w, "event_pending", "1 if the event cannot be opened now.");
        for (size_t i = 0; (event = perfd_result_event(list, i)); i++)
                put(w, LABELS({ "event", event->spec->name }), *event->pending != '\0');
#define EACH_EVENT for (size_t i = 0; (row = perfd_result_event_ledger(ledger, i)) && (labels_set(&l, row, list, &at), true); i++)
#define EVENT_COUNTER(metric, help, member)                                                                            \
        counters(w, metric, help);                                                                                     \
        EACH_EVENT                                                                                                     \
                put(w, l.labels, l.n, row->member)
        EVENT_COUNTER("event_count", "The kernel's count of an event, in its unit, by CPU.", count);
        EVENT_COUNTER("event_occurred", "Samples that should have been: delivered + filtered + all that were lost.", occurred);
        EVENT_COUNTER("event_delivered", "Samples that were delivered to the dispatcher.", delivered);
        EVENT_COUNTER("event_filtered", "Samples that a predicate of perfd's own has rejected.", filtered);
        counters(w, "event_lost", "Samples that were lost, by reason.");
        EACH_EVENT
                write_lost(w, row, &l);
#undef EVENT_COUNTER
#undef EACH_EVENT
}

static void write_probes(Writer *w, const perfd_result *ledger) {
        const perfd_probe_ledger *row;

        counters(w, "probe_hits", "Hits of a probe, of the whole host.");
        for (size_t i = 0; (row = perfd_result_probe_ledger(ledger, i)); i++)
                if (row->known)
                        put(w, LABELS({ "event", row->name }), row->hits);
        counters(w, "probe_missed", "Hits that the kernel could not count, because the probe was busy.");
        for (size_t i = 0; (row = perfd_result_probe_ledger(ledger, i)); i++)
                if (row->known)
                        put(w, LABELS({ "event", row->name }), row->missed);
}

static void write_numbers(Writer *w, const MetricsNumber *numbers, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const MetricsNumber *number = &numbers[i];
                const Label label = { number->label, number->label_value };

                if (i == 0 || strcmp(number->name, numbers[i - 1].name) != 0)
                        family(w, number->name, number->is_counter, number->help);
                (number->is_nsec ? put_seconds : put)(w, &label, number->label != NULL, number->value);
        }
}

static void write_perfd(Writer *w, const MetricsSource *source) {
        write_status(w, perfd_result_status(source->status));
        one(w, "ledger_balanced", "1 if each row of the ledger adds up.", perfd_result_is_balanced(source->ledger));
        write_readers(w, source->status);
        write_rings(w, source->ledger);
        write_subscribers(w, source->ledger);
        write_events(w, source->list, source->ledger);
        write_probes(w, source->ledger);
}

void metrics_write(FILE *f, const MetricsSource *source, MetricsForm form, size_t most) {
        Writer w = { .f = f, .form = form, .most = most };

        one(&w, "up", "1 if perfd answers.", source->status != NULL);
        write_numbers(&w, source->numbers, source->n_numbers);
        if (source->status)
                write_perfd(&w, source);
        w.most = SIZE_MAX;
        one(&w, "omitted_series", "Series that are not here, because there are too many.", w.n_omitted);
        if (form == METRICS_OPENMETRICS)
                fputs("# EOF\n", f);
}
