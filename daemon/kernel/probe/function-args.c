/*
 * The kernel knows $argN for kprobes only, and only where it was built with HAVE_FUNCTION_ARG_ACCESS_API: user functions are
 * called in the same way, so both get the registers.
 */
#include "daemon/kernel/probe/function-args.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD "$arg"

typedef struct Calls {
        const char *machine;
        const char *registers[8];
        size_t n_registers;
        size_t stack; /* $stackN of the first argument that has no register: x86's call has pushed where to return to */
} Calls;

static const Calls machines[] = {
        { "x86_64", { "%di", "%si", "%dx", "%cx", "%r8", "%r9" }, 6, 1 },
        { "aarch64", { "%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7" }, 8, 0 },
};

static const Calls *calls_find(const char *machine) {
        for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
                if (strcmp(machines[i].machine, machine) == 0)
                        return &machines[i];
        return NULL;
}

/* Digits of "$arg12"; 0: it is another word. */
static size_t count_digits(const char *text) {
        return strncmp(text, WORD, strlen(WORD)) == 0 ? strspn(text + strlen(WORD), "0123456789") : 0;
}

static bool has_argument(const char *text) {
        for (const char *at = text; (at = strstr(at, WORD)); at++)
                if (count_digits(at) > 0)
                        return true;
        return false;
}

static int refuse_argument(const EventName *name, const char *machine, const ProbeArgs *args, size_t at, Explanation *e) {
        int r;

        if (name->is_return)
                r = refuse(e, REFUSED_INVALID, "bad-args",
                           "fetch args %s: a function that returns has its arguments no more: fetch them by a second event at its "
                           "beginning, of the kind uprobe; what it returns is $retval", QUOTE(args->text));
        else if (name->place.offset > 0)
                r = refuse(e, REFUSED_INVALID, "bad-args",
                           "fetch args %s: $arg1 and its like are where they were only at the beginning of the function: leave out "
                           "the offset, or name a register, such as %%di", QUOTE(args->text));
        else if (!calls_find(machine))
                r = refuse(e, REFUSED_UNSUPPORTED, "bad-args",
                           "fetch args %s: how functions are called is not known for %.65s, only for x86_64 and aarch64: name "
                           "registers", QUOTE(args->text), machine);
        else
                r = refuse(e, REFUSED_INVALID, "bad-args", "fetch args %s: arguments are counted from 1, as $arg1, up to $arg999",
                           QUOTE(args->text));
        if (e)
                e->position = 1 + args->origins[at];
        return r;
}

static void put(ProbeArgs *to, size_t *n, const char *text, size_t length, uint32_t origin) {
        for (size_t i = 0; i < length; i++) {
                to->text[*n] = text[i];
                to->origins[(*n)++] = origin;
        }
}

static int translate(const EventName *name, const char *machine, const ProbeArgs *args, ProbeArgs *to, Explanation *e) {
        const Calls *c = calls_find(machine);
        size_t n = 0, n_digits;

        for (size_t at = 0; args->text[at]; at += n_digits > 0 ? strlen(WORD) + n_digits : 1) {
                char place[32] = { args->text[at] };

                n_digits = count_digits(args->text + at);
                if (n_digits > 0) {
                        uint64_t number = n_digits <= 3 ? strtoull(args->text + at + strlen(WORD), NULL, 10) : 0;

                        if (!c || name->is_return || name->place.offset > 0 || number == 0)
                                return refuse_argument(name, machine, args, at, e);
                        if (number <= c->n_registers)
                                (void)snprintf(place, sizeof(place), "%s", c->registers[number - 1]);
                        else
                                (void)snprintf(place, sizeof(place), "$stack%" PRIu64, number - c->n_registers - 1 + c->stack);
                }
                put(to, &n, place, strlen(place), args->origins[at]);
        }
        to->text[n] = '\0';
        to->origins[n] = args->origins[strlen(args->text)];
        return 0;
}

/* Who else knows the word: the kernel, or the note of a static probe. */
static bool is_others(const EventName *name, const char *machine) {
        return name->kind == EVENT_NAME_USDT || (name->kind == EVENT_NAME_KPROBE && (name->is_return || !calls_find(machine)));
}

int probe_function_args(const EventName *name, const char *machine, ProbeArgs *args, Explanation *e) {
        _cleanup_(probe_args_deinit) ProbeArgs to = PROBE_ARGS_NULL;
        size_t room = 2 * strlen(args->text) + 1; /* "$stack123" is the longest, for "$arg123" */
        int r;

        if (!has_argument(args->text) || is_others(name, machine))
                return 0;
        to.text = malloc(room);
        to.origins = calloc(room, sizeof(*to.origins));
        if (!to.text || !to.origins)
                return error_origin(-ENOMEM);
        r = translate(name, machine, args, &to, e);
        if (r != 0)
                return r;
        probe_args_deinit(args);
        *args = to;
        to = PROBE_ARGS_NULL;
        return 0;
}
