/*
 * A negative is also an answer ("there is no such file") that its caller looks at and forgets, so a trail is written down, not
 * logged. What is undone after a failure may fail in its turn, and may ask for what is not there, in many ways: so each errno has a
 * trail of its own, which only another one of the same errno replaces. Pages that nobody writes to are no memory.
 */
#include "daemon/base/error-trail.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"

#define TRAILS 136 /* errnos of Linux: EHWPOISON is 133; those of all others share the first */
#define TEXT_SIZE 768

static _Thread_local ErrorTrail trails[TRAILS];
static _Thread_local char text[TEXT_SIZE];

static ErrorTrail *slot_of(int error) {
        return &trails[-error < TRAILS ? -error : 0];
}

/* The youngest. */
static ErrorTrail *find(int error) {
        ErrorTrail *t = slot_of(error);

        return t->error == error ? t : NULL;
}

static void add_place(ErrorTrail *t, const ErrorPlace *place) {
        if (t->n < ERROR_TRAIL_PLACES)
                t->places[t->n++] = place;
}

static ErrorTrail *new_trail(int error) {
        ErrorTrail *t = slot_of(error);

        t->error = error;
        t->n = 0;
        t->object[0] = '\0';
        return t;
}

void error_trail_begin(int error, const ErrorPlace *place) {
        assert(error < 0);
        add_place(new_trail(error), place);
}

void error_trail_pass(int error, const ErrorPlace *place) {
        ErrorTrail *t = find(error);

        assert(error < 0);
        add_place(t ? t : new_trail(error), place);
}

void error_trail_name(int error, const char *format, ...) {
        const int before = errno;
        ErrorTrail *t = find(error);
        size_t length = strlen(t->object);
        va_list ap;

        if (length > 0 && length + 2 < sizeof(t->object)) {
                memcpy(t->object + length, ", ", 3);
                length += 2;
        }
        va_start(ap, format);
        (void)vsnprintf(t->object + length, sizeof(t->object) - length, format, ap); /* a longer text is cut */
        va_end(ap);
        printable_make(t->object, sizeof(t->object));
        errno = before;
}

static const char *base_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* What does not fit is cut, at the end. */
static void __attribute__((format(printf, 1, 2))) append(const char *format, ...) {
        size_t length = strlen(text);
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(text + length, sizeof(text) - length, format, ap);
        va_end(ap);
}

const char *error_text(int r) {
        ErrorTrail t = error_trail_take(r);

        text[0] = '\0';
        append("%s", strerror(r < 0 ? -r : r));
        for (size_t i = 0; i < t.n; i++) {
                append("%s %s() at %s:%u", i == 0 ? "; from" : i == 1 ? ", through" : ",", t.places[i]->function,
                       base_name(t.places[i]->file), t.places[i]->line);
                if (i == 0 && t.object[0])
                        append(", %s", t.object);
        }
        return text;
}

ErrorTrail error_trail_take(int r) {
        ErrorTrail *found = r < 0 ? find(r) : NULL, t = found ? *found : ERROR_TRAIL_NULL;

        if (found)
                *found = ERROR_TRAIL_NULL;
        return t;
}

void error_trail_give(const ErrorTrail *trail) {
        if (trail->error < 0)
                *new_trail(trail->error) = *trail;
}
