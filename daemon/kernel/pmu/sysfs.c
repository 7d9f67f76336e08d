/* PMUs may have a file or not, and that there is none is an answer; that one cannot be read is a refusal. */
#include "daemon/kernel/pmu/sysfs.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/host/whole-file.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_path(const char *path, int error, Explanation *e) {
        if (error == ENOMEM)
                return refuse_kernel_memory(e, QUOTE(path));
        if (error == EACCES || error == EPERM)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s cannot be read: %s", QUOTE(path),
                              strerror(error));
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "no fd is left to read %s", QUOTE(path));
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be read: %s", QUOTE(path), strerror(error));
}

/* No name of a user leads out of its folder. */
static bool is_file_name(const char *name) {
        return name[0] && name[0] != '.' && !strchr(name, '/');
}

int pmu_sysfs_read(const char *root, const char *pmu, const char *folder, const char *file, char **ret,
                   Explanation *e) {
        _cleanup_free_ char *path = NULL;
        char *text = NULL;
        size_t length = 0;
        int r;

        *ret = NULL;
        if (!is_file_name(pmu) || !is_file_name(file))
                return 0;
        if (asprintf(&path, "%s/%s/%s%s%s", root, pmu, folder ?: "", folder ? "/" : "", file) < 0)
                return error_origin(-ENOMEM);
        r = whole_file_read(path, &text, &length);
        if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -ENAMETOOLONG)
                return 0;
        if (r < 0)
                return refuse_path(path, -r, e);
        text[strcspn(text, "\n")] = '\0';
        *ret = text;
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int pmu_sysfs_list(const char *root, const char *pmu, const char *folder, Strings *ret, Explanation *e) {
        _cleanup_free_ char *path = NULL;
        Strings names = STRINGS_NULL;
        struct dirent *entry;
        DIR *d;
        int r = 0;

        if (asprintf(&path, "%s%s%s%s%s", root, pmu ? "/" : "", pmu ?: "", folder ? "/" : "", folder ?: "") < 0)
                return error_origin(-ENOMEM);
        d = opendir(path);
        if (!d && errno != ENOENT && errno != ENOTDIR)
                return refuse_path(path, errno, e);
        while (d && r == 0 && (errno = 0, entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        r = strings_add(&names, entry->d_name);
        if (d && r == 0 && errno != 0)
                r = refuse_path(path, errno, e);
        if (d)
                closedir(d);
        if (r != 0) {
                strings_deinit(&names);
                return r;
        }
        if (names.n > 0)
                qsort(names.items, names.n, sizeof(*names.items), compare_names);
        *ret = names;
        return 0;
}

int pmu_sysfs_events(const char *root, const char *pmu, Strings *ret, Explanation *e) {
        static const char *const not_events[] = { "*.scale", "*.unit", "*.per-pkg", "*.snapshot" };
        Strings names = STRINGS_NULL;
        size_t to = 0;
        int r = pmu_sysfs_list(root, pmu, "events", &names, e);

        for (size_t i = 0; i < names.n; i++) {
                bool is_event = true;

                for (size_t k = 0; k < ARRAY_SIZE(not_events) && is_event; k++)
                        is_event = fnmatch(not_events[k], names.items[i], 0) != 0;
                if (is_event)
                        names.items[to++] = names.items[i];
                else
                        free(names.items[i]);
        }
        names.n = to;
        if (r == 0)
                *ret = names;
        return r;
}
