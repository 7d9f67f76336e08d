/* Requests that change events. Each builds its message around the caller's own strings. */
#include "client/connection/client.h"
#include "client/request/request.h"
#include "client/wire/event-spec.h"
#include "client/wire/caller-string.h"

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

        add.while_connected = add.share = true;
        return client_add(c, specs, n_specs, add, ret_result);
}

int perfd_add_persistent(perfd_client *c, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result) {
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
