/* Samples of external events. The kinds of values are checked here only as far as the wire needs it: what a field takes
 * is the daemon's to know. */
#include <errno.h>
#include <stdlib.h>

#include "client/connection/client.h"
#include "client/request/request.h"
#include "client/wire/caller-string.h"

typedef struct WireSamples {
        Perfd__V1__ExternalSample *samples, **sample_list;
        Perfd__V1__ExternalValue *values, **value_list; /* of all samples */
} WireSamples;

static void wire_samples_deinit(WireSamples *w) {
        free(w->samples);
        free(w->sample_list);
        free(w->values);
        free(w->value_list);
}

static int value_encode(const perfd_external_value *value, Perfd__V1__ExternalValue *m) {
        perfd__v1__external_value__init(m);
        switch (value->kind) {
        case PERFD_UNSIGNED:
        case PERFD_BOOL:
        case PERFD_POINTER:
                m->value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_NUMBER;
                m->number = value->number;
                return 0;
        case PERFD_SIGNED:
                m->value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_SIGNED_NUMBER;
                m->signed_number = (int64_t)value->number;
                return 0;
        case PERFD_TEXT:
        case PERFD_BYTES:
                m->value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT;
                m->text = (ProtobufCBinaryData){ .data = (uint8_t *)value->text.bytes, .len = value->text.length };
                return 0;
        default:
                return PERFD_E_INVALID;
        }
}

static int sample_encode(perfd_client *c, const perfd_external_sample *sample, Perfd__V1__ExternalSample *m,
                         Perfd__V1__ExternalValue *values, Perfd__V1__ExternalValue **list) {
        perfd__v1__external_sample__init(m);
        m->event = wire_string(sample->event);
        m->time = sample->time;
        m->pid = sample->pid;
        m->tid = sample->tid;
        m->cpu = sample->cpu;
        m->values = list;
        m->n_values = sample->n_values;
        for (size_t i = 0; i < sample->n_values; i++) {
                if (value_encode(&sample->values[i], &values[i]) != 0)
                        return client_fail(c, PERFD_E_INVALID, "bad-argument",
                                           "value %zu of a sample of %s has no kind that exists", i,
                                           wire_string(sample->event));
                list[i] = &values[i];
        }
        return 0;
}

/* The caller's elements are as far apart as his header says. */
static int sample_get(perfd_client *c, const perfd_external_sample *samples, size_t i, perfd_external_sample *ret) {
        size_t stride = samples[0].size;

        if (caller_struct_copy(ret, sizeof(*ret), (const char *)samples + i * stride) != 0 || ret->size != stride)
                return client_fail_size(c, "perfd_external_sample");
        return 0;
}

static int samples_encode(perfd_client *c, const perfd_external_sample *samples, size_t n, WireSamples *w) {
        perfd_external_sample sample;
        size_t n_values = 0, at = 0;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                r = sample_get(c, samples, i, &sample);
                n_values += r == 0 ? sample.n_values : 0;
        }
        if (r != 0)
                return r;
        w->samples = calloc(n + 1, sizeof(*w->samples));
        w->sample_list = calloc(n + 1, sizeof(*w->sample_list));
        w->values = calloc(n_values + 1, sizeof(*w->values));
        w->value_list = calloc(n_values + 1, sizeof(*w->value_list));
        if (!w->samples || !w->sample_list || !w->values || !w->value_list)
                return client_fail_memory(c);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = sample_get(c, samples, i, &sample);
                if (r == 0)
                        r = sample_encode(c, &sample, &w->samples[i], w->values + at, w->value_list + at);
                at += sample.n_values;
                w->sample_list[i] = &w->samples[i];
        }
        return r;
}

int perfd_emit(perfd_client *c, const perfd_external_sample *samples, size_t n_samples, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__EmitRequest emit = PERFD__V1__EMIT_REQUEST__INIT;
        WireSamples w = { .samples = NULL };
        int r = samples_encode(c, samples, n_samples, &w);

        if (r == 0) {
                emit.samples = w.sample_list;
                emit.n_samples = n_samples;
                request.body_case = PERFD__V1__REQUEST__BODY_EMIT;
                request.emit = &emit;
                r = client_ask(c, &request, PERFD__V1__RESPONSE__BODY_EMITTED, ret_result);
        }
        wire_samples_deinit(&w);
        return r;
}
