#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"

void packet_parts_deinit(PacketParts *p) {
        free(p->bytes);
        *p = (PacketParts){ .bytes = NULL };
}

int packet_parts_add(PacketParts *p, const FleetHead *head, const perfd_fleet_message *m, bool *ret_is_whole) {
        uint8_t *bytes;

        if (head->part == 1)
                packet_parts_deinit(p);
        *ret_is_whole = false;
        if (head->part > 1 && (head->sequence != p->sequence || head->n_parts != p->n_parts || head->part != p->part + 1)) {
                packet_parts_deinit(p);
                return 0;
        }
        if (p->n + m->length > FLEET_PACKET_MAX) {
                packet_parts_deinit(p);
                return 0;
        }
        bytes = reallocarray(p->bytes, p->n + m->length + 1, 1);
        if (!bytes) {
                packet_parts_deinit(p);
                return -ENOMEM;
        }
        if (m->length > 0)
                memcpy(bytes + p->n, m->bytes, m->length);
        p->bytes = bytes;
        p->n += m->length;
        p->sequence = head->sequence;
        p->n_parts = head->n_parts;
        p->part = head->part;
        *ret_is_whole = head->part == head->n_parts;
        return 0;
}
