/*
 * The decision to doubt is to send a stalled reader nothing, instead of letting commands wait for it: what it is to do follows from
 * what is registered when it answers, whatever happened in between. So nothing has to be taken back, and it is as long as that,
 * however long it was stopped.
 */
#include "daemon/supervisor/readers/stall.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/readers/wait.h"

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

void readers_defer(Readers *s, void (*release)(Readers *s, void *object), void *object) {
        Stalls *l = &s->answering;
        Deferred *d;

        if (l->n == 0) {
                release(s, object);
                return;
        }
        d = malloc(sizeof(*d));
        if (!d) { /* better kept for ever than freed too early */
                log_print(LOG_ERR, MESSAGE_NO_MEMORY,
                          "no memory to remember objects that a stalled reader may still use: they are never freed");
                return;
        }
        *d = (Deferred){ .release = release, .object = object };
        if (l->last)
                l->last->next = d;
        else
                l->deferred = d;
        l->last = d;
}

void readers_release_deferred(Readers *s) {
        Stalls *l = &s->answering;

        while (l->n == 0 && l->deferred) {
                Deferred *d = l->deferred;

                l->deferred = d->next;
                if (!l->deferred)
                        l->last = NULL;
                d->release(s, d->object);
                free(d);
        }
}

void readers_abandon_deferred(Readers *s) {
        s->answering.is_abandoned = true;
        s->answering.n = 0; /* fds are not kept any more */
        readers_release_deferred(s);
}

/* ---- who does not answer ----------------------------------------------------------------------------------------- */

static const char *command_name(ReaderCommandKind kind) {
        static const char *const names[] = {
                [READER_SET_SNAPSHOT] = "to take a snapshot", [READER_SWITCH] = "to enable or disable events",
                [READER_CUTOVER] = "to switch to other fds", [READER_CUT] = "for a cut of the ledger",
                [READER_RING] = "to take another ring buffer", [READER_RETIRE] = "to leave a ring buffer", [READER_STOP] = "to end",
        };

        return names[kind];
}

const char *readers_thread_state(pid_t tid) {
        WITH_FD_RESERVE; /* /proc is read */

        switch (task_state((uint32_t)tid)) {
        case 't':
                return "stopped by a debugger";
        case 'T':
                return "stopped";
        case 'R':
                return "ready to run: does a thread of higher priority use its CPU?";
        case TASK_STATE_UNINTERRUPTIBLE:
                return "waiting in the kernel";
        default:
                return "in an unknown state";
        }
}

int readers_tell_pipe(Readers *s, DispatcherCommandKind kind, uint32_t slot) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = kind, .slot = slot };
        dispatcher_post(&s->dispatcher, command);
        return 0;
}

/*
 * Streams in the order of time do not wait for it either; what it brings later is late, and counted so. Main does not wait here:
 * it may be the dispatcher's work that the thread was stopped in.
 */
static void leave_pipe(Readers *s, uint32_t slot) {
        if (readers_tell_pipe(s, DISPATCHER_PIPE_STALLED, slot) < 0)
                log_print(LOG_ERR, MESSAGE_NO_MEMORY,
                          "no memory to notify the dispatcher: time-ordered streams wait for CPU %u", s->cpus[slot]);
}

static void set_stalled(Readers *s, uint32_t slot, const char *asked) {
        const Reader *r = &s->by_slot[slot];
        Answering *a = &s->answering.readers[slot];

        a->stalled_since = a->sent;
        a->n_missed = 0;
        s->answering.n++;
        log_print_with(LOG_ERR, MESSAGE_READER_STALLED, LOG_FIELDS({ "CPU", LOG_NUMBER(s->cpus[slot]) }),
                       "the reader of CPU %u (%s, tid %d) has not responded for %llu s since it was asked %s; it is %s. perfd "
                       "continues without it: its ring buffer is not read, and changes reach CPU %u when it responds "
                       "again", r->cpu, r->thread.name,
                       (int)r->thread.tid, (unsigned long long)((clock_now(CLOCK_MONOTONIC) - a->sent) / NSEC_PER_SEC),
                       asked, readers_thread_state(r->thread.tid), r->cpu);
        if (sd_event_get_state(s->operations->event) != SD_EVENT_FINISHED) /* at the end nobody hears of it */
                must(sd_event_source_set_io_events(s->answering.source, EPOLLIN)); /* epoll_ctl(2), MOD: needs no memory */
        leave_pipe(s, slot);
}

void readers_set_stalled(Readers *s, uint32_t slot) {
        set_stalled(s, slot, command_name(s->answering.readers[slot].kind));
}

void readers_doubt(Readers *s, uint32_t slot, nsec_t since, const char *asked) {
        Answering *a = &s->answering.readers[slot];
        ReaderCommand *command;

        if (reader_is_stalled(a) || !s->by_slot[slot].thread.started)
                return; /* it is known; or it has ended since */
        command = calloc(1, sizeof(*command)); /* with nothing to switch: its answer is the sign that it goes on */
        if (!command)
                return; /* there is another look */
        command->kind = READER_SWITCH;
        command->sequence = ++s->sequence;
        a->sequence = command->sequence;
        a->kind = command->kind;
        a->sent = since;
        reader_post(&s->by_slot[slot], command);
        set_stalled(s, slot, asked);
}

void readers_say_stalled(const Readers *s, char *text, size_t size) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        size_t used = 0;

        text[0] = '\0';
        for (uint32_t slot = 0; s->answering.n > 0 && slot < s->n_cpus && used < size; slot++) {
                const Answering *a = &s->answering.readers[slot];

                if (reader_is_stalled(a))
                        used += (size_t)snprintf(text + used, size - used, "%sCPU %u is omitted: its reader (tid %d) has not "
                                "responded for %llu s", used ? "; " : "", s->cpus[slot], (int)s->by_slot[slot].thread.tid,
                                                 (unsigned long long)((now - a->stalled_since) / NSEC_PER_SEC));
        }
}

int readers_refuse_stalled(const Readers *s, const char *what, Explanation *e) {
        char who[256];

        if (s->answering.n == 0)
                return 0;
        readers_say_stalled(s, who, sizeof(who));
        return refuse(e, REFUSED_UNSUPPORTED, "reader-stalled", "%s needs every reader, and %s: let that thread continue, and "
                "try again",
                      what, who);
}

/* ---- start and end ------------------------------------------------------------------------------------------------ */

/* Others may be in the middle of a change: it waits for its turn. */
static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Readers *s = userdata;
        uint64_t count;
        ssize_t n = read(fd, &count, sizeof(count));

        assert(n == sizeof(count) || errno == EAGAIN);
        operations_set_due(s->operations, CHANGE_READERS);
        return 0;
}

int readers_start_stalls(Readers *s) {
        int r;

        s->answering.readers = calloc(s->n_cpus, sizeof(*s->answering.readers));
        if (!s->answering.readers)
                return error_origin(-ENOMEM);
        r = error_origin(sd_event_add_io(s->operations->event, &s->answering.source, s->acknowledge_fd, 0, on_answer, s));
        if (r >= 0)
                r = error_origin(sd_event_source_set_exit_on_failure(s->answering.source, true));
        return r < 0 ? r : 0;
}

void readers_free_stalls(Readers *s) {
        readers_release_deferred(s);
        s->answering.source = sd_event_source_disable_unref(s->answering.source);
        for (uint32_t slot = 0; s->answering.readers && slot < s->n_cpus; slot++)
                snapshot_unref(s->answering.readers[slot].snapshot);
        free(s->answering.readers);
}
