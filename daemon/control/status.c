/* Refusals to wire statuses, messages to frames. */
#include "daemon/control/control.h"

#include <stdlib.h>

Perfd__V1__Status status_of_refusal(int refusal) {
        switch ((Refusal)refusal) {
        case REFUSED_INVALID:
                return PERFD__V1__STATUS__STATUS_INVALID;
        case REFUSED_NOT_FOUND:
                return PERFD__V1__STATUS__STATUS_NOT_FOUND;
        case REFUSED_EXISTS:
                return PERFD__V1__STATUS__STATUS_EXISTS;
        case REFUSED_DENIED:
                return PERFD__V1__STATUS__STATUS_DENIED;
        case REFUSED_EXHAUSTED:
                return PERFD__V1__STATUS__STATUS_EXHAUSTED;
        case REFUSED_UNSUPPORTED:
                return PERFD__V1__STATUS__STATUS_UNSUPPORTED;
        case REFUSED_CANCELLED:
                return PERFD__V1__STATUS__STATUS_EXHAUSTED; /* as what comes when perfd stops */
        case _REFUSED_MAX:
                break;
        }
        return PERFD__V1__STATUS__STATUS_INTERNAL;
}

int frame_pack(const Perfd__V1__ServerMessage *m, uint8_t **ret_frame, size_t *ret_length) {
        return frame_pack_sized(m, perfd__v1__server_message__get_packed_size(m), ret_frame, ret_length);
}

int frame_pack_sized(const Perfd__V1__ServerMessage *m, size_t length, uint8_t **ret_frame, size_t *ret_length) {
        uint8_t *frame = malloc(FRAME_HEADER_SIZE + length);

        if (!frame)
                return error_origin(-ENOMEM);
        assert(length <= FRAME_MAX_SERVER);
        frame_header_put(frame, (uint32_t)length);
        perfd__v1__server_message__pack(m, frame + FRAME_HEADER_SIZE);
        *ret_frame = frame;
        *ret_length = FRAME_HEADER_SIZE + length;
        return 0;
}
