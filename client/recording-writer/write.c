/*
 * Bytes to the file. A batch is whole records; it is written whole, or the file is cut off before it. Compressed, one stream of zstd goes
 * through all of the records COMPRESSED, as perf's reader expects it, and each batch is flushed so that it can be read without the next.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "client/recording-writer/writer.h"

static int write_all(int fd, const uint8_t *bytes, size_t n) {
        while (n > 0) {
                ssize_t done = write(fd, bytes, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return done < 0 ? -errno : -EIO;
                bytes += done;
                n -= (size_t)done;
        }
        return 0;
}

int writer_write(perfd_recording_writer *w, const void *bytes, size_t n) {
        int code = write_all(w->fd, bytes, n);

        if (code == 0) {
                w->at += n;
                return 0;
        }
        w->has_failed = true;
        if (!w->is_pipe && (ftruncate(w->fd, (off_t)w->at) != 0 || lseek(w->fd, (off_t)w->at, SEEK_SET) < 0))
                return writer_fail(w, code, "%s: %s, behind %" PRIu64 " whole bytes; what was written of the next ones could not be cut off",
                                   w->part, strerror(-code), w->at);
        return writer_fail(w, code, "%s: %s, behind %" PRIu64 " whole bytes", w->is_pipe ? "the pipe" : w->part, strerror(-code), w->at);
}

int writer_write_at(perfd_recording_writer *w, uint64_t at, const void *bytes, size_t n) {
        ssize_t done = pwrite(w->fd, bytes, n, (off_t)at);
        int code = done < 0 ? -errno : (size_t)done < n ? -EIO : 0;

        if (code == 0)
                return 0;
        w->has_failed = true;
        return writer_fail(w, code, "%s: at byte %" PRIu64 ": %s", w->part, at, strerror(-code));
}

static void put_header(Buffer *b, uint32_t type, uint16_t misc, size_t n) {
        const struct {
                uint32_t type;
                uint16_t misc, size;
        } header = { .type = type, .misc = misc, .size = (uint16_t)(PERF_DATA_RECORD_HEADER + n) };

        buffer_put(b, &header, sizeof(header));
}

/* The input is at most WRITER_BATCH bytes, so the output has room. */
static int compress(perfd_recording_writer *w, const uint8_t *bytes, size_t n) {
        const size_t bound = UINT16_MAX - PERF_DATA_RECORD_HEADER;
        ZSTD_inBuffer in = { .src = bytes, .size = n };
        ZSTD_outBuffer out = { .size = bound };
        size_t left;

        w->scratch.n = 0;
        put_header(&w->scratch, PERF_DATA_COMPRESSED, 0, 0);
        out.dst = buffer_reserve(&w->scratch, bound);
        if (!out.dst)
                return writer_fail(w, -ENOMEM, "no memory");
        left = ZSTD_compressStream2(w->zstd, &out, &in, ZSTD_e_flush);
        if (left != 0)
                return writer_fail(w, -EIO, "zstd: %s", ZSTD_isError(left) ? ZSTD_getErrorName(left) : "a batch has no room in a record");
        w->scratch.n = 0;
        put_header(&w->scratch, PERF_DATA_COMPRESSED, 0, out.pos);
        return writer_write(w, w->scratch.bytes, PERF_DATA_RECORD_HEADER + out.pos);
}

int writer_flush(perfd_recording_writer *w) {
        const size_t n = w->batch.n;
        int code = 0;

        w->batch.n = 0; /* what failed is not tried again: zstd has it in its stream */
        if (n == 0)
                return 0;
        if (!w->zstd)
                code = writer_write(w, w->batch.bytes, n);
        for (size_t at = 0; w->zstd && at < n && code == 0; at += WRITER_BATCH)
                code = compress(w, w->batch.bytes + at, n - at < WRITER_BATCH ? n - at : WRITER_BATCH);
        w->has_failed |= code != 0;
        w->n_unwritten += code != 0 ? w->n_in_batch : 0;
        w->n_in_batch = 0;
        return code;
}

int writer_write_record(perfd_recording_writer *w, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        int code = writer_flush(w);

        if (code != 0)
                return code;
        w->scratch.n = 0;
        put_header(&w->scratch, type, misc, n);
        buffer_put(&w->scratch, bytes, n);
        return w->scratch.failed ? writer_fail(w, -ENOMEM, "no memory") : writer_write(w, w->scratch.bytes, w->scratch.n);
}

static int check_record(perfd_recording_writer *w, size_t n) {
        if (n <= UINT16_MAX - PERF_DATA_RECORD_HEADER && n % 8 == 0)
                return 0;
        return writer_fail(w, PERFD_E_INVALID, "a record of %zu bytes: expected a multiple of 8, at most 65,527", n);
}

static int check_state(perfd_recording_writer *w) {
        if (!w->is_open || w->has_failed)
                return writer_fail(w, PERFD_E_STATE, w->is_open ? "an earlier write has failed" : "no recording is open");
        if (w->n_events == 0)
                return writer_fail(w, PERFD_E_INVALID, "a record before the first event");
        return 0;
}

static int begin(perfd_recording_writer *w) {
        const int code = check_state(w);

        return code != 0 || w->has_begun ? code : head_begin(w);
}

static size_t batch_size(const perfd_recording_writer *w) {
        return w->zstd || w->at < WRITER_LARGE_FILE ? WRITER_BATCH : WRITER_LARGE_BATCH;
}

int writer_reserve(perfd_recording_writer *w, size_t n, uint8_t **ret) {
        const size_t whole = PERF_DATA_RECORD_HEADER + n;
        int code = begin(w);
        uint8_t *room;

        if (code == 0 && w->batch.n + whole > batch_size(w))
                code = writer_flush(w);
        if (code != 0)
                return code;
        room = buffer_reserve(&w->batch, whole);
        if (!room)
                return writer_fail(w, -ENOMEM, "no memory");
        *ret = room + PERF_DATA_RECORD_HEADER;
        return 0;
}

int writer_take(perfd_recording_writer *w, uint32_t type, uint16_t misc, size_t n) {
        int code = check_record(w, n);

        if (code != 0)
                return code;
        put_header(&w->batch, type, misc, n); /* there is room */
        w->batch.n += n;
        return 0;
}

int perfd_recording_writer_put(perfd_recording_writer *w, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        uint8_t *to;
        int code = check_state(w);

        if (code == 0)
                code = check_record(w, n);
        if (code == 0 && type >= PERF_DATA_HEADER_ATTR) {
                code = begin(w);
                return code == 0 ? writer_write_record(w, type, misc, bytes, n) : code;
        }
        if (code == 0)
                code = writer_reserve(w, n, &to);
        if (code != 0)
                return code;
        if (n > 0)
                memcpy(to, bytes, n);
        return writer_take(w, type, misc, n);
}
