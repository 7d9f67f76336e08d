/*
 * Values that stay texts: each is kept as it will be used, and what can be no such text is refused with the byte. What
 * a text names need not exist: that is seen where it is used.
 */
#include "config/value-text.h"

#include <string.h>
#include <sys/un.h>

#include "config/event-name/event-name.h"
#include "config/host.h"
#include "config/text/name.h"
#include "config/text/number.h"
#include "config/text/text.h"
#include "config/text/words.h"
#include "config/value-refusal.h"
#include "daemon/base/cleanup.h"

#define CPUS_MAX 8192 /* NR_CPUS of the largest kernels */
#define FILTER_MAX 4000
#define ACCOUNT_MAX (UINT32_MAX - 1) /* (gid_t)-1 is none: chown(2) leaves the group as it is; and (uid_t)-1 */
#define WORD_MAX 255    /* NAME_MAX */
#define SPACE " \t\r\n"

static int text_set(const char *text, char **to) {
        char *copy = strdup(text);

        if (!copy)
                return error_origin(-ENOMEM);
        free(*to);
        *to = copy;
        return 0;
}

/* What no text may hold. */
static int text_check(const Key *k, const char *text, TextForm form, Explanation *e) {
        size_t offset;
        const char *why = text_error(text, form, &offset);

        return why ? refuse_value_at(k, text, offset, e, why) : 0;
}

/* One number or range of a CPU list, which ends with the text or a comma. */
static bool cpu_range_decode(const char *text, uint64_t *ret_first, uint64_t *ret_last, const char **ret_end) {
        uint64_t first, last;
        const char *end;

        if (!number_decode(text, &first, &end))
                return false;
        last = first;
        if (*end == '-' && !number_decode(end + 1, &last, &end))
                return false;
        if ((*end && *end != ',') || last < first || last >= CPUS_MAX)
                return false;
        *ret_first = first;
        *ret_last = last;
        *ret_end = end;
        return true;
}

/* What is worth a warning: 0 with a text, of which the first is enough. */
static void cpu_note(const Key *k, uint64_t cpu, bool is_repeated, Explanation *e) {
        if (e->text[0])
                return;
        if (is_repeated)
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: CPU %u occurs twice", key_label(k), (unsigned)cpu);
        else if (config_host_cpu((uint32_t)cpu) == HOST_CPU_OFFLINE)
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: CPU %u is offline now", key_label(k), (unsigned)cpu);
}

static int refuse_impossible(const Key *k, const char *text, size_t offset, uint64_t cpu, Explanation *e) {
        char possible[HOST_CPUS_SIZE];
        int r = refuse(e, REFUSED_INVALID, "bad-value", "%s: found %s, and this host cannot have CPU %u: it can have %s "
                "(/sys/devices/system/cpu/possible)", key_label(k), QUOTE(text), (unsigned)cpu,
                       config_host_cpus_text(possible));

        e->position = 1 + (unsigned)offset;
        return r;
}

int cpus_decode(const Key *k, const char *text, char **to, Explanation *e) {
        uint64_t seen[CPUS_MAX / 64] = { 0 }, first, last;
        const char *s = text;

        if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX) /* the same one again and again */
                return refuse_value_at(k, text, TEXT_MAX, e, "which is longer than 4095 bytes");
        for (;;) {
                const char *end;

                if (!cpu_range_decode(s, &first, &last, &end))
                        return refuse_value_at(k, text, (size_t)(s - text), e, "which is not a number or range here");
                for (uint64_t cpu = first; cpu <= last; cpu++) {
                        bool is_repeated = seen[cpu / 64] >> cpu % 64 & 1;

                        if (!is_repeated && config_host_cpu((uint32_t)cpu) == HOST_CPU_IMPOSSIBLE)
                                return refuse_impossible(k, text, (size_t)(s - text), cpu, e);
                        cpu_note(k, cpu, is_repeated, e);
                        seen[cpu / 64] |= (uint64_t)1 << cpu % 64;
                }
                if (!*end)
                        return text_set(text, to);
                s = end + 1;
        }
}

int path_decode(const Key *k, const char *text, char **to, Explanation *e) {
        size_t length = strlen(text);
        int r;

        if (text[0] != '/' || text[length - 1] == '/')
                return refuse_value(k, text, e, "");
        if (length >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return refuse_value(k, text, e, "");
        r = text_check(k, text, TEXT_LINE, e);
        return r != 0 ? r : text_set(text, to);
}

int line_decode(const Key *k, const char *text, char **to, Explanation *e) {
        int r;

        if (!text[0] || strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
                return refuse_value(k, text, e, "");
        r = text_check(k, text, TEXT_LINE, e);
        return r != 0 ? r : text_set(text, to);
}

static int account_check(const Key *k, const char *text, Explanation *e) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
        size_t length = strlen(text);
        const char *end;
        uint64_t id;

        if (length == 0 || length > 32 || strspn(text, letters) != length || text[0] == '-' || text[0] == '.')
                return refuse_value(k, text, e, "");
        if (strspn(text, "0123456789") == length && (!number_decode(text, &id, &end) || id > ACCOUNT_MAX))
                return refuse_value_at(k, text, 0, e, "which is above 4294967294, the highest number of users and groups");
        return 0;
}

int account_decode(const Key *k, const char *text, char **to, Explanation *e) {
        int r = account_check(k, text, e);

        return r != 0 ? r : text_set(text, to);
}

int name_decode(const Key *k, const char *text, char **to, Explanation *e) {
        int r = name_check(key_label(k), text, e);

        return r != 0 ? r : text_set(text, to);
}

/* As it is kept, so that the same event has the same text: braces may be written with spaces and over lines. */
int event_decode(const Key *k, const char *text, char **to, Explanation *e) {
        _cleanup_(event_names_deinit) EventNames n = EVENT_NAMES_NULL;
        _cleanup_free_ char *dense = NULL;
        size_t length = 0;
        int r = event_names_parse(text, &n, e);

        if (r != 0)
                return r < 0 ? r : REFUSED_INVALID;
        dense = strdup(text);
        if (!dense)
                return error_origin(-ENOMEM);
        for (const char *s = text; *s; s++)
                if (!strchr(SPACE, *s))
                        dense[length++] = *s;
        dense[length] = '\0';
        free(*to);
        *to = TAKE_PTR(dense);
        return 0;
}

/* A filter may be folded over lines: to the kernel white space is white space. */
int filter_decode(const Key *k, const char *text, char **to, Explanation *e) {
        _cleanup_free_ char *single = calloc(1, strlen(text) + 1);
        size_t n = 0;
        int r;

        if (!single)
                return error_origin(-ENOMEM);
        r = text_check(k, text, TEXT_LINES, e);
        if (r != 0)
                return r;
        for (size_t i = 0; text[i]; i++) {
                bool is_space = strchr(SPACE, text[i]);

                if (!is_space || (n > 0 && text[i] != '\n' && text[i] != '\r'))
                        single[n++] = text[i];
                else if (n > 0 && single[n - 1] != ' ')
                        single[n++] = ' ';
        }
        while (n > 0 && strchr(" \t", single[n - 1]))
                single[--n] = '\0';
        if (n == 0 || n > FILTER_MAX)
                return refuse_value(k, text, e, "");
        free(*to);
        *to = TAKE_PTR(single);
        return 0;
}

int args_decode(const Key *k, const char *text, char **to, Explanation *e) {
        _cleanup_free_ char *single = calloc(1, strlen(text) + 1);
        size_t n = 0;
        int r;

        if (!single)
                return error_origin(-ENOMEM);
        r = text_check(k, text, TEXT_LINES, e);
        if (r != 0)
                return r;
        for (size_t i = 0; text[i]; i++) {
                bool is_space = strchr(SPACE, text[i]);

                if (!is_space)
                        single[n++] = text[i];
                else if (n > 0 && single[n - 1] != ' ')
                        single[n++] = ' ';
        }
        if (n > 0 && single[n - 1] == ' ')
                single[--n] = '\0';
        if (n == 0 || n > FILTER_MAX)
                return refuse_value(k, text, e, "");
        free(*to);
        *to = TAKE_PTR(single);
        return 0;
}

static bool list_has(const Strings *list, const Index *known, const char *text, uint64_t key) {
        const char *item;

        for (size_t i = 0; !known && i < list->n; i++)
                if (strcmp(list->items[i], text) == 0)
                        return true;
        for (size_t at = 0; known && (item = index_next(known, key, &at));)
                if (strcmp(item, text) == 0)
                        return true;
        return false;
}

/* One more of a list. With 0 and a text in `e` it is in the list already. */
static int list_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e) {
        uint64_t key = known ? index_key_of_name(text) : 0;
        int r;

        if (list_has(to, known, text, key)) {
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: %s occurs twice", key_label(k), QUOTE(text));
                return 0;
        }
        if (to->n >= CONFIG_NAMES_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "bad-value", "%s: more than %d in one list; split it, or use a "
                        "glob", key_label(k), CONFIG_NAMES_MAX);
        r = known ? index_reserve(known, 1) : 0;
        if (r == 0)
                r = strings_add(to, text);
        if (r == 0 && known)
                index_add(known, key, to->items[to->n - 1]);
        return r;
}

int cgroup_name_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e) {
        size_t length = strlen(text);
        int r;

        if (length == 0 || length > TEXT_MAX)
                return refuse_value(k, text, e, "");
        r = text_check(k, text, TEXT_LINE, e);
        if (r != 0)
                return r;
        for (size_t i = 0; i < length; i += strcspn(text + i, "/") + 1)
                if (strncmp(text + i, "..", 2) == 0 && (text[i + 2] == '/' || text[i + 2] == '\0'))
                        return refuse_value_at(k, text, i, e, "which contains '..'");
        return list_add(k, text, to, known, e);
}

int words_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e) {
        size_t length = strlen(text), space = strcspn(text, " ");
        int r;

        if (length == 0 || length > WORD_MAX)
                return refuse_value(k, text, e, "");
        r = text_check(k, text, TEXT_LINE, e);
        if (r != 0)
                return r;
        if (text[space])
                return refuse_value_at(k, text, space, e, "which contains a space");
        return list_add(k, text, to, known, e);
}

int accounts_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e) {
        int r = account_check(k, text, e);

        return r != 0 ? r : list_add(k, text, to, known, e);
}

int counters_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e) {
        _cleanup_(event_names_deinit) EventNames n = EVENT_NAMES_NULL;
        _cleanup_free_ char *group = NULL;
        int r;

        if (asprintf(&group, "{%s}", text) < 0) {
                group = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        r = event_names_parse(group, &n, e);
        if (r == 0 && n.n_members != 1)
                return refuse_value(k, text, e, ": one event each");
        if (r > 0 && e->position > 1)
                e->position--;
        if (r != 0)
                return r < 0 ? r : REFUSED_INVALID;
        return list_add(k, n.texts[0], to, known, e);
}
