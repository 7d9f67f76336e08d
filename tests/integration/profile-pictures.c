/*
 * Samples of a file as a test writes them, made into everything that a profile can be written as.
 *
 * usage: profile-pictures FOLDER    reads FOLDER/samples, and FOLDER/older if it is there; writes folded, pprof, speedscope and flame.html
 *
 * A sample ends with RS (0x1e), its fields with US (0x1f): comm, container, pid, tid, wall time, samples, cycles, and its frames, whose
 * parts end with GS (0x1d): symbol, dso, build id, file, line, address, kind. What is empty is not known.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/profile/flame.h"
#include "client/profile/folded.h"
#include "client/profile/pprof.h"
#include "client/profile/speedscope.h"

static _Noreturn void fail(const char *what, int r) {
        fprintf(stderr, "profile-pictures: %s: %d\n", what, r);
        exit(1);
}

static char *read_file(const char *path) {
        FILE *in = fopen(path, "r");
        struct stat st;
        char *bytes;

        if (!in || fstat(fileno(in), &st) != 0)
                fail(path, -errno);
        bytes = calloc(1, (size_t)st.st_size + 1);
        if (!bytes || fread(bytes, 1, (size_t)st.st_size, in) != (size_t)st.st_size)
                fail(path, -EIO);
        (void)fclose(in);
        return bytes;
}

/* The text up to the separator, which it cuts off; NULL if it is empty. */
static const char *next(char **at, char separator) {
        char *text = *at, *end = strchr(text, separator);

        if (!end)
                fail("a field has no end", 0);
        *end = '\0';
        *at = end + 1;
        return *text ? text : NULL;
}

static uint64_t next_number(char **at, char separator) {
        const char *text = next(at, separator);

        return text ? strtoull(text, NULL, 10) : 0;
}

static uint32_t add_frame(Profile *p, const char *text) {
        char *copy = strdup(text), *at = copy;
        ProfileFrame frame = { .symbol = next(&at, '\x1d') };
        uint32_t id;
        int r;

        frame.dso = next(&at, '\x1d');
        frame.build_id = next(&at, '\x1d');
        frame.file = next(&at, '\x1d');
        frame.line = (uint32_t)next_number(&at, '\x1d');
        frame.address = next_number(&at, '\x1d');
        frame.kind = (FrameKind)next_number(&at, '\x1d');
        r = profile_add_frame(p, &frame, &id);
        if (r != 0)
                fail("profile_add_frame", r);
        free(copy);
        return id;
}

static void add_sample(Profile *p, char *at) {
        uint32_t frames[PROFILE_DEPTH_MAX], id;
        ProfileTask task = { .comm = next(&at, '\x1f') };
        uint64_t wall, values[2];
        size_t n = 0;
        int r;

        task.container = next(&at, '\x1f');
        task.pid = (uint32_t)next_number(&at, '\x1f');
        task.tid = (uint32_t)next_number(&at, '\x1f');
        wall = next_number(&at, '\x1f');
        values[0] = next_number(&at, '\x1f');
        values[1] = next_number(&at, '\x1f');
        while (*at && n < PROFILE_DEPTH_MAX)
                frames[n++] = add_frame(p, next(&at, '\x1f'));
        r = profile_add_task(p, &task, &id);
        if (r == 0)
                r = profile_add(p, id, frames, n, values, wall);
        if (r != 0)
                fail("profile_add", r);
}

static Profile *read_profile(const char *path) {
        const ProfileValue values[] = { { "samples", "count" }, { "cycles", "count" } };
        Profile *p = profile_new(values, 2);
        char *bytes = read_file(path), *at = bytes;

        if (!p)
                fail("profile_new", -ENOMEM);
        while (*at) {
                char *sample = at;

                (void)next(&at, '\x1e');
                add_sample(p, sample);
        }
        free(bytes);
        return p;
}

static FILE *create(const char *name) {
        FILE *out = fopen(name, "w");

        if (!out)
                fail(name, -errno);
        return out;
}

static void finish(FILE *out, const char *name, int r) {
        if (r != 0 || fclose(out) != 0)
                fail(name, r);
}

int main(int argc, char **argv) {
        Profile *p, *older = NULL;
        FILE *out;

        if (argc != 2 || chdir(argv[1]) != 0)
                fail("usage: profile-pictures FOLDER", -errno);
        p = read_profile("samples");
        if (access("older", F_OK) == 0)
                older = read_profile("older");
        out = create("folded");
        finish(out, "folded", folded_write(out, p, 0));
        out = create("pprof");
        finish(out, "pprof", pprof_write(out, p));
        out = create("speedscope");
        finish(out, "speedscope", speedscope_write(out, p, 1, "a <title> of \"samples\""));
        out = create("flame.html");
        finish(out, "flame.html", flame_write(out, p, older, "make -j2 <b>&amp;</b>"));
        profile_free(older);
        profile_free(p);
        return 0;
}
