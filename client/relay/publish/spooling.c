/*
 * The spool is written first, always, and not only while there is no server: what the publisher has is lost with the process, so kill -9
 * would else lose what is on its way. It costs a copy into the page cache: a file whose messages are all stored within a second is never
 * synchronized, and what is removed before the kernel writes it never reaches the disk.
 *
 * If the disk takes nothing, publishing goes on by memory alone, and the log says so: to stop would lose all for certain, for fear of a
 * loss that may never be. If the limit is reached, routes stop.
 */
#include "client/relay/publish/spooling.h"

#include <inttypes.h>
#include <string.h>

#include "client/relay/publish/publishing.h"
#include "daemon/base/log.h"

#define TICK_USEC UINT64_C(1000000)
#define LOADED_PER_TURN ((size_t)4 << 20)

static void set_tick(Publishing *p) {
        Spooling *s = &p->spooling;

        if (s->is_ticking)
                return;
        s->is_ticking = sd_event_source_set_time_relative(s->tick, TICK_USEC) >= 0 && sd_event_source_set_enabled(s->tick, SD_EVENT_ONESHOT) >= 0;
}

/* Each change once. */
static void say(Publishing *p, int why) {
        Spooling *s = &p->spooling;
        const char *path = p->config.spool_path;

        if (s->said == why)
                return;
        s->said = why;
        if (why == 0)
                log_print(LOG_INFO, MESSAGE_SPOOL, "the spool in %s takes messages again", path);
        else if (why == SPOOL_E_FULL)
                log_print_with(LOG_WARNING, MESSAGE_SPOOL, LOG_FIELDS({ "REASON", "spool-full" }, { "PATH", path }), "the spool in %s has reached "
                               "publish.spool.disk: what comes is left in the queues of perfd, and lost with a gap where these are full", path);
        else
                log_print_with(LOG_WARNING, MESSAGE_SPOOL, LOG_FIELDS({ "REASON", "spool-failed" }, { "PATH", path }), "the spool in %s cannot be "
                               "written: %s: what comes is only in memory, or left in the queues of perfd, and lost with a gap where these are "
                               "full", path, strerror(-why));
}

static void fail(Publishing *p, int why) {
        p->spooling.has_failed = true;
        say(p, why);
        set_tick(p);
}

static bool memory_is_full(const Publishing *p) {
        return p->held >= p->config.spool;
}

static void hand_over(Publishing *p, Message *m) {
        Spooling *s = &p->spooling;

        m->older = m->newer = NULL;
        if (m->spooled > 0) {
                m->older = s->newest;
                *(s->newest ? &s->newest->newer : &s->oldest) = m;
                s->newest = m;
        } else if (s->spool) {
                s->n_only_in_memory++;
        }
        p->held += message_size(m);
        p->n_held++;
        p->publisher->publish(p->publisher, m);
}

void spooling_forget(Publishing *p, Message *m) {
        Spooling *s = &p->spooling;

        if (m->spooled == 0) {
                s->n_only_in_memory -= s->spool ? 1 : 0;
                return;
        }
        *(m->older ? &m->older->newer : &s->oldest) = m->newer;
        *(m->newer ? &m->newer->older : &s->newest) = m->older;
}

static void wait_for_room(Publishing *p, Message *m) {
        Spooling *s = &p->spooling;

        m->next = NULL;
        *s->end = m;
        s->end = &m->next;
        set_tick(p);
}

/* False: it has to wait. */
static bool take(Publishing *p, Message *m) {
        Spooling *s = &p->spooling;
        bool has_unread = spool_has_unread(s->spool);
        int r = spool_append(s->spool, m);

        if (r == 0) {
                set_tick(p);
                if (has_unread || memory_is_full(p)) {
                        message_free(m);
                        return true;
                }
                spool_pass_over(s->spool);
        } else {
                fail(p, r == SPOOL_E_FULL ? r : r == SPOOL_E_FAILED ? -s->spool->error : r);
                if (r == SPOOL_E_FULL || has_unread || memory_is_full(p))
                        return false;
        }
        hand_over(p, m);
        return true;
}

void spooling_publish(Publishing *p, Message *m) {
        if (!p->spooling.spool)
                hand_over(p, m);
        else if (p->spooling.waiting || !take(p, m))
                wait_for_room(p, m);
}

static void try_waiting(Publishing *p) {
        Spooling *s = &p->spooling;

        while (s->waiting) {
                Message *m = s->waiting, *next = m->next;

                if (!take(p, m))
                        return;
                s->waiting = next;
        }
        s->end = &s->waiting;
}

static void say_damage(const Publishing *p, const SpoolDamage *d, const char *what) {
        log_print_with(LOG_ERR, MESSAGE_SPOOL, LOG_FIELDS({ "REASON", "spool-damaged" }, { "PATH", p->config.spool_path }, { "FILE", d->file }),
                       "%s/%s: %" PRIu64 " bytes at offset %" PRIu64 " %s%s%s", p->config.spool_path, d->file, d->length, d->offset, what,
                       d->error ? ": " : "", d->error ? strerror(d->error) : "");
}

static void say_foreign(const Publishing *p, const SpoolForeign *f, const char *effect) {
        char others[64] = "";

        if (f->n == 0)
                return;
        if (f->n > 1)
                (void)snprintf(others, sizeof(others), ", as are %zu more like it", f->n - 1);
        log_print_with(LOG_WARNING, MESSAGE_SPOOL, LOG_FIELDS({ "REASON", "spool-foreign" }, { "PATH", p->config.spool_path }, { "FILE", f->file }),
                       "%s/%s is no file of the spool, and passed over%s%s: it %s", p->config.spool_path, f->file, others, effect, f->what);
}

/* From the spool into memory, as far as there is room. */
static void load(Publishing *p) {
        SpoolDamage damage;
        size_t loaded = 0;
        Message *m;
        int r = 0;

        while (r == 0 && !memory_is_full(p) && loaded < LOADED_PER_TURN) {
                r = spool_next(p->spooling.spool, &m, &damage);
                if (r == 0) {
                        loaded += message_size(m);
                        hand_over(p, m);
                } else if (r == SPOOL_E_DAMAGED) {
                        say_damage(p, &damage, "are damaged, and are not published");
                        r = 0;
                }
        }
        if (r < 0) /* no memory: the next tick tries again */
                set_tick(p);
        else if (spool_has_unread(p->spooling.spool) && !memory_is_full(p))
                (void)sd_event_source_set_enabled(p->spooling.loading, SD_EVENT_ONESHOT);
}

void spooling_go_on(Publishing *p) {
        Spooling *s = &p->spooling;

        if (!s->spool)
                return;
        spool_set_stored(s->spool, s->oldest ? s->oldest->spooled - 1 : s->spool->given);
        if (s->waiting)
                try_waiting(p);
        load(p);
}

static int on_loading(sd_event_source *source, void *userdata) {
        Publishing *p = userdata;

        p->spooling.look(p);
        return 0;
}

/* What is older than a tick, and not stored, is to be on disk. A server that keeps up leaves nothing to write. */
static void sync_old(Publishing *p) {
        Spooling *s = &p->spooling;
        bool has_unsynced = s->spool->unsynced != UINT64_MAX;
        int error = s->spool->stored < s->last_before ? spool_sync_request(s->sync, s->spool) : 0;

        if (error != 0)
                fail(p, -error);
        s->last_before = s->spool->last;
        if (spool_count(s->spool) > 0 && has_unsynced)
                set_tick(p);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        Publishing *p = userdata;
        Spooling *s = &p->spooling;

        s->is_ticking = false;
        if (s->said != 0 && !s->has_failed && !s->is_closing && (s->said != SPOOL_E_FULL || s->spool->size < s->spool->limit / 2))
                say(p, 0);
        s->has_failed = false;
        sync_old(p);
        s->look(p);
        if (s->waiting || s->said != 0)
                set_tick(p);
        return 0;
}

bool spooling_is_full(const Publishing *p) {
        return p->spooling.spool ? p->spooling.waiting != NULL : memory_is_full(p);
}

static int add_sources(Publishing *p) {
        Spooling *s = &p->spooling;
        int r = sd_event_add_time(p->event, &s->tick, CLOCK_MONOTONIC, 0, 0, on_tick, p);

        if (r >= 0)
                r = sd_event_source_set_enabled(s->tick, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(p->event, &s->loading, on_loading, p);
        return r < 0 ? error_origin(r) : 0;
}

int spooling_start(Publishing *p, void (*look)(Publishing *p), Explanation *e) {
        Spooling *s = &p->spooling;
        int r;

        s->look = look;
        s->end = &s->waiting;
        if (!p->config.spool_path)
                return 0;
        r = spool_open(p->config.spool_path, p->config.spool_disk, p->machine, &s->spool, e);
        if (r == 0)
                r = spool_sync_start(s->spool, &s->sync);
        if (r == 0)
                r = add_sources(p);
        if (r != 0)
                return r;
        say_foreign(p, &s->spool->foreign, "");
        say_foreign(p, &s->spool->foreign_marks, "; how far messages are stored is not written, so those that are in the directory when the relay "
                    "ends may be published again, under the same ids");
        if (s->spool->torn.length > 0)
                say_damage(p, &s->spool->torn, "were not written completely, and are cut off");
        if (s->spool->has_lost_marks && s->spool->foreign_marks.n == 0 && spool_count(s->spool) > 0)
                log_print_with(LOG_WARNING, MESSAGE_SPOOL, LOG_FIELDS({ "REASON", "spool-damaged" }, { "PATH", p->config.spool_path }),
                               "%s/stored is damaged, empty or was removed: messages that are stored already may be published again, under the same ids",
                               p->config.spool_path);
        s->last_before = s->spool->last;
        if (spool_count(s->spool) == 0)
                return 0;
        set_tick(p);
        log_print_with(LOG_INFO, MESSAGE_SPOOL, LOG_FIELDS({ "PATH", p->config.spool_path }), "%s has %" PRIu64 " messages of an earlier run, "
                       "which are published first", p->config.spool_path, spool_count(s->spool));
        return 0;
}

void spooling_begin_closing(Publishing *p) {
        Spooling *s = &p->spooling;

        if (!s->waiting || s->said != SPOOL_E_FULL)
                return;
        s->spool->limit = UINT64_MAX;
        try_waiting(p);
        s->is_closing = !s->waiting;
}

uint64_t spooling_count_unsafe(const Publishing *p) {
        uint64_t n = p->spooling.spool ? p->spooling.n_only_in_memory : p->n_held;

        for (const Message *m = p->spooling.waiting; m; m = m->next)
                n++;
        return n;
}

void spooling_stop(Publishing *p) {
        Spooling *s = &p->spooling;

        if (s->spool && spool_count(s->spool) > 0)
                log_print_with(LOG_NOTICE, MESSAGE_SPOOL, LOG_FIELDS({ "PATH", p->config.spool_path }), "%" PRIu64 " messages were not stored, "
                               "and stay in %s until a relay publishes them", spool_count(s->spool), p->config.spool_path);
        for (Message *m = s->waiting, *next; m; m = next) {
                next = m->next;
                message_free(m);
        }
        sd_event_source_disable_unref(s->tick);
        sd_event_source_disable_unref(s->loading);
        spool_sync_stop(s->sync);
        spool_close(s->spool);
        *s = (Spooling){ .spool = NULL };
}
