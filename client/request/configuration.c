/* Requests about texts in YAML: what is wrong with one, what it would change, and that it holds now. */
#include <stdlib.h>
#include <string.h>

#include "client/connection/client.h"
#include "client/request/request.h"
#include "client/result/result.h"
#include "client/wire/caller-string.h"

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

int perfd_reload(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_RELOAD, PERFD__V1__RESPONSE__BODY_RELOADED, ret_result);
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
