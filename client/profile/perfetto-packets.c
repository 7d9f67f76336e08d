/*
 * Perfetto's clocks: ftrace's events have the time of CLOCK_BOOTTIME in every trace that does not convert them. A recording has one clock
 * alone, and nothing says how far it is from that one, so the snapshot of clocks at the beginning calls both the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/profile/file-end.h"
#include "client/profile/perfetto-packets.h"

#define NAMES_SIZE_MAX ((size_t)48 << 20) /* bytes: of all names, before they are forgotten */

enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };                 /* SequenceFlags */
enum { CLOCK_SNAPSHOT_CLOCK = 1, CLOCK_SNAPSHOT_PRIMARY = 2 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { SYSTEM_INFO_UTSNAME = 1 };
enum { UTSNAME_SYSNAME = 1, UTSNAME_VERSION = 2, UTSNAME_RELEASE = 3, UTSNAME_MACHINE = 4 };
enum { DEFAULTS_CLOCK = 58 };

/* ---- packets -------------------------------------------------------------------------------------------------------------------- */

void perfetto_begin(PerfettoWriter *w, uint32_t sequence) {
        w->packet.n = w->interned.n = 0;
        message_put_number(&w->packet, PACKET_SEQUENCE, (uint64_t)sequence + 1);
}

void perfetto_begin_at(PerfettoWriter *w, uint32_t sequence, uint64_t time) {
        Sequence *s = &w->sequences[sequence];

        perfetto_begin(w, sequence);
        message_put_number(&w->packet, PACKET_TIMESTAMP, time);
        message_put_number(&w->packet, PACKET_SEQUENCE_FLAGS, s->is_begun ? FLAG_NEEDS_STATE : FLAG_CLEARED | FLAG_NEEDS_STATE);
        if (!s->is_begun)
                message_put_bytes(&w->packet, PACKET_DEFAULTS, s->defaults.bytes, s->defaults.n);
        s->is_begun = true;
}

int perfetto_end(PerfettoWriter *w) {
        uint8_t head[16];
        size_t n = 0, length;

        if (w->interned.n > 0)
                message_put_bytes(&w->packet, PACKET_INTERNED_DATA, w->interned.bytes, w->interned.n);
        if (w->packet.has_failed || w->interned.has_failed)
                w->error = -ENOMEM;
        if (w->error < 0)
                return w->error;
        head[n++] = TRACE_PACKET << 3 | 2;
        for (length = w->packet.n; length >= 0x80; length >>= 7)
                head[n++] = (uint8_t)(length | 0x80);
        head[n++] = (uint8_t)length;
        errno = 0;
        if ((fwrite(head, 1, n, w->out) != n || fwrite(w->packet.bytes, 1, w->packet.n, w->out) != w->packet.n) && w->file_error == 0)
                w->file_error = -(errno ? errno : EIO);
        return 0;
}

/* ---- names ---------------------------------------------------------------------------------------------------------------------- */

void perfetto_limit(PerfettoWriter *w) {
        size_t sum = 0;

        for (size_t i = 0; i < w->n_sequences; i++)
                sum += perfetto_names_size(&w->sequences[i].names);
        if (sum <= NAMES_SIZE_MAX)
                return;
        for (size_t i = 0; i < w->n_sequences; i++) {
                perfetto_names_deinit(&w->sequences[i].names);
                w->sequences[i].is_begun = false;
        }
}

bool perfetto_number(PerfettoWriter *w, uint32_t sequence, NameKind kind, const void *content, size_t n, uint64_t *ret_number) {
        PerfettoNames *names = &w->sequences[sequence].names;

        *ret_number = 0;
        if (perfetto_names_find(names, kind, content, n, ret_number))
                return false;
        if (perfetto_names_add(names, kind, content, n, 0, ret_number) == 0)
                return true;
        w->error = -ENOMEM;
        return false;
}

uint64_t perfetto_name(PerfettoWriter *w, uint32_t sequence, NameKind kind, uint32_t field, PerfettoText text) {
        enum { IID = 1, TEXT = 2 };
        uint64_t number;
        size_t at;

        if (!perfetto_number(w, sequence, kind, text.bytes, text.n, &number))
                return number;
        at = message_open(&w->interned, field);
        message_put_number(&w->interned, IID, number);
        if (kind == NAME_BUILD_ID)
                message_put_bytes(&w->interned, TEXT, text.bytes, text.n);
        else
                message_put_string(&w->interned, TEXT, text.bytes, text.n);
        message_close(&w->interned, at);
        return number;
}

/* ---- the beginning -------------------------------------------------------------------------------------------------------------- */

static void put_clock(PerfettoWriter *w, PerfettoClock clock, uint64_t time) {
        size_t at = message_open(&w->packet, CLOCK_SNAPSHOT_CLOCK);

        message_put_number(&w->packet, CLOCK_ID, clock);
        message_put_number(&w->packet, CLOCK_TIMESTAMP, time);
        message_close(&w->packet, at);
}

static int put_clocks(PerfettoWriter *w) {
        const PerfettoOrigin *o = &w->origin;
        size_t at;

        perfetto_begin(w, 0);
        at = message_open(&w->packet, PACKET_CLOCK_SNAPSHOT);
        put_clock(w, o->clock, o->time);
        if (o->clock != PERFETTO_CLOCK_BOOTTIME)
                put_clock(w, PERFETTO_CLOCK_BOOTTIME, o->time);
        if (o->clock != PERFETTO_CLOCK_REALTIME && o->wall > 0)
                put_clock(w, PERFETTO_CLOCK_REALTIME, o->wall);
        message_put_number(&w->packet, CLOCK_SNAPSHOT_PRIMARY, o->clock);
        message_close(&w->packet, at);
        return perfetto_end(w);
}

static void put_known(PerfettoWriter *w, uint32_t field, const char *text) {
        if (text)
                message_put_string(&w->packet, field, text, strlen(text));
}

static int put_system(PerfettoWriter *w) {
        size_t info, name;

        perfetto_begin(w, 0);
        info = message_open(&w->packet, PACKET_SYSTEM_INFO);
        name = message_open(&w->packet, SYSTEM_INFO_UTSNAME);
        put_known(w, UTSNAME_SYSNAME, w->origin.system);
        put_known(w, UTSNAME_VERSION, w->origin.version);
        put_known(w, UTSNAME_RELEASE, w->origin.release);
        put_known(w, UTSNAME_MACHINE, w->origin.machine);
        message_close(&w->packet, name);
        message_close(&w->packet, info);
        return perfetto_end(w);
}

PerfettoWriter *perfetto_new(FILE *out, const PerfettoOrigin *origin) {
        PerfettoWriter *w = calloc(1, sizeof(*w));

        if (!w)
                return NULL;
        *w = (PerfettoWriter){ .out = out, .origin = *origin, .n_sequences = 1, .sequences = calloc(1, sizeof(*w->sequences)) };
        if (getrandom(&w->seed, sizeof(w->seed), GRND_NONBLOCK) != (ssize_t)sizeof(w->seed))
                w->seed = (uint64_t)(uintptr_t)w; /* early in boot: still not the same in each process */
        if (!w->sequences) {
                free(w);
                return NULL;
        }
        w->sequences[0].names.seed = w->seed;
        message_put_number(&w->sequences[0].defaults, DEFAULTS_CLOCK, origin->clock);
        if (put_clocks(w) < 0 || put_system(w) < 0 || w->sequences[0].defaults.has_failed)
                return perfetto_free(w);
        w->origin.system = w->origin.version = w->origin.release = w->origin.machine = NULL; /* the caller's, and said */
        return w;
}

PerfettoWriter *perfetto_free(PerfettoWriter *w) {
        if (!w)
                return NULL;
        for (size_t i = 0; i < w->n_sequences; i++) {
                perfetto_names_deinit(&w->sequences[i].names);
                message_writer_deinit(&w->sequences[i].defaults);
        }
        for (size_t i = 0; i < PERFETTO_CPUS_MAX; i++)
                message_writer_deinit(&w->cpus[i].events);
        message_writer_deinit(&w->packet);
        message_writer_deinit(&w->interned);
        free(w->sequences);
        free(w);
        return NULL;
}

int perfetto_finish(PerfettoWriter *w) {
        int r = w->error < 0 ? w->error : perfetto_flush_cpus(w);

        errno = 0;
        return r < 0 ? r : w->file_error < 0 ? w->file_error : file_end(w->out);
}
