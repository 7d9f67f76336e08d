/* Few hold one event, and each leaves once: a list is walked. */
#include "daemon/supervisor/events/holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error.h"

/* Where it is; n_holders: it is none. */
static size_t find(const Registration *g, uint64_t connection) {
        size_t i = 0;

        while (i < g->n_holders && g->holders[i].connection != connection)
                i++;
        return i;
}

bool holders_have(const Registration *g, uint64_t connection) {
        return find(g, connection) < g->n_holders;
}

int holders_add(Registration *g, uint64_t connection, uint32_t uid, bool *ret_is_new) {
        Holder *more;

        *ret_is_new = !holders_have(g, connection);
        if (!*ret_is_new)
                return 0;
        more = reallocarray(g->holders, g->n_holders + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        g->holders = more;
        more[g->n_holders++] = (Holder){ .connection = connection, .uid = uid };
        g->is_temporary = true;
        return 0;
}

bool holders_remove(Registration *g, uint64_t connection) {
        size_t i = find(g, connection);

        if (i == g->n_holders)
                return false;
        g->last_uid = g->holders[i].uid;
        g->n_holders--;
        memmove(&g->holders[i], &g->holders[i + 1], (g->n_holders - i) * sizeof(*g->holders));
        return true;
}

bool registration_is_orphan(const Registration *g) {
        return g->is_temporary && g->n_holders == 0;
}

bool registration_has_uid(const Registration *g, uint32_t *ret_uid) {
        const EventSpec *spec = &g->event->spec;

        *ret_uid = g->n_holders > 0 ? g->holders[0].uid : g->is_temporary ? g->last_uid : spec->uid;
        return spec->has_uid;
}

bool registration_is_charged(const Registration *g, uint32_t uid) {
        uint32_t first;

        for (size_t i = 0; i < g->n_holders; i++)
                if (g->holders[i].uid == uid)
                        return true;
        return g->n_holders == 0 && registration_has_uid(g, &first) && first == uid;
}
