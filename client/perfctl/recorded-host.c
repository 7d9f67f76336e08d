#include "client/perfctl/recorded-host.h"

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

static bool is_another(perfd_recording *r, const char *feature, const char *here) {
        static const perfd_feature_visitor visitor = { .text = compare };
        Comparison c = { .here = here };

        for (unsigned bit = 0; bit < N_FEATURES; bit++) {
                const char *name = perfd_feature_name(bit);

                if (name && strcmp(name, feature) == 0 && perfd_recording_has_feature(r, bit))
                        (void)perfd_recording_visit_feature(r, bit, &visitor, &c); /* what is not whole becomes a damage */
        }
        return c.is_another;
}

bool recorded_host_is_another(perfd_recording *r) {
        struct utsname here;

        if (uname(&here) != 0)
                return false;
        return is_another(r, "HOSTNAME", here.nodename) || is_another(r, "OSRELEASE", here.release);
}
