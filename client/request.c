/*
 * The requests. Each builds its message around the caller's own strings, which protobuf-c takes as `char *` although
 * it only reads them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/event-spec.h"
#include "client/request.h"
#include "client/result.h"

int caller_struct_copy(void *to, size_t size, const void *from) {
        size_t given;

        memcpy(&given, from, sizeof(given));
        if (given < sizeof(given))
                return PERFD_E_INVALID;
        for (size_t i = size; i < given; i++)
                if (((const char *)from)[i] != 0) /* of a newer header: what it asks for is not known here */
                        return PERFD_E_INVALID;
        memset(to, 0, size);
        memcpy(to, from, given < size ? given : size);
        return 0;
}

int client_fail_size(perfd_client *c, const char *what) {
        return client_fail(c, PERFD_E_INVALID, "bad-argument",
                           "%s: its size is not set by the PERFD_*_INIT macro, or it uses what this library lacks", what);
}

int client_ask(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__Response__BodyCase expected,
               perfd_result **ret_result) {
        Perfd__V1__ServerMessage *message;
        perfd_result *result;
        int r;

        r = client_call(c, request, &message);
        if (r != 0)
                return r;
        if (message->response->body_case != expected) {
                perfd__v1__server_message__free_unpacked(message, NULL);
                return client_fail_protocol(c, "an answer to another kind of request");
        }
        r = result_new(message, &result);
        if (r == -ENOMEM)
                return client_fail_memory(c);
        if (r != 0)
                return client_fail_protocol(c, "a field of a kind that does not exist");
        if (ret_result)
                *ret_result = result;
        else
                perfd_result_free(result);
        return 0;
}

static int client_ask_empty(perfd_client *c, Perfd__V1__Request__BodyCase body, Perfd__V1__Response__BodyCase expected,
                            perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

        request.body_case = body;
        request.status = &empty; /* all members of the union are such pointers */
        return client_ask(c, &request, expected, ret_result);
}

int perfd_status(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_STATUS, PERFD__V1__RESPONSE__BODY_DAEMON, ret_result);
}

int perfd_ledger_of(perfd_client *c, const char *const *events, size_t n_events, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;

        ledger.events = (char **)events; /* the library only reads them */
        ledger.n_events = n_events;
        request.body_case = PERFD__V1__REQUEST__BODY_LEDGER;
        request.ledger = &ledger;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_LEDGER, ret_result);
}

int perfd_ledger(perfd_client *c, perfd_result **ret_result) {
        return perfd_ledger_of(c, NULL, 0, ret_result);
}

int perfd_reload(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_RELOAD, PERFD__V1__RESPONSE__BODY_RELOADED, ret_result);
}

int perfd_doctor(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_DOCTOR, PERFD__V1__RESPONSE__BODY_DOCTOR, ret_result);
}

static int ask_list(perfd_client *c, const char *glob, bool fields, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;

        list.glob = wire_string(glob);
        list.fields = fields;
        request.body_case = PERFD__V1__REQUEST__BODY_LIST;
        request.list = &list;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_LIST, ret_result);
}

int perfd_list(perfd_client *c, const char *glob, perfd_result **ret_result) {
        return ask_list(c, glob, false, ret_result);
}

int perfd_list_with_fields(perfd_client *c, const char *glob, perfd_result **ret_result) {
        return ask_list(c, glob, true, ret_result);
}

int perfd_available(perfd_client *c, const char *glob, bool fields, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__AvailableRequest available = PERFD__V1__AVAILABLE_REQUEST__INIT;

        available.glob = wire_string(glob);
        available.fields = fields;
        request.body_case = PERFD__V1__REQUEST__BODY_AVAILABLE;
        request.available = &available;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_AVAILABLE, ret_result);
}

/* The caller's elements are as far apart as his header says. */
static int specs_encode(perfd_client *c, const perfd_event_spec *specs, size_t n, Arena *arena,
                        Perfd__V1__AddRequest *add) {
        WireSpec *wire = arena_push(arena, n, sizeof(*wire));
        size_t stride = n > 0 ? specs[0].size : 0;

        add->events = arena_push(arena, n, sizeof(*add->events));
        if (!wire || !add->events)
                return client_fail_memory(c);
        for (size_t i = 0; i < n; i++) {
                const char *wrong = "";
                perfd_event_spec spec;
                int r;

                if (caller_struct_copy(&spec, sizeof(spec), (const char *)specs + i * stride) != 0 || spec.size != stride)
                        return client_fail_size(c, "perfd_event_spec");
                r = spec_encode(&spec, arena, &wire[i], &wrong);
                if (r < 0)
                        return client_fail_memory(c);
                if (r != 0)
                        return client_fail(c, PERFD_E_INVALID, "bad-argument",
                                           "'%s' is neither NAME=VALUE, as attr needs it, nor NAME:TYPE, as fields do",
                                           wrong);
                add->events[add->n_events++] = &wire[i].message;
        }
        return 0;
}

/* `add` says how long they stay. */
static int client_add(perfd_client *c, const perfd_event_spec *specs, size_t n, Perfd__V1__AddRequest add,
                      perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Arena arena = ARENA_NULL;
        int r = specs_encode(c, specs, n, &arena, &add);

        if (r == 0) {
                request.body_case = PERFD__V1__REQUEST__BODY_ADD;
                request.add = &add;
                r = client_ask(c, &request, PERFD__V1__RESPONSE__BODY_ADDED, ret_result);
        }
        arena_deinit(&arena);
        return r;
}

int perfd_add(perfd_client *c, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result) {
        return client_add(c, specs, n_specs, (Perfd__V1__AddRequest)PERFD__V1__ADD_REQUEST__INIT, ret_result);
}

int perfd_add_temporary(perfd_client *c, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result) {
        Perfd__V1__AddRequest add = PERFD__V1__ADD_REQUEST__INIT;

        add.while_connected = true;
        return client_add(c, specs, n_specs, add, ret_result);
}

int perfd_add_kept(perfd_client *c, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result) {
        Perfd__V1__AddRequest add = PERFD__V1__ADD_REQUEST__INIT;

        add.keep = true;
        return client_add(c, specs, n_specs, add, ret_result);
}

static int client_select(perfd_client *c, Perfd__V1__Request__BodyCase body, const char *const *names, size_t n_names,
                         perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SelectRequest select = PERFD__V1__SELECT_REQUEST__INIT;

        select.names = (char **)names;
        select.n_names = n_names;
        request.body_case = body;
        request.remove = &select; /* the same type for all three */
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_SELECTED, ret_result);
}

int perfd_remove(perfd_client *c, const char *const *names, size_t n_names, perfd_result **ret_result) {
        return client_select(c, PERFD__V1__REQUEST__BODY_REMOVE, names, n_names, ret_result);
}

int perfd_enable(perfd_client *c, const char *const *names, size_t n_names, perfd_result **ret_result) {
        return client_select(c, PERFD__V1__REQUEST__BODY_ENABLE, names, n_names, ret_result);
}

int perfd_disable(perfd_client *c, const char *const *names, size_t n_names, perfd_result **ret_result) {
        return client_select(c, PERFD__V1__REQUEST__BODY_DISABLE, names, n_names, ret_result);
}

/* The answer has no body. */
int perfd_set_filter(perfd_client *c, const char *name, const char *filter) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SetFilterRequest set = PERFD__V1__SET_FILTER_REQUEST__INIT;
        Perfd__V1__ServerMessage *message;
        int r;

        set.name = wire_string(name);
        set.filter = wire_string(filter);
        request.body_case = PERFD__V1__REQUEST__BODY_SET_FILTER;
        request.set_filter = &set;
        r = client_call(c, &request, &message);
        if (r == 0)
                perfd__v1__server_message__free_unpacked(message, NULL);
        return r;
}

/* The answer has no body. */
int perfd_set_period(perfd_client *c, const char *name, uint64_t period, uint64_t frequency) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SetPeriodRequest set = PERFD__V1__SET_PERIOD_REQUEST__INIT;
        Perfd__V1__ServerMessage *message;
        int r;

        set.name = wire_string(name);
        set.period = period;
        set.frequency = frequency;
        request.body_case = PERFD__V1__REQUEST__BODY_SET_PERIOD;
        request.set_period = &set;
        r = client_call(c, &request, &message);
        if (r == 0)
                perfd__v1__server_message__free_unpacked(message, NULL);
        return r;
}

/* The wire's strings end at a zero byte: what stands behind one would be taken as valid without having been read. */
static int copy_yaml(perfd_client *c, const char *yaml, size_t length, char **ret) {
        const char *zero = length > 0 ? memchr(yaml, '\0', length) : NULL;

        if (zero) {
                int r = client_fail(c, PERFD_E_INVALID, "bad-text", "a zero byte: a configuration is text");

                c->error.position = 1 + (unsigned)(zero - yaml);
                return r;
        }
        *ret = strndup(yaml ? yaml : "", length);
        return *ret ? 0 : client_fail_memory(c);
}

int perfd_plan(perfd_client *c, const char *yaml, size_t length, const char *path, perfd_result **ret_result) {
        return perfd_plan_apply(c, yaml, length, path, false, ret_result);
}

int perfd_plan_apply(perfd_client *c, const char *yaml, size_t length, const char *path, bool may_wait,
                     perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__PlanRequest plan = PERFD__V1__PLAN_REQUEST__INIT;
        char *text;
        int r = copy_yaml(c, yaml, length, &text);

        if (r != 0)
                return r;
        plan.yaml = text;
        plan.path = wire_string(path);
        plan.may_wait = may_wait;
        request.body_case = PERFD__V1__REQUEST__BODY_PLAN;
        request.plan = &plan;
        r = client_ask(c, &request, PERFD__V1__RESPONSE__BODY_PLAN, ret_result);
        free(text);
        return r;
}

int perfd_apply(perfd_client *c, const char *yaml, size_t length, const char *path, bool may_wait,
                perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ApplyRequest apply = PERFD__V1__APPLY_REQUEST__INIT;
        char *text;
        int r = copy_yaml(c, yaml, length, &text);

        if (r != 0)
                return r;
        apply.yaml = text;
        apply.path = wire_string(path);
        apply.may_wait = may_wait;
        request.body_case = PERFD__V1__REQUEST__BODY_APPLY;
        request.apply = &apply;
        r = client_ask(c, &request, PERFD__V1__RESPONSE__BODY_RELOADED, ret_result);
        free(text);
        return r;
}

int perfd_validate(perfd_client *c, const char *yaml, size_t length, perfd_result **ret_result) {
        return perfd_validate_all(c, &(perfd_config_text){ .path = "", .yaml = yaml, .length = length }, 1, ret_result);
}

static void free_drop_ins(Perfd__V1__ValidateRequest *m) {
        for (size_t i = 0; m->drop_ins && i < m->n_drop_ins; i++) {
                free(m->drop_ins[i]->yaml);
                free(m->drop_ins[i]);
        }
        free(m->drop_ins);
}

static int add_drop_in(perfd_client *c, const perfd_config_text *from, Perfd__V1__ValidateRequest *m) {
        Perfd__V1__ConfigText *text = malloc(sizeof(*text));
        int r;

        if (!text)
                return client_fail_memory(c);
        perfd__v1__config_text__init(text);
        text->path = wire_string(from->path);
        r = copy_yaml(c, from->yaml, from->length, &text->yaml);
        if (r != 0)
                free(text);
        else
                m->drop_ins[m->n_drop_ins++] = text;
        return r;
}

/* An older daemon knows of no drop-ins, and skips them. */
static int ask_to_validate(perfd_client *c, Perfd__V1__Request *request, size_t n, perfd_result **ret_result) {
        perfd_result *result = NULL;
        int r = client_ask(c, request, PERFD__V1__RESPONSE__BODY_VALIDATED, &result);

        if (r == 0 && n > 1 && result->message->response->validated->n_files < n) {
                perfd_result_free(result);
                return client_fail(c, PERFD_E_PROTOCOL, "bad-reply", "the daemon is older, and has looked at the main file only");
        }
        if (r == 0 && ret_result)
                *ret_result = result;
        else
                perfd_result_free(result);
        return r;
}

int perfd_validate_all(perfd_client *c, const perfd_config_text *texts, size_t n, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ValidateRequest validate = PERFD__V1__VALIDATE_REQUEST__INIT;
        char *main_text = NULL;
        int r;

        if (n == 0)
                return client_fail(c, PERFD_E_INVALID, "bad-text", "no text");
        r = copy_yaml(c, texts[0].yaml, texts[0].length, &main_text);
        if (r != 0)
                return r;
        validate.yaml = main_text;
        validate.path = wire_string(texts[0].path);
        validate.drop_ins = calloc(n, sizeof(*validate.drop_ins));
        if (!validate.drop_ins)
                r = client_fail_memory(c);
        for (size_t i = 1; i < n && r == 0; i++)
                r = add_drop_in(c, &texts[i], &validate);
        request.body_case = PERFD__V1__REQUEST__BODY_VALIDATE;
        request.validate = &validate;
        if (r == 0)
                r = ask_to_validate(c, &request, n, ret_result);
        free_drop_ins(&validate);
        free(main_text);
        return r;
}
