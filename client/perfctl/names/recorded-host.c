#include "client/perfctl/names/recorded-host.h"

#include <elf.h>
#include <string.h>
#include <sys/utsname.h>

#define N_FEATURES 256

typedef struct Comparison {
        const char *here;
        bool is_another;
} Comparison;

static void compare(void *userdata, const char *key, perfd_text text) {
        Comparison *c = userdata;

        (void)key;
        c->is_another |= text.length != strlen(c->here) || memcmp(text.bytes, c->here, text.length) != 0;
}

/* What is not whole becomes a damage. */
static void visit(perfd_recording *r, const char *feature, const perfd_feature_visitor *visitor, void *userdata) {
        for (unsigned bit = 0; bit < N_FEATURES; bit++) {
                const char *name = perfd_feature_name(bit);

                if (name && strcmp(name, feature) == 0 && perfd_recording_has_feature(r, bit))
                        (void)perfd_recording_visit_feature(r, bit, visitor, userdata);
        }
}

static bool is_another(perfd_recording *r, const char *feature, const char *here) {
        static const perfd_feature_visitor visitor = { .text = compare };
        Comparison c = { .here = here };

        visit(r, feature, &visitor, &c);
        return c.is_another;
}

static void look_for_mark(void *userdata, const char *key, perfd_text text) {
        static const char mark[] = RECORDED_FROM_AFAR;
        const size_t n = sizeof(mark) - 1;
        bool *is_there = userdata;

        (void)key;
        *is_there |= text.length > n && strncmp(text.bytes, "perfd ", strlen("perfd ")) == 0 && memcmp(text.bytes + text.length - n, mark, n) == 0;
}

bool recorded_host_is_another(perfd_recording *r) {
        static const perfd_feature_visitor visitor = { .text = look_for_mark };
        bool is_marked = false;
        struct utsname here;

        visit(r, "VERSION", &visitor, &is_marked);
        if (is_marked || uname(&here) != 0)
                return is_marked;
        return is_another(r, "HOSTNAME", here.nodename) || is_another(r, "OSRELEASE", here.release);
}

static void take_machine(void *userdata, const char *key, perfd_text text) {
        static const struct { const char *name; uint32_t machine; } known[] = { { "x86_64", EM_X86_64 }, { "aarch64", EM_AARCH64 } };
        uint32_t *machine = userdata;

        (void)key;
        *machine = EM_NONE;
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
                if (text.length == strlen(known[i].name) && memcmp(text.bytes, known[i].name, text.length) == 0)
                        *machine = known[i].machine;
}

uint32_t recorded_machine(perfd_recording *r) {
        static const perfd_feature_visitor visitor = { .text = take_machine };
        uint32_t machine = MACHINE_OF_ITEM;

        visit(r, "ARCH", &visitor, &machine);
        return (perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN) == (BYTE_ORDER == BIG_ENDIAN) ? machine : EM_NONE;
}

/* ---- time ----------------------------------------------------------------------------------------------------------------------- */

/* Of the same moment, ns. */
typedef struct ClockReading {
        uint64_t wall, time;
} ClockReading;

static void begin(void *userdata, const char *key) {
        (void)userdata;
        (void)key;
}

static void end(void *userdata) {
        (void)userdata;
}

static void take_number(void *userdata, const char *key, uint64_t number) {
        ClockReading *c = userdata;

        if (key && strcmp(key, "wall_clock_ns") == 0)
                c->wall = number;
        else if (key && strcmp(key, "clockid_time_ns") == 0)
                c->time = number;
}

bool recorded_wall_offset(perfd_recording *r, int64_t *ret) {
        static const perfd_feature_visitor visitor = { .begin_object = begin, .end_object = end, .number = take_number };
        ClockReading c = { .wall = 0 };

        visit(r, "CLOCK_DATA", &visitor, &c);
        *ret = (int64_t)(c.wall - c.time);
        return c.wall > 0;
}

typedef struct Times {
        uint64_t first, last;
} Times;

static void take_time(void *userdata, const char *key, uint64_t number) {
        Times *t = userdata;

        if (key && strcmp(key, "first") == 0)
                t->first = number;
        else if (key && strcmp(key, "last") == 0)
                t->last = number;
}

bool recorded_times(perfd_recording *r, uint64_t *ret_first, uint64_t *ret_last) {
        static const perfd_feature_visitor visitor = { .begin_object = begin, .end_object = end, .number = take_time };
        Times t = { .first = 0 };

        visit(r, "SAMPLE_TIME", &visitor, &t);
        *ret_first = t.first;
        *ret_last = t.last;
        return t.last > 0 && t.first <= t.last;
}
