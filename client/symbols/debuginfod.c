/*
 * libdebuginfod waits for a server for a minute and a half, for each file again, and for its name as long as the resolver likes. So it is
 * a thread that asks, and whoever is in need of the file waits no longer than something comes: a thread that has to be left behind ends
 * by itself. The library is loaded when it is asked for first: it brings libcurl along, which each start of a program would pay for.
 */
#include "client/symbols/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MSEC INT64_C(1000000)
#define SILENCE_NSEC (1900 * MSEC) /* the thread looks about once a second, and is to see the end of the two seconds, not of the third */
#define BACKSTOP_NSEC (2100 * MSEC) /* of whoever waits, should the thread not look: the resolver does not let it */
#define STEP_NSEC (100 * MSEC)
#define LAST_NSEC (1500 * MSEC) /* for a thread that was left behind, before the program may end below it */
#define LEAST 4096 /* bytes in SILENCE_NSEC: what comes in drops is no answer */

typedef struct Library {
        debuginfod_client *(*begin)(void);
        void (*end)(debuginfod_client *client);
        int (*find_debug)(debuginfod_client *client, const unsigned char *id, int n, char **ret_path);
        int (*find_program)(debuginfod_client *client, const unsigned char *id, int n, char **ret_path);
        void (*set_progress)(debuginfod_client *client, debuginfod_progressfn_t progress);
        void (*set_userdata)(debuginfod_client *client, void *userdata);
        void *(*get_userdata)(debuginfod_client *client);
} Library;

/* Of one file. Whoever is last, of the thread and who waits for it, frees it. */
typedef struct Query {
        const Library *library;
        debuginfod_client *client;
        BuildId id;
        bool is_debug;
        pthread_mutex_t mutex; /* of what is below */
        pthread_cond_t changed;
        unsigned users;
        bool is_over, is_left, is_silent;
        int64_t heard;         /* ns of CLOCK_MONOTONIC: when LEAST bytes more were there */
        long n, size, n_heard; /* bytes; size 0: not known */
        int result;            /* an fd, or -errno */
        char *path;
} Query;

struct Debuginfod {
        debuginfod_client *client;
        Query *left; /* a thread may still be at it; NULL: none */
        bool is_given_up;
        void *userdata;
        bool (*wait)(void *userdata, const perfd_download *download);
        void (*note)(void *userdata, const char *text);
};

static Library library;

__attribute__((format(printf, 2, 3))) static void give_up(Debuginfod *d, const char *format, ...) {
        char text[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        d->is_given_up = true;
        if (d->note)
                d->note(d->userdata, text);
}

static int64_t clock_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000 * MSEC + t.tv_nsec;
}

static const char *urls(void) {
        const char *text = getenv(DEBUGINFOD_URLS_ENV_VAR);

        return text ? text : "";
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------------- */

static void query_unref(Query *q) {
        unsigned users;

        pthread_mutex_lock(&q->mutex);
        users = --q->users;
        pthread_mutex_unlock(&q->mutex);
        if (users > 0)
                return;
        if (q->is_left) { /* nobody has taken what came */
                q->library->end(q->client);
                if (q->result >= 0)
                        close(q->result);
                free(q->path);
        }
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->mutex);
        free(q);
}

/* Until a server has been chosen, n counts something else, and size is 0: what comes without its size has SILENCE_NSEC altogether. */
static int on_progress(debuginfod_client *client, long n, long size) {
        Query *q = library.get_userdata(client);
        const int64_t now = clock_ns();
        bool stops;

        pthread_mutex_lock(&q->mutex);
        if (size > 0) {
                q->n = n;
                q->size = size;
                if (n - q->n_heard >= LEAST) {
                        q->n_heard = n;
                        q->heard = now;
                }
        }
        q->is_silent = now - q->heard >= SILENCE_NSEC;
        stops = q->is_left || q->is_silent;
        pthread_mutex_unlock(&q->mutex);
        return stops;
}

static void *ask(void *userdata) {
        Query *q = userdata;
        char *path = NULL;
        int r;

        q->library->set_userdata(q->client, q);
        q->library->set_progress(q->client, on_progress);
        r = (q->is_debug ? q->library->find_debug : q->library->find_program)(q->client, q->id.bytes, (int)q->id.n, &path);
        pthread_mutex_lock(&q->mutex);
        q->result = r;
        q->path = path;
        q->is_over = true;
        pthread_cond_signal(&q->changed);
        pthread_mutex_unlock(&q->mutex);
        query_unref(q);
        return NULL;
}

/* Signals are for the threads of whoever calls. */
static int start_thread(Query *q) {
        sigset_t all, before;
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        sigfillset(&all);
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attr, ask, q);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attr);
        return -r;
}

static Query *query_start(Debuginfod *d, const BuildId *id, bool is_debug) {
        Query *q = calloc(1, sizeof(Query));
        pthread_condattr_t attr;

        if (!q)
                return NULL;
        q->library = &library;
        q->client = d->client;
        q->id = *id;
        q->is_debug = is_debug;
        q->users = 2;
        q->result = -EINTR;
        q->heard = clock_ns();
        pthread_mutex_init(&q->mutex, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&q->changed, &attr);
        pthread_condattr_destroy(&attr);
        if (start_thread(q) == 0)
                return q;
        q->users = 1;
        query_unref(q);
        return NULL;
}

/* ---- who waits for it ------------------------------------------------------------------------------------------------------------- */

/* The mutex is held. */
static void wait_until(Query *q, int64_t time) {
        const struct timespec at = { .tv_sec = time / (1000 * MSEC), .tv_nsec = time % (1000 * MSEC) };

        (void)pthread_cond_timedwait(&q->changed, &q->mutex, &at);
}

/* False: nothing is wanted any more. The mutex is held, and let go meanwhile. */
static bool tell(Debuginfod *d, Query *q, bool *is_told) {
        perfd_download download = { .size = sizeof(download), .build_id = { (const char *)q->id.bytes, q->id.n },
                                    .n = (uint64_t)q->n, .length = (uint64_t)q->size };
        bool goes_on;

        if (!d->wait)
                return true;
        pthread_mutex_unlock(&q->mutex);
        goes_on = d->wait(d->userdata, &download);
        *is_told = true;
        pthread_mutex_lock(&q->mutex);
        return goes_on;
}

/* 0: it is over; else why nobody waits any more. */
static int await(Debuginfod *d, Query *q) {
        bool is_told = false;
        int r = 0;

        pthread_mutex_lock(&q->mutex);
        while (!q->is_over && r == 0) {
                const int64_t now = clock_ns();

                if (now - q->heard >= BACKSTOP_NSEC)
                        r = -ETIMEDOUT;
                else {
                        wait_until(q, now + STEP_NSEC);
                        if (!q->is_over && !tell(d, q, &is_told))
                                r = -ECANCELED;
                }
        }
        if (q->is_over)
                r = q->is_silent && q->result < 0 ? -ETIMEDOUT : 0;
        else
                q->is_left = true;
        pthread_mutex_unlock(&q->mutex);
        if (is_told)
                (void)d->wait(d->userdata, NULL);
        return r;
}

/* What a server said, or nobody. */
static void judge(Debuginfod *d, int r) {
        if (r == -ECANCELED)
                d->is_given_up = true; /* who says so knows it */
        else if (r == -ETIMEDOUT || r == -ETIME)
                give_up(d, "debuginfod: nothing came from %s for two seconds: it is not asked any more, and files that are not here have no names", urls());
        else if (r != -ENOENT && r != -EFBIG) /* beyond DEBUGINFOD_MAXSIZE */
                give_up(d, "debuginfod: asking %s: %s: it is not asked any more, and files that are not here have no names", urls(), strerror(-r));
}

int debuginfod_get(Debuginfod *d, const BuildId *id, bool is_debug, char **ret_path) {
        Query *q;
        int r, fd = -1;

        *ret_path = NULL;
        if (!d || d->is_given_up || id->n < 2)
                return -1;
        q = query_start(d, id, is_debug);
        if (!q) {
                give_up(d, "debuginfod: no thread can be started, and files that are not here have no names");
                return -1;
        }
        r = await(d, q);
        if (r == 0 && q->result >= 0) {
                fd = q->result;
                (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
                *ret_path = q->path;
        } else
                judge(d, r == 0 ? q->result : r);
        if (q->is_left) {
                d->client = NULL; /* the thread ends it */
                d->left = q;
        } else {
                if (fd < 0)
                        free(q->path);
                query_unref(q);
        }
        return fd;
}

void debuginfod_refuse(Debuginfod *d, const BuildId *id, const char *path) {
        char hex[2 * BUILD_ID_MAX + 1] = "";

        for (size_t i = 0; i < id->n; i++)
                sprintf(hex + 2 * i, "%02x", id->bytes[i]);
        give_up(d, "debuginfod: what %s has for build id %s is no file with symbols that has it: nothing more is asked for; remove %s before it is asked "
                "again", urls(), hex, path);
}

/* ---- the library ------------------------------------------------------------------------------------------------------------------ */

static bool is_loaded;

static void load_library(void) {
        void *handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);

        if (!handle)
                return;
        *(void **)&library.begin = dlsym(handle, "debuginfod_begin");
        *(void **)&library.end = dlsym(handle, "debuginfod_end");
        *(void **)&library.find_debug = dlsym(handle, "debuginfod_find_debuginfo");
        *(void **)&library.find_program = dlsym(handle, "debuginfod_find_executable");
        *(void **)&library.set_progress = dlsym(handle, "debuginfod_set_progressfn");
        *(void **)&library.set_userdata = dlsym(handle, "debuginfod_set_user_data");
        *(void **)&library.get_userdata = dlsym(handle, "debuginfod_get_user_data");
        is_loaded = library.begin && library.end && library.find_debug && library.find_program && library.set_progress &&
                    library.set_userdata && library.get_userdata;
        if (!is_loaded)
                dlclose(handle);
}

int debuginfod_new(const perfd_symbolizer_options *o, Debuginfod **ret) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        Debuginfod *d;

        *ret = NULL;
        if (!o->has_debuginfod)
                return 0;
        d = calloc(1, sizeof(Debuginfod));
        if (!d)
                return -ENOMEM;
        d->userdata = o->userdata;
        d->wait = o->wait;
        d->note = o->note;
        if (urls()[strspn(urls(), " ")] == '\0')
                give_up(d, "debuginfod: no server is named: " DEBUGINFOD_URLS_ENV_VAR " in the environment lists their URLs");
        else if (pthread_once(&once, load_library) != 0 || !is_loaded)
                give_up(d, "debuginfod: " DEBUGINFOD_SONAME " is not there, or too old: Debian has it in the package libdebuginfod1");
        else if (!(d->client = library.begin()))
                give_up(d, "debuginfod: its client cannot be started");
        *ret = d;
        return 0;
}

void debuginfod_free(Debuginfod *d) {
        if (!d)
                return;
        if (d->client)
                library.end(d->client);
        if (d->left) { /* a program that ended now would take libcurl away below the thread */
                const int64_t until = clock_ns() + LAST_NSEC;

                pthread_mutex_lock(&d->left->mutex);
                while (!d->left->is_over && clock_ns() < until)
                        wait_until(d->left, until);
                pthread_mutex_unlock(&d->left->mutex);
                query_unref(d->left);
        }
        free(d);
}
