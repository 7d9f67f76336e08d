/*
 * Text to value, one function for each type of key. A refusal names the key, what was found and what was expected,
 * and where a near value exists also that: a size that is no power of two has two neighbours that are.
 */
#include "config/value.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/text/number.h"
#include "config/text/words.h"
#include "config/value-refusal.h"
#include "config/value-text.h"
#include "daemon/base/array.h"

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
                return refuse_value_at(k, text, (size_t)(unit - text), e, "whose unit is not one of B, KiB, MiB, GiB");
        n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
        if (n < k->min || n > k->max)
                return refuse_size(k, text, n, e);
        if (k->type == KEY_RING_SIZE && ((n & (n - 1)) != 0 || n < (uint64_t)sysconf(_SC_PAGESIZE)))
                return refuse_size(k, text, n, e);
        *to = n;
        return 0;
}

static int duration_decode(const Key *k, const char *text, uint64_t *to, Explanation *e) {
        static const struct {
                const char *word;
                uint64_t ns;
        } units[] = { { "ns", 1 },           { "us", 1000 },          { "ms", 1000 * 1000 }, { "s", 1000 * 1000 * 1000 },
                      { "m", 60000000000 },  { "min", 60000000000 },   { "h", 3600000000000 } };
        const char *unit;
        uint64_t n;

        if (!number_decode(text, &n, &unit))
                return refuse_value(k, text, e, "");
        if (*unit == '.')
                return refuse_value_at(k, text, (size_t)(unit - text), e, "which is not a whole number: write it in a smaller unit");
        if (!*unit)
                return refuse_value_at(k, text, (size_t)(unit - text), e, "which has no unit: ns, us, ms, s, m, min, h");
        unit += strspn(unit, " ");
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                if (strcmp(units[i].word, unit) != 0)
                        continue;
                if (__builtin_mul_overflow(n, units[i].ns, &n) || n < k->min || n > k->max)
                        return refuse_value(k, text, e, "");
                *to = n;
                return 0;
        }
        return refuse_value_at(k, text, (size_t)(unit - text), e, "whose unit is not one of ns, us, ms, s, m, min, h");
}

static int priority_decode(const Key *k, const char *text, ThreadPriority *to, Explanation *e) {
        bool is_nice = strncmp(text, "nice:", 5) == 0, is_negative = is_nice && text[5] == '-';
        const char *end;
        uint64_t n;

        if (strcmp(text, "normal") == 0) {
                *to = (ThreadPriority){ THREAD_NORMAL, 0 };
                return 0;
        }
        if ((!is_nice && strncmp(text, "fifo:", 5) != 0) || !number_decode(text + 5 + is_negative, &n, &end) || *end)
                return refuse_value(k, text, e, "");
        if (is_nice ? n > (is_negative ? 20 : 19) : n < 1 || n > 99)
                return refuse_value(k, text, e, "");
        *to = (ThreadPriority){ is_nice ? THREAD_NICE : THREAD_FIFO, is_negative ? -(int)n : (int)n };
        return 0;
}

static int mode_decode(const Key *k, const char *text, mode_t *to, Explanation *e) {
        const char *digits = strncmp(text, "0o", 2) == 0 ? text + 2 : text;
        mode_t mode = 0;

        if (text[0] >= '1' && text[0] <= '7' && strlen(text) == 3)
                return refuse_value(k, text, e, ", with a leading zero");
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
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: %s occurs twice", key_label(k), QUOTE(text));
        *to |= (unsigned)bit;
        return 0;
}

static int ids_add(const Key *k, const char *text, ConfigIds *to, Index *known, Explanation *e) {
        uint64_t id;
        size_t at = 0;
        int r;

        r = count_decode(k, text, &id, e);
        if (r != 0)
                return r;
        assert(known); /* ids stand in lists only */
        if (index_next(known, index_key_of_number(id), &at)) {
                (void)refuse(e, REFUSED_EXISTS, NULL, "%s: %u occurs twice", key_label(k), (unsigned)id);
                return 0;
        }
        if (to->n_ids >= CONFIG_IDS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "bad-value", "%s: more than %d in one list; split it into several targets, "
                        "or name a cgroup", key_label(k), CONFIG_IDS_MAX);
        if (!ARRAY_ROOM(to->ids, to->n_ids))
                return error_origin(-ENOMEM);
        r = index_reserve(known, 1);
        if (r < 0)
                return r;
        to->ids[to->n_ids++] = (uint32_t)id;
        index_add(known, index_key_of_number(id), to); /* any pointer: the key says all */
        return 0;
}

/* A switch over the types of keys. */
static int decode(const Key *k, const char *text, void *to, Index *known, Explanation *e) {
        *e = EXPLANATION_NULL;
        switch (k->type) {
        case KEY_COUNT:
                return count_decode(k, text, to, e);
        case KEY_SIZE:
        case KEY_RING_SIZE:
                return size_decode(k, text, to, e);
        case KEY_DURATION:
                return duration_decode(k, text, to, e);
        case KEY_PRIORITY:
                return priority_decode(k, text, to, e);
        case KEY_MODE:
                return mode_decode(k, text, to, e);
        case KEY_BOOL:
                return bool_decode(k, text, to, e);
        case KEY_CHOICE:
                return choice_find(k, text, to, e);
        case KEY_CHOICES:
                return choices_add(k, text, to, e);
        case KEY_IDS:
                return ids_add(k, text, to, known, e);
        case KEY_PATH:
                return path_decode(k, text, to, e);
        case KEY_TEXT:
                return line_decode(k, text, to, e);
        case KEY_ACCOUNT:
                return account_decode(k, text, to, e);
        case KEY_NAME:
                return name_decode(k, text, to, e);
        case KEY_EVENT:
                return event_decode(k, text, to, e);
        case KEY_FILTER:
                return filter_decode(k, text, to, e);
        case KEY_ARGS:
                return args_decode(k, text, to, e);
        case KEY_CPUS:
                return cpus_decode(k, text, to, e);
        case KEY_CGROUP:
        case KEY_CGROUPS:
                return cgroup_name_add(k, text, to, known, e);
        case KEY_WORDS:
                return words_add(k, text, to, known, e);
        case KEY_ACCOUNTS:
                return accounts_add(k, text, to, known, e);
        case KEY_COUNTERS:
                return counters_add(k, text, to, known, e);
        case KEY_SECTION:
        case KEY_NAMED:
        case KEY_EVENTS:
        case KEY_RULES:
        case KEY_ATTR:
        case KEY_FIELDS:
        case _KEY_TYPE_MAX:
                break;
        }
        assert(false);
        return -EINVAL;
}

int value_decode(const Key *k, const char *text, void *object, Explanation *e) {
        return decode(k, text, (char *)object + k->offset, NULL, e);
}

int value_add(const Key *k, const char *text, void *object, Index *known, Explanation *e) {
        return decode(k, text, (char *)object + k->offset, known, e);
}

/* Only another key of the same list can have filled it: `cgroup`. */
int value_index(const Key *k, const void *object, Index *ret) {
        const Strings *list = (const Strings *)((const char *)object + k->offset);
        int r;

        if (k->type != KEY_CGROUPS)
                return 0;
        r = index_reserve(ret, list->n);
        for (size_t i = 0; i < list->n && r == 0; i++)
                index_add(ret, index_key_of_name(list->items[i]), list->items[i]);
        return r;
}

static const Key *key_of(const char *pattern) {
        for (size_t i = 0; i < n_config_keys; i++)
                if (strcmp(config_keys[i].pattern, pattern) == 0)
                        return &config_keys[i];
        assert(false);
        return NULL;
}

int value_decode_to(const char *pattern, const char *text, void *to, Explanation *e) {
        return decode(key_of(pattern), text, to, NULL, e);
}

int value_check_number(const char *pattern, uint64_t number, Explanation *e) {
        const Key *k = key_of(pattern);

        if (number >= k->min && number <= k->max)
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-value", "%s: found %llu%s, expected %s", key_label(k), (unsigned long long)number,
                      k->type == KEY_DURATION ? " ns" : "", k->range);
}

void value_deinit(const Key *k, void *object) {
        void *value = (char *)object + k->offset;

        switch (k->type) {
        case KEY_PATH:
        case KEY_TEXT:
        case KEY_ACCOUNT:
        case KEY_NAME:
        case KEY_EVENT:
        case KEY_FILTER:
        case KEY_ARGS:
        case KEY_CPUS:
                free(*(char **)value);
                *(char **)value = NULL;
                break;
        case KEY_CGROUP:
        case KEY_CGROUPS:
        case KEY_WORDS:
        case KEY_ACCOUNTS:
        case KEY_COUNTERS:
        case KEY_ATTR:
        case KEY_FIELDS:
                strings_deinit(value);
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
