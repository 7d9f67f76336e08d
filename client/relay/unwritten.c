/* Memory that is there only while a peer does not take what it is sent. */
#include <string.h>

#include "client/relay/connection.h"
#include "daemon/base/error.h"

void unwritten_deinit(Unwritten *u) {
        free(u->bytes);
        *u = (Unwritten){ .bytes = NULL };
}

int unwritten_add(Unwritten *u, const uint8_t *bytes, size_t n) {
        size_t held = u->end - u->begin;
        uint8_t *grown = malloc(held + n);

        if (!grown)
                return error_origin(-ENOMEM);
        if (held > 0)
                memcpy(grown, u->bytes + u->begin, held);
        memcpy(grown + held, bytes, n);
        free(u->bytes);
        *u = (Unwritten){ .bytes = grown, .end = held + n };
        return 0;
}

void unwritten_drop(Unwritten *u, size_t n) {
        u->begin += n;
        if (unwritten_is_empty(u))
                unwritten_deinit(u);
}
