/* What failed, and what is damaged; and the bytes of which that may be said. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/damage.h"

/* ---- what fails ---------------------------------------------------------------------------------------------------- */

int recording_fail(perfd_recording *r, int code, const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(r->error, sizeof(r->error), format, args);
        va_end(args);
        return code;
}

const char *perfd_recording_error(const perfd_recording *r) {
        return r->error;
}

int recording_get(perfd_recording *r, uint64_t offset, size_t n, Bytes *ret) {
        const uint8_t *at;
        size_t got;
        int code = source_get(&r->source, offset, n, &at, &got);

        if (code < 0)
                return recording_fail(r, code, "at byte %llu: %s", (unsigned long long)offset, strerror(-code));
        *ret = (Bytes){ .at = at, .end = at + got, .offset = offset, .swap = r->is_swapped };
        return 0;
}

/* ---- what is damaged ------------------------------------------------------------------------------------------------- */

int recording_damage(perfd_recording *r, uint64_t offset, const char *format, ...) {
        Damages *d = &r->damages;
        char *text = NULL;
        va_list args;
        int n;

        if (d->n_all++ >= DAMAGES_MAX)
                return 0;
        if (d->n == d->room) {
                perfd_damage *larger = reallocarray(d->list, 2 * d->room + 8, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                d->list = larger;
                d->room = 2 * d->room + 8;
        }
        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                return recording_fail(r, -ENOMEM, "no memory");
        d->list[d->n++] = (perfd_damage){ .offset = offset, .text = text };
        return 0;
}

int recording_damage_of(perfd_recording *r, const Bytes *b, const char *what) {
        return b->failed ? recording_damage(r, b->offset, "%s %s", what, b->failed) : 0;
}

size_t perfd_recording_n_damages(const perfd_recording *r) {
        return r->damages.n;
}

const perfd_damage *perfd_recording_damage(const perfd_recording *r, size_t index) {
        return index < r->damages.n ? &r->damages.list[index] : NULL;
}

uint64_t perfd_recording_damage_count(const perfd_recording *r) {
        return r->damages.n_all;
}
