/*
 * A place of a static probe is an operand of the assembler, which is another one at each site of the probe: so this is done for each
 * site, and a program that is built again needs no other words.
 */
#include "daemon/kernel/probe/static-args.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD "$arg"

/* "%di" and ":u64" of "arg1=%di:u64". */
typedef struct Operand {
        const char *place, *type;
        size_t n_place, n_type;
} Operand;

static bool find_operand(const char *own, const char *number, size_t n_number, Operand *ret) {
        for (const char *at = own, *end; at && *at; at = *end ? end + 1 : end) {
                const char *colon;

                end = at + strcspn(at, " ");
                if (strncmp(at, "arg", 3) != 0 || strncmp(at + 3, number, n_number) != 0 || at[3 + n_number] != '=')
                        continue;
                ret->place = at + 3 + n_number + 1;
                colon = memchr(ret->place, ':', (size_t)(end - ret->place));
                if (!colon)
                        return false;
                ret->n_place = (size_t)(colon - ret->place);
                ret->type = colon;
                ret->n_type = (size_t)(end - colon);
                return true;
        }
        return false;
}

static int refuse_argument(const char *own, const ProbeArgs *args, size_t at, size_t n, Explanation *e) {
        _cleanup_free_ char *word = strndup(args->text + at, n);
        int r;

        if (own && *own)
                r = refuse(e, REFUSED_INVALID, "bad-args",
                           "fetch args %s: %s is no argument of this static probe that the kernel can fetch; it has %.500s",
                           QUOTE(args->text), word ? QUOTE(word) : "", own);
        else
                r = refuse(e, REFUSED_INVALID, "bad-args", "fetch args %s: this static probe has no arguments that the kernel can fetch",
                           QUOTE(args->text));
        if (e && args->origins)
                e->position = 1 + args->origins[at];
        return r;
}

/* All that is fetched: "x=$arg1", and no type behind it. */
static bool is_alone(const ProbeArgs *args, size_t begin, size_t end) {
        return (begin == 0 || args->text[begin - 1] == '=' || args->text[begin - 1] == ' ') &&
               (args->text[end] == '\0' || args->text[end] == ' ');
}

static void put(ProbeArgs *to, size_t *n, const char *text, size_t length, uint32_t origin) {
        for (size_t i = 0; i < length; i++) {
                to->text[*n] = text[i];
                to->origins[(*n)++] = origin;
        }
}

static int translate(const char *own, const ProbeArgs *args, ProbeArgs *to, Explanation *e) {
        size_t n = 0;

        for (size_t at = 0; args->text[at];) {
                size_t n_number = strncmp(args->text + at, WORD, strlen(WORD)) == 0 ?
                                          strspn(args->text + at + strlen(WORD), "0123456789") : 0;
                size_t end = at + strlen(WORD) + n_number;
                uint32_t origin = args->origins ? args->origins[at] : 0;
                Operand o;

                if (n_number == 0) {
                        put(to, &n, args->text + at++, 1, origin);
                        continue;
                }
                if (!find_operand(own, args->text + at + strlen(WORD), n_number, &o))
                        return refuse_argument(own, args, at, end - at, e);
                put(to, &n, o.place, o.n_place, origin);
                if (is_alone(args, at, end))
                        put(to, &n, o.type, o.n_type, origin);
                at = end;
        }
        to->text[n] = '\0';
        to->origins[n] = args->origins ? args->origins[strlen(args->text)] : 0;
        return 0;
}

int probe_static_args(const char *own, const ProbeArgs *args, ProbeArgs *ret, Explanation *e) {
        _cleanup_(probe_args_deinit) ProbeArgs to = PROBE_ARGS_NULL;
        size_t n_words = 0, room;
        int r;

        for (const char *at = args->text; (at = strstr(at, WORD)); at++)
                n_words++;
        room = strlen(args->text) + n_words * (own ? strlen(own) : 0) + 1;
        to.text = malloc(room);
        to.origins = calloc(room, sizeof(*to.origins));
        if (!to.text || !to.origins)
                return error_origin(-ENOMEM);
        r = translate(own, args, &to, e);
        if (r != 0)
                return r;
        *ret = to;
        to = PROBE_ARGS_NULL;
        return 0;
}
