/*
 * The name of a running event means that event, and nothing else: not its definition, of which more than the name of an event
 * would have to be taken, and which may change.
 */
#include "client/perfctl/events/event-advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/connection/library.h"

#define SHOWN_MAX 4 /* of a group's events */

static bool is_meant(const char *word, const perfd_event_row *row) {
        char id[16];

        (void)snprintf(id, sizeof(id), "#%u", row->id);
        return !*row->pending && (strcmp(word, row->spec->name) == 0 || strcmp(word, id) == 0 ||
                                  (*word == '@' && strcmp(word + 1, row->spec->group) == 0));
}

/* "'syscalls:sys_enter_openat' --filter 'flags & 0x40'", of each that is meant. Malloc'ed. NULL: none is. */
static char *define(const perfd_result *list, const char *word, bool *ret_is_counted) {
        const perfd_event_row *row;
        char *text;
        size_t size, n = 0;
        FILE *f = must_have(open_memstream(&text, &size));

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++) {
                if (!is_meant(word, row) || n++ >= SHOWN_MAX)
                        continue;
                *ret_is_counted = row->spec->interval > 0;
                fprintf(f, "%s'%s'", n > 1 ? " and " : "", row->spec->event);
                if (row->spec->filter && *row->spec->filter)
                        fprintf(f, " --filter '%s'", row->spec->filter);
        }
        if (n > SHOWN_MAX)
                fprintf(f, " and %zu more", n - SHOWN_MAX);
        must_have(fclose(f) == 0 ? text : NULL);
        if (n > 0)
                return text;
        free(text);
        return NULL;
}

static bool tell_running(const Perfctl *p, const char *word) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        const char *is = strchr("@#", *word) ? "means what runs" : "is a running event";
        bool is_counted = false;
        char *definition;

        if (perfd_list(p->client, NULL, &list) != 0 || !(definition = define(list, word, &is_counted)))
                return false;
        if (strcmp(p->verb->name, "stat") == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "'%s' %s, and stat counts events of its own: `perfctl %s '%s'` %s; to count the same, name %s",
                                   word, is, is_counted ? "watch" : "count", word, is_counted ? "shows its counts" : "counts its samples",
                                   definition);
        else
                (void)perfctl_fail(p, PERFCTL_OK, "'%s' %s, with the target that it was added with: for another one, a command or options, name %s",
                                   word, is, definition);
        free(definition);
        return true;
}

/* ---- what bpftrace(8) has ---------------------------------------------------------------------------------------- */

typedef struct Form {
        const char *kind;
        const char *ours; /* in its place; NULL: there is none */
        const char *text; /* then what there is */
        bool is_function; /* a module may stand before its name */
} Form;

static const char interval_text[] = "nothing occurs at an interval here, but `perfctl stat` and `perfctl count` print at each --interval TIME";
static const char profile_text[] = "here it is cpu-clock -F HZ, of `perfctl watch` and `perfctl count`";
static const char watchpoint_text[] = "here it is mem:ADDRESS/LENGTH:rwx";
static const char script_text[] = "perfctl has no programs that begin and end";

static const Form forms[] = {
        { "fentry", "kprobe:", .is_function = true },
        { "fexit", "kretprobe:", .is_function = true },
        { "kfunc", "kprobe:", .is_function = true },
        { "kretfunc", "kretprobe:", .is_function = true },
        { "f", "kprobe:", .is_function = true },
        { "fr", "kretprobe:", .is_function = true },
        { "k", "kprobe:", .is_function = true },
        { "kr", "kretprobe:", .is_function = true },
        { "u", "uprobe:" },
        { "ur", "uretprobe:" },
        { "U", "usdt:" },
        { "t", "" },
        { "rawtracepoint", "" },
        { "rt", "" },
        { "interval", .text = interval_text },
        { "i", .text = interval_text },
        { "profile", .text = profile_text },
        { "p", .text = profile_text },
        { "watchpoint", .text = watchpoint_text },
        { "asyncwatchpoint", .text = watchpoint_text },
        { "w", .text = watchpoint_text },
        { "BEGIN", .text = script_text },
        { "END", .text = script_text },
};

/* KIND:EVENT:N: each N-th occurrence. */
static bool tell_period(const Perfctl *p, const char *event, size_t n_kind) {
        const char *name = event[n_kind] ? event + n_kind + 1 : "", *number = strrchr(name, ':');

        if ((strncmp(event, "software:", n_kind + 1) != 0 && strncmp(event, "hardware:", n_kind + 1) != 0) || !number)
                return false;
        (void)perfctl_fail(p, PERFCTL_OK, "'%s' is bpftrace's: here it is %.*s --period %s", event, (int)(number - name), name, number + 1);
        return true;
}

static bool tell_form(const Perfctl *p, const char *event) {
        size_t n = strcspn(event, ":");
        const char *rest = event[n] ? event + n + 1 : "";

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                const Form *form = &forms[i];

                if (strlen(form->kind) != n || strncmp(form->kind, event, n) != 0 || (form->text != script_text && !*rest))
                        continue;
                if (form->is_function && strrchr(rest, ':'))
                        rest = strrchr(rest, ':') + 1;
                if (form->text == profile_text && strncmp(rest, "hz:", 3) == 0)
                        (void)perfctl_fail(p, PERFCTL_OK, "'%s' is bpftrace's: here it is cpu-clock -F %s, of `perfctl watch` and `perfctl count`",
                                           event, rest + 3);
                else if (form->text)
                        (void)perfctl_fail(p, PERFCTL_OK, "'%s' is bpftrace's: %s", event, form->text);
                else
                        (void)perfctl_fail(p, PERFCTL_OK, "'%s' is bpftrace's: here it is '%s%s'", event, form->ours, rest);
                return true;
        }
        return tell_period(p, event, n);
}

/* ---- what perf has ------------------------------------------------------------------------------------------------ */

/* perf stat takes them itself. */
bool event_advice_tell_time(const Perfctl *p, const char *event) {
        static const char *const times[][2] = {
                { "duration_time", "time for which perf stat has counted: `perfctl stat` prints it below its counts" },
                { "user_time", "time that the command of perf stat was in user mode: `perfctl stat -- COMMAND` prints it below its counts" },
                { "system_time", "time that the command of perf stat was in the kernel: `perfctl stat -- COMMAND` prints it below its counts" },
        };

        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
                if (strcmp(event, times[i][0]) == 0) {
                        (void)perfctl_fail(p, PERFCTL_OK, "'%s' is no event, but the %s; task-clock counts the time that tasks run", event,
                                           times[i][1]);
                        return true;
                }
        return false;
}

/* ---- a command that stands where events do ----------------------------------------------------------------------- */

static bool is_program(const char *word) {
        char *path = NULL;
        struct stat st;
        bool is = strchr(word, '/') ? stat(word, &st) == 0 && S_ISREG(st.st_mode) && access(word, X_OK) == 0 : program_find(word, &path) == 0;

        free(path);
        return is;
}

/* As perf-stat(1) and perf-record(1) take it. */
static bool tell_command(const Perfctl *p, const char *event) {
        char *text;
        size_t size, at = 0;
        FILE *f;

        while (at < p->n_arguments && strcmp(p->arguments[at], event) != 0)
                at++;
        if (!p->verb->has_command || p->command || p->host || at == p->n_arguments || !is_program(event))
                return false;
        f = must_have(open_memstream(&text, &size));
        for (size_t i = 0; i < p->n_arguments; i++)
                fprintf(f, "%s %s", i == at ? " --" : "", p->arguments[i]);
        must_have(fclose(f) == 0 ? text : NULL);
        (void)perfctl_fail(p, PERFCTL_OK, "a command follows --, as in `perfctl %s%s`", p->verb->name, text);
        free(text);
        return true;
}

void event_advice_tell_program(const Perfctl *p, const char *event) {
        for (size_t i = 0; i < p->n_arguments && strcmp(p->arguments[i], event) != 0; i++)
                if (is_program(p->arguments[i]))
                        return; /* it is an argument of that one */
        for (size_t i = 0; p->verb->has_command && !p->command && i < p->n_arguments; i++)
                if (strcmp(p->arguments[i], event) == 0 && !p->host)
                        (void)perfctl_fail(p, PERFCTL_OK, "no program in $PATH is called '%s' either: a command would follow --", event);
}

bool event_advice_tell(const Perfctl *p, const char *event, const char *reason, const char *message) {
        bool is_unknown = strcmp(reason, "unknown-event") == 0;

        if (!*event || !strstr(message, event) || (!is_unknown && strcmp(reason, "bad-event") != 0))
                return false;
        return (is_unknown && (tell_running(p, event) || event_advice_tell_time(p, event))) || tell_form(p, event) || tell_command(p, event);
}
