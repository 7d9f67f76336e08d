/* What perfd was started with, and the configuration that holds. Main thread only. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "daemon/base/clock.h"

typedef struct Settings {
        Config *config;
        Config *access;       /* whose access.rules hold: of perfd's own file, whatever was applied since */
        Config *started_with; /* what its keys with .restart say holds until the end */
        char *config_path;       /* NULL: defaults */
        char *runtime_directory; /* overrides the paths of the sockets */
        bool loads_own_config;   /* a reload: root's file, whoever asks for it */
        bool is_given_control, is_given_stream; /* systemd has made the socket: its unit says what holds of it */
        nsec_t started;
} Settings;

/* The configuration that holds was applied, and has rules: they do not hold. */
static inline bool settings_lack_rules(const Settings *s) {
        return s->config != s->access && s->config->n_rules > 0;
}
