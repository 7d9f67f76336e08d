/*
 * A running event may be called as a user likes, with commas too. So the names are asked for as they were written, and only if
 * one of them is none they are taken for what other tools call an event.
 *
 * What does not run is added for as long as the verb runs, as perf-trace(1) and bpftrace(8) do it; and so is all where an
 * option says how it is to be sampled, because what runs is others' too. These events end with a connection of their own. Those who
 * want the same share one, which ends with the last of them: so what others have added by the name of the kernel, to end with them,
 * is asked for once more, and never only subscribed to.
 */
#include "client/perfctl/events/subscribe-events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/added-names.h"
#include "client/perfctl/events/function-globs.h"
#include "client/perfctl/events/near-event.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/running-events.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/events/target.h"

#define QUEUE_LEAST 65536 /* of the daemon, which would take it instead: proto/PROTOCOL.md, Limits */
#define TERMINAL_LATENCY UINT64_C(50000000) /* ns: what somebody who looks at lines does not notice */
#define TABLE_LATENCY UINT64_C(100000000) /* ns, of tables that nobody looks at: the daemon's default, which its configuration may raise */
#define INTERVAL_PARTS 4 /* a sample comes within one of them, and so in its own table or in the next one */
#define UNKNOWN_EVENT (-1) /* the daemon's no, of which nothing was said */
#define NAME_RETRIES 3      /* with the process id in each name: a second one is for what others call theirs */

static bool is_refused(const Perfctl *p, int r, const char *reason) {
        return r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, reason) == 0;
}

static uint64_t choose_latency(const Perfctl *p, const EventSubscription *s) {
        const uint64_t part = s->interval / INTERVAL_PARTS, most = p->human ? TERMINAL_LATENCY : TABLE_LATENCY;

        if (s->subscription->latency > 0)
                return s->subscription->latency;
        if (s->interval > 0)
                return part < most ? part : most;
        return s->is_watched && (p->human || p->is_of_several) ? TERMINAL_LATENCY : 0;
}

/* What the daemon does not allow is asked for again as it may be: less, by its default, or by all that the interval allows. */
static int request(Perfctl *p, const EventSubscription *s, perfd_subscription *chosen) {
        const uint64_t longest = s->interval / INTERVAL_PARTS;
        int r;

        chosen->latency = choose_latency(p, s);
        r = perfd_subscribe(p->client, chosen, s->callbacks, s->userdata);
        if (is_refused(p, r, "not-granted") && chosen->records != s->subscription->records) {
                chosen->records = s->subscription->records;
                *s->ret_lacks_records = true;
                r = perfd_subscribe(p->client, chosen, s->callbacks, s->userdata);
        }
        if (is_refused(p, r, "not-granted") && chosen->payload == PERFD_PAYLOAD_RAW) { /* fields take longer, and do as well */
                chosen->payload = PERFD_PAYLOAD_FIELDS;
                r = perfd_subscribe(p->client, chosen, s->callbacks, s->userdata);
        }
        if (!is_refused(p, r, "bad-latency") || s->subscription->latency > 0 || (s->interval > 0 && chosen->latency >= longest))
                return r;
        chosen->latency = longest;
        return perfd_subscribe(p->client, chosen, s->callbacks, s->userdata);
}

static int fail_interval(const Perfctl *p, uint64_t interval) {
        char text[QUANTITY_SIZE];

        return perfctl_fail(p, PERFCTL_FAILED, "tables every %s are not possible here: samples have to come within a quarter of this time, "
                            "and %s; give --interval at least four times the latency that is possible",
                            quantity_show_time(interval, text), perfd_client_error(p->client)->message);
}

/* 0, UNKNOWN_EVENT, or an exit status after a message. */
static int subscribe(Perfctl *p, const EventWords *words, const EventSubscription *s) {
        perfd_subscription chosen = *s->subscription;
        int r = s->choose ? s->choose(s->userdata, words, &chosen) : 0;

        if (r != 0)
                return r;
        chosen.events = (const char *const *)words->names;
        chosen.n_events = words->n;
        r = request(p, s, &chosen);
        if (is_refused(p, r, "unknown-event"))
                return UNKNOWN_EVENT;
        if (s->interval > 0 && (is_refused(p, r, "bad-latency") || is_refused(p, r, "too-many-wakeups")))
                return fail_interval(p, s->interval);
        if (r != 0)
                return perfctl_fail_client(p, s->subscription->where);
        for (size_t i = 0; i < words->n; i++)
                event_words_take(s->ret_words, words->names[i]);
        return 0;
}

/* Where it is told what was added. */
typedef struct AddedTo {
        EventWords names; /* that are to be subscribed to */
        TypedNames *typed;
} AddedTo;

/* ---- what is added ----------------------------------------------------------------------------------------------- */

/* What runs and is called so, of a reference by the names that it means; else the word itself. */
static void take_running(EventWords *names, const char *word, const perfd_result *list) {
        const perfd_event_row *row;

        if (!running_is_reference(word)) {
                event_words_take(names, word);
                return;
        }
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (!*row->pending && running_selects(word, row))
                        event_words_take(names, row->spec->name);
}

/* References become names. */
static int expand_references(Perfctl *p, EventWords *words, const perfd_result *list) {
        __attribute__((cleanup(event_words_deinit))) EventWords before = EVENT_WORDS_NULL;
        size_t n = 0;

        for (size_t i = 0; i < words->n; i++)
                n += running_is_reference(words->names[i]);
        if (n == 0)
                return 0;
        before = *words;
        *words = EVENT_WORDS_NULL;
        for (size_t i = 0; i < before.n; i++) {
                if (running_is_reference(before.names[i]) && !running_is_any(before.names[i], list))
                        return perfctl_fail(p, PERFCTL_FAILED, "no running event is %s %s: `perfctl list` shows them",
                                            before.names[i][0] == '@' ? "in a group called" : "of the id", before.names[i] + 1);
                take_running(words, before.names[i], list);
        }
        return 0;
}

/* Another client has added an event of the same name since the list was asked for, which may happen again. */
static int request_add(Perfctl *p, perfd_event_spec *specs, size_t n, const perfd_result *list, perfd_result **ret) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *later = NULL;
        int r;

        for (unsigned i = 0;; i++) {
                added_names_free(specs, n);
                added_names_choose(specs, n, later ? later : list, i > 0);
                r = perfd_add_temporary(p->client, specs, n, ret);
                if (r != PERFD_E_REFUSED || strcmp(perfd_client_error(p->client)->reason, "exists") != 0 || i == NAME_RETRIES)
                        return r;
                perfd_result_freep(&later);
                later = NULL;
                r = perfd_list(p->client, NULL, &later);
                if (r != 0)
                        return r;
        }
}

static bool has_name(const char *name, const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strcmp(name, row->spec->name) == 0)
                        return true;
        return false;
}

/*
 * A glob's events cannot be given names. If some run by their own, and differ, what it means is added one by one; the daemon
 * refuses the glob if there are too many.
 */
static void expand_globs(Perfctl *p, EventWords *words, const perfd_result *list) {
        __attribute__((cleanup(event_words_deinit))) EventWords before = *words;

        *words = EVENT_WORDS_NULL;
        for (size_t i = 0; i < before.n; i++) {
                words->place = before.places[i];
                if (!running_is_glob(before.names[i]) || !running_is_any(before.names[i], list) || !event_words_expand(words, p, before.names[i]))
                        event_words_take(words, before.names[i]);
        }
}

static bool any_glob_runs(const EventWords *words, const perfd_result *list) {
        for (size_t i = 0; i < words->n; i++)
                if (running_is_glob(words->names[i]) && running_is_any(words->names[i], list))
                        return true;
        return false;
}

/* Of a client of the stream socket the daemon has put "~UID/" before it. */
static bool is_called(const char *name, const perfd_event_spec *s) {
        const char *slash = name[0] == '~' ? strchr(name, '/') : NULL, *own = s->name ? s->name : s->event;

        return strcmp(name, own) == 0 || (slash && strcmp(slash + 1, own) == 0);
}

/* What is added only once is shown as it was typed. */
static void take_typed(TypedNames *typed, const perfd_event_spec *specs, size_t n, const char *name) {
        const char *event = NULL;
        size_t n_same = 0;

        for (size_t i = 0; i < n; i++)
                if (is_called(name, &specs[i]))
                        event = specs[i].event;
        for (size_t i = 0; i < n && event; i++)
                n_same += strcmp(specs[i].event, event) == 0;
        if (n_same != 1)
                return;
        event_words_take(&typed->names, name);
        event_words_take(&typed->events, event);
}

/* On the connection that there is; what they are called goes to `names`. ret_exists: NULL, or whether it is only the names. */
static int add_specs(Perfctl *p, perfd_event_spec *specs, size_t n, const perfd_result *list, AddedTo *to, bool *ret_exists) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_ref_row *ref;

        if (request_add(p, specs, n, list, &result) != 0) {
                int r;

                if (ret_exists && strcmp(perfd_client_error(p->client)->reason, "exists") == 0) {
                        *ret_exists = true;
                        return 0;
                }
                r = target_fail(p, specs_mistaken_text(specs, n, perfd_client_error(p->client)->reason));

                near_event_tell(p, specs, n);
                return r;
        }
        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++) {
                event_words_take(&to->names, ref->name);
                take_typed(to->typed, specs, n, ref->name);
        }
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

static int add_each(Perfctl *p, const EventWords *words, const perfd_event_spec *each, const perfd_result *list, AddedTo *to,
                    bool *ret_exists) {
        perfd_event_spec *specs = NULL;
        int r = specs_new(p, words, each, &specs);

        if (r != 0)
                return r;
        r = add_specs(p, specs, words->n, list, to, ret_exists);
        added_names_free(specs, words->n);
        free(specs);
        return r;
}

/* pid: of a command that is to be executed; 0: none. */
static int add_words(Perfctl *p, EventWords *words, const perfd_result *list, int pid, AddedTo *to) {
        perfd_event_spec each = PERFD_EVENT_SPEC_INIT;
        const char **attr = NULL;
        bool exists = false;
        int r = spec_options_parse(p, &each);

        if (r == 0 && pid > 0)
                attr = observe_from_exec(&each, pid);
        if (r == 0)
                r = event_words_find(words, p, EVENT_WHERE_OFFERED);
        if (r == 0)
                r = function_globs_expand(p, words);
        if (r == 0)
                r = add_each(p, words, &each, list, to, any_glob_runs(words, list) ? &exists : NULL);
        if (r == 0 && exists) {
                expand_globs(p, words, list);
                r = add_each(p, words, &each, list, to, NULL);
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

/* With -a a glob is not only what runs of it. */
static bool means_all(const Perfctl *p, const char *word) {
        return perfctl_get(p, "all-cpus") && strchr(word, ':') && running_is_glob(word);
}

static bool any_means_all(const Perfctl *p, const EventWords *words) {
        for (size_t i = 0; i < words->n; i++)
                if (means_all(p, words->names[i]))
                        return true;
        return false;
}

/* Those of `words` that do not run are added, or all with `is_new`; what is to be subscribed to goes to `to`. */
static int add_missing(Perfctl *p, const EventWords *words, bool is_new, int pid, AddedTo *to) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        __attribute__((cleanup(event_words_deinit))) EventWords missing = EVENT_WORDS_NULL;

        if (words->n == 0)
                return fail_no_event(p);
        if (perfd_list(p->client, NULL, &list) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; i < words->n; i++)
                if (running_is_glob(words->names[i]) && !strpbrk(words->names[i], ":/{") && !running_is_any(words->names[i], list))
                        return perfctl_fail(p, PERFCTL_FAILED, "no running event matches '%s', and only tracepoints are added by a glob, "
                                            "with their group, as 'sched:*'", words->names[i]);
                else if (is_new || !running_is_any(words->names[i], list) || running_is_temporary(words->names[i], list) ||
                    means_all(p, words->names[i])) {
                        missing.place = words->places[i];
                        event_words_take(&missing, words->names[i]);
                } else
                        take_running(&to->names, words->names[i], list);
        running_tell(p, &to->names, list);
        return missing.n > 0 ? add_words(p, &missing, list, pid, to) : 0;
}

/* The connection on which they were added stays, and the stream gets one of its own. */
static int subscribe_to_added(Perfctl *p, const EventWords *words, bool is_new, const EventSubscription *s,
                              perfd_client **ret_keeper) {
        AddedTo to = { .names = EVENT_WORDS_NULL, .typed = s->ret_typed };
        int r = add_missing(p, words, is_new, s->pid, &to);

        if (r != 0) {
                event_words_deinit(&to.names);
                return r;
        }
        *ret_keeper = p->client;
        p->client = NULL;
        r = perfctl_connect(p);
        if (r == 0)
                r = subscribe(p, &to.names, s);
        event_words_deinit(&to.names);
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

/* Only tracepoints are added by a glob; more of them than fit in an answer are more than anybody wants. */
static void warn_of_glob(Perfctl *p, const char *word, size_t n_running, bool is_watched, const perfd_result *list) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *offered = NULL;
        const perfd_available_row *a;
        size_t n = 0, n_more = 0;

        if (!strchr(word, ':')) {
                if (p->human && is_watched)
                        (void)perfctl_fail(p, PERFCTL_OK, "of '%s' these are the %zu that run, and not all that `perfctl available "
                                           "'%s'` lists", word, n_running, word);
                return;
        }
        if (perfd_available(p->client, word, false, &offered) != 0)
                return;
        for (; (a = perfd_result_available(offered, n)); n++)
                n_more += !has_name(a->event, list);
        if (n_more > 0 && !perfd_result_is_truncated(offered))
                (void)perfctl_fail(p, PERFCTL_OK, "of '%s' these are the %zu that run, and not all %zu that this %s has: with -a "
                                   "all are added for as long as this runs", word, n_running, n, function_globs_is(word) ? "file" : "kernel");
}

/* Of a pattern it is easily thought that it means all that the kernel has. */
static void warn_of_word(Perfctl *p, const char *word, bool is_watched, const perfd_result *list) {
        const perfd_event_row *row;
        size_t n = 0;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                n += !*row->pending && running_selects(word, row);
        if (n > 0 && running_is_glob(word))
                warn_of_glob(p, word, n, is_watched, list);
}

/* Who looks at a terminal and sees nothing; and whoever names a glob, and may take it for another one. */
static void warn_of_silence(Perfctl *p, const EventWords *words, bool is_watched, const perfd_result *list) {
        if (words->n == 0 && list)
                warn_of_none(p, list);
        for (size_t i = 0; i < words->n; i++)
                warn_of_word(p, words->names[i], is_watched, list);
}

/* One name is asked for alone: others may be thousands. Of no name the list is only for people. */
static int list_running(Perfctl *p, const EventWords *words, bool is_watched, perfd_result **ret) {
        const char *word = words->n == 1 && !strpbrk(words->names[0], "*?[]\\@#") ? words->names[0] : NULL;

        if (words->n == 0 && !(is_watched && p->human))
                return 0;
        return perfd_list(p->client, word, ret) == 0 ? 0 : perfctl_fail_client(p, NULL);
}

/* If all of them run, and none is temporary and another client's; else UNKNOWN_EVENT. */
static int subscribe_to_running(Perfctl *p, const EventWords *words, const perfd_result *list, const EventSubscription *s) {
        int r;

        if (words->n > 0 && perfd_client_may_change(p->client) && running_is_to_add(words, list))
                return UNKNOWN_EVENT;
        r = subscribe(p, words, s);
        if (r == 0 && words->n > 0)
                running_tell(p, words, list);
        return r;
}

/* As they were written: other words mean other events. */
static int subscribe_to_written(Perfctl *p, const EventSubscription *s) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        int r;

        event_words_take_all(&words, p);
        r = list_running(p, &words, s->is_watched, &list);
        if (r != 0)
                return r;
        warn_of_silence(p, &words, s->is_watched, list);
        r = expand_references(p, &words, list);
        return r == 0 ? subscribe_to_running(p, &words, list, s) : r;
}

/* Of an event that does not run, on a socket where it is not added: `perfctl add`, which the daemon names, is not for everybody. */
static int fail_to_add(const Perfctl *p) {
        bool is_absent = strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0;
        int r = perfctl_fail_client(p, NULL);

        if (is_absent && perfctl_is_tls(p))
                (void)perfctl_fail(p, r, "this connection only reads events that run there: others are added on that host, or by a client "
                                   "with 'control: true' in the relay.yaml(5) of its relay");
        else if (is_absent)
                (void)perfctl_fail(p, r, "this user has the stream socket, which adds events only on one's own processes, as with --pid, and by "
                                   "a rule that grants own-processes: `perfctl status` shows it, perfd.yaml(5), Access rules, describes it");
        return r;
}

static int subscribe_by_names(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper) {
        __attribute__((cleanup(event_words_deinit))) EventWords others = EVENT_WORDS_NULL;
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        int r = subscribe_to_written(p, s);

        if (r != UNKNOWN_EVENT)
                return r;
        r = event_words_add_all(&others, p);
        if (r == 0)
                r = event_words_find(&others, p, EVENT_WHERE_RUNNING);
        if (r == 0)
                r = list_running(p, &others, s->is_watched, &list);
        for (size_t i = 0; i < others.n && r == 0; i++)
                if (function_globs_is(others.names[i])) /* by its file's path: of the word that was written nothing runs */
                        warn_of_word(p, others.names[i], s->is_watched, list);
        if (r == 0)
                r = subscribe_to_running(p, &others, list, s);
        if (r != UNKNOWN_EVENT)
                return r;
        return perfd_client_may_change(p->client) ? subscribe_to_added(p, &others, false, s, ret_keeper) : fail_to_add(p);
}

int subscribe_to_events(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        const bool is_new = spec_options_given(p) || s->pid > 0;
        int r;

        if (s->subscription->queue_bytes > 0 && s->subscription->queue_bytes < QUEUE_LEAST)
                return perfctl_fail(p, PERFCTL_USAGE, "--queue: %s is less than the smallest queue, 64KiB", perfctl_get(p, "queue"));
        if (!is_new && !perfctl_get(p, "all-cpus"))
                return subscribe_by_names(p, s, ret_keeper);
        r = event_words_add_all(&words, p);
        if (r != 0)
                return r;
        if (is_new || any_means_all(p, &words))
                return subscribe_to_added(p, &words, is_new, s, ret_keeper);
        return subscribe_by_names(p, s, ret_keeper);
}
