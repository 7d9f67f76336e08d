/*
 * A running event may be called as a user likes, with commas too. So the names are asked for as they were written, and only if
 * one of them is none they are taken for what other tools call an event.
 *
 * What does not run is added for as long as the verb runs, as perf-trace(1) and bpftrace(8) do it; and so is all where an
 * option says how it is to be sampled, because what runs is others' too. These events end with a connection of their own.
 */
#include "client/perfctl/subscribe-events.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/near-event.h"
#include "client/perfctl/spec-options.h"
#include "client/perfctl/target.h"

#define UNKNOWN_EVENT (-1) /* the daemon's no, of which nothing was said */

/* 0, UNKNOWN_EVENT, or an exit status after a message. */
static int subscribe(Perfctl *p, const EventWords *words, const EventSubscription *s) {
        perfd_subscription chosen = *s->subscription;
        int r = s->choose ? s->choose(s->userdata, words, &chosen) : 0;

        if (r != 0)
                return r;
        chosen.events = (const char *const *)words->names;
        chosen.n_events = words->n;
        r = perfd_subscribe(p->client, &chosen, s->callbacks, s->userdata);
        if (r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0)
                return UNKNOWN_EVENT;
        return r == 0 ? 0 : perfctl_fail_client(p, s->subscription->where);
}

/* ---- what is added ----------------------------------------------------------------------------------------------- */

static bool selects(const char *word, const perfd_event_row *row) {
        char id[16];

        (void)snprintf(id, sizeof(id), "#%u", row->id);
        if (word[0] == '@')
                return fnmatch(word + 1, row->spec->group, 0) == 0;
        return strcmp(word, id) == 0 || strcmp(word, row->spec->name) == 0 || fnmatch(word, row->spec->name, 0) == 0;
}

static bool is_running(const char *word, const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (!*row->waiting && selects(word, row))
                        return true;
        return false;
}

/* "@GROUP" and "#ID" are what runs; a stream knows names only. */
static bool is_reference(const char *word) {
        return word[0] == '@' || word[0] == '#';
}

/* What runs and is called so, of a reference by the names that it means; else the word itself. */
static void take_running(EventWords *names, const char *word, const perfd_result *list) {
        const perfd_event_row *row;

        if (!is_reference(word)) {
                event_words_take(names, word);
                return;
        }
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (!*row->waiting && selects(word, row))
                        event_words_take(names, row->spec->name);
}

/* References become names. */
static int expand_references(Perfctl *p, EventWords *words) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        __attribute__((cleanup(event_words_deinit))) EventWords before = EVENT_WORDS_NULL;
        size_t n = 0;

        for (size_t i = 0; i < words->n; i++)
                n += is_reference(words->names[i]);
        if (n == 0)
                return 0;
        if (perfd_list(p->client, NULL, &list) != 0)
                return perfctl_fail_client(p, NULL);
        before = *words;
        *words = EVENT_WORDS_NULL;
        for (size_t i = 0; i < before.n; i++) {
                if (is_reference(before.names[i]) && !is_running(before.names[i], list))
                        return perfctl_fail(p, PERFCTL_FAILED, "no running event is %s %s: `perfctl list` shows them",
                                            before.names[i][0] == '@' ? "in a group called" : "of the id", before.names[i] + 1);
                take_running(words, before.names[i], list);
        }
        return 0;
}

/* An event of this name is another one's. */
static bool has_name(const char *name, const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strcmp(name, row->spec->name) == 0)
                        return true;
        return false;
}

/* Called as they are, unless that is the name of one that runs. */
static void name_specs(perfd_event_spec *specs, size_t n, const perfd_result *list) {
        for (size_t i = 0; i < n; i++) {
                char *name = NULL;

                if (!has_name(specs[i].event, list))
                        continue;
                must_have(asprintf(&name, "%s~%d", specs[i].event, (int)getpid()) < 0 ? NULL : name);
                specs[i].name = name;
        }
}

static void free_names(perfd_event_spec *specs, size_t n) {
        for (size_t i = 0; i < n; i++)
                free((char *)specs[i].name);
}

/* On the connection that there is; what they are called goes to `names`. */
static int add_specs(Perfctl *p, perfd_event_spec *specs, size_t n, EventWords *names) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_ref_row *ref;

        if (perfd_add_temporary(p->client, specs, n, &result) != 0) {
                int r = target_fail(p, specs_mistaken_text(specs, n, perfd_client_error(p->client)->reason));

                near_event_tell(p, specs, n);
                return r;
        }
        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++)
                event_words_take(names, ref->name);
        for (size_t i = 0; perfd_result_note(result, i); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
        return 0;
}

/* What the process does until it executes the command is ours. Its attrs, malloc'ed, as long as the spec lives. */
static const char **observe_from_exec(perfd_event_spec *s, int pid) {
        const char **attr = must_have(calloc(s->n_attr + 1, sizeof(*attr)));
        uint32_t *pids = must_have(malloc(sizeof(*pids)));

        *pids = (uint32_t)pid;
        s->pids = pids;
        s->n_pids = 1;
        for (size_t i = 0; i < s->n_attr; i++)
                attr[i] = s->attr[i];
        attr[s->n_attr++] = "enable-on-exec=true";
        s->attr = attr;
        return attr;
}

/* pid: of a command that is to be executed; 0: none. */
static int add_words(Perfctl *p, EventWords *words, const perfd_result *list, int pid, EventWords *names) {
        perfd_event_spec each = PERFD_EVENT_SPEC_INIT, *specs = NULL;
        const char **attr = NULL;
        int r = spec_options_parse(p, &each);

        if (r == 0 && pid > 0)
                attr = observe_from_exec(&each, pid);
        if (r == 0)
                r = event_words_find(words, p, EVENT_WHERE_OFFERED);
        if (r == 0)
                r = specs_new(p, words, &each, &specs);
        if (r == 0) {
                name_specs(specs, words->n, list);
                r = add_specs(p, specs, words->n, names);
                free_names(specs, words->n);
                specs_free(specs, words->n);
        }
        target_deinit(&each);
        free(attr);
        return r;
}

static int fail_no_event(const Perfctl *p) {
        if (p->command)
                return perfctl_fail(p, PERFCTL_USAGE,
                                    "which event of the command? as in `perfctl %s sched:sched_process_exec -- make`",
                                    p->verb->name);
        return perfctl_fail(p, PERFCTL_USAGE,
                            "which event? with options that say how an event is sampled, or which target it has, it is "
                            "added for the time of this command, as in `perfctl %s sched:sched_switch --pid 1`",
                            p->verb->name);
}

/* Those of `words` that do not run are added, or all with `is_new`; what is to be subscribed to goes to `names`. */
static int add_missing(Perfctl *p, const EventWords *words, bool is_new, int pid, EventWords *names) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        __attribute__((cleanup(event_words_deinit))) EventWords missing = EVENT_WORDS_NULL;

        if (words->n == 0)
                return fail_no_event(p);
        if (perfd_list(p->client, NULL, &list) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; i < words->n; i++)
                if (is_new || !is_running(words->names[i], list))
                        event_words_take(&missing, words->names[i]);
                else
                        take_running(names, words->names[i], list);
        return missing.n > 0 ? add_words(p, &missing, list, pid, names) : 0;
}

/* The connection on which they were added stays, and the stream gets one of its own. */
static int subscribe_to_added(Perfctl *p, const EventWords *words, bool is_new, const EventSubscription *s,
                              perfd_client **ret_keeper) {
        __attribute__((cleanup(event_words_deinit))) EventWords names = EVENT_WORDS_NULL;
        int r = add_missing(p, words, is_new, s->pid, &names);

        if (r != 0)
                return r;
        *ret_keeper = p->client;
        p->client = NULL;
        r = perfctl_connect(p);
        if (r == 0)
                r = subscribe(p, &names, s);
        return r == UNKNOWN_EVENT ? perfctl_fail_client(p, NULL) : r;
}

/* ---- what runs --------------------------------------------------------------------------------------------------- */

/* All that runs is asked for: somebody at a terminal may wait for nothing. */
static void warn_of_none(const Perfctl *p, const perfd_result *list) {
        if (!perfd_result_event(list, 0))
                (void)perfctl_fail(
                        p, PERFCTL_OK,
                        "no running events: waiting for events that other clients add. `perfctl watch EVENT` adds one "
                        "for as long as it runs, as `perfctl watch sched:sched_process_exec`; `perfctl available` lists them");
}

/* Of a pattern it is easily thought that it means all that the kernel has, and an event that is disabled looks quiet. */
static void warn_of_word(const Perfctl *p, const char *word, const perfd_result *list) {
        const perfd_event_row *row;
        size_t n = 0, n_enabled = 0;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++) {
                if (*row->waiting || !selects(word, row))
                        continue;
                n++;
                n_enabled += row->enabled;
        }
        if (n > 0 && n_enabled == 0)
                (void)perfctl_fail(p, PERFCTL_OK,
                                   "%s is disabled: it delivers no samples until it is enabled, as by `perfctl enable "
                                   "'%s'`",
                                   word, word);
        else if (n > 0 && strpbrk(word, "*?[") && !is_reference(word))
                (void)perfctl_fail(
                        p, PERFCTL_OK,
                        "of '%s' these are the %zu that run, and not all that `perfctl available '%s'` lists", word, n,
                        word);
}

/* Who looks at a terminal and sees nothing. */
static int warn_of_silence(Perfctl *p, const EventWords *words) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;

        if (!p->human)
                return 0;
        if (perfd_list(p->client, NULL, &list) != 0)
                return perfctl_fail_client(p, NULL);
        if (words->n == 0)
                warn_of_none(p, list);
        for (size_t i = 0; i < words->n; i++)
                warn_of_word(p, words->names[i], list);
        return 0;
}

static int subscribe_by_names(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL, others = EVENT_WORDS_NULL;
        int r;

        event_words_take_all(&words, p);
        r = s->is_watched ? warn_of_silence(p, &words) : 0;
        if (r == 0)
                r = expand_references(p, &words);
        if (r == 0)
                r = subscribe(p, &words, s);
        if (r != UNKNOWN_EVENT)
                return r;
        r = event_words_add_all(&others, p);
        if (r == 0)
                r = event_words_find(&others, p, EVENT_WHERE_RUNNING);
        if (r == 0)
                r = subscribe(p, &others, s);
        if (r != UNKNOWN_EVENT)
                return r;
        return perfd_client_may_change(p->client) ? subscribe_to_added(p, &others, false, s, ret_keeper)
                                                  : perfctl_fail_client(p, NULL);
}

int subscribe_to_events(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        int r;

        if (!spec_options_given(p) && s->pid == 0)
                return subscribe_by_names(p, s, ret_keeper);
        r = event_words_add_all(&words, p);
        return r == 0 ? subscribe_to_added(p, &words, true, s, ret_keeper) : r;
}
