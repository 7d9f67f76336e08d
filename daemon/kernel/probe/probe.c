/*
 * A probe of the PMU is only an attr: nothing has to be undone, and what defines it dies with the fds. So that is what
 * a kernel's probe is wherever it can be. What has to be named (fetch args, maxactive) is defined in tracefs; and so is
 * everything on a kernel without the PMU (before 4.17).
 *
 * User probes are defined in tracefs wherever that can be written, although there is then something to undo. Of the PMU,
 * each fd is a probe of its own, and the kernel runs those of all CPUs one after the other at each hit, each of them
 * looking which CPU it is on: a task that is moved in between counts on two of them, or on none (handler_chain() may
 * sleep, and is preempted; the handlers of kernel probes may not). A definition is one probe for all CPUs.
 */
#include "daemon/kernel/probe/probe.h"

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/probe/dynamic.h"
#include "daemon/kernel/probe/function-args.h"
#include "daemon/kernel/probe/pmu.h"
#include "daemon/kernel/probe/static-args.h"
#include "daemon/kernel/host/whole-file.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* What stands behind the name in a definition. */
static char *definition_place(const Probe *p, size_t site, const char *symbol) {
        const ProbeSite *s = &p->places.sites[site];
        char *text, semaphore[24] = "", by_fd[32];
        const char *path = p->places.path;
        int n;

        if (p->is_kernel) {
                if (symbol && s->offset > 0)
                        n = asprintf(&text, "%s+0x%" PRIx64, symbol, s->offset);
                else
                        n = symbol ? asprintf(&text, "%s", symbol) : asprintf(&text, "0x%" PRIx64, s->offset);
                return n < 0 ? NULL : text;
        }
        if (s->semaphore != 0)
                (void)snprintf(semaphore, sizeof(semaphore), "(0x%" PRIx64 ")", s->semaphore);
        if (p->places.is_by_fd || !probe_path_is_plain(path) || !probe_places_is_same_file(&p->places)) {
                (void)snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", p->places.fd);
                path = by_fd;
        }
        n = asprintf(&text, "%s:0x%" PRIx64 "%s", path, s->offset, semaphore);
        return n < 0 ? NULL : text;
}

static int define_site(Probe *p, const ProbeRequest *q, size_t site, const char *symbol, const ProbeArgs *args,
                       Explanation *e) {
        const ProbeSite *s = &p->places.sites[site];
        _cleanup_free_ char *place = definition_place(p, site, symbol);
        _cleanup_(probe_args_deinit) ProbeArgs own_place = PROBE_ARGS_NULL;
        ProbeArgs own = { .text = s->args };
        ProbeDefinition d = { .root = p->root, .is_kernel = p->is_kernel, .is_return = p->is_return,
                              .maxactive = q->maxactive, .group = p->group, .name = p->names[site], .place = place,
                              .args = q->args || !s->args ? args : &own, .what = p->places.text,
                              .has_semaphore = s->semaphore != 0 };
        int r;

        if (!place)
                return error_origin(-ENOMEM);
        if (q->name->kind == EVENT_NAME_USDT && q->args) {
                r = probe_static_args(s->args, args, &own_place, e);
                if (r != 0)
                        return r;
                d.args = &own_place;
        }
        /* a second definition of a name would be put under the first one, as another place of the same event */
        for (unsigned attempt = 0;; attempt++) {
                probe_name(p->is_return ? 'r' : 'p', q->id, attempt, site, p->places.label, p->names[site]);
                if (!probe_definition_exists(p->root, p->group, p->names[site]))
                        break;
        }
        r = probe_definition_add(&d, e);
        if (r != 0)
                return r;
        p->n_defined++;
        if (!p->is_kernel && strncmp(place, p->places.path, strlen(p->places.path)) == 0 &&
            !probe_places_is_same_file(&p->places))
                return refuse(e, REFUSED_NOT_FOUND, "no-file", "%s was replaced while it was examined: try again",
                              p->places.path);
        return 0;
}

static int define(Probe *p, const ProbeRequest *q, const char *symbol, const ProbeArgs *args, Explanation *e) {
        if (!p->is_dynamic) {
                int r = probe_pmu_set_target(p, symbol);

                return r == 0 && p->is_kernel && !p->places.is_known ? probe_pmu_try_symbol(p, e) : r;
        }
        for (size_t i = 0; i < p->places.n_sites; i++) {
                int r = i > 0 ? checkpoint(e) : 0;

                if (r == 0)
                        r = define_site(p, q, i, symbol, args, e);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Kernel symbols that could not be looked up: the first that the kernel takes. */
static int define_first(Probe *p, const ProbeRequest *q, const ProbeArgs *args, Explanation *e) {
        size_t n = p->places.symbols.n;
        int r;

        if (n == 0)
                return define(p, q, NULL, args, e);
        for (size_t i = 0; i < n; i++) {
                const char *symbol = p->places.symbols.items[i];

                r = p->places.is_known ? 0 : probe_places_take_symbol(&p->places, symbol, NULL);
                if (r == 0)
                        r = define(p, q, symbol, args, e);
                if (r != REFUSED_NOT_FOUND)
                        return r;
        }
        return r;
}

static int name_owner(Probe *p, const Tracing *t, Explanation *e) {
        ProbeOwner self;
        int r = probe_owner_self(&self, e);

        if (r != 0)
                return r;
        probe_owner_group(&self, p->group);
        p->root = strdup(t->root);
        p->names = calloc(p->places.n_sites, sizeof(*p->names));
        return p->root && p->names ? 0 : error_origin(-ENOMEM);
}

/* Whatever the PMUs can do, they cannot do this. */
static bool has_to_be_defined(const Probe *p, const ProbeRequest *q, const ProbeArgs *args) {
        /*
         * The PMUs read what config1 points at once more for each child, perf_kprobe_init() and perf_uprobe_init(), in a
         * process that has something else there: its fork(2) fails with EFAULT (up to Linux 6.18 at least).
         */
        if (*args->text || q->maxactive > 0 || q->inherits)
                return true;
        for (size_t i = 0; i < p->places.n_sites && !q->args; i++)
                if (p->places.sites[i].args)
                        return true;
        return false;
}

static int define_in_tracefs(Probe *p, const Tracing *t, const ProbeRequest *q, const ProbeArgs *args, Explanation *e) {
        int r = name_owner(p, t, e);

        p->is_dynamic = true;
        if (r == 0)
                r = tracing_check(t, e);
        return r == 0 ? define_first(p, q, args, e) : r;
}

static int define_kernel(Probe *p, const Tracing *t, const ProbeRequest *q, const ProbeArgs *args, Explanation *e) {
        int r = probe_pmu_take(p);

        if (r < 0)
                return r;
        return r == 0 ? define_first(p, q, args, e) : define_in_tracefs(p, t, q, args, e);
}

static int define_user(Probe *p, const Tracing *t, const ProbeRequest *q, const ProbeArgs *args, Explanation *e) {
        Explanation tracefs = EXPLANATION_NULL;
        int r = define_in_tracefs(p, t, q, args, &tracefs), pmu = REFUSED_UNSUPPORTED;

        if (r == 0)
                return 0;
        if ((r == REFUSED_DENIED || r == REFUSED_UNSUPPORTED) && p->n_defined == 0)
                pmu = probe_pmu_take(p);
        if (pmu < 0)
                return pmu;
        if (pmu > 0) {
                if (e)
                        *e = tracefs;
                return r;
        }
        if (probe_pmu_is_denied(p))
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "a probe on %.200s is refused in both ways: %s/uprobe_events cannot be written, and the uprobe PMU "
                              "requires CAP_SYS_ADMIN (CAP_PERFMON before Linux 6.16). Let perfd write that file "
                              "(CAP_DAC_OVERRIDE or chmod; as a service ProtectKernelTunables=no too), where hits are "
                              "exact, or give it that capability (perfd --keep-capabilities)", p->places.path, t->root);
        p->is_dynamic = false;
        if (asprintf(&p->text, "%s, by the PMU: a hit may count twice or not at all", p->places.text) < 0) {
                p->text = NULL;
                return error_origin(-ENOMEM);
        }
        return define_first(p, q, args, e);
}

int probe_define(const Tracing *t, const ProbeRequest *q, Probe **ret, Explanation *e) {
        _cleanup_(probe_args_deinit) ProbeArgs args = PROBE_ARGS_NULL;
        _cleanup_(probe_freep) Probe *p = NULL;
        struct utsname uts = { .machine = "" };
        int r;

        thread_assert(THREAD_MAIN);
        if (q->maxactive > 0 && !(q->name->kind == EVENT_NAME_KPROBE && q->name->is_return))
                return refuse(e, REFUSED_INVALID, "bad-maxactive", "maxactive is for kretprobe only");
        (void)uname(&uts); /* what is not known is refused where it is needed */
        r = probe_args_parse(q->args, &args, e);
        if (r == 0)
                r = probe_function_args(q->name, uts.machine, &args, e);
        if (r != 0)
                return r;
        p = calloc(1, sizeof(*p));
        if (!p)
                return error_origin(-ENOMEM);
        p->places = PROBE_PLACES_NULL;
        p->is_kernel = q->name->kind == EVENT_NAME_KPROBE;
        p->is_return = q->name->is_return;
        r = probe_places_find(q->name, q->index, q->client, &p->places, e);
        if (r == 0 && q->check_sites)
                r = q->check_sites(q->userdata, p->places.n_sites, e);
        if (r != 0)
                return r;
        if (q->sites_max > 0)
                probe_places_keep_different(&p->places, q->sites_max);
        if (has_to_be_defined(p, q, &args))
                r = define_in_tracefs(p, t, q, &args, e);
        else
                r = p->is_kernel ? define_kernel(p, t, q, &args, e) : define_user(p, t, q, &args, e);
        if (r != 0) {
                if (p->n_defined > 0)
                        *ret = TAKE_PTR(p);
                return r;
        }
        if (p->is_dynamic)
                p->places.fd = close_fd(p->places.fd); /* tracefs holds the file now */
        *ret = TAKE_PTR(p);
        return 0;
}

Probe *probe_free(Probe *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_defined; i++) {
                int r = probe_definition_remove(p->root, p->is_kernel, p->group, p->names[i]);

                if (r < 0)
                        log_print(LOG_WARNING, MESSAGE_PROBES_LEFT, "the probe %s/%s (%s) remains in %s/%s_events: %s%s", p->group,
                                  p->names[i], p->places.text, p->root, p->is_kernel ? "kprobe" : "uprobe",
                                  strerror(-r),
                                  r == -EBUSY ? "; another program uses it. The next perfd that starts removes it" : "");
        }
        probe_places_deinit(&p->places);
        free(p->configs);
        free(p->target);
        free(p->root);
        free(p->names);
        free(p->text);
        free(p);
        return NULL;
}

size_t probe_n_attrs(const Probe *p) {
        return p->places.n_sites;
}

ProbeAttr probe_attr(const Probe *p, size_t i) {
        assert(i < p->places.n_sites);
        if (!p->is_dynamic)
                return probe_pmu_attr(p, i);
        return (ProbeAttr){ .type = PERF_TYPE_TRACEPOINT, .is_dynamic = true, .group = p->group, .name = p->names[i] };
}

const char *probe_text(const Probe *p) {
        return p->text ? p->text : p->places.text;
}

bool probe_is_user(const Probe *p) {
        return !p->is_kernel;
}

bool probe_is_unchecked(const Probe *p) {
        return p->places.is_unchecked;
}

bool probe_is_exact(const Probe *p) {
        return p->is_dynamic || p->is_kernel;
}

bool probe_read_profile(const Tracing *t, const Probe *p, uint64_t *ret_hits, uint64_t *ret_missed) {
        _cleanup_free_ char *events_path = probe_file(t->root, p->is_kernel, "events"), *events = NULL;
        _cleanup_free_ char *profile_path = probe_file(t->root, p->is_kernel, "profile"), *profile = NULL;
        uint64_t hits = 0, missed = 0;
        size_t length;

        if (!p->is_dynamic || !events_path || !profile_path || whole_file_read(events_path, &events, &length) < 0 ||
            whole_file_read(profile_path, &profile, &length) < 0)
                return false;
        for (size_t i = 0; i < p->places.n_sites; i++) {
                uint64_t site_hits, site_missed;

                if (!probe_profile_find(events, profile, p->is_kernel, p->group, p->names[i], &site_hits, &site_missed))
                        return false;
                hits += site_hits;
                missed += site_missed;
        }
        *ret_hits = hits;
        *ret_missed = missed;
        return true;
}
