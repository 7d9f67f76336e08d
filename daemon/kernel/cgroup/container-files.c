/*
 * There may be one file for each container, and who names a container that is not there, or a glob, has all of them looked at each
 * time that any cgroup comes or goes. So what was read is kept with a stamp of each file and folder, and a look costs a stat(2) for
 * each of these.
 */
#include "daemon/kernel/cgroup/container-files.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/error-trail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TICK_NSEC (20 * NSEC_PER_MSEC) /* CONFIG_HZ is 100 at least: twice what times of files are rounded to */

/* docker's own folder and runc's have one of each container's in them, and podman's have all in one file. */
static const struct {
        const char *folder, *file; /* file: in each folder there */
        ContainerStore store;
} stores[] = {
        { "/var/lib/docker/containers", "config.v2.json", CONTAINER_STORE_DOCKER },
        { "/run/runc", "state.json", CONTAINER_STORE_RUNC },
};

/* containerd has a folder for each of its namespaces here, with one for each container that runs: an OCI bundle. */
static const char containerd_folder[] = "/run/containerd/io.containerd.runtime.v2.task";
#define CONTAINERD_FILE "config.json"
#define CONTAINERD_OF_DOCKER "moby" /* which knows the names, and those that are stopped */

const char *const container_state_folders[] = {
        "/var/lib/containers/storage/overlay-containers", "/var/lib/containers/storage/vfs-containers",
        "/var/lib/containers/storage/btrfs-containers",   "/run/containers/storage/overlay-containers", NULL,
};

static const char *const podman_files[] = { "containers.json", "volatile-containers.json" };

bool container_state_is_file(const char *name) {
        return strcmp(name, podman_files[0]) == 0 || strcmp(name, podman_files[1]) == 0;
}

static void forget(ContainerFiles *f) {
        known_containers_deinit(&f->known);
        file_stamps_deinit(&f->stamps);
        f->is_kept = false;
}

void container_files_deinit(ContainerFiles *f) {
        forget(f);
        *f = CONTAINER_FILES_NULL;
}

/* ---- stamps ------------------------------------------------------------------------------------------------------ */

/* What is read: into `files`, for the hierarchy that is mounted there; what changes later than `settled` is not kept. */
typedef struct Reading {
        ContainerFiles *files;
        const char *mount;
        struct timespec settled;
        bool is_settled;
} Reading;

static bool is_later(struct timespec a, struct timespec b) {
        return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* st: NULL: there is none. */
static int stamp(Reading *r, const char *path, const struct stat *st) {
        if (st && is_later(st->st_ctim, r->settled))
                r->is_settled = false;
        return file_stamps_add(&r->files->stamps, path, st);
}

static struct timespec a_tick_ago(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME_COARSE, &now); /* what files are stamped with: it stands still while ticks are late */
        if (now.tv_nsec < (long)TICK_NSEC)
                now = (struct timespec){ .tv_sec = now.tv_sec - 1, .tv_nsec = now.tv_nsec + (long)NSEC_PER_SEC };
        now.tv_nsec -= (long)TICK_NSEC;
        return now;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void note_problem(KnownContainers *k, const char *path, const char *why) {
        if (!k->problem[0])
                (void)snprintf(k->problem, sizeof(k->problem), "%.150s cannot be read: %.150s", path, why);
}

/* A pipe would let whoever put it there stop the daemon. -EFBIG: larger than what is read. */
static int read_bounded(int folder, const char *path, char **ret, size_t *ret_length, struct stat *ret_stat) {
        _cleanup_close_ int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        struct stat s;
        ssize_t n = 1;

        if (fd < 0 || fstat(fd, &s) < 0)
                return error_origin(-errno);
        if (!S_ISREG(s.st_mode))
                return -EINVAL;
        if (s.st_size > CONTAINER_STATE_SIZE_MAX)
                return -EFBIG;
        text = malloc((size_t)s.st_size + 1);
        if (!text)
                return error_origin(-ENOMEM);
        while (length < (size_t)s.st_size && (n = read(fd, text + length, (size_t)s.st_size - length)) != 0)
                if (n > 0)
                        length += (size_t)n;
                else if (errno != EINTR)
                        return error_origin(-errno);
        *ret = TAKE_PTR(text);
        *ret_length = length;
        *ret_stat = s;
        return 0;
}

/* ENOENT is no problem: that runtime, or this container, is not there. shown: the whole path; id: of containerd. */
static int read_file(Reading *g, int folder, const char *path, const char *shown, ContainerStore store, const char *id) {
        KnownContainers *k = &g->files->known;
        _cleanup_free_ char *text = NULL;
        Explanation e = EXPLANATION_NULL;
        struct stat st;
        size_t length = 0;
        int r = read_bounded(folder, path, &text, &length, &st);

        if (r == -ENOENT || r == -ENOTDIR)
                return stamp(g, shown, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                note_problem(k, shown, strerror(-r));
                return 0;
        }
        k->has_stores = true;
        r = stamp(g, shown, &st);
        if (r == 0)
                r = container_state_parse(store, id, text, length, g->mount, k, &e);
        if (r > 0)
                note_problem(k, shown, e.text);
        return r > 0 ? 0 : r;
}

/* *ret NULL: there is no such folder, or it is a problem. */
static int open_folder(Reading *g, const char *path, DIR **ret) {
        DIR *d = opendir(path);
        struct stat st;
        int r;

        *ret = NULL;
        if (!d && (errno == ENOENT || errno == ENOTDIR))
                return stamp(g, path, NULL);
        if (!d || fstat(dirfd(d), &st) < 0) {
                note_problem(&g->files->known, path, strerror(errno));
                if (d)
                        closedir(d);
                return 0;
        }
        r = stamp(g, path, &st);
        if (r == 0)
                *ret = d;
        else
                closedir(d);
        return r;
}

/* What each folder in `path` has under the name `file`. */
static int read_folder(Reading *g, const char *path, const char *file, ContainerStore store) {
        const struct dirent *entry;
        size_t n = 0;
        DIR *d;
        int r = open_folder(g, path, &d);

        if (!d)
                return r;
        g->files->known.has_stores |= store == CONTAINER_STORE_DOCKER;
        while (r == 0 && n++ < CONTAINER_STATE_MAX && (entry = readdir(d))) {
                char in_folder[PATH_MAX], shown[PATH_MAX];

                if (entry->d_name[0] == '.')
                        continue;
                (void)snprintf(in_folder, sizeof(in_folder), "%s/%s", entry->d_name, file);
                if ((size_t)snprintf(shown, sizeof(shown), "%s/%s", path, in_folder) < sizeof(shown))
                        r = read_file(g, dirfd(d), in_folder, shown, store, entry->d_name);
        }
        closedir(d);
        return r;
}

static int read_containerd(Reading *g, const char *path) {
        const struct dirent *entry;
        size_t n = 0;
        DIR *d;
        int r = open_folder(g, path, &d);

        if (!d)
                return r;
        while (r == 0 && n++ < CONTAINER_STATE_MAX && (entry = readdir(d))) {
                char namespace[PATH_MAX];

                if (entry->d_name[0] == '.' || strcmp(entry->d_name, CONTAINERD_OF_DOCKER) == 0 ||
                    (size_t)snprintf(namespace, sizeof(namespace), "%s/%s", path, entry->d_name) >= sizeof(namespace))
                        continue;
                g->files->known.has_some_only = true;
                r = read_folder(g, namespace, CONTAINERD_FILE, CONTAINER_STORE_CONTAINERD);
        }
        closedir(d);
        return r;
}

static int read_podman(Reading *g, const char *root, const char *folder) {
        int r = 0;

        for (size_t i = 0; i < sizeof(podman_files) / sizeof(podman_files[0]) && r == 0; i++) {
                char path[PATH_MAX];

                if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", root, folder, podman_files[i]) < sizeof(path))
                        r = read_file(g, AT_FDCWD, path, path, CONTAINER_STORE_PODMAN, NULL);
        }
        return r;
}

static int read_all(Reading *g, const char *root) {
        char path[PATH_MAX];
        int r = 0;

        for (size_t i = 0; container_state_folders[i] && r == 0; i++)
                r = read_podman(g, root, container_state_folders[i]);
        for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]) && r == 0; i++)
                if ((size_t)snprintf(path, sizeof(path), "%s%s", root, stores[i].folder) < sizeof(path))
                        r = read_folder(g, path, stores[i].file, stores[i].store);
        if (r == 0 && (size_t)snprintf(path, sizeof(path), "%s%s", root, containerd_folder) < sizeof(path))
                r = read_containerd(g, path);
        return r;
}

int container_files_read(ContainerFiles *f, const char *root, const char *mount, KnownContainers **ret) {
        Reading g = { .files = f, .mount = mount, .settled = a_tick_ago(), .is_settled = true };
        int r = 0;

        if (!f->is_kept || !file_stamps_are_current(&f->stamps)) {
                forget(f);
                f->n_reads++;
                r = read_all(&g, root);
        }
        if (r < 0) {
                forget(f);
                return r;
        }
        f->is_kept = f->is_kept || (g.is_settled && f->known.problem[0] == '\0');
        *ret = &f->known;
        return 0;
}
