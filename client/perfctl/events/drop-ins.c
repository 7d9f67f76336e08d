/* The same names in the same order as config/parse/load.c, which is the daemon's: its tests compare both. */
#include "client/perfctl/events/drop-ins.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/print/input-file.h"

#define DROP_INS_MAX 1000 /* perfd.yaml(5), as the daemon says too */

static bool ends_with(const char *text, const char *end) {
        size_t n_text = strlen(text), n_end = strlen(end);

        return n_text > n_end && strcmp(text + n_text - n_end, end) == 0;
}

/* Takes the path. */
static void add_path(char ***list, size_t *n, char *path) {
        *list = must_have(reallocarray(*list, *n + 1, sizeof(**list)));
        (*list)[(*n)++] = must_have(path);
}

static int path_order(const void *left, const void *right) {
        return strcmp(*(char *const *)left, *(char *const *)right);
}

static char *join(const char *folder, const char *name) {
        char *path;

        return must_have(asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path);
}

/* Their paths, sorted by bytes. */
static int list_folder(const Perfctl *p, const char *folder, char ***paths, size_t *n, ConfigFiles *files) {
        DIR *directory = opendir(folder);
        struct dirent *entry;
        int error;

        if (!directory)
                return errno == ENOENT ? 0 : perfctl_fail(p, PERFCTL_FAILED, "%s: %s", folder, strerror(errno));
        while ((errno = 0, entry = readdir(directory))) {
                if (entry->d_name[0] == '.')
                        continue;
                if (ends_with(entry->d_name, ".yml"))
                        add_path(&files->skipped, &files->n_skipped, join(folder, entry->d_name));
                else if (ends_with(entry->d_name, ".yaml"))
                        add_path(paths, n, join(folder, entry->d_name));
        }
        error = errno;
        closedir(directory);
        if (error != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", folder, strerror(error));
        if (*n > DROP_INS_MAX)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %zu drop-ins, expected at most %d", folder, *n, DROP_INS_MAX);
        if (*n > 1)
                qsort(*paths, *n, sizeof(**paths), path_order);
        return 0;
}

static int read_file(const Perfctl *p, const char *path, ConfigFiles *files) {
        ConfigFile file = { .path = must_have(strdup(path)) };
        int r = input_file_read(p, path, &file.bytes, &file.n);

        files->items = must_have(reallocarray(files->items, files->n + 1, sizeof(*files->items)));
        files->items[files->n++] = file;
        return r;
}

/* With its path and what the wire has around both. */
static int check_size(const Perfctl *p, const ConfigFiles *files) {
        size_t n = 0;

        for (size_t i = 0; i < files->n; i++)
                n += files->items[i].n + strlen(files->items[i].path) + 32;
        if (n <= INPUT_LENGTH_MAX || files->n == 1)
                return 0;
        return perfctl_fail(p, PERFCTL_FAILED, "%s: with its %zu drop-ins it is longer than the %zu bytes that a request can have:"
                            " `perfd --check` reads them on its host", files->items[0].path, files->n - 1, INPUT_LENGTH_MAX);
}

int config_files_read(const Perfctl *p, const char *path, bool with_drop_ins, ConfigFiles *ret) {
        int stem = (int)strlen(path) - (ends_with(path, ".yaml") ? (int)strlen(".yaml") : 0);
        char **paths = NULL, *folder;
        size_t n = 0;
        int r;

        *ret = (ConfigFiles){ .n = 0 };
        r = read_file(p, path, ret);
        if (r != 0 || !with_drop_ins || strcmp(path, "-") == 0)
                return r;
        folder = must_have(asprintf(&folder, "%.*s.d", stem, path) < 0 ? NULL : folder);
        r = list_folder(p, folder, &paths, &n, ret);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        r = read_file(p, paths[i], ret);
                free(paths[i]);
        }
        free(paths);
        free(folder);
        return r == 0 ? check_size(p, ret) : r;
}

perfd_config_text *config_files_texts(const ConfigFiles *files) {
        perfd_config_text *texts = must_have(calloc(files->n, sizeof(*texts)));

        for (size_t i = 0; i < files->n; i++)
                texts[i] = (perfd_config_text){ .path = files->items[i].path,
                                                .yaml = files->items[i].bytes,
                                                .length = files->items[i].n };
        return texts;
}

void config_files_tell_skipped(const Perfctl *p, const ConfigFiles *files) {
        for (size_t i = 0; i < files->n_skipped; i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s is ignored: only files whose names end with .yaml are read", files->skipped[i]);
}

void config_files_deinit(ConfigFiles *files) {
        for (size_t i = 0; i < files->n; i++) {
                free(files->items[i].path);
                free(files->items[i].bytes);
        }
        for (size_t i = 0; i < files->n_skipped; i++)
                free(files->skipped[i]);
        free(files->items);
        free(files->skipped);
        *files = (ConfigFiles){ .n = 0 };
}
