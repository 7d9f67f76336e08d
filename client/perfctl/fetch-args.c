/*
 * The kernel knows $argN for kprobes only, and only where it was built with HAVE_FUNCTION_ARG_ACCESS_API: user functions are
 * called in the same way, so both get the registers.
 */
#include "client/perfctl/fetch-args.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/perfctl.h"

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

static bool begins(const char *text, const char *word) {
        return strncmp(text, word, strlen(word)) == 0;
}

static bool is_inside(const char *event) {
        const char *plus = strrchr(strrchr(event, ':'), '+');

        return plus && strtoull(plus + 1, NULL, 0) != 0;
}

static void put_argument(FILE *f, const Calls *c, uint64_t n) {
        if (n <= c->n_registers)
                fputs(c->registers[n - 1], f);
        else
                fprintf(f, "$stack%" PRIu64, n - c->n_registers - 1 + c->stack);
}

static FetchArgsRefusal check(const Calls *c, const char *event, uint64_t n) {
        if (begins(event, "uretprobe:"))
                return FETCH_ARGS_RETURN;
        if (is_inside(event))
                return FETCH_ARGS_INSIDE;
        return !c ? FETCH_ARGS_MACHINE : n == 0 ? FETCH_ARGS_ZERO : FETCH_ARGS_OK;
}

FetchArgsRefusal fetch_args_translate(const char *args, const char *event, const char *machine, char **ret, size_t *ret_position) {
        static const char word[] = "$arg";
        const Calls *c = calls_find(machine);
        FetchArgsRefusal refusal = FETCH_ARGS_OK;
        const char *at = args;
        char *text, *end;
        size_t size;
        FILE *f;

        if (!begins(event, "kprobe:") && !begins(event, "uprobe:") && !begins(event, "uretprobe:")) {
                *ret = must_have(strdup(args)); /* of kretprobes too: Linux 6.9 keeps their arguments */
                return FETCH_ARGS_OK;
        }
        f = must_have(open_memstream(&text, &size));
        while (*at && refusal == FETCH_ARGS_OK) {
                uint64_t n;

                if (!begins(at, word) || !isdigit((unsigned char)at[strlen(word)])) {
                        fputc(*at++, f);
                        continue;
                }
                n = strtoull(at + strlen(word), &end, 10);
                refusal = check(c, event, n);
                if (refusal == FETCH_ARGS_OK) {
                        put_argument(f, c, n);
                        at = end;
                }
        }
        must_have(fclose(f) == 0 ? text : NULL);
        if (refusal == FETCH_ARGS_OK)
                *ret = text;
        else {
                *ret_position = (size_t)(at - args);
                free(text);
        }
        return refusal;
}
