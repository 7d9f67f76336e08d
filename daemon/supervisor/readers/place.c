/*
 * Where threads run, as configured: which CPUs have a reader of their own, and who reads the rings of the others.
 *
 * The decision to doubt is that a ring which is read from elsewhere has a thread of its own all the same, that may run on
 * each of the CPUs that have readers, instead of being one more ring of one of these: then nothing that one CPU does makes
 * another one's records wait, the scheduler finds the CPU that has time, and a reader stays a loop over one ring.
 * What such a thread cannot know is in reader/remote.c.
 */

#include "daemon/base/cpu-list.h"

#include "daemon/supervisor/readers/readers.h"

/* An empty list if `text` is NULL. */
static int list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        *ret_n = 0;
        return text ? cpu_list_parse(text, ret_cpus, ret_n, e) : 0;
}

static bool list_has(const uint32_t *cpus, size_t n, uint32_t cpu) {
        for (size_t i = 0; i < n; i++)
                if (cpus[i] == cpu)
                        return true;
        return false;
}

static bool list_has_online(const Readers *s, const uint32_t *cpus, size_t n) {
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                if (s->online[slot] && list_has(cpus, n, s->cpus[slot]))
                        return true;
        return n == 0;
}

static int refuse_offline(const char *key, const char *list, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-config", "%s is %s, and none of these CPUs is online: name an online CPU", key,
                      list);
}

int readers_place_threads(Readers *s, Explanation *e) {
        const Config *c = s->settings->config;
        int r = list_parse(c->reader_cpus, &s->reader_cpus, &s->n_reader_cpus, e);

        if (r == 0)
                r = list_parse(c->dispatcher_cpus, &s->dispatcher_cpus, &s->n_dispatcher_cpus, e);
        if (r != 0)
                return r;
        if (!list_has_online(s, s->reader_cpus, s->n_reader_cpus))
                return refuse_offline("readers.cpus", c->reader_cpus, e);
        if (!list_has_online(s, s->dispatcher_cpus, s->n_dispatcher_cpus))
                return refuse_offline("dispatcher.cpus", c->dispatcher_cpus, e);
        s->dispatcher.priority = c->dispatcher_priority;
        s->dispatcher.cpus = s->dispatcher_cpus;
        s->dispatcher.n_cpus = s->n_dispatcher_cpus;
        for (size_t slot = 0; slot < s->n_cpus; slot++) {
                Reader *reader = &s->by_slot[slot];

                reader->priority = c->reader_priority;
                if (s->n_reader_cpus == 0 || list_has(s->reader_cpus, s->n_reader_cpus, reader->cpu)) {
                        reader->away_guard = c->reader_guard;
                        continue;
                }
                reader->guard = s->pipes[slot].guard = c->reader_guard;
                reader->remote_cpus = s->reader_cpus;
                reader->n_remote_cpus = s->n_reader_cpus;
        }
        return 0;
}

bool readers_read_remotely(const Readers *s) {
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                if (s->by_slot[slot].guard > 0)
                        return true;
        return false;
}

void readers_free_places(Readers *s) {
        free(s->reader_cpus);
        free(s->dispatcher_cpus);
}
