/*
 * Another size for the rings while everything runs: new carriers with new rings beside the old ones, a replacement of every
 * event that writes into the new ones, and the same change-over as for a filter, for all events at once.
 *
 * That an fd could be led to another ring by PERF_EVENT_IOC_SET_OUTPUT is of no use here: the kernel waits for an RCU grace
 * period for each, which for a thousand events takes half a minute.
 */

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/event/ring-limits.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/room.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"

typedef struct Resizing {
        ReaderRing *rings; /* by slot */
        int *carriers;     /* by slot: the new ones, then those that are to be closed; -1: none */
        size_t size;
} Resizing;

/* Its memory too: a reader that was stopped in the middle of taking its ring still looks at it. */
static void resizing_release(Readers *s, void *object) {
        Resizing *z = object;

        if (s->answering.is_abandoned)
                return;
        for (size_t slot = 0; slot < s->n_cpus; slot++) {
                if (z->rings) {
                        ring_close(&z->rings[slot].ring);
                        free(z->rings[slot].backlog.least);
                }
                if (z->carriers)
                        close_fd(z->carriers[slot]);
        }
        free(z->rings);
        free(z->carriers);
        free(z);
}

static int open_new_ring(Changes *s, Resizing *z, uint32_t slot, Explanation *e) {
        ReaderRing *ring = &z->rings[slot];
        int r;

        r = readers_open_carrier(s->readers, slot, &z->carriers[slot], &ring->carrier_read_format, e);
        if (r == OPEN_E_OFFLINE)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel", "CPU %u went offline while its ring buffer was replaced: try again",
                              s->readers->cpus[slot]);
        if (r == 0)
                r = open_id(z->carriers[slot], &ring->carrier_id, e);
        if (r != 0)
                return r;
        ring->carrier_fd = z->carriers[slot];
        r = ring_open(&ring->ring, z->carriers[slot], z->size);
        if (r < 0)
                return open_explain_mmap(r, z->size, (int)s->readers->cpus[slot], e);
        return error_trace_of(backlog_init(&ring->backlog, z->size), "CPU %u", s->readers->cpus[slot]);
}

static int open_new_rings(Changes *s, Resizing *z, Explanation *e) {
        int r = 0;

        z->rings = calloc(s->readers->n_cpus, sizeof(*z->rings));
        z->carriers = malloc(s->readers->n_cpus * sizeof(*z->carriers));
        if (!z->rings || !z->carriers) {
                free(z->rings);
                free(z->carriers);
                *z = (Resizing){ .rings = NULL };
                return error_origin(-ENOMEM);
        }
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                z->carriers[slot] = -1;
        for (uint32_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++)
                if (s->readers->online[slot])
                        r = open_new_ring(s, z, slot, e);
        return r;
}

static void swap_carriers(Changes *s, Resizing *z) {
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++) {
                int carrier = s->readers->carriers[slot];

                s->readers->carriers[slot] = z->carriers[slot];
                z->carriers[slot] = carrier;
        }
}

static void close_replacements(Changes *s) {
        for (Registration *g = s->events->registrations; g; g = g->next)
                event_fds_close(s->events, &g->pending);
}

/* Of every event, disabled, into the new rings: all that can be refused. */
static int open_replacements(Changes *s, Explanation *e) {
        int r = events_check_room(s->events, s->events->registrations, e);

        for (Registration *g = s->events->registrations; g && r == 0; g = g->next)
                r = events_open(s->events, g, g->event->spec.filter, &g->pending, e);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next)
                event_fds_set_successor(&g->pending, true);
        if (r != 0)
                close_replacements(s);
        return r;
}

static int change_readers(Changes *s, Resizing *z) {
        _cleanup_free_ ReaderCommand *each = calloc(s->readers->n_cpus, sizeof(*each));
        _cleanup_free_ int *errors = calloc(s->readers->n_cpus, sizeof(*errors));
        int r;

        if (!each || !errors)
                return error_origin(-ENOMEM);
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                each[slot] = (ReaderCommand){ .kind = READER_RING, .ring = &z->rings[slot], .on = s->readers->active,
                                           .ret_error = &errors[slot] };
        r = readers_command_each(s->readers, each);
        for (size_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++)
                r = errors[slot];
        return r;
}

/* The stream of moves is one fd for each CPU: it is led over. */
static int lead_migrations(Changes *s) {
        uint64_t id;
        int r = 0;

        for (size_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++)
                if (s->readers->online[slot] && s->readers->migrations.fds[slot] >= 0)
                        r = open_redirect(s->readers->migrations.fds[slot], s->readers->carriers[slot],
                                          "moves between cgroups", &id, NULL);
        return r > 0 ? -EIO : r;
}

static int switch_pending(Changes *s, bool on, Explanation *e) {
        _cleanup_free_ PerfFdSet **list = calloc(s->events->n_registrations + 1, sizeof(*list));
        size_t n = 0;
        int r = 0;

        if (!list)
                return error_origin(-ENOMEM);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                r = on ? event_fds_follow_exec(&g->pending, &g->opened) : 0;
                if (!on || g->enabled)
                        list[n++] = &g->pending;
        }
        if (r != 0)
                return r;
        if (on)
                return event_fds_enable(s->readers, list, n, "one of the events", e);
        r = event_fds_cut_over(s->readers, list, n);
        events_end_succession(s->events);
        return r;
}

static void swap_opened(Changes *s) {
        for (Registration *g = s->events->registrations; g; g = g->next) {
                PerfFdSet speaking = g->opened;

                g->opened = g->pending;
                g->pending = speaking;
        }
}

/* What was replaced is disabled; no reader knows it any more when it is closed. */
static int forget_replaced(Changes *s) {
        _cleanup_free_ PerfFdSet *old = calloc(s->events->n_registrations + 1, sizeof(*old));
        size_t n = 0;
        int r;

        if (!old)
                return error_origin(-ENOMEM);
        for (Registration *g = s->events->registrations; g; g = g->next) {
                old[n++] = g->pending;
                g->pending = PERF_FD_SET_NULL;
        }
        r = readers_publish(s->readers);
        for (size_t i = 0; i < n; i++)
                event_fds_close(s->events, &old[i]);
        return r;
}

/* Every replacement is published, on standby; enabled; and becomes active in the place of what it replaces, which goes. */
static int change_events(Changes *s) {
        int r = readers_publish(s->readers);

        if (r == 0)
                r = switch_pending(s, true, NULL);
        if (r > 0)
                return -EIO; /* the same event was enabled a moment ago */
        if (r == 0) {
                swap_opened(s);
                r = readers_publish(s->readers);
        }
        if (r == 0)
                r = switch_pending(s, false, NULL);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next)
                r = registration_keep_counts(s->events, g, &g->pending, true);
        return r == 0 ? forget_replaced(s) : r;
}

static void keep_side_losses(Changes *s, const Resizing *z) {
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++) {
                ReadCount read;

                if (z->carriers[slot] >= 0 &&
                    open_read(z->carriers[slot], s->readers->by_slot[slot].carrier_read_format, &read) == 0)
                        s->readers->by_slot[slot].counters.closed_side_lost += read.lost;
        }
}

/* Old and new ones are there at the same time, for a moment. */
static int check_limits(const Changes *s, size_t size, Explanation *e) {
        size_t before = s->settings->config->ring_size, n = readers_count_online(s->readers);
        int r = ring_limits_check(n, size, e);

        if (r != 0)
                return r;
        r = ring_limits_check(n, size + before, NULL);
        if (r <= 0)
                return r;
        return refuse(e, r, "locked-memory", "rings.size is %zu KiB now, and is to be %zu KiB: old and new rings are there at the same "
                      "time while they are exchanged, and both together exceed the limit of locked memory (kernel.perf_event_mlock_kb and "
                      "RLIMIT_MEMLOCK); restart perfd, because the new ones alone are within it, or raise LimitMEMLOCK=, or give "
                      "CAP_IPC_LOCK", before / 1024, size / 1024);
}

int changes_resize_rings(Changes *s, size_t size, Explanation *e) {
        uint32_t watermark = s->readers->attr.watermark;
        Resizing *z;
        int r;

        thread_assert(THREAD_MAIN);
        r = readers_refuse_stalled(s->readers, "another size of the ring buffers", e);
        if (r != 0)
                return r;
        if (readers_read_remotely(s->readers)) /* it would not see at which place of both rings the change is */
                return refuse(e, REFUSED_UNSUPPORTED, "needs-restart", "rings.size can change without a restart only if each CPU "
                        "has a reader of its own, and readers.cpus does not name all CPUs: restart perfd, or leave the size at "
                        "%zu", (size_t)s->settings->config->ring_size);
        r = check_limits(s, size, e);
        if (r != 0)
                return r;
        z = calloc(1, sizeof(*z));
        if (!z)
                return error_origin(-ENOMEM);
        z->size = size;
        s->readers->attr.watermark = (uint32_t)(size / WATERMARK_SHARE);
        r = open_new_rings(s, z, e);
        if (r == 0) {
                swap_carriers(s, z);
                r = open_replacements(s, e);
                if (r == 0 && (r = readers_refuse_stalled(s->readers, "another size of the ring buffers", e)) != 0)
                        close_replacements(s);
                if (r != 0)
                        swap_carriers(s, z);
        }
        if (r != 0) {
                s->readers->attr.watermark = watermark;
                readers_defer(s->readers, resizing_release, z);
                return r;
        }
        r = change_readers(s, z);
        if (r == 0)
                r = change_events(s);
        if (r == 0)
                r = lead_migrations(s);
        if (r == 0)
                r = readers_command(s->readers, READER_RETIRE, NULL);
        if (r == 0) {
                keep_side_losses(s, z);
                readers_list_carriers(s->readers);
                log_print(LOG_INFO, MESSAGE_RINGS_RESIZED, "the ring buffers now have %zu KiB", size / 1024);
        }
        readers_defer(s->readers, resizing_release, z);
        return r;
}
