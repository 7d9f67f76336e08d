/*
 * A client asks for compression in the handshake (proto/compression.h), before it is known who it is; what its rule says is known later,
 * so that what it is sent says whether it is compressed. What is in the compressor cannot be taken back: one that ends is sent all of it,
 * which is RELAY_PLAIN_MAX at most.
 */
#include <assert.h>
#include <errno.h>

#include "client/relay/connection.h"
#include "daemon/base/error.h"

void connection_begin_compression(RelayConnection *c) {
        const unsigned char *chosen;
        unsigned n;

        SSL_get0_alpn_selected(c->ssl, &chosen, &n);
        if (c->rule->compress == 0 || n != sizeof(COMPRESSION_ALPN) - 1) /* the relay chooses among two names */
                return;
        c->compressor = compressor_new((int)c->rule->compress);
        c->is_compressed = c->compressor != NULL;
}

int connection_compress(RelayConnection *c, const uint8_t *bytes, size_t n, bool is_last, size_t *ret_n) {
        int r;

        assert(compressor_room(n) <= sizeof(c->relay->compressed));
        r = compressor_put(c->compressor, bytes, n, is_last, c->relay->compressed, ret_n);

        if (r == 0)
                r = unwritten_add(&c->out, c->relay->compressed, *ret_n);
        if (r < 0)
                return error_origin(r);
        frame_track_pass(&c->track, bytes, n);
        c->n_compressed += n;
        if (is_last)
                c->compressor = compressor_free(c->compressor);
        return 0;
}
