/*
 * From names of users and groups to numbers. Only /etc/passwd and /etc/group are read, once each, and never the name service
 * (nsswitch.conf(5)): what it asks may be another machine, and perfd would wait for it. Who is in a group is not asked at all:
 * the kernel says of each client which groups it has.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "config/host.h"
#include "config/parse/parts.h"
#include "config/text/number.h"
#include "config/text/words.h"
#include "config/value-text.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/error-trail.h"
#include "daemon/base/fd-limit.h"

/* A name, and where its number goes. */
typedef struct Account {
        const char *name;
        ConfigRule *rule;
        bool is_found;
} Account;

typedef struct Accounts {
        Account *items; /* by name */
        size_t n;
        bool are_groups;
} Accounts;

static void accounts_deinit(Accounts *a) {
        free(a->items);
}

static int account_compare(const void *a, const void *b) {
        return strcmp(((const Account *)a)->name, ((const Account *)b)->name);
}

/* There is room for all that are written. */
static void rule_add(ConfigRule *rule, bool is_group, uint32_t id) {
        if (is_group)
                rule->gids[rule->n_gids++] = id;
        else
                rule->uids[rule->n_uids++] = id;
}

/* Numbers at once, names into the list. */
static void accounts_take(Accounts *a, ConfigRule *rule) {
        const Strings *written = a->are_groups ? &rule->groups : &rule->users;

        for (size_t i = 0; i < written->n; i++) {
                const char *text = written->items[i], *end;
                uint64_t id;

                if (number_decode(text, &id, &end) && !*end)
                        rule_add(rule, a->are_groups, (uint32_t)id);
                else
                        a->items[a->n++] = (Account){ .name = text, .rule = rule };
        }
}

static int accounts_init(Accounts *a, Config *c, bool are_groups) {
        size_t n = 0;

        *a = (Accounts){ .are_groups = are_groups };
        for (size_t i = 0; i < c->n_rules; i++) {
                ConfigRule *rule = &c->rules[i];
                size_t n_written = are_groups ? rule->groups.n : rule->users.n;
                uint32_t *ids = calloc(n_written + 1, sizeof(*ids));

                if (!ids)
                        return error_origin(-ENOMEM);
                *(are_groups ? &rule->gids : &rule->uids) = ids;
                n += n_written;
        }
        a->items = calloc(n + 1, sizeof(*a->items));
        if (!a->items)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < c->n_rules; i++)
                accounts_take(a, &c->rules[i]);
        qsort(a->items, a->n, sizeof(*a->items), account_compare);
        return 0;
}

/* The first line of a name counts, as it does for getpwnam(3); it may stand in several rules. */
static void accounts_found(Accounts *a, const char *name, uint32_t id) {
        const Account *found = bsearch(&(Account){ .name = name }, a->items, a->n, sizeof(*a->items), account_compare);
        size_t first = found ? (size_t)(found - a->items) : 0;

        if (!found || found->is_found)
                return;
        while (first > 0 && strcmp(a->items[first - 1].name, name) == 0)
                first--;
        for (size_t i = first; i < a->n && strcmp(a->items[i].name, name) == 0; i++) {
                a->items[i].is_found = true;
                rule_add(a->items[i].rule, a->are_groups, id);
        }
}

/*
 * The whole file into memory, because others may be served at a checkpoint and have the reserve then. NULL: it is not
 * readable.
 */
static FILE *accounts_open(const char *path, char **ret_bytes) {
        WITH_FD_RESERVE;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        size_t size = 0, n = 0;
        char *bytes = NULL;

        while (f && !feof(f) && !ferror(f)) {
                if (n == size) {
                        char *more = realloc(bytes, size = size * 2 + 4096);

                        if (!more)
                                break;
                        bytes = more;
                }
                n += fread(bytes + n, 1, size - n, f);
        }
        *ret_bytes = bytes;
        return bytes && n > 0 && f && feof(f) ? fmemopen(bytes, n, "r") : NULL;
}

/* A file that is not there, or empty, has no names. */
static int accounts_read(Accounts *a, const char *path) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_fclose_ FILE *f = a->n > 0 ? accounts_open(path, &bytes) : NULL;
        const struct passwd *user;
        const struct group *group;
        int r = 0;

        while (f && r == 0 && !a->are_groups && (user = fgetpwent(f))) {
                accounts_found(a, user->pw_name, user->pw_uid);
                r = checkpoint(NULL);
        }
        while (f && r == 0 && a->are_groups && (group = fgetgrent(f))) {
                accounts_found(a, group->gr_name, group->gr_gid);
                r = checkpoint(NULL);
        }
        return r;
}

static int accounts_resolve(Build *b, bool are_groups) {
        const char *path = are_groups ? "/etc/group" : "/etc/passwd";
        _cleanup_(accounts_deinit) Accounts a = { .items = NULL };
        int r = accounts_init(&a, b->config, are_groups);

        if (r != 0 || !config_has_host())
                return r;
        r = accounts_read(&a, path);
        for (size_t i = 0; i < a.n && r == 0; i++)
                if (!a.items[i].is_found)
                        config_diagnostics_add_warning(b->diagnostics, a.items[i].rule->at, "%s: %s is not in %s, so the rule does "
                                "not match that name; write the number of an account of another database",
                                                       are_groups ? "groups" : "users", QUOTE(a.items[i].name), path);
        return r;
}

int rules_resolve(Build *b) {
        int r = accounts_resolve(b, false);

        return r == 0 ? accounts_resolve(b, true) : r;
}
