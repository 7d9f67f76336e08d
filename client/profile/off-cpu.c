/*
 * The time belongs to the stack of the switch that took the CPU away: that is where the program waits. So the frames of each thread that is
 * out are kept until it comes back, in a piece of memory that the thread keeps for its next time.
 */
#include "client/profile/off-cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Thread {
        uint32_t id, task;
        bool is_out;
        uint64_t since;
        uint32_t *frames;
        size_t n_frames, room;
} Thread;

struct OffCpu {
        Profile *profile;
        Thread *threads;
        size_t n_threads, room;
        IdTable ids; /* of indexes of threads, by their id */
        uint64_t last;
        OffCpuCounts counts;
};

OffCpu *off_cpu_new(Profile *p) {
        OffCpu *o = calloc(1, sizeof(*o));

        if (o)
                *o = (OffCpu){ .profile = p, .ids = ID_TABLE_NULL };
        return o;
}

OffCpu *off_cpu_free(OffCpu *o) {
        if (!o)
                return NULL;
        for (size_t i = 0; i < o->n_threads; i++)
                free(o->threads[i].frames);
        free(o->threads);
        id_table_deinit(&o->ids);
        free(o);
        return NULL;
}

const OffCpuCounts *off_cpu_counts(const OffCpu *o) {
        return &o->counts;
}

static Thread *find(const OffCpu *o, uint32_t id, uint32_t hash) {
        size_t at = hash;
        uint32_t i;

        while (id_table_next(&o->ids, hash, &at, &i))
                if (o->threads[i].id == id)
                        return &o->threads[i];
        return NULL;
}

/* NULL: no memory. */
static Thread *add(OffCpu *o, uint32_t id, uint32_t hash) {
        if (o->n_threads == o->room) {
                const size_t room = o->room > 0 ? 2 * o->room : 64;
                Thread *larger = reallocarray(o->threads, room, sizeof(*larger));

                if (!larger)
                        return NULL;
                o->threads = larger;
                o->room = room;
        }
        if (id_table_add(&o->ids, hash, (uint32_t)o->n_threads) != 0)
                return NULL;
        o->threads[o->n_threads] = (Thread){ .id = id };
        return &o->threads[o->n_threads++];
}

static int come(OffCpu *o, Thread *t, uint64_t time) {
        const uint64_t nsec = time - t->since;
        int code = 0;

        if (time >= t->since)
                code = profile_add(o->profile, t->task, t->frames, t->n_frames, &nsec, 0);
        if (code != 0)
                return code;
        t->is_out = false;
        if (time >= t->since)
                o->counts.n_added++;
        else
                o->counts.n_backwards++;
        return 0;
}

static int keep_frames(Thread *t, const OffCpuSwitch *s) {
        if (s->n_frames > t->room) {
                uint32_t *larger = reallocarray(t->frames, s->n_frames, sizeof(*larger));

                if (!larger)
                        return -ENOMEM;
                t->frames = larger;
                t->room = s->n_frames;
        }
        if (s->n_frames > 0)
                memcpy(t->frames, s->frames, s->n_frames * sizeof(*t->frames));
        t->n_frames = s->n_frames;
        return 0;
}

static int go(OffCpu *o, const OffCpuSwitch *s) {
        const uint32_t hash = id_hash(o->profile->seed, &s->prev, sizeof(s->prev));
        Thread *t = find(o, s->prev, hash);
        int code;

        if (!t && s->has_ended)
                return 0;
        if (!t)
                t = add(o, s->prev, hash);
        code = t ? keep_frames(t, s) : -ENOMEM;
        if (code != 0)
                return code;
        if (t->is_out)
                o->counts.n_missed++;
        t->is_out = !s->has_ended;
        t->task = s->task;
        t->since = s->time;
        return 0;
}

int off_cpu_add(OffCpu *o, const OffCpuSwitch *s) {
        Thread *next = s->next != 0 ? find(o, s->next, id_hash(o->profile->seed, &s->next, sizeof(s->next))) : NULL;
        int code = next && next->is_out ? come(o, next, s->time) : 0;

        if (code == 0 && s->prev != 0)
                code = go(o, s);
        if (code == 0 && s->time > o->last)
                o->last = s->time;
        return code;
}

int off_cpu_end(OffCpu *o) {
        for (size_t i = 0; i < o->n_threads; i++) {
                Thread *t = &o->threads[i];
                const uint64_t nsec = o->last - t->since; /* it went before the last switch, or with it */
                int code;

                if (!t->is_out)
                        continue;
                code = profile_add(o->profile, t->task, t->frames, t->n_frames, &nsec, 0);
                if (code != 0)
                        return code;
                t->is_out = false;
                o->counts.n_open++;
                o->counts.open_nsec += nsec;
        }
        return 0;
}
