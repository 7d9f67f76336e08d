/*
 * The section TRACING_DATA, of which perf knows the fields of tracepoints. Source: util/trace-event-{info,read}.c of perf, version 0.6.
 *
 *      "\x17\x08\x44" "tracing" "0.6\0" | u8 byte order, u8 size of long, u32 page
 *      "header_page\0" u64 n, n bytes | "header_event\0" u64 n, n bytes
 *      u32 files of ftrace, none | u32 systems, of each: its name, u32 events, of each: u64 n, n bytes of its format
 *      u32 n of kallsyms, none: perf reads those of the host | u32 n, printk_formats | u64 n, saved_cmdlines
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client/recording-writer/read-file.h"

#define FORMAT_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)64 << 20)
#define TRACEPOINTS_MAX 65536

typedef struct Tracing {
        perfd_recording_writer *writer;
        const char *tracefs;
        Buffer bytes;
        int code;
} Tracing;

/* A file below tracefs, with the size of its length before it; one that is optional may lack. */
static void put_file(Tracing *t, const char *path, size_t max, size_t length, bool is_optional) {
        const size_t at = t->bytes.n;
        char *name = NULL;
        uint64_t n;
        int code;

        if (t->code != 0)
                return;
        if (asprintf(&name, "%s/%s", t->tracefs, path) < 0) {
                t->code = writer_fail(t->writer, -ENOMEM, "no memory");
                return;
        }
        buffer_put_zeros(&t->bytes, length);
        code = buffer_add_file(name, max, &t->bytes);
        if (code != 0 && is_optional && code != -ENOMEM)
                t->bytes.n = at + length; /* as if it were empty */
        else if (code != 0)
                t->code = writer_fail(t->writer, code, "%s: %s", name, strerror(-code));
        n = t->bytes.n - at - length;
        if (t->code == 0 && !t->bytes.failed) {
                if (length == sizeof(uint32_t))
                        memcpy(t->bytes.bytes + at, &(uint32_t){ (uint32_t)n }, length);
                else
                        memcpy(t->bytes.bytes + at, &n, length);
        }
        free(name);
}

static void put_format(Tracing *t, const char *tracepoint, size_t system) {
        char *path = NULL;

        if (asprintf(&path, "events/%.*s/%s/format", (int)system, tracepoint, tracepoint + system + 1) < 0) {
                t->code = writer_fail(t->writer, -ENOMEM, "no memory");
                return;
        }
        put_file(t, path, FORMAT_MAX, sizeof(uint64_t), false);
        free(path);
}

static size_t system_length(const char *tracepoint) {
        return strcspn(tracepoint, ":");
}

static bool is_of(const char *tracepoint, const char *other, size_t system) {
        return strncmp(tracepoint, other, system + 1) == 0;
}

/* The events of the system that the one at `first` is of. */
static void put_system(Tracing *t, const char *const *list, size_t n, size_t first) {
        const size_t system = system_length(list[first]), at = t->bytes.n + system + 1;
        uint32_t n_events = 0;

        buffer_put(&t->bytes, list[first], system);
        buffer_put(&t->bytes, "", 1);
        buffer_put_u32(&t->bytes, 0);
        for (size_t i = first; i < n && t->code == 0; i++)
                if (is_of(list[i], list[first], system)) {
                        put_format(t, list[i], system);
                        n_events++;
                }
        if (!t->bytes.failed)
                memcpy(t->bytes.bytes + at, &n_events, sizeof(n_events));
}

static void put_systems(Tracing *t, const char *const *list, size_t n) {
        const size_t at = t->bytes.n;
        uint32_t n_systems = 0;

        buffer_put_u32(&t->bytes, 0);
        for (size_t i = 0; i < n && t->code == 0; i++) {
                size_t k = 0;

                while (k < i && !is_of(list[k], list[i], system_length(list[i])))
                        k++;
                if (k < i)
                        continue; /* it is there with an earlier one */
                put_system(t, list, n, i);
                n_systems++;
        }
        if (!t->bytes.failed)
                memcpy(t->bytes.bytes + at, &n_systems, sizeof(n_systems));
}

static void put_head(Tracing *t) {
        static const char magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };

        buffer_put(&t->bytes, magic, sizeof(magic));
        buffer_put(&t->bytes, "0.6", sizeof("0.6"));
        buffer_put(&t->bytes, &(uint8_t){ __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ }, 1);
        buffer_put(&t->bytes, &(uint8_t){ sizeof(long) }, 1);
        buffer_put_u32(&t->bytes, (uint32_t)sysconf(_SC_PAGESIZE));
        buffer_put(&t->bytes, "header_page", sizeof("header_page"));
        put_file(t, "events/header_page", FORMAT_MAX, sizeof(uint64_t), false);
        buffer_put(&t->bytes, "header_event", sizeof("header_event"));
        put_file(t, "events/header_event", FORMAT_MAX, sizeof(uint64_t), false);
        buffer_put_u32(&t->bytes, 0);
}

static bool is_tracepoint(const char *name) {
        const char *colon = strchr(name, ':');

        return colon && colon > name && colon[1] && !strchr(name, '/') && !strstr(name, "..");
}

int perfd_recording_writer_add_tracing(perfd_recording_writer *w, const char *tracefs, const char *const *tracepoints, size_t n) {
        Tracing t = { .writer = w, .tracefs = tracefs };

        if (n > TRACEPOINTS_MAX)
                return writer_fail(w, PERFD_E_INVALID, "%zu tracepoints: expected at most %d", n, TRACEPOINTS_MAX);
        for (size_t i = 0; i < n; i++)
                if (!is_tracepoint(tracepoints[i]))
                        return writer_fail(w, PERFD_E_INVALID, "'%s' is no tracepoint such as sched:sched_switch", tracepoints[i]);
        put_head(&t);
        put_systems(&t, tracepoints, n);
        buffer_put_u32(&t.bytes, 0);
        put_file(&t, "printk_formats", TEXT_MAX, sizeof(uint32_t), true);
        put_file(&t, "saved_cmdlines", TEXT_MAX, sizeof(uint64_t), true);
        if (t.code == 0 && t.bytes.failed)
                t.code = writer_fail(w, -ENOMEM, "no memory");
        if (t.code == 0)
                t.code = perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TRACING_DATA, t.bytes.bytes, t.bytes.n);
        buffer_deinit(&t.bytes);
        return t.code;
}
