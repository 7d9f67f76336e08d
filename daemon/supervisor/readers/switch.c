/*
 * Enabling and disabling, by the readers: each does it for the streams of its CPU, on that CPU, so between two of its
 * events and never in the middle of one. So a count never has an occurrence without its record, and the events beside
 * it, which the kernel takes out and puts back while it enables one, miss nothing.
 */

#include <string.h>

#include "daemon/kernel/event/open.h"

#include "daemon/supervisor/readers/births.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/readers.h"
#include "daemon/supervisor/readers/switch.h"

/* Attr enable-on-exec: the kernel enables it, and its time begins. */
static int has_begun(const PerfFd *stream, bool *ret) {
        ReadCount read = { .enabled = 1 };
        int error = stream->awaits_exec ? open_read(stream->fd, stream->read_format, &read) : 0;

        *ret = read.enabled > 0;
        return error;
}

/*
 * The fds of all of `list` by slot, but those that are on with their leader, and those that an exec is to enable; where those
 * of a slot begin is in ret_first, which has n_cpus + 1 entries.
 */
static int collect_fds(const Readers *s, PerfFdSet *const *list, size_t n, bool on, int **ret_fds, size_t *ret_first) {
        int *fds, error = 0;
        size_t n_fds = 0;

        for (size_t i = 0; i < n; i++)
                n_fds += list[i]->n;
        fds = malloc((n_fds + 1) * sizeof(*fds));
        if (!fds)
                return error_origin(-ENOMEM);
        n_fds = 0;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                ret_first[slot] = n_fds;
                for (size_t i = 0; i < n; i++)
                        for (size_t k = 0; k < list[i]->n && error == 0; k++) {
                                const PerfFd *stream = &list[i]->fds[k];
                                bool begun = true;

                                if (stream->slot != slot || stream->member > 0)
                                        continue;
                                error = on ? has_begun(stream, &begun) : 0;
                                if (begun)
                                        fds[n_fds++] = stream->fd;
                        }
        }
        if (error != 0) {
                free(fds);
                return error;
        }
        ret_first[s->n_cpus] = n_fds;
        *ret_fds = fds;
        return 0;
}

/* ret_error: what the kernel said of one of them, 0 or -errno; what is returned is our own. */
static int order_switch(Readers *s, int *fds, const size_t *first, ReaderCommandKind kind, bool on, int *ret_error) {
        _cleanup_free_ ReaderCommand *each = calloc(s->n_cpus + 1, sizeof(*each));
        _cleanup_free_ int *errors = calloc(s->n_cpus + 1, sizeof(*errors));
        int r;

        if (!each || !errors)
                return error_origin(-ENOMEM);
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                each[slot] = (ReaderCommand){ .kind = kind, .fds = fds + first[slot], .on = on,
                                           .n_fds = first[slot + 1] - first[slot], .ret_error = &errors[slot] };
        r = readers_command_each(s, each);
        *ret_error = 0;
        for (uint32_t slot = 0; slot < s->n_cpus && *ret_error == 0; slot++)
                *ret_error = error_origin_of(errors[slot], "reader of CPU %u, which %s events", s->cpus[slot],
                                             kind == READER_CUTOVER ? "cuts over" : on ? "enables" : "disables");
        return r;
}

/*
 * Where children inherit, it is done once more, after a look at who may be in a fork: who is not has made known to the fds
 * whatever children it has by then, and gives later ones what the first time has left.
 */
static int switch_all(Readers *s, PerfFdSet *const *list, size_t n, ReaderCommandKind kind, bool on, int *ret_error) {
        _cleanup_free_ size_t *first = calloc(s->n_cpus + 1, sizeof(*first));
        _cleanup_free_ int *fds = NULL;
        BirthDoubt *doubt = NULL;
        nsec_t second;
        int r;

        if (!first)
                return error_origin(-ENOMEM);
        r = collect_fds(s, list, n, on, &fds, first);
        if (r == 0)
                r = order_switch(s, fds, first, kind, on, ret_error);
        if (r == 0 && *ret_error == 0)
                r = readers_doubt_births(s, list, n, &doubt);
        if (r < 0 || !doubt)
                return r;
        second = clock_now(s->attr.clock);
        r = order_switch(s, fds, first, READER_SWITCH, on, ret_error);
        readers_watch_births(s, doubt, second);
        return r;
}

int event_fds_enable(Readers *s, PerfFdSet *const *list, size_t n, const char *what, Explanation *e) {
        int error, r = switch_all(s, list, n, READER_SWITCH, true, &error), undone;

        if (r < 0 || error == 0)
                return r;
        undone = event_fds_disable(s, list, n);
        return undone < 0 ? undone : open_explain_switch(error, what, e);
}

int event_fds_disable(Readers *s, PerfFdSet *const *list, size_t n) {
        int error, r = switch_all(s, list, n, READER_SWITCH, false, &error);

        return r < 0 ? r : error;
}

void event_fds_set_successor(PerfFdSet *o, bool is_successor) {
        for (size_t i = 0; i < o->n; i++)
                o->fds[i].is_successor = is_successor;
}

/* Both list tasks in the same order, as long as these are the same. */
static const PerfFd *find_beside(const PerfFdSet *before, size_t i, uint64_t target_id) {
        for (size_t k = 0; k < before->n; k++) {
                const PerfFd *stream = &before->fds[(i + k) % before->n];

                if (stream->target_id == target_id && !stream->is_cgroup && stream->member == 0)
                        return stream;
        }
        return NULL;
}

/* An exec after they were opened enables old and new: that is why one looks only afterwards. */
int event_fds_follow_exec(PerfFdSet *o, const PerfFdSet *before) {
        for (size_t i = 0; i < o->n; i++) {
                const PerfFd *old = o->fds[i].awaits_exec ? find_beside(before, i, o->fds[i].target_id) : NULL;
                bool begun = false;
                int error = old ? has_begun(old, &begun) : 0;

                if (error != 0)
                        return error;
                if (begun)
                        o->fds[i].awaits_exec = false;
        }
        return 0;
}

int event_fds_cut_over(Readers *s, PerfFdSet *const *list, size_t n) {
        int error, r = switch_all(s, list, n, READER_CUTOVER, false, &error);

        return r < 0 ? r : error;
}
