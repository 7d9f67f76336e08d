/* For start, reload and requests: YAML to a configuration. */
#pragma once

#include "config/config.h"

/*
 * Reads `path` and then, in the order of their names, `<path without .yaml>.d/` *.yaml. Returns
 *   0                  *ret is the configuration, one reference; `m` has warnings at most
 *   REFUSED_INVALID    `m` has every error of every file, those of reading them too
 *   REFUSED_CANCELLED  a checkpoint (base/checkpoint.h) of the calling thread says that nobody wants it any more
 *   negative           -ENOMEM: nothing can be said about the files
 * `m` is a null image before, and the caller's to deinit in every case. What is long has checkpoints, at which others may be
 * served: nothing of it is seen by them.
 */
int config_load(const char *path, ConfigDiagnostics *m, Config **ret);
/* The same for the bytes of one main file; `path` is only for messages. */
int config_parse(const char *path, const char *bytes, size_t length, ConfigDiagnostics *m, Config **ret);
typedef struct ConfigText {
        const char *path; /* only for messages */
        const char *bytes;
        size_t length;
} ConfigText;
/* The same with its drop-ins; the first one is the main file. */
int config_parse_all(const ConfigText *texts, size_t n, ConfigDiagnostics *m, Config **ret);
