/* For requests: strings of the caller. */
#pragma once

/* NULL and "" are the same; protobuf-c only reads it. */
static inline char *wire_string(const char *s) {
        return (char *)(s ? s : "");
}
