/* For `validate`, `plan` and `apply`: a configuration as perfd reads it at its start, the main file and its drop-ins. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct ConfigFile {
        char *path; /* as messages call it */
        char *bytes;
        size_t n;
} ConfigFile;

typedef struct ConfigFiles {
        ConfigFile *items;
        size_t n;
        char **skipped; /* files in the folder that look like drop-ins, and are not read */
        size_t n_skipped;
} ConfigFiles;

/*
 * FILE, and if there are to be drop-ins, in the order of their names, `<FILE without .yaml>.d/` *.yaml; "-", a pipe or whatever else
 * has no such folder is alone. 0, or PERFCTL_FAILED after a message. To be freed in every case.
 */
int config_files_read(const Perfctl *p, const char *path, bool with_drop_ins, ConfigFiles *ret);
/* For the library, malloc'ed; as long as `files`. */
perfd_config_text *config_files_texts(const ConfigFiles *files);
/* On stderr: what is not read. */
void config_files_tell_skipped(const Perfctl *p, const ConfigFiles *files);
void config_files_deinit(ConfigFiles *files);
