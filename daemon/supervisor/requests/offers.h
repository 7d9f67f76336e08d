/* For available.c and available-file.c: the reply to `available` while it grows. Main thread only. */
#pragma once

#include "daemon/base/glob.h"
#include "daemon/supervisor/requests/requests.h"

typedef struct Offers {
        const Requests *requests;
        Pattern *glob;
        Perfd__V1__AvailableReply *reply;
        size_t size; /* of the reply on the wire, so far */
} Offers;

/* kind, help, unit: as AvailableEvent has them. plan: NULL for no fields. After what does not fit nothing is added. */
int offers_add(Offers *o, const char *event, const char *kind, const char *help, const char *unit, const Plan *plan);

/* Whether a glob is for what a file has: "uprobe:/PATH:GLOB", "usdt:/PATH:GLOB". */
bool offers_is_of_file(const char *glob);
/* supervisor/requests/available-file.c: what of the file matches. REFUSED_NOT_FOUND: nothing does; refusals of probe_file_open(). */
int offers_add_file(Offers *o, const char *glob, Explanation *e);
