/*
 * Names of kernel frames, for clients that may not read /proc/kallsyms, or are on another host.
 *
 * It must not tell who does not know it where the kernel lies (KASLR): an address that is asked for at random, and has a name, would. So those
 * are answered to clients that get addresses of the kernel anyway, in samples: of an event that is enabled, or has delivered samples before,
 * with an ip or a callchain of the kernel, whose samples the socket, the rules and the limit of the connection grant. One of these addresses,
 * whose low bits say which function it is in, and a copy of the kernel are all that it takes. With a predicate nobody knows whether there is
 * ever one. Nothing is kept of what each client got: it would cost the dispatcher something for each sample.
 *
 * The list of symbols is read as a trial is run, with checkpoints, and is kept while somebody goes on asking.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kernel/symbol/kernel-symbol-index.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/requests/requests.h"

#define ADDRESSES_MAX 4096
#define IDLE_USEC UINT64_C(30000000) /* then the list goes */

/* ---- who may ask ------------------------------------------------------------------------------------------------------------------- */

static bool has_kernel_addresses(const struct perf_event_attr *attr) {
        if (!attr_has_samples(attr))
                return false;
        if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_kernel)
                return true;
        return attr->sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_BRANCH_STACK) && !attr->exclude_kernel;
}

static bool has_delivered(const Event *event) {
        for (uint32_t i = 0; i < event->n_slots; i++)
                if (counter_get(&event->counters[i].delivered) > 0)
                        return true;
        return false;
}

static int check_access(const RequestContext *a, Explanation *e) {
        if (!a->access.is_limited && connection_peer(a->connection)->may_change)
                return 0; /* it may add such an event */
        for (const Registration *g = a->requests->events->registrations; g; g = g->next)
                if (!g->event->external && g->plan.n_attrs > 0 && has_kernel_addresses(&g->plan.attrs[0]) &&
                    access_has_all_samples(&a->access, g->event->spec.name) && (g->enabled || has_delivered(g->event)))
                        return 0;
        return refuse(e, REFUSED_DENIED, "not-granted", "names of kernel addresses are for those who get such addresses of perfd: there is no event "
                      "with an ip or a callchain of the kernel whose samples are granted here without a predicate, and which is enabled or was");
}

/* ---- the list ---------------------------------------------------------------------------------------------------------------------- */

void requests_forget_kernel_names(Requests *s) {
        kernel_places_deinit(&s->places);
        s->places_timer = sd_event_source_disable_unref(s->places_timer);
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        requests_forget_kernel_names(userdata);
        return 0;
}

/* Behind each request anew. */
static int set_timer(Requests *s) {
        s->places_timer = sd_event_source_disable_unref(s->places_timer);
        return error_origin(sd_event_add_time_relative(s->operations->event, &s->places_timer, CLOCK_MONOTONIC, IDLE_USEC, IDLE_USEC / 10, on_idle, s));
}

static int read_list(Requests *s, Explanation *e) {
        const uint64_t modules = kernel_symbol_index_modules("");
        KernelPlaces places;
        int r;

        if (s->places.n > 0 && s->places_modules == modules)
                return 0;
        r = kernel_places_read(KERNEL_SYMBOLS_PATH, &places, e);
        if (r == KERNEL_SYMBOLS_E_HIDDEN)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel", "perfd cannot see where functions of the kernel lie: /proc/kallsyms shows no addresses to "
                              "it, for which it needs CAP_SYSLOG");
        if (r != 0)
                return r;
        kernel_places_deinit(&s->places); /* what another request has read meanwhile is no newer */
        s->places = places;
        s->places_modules = modules;
        return 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------------------------- */

static int set_bytes(ProtobufCBinaryData *to, const char *from, size_t n) {
        if (n == 0)
                return 0;
        to->data = malloc(n);
        if (!to->data)
                return error_origin(-ENOMEM);
        memcpy(to->data, from, n);
        to->len = n;
        return 0;
}

static int add_name(const KernelPlaces *places, uint64_t address, Perfd__V1__KernelNamesReply *reply) {
        Perfd__V1__KernelName *m = malloc(sizeof(*m));
        KernelPlace place;
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__kernel_name__init(m);
        reply->names[reply->n_names++] = m;
        if (!kernel_places_find(places, address, &place))
                return 0;
        m->offset = place.offset;
        m->size = place.size;
        r = set_bytes(&m->symbol, place.symbol, place.symbol_length);
        return r == 0 ? set_bytes(&m->module, place.module, place.module_length) : r;
}

static int answer(Requests *s, const Perfd__V1__KernelNamesRequest *q, Perfd__V1__KernelNamesReply *reply, Explanation *e) {
        int r = read_list(s, e);

        if (r == 0)
                r = set_timer(s);
        if (r < 0)
                return r;
        if (r > 0)
                return r;
        reply->names = calloc(q->n_addresses + 1, sizeof(*reply->names));
        if (!reply->names)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < q->n_addresses && r == 0; i++)
                r = add_name(&s->places, q->addresses[i], reply);
        return r;
}

int handle_kernel_names(RequestContext *a, Explanation *e) {
        const Perfd__V1__KernelNamesRequest *q = a->request->kernel_names;
        const MainWork work = readers_begin_main(a->requests->readers);
        Perfd__V1__KernelNamesReply *reply;
        int r;

        if (q->n_addresses > ADDRESSES_MAX)
                return refuse(e, REFUSED_INVALID, "bad-request", "found %zu addresses, expected at most %d: ask for them in several requests",
                              q->n_addresses, ADDRESSES_MAX);
        r = check_access(a, e);
        if (r != 0)
                return r;
        reply = malloc(sizeof(*reply));
        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__kernel_names_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_KERNEL_NAMES;
        a->response->kernel_names = reply;
        r = answer(a->requests, q, reply, e);
        readers_end_main(a->requests->readers, work);
        return r;
}
