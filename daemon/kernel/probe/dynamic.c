/*
 * A refused definition is only an errno: what is wrong, and where, is in error_log, which belongs to everyone who
 * writes to tracefs. An entry repeats the command, and our command has our own group's name in it; but the same event
 * may have been refused before, so the log is read before and after the write.
 */
#include "daemon/kernel/probe/dynamic.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/fd-limit.h"
#include "daemon/kernel/host/whole-file.h"
#include "daemon/kernel/probe/args-advice.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_SIZE 4094 /* WRITE_BUFSIZE - 2: trace_parse_run_command() */
#define COMMAND "  Command: "

static bool is_white(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
}

int probe_args_parse(const char *text, ProbeArgs *ret, Explanation *e) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;
        size_t n = 0, length = text ? strlen(text) : 0;

        a.text = malloc(length + 1);
        a.origins = calloc(length + 1, sizeof(*a.origins));
        if (!a.text || !a.origins)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < length; i++) {
                if (is_white(text[i])) {
                        if (n == 0 || a.text[n - 1] == ' ')
                                continue;
                } else if (text[i] < ' ' || text[i] > '~' || text[i] == '#') {
                        int r = refuse(e, REFUSED_INVALID, "bad-args",
                                       "fetch args %s: %s is not allowed in them", QUOTE(text),
                                       text[i] == '#' ? "'#', with which the kernel begins a comment,"
                                                      : "this character");

                        if (e)
                                e->position = 1 + (unsigned)i;
                        return r;
                }
                a.origins[n] = (uint32_t)i;
                a.text[n++] = is_white(text[i]) ? ' ' : text[i];
        }
        if (n > 0 && a.text[n - 1] == ' ')
                n--;
        a.text[n] = '\0';
        a.origins[n] = n > 0 ? a.origins[n - 1] + 1 : 0;
        *ret = a;
        a = PROBE_ARGS_NULL;
        return 0;
}

void probe_args_deinit(ProbeArgs *a) {
        free(a->text);
        free(a->origins);
        *a = PROBE_ARGS_NULL;
}

/* argv_split() of the kernel takes a byte 0xa0 for a blank, which is half of a letter in UTF-8 */
bool probe_path_is_plain(const char *path) {
        if (*path != '/')
                return false;
        for (; *path; path++)
                if ((unsigned char)*path <= ' ' || *path == '#' || (unsigned char)*path == 0xa0)
                        return false;
        return true;
}

char *probe_file(const char *root, bool is_kernel, const char *what) {
        char *path;

        return asprintf(&path, "%s/%s_%s", root, is_kernel ? "kprobe" : "uprobe", what) < 0 ? NULL : path;
}

bool probe_definition_exists(const char *root, const char *group, const char *name) {
        _cleanup_free_ char *path = NULL;

        return asprintf(&path, "%s/events/%s/%s", root, group, name) >= 0 && faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
}

/*
 *     [12379.422062] trace_uprobe: error: Unknown type is specified
 *       Command: p:perfd_00012f5c3a7d91e0/p12_work /tmp/t:0x1129 a=%di:x64 s=+0(%si):bogus
 *                                                                                    ^
 */
bool probe_complaint_find(const char *before, const char *after, const char *command, ProbeComplaint *ret) {
        static const char marker[] = ": error: ";
        bool found = false;

        for (const char *entry = after; *entry;) {
                const char *line = entry + strcspn(entry, "\n"), *caret, *said;
                _cleanup_free_ char *block = NULL;
                size_t n;

                if (*entry != '[' || strncmp(line, "\n" COMMAND, 1 + strlen(COMMAND)) != 0) {
                        entry = line + (*line == '\n');
                        continue;
                }
                line += 1 + strlen(COMMAND);
                n = strcspn(line, "\n");
                block = strndup(entry, (size_t)(line + n - entry));
                said = memmem(entry, (size_t)(line - entry), marker, strlen(marker));
                caret = line + n + (line[n] == '\n');
                if (block && said && strlen(command) == n && memcmp(command, line, n) == 0 && !strstr(before, block)) {
                        size_t blanks = strspn(caret, " ");

                        said += strlen(marker);
                        found = true;
                        *ret = (ProbeComplaint){ .text = said, .n_text = strcspn(said, "\n") };
                        ret->position = caret[blanks] != '^' || blanks < strlen(COMMAND) ? 0 : blanks - strlen(COMMAND);
                }
                entry = caret;
        }
        return found;
}

static char *read_log(const char *root) {
        _cleanup_free_ char *path = NULL;
        char *text = NULL;
        size_t length;

        if (asprintf(&path, "%s/error_log", root) < 0 || whole_file_read(path, &text, &length) < 0)
                return strdup(""); /* Linux 5.2 has it; without it there is only the errno to be said */
        return text;
}

static int explain_file(const char *path, bool is_kernel, int error, Explanation *e) {
        switch (error) {
        case ENOMEM:
                return refuse(e, REFUSED_EXHAUSTED, "no-memory", "%s cannot be written: the kernel has no memory for another "
                              "probe", path);
        case ENOENT:
                return refuse(e, REFUSED_UNSUPPORTED, is_kernel ? "no-kprobes" : "no-uprobes",
                              "there is no %s: this kernel was built without CONFIG_%s", path,
                              is_kernel ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
        case EMFILE:
        case ENFILE:
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left to write %s: raise LimitNOFILE= (RLIMIT_NOFILE), or trace less", path);
        case EACCES:
        case EPERM:
        case EROFS:
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "%s cannot be written: %s. A probe with fetch args or maxactive, on processes with "
                              "their children, or on a kernel without a probe PMU is defined there: run perfd as root, or give "
                              "it that one file (chmod, chown); as a service it also needs ProtectKernelTunables=no, and kernel "
                              "lockdown must not forbid it", path, strerror(error));
        }
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be written: %s", path, strerror(error));
}

/* Without a complaint of the kernel's there is only the errno. */
static const char *errno_meaning(const ProbeDefinition *d, int error) {
        switch (error) {
        case ENOENT:
                return d->is_kernel ? "the kernel has no such function" : "the file does not exist";
        case EADDRNOTAVAIL:
                return "several functions have that name: name one by its address";
        case EILSEQ:
                return "no instruction of a function begins there";
        case EINVAL:
                if (d->has_semaphore)
                        return "Invalid argument; another uprobe at the same location may have another semaphore, see the "
                                "kernel's log";
        }
        return strerror(error);
}

static int explain_definition(const ProbeDefinition *d, const char *before, const char *command, size_t args_at,
                              int error, Explanation *e) {
        _cleanup_free_ char *after = read_log(d->root);
        ProbeComplaint c = { .text = errno_meaning(d, error) };
        size_t n_args = strlen(d->args->text);
        bool said = after && probe_complaint_find(before, after, command, &c);
        int refusal = REFUSED_INVALID;
        const char *reason = "bad-probe";

        if (!said)
                c.n_text = strlen(c.text);
        if (n_args > 0 && (said ? c.position >= args_at : error == E2BIG || (error == EINVAL && !d->has_semaphore))) {
                (void)refuse(e, REFUSED_INVALID, "bad-args", "the kernel refuses the fetch args %s of %.300s: %.*s%s",
                             QUOTE(d->args->text), d->what, (int)c.n_text, c.text, said ? probe_args_advice(c.text, c.n_text, d->is_kernel, d->is_return) : "");
                if (e && said && d->args->origins && c.position - args_at <= n_args)
                        e->position = 1 + d->args->origins[c.position - args_at];
                return REFUSED_INVALID;
        }
        if (error == ENOENT) {
                refusal = REFUSED_NOT_FOUND;
                reason = d->is_kernel ? "unknown-symbol" : "no-file";
        } else if (error == EEXIST) {
                refusal = REFUSED_EXISTS;
                reason = "exists";
        } else if (error == EADDRNOTAVAIL)
                reason = "ambiguous-symbol";
        return refuse(e, refusal, reason, "the kernel refuses a probe on %.300s: %.*s", d->what, (int)c.n_text, c.text);
}

/* One write(2), because a definition is a line of one write(2). 0 or an errno. */
static int write_line(int fd, const char *line) {
        size_t length = strlen(line);
        ssize_t n;

        do
                n = write(fd, line, length);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)length ? 0 : n < 0 ? errno : EIO;
}

int probe_definition_add(const ProbeDefinition *d, Explanation *e) {
        _cleanup_free_ char *path = probe_file(d->root, d->is_kernel, "events"), *line = NULL, *before = NULL;
        _cleanup_close_ int fd = -1;
        char maxactive[12] = "";
        int length, error;

        if (d->maxactive > 0)
                (void)snprintf(maxactive, sizeof(maxactive), "%u", d->maxactive);
        if (!path || (length = asprintf(&line, "%c%s:%s/%s %s %s", d->is_return ? 'r' : 'p', maxactive, d->group,
                                        d->name, d->place, d->args->text)) < 0)
                return error_origin(-ENOMEM);
        if (!*d->args->text)
                line[--length] = '\0'; /* as the kernel repeats it */
        if (length > LINE_MAX_SIZE)
                return refuse(e, REFUSED_INVALID, *d->args->text ? "bad-args" : "bad-probe",
                              "the definition of a probe on %.300s would be %d bytes long; the kernel reads %d",
                              d->what, length, LINE_MAX_SIZE);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0)
                return explain_file(path, d->is_kernel, errno, e);
        before = read_log(d->root);
        if (!before)
                return error_origin(-ENOMEM);
        error = write_line(fd, line);
        if (error == 0)
                return 0;
        if (error == ENOMEM || error == EACCES || error == EPERM || error == EROFS)
                return explain_file(path, d->is_kernel, error, e);
        return explain_definition(d, before, line, (size_t)length - strlen(d->args->text), error, e);
}

int probe_definition_remove(const char *root, bool is_kernel, const char *group, const char *name) {
        WITH_FD_RESERVE;
        _cleanup_free_ char *path = probe_file(root, is_kernel, "events"), *line = NULL;
        _cleanup_close_ int fd = -1;
        int error;

        if (!path || asprintf(&line, "-:%s/%s", group, name) < 0)
                return error_origin(-ENOMEM);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0)
                return error_origin(-errno);
        error = write_line(fd, line);
        return error == ENOENT ? 0 : -error;
}
