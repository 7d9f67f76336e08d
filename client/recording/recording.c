/* The life of a recording. */
#include "client/recording/damage.h"
#include "client/recording/decompress.h"
#include "client/recording/header.h"
#include "client/recording/order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

perfd_recording *perfd_recording_new(void) {
        perfd_recording *r = calloc(1, sizeof(*r));

        if (r)
                r->source = SOURCE_NULL;
        return r;
}

void perfd_recording_free(perfd_recording *r) {
        if (!r)
                return;
        if (r->items)
                r->free_items(r->items);
        source_close(&r->source);
        decompress_free(r->decompress);
        order_free(r->order);
        free(r->order_directory);
        for (size_t i = 0; i < r->n_events; i++) {
                free(r->events[i].name);
                free(r->events[i].ids);
        }
        free(r->events);
        free(r->ids.slots);
        free(r->scratch);
        free(r->values);
        for (size_t i = 0; i < PERF_DATA_FEATURES; i++)
                free(r->pieces[i].bytes);
        free(r->event_types.bytes);
        for (size_t i = 0; i < r->damages.n; i++)
                free((char *)(uintptr_t)r->damages.list[i].text);
        free(r->damages.list);
        free(r->left_out.list);
        free(r);
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static int open_fd(perfd_recording *r, int fd, bool owns) {
        int code = source_of_fd(&r->source, fd, owns);

        if (code < 0)
                return recording_fail(r, code, "%s", strerror(-code));
        return recording_begin(r);
}

static bool is_open(const perfd_recording *r) {
        return r->source.fd >= 0 || r->source.memory;
}

int perfd_recording_open(perfd_recording *r, const char *path) {
        int fd;

        if (is_open(r))
                return recording_fail(r, PERFD_E_STATE, "a recording is opened once");
        if (strcmp(path, "-") == 0)
                return open_fd(r, STDIN_FILENO, false);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return recording_fail(r, -errno, "%s", strerror(errno));
        return open_fd(r, fd, true);
}

int perfd_recording_open_fd(perfd_recording *r, int fd) {
        return is_open(r) ? recording_fail(r, PERFD_E_STATE, "a recording is opened once") : open_fd(r, fd, false);
}

int perfd_recording_open_bytes(perfd_recording *r, const void *bytes, size_t n) {
        if (is_open(r))
                return recording_fail(r, PERFD_E_STATE, "a recording is opened once");
        source_of_memory(&r->source, bytes, n);
        return recording_begin(r);
}

bool perfd_recording_is_pipe(const perfd_recording *r) {
        return r->is_pipe;
}

perfd_byte_order perfd_recording_byte_order(const perfd_recording *r) {
        return r->is_big_endian ? PERFD_BIG_ENDIAN : PERFD_LITTLE_ENDIAN;
}

bool perfd_recording_has_feature(const perfd_recording *r, unsigned bit) {
        return recording_has(r, bit);
}

size_t perfd_recording_n_events(const perfd_recording *r) {
        return r->n_events;
}

const perfd_recorded_event *perfd_recording_event(const perfd_recording *r, size_t index) {
        return index < r->n_events ? &r->events[index].shown : NULL;
}
