/* For repair.c: sections of the header that a recorder which was killed has not written, and that perf opens no recording without. */
#pragma once

#include "client/recording/reading.h"

typedef struct MadeSection {
        char *bytes; /* in the order of the recording; NULL: it is there, or not needed */
        size_t n;
} MadeSection;

typedef struct MadeSections {
        MadeSection compressed, tracing;
} MadeSections;

/* Of a recording that was read to its end. 0; -ENOMEM; PERFD_E_INVALID: perf could not read it. Has to be deinitialized in any case. */
int made_sections_init(MadeSections *m, perfd_recording *r);
void made_sections_deinit(MadeSections *m);

/* NULL: that section is not made. */
const MadeSection *made_section(const MadeSections *m, unsigned bit);
