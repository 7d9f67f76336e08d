/* For plans: what differs between two specs, in the words of perfd.yaml. Pure. */
#pragma once

#include "daemon/model/event.h"

typedef struct SpecDifference {
        const char *field;    /* key of perfd.yaml */
        char *before, *after; /* as it would be written there; "": not there */
} SpecDifference;

/* In the order of the man page; those that have the same in both are left out. malloc. -ENOMEM */
int event_spec_differences(const EventSpec *before, const EventSpec *after, SpecDifference **ret, size_t *ret_n);
void spec_differences_free(SpecDifference *list, size_t n);
