#include "client/perfctl/print/output-file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/signals.h"

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
static char *volatile part_written; /* there is one at a time */

static void remove_part(void) {
        char *part = part_written;

        if (part)
                (void)unlink(part);
}

static void on_end(int number) {
        remove_part();
        (void)signal(number, SIG_DFL);
        (void)raise(number);
}

/* From here on none of them comes, so that there is no time between a part and its guard. */
static void hold_ends(sigset_t *ret_before) {
        sigset_t set;

        (void)sigemptyset(&set);
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
                (void)sigaddset(&set, ends[i]);
        (void)sigprocmask(SIG_BLOCK, &set, ret_before);
}

/* Whoever is ended by a signal leaves no part of a file; what catches signals itself, as live hosts do, asks for it at the second one. */
static void guard_part(char *part) {
        struct sigaction now, then = { .sa_handler = part ? on_end : SIG_DFL };

        part_written = part;
        signals_set_last(part ? remove_part : NULL);
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
                if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == (part ? SIG_DFL : on_end))
                        (void)sigaction(ends[i], &then, NULL);
}

bool output_is_input(const char *output, const char *input) {
        struct stat a, b;

        return output && strcmp(output, "-") != 0 && stat(output, &a) == 0 && stat(input, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int output_file_open(const Perfctl *p, const char *path, OutputFile *ret) {
        OutputFile f = { .path = path, .limit = 0666 };
        sigset_t before;
        struct stat st;
        int fd;

        if (strcmp(path, "-") == 0) {
                *ret = (OutputFile){ .path = path, .out = stdout, .limit = 0666 };
                return 0;
        }
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
                return perfctl_fail(p, PERFCTL_FAILED, "%s: it is no regular file: name another one, or - for stdout", path);
        if (asprintf(&f.part, "%s.XXXXXX", path) < 0)
                f.part = must_have(NULL);
        hold_ends(&before);
        fd = mkostemp(f.part, O_CLOEXEC);
        f.out = fd < 0 ? NULL : fdopen(fd, "w");
        if (f.out)
                guard_part(f.part);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        if (f.out) {
                *ret = f;
                return 0;
        }
        (void)perfctl_fail(p, PERFCTL_FAILED, "%s: a file beside it cannot be created: %s", path, strerror(errno));
        if (fd >= 0) {
                (void)close(fd);
                (void)unlink(f.part);
        }
        free(f.part);
        return PERFCTL_FAILED;
}

void output_file_limit(OutputFile *f, const char *input) {
        struct stat in, out;
        mode_t others;

        if (!f->part || !input)
                return;
        if ((strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(input, &in)) != 0 || fstat(fileno(f->out), &out) != 0) {
                f->limit &= 0600;
                return;
        }
        if (!S_ISREG(in.st_mode))
                return;
        others = in.st_mode & 0006;
        /* Another group than that of the input is one of the others. */
        f->limit &= 0600 | others | (in.st_gid == out.st_gid ? in.st_mode & 0060 : others << 3);
}

/* As others are created, as far as it may: mkostemp(3) gives it to its owner alone. */
static int set_mode(const OutputFile *f) {
        const mode_t mask = umask(0);

        (void)umask(mask);
        return fchmod(fileno(f->out), f->limit & ~mask);
}

static int give_name(const OutputFile *f) {
        char *old;
        int r = 0;

        if (asprintf(&old, "%s.old", f->path) < 0)
                return -ENOMEM;
        if ((rename(f->path, old) != 0 && errno != ENOENT) || rename(f->part, f->path) != 0)
                r = -errno;
        free(old);
        return r;
}

int output_file_check(FILE *out, int error) {
        if (error != -EPIPE || out != stdout)
                return error;
        clearerr(out); /* of which output_file_close() would say that it failed */
        return 0;
}

int output_file_close(const Perfctl *p, OutputFile *f, bool is_whole) {
        const bool is_said = !is_whole; /* why */
        int r = 0;

        errno = 0;
        if (fflush(f->out) != 0 || ferror(f->out))
                r = output_file_check(f->out, -(errno ? errno : EIO));
        if (f->part) {
                is_whole = is_whole && r == 0;
                if (is_whole && set_mode(f) != 0)
                        r = -errno;
                if (fclose(f->out) != 0 && r == 0)
                        r = -errno;
                if (is_whole && r == 0)
                        r = give_name(f);
                if (!is_whole || r != 0)
                        (void)unlink(f->part);
        }
        if (f->part)
                guard_part(NULL);
        if (r != 0 && !is_said)
                (void)perfctl_fail(p, PERFCTL_FAILED, "%s: %s", f->part ? f->path : "stdout", strerror(-r));
        free(f->part);
        *f = OUTPUT_FILE_NULL;
        return r == 0 ? 0 : PERFCTL_FAILED;
}

void output_file_tell(const Perfctl *p, const char *path) {
        char size[QUANTITY_SIZE];
        struct stat st;

        if (strcmp(path, "-") != 0 && stat(path, &st) == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s: %s", path, quantity_show_size((uint64_t)st.st_size, size));
}
