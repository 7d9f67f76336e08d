/*
 * What is registered and subscribed, as one immutable snapshot to all readers. The supervisor waits for their
 * acknowledgements: a reader never waits for anything but its batches, which the dispatcher always gives back, so that
 * the wait is that of a thread being scheduled. One that does not answer for long was stopped by somebody: the others go on
 * without it (supervisor/readers/stall.c).
 */

#include <poll.h>
#include <string.h>
#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/emit-pipe.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"

#define PATIENCE (5 * NSEC_PER_SEC)

bool reader_has_answered(const Readers *s, uint32_t slot) {
        return atomic_load_explicit(&s->by_slot[slot].acknowledged, memory_order_acquire) >= s->answering.readers[slot].sequence;
}

/* Its acknowledgement is waited for. */
static bool is_awaited(const Readers *s, uint32_t slot) {
        return s->by_slot[slot].thread.started && !reader_is_stalled(&s->answering.readers[slot]) && !reader_has_answered(s, slot);
}

static bool all_acknowledged(const Readers *s) {
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (is_awaited(s, slot))
                        return false;
        return true;
}

/* One that is awaited has done a part of what it was asked since the last look. */
static bool look_who_moves(Readers *s) {
        bool any = false;

        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                Answering *a = &s->answering.readers[slot];
                uint64_t n = counter_get(&s->by_slot[slot].n_slices);

                if (n == a->n_slices || !is_awaited(s, slot))
                        continue;
                a->n_slices = n;
                a->moved = clock_now(CLOCK_MONOTONIC);
                any = true;
        }
        return any;
}

/* 1: one has answered. 0: a slice is over. Negative: what serving others has said. */
static int wait_once(Readers *s, Patience *p) {
        int r = readers_wait_slice(s, p, s->acknowledge_fd);
        uint64_t count;
        ssize_t n;

        if (r > 0) {
                n = read(s->acknowledge_fd, &count, sizeof(count));
                assert(n == sizeof(count) || errno == EAGAIN);
        }
        return r;
}

/* Negative: what serving others has said; all the same nobody is awaited any more. */
static int readers_wait_for_readers(Readers *s) {
        Patience p = patience_new();
        int r, result = 0;

        while (!all_acknowledged(s)) {
                r = wait_once(s, &p);
                if (r < 0)
                        result = r;
                if (look_who_moves(s)) /* patience ends with who does nothing, not with who has much to do */
                        p.spent = 0;
                for (uint32_t slot = 0; r <= 0 && patience_is_over(s, &p, PATIENCE) && slot < s->n_cpus; slot++)
                        if (is_awaited(s, slot))
                                readers_set_stalled(s, slot);
        }
        return result;
}

/* With fds of its own: who is stopped in the middle of it may look at them when main has long forgotten them. */
static ReaderCommand *command_copy(const ReaderCommand *from) {
        ReaderCommand *command = malloc(sizeof(*command) + from->n_fds * sizeof(*command->own_fds));

        if (!command)
                return NULL;
        *command = *from;
        if (from->n_fds > 0)
                memcpy(command->own_fds, from->fds, from->n_fds * sizeof(*command->own_fds));
        command->fds = command->own_fds;
        return command;
}

static bool is_charged(ReaderCommandKind kind) {
        return kind == READER_SET_SNAPSHOT || kind == READER_SWITCH || kind == READER_CUTOVER || kind == READER_CUT;
}

static void send_command(Readers *s, uint32_t slot, ReaderCommand *command) {
        Reader *reader = &s->by_slot[slot];

        s->answering.readers[slot].sequence = command->sequence = s->sequence;
        s->answering.readers[slot].kind = command->kind;
        s->answering.readers[slot].sent = clock_now(CLOCK_MONOTONIC);
        reader->command_error = 0;
        if (command->kind == READER_SET_SNAPSHOT) {
                snapshot_unref(s->answering.readers[slot].snapshot);
                s->answering.readers[slot].snapshot = snapshot_ref(command->snapshot);
        }
        if (command->ret_error)
                command->ret_error = &reader->command_error;
        command->snapshot = snapshot_ref(command->snapshot);
        command->scope = cut_scope_ref(command->scope);
        command->budget = is_charged(command->kind) ? readers_charged(s) : NULL;
        reader_post(reader, command);
}

/* Its reader is stalled. To disable needs no reader; all else is found out when it answers. */
static void do_without(Readers *s, uint32_t slot, const ReaderCommand *command) {
        Answering *a = &s->answering.readers[slot];

        if (command->kind == READER_CUT)
                return;
        a->n_missed++;
        a->owes_retire |= command->kind == READER_RETIRE;
        if (!command->on && command->n_fds > 0 && *command->ret_error == 0)
                *command->ret_error = open_switch_all(command->fds, command->n_fds, false);
}

int readers_command_each(Readers *s, const ReaderCommand *each) {
        _cleanup_free_ ReaderCommand **commands = calloc(s->n_cpus + 1, sizeof(*commands));
        bool have = commands;
        int r;

        for (uint32_t i = 0; i < s->n_cpus && have; i++)
                if (s->by_slot[i].thread.started && !reader_is_stalled(&s->answering.readers[i]))
                        have = (commands[i] = command_copy(&each[i]));
        if (!have) { /* all or none */
                for (size_t i = 0; commands && i < s->n_cpus; i++)
                        free(commands[i]);
                return error_origin(-ENOMEM);
        }
        s->sequence++;
        for (uint32_t i = 0; i < s->n_cpus; i++)
                if (commands[i])
                        send_command(s, i, commands[i]);
                else if (s->by_slot[i].thread.started)
                        do_without(s, i, &each[i]);
        r = readers_wait_for_readers(s);
        for (uint32_t i = 0; i < s->n_cpus; i++) {
                if (!commands[i])
                        continue;
                if (reader_is_stalled(&s->answering.readers[i])) /* it is in the middle of it */
                        do_without(s, i, &each[i]);
                else if (each[i].ret_error)
                        *each[i].ret_error = s->by_slot[i].command_error;
        }
        return r;
}

/* cut: 0, or the number of the cut that belongs to it. */
static int order_all(Readers *s, ReaderCommandKind kind, Snapshot *snapshot, uint64_t cut, CutScope *scope) {
        _cleanup_free_ ReaderCommand *each = calloc(s->n_cpus + 1, sizeof(*each));

        if (!each)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < s->n_cpus; i++)
                each[i] = (ReaderCommand){ .kind = kind, .snapshot = snapshot, .cut = cut, .scope = scope };
        return readers_command_each(s, each);
}

int readers_command(Readers *s, ReaderCommandKind kind, Snapshot *snapshot) {
        return order_all(s, kind, snapshot, 0, NULL);
}

/* Main's own is taken behind those of the readers. */
static void end_cut(Readers *s) {
        readers_judge_births(s);
        readers_cut_emitted(s);
        s->hooks.on_cut(s->hooks.userdata);
}

int readers_cut(Readers *s, CutScope *scope) {
        int r = order_all(s, READER_CUT, NULL, ++s->n_cuts, scope);

        if (r == 0)
                end_cut(s);
        return r;
}

/* Those that had not answered a look before this one, which has given them their moment too. */
static void find_stalled(Readers *s) {
        nsec_t now;

        (void)look_who_moves(s);
        now = clock_now(CLOCK_MONOTONIC);
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                const Answering *a = &s->answering.readers[slot];

                if (is_awaited(s, slot) && now - (a->moved > a->sent ? a->moved : a->sent) >= PATIENCE)
                        readers_set_stalled(s, slot);
        }
}

int readers_cut_at_once(Readers *s, CutScope *scope) {
        Patience p = patience_new();
        int r = 0;

        s->sequence++;
        s->n_cuts++;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                ReaderCommand *command;

                if (!s->by_slot[slot].thread.started || reader_is_stalled(&s->answering.readers[slot]) || is_awaited(s, slot))
                        continue; /* what it was asked before is a cut too, or more */
                command = command_copy(&(ReaderCommand){ .kind = READER_CUT, .cut = s->n_cuts, .scope = scope });
                if (!command)
                        return error_origin(-ENOMEM);
                send_command(s, slot, command);
        }
        while (r >= 0 && !all_acknowledged(s) && !patience_is_over(s, &p, LOOK_MOST))
                r = wait_once(s, &p);
        find_stalled(s);
        end_cut(s);
        return r < 0 ? r : 0;
}

/* What readers need to find the places where streams change over, in one piece. -ENOMEM */
static int make_turned(const Readers *s, const Snapshot *snapshot, ReaderCommand *each, TurnedStream **ret) {
        TurnedStream *turned;
        size_t n = 0;

        if (!s->hooks.changes_over(s->hooks.userdata))
                return 0;
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                n += snapshot->cpus[slot].n_streams;
        turned = malloc((n + 1) * sizeof(*turned));
        if (!turned)
                return error_origin(-ENOMEM);
        *ret = turned;
        for (size_t slot = 0; slot < s->n_cpus; slot++) {
                each[slot].turned = turned;
                turned += snapshot->cpus[slot].n_streams;
        }
        return 0;
}

static void release_turned(Readers *s, void *turned) {
        if (!s->answering.is_abandoned)
                free(turned);
}

static int readers_order_adopt(Readers *s, Snapshot *snapshot, uint64_t cut, CutScope *scope) {
        _cleanup_free_ ReaderCommand *each = calloc(s->n_cpus + 1, sizeof(*each));
        TurnedStream *turned = NULL;
        int r;

        if (!each)
                return error_origin(-ENOMEM);
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                each[slot] = (ReaderCommand){ .kind = READER_SET_SNAPSHOT, .snapshot = snapshot, .cut = cut, .scope = scope };
        r = make_turned(s, snapshot, each, &turned);
        if (r == 0)
                r = readers_command_each(s, each);
        readers_defer(s, release_turned, turned); /* one that was stopped in the middle of it still writes there */
        return r;
}

static int publish(Readers *s, uint64_t cut, CutScope *scope) {
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        readers_flush_emitted(s); /* its masks are of the generation that ends */
        r = s->hooks.build_snapshot(s->hooks.userdata, &snapshot);
        if (r < 0)
                return r;
        r = readers_order_adopt(s, snapshot, cut, scope);
        if (r < 0)
                return r;
        s->generation = snapshot->generation;
        s->tells_notes = snapshot->notes;
        s->hooks.on_published(s->hooks.userdata);
        return 0;
}

int readers_publish(Readers *s) {
        return publish(s, 0, NULL);
}

/* Where streams change over readers look for a place of their own: the cut is behind it then. */
int readers_publish_at_cut(Readers *s, CutScope *scope) {
        int r;

        if (s->hooks.changes_over(s->hooks.userdata)) {
                r = publish(s, 0, NULL);
                return r < 0 ? r : readers_cut(s, scope);
        }
        r = publish(s, ++s->n_cuts, scope);
        if (r == 0) { /* main does nothing in between */
                readers_cut_emitted(s);
                s->hooks.on_cut(s->hooks.userdata);
        }
        return r;
}
