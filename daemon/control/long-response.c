/*
 * Protobuf has the length of a message before it, and a list's is known when it is complete. So the first piece has room before it
 * for all that comes before a body: the frame's length, two tags with lengths, and the id.
 */
#include "daemon/control/long-response.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/control/connection.h"
#include "daemon/encode/wire.h"

#define HEAD_ROOM ((size_t)64)
#define PIECE_HEAD (2 * WIRE_LENGTH_MAX + WIRE_SLACK)
#define SIZE_AT_FIRST ((size_t)4 << 10)

void long_response_deinit(LongResponse *l) {
        free(l->bytes);
        *l = LONG_RESPONSE_NULL;
}

/* Tag and length of a message, whose bytes follow. */
static size_t put_head(uint8_t *to, unsigned field, size_t length) {
        return (size_t)(wire_put_varint(wire_put_varint(to, WIRE_KEY(field, WIRE_BYTES)), length) - to);
}

static int need_room(LongResponse *l, size_t n) {
        size_t size = l->size ? l->size : SIZE_AT_FIRST;
        uint8_t *more;

        while (size < n)
                size *= 2;
        if (size == l->size)
                return 0;
        more = realloc(l->bytes, size);
        if (!more)
                return error_origin(-ENOMEM);
        l->bytes = more;
        l->size = size;
        l->n = l->n ? l->n : HEAD_ROOM;
        return 0;
}

int long_response_add(LongResponse *l, unsigned field, const ProtobufCMessage *m) {
        const size_t length = protobuf_c_message_get_packed_size(m);
        int r;

        if (l->n + PIECE_HEAD + length > FRAME_MAX_SERVER)
                return RESPONSE_E_TOO_LONG;
        r = need_room(l, HEAD_ROOM + l->n + PIECE_HEAD + length);
        if (r < 0)
                return r;
        l->n += put_head(l->bytes + l->n, field, length);
        l->n += protobuf_c_message_pack(m, l->bytes + l->n);
        return 0;
}

/* What comes before n bytes of the body, up to the frame's own length. */
static size_t put_heads(uint8_t head[static HEAD_ROOM], uint64_t id, unsigned body, size_t n) {
        uint8_t inner[HEAD_ROOM];
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        size_t n_inner, n_head;

        response.id = id;
        n_inner = perfd__v1__response__pack(&response, inner);
        n_inner += put_head(inner + n_inner, body, n);
        n_head = put_head(head + FRAME_HEADER_SIZE, PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE, n_inner + n);
        memcpy(head + FRAME_HEADER_SIZE + n_head, inner, n_inner);
        frame_header_put(head, (uint32_t)(n_head + n_inner + n));
        return FRAME_HEADER_SIZE + n_head + n_inner;
}

int connection_respond_long(Connection *c, uint64_t id, Perfd__V1__Response__BodyCase body, LongResponse *l) {
        uint8_t head[HEAD_ROOM];
        size_t n_head;
        int r = need_room(l, HEAD_ROOM);

        if (r < 0)
                return r;
        n_head = put_heads(head, id, body, l->n - HEAD_ROOM);
        memcpy(l->bytes + HEAD_ROOM - n_head, head, n_head);
        return connection_respond_frame(c, id, body, TAKE_PTR(l->bytes), HEAD_ROOM - n_head, l->n);
}
