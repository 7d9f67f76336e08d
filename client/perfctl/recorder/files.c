/*
 * The files of a recording: one, or one behind the other. Each is whole in itself: its attrs, formats and sections are written again, and who is
 * there when it begins, which state.c keeps. A file ends between two samples, and the next one has all that come.
 */
#include "client/perfctl/recorder/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/recorder/host-sections.h"

#define CLOCKID 23 /* the bits of these sections */
#define CLOCK_DATA 29
#define HUNDREDTH UINT64_C(10000000) /* ns */

void recorder_files_deinit(RecorderFiles *f) {
        for (size_t i = 0; i < f->n_names; i++)
                free(f->names[i]);
        free(f->names);
        f->names = NULL;
        f->n_names = 0;
}

static bool is_rotated(const RecorderFiles *f) {
        return f->rotation.bytes > 0 || f->rotation.nsec > 0;
}

/* PATH.YYYYMMDDhhmmsscc, as perf record --switch-output has it, of the time at which it begins; no two are the same. */
static char *next_name(RecorderFiles *f) {
        const uint64_t now = clock_read(CLOCK_REALTIME) / HUNDREDTH;
        char text[32], *name;
        struct tm tm;
        time_t second;

        f->last = now > f->last ? now : f->last + 1;
        second = (time_t)(f->last / 100);
        (void)strftime(text, sizeof(text), "%Y%m%d%H%M%S", localtime_r(&second, &tm));
        if (asprintf(&name, "%s.%s%02u", f->path, text, (unsigned)(f->last % 100)) < 0)
                name = must_have(NULL);
        return name;
}

static const char *name_of(const RecorderFiles *f) {
        return f->n_names > 0 ? f->names[f->n_names - 1] : f->path;
}

int recorder_open(Recorder *r) {
        RecorderFiles *f = &r->files;
        int code;

        r->writer = must_have(perfd_recording_writer_new());
        if (is_rotated(f)) {
                f->names = must_have(reallocarray(f->names, f->n_names + 1, sizeof(*f->names)));
                f->names[f->n_names] = next_name(f);
                f->n_names++;
                r->state = r->state ? r->state : recorder_state_new();
        }
        f->begun = clock_read(CLOCK_MONOTONIC);
        f->n_samples = 0;
        r->round = 0;
        code = strcmp(f->path, "-") == 0 ? perfd_recording_writer_open_pipe(r->writer, r->p->out.fd, f->level) :
                                           perfd_recording_writer_open(r->writer, name_of(f), f->level);
        recorder_check(r, code);
        return code == 0 ? 0 : PERFCTL_FAILED;
}

/* ---- what stands before the records ---------------------------------------------------------------------------------------------- */

/* All words of this program's own command line. */
static void add_host(Recorder *r) {
        static char bytes[1 << 16];
        const char **words = must_have(calloc(sizeof(bytes), sizeof(*words)));
        FILE *f = fopen("/proc/self/cmdline", "re");
        const size_t size = f ? fread(bytes, 1, sizeof(bytes) - 1, f) : 0;
        size_t n = 0;

        if (f)
                (void)fclose(f);
        bytes[size] = '\0'; /* a longer one is cut off */
        for (size_t at = 0; at < size; at += strlen(bytes + at) + 1)
                words[n++] = bytes + at;
        if (r->p->host)
                host_sections_put_remote(r, words, n);
        else
                recorder_check(r, perfd_recording_writer_add_host(r->writer, words, n));
        free(words);
}

void recorder_put_head(Recorder *r) {
        for (size_t i = 0; i < r->n_events; i++)
                recorder_check(r, perfd_recording_writer_add_event(r->writer, &r->events[i]->event));
        if (!r->has_failed)
                host_sections_put_tracing(r);
        if (!r->has_failed)
                add_host(r);
}

void recorder_put_clocks(Recorder *r, int64_t wall_offset) {
        const uint64_t resolution = 1, time = r->p->host ? daemon_clock_now(&r->remote.wall.clock) : clock_read((clockid_t)r->clock),
                       wall = time + (uint64_t)wall_offset;
        const struct {
                uint32_t version, clock;
                uint64_t wall, time; /* ns, of the same moment */
        } clock = { .version = 1, .clock = r->clock, .wall = wall, .time = time };

        recorder_check(r, perfd_recording_writer_add_feature(r->writer, CLOCKID, &resolution, sizeof(resolution)));
        recorder_check(r, perfd_recording_writer_add_feature(r->writer, CLOCK_DATA, &clock, sizeof(clock)));
}

/* ---- one behind the other ---------------------------------------------------------------------------------------------------------- */

void recorder_close(Recorder *r) {
        const RecorderFiles *f = &r->files;
        char size[QUANTITY_SIZE];

        recorder_check(r, perfd_recording_writer_close(r->writer));
        if (!r->has_failed && strcmp(f->path, "-") != 0)
                (void)fprintf(stderr, "perfctl: record: %s: %" PRIu64 " sample%s, %s\n", name_of(f), f->n_samples, f->n_samples == 1 ? "" : "s",
                              quantity_show_size(perfd_recording_writer_size(r->writer), size));
}

/* Those of this recording alone, the oldest first; the present one counts. */
static void remove_oldest(Recorder *r) {
        RecorderFiles *f = &r->files;

        while (f->rotation.keep > 0 && f->n_names > f->rotation.keep) {
                if (unlink(f->names[0]) != 0 && errno != ENOENT)
                        (void)perfctl_fail(r->p, PERFCTL_OK, "%s: it cannot be removed: %s", f->names[0], strerror(errno));
                free(f->names[0]);
                f->n_names--;
                memmove(f->names, f->names + 1, f->n_names * sizeof(*f->names));
        }
}

static int put_kept(void *userdata, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        Recorder *r = userdata;

        return perfd_recording_writer_put(r->writer, type, misc, bytes, n);
}

/* Of another host as its stream said it last. */
static int64_t offset_now(const Recorder *r) {
        uint64_t time, wall;

        if (!r->p->host)
                return (int64_t)(clock_read(CLOCK_REALTIME) - clock_read((clockid_t)r->clock));
        time = daemon_clock_now(&r->remote.wall.clock);
        return perfd_stream_wall(r->p->client, time, &wall, NULL) == 0 ? (int64_t)(wall - time) : 0;
}

static void begin_next(Recorder *r) {
        if (recorder_open(r) != 0)
                return;
        remove_oldest(r);
        kernel_functions_renew(&r->functions);
        recorder_put_head(r);
        if (!r->has_failed)
                recorder_check(r, build_ids_put(&r->build_ids, r->writer));
        if (r->has_failed)
                return;
        recorder_put_clocks(r, offset_now(r));
        if (!r->has_failed)
                recorder_check(r, recorder_state_put(r->state, put_kept, r));
        recorder_check(r, perfd_recording_writer_flush(r->writer));
        r->files.head = perfd_recording_writer_size(r->writer);
}

void recorder_rotate(Recorder *r) {
        const RecorderFiles *f = &r->files;
        const bool is_full = f->rotation.bytes > 0 && perfd_recording_writer_size(r->writer) - f->head >= f->rotation.bytes;

        if (r->has_failed || !(is_full || (f->rotation.nsec > 0 && clock_read(CLOCK_MONOTONIC) - f->begun >= f->rotation.nsec)))
                return;
        recorder_close(r);
        if (r->has_failed)
                return;
        perfd_recording_writer_free(r->writer);
        begin_next(r);
}
