/*
 * Messages on their way through the spool to a publisher that is played: each comes once and in order, whatever the disk does, and also
 * when the process is killed in the middle of any write.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/relay/publish/publishing.h"
#include "daemon/base/cleanup.h"

#define MEMORY ((uint64_t)32 << 10)
#define MESSAGE_LENGTH 1000

static char folder[] = "/tmp/test-spooling.XXXXXX";

/* ---- the publisher ------------------------------------------------------------------------------------------------ */

static struct {
        Publisher publisher;
        PublisherCallbacks callbacks;
        Message *first, **end;
        unsigned n_to_store; /* of these, when it is dispatched */
        uint64_t held, most; /* bytes */
        unsigned begin, last; /* numbers of the first message and of the newest one; the test's */
} played;

/* Messages of others, such as what the relay says of itself, have other ids. */
static unsigned number_of(const Message *m) {
        unsigned n = 0;

        return sscanf(m->id, "test.%u", &n) == 1 ? n : 0;
}

static void check_message(const Message *m) {
        unsigned n = number_of(m);

        if (n == 0)
                return;
        played.begin = played.begin ? played.begin : n;
        if (played.last > 0)
                assert_int_equal(n, played.last + 1);
        played.last = n;
        assert_int_equal(m->length, MESSAGE_LENGTH);
        assert_int_equal(m->bytes[0], n & 0xff);
        assert_int_equal(m->bytes[MESSAGE_LENGTH - 1], n & 0xff);
}

static void played_publish(Publisher *p, Message *m) {
        check_message(m);
        m->next = NULL;
        *played.end = m;
        played.end = &m->next;
        played.held += message_size(m);
        played.most = played.held > played.most ? played.held : played.most;
}

static void played_dispatch(Publisher *p) {
        eventfd_t n;

        (void)eventfd_read(p->fd, &n);
        for (; played.n_to_store > 0 && played.first; played.n_to_store--) {
                Message *m = played.first;

                played.first = m->next;
                if (!played.first)
                        played.end = &played.first;
                played.held -= message_size(m);
                played.callbacks.stored(played.callbacks.userdata, m);
        }
}

static void played_close(Publisher *p) {
        for (Message *m = played.first, *next; m; m = next) {
                next = m->next;
                message_free(m);
        }
        close_fd(p->fd);
}

int __wrap_nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret);
int __wrap_nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret) {
        memset(&played, 0, sizeof(played));
        played.publisher = (Publisher){ .publish = played_publish, .dispatch = played_dispatch, .close = played_close };
        played.publisher.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        played.callbacks = *callbacks;
        played.end = &played.first;
        *ret = &played.publisher;
        return 0;
}

/* ---- the disk ----------------------------------------------------------------------------------------------------- */

static struct {
        unsigned n;             /* writes so far */
        unsigned fail_at, last; /* these of them fail, from 1; 0: none does */
        int error;              /* 0: killed when half of it is written; -1: half is written */
} disk;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t length, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t length, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
        disk.n++;
        if (disk.fail_at == 0 || disk.n < disk.fail_at || disk.n > disk.last)
                return __real_pwrite64(fd, bytes, length, offset);
        if (disk.error > 0) {
                errno = disk.error;
                return -1;
        }
        if (disk.error == 0) {
                (void)!__real_pwrite64(fd, bytes, length / 2, offset);
                (void)raise(SIGKILL);
        }
        return __real_pwrite64(fd, bytes, (length + 1) / 2, offset);
}

/* ---- the relay ---------------------------------------------------------------------------------------------------- */

static char *servers[] = { (char *)"nats://127.0.0.1:1" }, *events[] = { (char *)"*" };
static PublishRoute route = { .name = (char *)"a", .events = { .items = events, .n = 1 } };
static PublishConfig config = {
        .access = { .servers = { .items = servers, .n = 1 } }, .stream = (char *)"perfd", .host = (char *)"web1", .spool = MEMORY,
        .spool_disk = SPOOL_LIMIT_MIN, .spool_path = folder, .routes = &route, .n_routes = 1,
};
static sd_event *event;
static Publishing *relay;

static void start(void) {
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(publishing_start(event, "/nowhere/perfd", &config, &relay), 0);
}

static void stop(void) {
        publishing_free(relay);
        sd_event_unref(event);
}

static void publish(unsigned n) {
        uint8_t bytes[MESSAGE_LENGTH];
        Message *m;

        memset(bytes, (int)(n & 0xff), sizeof(bytes));
        m = message_new(bytes, sizeof(bytes));
        assert_non_null(m);
        (void)snprintf(m->subject, sizeof(m->subject), "perfd.web1.a");
        (void)snprintf(m->id, sizeof(m->id), "test.%u", n);
        message_add_header(m, "Perfd-Sequence", "%u", n);
        publishing_publish(relay, m);
}

/* The server takes so many, and what follows from that is done. */
static void store(unsigned n) {
        played.n_to_store = n;
        assert_int_equal(eventfd_write(played.publisher.fd, 1), 0);
        while (sd_event_run(event, 0) > 0)
                ;
}

static void empty(void) {
        DIR *d = opendir(folder);
        const struct dirent *entry;

        assert_non_null(d);
        while ((entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
        closedir(d);
        memset(&disk, 0, sizeof(disk));
}

static int make_folder(void **state) {
        return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
        empty();
        return rmdir(folder);
}

/* ---- tests -------------------------------------------------------------------------------------------------------- */

/* What is in memory is bounded, however much there is, and files go when all of it is stored. */
static void test_backlog(void **state) {
        enum { N = 2000 };

        empty();
        start();
        for (unsigned i = 1; i <= N; i++) {
                publish(i);
                if (i % 10 == 0)
                        store(i % 30 == 0 ? 9 : 1);
        }
        assert_true(played.last < N);
        assert_false(publishing_is_full(relay));
        for (int i = 0; i < 2 * N && played.last < N; i++)
                store(7);
        assert_int_equal(played.last, N);
        store(UINT32_MAX);
        assert_true(played.most < MEMORY + 2 * (MESSAGE_LENGTH + sizeof(Message)));
        assert_int_equal(spool_count(relay->spooling.spool), 0);
        assert_true(relay->spooling.spool->size < (uint64_t)2 << 20);
        assert_int_equal(relay->n_held, 0);
        stop();
}

/* At its limit it is full, until there is room again; what was taken meanwhile is not lost. */
static void test_limit(void **state) {
        unsigned n = 0;

        empty();
        start();
        while (!publishing_is_full(relay) && n < 10000)
                publish(++n);
        assert_true(n > 3000 && n < 4300); /* of 4 MiB */
        publish(++n);
        assert_true(publishing_is_full(relay));
        for (int i = 0; i < 2000 && publishing_is_full(relay); i++)
                store(8);
        assert_false(publishing_is_full(relay));
        publish(++n);
        for (int i = 0; i < 2000 && played.last < n; i++)
                store(8);
        assert_int_equal(played.last, n);
        stop();
}

/* Each write fails, or is cut short, or all from there on are for a while: nothing is lost, and memory is still bounded. */
static void test_failing_disk(void **state) {
        static const int errors[] = { ENOSPC, EIO, -1 };
        enum { N = 60 };

        for (size_t e = 0; e < ARRAY_SIZE(errors); e++)
                for (unsigned at = 1; at <= 80; at++) {
                        empty();
                        disk.fail_at = at;
                        disk.last = at + (at % 3) * 10;
                        disk.error = errors[e];
                        start();
                        for (unsigned i = 1; i <= N; i++) {
                                publish(i);
                                store(i % 4 == 0 ? 2 : 0);
                        }
                        for (int i = 0; i < 4 * N && (played.last < N || relay->n_held > 0); i++)
                                store(3);
                        assert_int_equal(played.last, N);
                        assert_int_equal(relay->n_held, 0);
                        assert_int_equal(spooling_count_unsafe(relay), 0);
                        assert_true(played.most < MEMORY + 2 * (MESSAGE_LENGTH + sizeof(Message)));
                        stop();
                }
}

typedef struct Progress {
        unsigned published, stored;
} Progress;

/* Publishes until it is killed; how far it has come is in shared memory. */
static void live(Progress *shared, unsigned kill_at) {
        disk.fail_at = disk.last = kill_at;
        start();
        for (unsigned i = 1; i <= 100; i++) {
                publish(i);
                shared->published = i;
                if (i % 5 == 0) {
                        store(3);
                        shared->stored = i / 5 * 3;
                }
        }
        _exit(0);
}

/* Killed in the middle of each write: what was published before that is there, and what was stored is at most what was not marked. */
static void test_killed(void **state) {
        Progress *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        unsigned n_killed = 0;

        assert_true(shared != MAP_FAILED);
        for (unsigned at = 1; at <= 130; at++) {
                int status;
                pid_t pid;

                empty();
                *shared = (Progress){ .published = 0 };
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        live(shared, at);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0);
                n_killed += WIFSIGNALED(status);
                start();
                publish(shared->published + 1); /* before anything is read */
                for (int i = 0; i < 200 && (i < 2 || relay->n_held > 0); i++)
                        store(10);
                assert_int_equal(played.last, shared->published + 1);
                assert_true(played.begin <= shared->stored + 1);
                assert_true(played.begin + 3 >= shared->stored + 1);
                assert_int_equal(spool_count(relay->spooling.spool), 0);
                stop();
        }
        assert_true(n_killed > 100);
        munmap(shared, sizeof(*shared));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_backlog),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_failing_disk),
                cmocka_unit_test(test_killed),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
