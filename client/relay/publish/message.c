#include "client/relay/publish/message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Message *message_new(const uint8_t *bytes, size_t length) {
        Message *m = malloc(sizeof(*m) + length);

        if (!m)
                return NULL;
        *m = (Message){ .length = length };
        if (length > 0)
                memcpy(m->bytes, bytes, length);
        return m;
}

void message_free(Message *m) {
        if (m)
                free(m->prefix);
        free(m);
}

void message_add_header(Message *m, const char *name, const char *format, ...) {
        MessageHeader *h = &m->headers[m->n_headers];
        va_list values;

        assert(m->n_headers < MESSAGE_HEADERS_MAX);
        m->n_headers++;
        (void)snprintf(h->name, sizeof(h->name), "%s", name);
        va_start(values, format);
        (void)vsnprintf(h->value, sizeof(h->value), format, values);
        va_end(values);
}

const char *message_header(const Message *m, const char *name) {
        for (unsigned i = 0; i < m->n_headers; i++)
                if (strcmp(m->headers[i].name, name) == 0)
                        return m->headers[i].value;
        return NULL;
}
