#include "client/perfctl/host-item.h"

#include <inttypes.h>

void host_item_begin(Perfctl *p, uint64_t wall, uint64_t error) {
        output_print(&p->out, "%c%" PRIu64 " %" PRIu64 "\n", ITEM_BEGIN, wall, error);
}

void host_item_end(Perfctl *p) {
        output_print(&p->out, "%c\n", ITEM_END);
}
