/*
 * Files that a probe can be in, and cgroups with what they stand for. perfctl looks itself: it is on the daemon's machine, and the
 * shell's own completion knows neither what stands before a path nor where cgroups are mounted.
 */
#include "client/perfctl/complete/complete.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/stat/stat.h"

#define DEPTH_MAX 16
#define FOLDERS_MAX 20000 /* that are looked into */
#define ID_LENGTH 64      /* hexadecimal digits of a container's id */

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool is_program(const struct stat *st, const char *name) {
        return S_ISREG(st->st_mode) && (st->st_mode & 0111 || strstr(name, ".so"));
}

void complete_path(Perfctl *p, const char *word, size_t n) {
        const char *path = word + n, *last = strrchr(path, '/');
        char *folder, *candidate;
        struct dirent *entry;
        struct stat st;
        DIR *d;

        if (*path == '\0')
                complete_offer(p, word, word, "/");
        if (*path != '/')
                return;
        folder = must_have(strndup(path, (size_t)(last - path) + 1));
        d = opendir(folder);
        while (d && (entry = readdir(d))) {
                if ((entry->d_name[0] == '.' && last[1] != '.') || strcmp(entry->d_name, ".") == 0 ||
                    strcmp(entry->d_name, "..") == 0)
                        continue;
                if (fstatat(dirfd(d), entry->d_name, &st, 0) < 0 || (!S_ISDIR(st.st_mode) && !is_program(&st, entry->d_name)))
                        continue;
                must_have(asprintf(&candidate, "%.*s%s%s%s", (int)n, word, folder, entry->d_name,
                                   S_ISDIR(st.st_mode) ? "/" : ":") < 0
                                  ? NULL
                                  : candidate);
                complete_offer(p, word, "", candidate);
                free(candidate);
        }
        if (d)
                (void)closedir(d);
        free(folder);
}

/* ---- cgroups ----------------------------------------------------------------------------------------------------- */

typedef struct Walk {
        Perfctl *p;
        const char *word;
        Words words;
        size_t n_folders;
        char **seen; /* what was offered: a unit may be there for several users */
        size_t n_seen;
} Walk;

static void offer_once(Walk *w, const char *candidate) {
        for (size_t i = 0; i < w->n_seen; i++)
                if (strcmp(w->seen[i], candidate) == 0)
                        return;
        w->seen = must_have(reallocarray(w->seen, w->n_seen + 1, sizeof(*w->seen)));
        w->seen[w->n_seen++] = must_have(strdup(candidate));
        complete_offer(w->p, w->word, "", candidate);
}

static bool is_unit(const char *name) {
        static const char *const suffixes[] = { ".service", ".scope", ".slice", ".socket", ".mount", ".swap" };
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
                if (strcmp(dot, suffixes[i]) == 0)
                        return true;
        return false;
}

/* The id in "docker-ID.scope", "cri-containerd-ID.scope", "ID"; NULL: none. */
static const char *find_id(const char *name) {
        for (const char *at = name; *at; at++) {
                size_t n = strspn(at, "0123456789abcdef");

                if (n == ID_LENGTH && (at == name || at[-1] == '-') && (at[n] == '\0' || at[n] == '.'))
                        return at;
                at += n > 0 ? n - 1 : 0;
        }
        return NULL;
}

static void take_name(Walk *w, const char *name) {
        char id[ID_LENGTH + 1];

        if (w->words == WORDS_UNITS && is_unit(name))
                offer_once(w, name);
        else if (w->words == WORDS_CONTAINERS && find_id(name)) {
                memcpy(id, find_id(name), ID_LENGTH);
                id[ID_LENGTH] = '\0';
                offer_once(w, id);
        }
}

/* The fd moves. */
static void walk(Walk *w, int fd, unsigned depth) {
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (!d && fd >= 0)
                (void)close(fd);
        while (d && w->n_folders < FOLDERS_MAX && (entry = readdir(d))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                w->n_folders++;
                take_name(w, entry->d_name);
                if (depth < DEPTH_MAX)
                        walk(w, openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), depth + 1);
        }
        if (d)
                (void)closedir(d);
}

/* A level below what the word has already; each with a '/' if there is something below it. */
static void offer_level(Perfctl *p, const char *word, const char *mount) {
        const char *slash = strrchr(word, '/');
        const size_t n = slash ? (size_t)(slash - word) + 1 : 0;
        struct dirent *entry;
        char *path, *candidate;
        struct stat st;
        DIR *d;

        must_have(asprintf(&path, "%s/%.*s", mount, (int)n, word) < 0 ? NULL : path);
        d = opendir(path);
        while (d && (entry = readdir(d))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
                    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                must_have(asprintf(&candidate, "%.*s%s%s", (int)n, word, entry->d_name, st.st_nlink > 2 ? "/" : "") < 0
                                  ? NULL
                                  : candidate);
                complete_offer(p, word, "", candidate);
                free(candidate);
        }
        if (d)
                (void)closedir(d);
        free(path);
}

void complete_places(Perfctl *p, const char *word, Words words) {
        char *mount = stat_places_mount();
        Walk w = { .p = p, .word = word, .words = words };

        if (mount && words == WORDS_CGROUPS)
                offer_level(p, word, mount);
        else if (mount)
                walk(&w, open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
        for (size_t i = 0; i < w.n_seen; i++)
                free(w.seen[i]);
        free(w.seen);
        free(mount);
}
