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

/* A main file and its drop-ins as a request has them; malloc'ed. */
typedef struct WireTexts {
        char *main;
        Perfd__V1__ConfigText **drop_ins;
        size_t n_drop_ins;
} WireTexts;

static void wire_texts_deinit(WireTexts *w) {
        for (size_t i = 0; i < w->n_drop_ins; i++) {
                free(w->drop_ins[i]->yaml);
                free(w->drop_ins[i]);
        }
        free(w->drop_ins);
        free(w->main);
}

static int add_drop_in(perfd_client *c, const perfd_config_text *from, WireTexts *w) {
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
                w->drop_ins[w->n_drop_ins++] = text;
        return r;
}

/* To be given to wire_texts_deinit() also when it fails. */
static int wire_texts_init(perfd_client *c, const perfd_config_text *texts, size_t n, WireTexts *w) {
        int r;

        if (n == 0)
                return client_fail(c, PERFD_E_INVALID, "bad-text", "no text");
        r = copy_yaml(c, texts[0].yaml, texts[0].length, &w->main);
        if (r != 0)
                return r;
        w->drop_ins = calloc(n, sizeof(*w->drop_ins));
        if (!w->drop_ins)
                return client_fail_memory(c);
        for (size_t i = 1; i < n && r == 0; i++)
                r = add_drop_in(c, &texts[i], w);
        return r;
}

/* Of the n texts that were sent: an older daemon knows of no drop-ins, and skips them. */
static uint32_t count_files(const Perfd__V1__Response *response) {
        switch (response->body_case) {
        case PERFD__V1__RESPONSE__BODY_VALIDATED:
                return response->validated->n_files;
        case PERFD__V1__RESPONSE__BODY_PLAN:
                return response->plan->n_files;
        case PERFD__V1__RESPONSE__BODY_RELOADED:
                return response->reloaded->n_files;
        default:
                return 0;
        }
}

static int ask_about_texts(perfd_client *c, Perfd__V1__Request *request, size_t n, Perfd__V1__Response__BodyCase expected,
                           perfd_result **ret_result) {
        perfd_result *result = NULL;
        int r = client_ask(c, request, expected, &result);

        if (r == 0 && n > 1 && count_files(result->message->response) < n) {
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
        WireTexts w = { .main = NULL };
        int r = wire_texts_init(c, texts, n, &w);

        if (r == 0) {
                validate.yaml = w.main;
                validate.path = wire_string(texts[0].path);
                validate.drop_ins = w.drop_ins;
                validate.n_drop_ins = w.n_drop_ins;
                request.body_case = PERFD__V1__REQUEST__BODY_VALIDATE;
                request.validate = &validate;
                r = ask_about_texts(c, &request, n, PERFD__V1__RESPONSE__BODY_VALIDATED, ret_result);
        }
        wire_texts_deinit(&w);
        return r;
}

int perfd_plan_all(perfd_client *c, const perfd_config_text *texts, size_t n, bool may_wait, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__PlanRequest plan = PERFD__V1__PLAN_REQUEST__INIT;
        WireTexts w = { .main = NULL };
        int r = wire_texts_init(c, texts, n, &w);

        if (r == 0) {
                plan.yaml = w.main;
                plan.path = wire_string(texts[0].path);
                plan.drop_ins = w.drop_ins;
                plan.n_drop_ins = w.n_drop_ins;
                plan.may_wait = may_wait;
                request.body_case = PERFD__V1__REQUEST__BODY_PLAN;
                request.plan = &plan;
                r = ask_about_texts(c, &request, n, PERFD__V1__RESPONSE__BODY_PLAN, ret_result);
        }
        wire_texts_deinit(&w);
        return r;
}

int perfd_plan_reload(perfd_client *c, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__PlanRequest plan = PERFD__V1__PLAN_REQUEST__INIT;

        plan.reload = true;
        request.body_case = PERFD__V1__REQUEST__BODY_PLAN;
        request.plan = &plan;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_PLAN, ret_result);
}

int perfd_apply_all(perfd_client *c, const perfd_config_text *texts, size_t n, bool may_wait, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ApplyRequest apply = PERFD__V1__APPLY_REQUEST__INIT;
        WireTexts w = { .main = NULL };
        int r = wire_texts_init(c, texts, n, &w);

        if (r == 0) {
                apply.yaml = w.main;
                apply.path = wire_string(texts[0].path);
                apply.drop_ins = w.drop_ins;
                apply.n_drop_ins = w.n_drop_ins;
                apply.may_wait = may_wait;
                request.body_case = PERFD__V1__REQUEST__BODY_APPLY;
                request.apply = &apply;
                r = ask_about_texts(c, &request, n, PERFD__V1__RESPONSE__BODY_RELOADED, ret_result);
        }
        wire_texts_deinit(&w);
        return r;
}

static perfd_config_text one_text(const char *path, const char *yaml, size_t length) {
        return (perfd_config_text){ .path = path, .yaml = yaml, .length = length };
}

int perfd_validate(perfd_client *c, const char *yaml, size_t length, perfd_result **ret_result) {
        const perfd_config_text text = one_text("", yaml, length);

        return perfd_validate_all(c, &text, 1, ret_result);
}

int perfd_plan(perfd_client *c, const char *yaml, size_t length, const char *path, perfd_result **ret_result) {
        return perfd_plan_apply(c, yaml, length, path, false, ret_result);
}

int perfd_plan_apply(perfd_client *c, const char *yaml, size_t length, const char *path, bool may_wait,
                     perfd_result **ret_result) {
        const perfd_config_text text = one_text(path, yaml, length);

        return perfd_plan_all(c, &text, 1, may_wait, ret_result);
}

int perfd_apply(perfd_client *c, const char *yaml, size_t length, const char *path, bool may_wait,
                perfd_result **ret_result) {
        const perfd_config_text text = one_text(path, yaml, length);

        return perfd_apply_all(c, &text, 1, may_wait, ret_result);
}
