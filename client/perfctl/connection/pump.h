/* Bytes from one fd to another, as many as go without waiting. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/compression.h"

#define PUMP_BYTES ((size_t)128 << 10)

typedef struct Pump {
        int from, to; /* neither is waited for by read(2) or write(2) */
        size_t begin, end; /* what was read and not yet written */
        bool has_ended;    /* nothing more comes */
        uint8_t bytes[PUMP_BYTES];
        Compressor *compressor; /* NULL: what was read is written as it is */
        uint8_t plain[PUMP_BYTES / 2];
} Pump;

/* For poll(2): POLLIN of `from`, and POLLOUT of `to`, if they are waited for. */
short pump_wants_in(const Pump *p);
short pump_wants_out(const Pump *p);
/* 0; -EPIPE: nobody takes it any more; -errno. */
int pump_run(Pump *p);
/* All that came has gone. */
bool pump_is_done(const Pump *p);
