/*
 * Files and drop-ins. That a file is missing, no regular file, or may not be read is an error like any other, with
 * its path: the other files are read all the same, so that one run says everything. A file whose bytes could not be
 * had leaves the configuration partial, and then nothing is said to be missing because it may stand there.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "config/document/node.h"
#include "config/parse/build.h"
#include "config/parse/file.h"
#include "config/parse/load.h"
#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/base/error.h"
#include "daemon/base/fd-limit.h"

typedef struct FileNames {
        char **items;
        size_t n_items;
} FileNames;

static void file_names_deinit(FileNames *n) {
        for (size_t i = 0; i < n->n_items; i++)
                free(n->items[i]);
        free(n->items);
}

/* Translates the failure of a system call on the file `at`. */
static int refuse_file(Build *b, ConfigPlace at, const char *what, int error) {
        b->is_partial = true;
        return config_file_refuse(b->diagnostics, at, what, error);
}

/* With its stamp. */
static int file_read(Build *b, ConfigPlace at, char **ret_bytes, size_t *ret_length) {
        struct stat st = { .st_mode = 0 };
        int r = config_file_read(b->diagnostics, at, CONFIG_FILE_MAX, ret_bytes, ret_length, &st);

        if (r == REFUSED_INVALID)
                b->is_partial = true;
        return r >= 0 && st.st_mode != 0 && file_stamps_add(&b->config->stamps, at.path, &st) < 0 ? error_origin(-ENOMEM) : r;
}

static int load_file(Build *b, const char *path) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        ConfigPlace at;
        int r;

        r = build_add_file(b, path, &at);
        if (r == 0)
                r = file_read(b, at, &bytes, &length);
        if (r != 0)
                return r > 0 ? 0 : r;
        return build_feed(b, bytes, length);
}

static bool ends_with(const char *text, const char *end) {
        size_t n_text = strlen(text), n_end = strlen(end);

        return n_text > n_end && strcmp(text + n_text - n_end, end) == 0;
}

static int name_order(const void *left, const void *right) {
        return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Names of drop-ins in `folder`, sorted by bytes. What looks like one and is none is said. */
static int drop_ins_list(Build *b, const char *folder, FileNames *names) {
        WITH_FD_RESERVE;
        ConfigPlace at = { .path = folder, .file = 1 };
        DIR *directory = opendir(folder);
        struct dirent *entry;
        struct stat st;
        int error, r = 0;

        if (!directory && errno == ENOENT)
                return file_stamps_add(&b->config->stamps, folder, NULL);
        if (!directory)
                return refuse_file(b, at, "the drop-in directory cannot be opened", errno);
        if (fstat(dirfd(directory), &st) < 0 || (r = file_stamps_add(&b->config->stamps, folder, &st)) < 0) {
                error = errno;
                closedir(directory);
                return r < 0 ? r : refuse_file(b, at, "the drop-in directory cannot be examined", error);
        }
        while ((errno = 0, entry = readdir(directory))) {
                if (entry->d_name[0] == '.')
                        continue;
                if (ends_with(entry->d_name, ".yml"))
                        config_diagnostics_add_warning(b->diagnostics, at, "%s is ignored: only files whose names end with .yaml "
                                "are read", QUOTE(entry->d_name));
                if (!ends_with(entry->d_name, ".yaml"))
                        continue;
                if (!ARRAY_ROOM(names->items, names->n_items) ||
                    !(names->items[names->n_items] = strdup(entry->d_name))) {
                        errno = ENOMEM;
                        break;
                }
                names->n_items++;
        }
        error = errno;
        closedir(directory);
        if (error != 0)
                return refuse_file(b, at, "the drop-in directory cannot be read", error);
        if (names->n_items > 1)
                qsort(names->items, names->n_items, sizeof(*names->items), name_order);
        return 0;
}

static int load_drop_ins(Build *b, const char *main_path) {
        _cleanup_(file_names_deinit) FileNames names = { .items = NULL };
        _cleanup_free_ char *folder = NULL;
        int r, stem = (int)strlen(main_path) - (ends_with(main_path, ".yaml") ? (int)strlen(".yaml") : 0);

        if (asprintf(&folder, "%.*s.d", stem, main_path) < 0) {
                folder = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        r = drop_ins_list(b, folder, &names);
        if (r != 0)
                return r > 0 ? 0 : r;
        if (names.n_items > CONFIG_DROP_INS_MAX) {
                config_diagnostics_add(b->diagnostics, (ConfigPlace){ .path = folder, .file = 1 },
                                       "%zu drop-ins, expected at most %d", names.n_items, CONFIG_DROP_INS_MAX);
                b->is_partial = true;
                return 0;
        }
        for (size_t i = 0; i < names.n_items && r == 0; i++) {
                _cleanup_free_ char *path = NULL;

                if (asprintf(&path, "%s/%s", folder, names.items[i]) < 0) {
                        path = NULL;
                        return error_origin(-ENOMEM);
                }
                r = load_file(b, path);
        }
        return r;
}

int config_load(const char *path, ConfigDiagnostics *m, Config **ret) {
        _cleanup_(build_deinit) Build b = BUILD_NULL;
        int r;

        r = build_init(&b, m);
        if (r == 0)
                r = load_file(&b, path);
        if (r == 0)
                r = load_drop_ins(&b, path);
        return r != 0 ? r : build_finish(&b, ret);
}
