/* A new event, from the command line as from the configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/function-globs.h"
#include "client/perfctl/events/near-event.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/refs.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/events/target.h"
#include "client/perfctl/print/json.h"

/* What `add` has beside the options of all verbs that add events. */
static int parse_spec(const Perfctl *p, perfd_event_spec *s) {
        const char *interval = perfctl_get(p, "interval");
        int r;

        s->name = perfctl_get(p, "name");
        s->group = perfctl_get(p, "group");
        s->disabled = perfctl_get(p, "disabled");
        s->fields = perfctl_get_all(p, "field", &s->n_fields);
        if (interval && (!quantity_parse_time(interval, &s->interval) || s->interval == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is not a time such as 100ms, 1s%s",
                                    interval, quantity_lack_of_time(interval));
        r = spec_options_check_pairs(p, "field", ':');
        return r == 0 ? spec_options_parse(p, s) : r;
}

/* One list for all of `words`, so that all are added or none. */
static int send_specs(Perfctl *p, const EventWords *words, perfd_event_spec *specs, perfd_result **ret) {
        for (size_t i = 0; i < words->n; i++)
                specs[i].event = words->names[i];
        return (perfctl_get(p, "keep") ? perfd_add_persistent : perfd_add)(p->client, specs, words->n, ret);
}

/* Whether its fallback is counted; what cannot be asked is not. */
static bool falls_back(Perfctl *p, uint32_t id) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        char name[16];

        (void)snprintf(name, sizeof(name), "#%u", id);
        return perfd_list(p->client, name, &list) == 0 && perfd_result_event(list, 0) && perfd_result_event(list, 0)->fallen_back;
}

/* What was added with --fallback: whether that is counted. */
static void print_with_fallback(Perfctl *p, const perfd_result *result) {
        const perfd_ref_row *ref;
        Json j = json_of(&p->out);

        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++) {
                const bool has_fallen = falls_back(p, ref->id);

                if (p->json) {
                        json_begin(&j, '{');
                        JSON_STRING(&j, "name", ref->name);
                        JSON_NUMBER(&j, "id", ref->id);
                        JSON_BOOL(&j, "fallen_back", has_fallen);
                        json_end(&j, '}');
                        json_end_line(&j);
                } else
                        ref_print(p, ref->name, ref->id);
                output_flush(&p->out);
                if (has_fallen)
                        (void)perfctl_fail(p, PERFCTL_OK, "%s: this machine does not count cycles: %s is counted instead", ref->name,
                                           perfctl_get(p, "fallback"));
        }
        for (size_t i = 0; perfd_result_note(result, i); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
}

static int add_specs(Perfctl *p, EventWords *words, perfd_event_spec *specs) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        r = send_specs(p, words, specs, &result);
        if (r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0) {
                r = event_words_find(words, p, EVENT_WHERE_OFFERED);
                if (r != 0)
                        return r;
                r = send_specs(p, words, specs, &result); /* also if nothing was found: it says why */
        }
        if (r != 0) {
                r = target_fail(p, specs_mistaken_text(specs, words->n, perfd_client_error(p->client)->reason));
                near_event_tell(p, specs, words->n);
                return r;
        }
        if (perfctl_get(p, "fallback"))
                print_with_fallback(p, result);
        else
                refs_print(p, result);
        return PERFCTL_OK;
}

static int add_words(Perfctl *p, EventWords *words, const perfd_event_spec *s) {
        perfd_event_spec *specs;
        int r = specs_new(p, words, s, &specs);

        if (r != 0)
                return r;
        r = add_specs(p, words, specs);
        free(specs);
        return r;
}

static int add_run(Perfctl *p) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        perfd_event_spec s = PERFD_EVENT_SPEC_INIT;
        int r = parse_spec(p, &s);

        if (r == 0)
                r = event_words_add_all(&words, p);
        if (r == 0 && function_globs_any(&words)) {
                r = perfctl_connect(p);
                if (r == 0)
                        r = function_globs_expand(p, &words);
        }
        if (r == 0 && words.n == 0)
                r = perfctl_fail(p, PERFCTL_USAGE, "which event? as in `perfctl add sched:sched_switch` or `perfctl add -e "
                                 "cycles,page-faults`; `perfctl available` lists them");
        if (r == 0 && words.n > 1 && s.name)
                r = perfctl_fail(p, PERFCTL_USAGE,
                                 "--name %s: %zu events cannot all be called so: add each for itself, or give them a "
                                 "--group",
                                 s.name, words.n);
        if (r == 0)
                r = add_words(p, &words, &s);
        target_deinit(&s);
        return r;
}

const Verb verb_add = {
        .name = "add",
        .arguments = "[EVENT...]",
        .help = "add events; prints their names and ids",
        .options = {
                EVENT_OPTION(WORDS_OFFERED),
                { .name = "name", .argument = "NAME", .help = "the name of the event, default: EVENT" },
                { .name = "group", .argument = "NAME", .help = "add to a group, selected by @NAME" },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
                SPEC_OPTIONS,
                { .name = "interval", .argument = "TIME", .help = "only count, and send the counts every 100ms, 1s" },
                { .name = "field", .argument = "NAME:TYPE", .help = "external events: a field of the samples",
                  .repeats = true },
                { .name = "disabled", .help = "add disabled, until `perfctl enable`" },
                { .name = "keep", .help = "persist over restarts of perfd" },
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_OFFERED,
        .hosts = HOSTS_EACH,
        .run = add_run,
};
