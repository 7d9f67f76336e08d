/*
 * What whoever writes a recording has to know of events, for clients that may not read tracefs, or are on another host: by which numbers the
 * kernel knows each, and the text of its format. It is for those to whom samples of the event are granted, and tells them how these are laid
 * out; of all other events it is as if they were not there.
 *
 * Who may know is decided of all events before the first file is read, as a trial that others are served in the middle of.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/base/checkpoint.h"
#include "daemon/kernel/host/whole-file.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/requests/requests.h"

#define EVENTS_MAX 64
#define TEXTS_MAX ((size_t)4 << 20) /* bytes of all formats together: a frame has room for them */

static bool is_granted(const RequestContext *a, const Event *event) {
        return access_has_samples(&a->access, event->spec.name) || (!a->access.limit && own_is_of(&event->spec, a->access.uid));
}

static int set_name(const Plan *plan, char **ret) {
        return asprintf(ret, "%s:%s", plan->group, plan->name) < 0 ? error_origin(-ENOMEM) : 0;
}

/* A group is no single event, and the kernel does not know those of clients. */
static int describe(const Registration *g, Perfd__V1__EventFormat *m) {
        const struct perf_event_attr *attr = g->plan.attrs;

        m->id = g->event->id;
        if (g->event->external || g->plan.n_attrs == 0 || g->plan.is_group)
                return 0;
        m->has_attr = true;
        m->type = attr->type;
        m->config = attr->config;
        m->config1 = g->plan.is_probe ? 0 : attr->config1; /* of a probe addresses in perfd's own memory */
        m->config2 = g->plan.is_probe ? 0 : attr->config2;
        m->bp_type = attr->bp_type;
        return attr->type == PERF_TYPE_TRACEPOINT && g->event->plan ? set_name(g->event->plan, &m->tracepoint) : 0;
}

static int add_events(const RequestContext *a, const Perfd__V1__EventFormatsRequest *q, Perfd__V1__EventFormatsReply *reply, Explanation *e) {
        reply->events = calloc(q->n_ids + 1, sizeof(*reply->events));
        if (!reply->events)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < q->n_ids; i++) {
                const Registration *g = events_find_id(a->requests->events, q->ids[i]);
                Perfd__V1__EventFormat *m;
                int r;

                if (!g || !is_granted(a, g->event))
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-event", "of the events whose samples are granted here none has the id %u",
                                      (unsigned)q->ids[i]);
                m = malloc(sizeof(*m));
                if (!m)
                        return error_origin(-ENOMEM);
                perfd__v1__event_format__init(m);
                reply->events[reply->n_events++] = m;
                r = describe(g, m);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Below events/. A probe that was removed meanwhile has none any more. */
static int read_text(const Requests *s, const char *name, size_t *total, ProtobufCBinaryData *to, Explanation *e) {
        _cleanup_free_ char *path = NULL;
        char *text;
        size_t n;
        int r;

        if (asprintf(&path, "%s/events/%s", s->host->tracing.root, name) < 0)
                return error_origin(-ENOMEM);
        r = whole_file_read(path, &text, &n);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse(e, r == -EACCES || r == -EPERM ? REFUSED_DENIED : REFUSED_NOT_FOUND, "no-format", "perfd cannot read %s: %s", path, strerror(-r));
        to->data = (uint8_t *)text;
        to->len = n;
        *total += n;
        return *total <= TEXTS_MAX ? 0 : refuse(e, REFUSED_EXHAUSTED, "too-long", "the formats have more than %zu MiB: ask for fewer events at once",
                                                TEXTS_MAX >> 20);
}

static int add_format(const Requests *s, Perfd__V1__EventFormat *m, size_t *total, Explanation *e) {
        const size_t system = strcspn(m->tracepoint, ":");
        _cleanup_free_ char *name = NULL;
        int r;

        if (asprintf(&name, "%.*s/%s/format", (int)system, m->tracepoint, m->tracepoint + system + 1) < 0)
                return error_origin(-ENOMEM);
        r = read_text(s, name, total, &m->format, e);
        return r == 0 ? checkpoint(e) : r;
}

static int add_formats(const Requests *s, Perfd__V1__EventFormatsReply *reply, Explanation *e) {
        size_t total = 0, n = 0;
        int r = 0;

        for (size_t i = 0; i < reply->n_events && r == 0; i++)
                if (*reply->events[i]->tracepoint) {
                        r = add_format(s, reply->events[i], &total, e);
                        n++;
                }
        if (r == 0 && n > 0)
                r = read_text(s, "header_page", &total, &reply->header_page, e);
        return r == 0 && n > 0 ? read_text(s, "header_event", &total, &reply->header_event, e) : r;
}

static int add_machine(Perfd__V1__EventFormatsReply *reply) {
        struct utsname uts;

        if (uname(&uts) < 0)
                return error_origin(-errno);
        reply->machine = strdup(uts.machine);
        reply->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        reply->long_bytes = sizeof(long);
        reply->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
        reply->n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
        reply->n_online_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
        return reply->machine ? 0 : error_origin(-ENOMEM);
}

int handle_event_formats(RequestContext *a, Explanation *e) {
        const Perfd__V1__EventFormatsRequest *q = a->request->event_formats;
        const MainWork work = readers_begin_main(a->requests->readers);
        Perfd__V1__EventFormatsReply *reply;
        int r;

        if (q->n_ids > EVENTS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-request", "found %zu ids, expected at most %d: ask for them in several requests", q->n_ids,
                              EVENTS_MAX);
        reply = malloc(sizeof(*reply));
        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__event_formats_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_EVENT_FORMATS;
        a->response->event_formats = reply;
        r = add_events(a, q, reply, e);
        if (r == 0)
                r = add_machine(reply);
        if (r == 0)
                r = add_formats(a->requests, reply, e);
        readers_end_main(a->requests->readers, work);
        return r;
}
