/* Where clients connect. One thread. */
#pragma once

#include "client/relay/endpoint.h"
#include "client/relay/relay.h"

struct RelayListener {
        Relay *relay;
        RelayListener *next;
        int fd;
        char *text;    /* as relay.yaml has it; NULL: systemd gave it, and it stays open */
        sd_event_source *source, *pause;
        bool is_kept;  /* by the configuration that is read */
};

/* Those that systemd gave for TLS. Negative. */
int listeners_add_given(Relay *r);
/*
 * Makes those of `config` that are not there, without closing any. REFUSED_INVALID or REFUSED_DENIED: e says why one cannot be made,
 * and those that were made are gone again; negative. An address of which systemd gave the socket needs none.
 */
int listeners_prepare(Relay *r, const RelayConfig *config, Explanation *e);
/* Closes those that the prepared configuration does not have, and systemd has not given. */
void listeners_commit(Relay *r);
/* Nobody is accepted any more. */
void listeners_close(Relay *r);
