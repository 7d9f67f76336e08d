/*
 * Text to value, one function for each type of key. A refusal names the key, what was found and what was expected,
 * and where a near value exists also that: a size that is no power of two has two neighbours that are.
 */
#include "config/value.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "config/array.h"
#include "config/config.h"
#include "config/event-name.h"
#include "config/name.h"
#include "config/words.h"

#define CPUS_MAX 8192 /* NR_CPUS of the largest kernels */
#define FILTER_MAX 4000

static int refuse_value(const Key *k, const char *text, Explanation *e, const char *more) {
        return refuse(e, REFUSED_INVALID, "bad-value", "%s: found %s, expected %s%s", key_label(k), QUOTE(text),
                      k->range, more);
}

static int refuse_value_at(const Key *k, const char *text, size_t offset, Explanation *e, const char *why) {
        int r = refuse(e, REFUSED_INVALID, "bad-value", "%s: found %s, %s; expected %s", key_label(k), QUOTE(text), why,
                       k->range);

        e->position = 1 + (unsigned)offset;
        return r;
}

/* Digits only: no sign, no space, no overflow. Gives what follows them. */
static bool number_decode(const char *text, uint64_t *ret, const char **ret_end) {
        uint64_t n = 0;
        const char *s = text;

        for (; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
                        return false;
        if (s == text)
                return false;
        *ret = n;
        *ret_end = s;
        return true;
}

static int count_decode(const Key *k, const char *text, uint64_t *to, Explanation *e) {
        const char *end;
        uint64_t n;

        if (!number_decode(text, &n, &end) || *end || n < k->min || n > k->max)
                return refuse_value(k, text, e, "");
        *to = n;
        return 0;
}

static bool unit_decode(const char *unit, unsigned *ret_shift) {
        static const struct {
                const char *word;
                unsigned shift;
        } units[] = { { "", 0 }, { "B", 0 }, { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 } };

        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(units[i].word, unit) == 0) {
                        *ret_shift = units[i].shift;
                        return true;
                }
        return false;
}

/* "2MiB": the largest unit that leaves a whole number. */
static void size_encode(uint64_t n, char ret[static 32]) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
        unsigned unit = 0;

        for (; unit < ARRAY_SIZE(units) - 1 && n >= 1024 && n % 1024 == 0; unit++)
                n /= 1024;
        (void)snprintf(ret, 32, "%llu%s", (unsigned long long)n, units[unit]);
}

static int refuse_size(const Key *k, const char *text, uint64_t n, Explanation *e) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), least = k->min > page ? k->min : page, below = least;
        char small[32], large[32], more[96];

        if (k->type != KEY_RING_SIZE || n < least || n > k->max) {
                size_encode(n < least ? least : k->max, small);
                (void)snprintf(more, sizeof(more), "; the nearest is %s", small);
        } else {
                while (below * 2 < n)
                        below *= 2;
                size_encode(below, small);
                size_encode(below * 2, large);
                (void)snprintf(more, sizeof(more), "; the nearest are %s and %s", small, large);
        }
        return refuse_value(k, text, e, more);
}

static int size_decode(const Key *k, const char *text, uint64_t *to, Explanation *e) {
        const char *unit;
        unsigned shift;
        uint64_t n;

        if (!number_decode(text, &n, &unit))
                return refuse_value(k, text, e, "");
        unit += strspn(unit, " ");
        if (!unit_decode(unit, &shift))
                return refuse_value_at(k, text, (size_t)(unit - text), e, "whose unit is none of B, KiB, MiB, GiB");
        n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
        if (n < k->min || n > k->max)
                return refuse_size(k, text, n, e);
        if (k->type == KEY_RING_SIZE && ((n & (n - 1)) != 0 || n < (uint64_t)sysconf(_SC_PAGESIZE)))
                return refuse_size(k, text, n, e);
        *to = n;
        return 0;
}

static int mode_decode(const Key *k, const char *text, mode_t *to, Explanation *e) {
        const char *digits = strncmp(text, "0o", 2) == 0 ? text + 2 : text;
        mode_t mode = 0;

        if (text[0] >= '1' && text[0] <= '7' && strlen(text) == 3)
                return refuse_value(k, text, e, ", with a zero in front");
        if (text[0] != '0' || !*digits || strspn(digits, "01234567") != strlen(digits) || strlen(digits) > 4)
                return refuse_value(k, text, e, "");
        for (; *digits; digits++)
                mode = mode * 8 + (mode_t)(*digits - '0');
        if (mode > 0777)
                return refuse_value(k, text, e, "");
        *to = mode;
        return 0;
}

static int bool_decode(const Key *k, const char *text, bool *to, Explanation *e) {
        bool value = strcmp(text, "true") == 0;

        if (!value && strcmp(text, "false") != 0)
                return refuse_value(k, text, e, "");
        *to = value;
        return 0;
}

static int choice_find(const Key *k, const char *text, int *ret, Explanation *e) {
        Nearest near = NEAREST_NULL;

        for (const KeyChoice *c = k->choices; c->word; c++) {
                if (strcmp(c->word, text) == 0) {
                        *ret = c->value;
                        return 0;
                }
                nearest_add(&near, text, c->word);
        }
        return refuse_value(k, text, e, HINT(&near));
}

static int choices_add(const Key *k, const char *text, unsigned *to, Explanation *e) {
        int bit, r;

        r = choice_find(k, text, &bit, e);
        if (r != 0)
                return r;
        if (*to & (unsigned)bit)
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: %s stands here twice", key_label(k), QUOTE(text));
        *to |= (unsigned)bit;
        return 0;
}

static int ids_add(const Key *k, const char *text, ConfigIds *to, Explanation *e) {
        uint64_t id;
        int r;

        r = count_decode(k, text, &id, e);
        if (r != 0)
                return r;
        for (size_t i = 0; i < to->n_ids; i++)
                if (to->ids[i] == id) {
                        (void)refuse(e, REFUSED_EXISTS, NULL, "%s: %u stands here twice", key_label(k), (unsigned)id);
                        return 0;
                }
        if (to->n_ids >= CONFIG_TARGETS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-value", "%s: more than %d in one list", key_label(k),
                              CONFIG_TARGETS_MAX);
        if (!ARRAY_ROOM(to->ids, to->n_ids))
                return -ENOMEM;
        to->ids[to->n_ids++] = (uint32_t)id;
        return 0;
}

static int text_set(const char *text, char **to) {
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
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

static int cpus_decode(const Key *k, const char *text, char **to, Explanation *e) {
        uint64_t seen[CPUS_MAX / 64] = { 0 }, first, last;
        const char *s = text;
        bool is_repeated = false;

        for (;;) {
                const char *end;

                if (!cpu_range_decode(s, &first, &last, &end))
                        return refuse_value_at(k, text, (size_t)(s - text), e, "which here is no number or range");
                for (uint64_t cpu = first; cpu <= last && !is_repeated; cpu++) { /* the first is enough to say */
                        is_repeated = seen[cpu / 64] & (uint64_t)1 << cpu % 64;
                        if (is_repeated)
                                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: CPU %u stands here twice", key_label(k),
                                             (unsigned)cpu);
                        seen[cpu / 64] |= (uint64_t)1 << cpu % 64;
                }
                if (!*end)
                        return text_set(text, to);
                s = end + 1;
        }
}

static int path_decode(const Key *k, const char *text, char **to, Explanation *e) {
        size_t length = strlen(text);

        if (text[0] != '/' || text[length - 1] == '/')
                return refuse_value(k, text, e, "");
        if (length >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return refuse_value(k, text, e, "");
        for (size_t i = 0; i < length; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                        return refuse_value_at(k, text, i, e, "which has a control character in it");
        return text_set(text, to);
}

static int account_decode(const Key *k, const char *text, char **to, Explanation *e) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
        size_t length = strlen(text);

        if (length == 0 || length > 32 || strspn(text, letters) != length || text[0] == '-' || text[0] == '.')
                return refuse_value(k, text, e, "");
        return text_set(text, to);
}

static int name_decode(const Key *k, const char *text, char **to, Explanation *e) {
        int r = name_check(key_label(k), text, e);

        return r != 0 ? r : text_set(text, to);
}

static int event_decode(const Key *k, const char *text, char **to, Explanation *e) {
        _cleanup_(event_name_deinit) EventName n = EVENT_NAME_NULL;
        int r = event_name_parse(text, &n, e);

        if (r != 0)
                return r < 0 ? r : REFUSED_INVALID;
        return text_set(text, to);
}

/* A filter may be folded over lines: to the kernel white space is white space. */
static int filter_decode(const Key *k, const char *text, char **to, Explanation *e) {
        _cleanup_free_ char *single = calloc(1, strlen(text) + 1);
        size_t n = 0;

        if (!single)
                return -ENOMEM;
        for (size_t i = 0; text[i]; i++) {
                bool is_space = strchr(" \t\r\n", text[i]);

                if (!is_space && ((unsigned char)text[i] < ' ' || text[i] == 0x7f))
                        return refuse_value_at(k, text, i, e, "which has a control character in it");
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

/* A switch over the types of keys. */
int value_decode(const Key *k, const char *text, void *object, Explanation *e) {
        void *to = (char *)object + k->offset;

        *e = EXPLANATION_NULL;
        switch (k->type) {
        case KEY_COUNT:
                return count_decode(k, text, to, e);
        case KEY_SIZE:
        case KEY_RING_SIZE:
                return size_decode(k, text, to, e);
        case KEY_MODE:
                return mode_decode(k, text, to, e);
        case KEY_BOOL:
                return bool_decode(k, text, to, e);
        case KEY_CHOICE:
                return choice_find(k, text, to, e);
        case KEY_CHOICES:
                return choices_add(k, text, to, e);
        case KEY_IDS:
                return ids_add(k, text, to, e);
        case KEY_PATH:
                return path_decode(k, text, to, e);
        case KEY_ACCOUNT:
                return account_decode(k, text, to, e);
        case KEY_NAME:
                return name_decode(k, text, to, e);
        case KEY_EVENT:
                return event_decode(k, text, to, e);
        case KEY_FILTER:
                return filter_decode(k, text, to, e);
        case KEY_CPUS:
                return cpus_decode(k, text, to, e);
        case KEY_SECTION:
        case KEY_NAMED:
        case KEY_EVENTS:
        case KEY_LATER:
        case _KEY_TYPE_MAX:
                break;
        }
        assert(false);
        return -EINVAL;
}

static void value_deinit(const Key *k, void *object) {
        void *value = (char *)object + k->offset;

        switch (k->type) {
        case KEY_PATH:
        case KEY_ACCOUNT:
        case KEY_NAME:
        case KEY_EVENT:
        case KEY_FILTER:
        case KEY_CPUS:
                free(*(char **)value);
                *(char **)value = NULL;
                break;
        case KEY_IDS:
                free(((ConfigIds *)value)->ids);
                *(ConfigIds *)value = (ConfigIds){ .ids = NULL };
                break;
        default:
                break;
        }
}

int values_set_defaults(KeyOwner owner, void *object) {
        for (size_t i = 0; i < n_config_keys; i++) {
                const Key *k = &config_keys[i];
                Explanation e;
                int r;

                if (!k->default_text || key_owner(k) != owner)
                        continue;
                r = value_decode(k, k->default_text, object, &e);
                if (r < 0)
                        return r;
                assert(r == 0);
        }
        return 0;
}

void values_deinit(KeyOwner owner, void *object) {
        for (size_t i = 0; i < n_config_keys; i++)
                if (key_owner(&config_keys[i]) == owner)
                        value_deinit(&config_keys[i], object);
}
