/*
 * Build ids become known while a recording is written. In a file all of them are one section, behind the records if it has grown since the
 * first of them; in a pipe each is a record.
 */
#include <errno.h>
#include <linux/limits.h>
#include <linux/perf_event.h>

#include "client/recording-writer/writer.h"

#define OF_ALL UINT32_MAX /* pids */

/* Behind the header of a record: its pid, its id and how long it is, and its path with zeros up to a record of whole 8 bytes. */
static void put_row(Buffer *b, perfd_text build_id, perfd_text path) {
        buffer_put_u32(b, OF_ALL);
        buffer_put(b, build_id.bytes, build_id.length);
        buffer_put_zeros(b, PERF_DATA_BUILD_ID - build_id.length);
        buffer_put(b, &(uint8_t){ (uint8_t)build_id.length }, 1);
        buffer_put_zeros(b, 3);
        buffer_put(b, path.bytes, path.length);
        buffer_put_zeros(b, 8 - (path.length + 4) % 8);
}

int perfd_recording_writer_add_build_id(perfd_recording_writer *w, uint16_t misc, perfd_text build_id, perfd_text path) {
        Buffer *rows = &w->features[PERF_DATA_FEATURE_BUILD_ID], row = { .n = 0 };
        int code = 0;

        if (!w->is_open || w->has_failed)
                return writer_fail(w, PERFD_E_STATE, "no recording is open, or writing failed");
        if (build_id.length == 0 || build_id.length > PERF_DATA_BUILD_ID || path.length >= PATH_MAX)
                return writer_fail(w, PERFD_E_INVALID, "a build id has 1 to %d bytes, and its path fewer than %d", PERF_DATA_BUILD_ID, PATH_MAX);
        misc |= PERF_DATA_BUILD_ID_HAS_SIZE;
        put_row(&row, build_id, path);
        if (w->is_pipe && w->has_begun) {
                code = row.failed ? 0 : perfd_recording_writer_put(w, PERF_DATA_HEADER_BUILD_ID, misc, row.bytes, row.n);
        } else {
                buffer_put_u32(rows, 0); /* perf does not look at its type */
                buffer_put_u16(rows, misc);
                buffer_put_u16(rows, (uint16_t)(PERF_DATA_RECORD_HEADER + row.n));
                buffer_put(rows, row.bytes, row.n);
                w->has[PERF_DATA_FEATURE_BUILD_ID] = true;
        }
        if (row.failed || rows->failed)
                code = writer_fail(w, -ENOMEM, "no memory");
        buffer_deinit(&row);
        return code;
}
