/*
 * Probes, and what clients emit themselves. A path may have colons in it, so it ends at the last colon (before a USDT
 * probe at the last but one): no symbol and no name of a static probe has one. Whether a path or symbol exists is
 * looked up where the probe is made.
 */
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"

#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define KERNEL_SYMBOL_LETTERS WORD_LETTERS ".$"

static bool is_either(const char *text, const char *probe, const char *return_probe, bool *ret_is_return) {
        *ret_is_return = event_base_is(text, return_probe);
        return *ret_is_return || event_base_is(text, probe);
}

bool event_claims_kprobe(const char *text) {
        bool is_return;

        return is_either(text, "kprobe", "kretprobe", &is_return);
}

bool event_claims_uprobe(const char *text) {
        bool is_return;

        return is_either(text, "uprobe", "uretprobe", &is_return);
}

bool event_claims_usdt(const char *text) {
        return event_base_is(text, "usdt");
}

bool event_claims_external(const char *text) {
        return event_base_is(text, "external");
}

/* What is written as for tracepoints: a pattern in [from, to). */
static int check_no_pattern(const char *text, size_t from, size_t to, const char *instead, Explanation *e) {
        for (size_t i = from; i < to; i++)
                if (strchr("*?[", text[i]))
                        return event_refuse_at(e, text, i, "patterns are for tracepoints and uprobes only: %s", instead);
        return 0;
}

/* A kernel's symbol, or an ELF file's: NAME[@VERSION] of anything that prints, because languages mangle as they like. */
static int symbol_check(const char *text, size_t from, size_t to, bool is_kernel, Explanation *e) {
        const char *at = memchr(text + from, '@', to - from);
        int r = is_kernel ? check_no_pattern(text, from, to, "name one function", e) : 0;

        if (r != 0)
                return r;
        if (from == to)
                return event_refuse_at(e, text, from, "a symbol is missing here");
        if (text[from] >= '0' && text[from] <= '9')
                return event_refuse_at(e, text, from, "this is neither a symbol nor a 64-bit address such as 0x1139");
        for (size_t i = from; is_kernel && i < to; i++)
                if (!strchr(KERNEL_SYMBOL_LETTERS, text[i]))
                        return event_refuse_at(e, text, i, "this character is not part of a symbol of the kernel");
        if (at && at == text + from)
                return event_refuse_at(e, text, from, "a symbol is missing before its version");
        if (at && at + 1 < text + to && at[1] == '@')
                at++;
        if (at && (at + 1 == text + to || memchr(at + 1, '@', (size_t)(text + to - at - 1))))
                return event_refuse_at(e, text, (size_t)(at + 1 - text), "the version of a symbol follows a single @, such as "
                        "memcpy@GLIBC_2.14");
        return 0;
}

/* "name@@VERSION", as nm(1) writes a default version, is "name@VERSION". */
static int symbol_add(const char *text, size_t from, size_t to, ProbePlace *p) {
        char **room = p->symbols, *copy = NULL, *twice;
        int r;

        if (!ARRAY_ROOM(room, p->n_symbols))
                return error_origin(-ENOMEM);
        p->symbols = room;
        r = event_take(text, from, to, &copy);
        if (r != 0)
                return r;
        twice = strstr(copy, "@@");
        if (twice)
                memmove(twice, twice + 1, strlen(twice));
        p->symbols[p->n_symbols++] = copy;
        return 0;
}

static int symbols_parse(const char *text, size_t from, size_t to, bool is_kernel, ProbePlace *p, Explanation *e) {
        for (;;) {
                const char *bar = memchr(text + from, '|', to - from);
                size_t end = bar ? (size_t)(bar - text) : to;
                int r = symbol_check(text, from, end, is_kernel, e);

                if (r != 0)
                        return r;
                if (p->n_symbols == EVENT_ALTERNATES_MAX)
                        return event_refuse_at(e, text, from, "at most %d alternates", EVENT_ALTERNATES_MAX);
                r = symbol_add(text, from, end, p);
                if (r != 0 || !bar)
                        return r;
                from = end + 1;
        }
}

/* SYM[|SYM...][+OFF] or 0xADDR, up to the end of the text. */
static int place_parse(const char *text, size_t from, bool is_kernel, EventName *n, Explanation *e) {
        size_t end = strlen(text);
        const char *plus = memrchr(text + from, '+', end - from);
        ProbePlace *p = &n->place;

        if (strncmp(text + from, "0x", 2) == 0 && event_number(text, from, end, &p->address))
                return 0;
        if (plus) {
                size_t digits = (size_t)(plus + 1 - text);

                if (!event_number(text, digits, end, &p->offset))
                        return event_refuse_at(e, text, digits, "the offset after a symbol is a 64-bit number of bytes, at the "
                                "end of the name");
                if (p->offset != 0 && n->is_return)
                        return event_refuse_at(e, text, digits, "a probe on the return of a function cannot have an offset");
                end = digits - 1;
        }
        return symbols_parse(text, from, end, is_kernel, p, e);
}

int event_parse_kprobe(const char *text, EventName *ret, Explanation *e) {
        size_t colon = strcspn(text, ":");

        ret->kind = EVENT_NAME_KPROBE;
        (void)is_either(text, "kprobe", "kretprobe", &ret->is_return);
        if (text[colon] == '\0')
                return event_refuse_at(e, text, colon, "expected %s:SYMBOL", text);
        return place_parse(text, colon + 1, true, ret, e);
}

/* text[from, to) is a path of a file. */
static int path_parse(const char *text, size_t from, size_t to, EventName *ret, Explanation *e) {
        if (from == to || text[from] != '/')
                return event_refuse_at(e, text, from, "expected the absolute path of an executable or shared object");
        if (text[to - 1] == '/')
                return event_refuse_at(e, text, to - 1, "this path is that of a directory");
        return event_take(text, from, to, &ret->path);
}

/* The last colon of text[from, to). */
static bool last_colon(const char *text, size_t from, size_t to, size_t *ret) {
        const char *colon = to > from ? memrchr(text + from, ':', to - from) : NULL;

        if (!colon)
                return false;
        *ret = (size_t)(colon - text);
        return true;
}

int event_parse_uprobe(const char *text, EventName *ret, Explanation *e) {
        size_t from = strcspn(text, ":") + 1, length = strlen(text), colon;
        int r;

        ret->kind = EVENT_NAME_UPROBE;
        (void)is_either(text, "uprobe", "uretprobe", &ret->is_return);
        if (!last_colon(text, from, length, &colon))
                return event_refuse_at(e, text, length, "expected %s:PATH:SYMBOL", ret->is_return ? "uretprobe" : "uprobe");
        r = path_parse(text, from, colon, ret, e);
        return r == 0 ? place_parse(text, colon + 1, false, ret, e) : r;
}

/* A name of a static probe or external event: letters that fields and commands can do with. */
static int word_parse(const char *text, size_t from, size_t to, const char *what, char **ret, Explanation *e) {
        if (from == to)
                return event_refuse_at(e, text, from, "the %s is missing here", what);
        for (size_t i = from; i < to; i++)
                if (!strchr(WORD_LETTERS "-.", text[i]))
                        return event_refuse_at(e, text, i, "this character is not part of the %s", what);
        return event_take(text, from, to, ret);
}

int event_parse_usdt(const char *text, EventName *ret, Explanation *e) {
        size_t from = strcspn(text, ":") + 1, length = strlen(text), name, provider;
        int r;

        ret->kind = EVENT_NAME_USDT;
        if (!last_colon(text, from, length, &name) || !last_colon(text, from, name, &provider))
                return event_refuse_at(e, text, length, "expected usdt:PATH:PROVIDER:NAME");
        r = path_parse(text, from, provider, ret, e);
        if (r == 0)
                r = check_no_pattern(text, provider + 1, length, "name one probe of those that perfctl available lists for this", e);
        if (r == 0)
                r = word_parse(text, provider + 1, name, "provider", &ret->group, e);
        return r == 0 ? word_parse(text, name + 1, length, "probe's name", &ret->name, e) : r;
}

int event_parse_external(const char *text, EventName *ret, Explanation *e) {
        size_t length = strlen(text), from = strcspn(text, ":");

        ret->kind = EVENT_NAME_EXTERNAL;
        return word_parse(text, from < length ? from + 1 : length, length, "external event's name", &ret->name, e);
}
