/* The life of a writer: a temporary name, events and sections, and at the end the file's own name. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/recording-writer/writer.h"

#define LEVEL_MAX 19
#define END_ROOM ((size_t)4096) /* bytes: of what stands behind the records, some 600 */

int writer_fail(perfd_recording_writer *w, int code, const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(w->error, sizeof(w->error), format, args);
        va_end(args);
        return code;
}

perfd_recording_writer *perfd_recording_writer_new(void) {
        perfd_recording_writer *w = calloc(1, sizeof(*w));

        if (w)
                w->fd = -1;
        return w;
}

static void close_file(perfd_recording_writer *w) {
        if (!w->is_pipe && w->fd >= 0)
                (void)close(w->fd);
        w->fd = -1;
        w->is_open = false;
}

void perfd_recording_writer_free(perfd_recording_writer *w) {
        if (!w)
                return;
        if (w->is_open && w->part && !w->has_failed)
                (void)unlink(w->part);
        close_file(w);
        for (size_t i = 0; i < w->n_events; i++) {
                free(w->events[i].name);
                free(w->events[i].ids);
        }
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                buffer_deinit(&w->features[bit]);
        free(w->events);
        buffer_deinit(&w->batch);
        buffer_deinit(&w->scratch);
        ZSTD_freeCStream(w->zstd);
        free(w->path);
        free(w->part);
        free(w);
}

const char *perfd_recording_writer_error(const perfd_recording_writer *w) {
        return w->error;
}

uint64_t perfd_recording_writer_n_unwritten(const perfd_recording_writer *w) {
        return w->n_unwritten;
}

uint64_t perfd_recording_writer_size(const perfd_recording_writer *w) {
        return w->at;
}

/* ---- begin ------------------------------------------------------------------------------------------------------------------- */

static int set_level(perfd_recording_writer *w, int level) {
        if (w->is_open || w->has_begun)
                return writer_fail(w, PERFD_E_STATE, "a recording is opened once");
        if (level < 0 || level > LEVEL_MAX)
                return writer_fail(w, PERFD_E_INVALID, "level %d of zstd: expected 1 to %d, or 0 for none", level, LEVEL_MAX);
        w->level = level;
        if (level == 0 || w->zstd)
                return 0;
        w->zstd = ZSTD_createCStream();
        if (!w->zstd || ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, level)))
                return writer_fail(w, -ENOMEM, "no memory");
        return 0;
}

int perfd_recording_writer_open(perfd_recording_writer *w, const char *path, int level) {
        int code = set_level(w, level);
        struct stat st;

        if (code != 0)
                return code;
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
                return writer_fail(w, PERFD_E_INVALID, "%s: it is no regular file, whose place a recording could take", path);
        if (!w->path) {
                w->path = strdup(path);
                if (!w->path || asprintf(&w->part, "%s.part-XXXXXX", path) < 0)
                        return writer_fail(w, -ENOMEM, "no memory");
        }
        w->fd = mkostemp(w->part, O_CLOEXEC);
        if (w->fd < 0)
                return writer_fail(w, -errno, "%s: no file can be made beside it: %s", path, strerror(errno));
        w->is_open = true;
        return 0;
}

int perfd_recording_writer_open_pipe(perfd_recording_writer *w, int fd, int level) {
        int code = set_level(w, level);

        if (code != 0)
                return code;
        w->is_pipe = w->is_open = true;
        w->fd = fd;
        return 0;
}

/* ---- what stands before the records ---------------------------------------------------------------------------------------------- */

static int check_event(perfd_recording_writer *w, const perfd_recorded_event *e) {
        const perfd_recorded_event *first = w->n_events > 0 ? &w->events[0].event : e;

        if (!w->is_open)
                return writer_fail(w, PERFD_E_STATE, "no recording is open");
        if (!e->name || e->n_ids == 0 || e->n_ids > UINT16_MAX / 16)
                return writer_fail(w, PERFD_E_INVALID, "an event has a name, and 1 to %d ids", UINT16_MAX / 16);
        if (((e->sample_type ^ first->sample_type) & UINT64_C(1) << 16) != 0 ||
            ((e->flags ^ first->flags) & PERFD_ATTR_SAMPLE_ID_ALL) != 0)
                return writer_fail(w, PERFD_E_INVALID, "%s: all events have PERF_SAMPLE_IDENTIFIER and sample_id_all, or none", e->name);
        if (!w->is_pipe && w->has_begun && (e->n_ids > 1 || w->n_late == PERFD_RECORDING_LATE_EVENTS))
                return writer_fail(w, PERFD_E_INVALID, "%s: behind the first record a file has room for %d events of one id", e->name,
                                   PERFD_RECORDING_LATE_EVENTS);
        return 0;
}

int perfd_recording_writer_add_event(perfd_recording_writer *w, const perfd_recorded_event *event) {
        WrittenEvent *e, *larger;
        int code = check_event(w, event);

        if (code != 0)
                return code;
        larger = reallocarray(w->events, w->n_events + 1, sizeof(*larger));
        if (!larger)
                return writer_fail(w, -ENOMEM, "no memory");
        w->events = larger;
        e = &w->events[w->n_events];
        *e = (WrittenEvent){ .event = *event, .name = strdup(event->name), .ids = calloc(event->n_ids, sizeof(uint64_t)) };
        if (!e->name || !e->ids) {
                free(e->name);
                free(e->ids);
                return writer_fail(w, -ENOMEM, "no memory");
        }
        memcpy(e->ids, event->ids, event->n_ids * sizeof(uint64_t));
        e->event.name = e->name;
        e->event.ids = e->ids;
        w->n_events++;
        if (!w->has_begun)
                return 0;
        w->n_late++;
        return head_add_event(w, w->n_events - 1);
}

int perfd_recording_writer_add_feature(perfd_recording_writer *w, unsigned bit, const void *bytes, size_t n) {
        if (w->is_open && w->has_begun && !w->has_failed && bit == PERF_DATA_FEATURE_TRACING_DATA)
                return head_renew_tracing(w, bytes, n);
        if (!w->is_open || w->has_begun)
                return writer_fail(w, PERFD_E_STATE, "sections are added between the opening and the first record");
        if (bit >= PERF_DATA_FEATURES || w->has[bit] || bit == PERF_DATA_FEATURE_EVENT_DESC || bit == PERF_DATA_FEATURE_SAMPLE_TIME ||
            bit == PERF_DATA_FEATURE_COMPRESSED)
                return writer_fail(w, PERFD_E_INVALID, "section %u: it is there, is the writer's own, or is none", bit);
        buffer_put(&w->features[bit], bytes, n);
        if (w->features[bit].failed)
                return writer_fail(w, -ENOMEM, "no memory");
        w->has[bit] = true;
        return 0;
}

/* ---- end --------------------------------------------------------------------------------------------------------------------- */

int perfd_recording_writer_flush(perfd_recording_writer *w) {
        return w->is_open && !w->has_failed ? writer_flush(w) : writer_fail(w, PERFD_E_STATE, "no recording is open, or writing failed");
}

/* Bytes of what sample_id_all appends. */
static size_t id_size(const perfd_recorded_event *e) {
        const uint64_t bits = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

        return e->flags & PERFD_ATTR_SAMPLE_ID_ALL ? sizeof(uint64_t) * (size_t)__builtin_popcountll(e->sample_type & bits) : 0;
}

/*
 * What is missing is said in the file, if there is room for that and for what a file ends with: what failed was a batch, which is larger. Of
 * no event, as records are that perf makes up: the sample id is 0.
 */
static void put_unwritten(perfd_recording_writer *w) {
        struct {
                uint32_t type;
                uint16_t misc, size;
                uint64_t n, zeros[8 + END_ROOM / sizeof(uint64_t)];
        } record = { .type = PERF_RECORD_LOST_SAMPLES, .n = w->n_unwritten };
        const uint64_t at = w->at;

        record.size = (uint16_t)(PERF_DATA_RECORD_HEADER + sizeof(record.n) + id_size(&w->events[0].event));
        if (writer_write(w, &record, record.size + END_ROOM) != 0)
                return;
        w->at = at + record.size;
        (void)lseek(w->fd, (off_t)w->at, SEEK_SET);
        (void)!ftruncate(w->fd, (off_t)w->at); /* else zeros stay behind the end, which nobody reads */
}

/* As perf does: what had the name is FILE.old. */
static int give_name(perfd_recording_writer *w) {
        char *old = NULL;
        int code = 0;

        if (asprintf(&old, "%s.old", w->path) < 0)
                return writer_fail(w, -ENOMEM, "no memory");
        if (rename(w->path, old) != 0 && errno != ENOENT)
                code = writer_fail(w, -errno, "%s: it cannot become %s: %s", w->path, old, strerror(errno));
        free(old);
        if (code == 0 && rename(w->part, w->path) != 0)
                code = writer_fail(w, -errno, "%s: it cannot become %s: %s", w->part, w->path, strerror(errno));
        w->has_failed |= code != 0;
        return code;
}

int perfd_recording_writer_close(perfd_recording_writer *w) {
        char error[WRITER_ERROR];
        int code, ended;

        if (!w->is_open)
                return writer_fail(w, PERFD_E_STATE, "no recording is open");
        code = w->has_failed ? -EIO : w->has_begun ? 0 : w->n_events == 0 ? writer_fail(w, PERFD_E_STATE, "it has no event") : head_begin(w);
        if (code == 0)
                code = writer_flush(w);
        memcpy(error, w->error, sizeof(error));
        if (w->has_begun && !w->is_pipe && w->n_unwritten > 0)
                put_unwritten(w);
        ended = w->has_begun ? head_end(w) : code; /* what is whole of it is made whole as a file */
        if (ended == 0 && !w->is_pipe)
                ended = give_name(w);
        if (code != 0)
                memcpy(w->error, error, sizeof(error));
        close_file(w);
        return code != 0 ? code : ended;
}
